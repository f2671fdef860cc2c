"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from os import PathLike
from pathlib import Path

from varcal.exceptions import InputError


def write_whole(path: str | PathLike[str], text: str) -> None:
    """Write a text file through a draft beside it, which takes its place when complete.

    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_whole(target, "all of it")
    >>> target.read_text(encoding="utf-8"), len(list(target.parent.iterdir()))
    ('all of it', 1)
    """
    target = Path(path)
    draft: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        draft = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp gives 0600; a new file gets what the user's mask allows.
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
            f"cannot write {str(target)!r}: {error.strerror}", "choose a folder you may write to"
        ) from None
