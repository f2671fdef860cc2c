"""Atomic writes: a file is written completely or not at all."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from varcal.exceptions import InputError

#: Seconds after which a temporary file that nobody writes to is removed, whoever made it.
MAX_AGE = 86_400.0


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file to write to, which replaces the target at the end of the block.

    It lies beside the target. If the block ends early, even by an interrupt, it is removed and the
    target stays as it was. The next write to the same target removes one that a killed process has
    left. A file that is replaced keeps its owner and permissions, and a link to it stays a link.
    If two processes write the same target, the last one wins.

    Parameters
    ----------
    path : path
        The target.

    Yields
    ------
    Path
        The temporary file, which exists and is empty.

    Raises
    ------
    InputError
        If the target is not a regular file, is protected, or cannot be written.

    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> with whole_file(target) as draft:
    ...     _ = draft.write_bytes(b"complete")
    >>> [path.name for path in target.parent.iterdir()]
    ['note.txt']
    """
    try:
        target, replaced = target_of(path)
        _remove_abandoned(target)
        draft = target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            # At no time may more people read it than the file that it replaces.
            mode = 0o666 if replaced is None else replaced.st_mode & 0o666 | 0o600
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            yield draft
            _sync(draft, os.O_RDWR, replaced)
            os.replace(draft, target)
        finally:
            with suppress(OSError):
                draft.unlink()
        with suppress(OSError):  # some systems cannot sync folders
            _sync(target.parent, os.O_RDONLY)
    except OSError as error:
        hint = "choose a folder that exists, is writable and has free space"
        raise cannot_write(path, error.strerror or str(error), hint) from None


def cannot_write(path: object, problem: str, hint: str) -> InputError:
    """Return the error that a file cannot be written."""
    return InputError(f"cannot write {str(path)!r}: {problem}", hint, argument="path")


def target_of(path: str | PathLike[str]) -> tuple[Path, os.stat_result | None]:
    """Return the file that a path leads to, after all links, and its status if it exists."""
    try:
        target = Path(os.path.realpath(path))
        found = target.lstat()
    except FileNotFoundError:
        target.parent.stat()  # that a folder does not exist is an error
        return target, None
    except (TypeError, ValueError):
        problem = f"path is {path!r}, which cannot be the name of a file"
        raise InputError(problem, "give the name of a file", argument="path") from None
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise cannot_write(path, f"it is {what}", "give the name of a file")
    if not os.access(target, os.W_OK):
        hint = "choose another name, or change the permissions of the file"
        raise cannot_write(path, "it is protected against writing", hint)
    return target, found


def _prefix(target: Path) -> str:
    """Return how temporary files for a target begin; those of other computers begin differently.

    The name of the target is hashed because it may be as long as names can be.
    """
    made_for = hashlib.sha256(os.fsencode(f"{platform.node()}/{target.name}"))
    return f".varcal-{made_for.hexdigest()[:16]}-"


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files for a target whose processes have ended."""
    pattern = re.compile(_prefix(target) + r"(\d{1,9})-[0-9a-f]{8}\.tmp", re.ASCII)
    with suppress(OSError):  # a folder that cannot be listed; writing says what is wrong
        for found in filter(None, map(pattern.fullmatch, os.listdir(target.parent))):
            left = target.with_name(found[0])
            if time.time() - left.lstat().st_mtime > MAX_AGE or not _runs(int(found[1])):
                left.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    if sys.platform == "win32":  # where asking would send it Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # it may be another user's
    return True


def _sync(path: Path, flags: int, like: os.stat_result | None = None) -> None:
    """Let a file, or the names in a folder, reach the disk, with owner and mode of another file."""
    handle = os.open(path, flags)
    try:
        if like is not None and sys.platform != "win32":
            with suppress(OSError):  # only the superuser can give files to others
                os.fchown(handle, like.st_uid, like.st_gid)
            os.fchmod(handle, stat.S_IMODE(like.st_mode))
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: str | PathLike[str], text: str) -> None:
    """Write a text file completely or not at all.

    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_whole(target, "complete")
    >>> target.read_text(encoding="utf-8"), len(list(target.parent.iterdir()))
    ('complete', 1)
    """
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def same_file(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    """Tell whether two paths lead to the same file, also by links; a file to come is none.

    >>> same_file("no/such.csv", "no/such.csv")
    False
    """
    try:
        return os.path.samefile(one, other)
    except (OSError, TypeError, ValueError):
        return False


def refuse_input(out: str | PathLike[str], what: str, *inputs: str | PathLike[str]) -> None:
    """Refuse an output that would replace one of the files that are read.

    Parameters
    ----------
    out : path
        The file to write.
    what : str
        What the message calls the inputs, such as "the file of the calibrator".
    *inputs : path
        The files that are read.
    """
    if any(same_file(out, one) for one in inputs):
        raise InputError(f"{str(out)!r} is {what}", "write to another file", argument="out")
