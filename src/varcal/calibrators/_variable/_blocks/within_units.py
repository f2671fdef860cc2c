"""Variables that hardly vary within groups, blocks or periods: where luck looks like an effect."""

from __future__ import annotations

import numpy as np

from varcal._arrays import AnyArray, Ints

__all__ = ["constant_within"]

#: The share of the variance between units from which a variable tells units apart. It is
#: about 0 for a variable that has nothing to do with the units, and 1 for one that is constant
#: within each.
BETWEEN_UNITS = 0.8


def constant_within(columns: list[AnyArray], units: Ints) -> set[int]:
    """Return the columns that hardly vary within units.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(50), 10)
    >>> constant_within([day // 5, rng.normal(size=500)], day)
    {0}
    """
    return {k for k, column in enumerate(columns) if _between(column, units) >= BETWEEN_UNITS}


def _between(column: AnyArray, units: Ints) -> float:
    """Return the share of variance between units, corrected for the number of units."""
    # Missing values are equal to one another and come last.
    rank = np.unique(column, return_inverse=True)[1].astype(np.float64)
    _, place = np.unique(units, return_inverse=True)
    count = np.bincount(place)
    mean = np.bincount(place, rank) / count
    left, total = len(rank) - len(count), float(rank.var()) * len(rank)
    if left <= 0 or total <= 0:
        return 0.0
    within = float(((rank - mean[place]) ** 2).sum()) / left
    return 1.0 - within / (total / (len(rank) - 1))
