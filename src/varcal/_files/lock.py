"""Locks of files: two processes that change one file take turns."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from os import PathLike
from pathlib import Path

from varcal.exceptions import InputError

#: Seconds to wait for another process. An update takes seconds, or minutes if it reads a large
#: file, so a process that holds the lock for ten minutes hangs.
MAX_WAIT = 600.0
#: Seconds between two attempts.
PAUSE = 0.02
#: The longest name of a file on all common systems.
MAX_NAME_BYTES = 255


@contextmanager
def locked(path: str | PathLike[str]) -> Iterator[None]:
    """Wait until no other process is in such a block for the same file.

    The operating system holds the lock, on an empty file of the same name that ends in `.lock`.
    It is released when the process ends, even if it is killed.

    Parameters
    ----------
    path : path
        The file; it need not exist.

    Raises
    ------
    InputError
        If the lock cannot be made, or if another process holds it for ten minutes.

    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "state.json"
    >>> with locked(target):
    ...     sorted(one.name for one in target.parent.iterdir())
    ['.state.json.lock']
    """
    try:
        target = Path(os.path.realpath(path))
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(_lock_file(target), flags, 0o666)
    except OSError as error:
        raise InputError(
            f"cannot write {str(path)!r}: {error.strerror or error}",
            "choose a folder that exists and is writable",
            argument="path",
        ) from None
    except (TypeError, ValueError):
        raise InputError(
            f"path is {path!r}, which cannot be the name of a file",
            "give the name of a file",
            argument="path",
        ) from None
    try:
        _wait(handle, path)
        yield
    finally:
        os.close(handle)  # which also releases the lock


def _lock_file(target: Path) -> Path:
    name = f".{target.name}.lock"
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        name = f".{sha256(os.fsencode(target.name)).hexdigest()}.lock"
    return target.with_name(name)


def _wait(handle: int, path: str | PathLike[str]) -> None:
    """Wait for the lock, but not forever."""
    end = time.monotonic() + MAX_WAIT
    while not _locked_now(handle):
        if time.monotonic() >= end:
            raise InputError(
                f"another process has been writing {str(path)!r} for {MAX_WAIT:g} seconds",
                "try again when it has ended, or end it",
                argument="path",
            )
        time.sleep(PAUSE)


def _locked_now(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415  exists on Windows only

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415  does not exist on Windows

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
