"""Choosing between kernels of numpy and those of numba, which the `fast` extra installs."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import Literal

from varcal._options import check_choice
from varcal.exceptions import MissingDependencyError

Engine = Literal["numpy", "fast"]

#: From this many rows on numba is used: loading its kernels takes about as long as summing this
#: many rows with numpy (`benchmarks/bench_scale.py`).
LEAST_ROWS = 1_000_000
#: The environment variable that selects "numpy" or "fast" whatever the number of rows.
VARIABLE = "VARCAL_ENGINE"


def engine_for(n: int, least: int = LEAST_ROWS) -> Engine:
    """Choose the kernel for n rows, or n units of another kind of work.

    Returns "fast" if there are at least `least` of them and numba is installed, unless the
    environment variable ``VARCAL_ENGINE`` selects one.

    Examples
    --------
    >>> engine_for(1000)
    'numpy'
    """
    choice = os.environ.get(VARIABLE) or "auto"
    check_choice(VARIABLE, choice, ("auto", "numpy", "fast"))
    if choice == "fast" and not _has_numba():
        raise MissingDependencyError.of("numba", f"{VARIABLE}=fast")
    worth_loading = choice == "auto" and n >= least and _has_numba()
    return "fast" if choice == "fast" or worth_loading else "numpy"


@cache
def _has_numba() -> bool:
    return find_spec("numba") is not None
