"""The effect of a variable at several scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from varcal.calibrators._effects import Effect

_STYLES = ("--", "-", ":")


def draw(curves: tuple[Effect, ...], ax: Any = None, *, scale: str = "logit") -> Any:
    """Draw curves with bands, or dots with whiskers for levels."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    for k, curve in enumerate(curves):
        label = f"score {curve.score:.2f}"
        if curve.kind == "levels":
            at = [position + 0.12 * (k - 1) for position in range(len(curve.at))]
            spread = [curve.value - curve.low, curve.high - curve.value]
            ax.errorbar(at, curve.value, yerr=spread, fmt="o", markersize=4, label=label)
        else:
            (line,) = ax.plot(curve.at, curve.value, linestyle=_STYLES[k % 3], label=label)
            ax.fill_between(curve.at, curve.low, curve.high, color=line.get_color(), alpha=0.15)
    if curves[0].kind == "levels":
        ax.set_xticks(range(len(curves[0].at)), [str(at) for at in curves[0].at])
        for tick in ax.get_xticklabels():
            tick.set_parse_math(False)
    ax.set_xlabel(curves[0].name, parse_math=False)
    ax.set_ylabel(f"change of the {scale}")
    ax.legend(frameon=False)
    return ax
