"""Files of earlier runs: a folder keeps the checksums of what was written to it.

A run replaces and removes only files that are still as an earlier run wrote them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from varcal._files.atomic import whole_file, write_whole
from varcal.exceptions import InputError

__all__ = ["LIST", "refuse_foreign", "remove_own", "write_own"]

#: The list of files and checksums, which ``sha256sum --check`` reads.
LIST = "varcal-files.sha256"


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


def write_own(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files in place of all those of an earlier run, and keep their checksums.

    The list names new and old checksums until all files are written, so that files of a run that
    was interrupted count as its own.

    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> write_own(home, {"a.txt": b"first"})
    >>> write_own(home, {"b.txt": b"second"})
    >>> sorted(path.name for path in home.iterdir())
    ['b.txt', 'varcal-files.sha256']
    """
    refuse_foreign(folder, contents)
    new = {(hashlib.sha256(content).hexdigest(), name) for name, content in contents.items()}
    known = _listed(folder)
    _write_list(folder, known | new)
    for name in {name for _, name in known} - set(contents):
        if _own(folder, name, known):
            (folder / name).unlink()
    for name, content in contents.items():
        with whole_file(folder / name) as draft:
            draft.write_bytes(content)
    _write_list(folder, new)


def remove_own(folder: Path) -> None:
    """Remove all files of an earlier run that are as it wrote them, and their list."""
    known = _listed(folder)
    for _, name in known:
        if _own(folder, name, known):
            (folder / name).unlink()
    (folder / LIST).unlink(missing_ok=True)


def _listed(folder: Path) -> set[tuple[str, str]]:
    """Return the (checksum, name) pairs of a folder; names lead nowhere else."""
    try:
        lines = (folder / LIST).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return set()
    pairs = {(digest, name) for digest, _, name in (line.partition("  ") for line in lines)}
    return {(digest, name) for digest, name in pairs if name and name == Path(name).name}


def _write_list(folder: Path, pairs: set[tuple[str, str]]) -> None:
    lines = [f"{digest}  {name}\n" for digest, name in sorted(pairs, key=lambda pair: pair[::-1])]
    write_whole(folder / LIST, "".join(lines))


def _own(folder: Path, name: str, known: set[tuple[str, str]]) -> bool:
    path = folder / name
    return path.is_file() and (hashlib.sha256(path.read_bytes()).hexdigest(), name) in known
