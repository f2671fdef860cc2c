"""`varcal slices`, `varcal audit --slices` and the gate on slices."""

import pandas as pd
import pytest

import varcal as vc
from cases.command_line import run
from cases.slices import planted

COLUMNS = ["--label", "y", "--prob", "p", "--draws", "19", "--level", "0.9"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slices")
    for name, gap in (("off", 0.3), ("fine", 0.0)):
        y, p, X, _ = planted(2000, gap=gap)
        pd.DataFrame(X | {"p": p, "y": y}).to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_slices_are_sentences_within_80_columns(files):
    done = run("slices", str(files / "off.csv"), *COLUMNS)
    assert done.returncode == 0
    assert "CLEARLY OFF" in done.stdout and "sex = f" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(("name", "code", "said"), [("off", 1, "FAILED"), ("fine", 0, "PASSED")])
def test_the_gate(files, name, code, said):
    path = str(files / f"{name}.csv")
    done = run("slices", path, *COLUMNS, "--fail-on", "slice")
    assert done.returncode == code and f"{said} " in done.stdout


def test_the_gate_of_an_audit(files):
    given = ["--label", "y", "--prob", "p", "--ladder", "none", "--fail-on", "slice"]
    done = run("audit", str(files / "off.csv"), *given)
    assert done.returncode == 1
    assert "clearly off (--fail-on slice); first" in done.stdout
    assert "Combinations of variables" in done.stdout


def test_outputs(files, tmp_path):
    for name in ("found.json", "found.md"):
        done = run("slices", str(files / "off.csv"), *COLUMNS, "-o", str(tmp_path / name))
        assert done.returncode == 0
    assert len(vc.load(tmp_path / "found.json"))
    assert "| Slice |" in (tmp_path / "found.md").read_text(encoding="utf-8")
    run("slices", str(files / "fine.csv"), *COLUMNS, "-o", str(tmp_path / "none.md"))
    assert (tmp_path / "none.md").read_text(encoding="utf-8").startswith("# No slice clearly off")
