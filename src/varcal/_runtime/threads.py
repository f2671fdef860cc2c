"""One BLAS thread while varcal computes; the limits are restored afterwards.

numpy and scipy come with a BLAS library each, and each library has its own pool of threads. The
threads of a pool keep their processors busy for a while after a product, in which the other
library's threads have to wait. Fits alternate between the two, with matrices that are too small
to gain from threads: on two cores they took a hundred times as long as with one thread.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ContextDecorator
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

#: Modules whose import loads the BLAS library of scipy. numpy's is loaded already.
_LOADERS = ("scipy.special._ufuncs", "scipy.linalg._fblas")


class _OwnBlocks(threading.local):
    """The blocks that the current thread is in, and the limits that it lowered for itself."""

    def __init__(self) -> None:
        self.depth = 0
        self.lowered: dict[str, tuple[Any, int]] = {}


class OneBlasThread(ContextDecorator):
    """Limit BLAS to one thread within a ``with`` block or a decorated function.

    Blocks may be nested and may overlap in several Python threads. Most BLAS libraries have one
    limit for the whole process: the first block lowers it, and it is restored when the last one
    ends. With OpenMP each Python thread has its own limit, which its own outermost block lowers
    and restores. A limit that is 1 already is not touched.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread:
    ...     product = np.eye(2) @ np.eye(2)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = _OwnBlocks()
        self._depth = 0
        self._lowered: dict[str, tuple[Any, int]] = {}
        self._seen = -1
        self._shared: list[Any] = []
        self._separate: list[Any] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._after_fork,
            )

    def __enter__(self) -> None:
        own = self._own
        with self._lock:
            new = self._find_libraries()
            if new or not self._depth:
                _lower(self._shared, self._lowered)
            own.depth += 1
            self._depth += 1
        if self._separate and (new or own.depth == 1):
            _lower(self._separate, own.lowered)

    def __exit__(self, *_: object) -> None:
        own = self._own
        with self._lock:
            own.depth -= 1
            self._depth -= 1
            if not self._depth:
                _restore(self._lowered)
        if not own.depth:
            _restore(own.lowered)

    def _find_libraries(self) -> bool:
        """Look for BLAS libraries if some may have been loaded since the last look."""
        if self._seen == len(_LOADERS):
            return False
        seen = sum(name in sys.modules for name in _LOADERS)
        if seen == self._seen:
            return False
        found = ThreadpoolController().select(user_api="blas").lib_controllers
        self._shared = [one for one in found if _has_one_limit(one)]
        self._separate = [one for one in found if not _has_one_limit(one)]
        self._seen = seen
        return True

    def _after_fork(self) -> None:
        """Forget the blocks of other threads: in the child process only this thread goes on."""
        self._lock.release()
        self._depth = self._own.depth
        if not self._depth:
            _restore(self._lowered)


def _has_one_limit(library: Any) -> bool:
    """Return whether the limit of a library holds for all Python threads."""
    layer = getattr(library, "threading_layer", None)
    return library.internal_api in ("openblas", "mkl") and layer != "openmp"


def _lower(libraries: list[Any], lowered: dict[str, tuple[Any, int]]) -> None:
    for library in libraries:
        limit = library.get_num_threads()
        if limit is not None and limit > 1 and library.filepath not in lowered:
            lowered[library.filepath] = library, limit
            _set_limit(library, 1)


def _restore(lowered: dict[str, tuple[Any, int]]) -> None:
    while lowered:
        _, (library, limit) = lowered.popitem()
        _set_limit(library, limit)


def _set_limit(library: Any, limit: int) -> None:
    # set_num_threads of threadpoolctl 3.8 does nothing in a thread other than the one that called
    # it first, so that a block that ends in another thread could not restore the limit.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(limit)


#: The only instance: ``with one_blas_thread:`` or ``@one_blas_thread``.
one_blas_thread = OneBlasThread()
