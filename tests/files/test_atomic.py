"""Files are written whole or not at all, keep their permissions, and leave nothing beside them."""

import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

import varcal as vc
from varcal._files.atomic import whole_file
from varcal.exceptions import InputError

P = np.linspace(0.1, 0.9, 40)
FITTED = vc.calibrators.PlattCalibrator().fit(P, np.arange(40) % 2)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_new_files_follow_the_umask_and_replaced_ones_keep_their_permissions(mode, tmp_path):
    path = tmp_path / "secret.txt"
    before = os.umask(0o666 & ~mode)
    try:
        FITTED.save(path)
    finally:
        os.umask(before)
    assert mode_of(path) == mode
    with whole_file(path) as file:
        file.write_text("new")
        assert not mode_of(file) & ~mode  # at no time can more people read it
    assert path.read_text() == "new" and mode_of(path) == mode


def test_an_error_leaves_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "kept.csv"
    path.write_text("old")
    rows = tmp_path / "rows.csv"
    rows.write_text("p\n" + "0.5\n" * 199_999 + "2.5\n")
    with pytest.raises(InputError, match=r"p is outside \[0, 1\]: 2.5 at row 199999"):
        vc.apply(FITTED, rows, path, p="p")
    rows.unlink()
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["kept.csv"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are listed in /proc")
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl.gz", "rows.arrow", "rows.parquet"])
def test_no_file_is_open_while_it_is_replaced(name, tmp_path, monkeypatch):
    """Windows refuses that."""
    (tmp_path / "given.csv").write_text("p\n0.2\n0.7\n")
    out, replace, seen = tmp_path / name, os.replace, []

    def watched(draft, target):
        opened = [os.path.realpath(one) for one in os.scandir("/proc/self/fd")]
        seen.append({str(draft), str(target)} & set(opened))
        replace(draft, target)

    monkeypatch.setattr(os, "replace", watched)
    vc.apply(FITTED, tmp_path / "given.csv", out, p="p", column="q")
    vc.apply(FITTED, out, out, p="p", column="r")
    assert seen == [set(), set()]


def test_links_stay_links(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "file.json", tmp_path / "link.json"
    link.symlink_to(target)
    for _ in ("made through the link", "replaced through the link"):
        FITTED.save(link)
        assert link.is_symlink() and target.is_file() and vc.load(link)
    assert os.listdir(tmp_path / "real") == ["file.json"]


def test_what_cannot_be_replaced_is_refused(tmp_path, monkeypatch):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name, problem in {
        "folder.json": "it is a folder",
        "pipe.json": "it is not a regular file",
        "loop.json": "it is not a regular file",
        "no/such.json": "No such file or directory",
        "n" * 251 + ".json": "File name too long",
    }.items():
        with pytest.raises(InputError, match=problem):
            FITTED.save(tmp_path / name)
    path = tmp_path / "protected.json"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(InputError, match=r"cannot write .*: it is protected against writing"):
        FITTED.save(path)
    assert path.read_text() == "old"


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
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], **pipes)
    assert process.stdout.readline() == "writing\n"
    return process


def test_the_next_write_removes_what_a_killed_process_left_and_nothing_else(tmp_path):
    path = tmp_path / "file.json"
    path.write_text("old")
    killed, working, other = holding(path), holding(path), holding(tmp_path / "other.json")
    for one in (killed, other):
        one.send_signal(signal.SIGKILL)
        one.communicate()
    assert path.read_text() == "old" and len(os.listdir(tmp_path)) == 4
    FITTED.save(path)
    # The file of the process that still writes takes its place; it wins as the last one.
    assert vc.load(path) and len(os.listdir(tmp_path)) == 3
    working.communicate()
    assert working.returncode == 0 and path.read_text() == "half"
    FITTED.save(tmp_path / "other.json")
    assert sorted(os.listdir(tmp_path)) == ["file.json", "other.json"]


def test_inputs_are_not_replaced_under_any_of_their_names(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text("p\n0.5\n")
    (tmp_path / "link.csv").symlink_to(path)
    os.link(path, tmp_path / "hard.csv")
    (tmp_path / "second.csv").write_text("p\n0.5\n")
    for other in ("file.csv", "link.csv", "hard.csv", "./file.csv"):
        with pytest.raises(InputError, match=r"is an input file\nhint: write to another file"):
            vc.apply(FITTED, [tmp_path / "second.csv", path], f"{tmp_path}/{other}", p="p")
    assert vc.apply(FITTED, path, tmp_path / "new.csv", p="p").n_rows == 1
    with pytest.raises(InputError, match="which cannot be the name of a file"):
        FITTED.to_python().save("a\0b.py")


def test_file_and_folder_reach_the_disk(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)) or real(handle))
    FITTED.save(tmp_path / "file.json")
    assert stat.S_ISREG(synced[0].st_mode) and synced[-1].st_ino == tmp_path.stat().st_ino
