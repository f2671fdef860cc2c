"""EndsSummary: what given cuts and bins of equal width need to know of a numeric array."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._binning.summary import Ends


class EndsSummary:
    """A summary by the ends of an array alone, which are found without ordering its numbers.

    It knows the quantiles of levels 0 and 1, and whether any row lies below or above a value:
    instead of how many such rows there are, it returns 1 if there is at least one.

    Parameters
    ----------
    ends : Ends
        The ends of the array.

    Examples
    --------
    >>> summary = EndsSummary(Ends.of(np.array([0.25, 0.5, np.inf])))
    >>> summary.quantiles(np.array([0.0, 1.0])), summary.below(0.5), summary.below(0.1)
    (array([0.25, 0.5 ]), 1, 0)
    """

    #: Whether quantiles and counts are those of a sample.
    sampled = False

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self.n_missing = ends.n_missing

    def quantiles(self, levels: Floats) -> Floats:
        """Return the smallest finite value for level 0 and the largest for 1, NaN without any."""
        if not self._ends.n_finite:
            return np.full(len(levels), np.nan)
        return np.where(levels > 0, self._ends.high, self._ends.low)

    def count(self, value: float) -> int:
        """Return how many rows hold this infinite value."""
        return {-np.inf: self._ends.n_low, np.inf: self._ends.n_high}[value]

    def below(self, value: float) -> int:
        """Return whether any row holds a smaller value."""
        return int(self._ends.low < value or (self._ends.n_low > 0 and value > -np.inf))

    def above(self, value: float) -> int:
        """Return whether any row holds a larger value."""
        return int(self._ends.high > value or (self._ends.n_high > 0 and value < np.inf))

    def above_each(self, values: Floats) -> Ints:
        """Return whether any row holds a larger value, for each of some finite values."""
        return np.array([self.above(value) for value in values.tolist()], dtype=np.intp)
