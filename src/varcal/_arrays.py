"""Names of array types, and the two ways to divide where a divisor may be 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: An array of any type, such as one column of a table.
AnyArray = NDArray[Any]
#: Numbers, in double precision unless said otherwise.
Floats = NDArray[np.float64]
#: Numbers in single precision.
Singles = NDArray[np.float32]
#: Indices, codes and counts.
Ints = NDArray[np.intp]
#: Masks.
Bools = NDArray[np.bool_]


def ratio_or_nan(top: Floats, bottom: Floats) -> Floats:
    """Divide arrays of equal shape; the ratio is NaN where the divisor is not positive.

    Use it for means of bins, which an empty bin does not have.

    >>> ratio_or_nan(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    array([0.25,  nan])
    """
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)


def ratio_or_zero(top: Floats, bottom: Floats) -> Floats:
    """Divide arrays that broadcast; the ratio is 0 where the divisor is 0.

    Use it for terms of a sum, to which an empty bin adds nothing.

    >>> ratio_or_zero(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    """
    return np.divide(top, bottom, out=np.zeros(np.broadcast(top, bottom).shape), where=bottom != 0)
