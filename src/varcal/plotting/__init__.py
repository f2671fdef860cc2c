"""Plots of results with matplotlib or plotly. No statistic is computed here.

Most results have a method for it (``curve.plot()``, ``audit.plot()``, …); the functions here draw
several results at once, or values of your own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from varcal.exceptions import InputError, import_library

if TYPE_CHECKING:
    from varcal._measures.curve import Curve

__all__ = ["before_after", "dots"]

BACKENDS = ("matplotlib", "plotly")


def draw(kind: str, result: Any, *, ax: Any = None, backend: str = "matplotlib", **how: Any) -> Any:
    """Draw a result with one of the backends; every `plot` method calls this."""
    if backend not in BACKENDS:
        raise InputError.choice("backend", backend, BACKENDS)
    if backend == "plotly":
        if ax is not None:
            raise InputError(
                'ax is for backend="matplotlib"',
                "leave ax out: a Figure is returned",
                argument="ax",
            )
        import_library("plotly", 'plot(backend="plotly")')
        return import_module(f"varcal.plotting._plotly.{kind}").draw(result, **how)
    import_library("matplotlib", "plot()")
    return import_module(f"varcal.plotting._matplotlib.{kind}").draw(result, ax, **how)


def before_after(
    curves: Mapping[str, Curve], *, columns: int = 4, backend: str = "matplotlib"
) -> Any:
    """Draw curves of one variable side by side on shared axes, before and after recalibration.

    Parameters
    ----------
    curves : mapping of str to Curve
        The curves by name of the method, in the order of the panels. All must be of the same
        variable.
    columns : int
        The largest number of panels in a row.
    backend : {"matplotlib", "plotly"}
        The library that draws.

    Returns
    -------
    matplotlib Figure, or plotly Figure
        The title of each panel gives VECE with its interval and the worst gap, in points.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(1000, "tilt", vece=0.1)
    >>> raw = vc.curve(sim.y, sim.p, sim.v, event="positive")
    >>> mean = vc.curve(sim.y, sim.p * 0 + sim.y.mean(), sim.v, event="positive")
    >>> len(vc.plotting.before_after({"raw": raw, "base rate": mean}).axes)
    2
    """
    named = {str(name): curve for name, curve in curves.items()}
    if not named:
        raise InputError("curves is empty", "give at least one curve", argument="curves")
    if isinstance(columns, bool) or not isinstance(columns, int) or columns < 1:
        raise InputError(
            f"columns must be a whole number of at least 1; got {columns!r}",
            "try 4",
            argument="columns",
        )
    first = next(iter(named.values()))
    for name, curve in named.items():
        alike = ("variable", "kind", "event", "labels")
        differ = [one for one in alike if getattr(curve, one) != getattr(first, one)]
        if differ:
            raise InputError(
                f"curve {name!r} differs from the first in {differ[0]}: "
                f"{getattr(curve, differ[0])!r} against {getattr(first, differ[0])!r}",
                "give curves of the same variable and the same event",
            )
    return draw("panels", named, backend=backend, columns=columns)


def dots(
    names: Sequence[str],
    value: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    plug_in: ArrayLike | None = None,
    filled: ArrayLike | None = None,
    texts: Sequence[str] = (),
    lines: Sequence[tuple[float, str]] = (),
    label: str = "",
    title: str = "",
    ax: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw values with their intervals, one per row: a ranking of variables or of methods.

    Parameters
    ----------
    names : sequence of str
        The names of the rows, from top to bottom.
    value, low, high : array-like
        The values and the ends of their intervals, in [0, 1].
    noise : array-like, optional
        How large each value could be by chance alone, drawn as a grey bar.
    plug_in : array-like, optional
        A second, raw value for each row, drawn as a cross.
    filled : array-like of bool, optional
        Whether each dot is filled (a finding) or hollow; all are filled by default.
    texts : sequence of str, optional
        A short text at the end of each row.
    lines : sequence of (float, str)
        Vertical reference lines and their names.
    label, title : str
        The label of the axis, and the title.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    backend : {"matplotlib", "plotly"}
        The library that draws.

    Returns
    -------
    matplotlib Axes, or plotly Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import varcal as vc
    >>> ax = vc.plotting.dots(["raw", "beta"], [0.21, 0.04], [0.2, 0.03], [0.22, 0.05])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['raw', 'beta']
    """
    from varcal.plotting._rankings import Dots  # noqa: PLC0415

    made = Dots.of(
        names,
        value,
        low,
        high,
        noise=noise,
        plug_in=plug_in,
        filled=filled,
        texts=texts,
        lines=lines,
        label=label,
        title=title,
    )
    return draw("dots", made, ax=ax, backend=backend)
