"""Atomic writes: a file is written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from varcal.exceptions import InputError


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file in the same folder that replaces the target at the end of the block.

    If the block ends early, even by an interrupt, the temporary file is removed and the target
    stays as it was.

    Parameters
    ----------
    path : path
        The target.

    Yields
    ------
    Path
        The temporary file to write to.

    Raises
    ------
    InputError
        If the target is not a regular file, or cannot be written.

    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> with whole_file(target) as draft:
    ...     _ = draft.write_bytes(b"complete")
    >>> [path.name for path in target.parent.iterdir()]
    ['note.txt']
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        what = "a folder" if target.is_dir() else "not a regular file"
        raise InputError(
            f"cannot write {str(path)!r}: it is {what}", "give the name of a file", argument="path"
        )
    draft: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        draft = Path(name)
        os.close(handle)
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp creates files with mode 0600; use the permissions that the user's umask allows.
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
        draft.replace(target)
    except BaseException as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise InputError(
            f"cannot write {str(path)!r}: {error.strerror or error}",
            "choose a folder that is writable and has free space",
            argument="path",
        ) from None


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
    except OSError:
        return False
