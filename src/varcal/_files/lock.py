"""Locks of files: two processes that change one file take turns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from varcal.exceptions import InputError


@contextmanager
def locked(path: str | PathLike[str]) -> Iterator[None]:
    """Wait until no other process is in such a block for the same file.

    The operating system holds the lock, on an empty file of the same name that ends in `.lock`.
    It is released when the process ends, even if it is killed.

    Parameters
    ----------
    path : path
        The file; it need not exist.

    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "state.json"
    >>> with locked(target):
    ...     sorted(one.name for one in target.parent.iterdir())
    ['.state.json.lock']
    """
    target = Path(os.path.realpath(path))
    try:
        handle = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"cannot write {str(path)!r}: {error.strerror or error}",
            "choose a folder that exists and is writable",
            argument="path",
        ) from None
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)  # which also releases the lock


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415  exists on Windows only

        while True:  # it gives up after ten seconds
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
            except OSError:
                continue
            return
    else:
        import fcntl  # noqa: PLC0415  does not exist on Windows

        fcntl.flock(handle, fcntl.LOCK_EX)
