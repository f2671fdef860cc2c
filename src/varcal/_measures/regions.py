"""Regions of a variable where the gap surely differs from a reference, in numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._edge_texts import range_text, show_duration, show_instant
from varcal._inference.bands import Bands
from varcal._sums.curve_cells import Cells
from varcal._text import claim_of, count, range_words, short_number


@dataclass(frozen=True)
class Region:
    """A range of the variable where the simultaneous band of the gap excludes a reference.

    Attributes
    ----------
    low, high : float
        Its ends (positions of levels for a categorical variable).
    label : str
        The range as text.
    direction : {"over", "under"}
        Above or below the reference; with reference 0, the sign of the gap.
    gap_low, gap_high : float
        The smallest and the largest gap in the region.
    share : float
        The region's share of the weight.
    n : int
        The number of rows in the region.
    """

    low: float
    high: float
    label: str
    direction: str
    gap_low: float
    gap_high: float
    share: float
    n: int


def regions_of(
    bands: Bands,
    cells: Cells,
    kind: str,
    labels: tuple[str, ...],
    reference: float,
    zone: str = "",
) -> tuple[Region, ...]:
    """Return the regions where the simultaneous band excludes a reference."""
    sign = np.where(bands.low > reference, 1, np.where(bands.high < reference, -1, 0))
    breaks = np.ones(len(sign), bool) if kind == "levels" else np.diff(sign, prepend=0) != 0
    breaks[0] = True
    starts = np.flatnonzero(breaks)
    found = []
    for first, end in zip(starts, [*starts[1:], len(sign)], strict=True):
        if not sign[first]:
            continue
        inside = slice(first, end)
        gaps = bands.gap[inside]
        low, high = float(bands.x[first]), float(bands.x[end - 1])
        found.append(
            Region(
                low=low,
                high=high,
                label=_range_label(low, high, kind, labels, zone),
                direction="over" if sign[first] > 0 else "under",
                gap_low=float(gaps.min()),
                gap_high=float(gaps.max()),
                share=float(cells.weight[inside].sum() / cells.weight.sum()),
                n=int(cells.n[inside].sum()),
            )
        )
    return tuple(found)


def describe_region(region: Region, event: str) -> str:
    """Describe in words how large the gap is, and where.

    >>> region = Region(60, 72, "60 to 72", "over", 0.061, 0.094, 0.1, 1204)
    >>> describe_region(region, "correct")
    'too sure by 6.1 to 9.4 points for 60 to 72 (1,204 rows)'
    >>> describe_region(region, "positive")
    'too high by 6.1 to 9.4 points for 60 to 72 (1,204 rows)'
    """
    size = range_words(region.gap_low, region.gap_high, claim_of(event))
    return f"{size} for {region.label} ({count(region.n, 'row')})"


def _range_label(low: float, high: float, kind: str, labels: tuple[str, ...], zone: str) -> str:
    if kind in ("datetime", "duration"):
        return range_text(
            low, high, datetime=kind == "datetime", duration=kind == "duration", zone=zone
        )
    texts = [value_label(value, kind, labels) for value in (low, high)]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def value_label(value: float, kind: str, labels: tuple[str, ...], zone: str = "") -> str:
    """Return a value of a variable as text."""
    if kind == "levels":
        return labels[int(value)]
    if kind == "datetime":
        return show_instant(value, zone)
    if kind == "duration":
        return show_duration(float(f"{value:.4g}"))
    return short_number(value)
