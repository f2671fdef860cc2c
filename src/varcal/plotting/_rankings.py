"""Rankings: the rows of a plot of dots and whiskers, for any backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Bools, Floats
from varcal._audit.audit_result import Audit
from varcal._audit.first_screen import first_screen
from varcal._audit.verdicts import FINDINGS
from varcal._measures.estimate import Estimate
from varcal._options import check_choice
from varcal._text.numbers import level_text, limit_text
from varcal.exceptions import InputError
from varcal.plotting._words import estimate_title

QUANTITIES = ("beyond", "vece")
#: The height of a heading with the space above it, in rows.
_HEAD = 1.4


@dataclass(frozen=True, eq=False)
class Dots:
    """Values with intervals, one per row, from top to bottom.

    Attributes
    ----------
    names : tuple of str
        What each row is.
    value, low, high : ndarray
        The values and their intervals.
    noise : ndarray or None
        How large each value could be by chance alone.
    plug_in : ndarray or None
        A second, raw value for each row, drawn as a cross.
    filled : ndarray of bool
        Whether a dot is filled (a finding) or hollow (none).
    texts : tuple of str
        A short text beside each row, or none at all.
    lines : tuple of (float, str)
        Vertical lines and their names.
    label, title : str
        Name of the axis, and the title.
    more : int
        The number of rows left out at the end, or of blocks if rows have headings.
    headings : tuple of str
        The heading of the block that each row is in, or none at all.
    shares : bool
        Whether values are shares, shown in percent, or errors, shown in points.
    zero : bool
        Whether the axis starts at zero.
    """

    names: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats
    noise: Floats | None
    plug_in: Floats | None
    filled: Bools
    texts: tuple[str, ...]
    lines: tuple[tuple[float, str], ...]
    label: str
    title: str
    more: int = 0
    headings: tuple[str, ...] = ()
    shares: bool = True
    zero: bool = True

    @property
    def errors(self) -> bool:
        """Whether values are errors, which are shown in points."""
        return self.shares and self.zero

    @property
    def axis(self) -> str:
        """The name of the axis, with the unit of errors."""
        return f"{self.label}, points" if self.errors else self.label

    @property
    def blocks(self) -> tuple[tuple[int, str], ...]:
        """The first row of each block and its heading."""
        given = self.headings
        return tuple((k, name) for k, name in enumerate(given) if k == 0 or name != given[k - 1])

    @property
    def places(self) -> Floats:
        """How far down each row is; above each block there is room for its heading."""
        starts = [k for k, _ in self.blocks]
        return np.array(
            [k + sum(_HEAD for start in starts if start <= k) for k in range(len(self.names))],
            dtype=np.float64,
        ) - (_HEAD - 1.0 if starts else 0.0)

    @property
    def ticks(self) -> tuple[Floats, tuple[str, ...], tuple[bool, ...]]:
        """Positions of the texts beside the rows, the texts, and which of them are headings."""
        places = self.places
        found = [
            (float(place), name, False) for place, name in zip(places, self.names, strict=True)
        ]
        found += [(float(places[k]) - 1.0, name, True) for k, name in self.blocks]
        found.sort()
        if self.more:
            found.append((float(places[-1]) + 1.0, f"… {self.more} more", False))
        at, names, heads = zip(*found, strict=True)
        return np.array(at), names, heads

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the axis of values, with room beside them."""
        parts = [
            self.value,
            self.low,
            self.high,
            *(p for p in (self.noise, self.plug_in) if p is not None),
        ]
        parts.append(np.array([value for value, _ in self.lines]))
        ends = np.concatenate(parts)
        ends = ends[np.isfinite(ends)]
        if not ends.size:
            return 0.0, 1.0
        low, high = float(ends.min()), float(ends.max())
        if self.zero:
            return min(0.0, 1.06 * low), 1.06 * max(high, 0.005)
        room = 0.06 * max(high - low, 1e-3)
        return low - room, high + room

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
        headings: Sequence[str] = (),
        shares: bool = True,
        zero: bool = True,
    ) -> Dots:
        """Check lengths and convert everything to arrays."""
        many = len(names)
        arrays = {"value": value, "low": low, "high": high, "noise": noise, "plug_in": plug_in}
        found = {
            name: None if one is None else np.asarray(one, np.float64)
            for name, one in arrays.items()
        }
        lengths = {name: len(one) for name, one in found.items() if one is not None}
        lengths |= {"texts": len(texts)} if texts else {}
        lengths |= {"headings": len(headings)} if headings else {}
        for name, length in lengths.items():
            if length != many:
                raise InputError(
                    f"{name} has {length} values for {many} names",
                    "give one value per name",
                    name,
                )
        if not many:
            raise InputError("names is empty", "there is nothing to draw", argument="names")
        assert found["value"] is not None and found["low"] is not None and found["high"] is not None
        full = np.ones(many, bool) if filled is None else np.asarray(filled, bool)
        if full.shape != (many,):
            raise InputError(
                f"filled has {full.size} values for {many} names",
                "give one value per name",
                argument="filled",
            )
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
            headings=tuple(headings),
            shares=shares,
            zero=zero,
        )


def round_places(low: float, high: float) -> list[float]:
    """Return about five round numbers within a range.

    >>> round_places(0.0, 0.19)
    [0.0, 0.05, 0.1, 0.15]
    """
    rough = (high - low) / 5
    scale = 10.0 ** np.floor(np.log10(rough))
    step = next(k * scale for k in (1, 2, 5, 10) if k * scale >= 0.999 * rough)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def audit_dots(audit: Audit, quantity: str, top: int) -> Dots:
    """Return the ranking of an audit."""
    check_choice("quantity", quantity, QUANTITIES)
    rows = audit.rows[: max(int(top), 1)]
    found = [getattr(row, quantity) for row in rows]
    title = first_screen(audit, repair=False).headline
    level = level_text(audit.level)
    if quantity == "beyond":
        ends = [(row.low, row.high) for row in rows]
        lines = [(audit.threshold, f"limit {limit_text(audit.threshold)}")]
        label = f"hidden error, {level} intervals for all at once"
    else:
        ends = [(one.low, one.high) for one in found]
        lines = []
        label = f"VECE, {level} interval"
    return Dots.of(
        [row.variable for row in rows],
        [one.debiased for one in found],
        [low for low, _ in ends],
        [high for _, high in ends],
        noise=[one.noise_high for one in found],
        filled=[row.verdict in FINDINGS for row in rows],
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
        label=f"{estimate.metric}, {level_text(estimate.level)} interval",
        title=estimate_title(estimate),
    )
