"""Choosing the kernel that sums rows into bins: numpy, or numba with the `fast` extra."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from threading import Thread
from typing import Literal

from varcal._options import check_choice
from varcal.exceptions import MissingDependencyError

Engine = Literal["numpy", "fast"]

#: From this many rows on numba is used: loading its kernels takes about as long as summing this
#: many rows with numpy (`benchmarks/bench_scale.py`).
LEAST_ROWS = 1_000_000
#: The environment variable that selects "numpy" or "fast" whatever the number of rows.
VARIABLE = "VARCAL_ENGINE"


def engine_for(n: int) -> Engine:
    """Choose the kernel for n rows.

    Returns "fast" if there are at least `LEAST_ROWS` rows and numba is installed, unless the
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
    worth_loading = choice == "auto" and n >= LEAST_ROWS and _has_numba()
    return "fast" if choice == "fast" or worth_loading else "numpy"


def load_early(n: int, *, moments: bool, weighted: bool) -> None:
    """Load the compiled kernel for n rows in a thread, if it will be used.

    Loading takes half a second, which passes while lazy rows are read for the first time.
    """
    if engine_for(n) == "fast":
        Thread(target=_load, args=(moments, weighted)).start()


def _load(moments: bool, weighted: bool) -> None:
    # An error is raised again, to the caller, where the kernel is used.
    with suppress(Exception):
        from varcal._engines import kernel_numba  # noqa: PLC0415

        kernel_numba.load(moments=moments, weighted=weighted)


@cache
def _has_numba() -> bool:
    return find_spec("numba") is not None
