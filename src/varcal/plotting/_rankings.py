"""Rankings: rows of a dot-and-whisker picture, ready for any backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal._audit_result import Audit
from varcal._estimates import Estimate
from varcal.exceptions import InputError
from varcal.plotting._words import estimate_title, points

Floats = NDArray[np.float64]

QUANTITIES = ("beyond", "vece")


@dataclass(frozen=True, eq=False)
class Dots:
    """Values with intervals, one a row, from top to bottom.

    Attributes
    ----------
    names : tuple of str
        What each row is.
    value, low, high : ndarray
        The values and their intervals.
    noise : ndarray or None
        Up to where chance alone would carry each.
    plug_in : ndarray or None
        A second, raw value of each, drawn hollow.
    filled : ndarray of bool
        Whether a dot is filled (a finding) or hollow (none).
    texts : tuple of str
        A word beside each row, or none at all.
    lines : tuple of (float, str)
        Upright lines and their names.
    label, title : str
        Name of the axis, and the title.
    more : int
        Rows left out at the end.
    """

    names: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats
    noise: Floats | None
    plug_in: Floats | None
    filled: NDArray[np.bool_]
    texts: tuple[str, ...]
    lines: tuple[tuple[float, str], ...]
    label: str
    title: str
    more: int = 0

    @classmethod
    def of(
        cls,
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
        more: int = 0,
    ) -> Dots:
        """Check lengths and bring everything into arrays."""
        many = len(names)
        arrays = {"value": value, "low": low, "high": high, "noise": noise, "plug_in": plug_in}
        found = {
            name: None if one is None else np.asarray(one, np.float64)
            for name, one in arrays.items()
        }
        lengths = {name: len(one) for name, one in found.items() if one is not None}
        lengths |= {"texts": len(texts)} if texts else {}
        for name, length in lengths.items():
            if length != many:
                raise InputError(f"{name} has {length} values for {many} names", "give one a name")
        if not many:
            raise InputError("names is empty", "there is nothing to draw")
        assert found["value"] is not None and found["low"] is not None and found["high"] is not None
        full = np.ones(many, bool) if filled is None else np.asarray(filled, bool)
        return cls(
            names=tuple(map(str, names)),
            value=found["value"],
            low=found["low"],
            high=found["high"],
            noise=found["noise"],
            plug_in=found["plug_in"],
            filled=full,
            texts=tuple(texts),
            lines=tuple(lines),
            label=label,
            title=title,
            more=more,
        )


def audit_dots(audit: Audit, quantity: str, top: int) -> Dots:
    """Return the ranking of an audit."""
    if quantity not in QUANTITIES:
        raise InputError.choice("quantity", quantity, QUANTITIES)
    rows = audit.rows[: max(int(top), 1)]
    found = [getattr(row, quantity) for row in rows]
    side = "over" if audit.gap > 0 else "under"
    if quantity == "beyond":
        lines = [(audit.threshold, f"threshold {points(audit.threshold)}")]
        label = f"beyond the overall gap, {100 * audit.level:g}% interval"
        title = f"Overall {side}confident by {points(abs(audit.gap))} points; what varies beyond it"
    else:
        lines = [(abs(audit.gap), f"overall gap {points(abs(audit.gap))}")]
        label = f"VECE, {100 * audit.level:g}% interval"
        title = f"Overall {side}confident by {points(abs(audit.gap))} points; VECE by variable"
    return Dots.of(
        [row.variable for row in rows],
        [one.debiased for one in found],
        [one.low for one in found],
        [one.high for one in found],
        noise=[one.noise_high for one in found],
        filled=[row.verdict.startswith("varies") for row in rows],
        texts=[row.verdict for row in rows],
        lines=lines,
        label=label,
        title=title,
        more=len(audit.rows) - len(rows),
    )


def estimate_dots(estimate: Estimate) -> Dots:
    """Return the one row of an estimate."""
    return Dots.of(
        [estimate.metric],
        [estimate.debiased],
        [estimate.low],
        [estimate.high],
        noise=[estimate.noise_high],
        plug_in=[estimate.value],
        filled=[estimate.p_value <= 1 - estimate.level],
        label=f"{estimate.metric}, {100 * estimate.level:g}% interval",
        title=estimate_title(estimate),
    )
