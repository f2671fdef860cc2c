"""Folders that `reproduce` must not write to, and files in them that it must not touch."""

import hashlib
import os

import pytest
from click.testing import CliRunner

from varcal.cli import main
from varcal.exceptions import InputError
from varcal.experiments import _own_files
from varcal.experiments._own_files import LIST, write_own
from varcal.experiments._reproduction import Reproduction, drop_index, write_index
from varcal.experiments._result_tables import Table

MADE = Reproduction("bank", "Bank", (Table("claims", "Claims", {"claim": ["a"]}),))


def listed(*pairs):
    """Return a list of files, as varcal writes it."""
    return "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in pairs)


@pytest.mark.parametrize(
    "name", ["dangling", "loop", "x" * 300, "a\0b", "\ud800", "file", "file/below", "dangling/x"]
)
def test_a_folder_that_cannot_be_is_refused_before_the_work(tmp_path, name):
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="cannot write to"):
        MADE.write(f"{tmp_path}/{name}")
    result = CliRunner().invoke(main, ["reproduce", "theory", "-o", f"{tmp_path}/{name}"])
    assert result.exit_code == 2
    assert result.output.startswith("error: cannot write to ")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "file", "loop"]


@pytest.mark.parametrize("folder", ["", None, 5, b"x", []])
def test_what_is_no_folder_is_refused(folder):
    with pytest.raises(InputError, match="cannot write to"):
        MADE.write(folder)


def test_a_link_to_a_folder_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    MADE.write(tmp_path / "link")
    MADE.write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert set(os.listdir(tmp_path / "real")) == {"README.md", "claims.csv", LIST}


def test_links_in_the_folder_are_never_written_through(tmp_path):
    """A list may say that a link is varcal's own; what it leads to is not."""
    mine, home = tmp_path / "mine.txt", tmp_path / "out"
    mine.write_bytes(b"")
    home.mkdir()
    (home / "claims.csv").symlink_to(mine)
    (home / LIST).write_text(listed(("claims.csv", b"")), encoding="utf-8")
    with pytest.raises(InputError, match=r"'claims.csv' was not written by varcal"):
        MADE.write(home)
    (home / "claims.csv").unlink()
    (home / "errors.csv").symlink_to(mine)  # one that would be removed
    (home / LIST).write_text(listed(("errors.csv", b"")), encoding="utf-8")
    MADE.write(home)
    assert (home / "errors.csv").is_symlink()
    assert mine.read_bytes() == b""


def test_a_list_that_is_a_link_is_refused(tmp_path):
    mine, home = tmp_path / "mine.txt", tmp_path / "out"
    mine.write_text("", encoding="utf-8")
    home.mkdir()
    (home / LIST).symlink_to(mine)
    with pytest.raises(InputError, match="is not a list of files that varcal wrote"):
        MADE.write(home)
    assert mine.read_text(encoding="utf-8") == ""
    assert os.listdir(home) == [LIST]


@pytest.mark.parametrize(
    "text",
    [b"my notes\n", b"\xff\xfe", b"0" * 64 + b"  ../mine.txt\n", b"0" * 64 + b"  /etc/passwd\n",
     b"0" * 63 + b"  README.md\n", b"0" * 64 + b"  a\0b\n", b"0" * 64 + b"  " + b"x" * 300 + b"\n"],
)  # fmt: skip
def test_a_list_that_varcal_did_not_write_is_not_replaced(tmp_path, text):
    (tmp_path / LIST).write_bytes(text)
    with pytest.raises(InputError, match=f"'{LIST}' is not a list of files that varcal wrote"):
        MADE.write(tmp_path)
    assert (tmp_path / LIST).read_bytes() == text
    assert os.listdir(tmp_path) == [LIST]


def test_special_files_in_place_of_the_list(tmp_path, monkeypatch):
    for k, make in enumerate([os.mkfifo, os.mkdir]):
        home = tmp_path / str(k)
        home.mkdir()
        make(home / LIST)
        with pytest.raises(InputError, match="is not a list of files that varcal wrote"):
            MADE.write(home)
    MADE.write(tmp_path / "long")
    monkeypatch.setattr(_own_files, "MOST_BYTES", 100)
    with pytest.raises(InputError, match="is not a list of files that varcal wrote"):
        MADE.write(tmp_path / "long")


def test_a_list_that_cannot_be_read(tmp_path, monkeypatch):
    MADE.write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_own_files.Path, "read_text", refuse)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        MADE.write(tmp_path)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_cannot_be_read_is_the_users(tmp_path, monkeypatch):
    MADE.write(tmp_path)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_own_files.hashlib, "file_digest", refuse)
    with pytest.raises(InputError, match="was not written by varcal or was changed since"):
        MADE.write(tmp_path)


def test_a_list_with_files_of_the_user_removes_none_of_them(tmp_path):
    """As `sha256sum * > varcal-files.sha256` would make it."""
    (tmp_path / "thesis.md").write_bytes(b"mine")
    (tmp_path / LIST).write_text(listed(("thesis.md", b"mine")), encoding="utf-8")
    MADE.write(tmp_path)
    assert (tmp_path / "thesis.md").read_bytes() == b"mine"
    others = Reproduction("theory", "Theory", ()), Reproduction("bank", "Bank", ())
    home = tmp_path / "index"
    home.mkdir()
    write_index(others, home)
    (home / "thesis.md").write_bytes(b"mine")
    with (home / LIST).open("a", encoding="utf-8") as file:
        file.write(listed(("thesis.md", b"mine")))
    drop_index(home)
    assert os.listdir(home) == ["thesis.md"]


@pytest.mark.parametrize("last", range(8))
def test_a_run_that_ends_anywhere_can_be_repeated(tmp_path, monkeypatch, last):
    """Each write and each removal may be the last before the process is killed."""
    old = {"README.md": b"old", "errors.csv": b"old", "claims.csv": b"old"}
    new = {"README.md": b"new", "claims.csv": b"new"}
    names = [*old, *new]
    write_own(tmp_path, old, names)
    left = iter(range(last))

    def until_killed(run):
        def step(*arguments, **others):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return run(*arguments, **others)

        return step

    with monkeypatch.context() as patch:
        for name in ("whole_file", "write_whole"):
            patch.setattr(_own_files, name, until_killed(getattr(_own_files, name)))
        patch.setattr(_own_files.Path, "unlink", until_killed(_own_files.Path.unlink))
        try:
            write_own(tmp_path, new, names)
        except KeyboardInterrupt:
            assert last < 5
    write_own(tmp_path, new, names)
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != LIST}
    assert found == new
