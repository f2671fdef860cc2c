"""Where a monotone function of a probability passes a value, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from varcal._arrays import Bools, Floats


def last_below(function: Callable[[Floats], Floats], values: Floats) -> Floats:
    """Return for each value the last probability on the left side of it.

    The probabilities above it are those where an increasing function is above the value, or a
    decreasing one is not. Numbers between 0 and 1 are in the order of their bits, which are
    halved until one is left.

    Examples
    --------
    >>> last_below(lambda p: 2 * p, np.array([-1.0, 0.5, 3.0]))
    array([-1.  ,  0.25,  1.  ])
    """
    ends = function(np.array([0.0, 1.0]))
    falls = bool(ends[0] > ends[1])

    def beyond(p: Floats) -> Bools:
        above = function(p) > values
        return np.asarray(~above if falls else above)

    low = np.full(len(values), -1, dtype=np.int64)
    high = np.full(len(values), np.float64(1.0).view(np.int64) + 1)
    while (apart := high - low > 1).any():
        middle = np.where(apart, low + (high - low) // 2, 0)
        passed = beyond(middle.view(np.float64))
        low = np.where(apart & ~passed, middle, low)
        high = np.where(apart & passed, middle, high)
    found = np.maximum(low, 0).view(np.float64)
    return np.asarray(np.where(low < 0, -1.0, found))
