"""Files of earlier runs: a folder keeps the checksums of what was written to it.

A run replaces and removes only files that are still as an earlier run wrote them. A link is never
one of these: varcal writes none, and what it leads to may be anywhere.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from varcal._files.atomic import whole_file, write_whole
from varcal.exceptions import InputError

__all__ = ["LIST", "refuse_foreign", "remove_own", "write_own"]

#: The list of files and checksums, which ``sha256sum --check`` reads.
LIST = "varcal-files.sha256"
#: A list has a line for each of a few files; a larger one is not varcal's.
MOST_BYTES = 1_000_000
#: A checksum and a name, as in a line of the list.
_LINE = re.compile(r"([0-9a-f]{64})  ([^/\\\0]{1,200})")


def refuse_foreign(folder: Path, names: Iterable[str]) -> None:
    """Refuse to replace files that no earlier run wrote, or that were changed since.

    Parameters
    ----------
    folder : Path
        Where files will be written; it need not exist.
    names : iterable of str
        Their names.
    """
    known = _listed(folder)
    foreign = [
        name for name in names if os.path.lexists(folder / name) and not _own(folder, name, known)
    ]
    if foreign:
        shown = ", ".join(map(repr, foreign[:3])) + (", …" if len(foreign) > 3 else "")
        what = "was not written by varcal or was changed since"
        raise InputError(
            f"cannot write to {str(folder)!r}: {shown} {what}",
            "choose another folder, or move that file away",
            argument="folder",
        )


def write_own(folder: Path, contents: Mapping[str, bytes], names: Iterable[str]) -> None:
    """Write files in place of all those of an earlier run, and keep their checksums.

    The list names new and old checksums until all files are written, so that files of a run that
    was interrupted count as its own.

    Parameters
    ----------
    folder : Path
        Where files are written.
    contents : mapping of str to bytes
        What they contain.
    names : iterable of str
        The files of an earlier run that may be removed. A list that someone else has made could
        name any file beside it.

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> names = ["a.txt", "b.txt"]
    >>> write_own(home, {"a.txt": b"first"}, names)
    >>> write_own(home, {"b.txt": b"second"}, names)
    >>> sorted(path.name for path in home.iterdir())
    ['b.txt', 'varcal-files.sha256']
    """
    refuse_foreign(folder, contents)
    new = {(hashlib.sha256(content).hexdigest(), name) for name, content in contents.items()}
    known = _listed(folder)
    _write_list(folder, known | new)
    for name in set(names) - set(contents):
        if _own(folder, name, known):
            (folder / name).unlink()
    for name, content in contents.items():
        with whole_file(folder / name) as draft:
            draft.write_bytes(content)
    _write_list(folder, new)


def remove_own(folder: Path, names: Iterable[str]) -> None:
    """Remove those files of an earlier run that are as it wrote them, and their list."""
    known = _listed(folder)
    for name in names:
        if _own(folder, name, known):
            (folder / name).unlink()
    (folder / LIST).unlink(missing_ok=True)


def _listed(folder: Path) -> set[tuple[str, str]]:
    """Return the (checksum, name) pairs of a folder; names lead nowhere else.

    A list that is not varcal's is refused: it would be replaced.
    """
    path = folder / LIST
    try:
        if not os.path.lexists(path):
            return set()
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise _foreign_list(folder, "is not a list of files that varcal wrote")
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise _foreign_list(folder, "is not a list of files that varcal wrote") from None
    except OSError as error:
        raise _foreign_list(folder, f"cannot be read ({error.strerror or error})") from None
    found = [_LINE.fullmatch(line) for line in lines if line]
    if any(one is None for one in found):
        raise _foreign_list(folder, "is not a list of files that varcal wrote")
    return {(one[1], one[2]) for one in found if one is not None}


def _foreign_list(folder: Path, problem: str) -> InputError:
    return InputError(
        f"cannot write to {str(folder)!r}: {LIST!r} {problem}",
        "choose another folder, or move that file away",
        argument="folder",
    )


def _write_list(folder: Path, pairs: set[tuple[str, str]]) -> None:
    lines = [f"{digest}  {name}\n" for digest, name in sorted(pairs, key=lambda pair: pair[::-1])]
    write_whole(folder / LIST, "".join(lines))


def _own(folder: Path, name: str, known: set[tuple[str, str]]) -> bool:
    path = folder / name
    digests = {digest for digest, one in known if one == name}
    if not digests or path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() in digests
    except OSError:  # what cannot be read cannot be told to be varcal's
        return False
