"""One BLAS thread while varcal computes; the limits are restored afterwards.

numpy and scipy come with a BLAS library each, and each library has its own pool of threads. The
threads of a pool keep their processors busy for a while after a product, in which the other
library's threads have to wait. Fits alternate between the two, with matrices that are too small
to gain from threads: on two cores they took a hundred times as long as with one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within a ``with`` block, or as a decorator within a function.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     product = np.eye(2) @ np.eye(2)
    """
    with _blas().limit(limits=1):
        yield


@cache  # finding the libraries takes some ten milliseconds
def _blas() -> Any:
    import scipy.linalg  # noqa: PLC0415, F401  loads the second of the two libraries
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415

    return ThreadpoolController().select(user_api="blas")
