"""Full disks, protected folders, links, and two processes that write the same file."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torture.kills import LOCKS, _versions, forked
from torture.outcome import Outcome
from torture.writers import Writer, writers
from varcal.exceptions import InputError

#: Sizes of files in bytes from which on a disk is full.
SIZES = (0, 1, 100, 1_000, 4_096)
NOBODY = 65534


def run(outcome: Outcome) -> None:
    """Try every writer on every bad disk."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        folder.chmod(0o755)
        kinds = writers(folder)
        known = [_versions(one, folder) for one in kinds]
        for writer, versions in zip(kinds, known, strict=True):
            for size in SIZES:
                _refused(writer, versions, folder, outcome, f"limit of {size} bytes", _limit(size))
            _refused(writer, versions, folder, outcome, "protected folder", _protect)
            _linked(writer, versions, folder, outcome)
            _two_processes(writer, versions, folder, outcome)
        with _small_disk(folder) as disk:
            if disk is not None:
                for writer, versions in zip(kinds, known, strict=True):
                    _full(writer, versions, disk, outcome)


def _limit(size: int) -> Callable[[Path], None]:
    return lambda folder: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _protect(folder: Path) -> None:
    """Give up all rights in a process that has those of the superuser."""
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def _refused(
    writer: Writer,
    versions: list[object],
    home: Path,
    outcome: Outcome,
    what: str,
    spoil: Callable[[Path], None],
) -> None:
    """Write onto a file where that must fail, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=home) as name:
        folder = Path(name)
        folder.chmod(0o755)
        path = folder / writer.name
        writer.write(path, 0)
        before = path.read_bytes()

        def write() -> None:
            spoil(folder)
            try:
                writer.write(path, 1)
            except InputError:
                os._exit(7)

        code = os.waitstatus_to_exitcode(os.waitpid(forked(write), 0)[1])
        folder.chmod(0o755)
        label = f"{writer.name}, {what}"
        beside = set(os.listdir(folder)) - {writer.name} - LOCKS
        if code not in (0, 7) or beside:
            outcome.fail(f"{label}: exit code {code}, beside it {sorted(beside)}")
        elif code == 7 and path.read_bytes() != before:
            outcome.fail(f"{label}: an error, but the file has changed")
        elif code == 0 and writer.content(path) not in versions:
            outcome.fail(f"{label}: no error, but the file is not complete")
        else:
            outcome.add("refused, and the old file is whole" if code else "written whole")


def _linked(writer: Writer, versions: list[object], home: Path, outcome: Outcome) -> None:
    with tempfile.TemporaryDirectory(dir=home) as name:
        folder = Path(name)
        (folder / "real").mkdir()
        target, link = folder / "real" / writer.name, folder / writer.name
        link.symlink_to(target)
        writer.write(link, 0)
        writer.write(link, 1)
        inside = set(os.listdir(folder / "real")) - LOCKS
        if not link.is_symlink() or inside != {writer.name}:
            outcome.fail(f"{writer.name}: a link was replaced")
        elif writer.content(target) not in versions:
            outcome.fail(f"{writer.name}: not complete behind a link")
        else:
            outcome.add("written whole through a link")


def _two_processes(writer: Writer, versions: list[object], home: Path, outcome: Outcome) -> None:
    with tempfile.TemporaryDirectory(dir=home) as name:
        path = Path(name, writer.name)
        writer.write(path, 0)

        def write(k: int) -> Callable[[], None]:
            def work() -> None:
                for _ in range(5):
                    writer.write(path, k)
                    if writer.content(path) not in versions:
                        os._exit(9)

            return work

        children = [forked(write(k)) for k in range(2)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        left = set(os.listdir(name)) - {writer.name} - LOCKS
        if any(codes) or left:
            outcome.fail(f"{writer.name}: two processes, exit codes {codes}, left {left}")
        else:
            outcome.add("whole whenever read while two processes write", 10)


@contextmanager
def _small_disk(home: Path) -> Iterator[Path | None]:
    """Give a disk of 64 kB in memory, if this process may mount one."""
    disk = home / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    try:
        yield disk if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", str(disk)], check=True)


def _full(writer: Writer, versions: list[object], disk: Path, outcome: Outcome) -> None:
    """Write onto a file on a disk that has some free blocks left, from none to all."""
    path, filler = disk / writer.name, disk / "filler"
    for free in (0, 1, 2, 4, 8):
        try:
            writer.write(path, 0)
        except InputError:
            outcome.add("does not fit on the disk at all")
            break
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 512)
        if not filler.exists():
            break  # not even a file without content fits
        filler.open("r+b").truncate(max(0, filler.stat().st_size - 4096 * free))
        try:
            writer.write(path, 1)
            ended = "written whole"
        except InputError:
            ended = "refused, and the old file is whole"
        left = set(os.listdir(disk)) - {writer.name, "filler"} - LOCKS
        if writer.content(path) not in versions or left:
            outcome.fail(f"{writer.name} on a disk with {free} free blocks: left {left}")
        else:
            outcome.add(ended)
        filler.unlink()
    for name in os.listdir(disk):
        (disk / name).unlink()
