"""Types that are certainly not frames or series of a library, so that no library is asked."""

from __future__ import annotations

import numpy as np

#: Asking the frame libraries about an object takes longer than calibrating one row. Subclasses
#: are not plain: a frame library may define one.
PLAIN_TYPES = frozenset({np.ndarray, list, tuple, dict, str, int, float, type(None)})


def is_plain(value: object) -> bool:
    """Tell whether a value is an array, a list, a dict or a scalar of Python itself.

    >>> is_plain([0.2, 0.9]), is_plain(np.ones(2)), is_plain(np.ma.ones(2))
    (True, True, False)
    """
    return type(value) in PLAIN_TYPES
