"""Files are written whole or not at all, keep their permissions, and leave nothing beside them."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from varcal._files import atomic
from varcal._files.atomic import refuse_input, same_file, whole_file, write_whole
from varcal.exceptions import InputError


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_new_files_have_the_permissions_that_the_umask_allows(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new.txt", "text")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new.txt") == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions(mode, tmp_path):
    path = tmp_path / "secret.txt"
    path.write_text("old")
    path.chmod(mode)
    seen = []
    with whole_file(path) as file:
        file.write_text("new")
        seen.append(stat.S_IMODE(os.stat(file).st_mode))
    assert path.read_text() == "new" and mode_of(path) == mode
    assert not seen[0] & ~mode  # at no time can more people read it


def test_an_error_leaves_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def fail_halfway():
        with whole_file(path) as file:
            file.write_text("half")
            1 / 0  # noqa: B018

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["kept.txt"]


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127, "日" * 85])
def test_the_longest_names_can_be_written(name, tmp_path):
    write_whole(tmp_path / name, "text")
    assert (tmp_path / name).read_text() == "text" and len(os.listdir(tmp_path)) == 1


def test_links_stay_links(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "file.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    for text in ("made through the link", "replaced through the link"):
        write_whole(link, text)
        assert link.is_symlink() and target.read_text() == text
    assert os.listdir(tmp_path / "real") == ["file.txt"]


def test_what_cannot_be_replaced_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for name, problem in {
        "folder": "it is a folder",
        "pipe": "it is not a regular file",
        "loop": "it is not a regular file",
        "no/such": "No such file or directory",
        "n" * 256: "File name too long",
    }.items():
        with pytest.raises(InputError, match=f"cannot write .*: {problem}"):
            write_whole(tmp_path / name, "text")
    for path in (None, 3, "a\0b", b"bytes"):
        with pytest.raises(InputError, match=r"path is .*, which cannot be the name of a file"):
            write_whole(path, "text")


def test_protected_files_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "protected.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(InputError, match="it is protected against writing"):
        write_whole(path, "new")
    assert path.read_text() == "old"


def test_file_and_folder_reach_the_disk(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)) or real(handle))
    write_whole(tmp_path / "file.txt", "text")
    assert stat.S_ISREG(synced[0].st_mode) and stat.S_ISDIR(synced[-1].st_mode)
    assert synced[-1].st_ino == tmp_path.stat().st_ino


HOLD = """
import sys
from varcal._files.atomic import whole_file
with whole_file(sys.argv[1]) as file:
    file.write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def holding(path):
    """Start a process that is writing a file until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "writing\n"
    return process


def test_the_next_write_removes_what_a_killed_process_left_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    killed, working, other = holding(path), holding(path), holding(tmp_path / "other.txt")
    for one in (killed, other):
        one.send_signal(signal.SIGKILL)
        one.communicate()
    assert path.read_text() == "old" and len(os.listdir(tmp_path)) == 4
    write_whole(path, "new")
    # The file of the process that still writes takes its place; it wins as the last one.
    assert path.read_text() == "new" and len(os.listdir(tmp_path)) == 3
    working.communicate()
    assert working.returncode == 0 and path.read_text() == "half"
    write_whole(tmp_path / "other.txt", "text")
    assert sorted(os.listdir(tmp_path)) == ["file.txt", "other.txt"]


def test_a_temporary_file_that_nobody_writes_to_for_a_day_is_removed(tmp_path):
    path = tmp_path / "file.txt"
    fresh, old = (
        tmp_path / f"{atomic._prefix(path)}{os.getpid()}-0000000{k}.tmp" for k in range(2)
    )
    for one in (fresh, old):
        one.write_text("of a process that runs")
    os.utime(old, (time.time() - 2 * atomic.MAX_AGE,) * 2)
    write_whole(path, "text")
    assert sorted(os.listdir(tmp_path)) == sorted([fresh.name, "file.txt"])


def test_the_same_file_under_other_names(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("text")
    (tmp_path / "link.txt").symlink_to(path)
    os.link(path, tmp_path / "hard.txt")
    (tmp_path / "folder").mkdir()
    for other in ("file.txt", "link.txt", "hard.txt", "folder/../file.txt", "./file.txt"):
        assert same_file(path, f"{tmp_path}/{other}")
        with pytest.raises(InputError, match=r"is an input file\nhint: write to another file"):
            refuse_input(f"{tmp_path}/{other}", "an input file", "no/such", path)
    assert not same_file(path, tmp_path / "folder") and not same_file(path, "a\0b")
    refuse_input(tmp_path / "new.txt", "an input file", path)
