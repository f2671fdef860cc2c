"""Atomic writes: a file is written completely or not at all."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from varcal.exceptions import InputError


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
            if replaced is not None and sys.platform != "win32":
                with suppress(OSError):  # only the superuser can give files to others
                    os.chown(draft, replaced.st_uid, replaced.st_gid)
                draft.chmod(stat.S_IMODE(replaced.st_mode))
            _sync(draft, os.O_RDWR)
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)
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
    """Remove temporary files for a target whose processes on this computer have ended."""
    pattern = re.compile(_prefix(target) + r"(\d{1,9})-[0-9a-f]{8}\.tmp", re.ASCII)
    with suppress(OSError):  # a folder that cannot be listed; writing says what is wrong
        for found in filter(None, map(pattern.fullmatch, os.listdir(target.parent))):
            if not _runs(int(found[1])):
                target.with_name(found[0]).unlink(missing_ok=True)


def _runs(process: int) -> bool:
    if sys.platform == "win32":  # where asking would send it Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # it may be another user's
    return True


def _sync(path: Path, flags: int) -> None:
    """Let a file, or the names in a folder, reach the disk."""
    handle = os.open(path, flags)
    try:
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
        # The same bytes on every system.
        draft.write_text(text, encoding="utf-8", newline="\n")


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
    for one in inputs:
        same = False
        with suppress(OSError, TypeError, ValueError):  # one of them is not a file, or not yet
            same = os.path.samefile(out, one)
        if same:
            raise InputError(f"{str(out)!r} is {what}", "write to another file", "out")
