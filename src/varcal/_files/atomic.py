"""Atomic writes: a file is written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from varcal._files.draft import Draft
from varcal.exceptions import InputError


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a draft to write to, which replaces the target at the end of the block.

    If the block ends early, even by an interrupt, the draft is gone and the target stays as it
    was. On Linux a draft has no name, so that not even a killed process leaves one behind; see
    `varcal._files.draft`. A file that is replaced keeps its permissions, and a link to it stays a
    link.

    Parameters
    ----------
    path : path
        The target.

    Yields
    ------
    Path
        The draft: a path to open and to write to.

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
    target = _target(path)
    try:
        with Draft.open(target.parent, _replaced(target, path)) as draft:
            yield draft.path
            draft.replace(target)
    except OSError as error:
        raise InputError(
            f"cannot write {str(path)!r}: {error.strerror or error}",
            "choose a folder that exists, is writable and has free space",
            argument="path",
        ) from None


def _target(path: str | PathLike[str]) -> Path:
    """Return the file that a path leads to, after all links."""
    try:
        target = Path(os.path.realpath(path))
        target.lstat()
    except FileNotFoundError:
        return target
    except (TypeError, ValueError):
        raise InputError(
            f"path is {path!r}, which cannot be the name of a file",
            "give the name of a file",
            argument="path",
        ) from None
    except OSError:
        return target  # writing will say what is wrong
    if not target.is_file():
        what = "a folder" if target.is_dir() else "not a regular file"
        raise InputError(
            f"cannot write {str(path)!r}: it is {what}", "give the name of a file", argument="path"
        )
    return target


def _replaced(target: Path, path: str | PathLike[str]) -> os.stat_result | None:
    """Return what is known of the file that is replaced; refuse one that is protected."""
    try:
        found = target.stat()
    except OSError:
        return None
    if not os.access(target, os.W_OK):
        raise InputError(
            f"cannot write {str(path)!r}: it is protected against writing",
            "choose another name, or change the permissions of the file",
            argument="path",
        )
    return found


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
