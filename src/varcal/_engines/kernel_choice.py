"""Which code sums rows into bins: numpy, or the compiled kernels of the `fast` extra."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import Literal

from varcal._options import check_choice
from varcal.exceptions import MissingDependencyError

Engine = Literal["numpy", "fast"]

#: Loading the kernels takes about as long as summing this many rows in numpy.
LEAST_ROWS = 1_000_000
#: Set it to "numpy" or "fast" to have one of them for any number of rows.
VARIABLE = "VARCAL_ENGINE"


def engine_for(n: int) -> Engine:
    """Choose for n rows: "fast" if it pays and numba is there, unless the environment says which.

    >>> engine_for(1000)
    'numpy'
    """
    asked = os.environ.get(VARIABLE) or "auto"
    check_choice(VARIABLE, asked, ("auto", "numpy", "fast"))
    if asked == "fast" and not _has_numba():
        raise MissingDependencyError.of("numba", f"{VARIABLE}=fast")
    return (
        "fast"
        if asked == "fast" or (asked == "auto" and n >= LEAST_ROWS and _has_numba())
        else "numpy"
    )


@cache
def _has_numba() -> bool:
    return find_spec("numba") is not None
