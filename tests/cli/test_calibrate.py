"""`varcal calibrate`, `apply` and `compare`: from rows to calibrated rows."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import varcal as vc
from cases.command_line import COLUMNS, run


def test_calibrate_apply_compare(folder, calibrated):
    first, second = calibrated
    assert first.returncode == 0 and not first.stderr
    assert first.stdout.endswith(
        "fitted on 3,000 rows → cal.json\nnext: varcal apply cal.json NEW.csv -o calibrated.csv\n"
    )
    assert "VariableCalibrator." in first.stdout and re.search(
        r"^variables +age +\d", first.stdout, re.M
    )
    assert re.fullmatch(r"added p_calibrated to 3,000 rows in [\d.]+s → out.csv\n", second.stdout)
    out = csv.read_csv(folder / "out.csv")
    expected = vc.load(folder / "cal.json").predict_proba(out.select(["p"]), out.select(["age"]))
    np.testing.assert_array_equal(out["p_calibrated"], expected[:, 1])
    given = ["--label", "y", "--prob", "raw=p", "--prob", "tree=p_calibrated"]
    done = run("compare", "out.csv", *given, "--variables", "age", "-o", "page.html", cwd=folder)
    assert done.returncode == 0 and not done.stderr and done.stdout.endswith("\n→ page.html\n")
    assert re.search(r"^uneven along age +\d+\.\d  +\d+\.\d (fixed|better)$", done.stdout, re.M)
    assert "average and errors in points" in done.stdout
    assert "Before and after" in (folder / "page.html").read_text(encoding="utf-8")
    done = run("compare", "out.csv", *given, "--exclude", "noise,w,who", "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert {row["variable"] for row in told["rows"]} == {"", "age"}
    assert told["methods"] == ["raw", "tree"]
    done = run("compare", "out.csv", *given, "-o", "page.pdf", cwd=folder)
    assert done.returncode == 2 and ".html" in done.stderr


def test_without_variables_all_columns_with_a_use_are_read(folder, tmp_path):
    rows = parquet.read_table(folder / "rows.parquet").slice(0, 1000)
    rows = rows.append_column("id", pa.array([f"n{k}" for k in range(1000)]))
    parquet.write_table(rows, tmp_path / "rows.parquet")
    given = ["calibrate", "rows.parquet", *COLUMNS, "--param", "trees=false", "-o", "cal.json"]
    done = run(*given, "--group", "who", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    read, left = done.stderr.splitlines()
    assert read == "note: columns read: age, noise"
    assert left.startswith("note: columns left out: tags (cannot be a variable: it is of type List")
    assert "w (constant: the same value at every row); id (identifier: 1,000 diff" in left
    assert left.endswith("To read them, name them in --variables")
    assert vc.load(tmp_path / "cal.json").schema_.names == ("age", "noise")
    done = run(*given, "--exclude", "noise,w,tags,id,who", cwd=tmp_path)
    assert done.stderr == "note: columns read: age\n"
    done = run(*given, "--exclude", "age", "--variables", "age", cwd=tmp_path)
    assert done.stderr.startswith("error: 'age' is in --variables and in --exclude\nhint: ")
    parquet.write_table(rows.select(["y", "p"]), tmp_path / "rows.parquet")
    done = run(*given, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "note: columns read: none but the score\n")
    done = run(
        "calibrate", "rows.parquet", *COLUMNS, "--method", "tree", "-o", "c.json", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "--method tree needs a column beside the score, and there is none" in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--method", "beat"], "Invalid value for '--method': 'beat' is not one of 'shift', "),
        (["--method", "auto"], "'auto' is not one of 'shift', 'score-curve', 'variables', "),
        (
            ["--variables", "agee"],
            "no column 'agee' in 'cal.csv' (--variables)\nhint: did you mean",
        ),
        (["--exclude", "agee"], "no column 'agee' in 'cal.csv' (--exclude)\nhint: did you mean"),
        (["--group", "whom"], "no column 'whom' in 'cal.csv' (--group)\nhint: did you mean 'who'?"),
        (
            ["--method", "beta", "--group", "who"],
            "--method beta holds no rows out, so it cannot use --group who\n"
            "hint: leave --group out, or use --method variables\n",
        ),
        (
            ["--blocks", "who", "--same-blocks"],
            "--blocks who and --same-blocks are both given\nhint: blocks are either",
        ),
        (["--method", "shift", "--param", "l2=1"], "--method shift has no parameters"),
        (["--param", "depth=3", "--method", "tree"], "hint: did you mean 'max_depth'?"),
        (["--param", "max_depth"], "--param 'max_depth' is not NAME=VALUE\nhint: for example"),
        (["--param", "monotone=2"], "error: --param monotone must be one of True, False; got 2"),
    ],
)
def test_calibrate_refuses(given, said, folder):
    done = run("calibrate", "cal.csv", *COLUMNS, *given, "-o", "never.json", cwd=folder)
    assert done.returncode == 2 and said in done.stderr and not done.stderr.startswith("note")
    assert not (folder / "never.json").exists()


def test_outputs_never_replace_their_inputs(tmp_path):
    """Not through a link either; test_atomic.py has the other names of a file."""
    before = '{"y": 1, "p": 0.5, "age": 3}\n' * 9
    (tmp_path / "rows.json").write_text(before)
    (tmp_path / "link.json").symlink_to("rows.json")
    for out in ("rows.json", "link.json"):
        for command in ("calibrate", "audit", "compare"):
            done = run(command, "rows.json", *COLUMNS, "-o", out, cwd=tmp_path)
            assert done.returncode == 2 and "is an input file\nhint: write to an" in done.stderr
    assert (tmp_path / "rows.json").read_text() == before
