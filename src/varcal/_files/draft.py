"""Drafts: files that are written under no name, or a temporary one, and then take the real one.

On Linux a draft is a file without a name (``O_TMPFILE``), which the kernel removes with the
process. It gets a name when it is complete: the name of the target if that is free, otherwise a
temporary one for the moment until it replaces the target. Where the system or the file system has
no such files, a draft has a temporary name all the time.

A process that is killed can leave a temporary name behind. The next write in the same folder
removes it. It cannot be mistaken for a draft in use: a draft is locked as long as its process
works on it, and the system releases the lock of a process that has ended.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

#: The temporary names. They do not contain that of the target, which may be as long as names can
#: be.
_NAME = re.compile(r"\.varcal-[0-9a-f]{16}\.draft")


@dataclass
class Draft:
    """A file that is being written, used as a context manager.

    Attributes
    ----------
    folder : Path
        Where the file will be.
    like : os.stat_result or None
        The file that it replaces, whose owner and permissions it keeps.
    handle : int
        The open file, which holds the lock.
    name : str or None
        Its temporary name, if it has one.
    """

    folder: Path
    like: os.stat_result | None
    handle: int
    name: str | None

    @classmethod
    def open(cls, folder: Path, like: os.stat_result | None) -> Self:
        """Start a draft in a folder, after removing those that killed processes have left."""
        remove_abandoned(folder)
        handle = _open_unnamed(folder, _first_mode(like))
        return cls._named(folder, like) if handle is None else cls(folder, like, handle, None)

    @classmethod
    def _named(cls, folder: Path, like: os.stat_result | None) -> Self:
        while True:
            name = _new_name()
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            handle = os.open(folder / name, flags, _first_mode(like))
            # Another process may have taken it for abandoned before it was locked.
            if _lock(handle) is not False and os.fstat(handle).st_nlink:
                return cls(folder, like, handle, name)
            os.close(handle)

    @property
    def path(self) -> Path:
        """The path under which the draft can be opened and written."""
        if self.name is None:
            return Path(f"/proc/self/fd/{self.handle}")
        return self.folder / self.name

    def replace(self, target: Path) -> None:
        """Give the draft the name of the target, which it replaces; both reach the disk."""
        self._keep_permissions()
        os.fsync(self.handle)
        if self.name is None:
            try:
                if self._link(target.name):
                    return _sync_folder(self.folder)
                _lock(self.handle)
                while not self._link(name := _new_name()):
                    pass
                self.name = name
            except OSError:  # a file system that has unnamed files, but cannot name them
                with self._named(self.folder, self.like) as copy:
                    shutil.copyfile(self.path, copy.path)
                    return copy.replace(target)
        if sys.platform == "win32":  # where an open file cannot be renamed
            os.close(self.handle)
            self.handle = -1
        os.replace(self.folder / self.name, target)
        self.name = None
        return _sync_folder(self.folder)

    def _keep_permissions(self) -> None:
        if self.like is None or sys.platform == "win32":
            return
        with suppress(OSError):  # only the superuser can give files to others
            os.fchown(self.handle, self.like.st_uid, self.like.st_gid)
        os.fchmod(self.handle, stat.S_IMODE(self.like.st_mode) & 0o777)

    def _link(self, name: str) -> bool:
        """Give an unnamed draft a name, unless that is taken."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            # With a folder, os.link follows the link in /proc to the file itself.
            os.link(self.path, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            return False
        finally:
            os.close(folder)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.handle >= 0:
            os.close(self.handle)
        if self.name is not None:
            with suppress(OSError):
                os.unlink(self.folder / self.name)


def remove_abandoned(folder: Path) -> None:
    """Remove the drafts in a folder whose processes have ended."""
    try:
        names = [name for name in os.listdir(folder) if _NAME.fullmatch(name)]
    except OSError:
        return  # writing will say what is wrong
    for name in names:
        with suppress(OSError):
            handle = os.open(folder / name, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(handle):
                    os.unlink(folder / name)
            finally:
                os.close(handle)


def _new_name() -> str:
    return f".varcal-{secrets.token_hex(8)}.draft"


def _first_mode(like: os.stat_result | None) -> int:
    """Return permissions that never let more people read a draft than the file it replaces."""
    return 0o666 if like is None else stat.S_IMODE(like.st_mode) & 0o666 | 0o600


def _open_unnamed(folder: Path, mode: int) -> int | None:
    """Open a file without a name; None where that is not possible."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_RDWR | flag, mode)
    except OSError:
        return None


def _lock(handle: int) -> bool | None:
    """Lock a file without waiting: False if another process holds it, None without locks."""
    if sys.platform == "win32":
        return None
    import fcntl  # noqa: PLC0415  does not exist on Windows

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _sync_folder(folder: Path) -> None:
    """Let the new name of a file reach the disk; some file systems cannot, and need not."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
