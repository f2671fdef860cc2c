"""Plots of results with matplotlib or plotly. No statistic is computed here.

Most results have a method for it (``curve.plot()``, ``audit.plot()``, …); the functions here draw
several results at once, or values of your own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from varcal._input.variables import Variable
from varcal._options import check_choice, check_finite, check_text, checked, or_none, whole
from varcal.exceptions import InputError, import_library, shown

if TYPE_CHECKING:
    from varcal._measures.curve import Curve

__all__ = ["before_after", "dots"]

BACKENDS = ("matplotlib", "plotly")


def _check_curves(argument: str, curves: object) -> object:
    """Refuse anything but a mapping of names to curves."""
    from varcal._measures.curve import Curve  # noqa: PLC0415  loads when first used

    if isinstance(curves, Mapping) and all(isinstance(one, Curve) for one in curves.values()):
        return curves
    raise InputError(
        f"{argument} must be a dict of curves by name; got {shown(curves)}",
        "give the results of curve()",
        argument=argument,
    )


def _check_texts(argument: str, texts: object) -> tuple[str, ...]:
    """Refuse anything but strings."""
    listed = isinstance(texts, list | tuple) or (isinstance(texts, np.ndarray) and texts.ndim == 1)
    if not listed:
        raise InputError(
            f"{argument} must be a list of strings; got {shown(texts)}",
            "give one string per row",
            argument=argument,
        )
    return tuple(check_text(argument, text) for text in cast("list[object]", texts))


def _check_values(argument: str, values: object) -> object:
    """Refuse anything but a column of numbers or of True and False."""
    column = Variable.of(values, argument, argument)
    if column.kind == "numeric":
        return column.values.astype(np.float64)
    if column.kind == "levels" and column.levels == (False, True) and (column.values >= 0).all():
        return column.values.astype(bool)
    raise InputError(
        f"{argument} must be numbers; got {shown(values)}", "give one per row", argument=argument
    )


def _check_lines(argument: str, lines: object) -> tuple[tuple[float, str], ...]:
    """Refuse anything but pairs of a number and a name."""
    known = isinstance(lines, list | tuple)
    pairs: list[Any] = list(lines) if known else [None]  # type: ignore[call-overload]
    for pair in pairs:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                f"{argument} must be pairs of a number and a name; got {shown(lines)}",
                'for example [(0.02, "threshold")]',
                argument=argument,
            )
    return tuple((check_finite(argument, at), check_text(argument, text)) for at, text in pairs)


def _check_axes(argument: str, ax: object) -> object:
    """Refuse anything but the axes of matplotlib."""
    if hasattr(ax, "get_figure") and hasattr(ax, "transAxes"):
        return ax
    raise InputError(
        f"{argument} must be axes of matplotlib; got {shown(ax)}",
        "for example ax=plt.subplots()[1]",
        argument=argument,
    )


def draw(kind: str, result: Any, *, ax: Any = None, backend: str = "matplotlib", **how: Any) -> Any:
    """Draw a result with one of the backends; every `plot` method calls this."""
    check_choice("backend", backend, BACKENDS)
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
    if ax is not None:
        _check_axes("ax", ax)
    return import_module(f"varcal.plotting._matplotlib.{kind}").draw(result, ax, **how)


@checked(columns=whole(1, 1_000), curves=_check_curves)
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
        The largest number of panels in a row; plotly draws all panels in one row.
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


@checked(
    names=_check_texts,
    value=_check_values,
    low=_check_values,
    high=_check_values,
    noise=or_none(_check_values),
    plug_in=or_none(_check_values),
    filled=or_none(_check_values),
    texts=_check_texts,
    lines=_check_lines,
    label=check_text,
)
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
