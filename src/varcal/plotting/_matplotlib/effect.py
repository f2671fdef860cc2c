"""The effect of a variable at several scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from varcal.plotting._matplotlib.axes import PLAIN, own_axes, positions, text_size, value_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from varcal.calibrators._effects import Effect

_STYLES = ("--", "-", ":")
#: Levels that are drawn; beyond these names could not be read.
_MOST_LEVELS = 20
#: Letters of all levels' names together beyond which the names stand upright.
_LETTERS = 60


def draw(curves: tuple[Effect, ...], ax: Any = None, *, scale: str = "logit") -> Any:
    """Draw curves with bands, or dots with whiskers for the levels with the largest effects."""
    ax = own_axes(ax, 6.0, 3.6)
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    name, kind = curves[0].name, curves[0].kind
    if kind == "levels":
        name = _levels(ax, curves)
    else:
        _lines(ax, curves, kind)
    ax.set_xlabel(name, **PLAIN)
    ax.set_ylabel(f"change of the {scale}")
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(curves))
    return ax


def _score(score: float) -> str:
    """Name a score; two decimals would make all small ones alike.

    >>> _score(0.5), _score(3.21e-17), _score(0.9999)
    ('score 0.5', 'score 3.2e-17', 'score 0.9999')
    """
    return f"score {score:.2g}" if score < 0.99 else f"score {score:.4g}"


def _levels(ax: Axes, curves: tuple[Effect, ...]) -> str:
    """Draw the levels with the largest effects in their own order; return the axis's name."""
    names = curves[0].at
    largest = np.max([np.abs(curve.value) for curve in curves], axis=0)
    shown = np.sort(np.argsort(-largest, kind="stable")[:_MOST_LEVELS])
    for k, curve in enumerate(curves):
        value, low, high = curve.value[shown], curve.low[shown], curve.high[shown]
        at = np.arange(len(shown)) + 0.12 * (k - (len(curves) - 1) / 2)
        label = _score(curve.score)
        ax.errorbar(at, value, yerr=[value - low, high - value], fmt="o", markersize=4, label=label)
    texts = [str(names[k]) for k in shown]
    upright = 90.0 if sum(map(len, texts)) > _LETTERS else 0.0
    ax.set_xticks(range(len(shown)), texts, rotation=upright)
    for tick in ax.get_xticklabels():
        tick.set_parse_math(False)
    if len(shown) == len(names):
        return curves[0].name
    return f"{curves[0].name}: {len(shown)} of {len(names)} levels, largest effects"


def _lines(ax: Axes, curves: tuple[Effect, ...], kind: str) -> None:
    """Draw curves along numbers or dates."""
    for k, curve in enumerate(curves):
        values: Any = curve.at
        if kind == "datetime":
            values = np.array(curve.at, "M8[s]").astype(np.int64)
        x = positions(values, kind)
        label = _score(curve.score)
        (line,) = ax.plot(x, curve.value, linestyle=_STYLES[k % len(_STYLES)], label=label)
        ax.fill_between(x, curve.low, curve.high, color=line.get_color(), alpha=0.15)
    if kind == "datetime":
        value_axis(ax, kind, float(x[0]), float(x[-1]), text_size(ax))
