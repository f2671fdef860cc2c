"""The command line: output, files and exit code of each command.

Most tests run it in process. Tests of start-up, signals, pipes, terminals and encodings start a
process of their own.
"""

import gzip
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import varcal as vc
from cases.command_line import run
from cases.unmeasured import unmeasured
from varcal.cli._calibrate import _built, methods
from varcal.cli._program import main
from varcal.exceptions import InputError, VarcalWarning

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "varcal"]
COLUMNS = ["--label", "y", "--prob", "p"]
QUICK = ["--no-repair"]


def run_process(*arguments, cwd=None, **env):
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        encoding="utf-8",
        env=os.environ | env,
        cwd=cwd,
        check=False,
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Rows whose gap depends on age only; `noise` is noise."""
    found = tmp_path_factory.mktemp("rows")
    sim = vc.datasets.make_gap(6000, "tilt", vece=0.1, random_state=3)
    rng = np.random.default_rng(3)
    rows = pa.table(
        {
            "y": np.where(sim.y == 1, "yes", "no"),
            "p": sim.p,
            "age": np.round(20 + 60 * sim.v).astype(np.int64),
            "noise": rng.normal(size=6000),
            "w": np.ones(6000),
            "who": np.arange(6000) // 3,
            "tags": [["a"]] * 6000,
        }
    )
    flat = rows.drop_columns("tags")
    parquet.write_table(rows, found / "rows.parquet")
    csv.write_csv(flat, found / "rows.csv")
    csv.write_csv(flat.slice(0, 3000), found / "cal.csv")
    csv.write_csv(flat.slice(3000), found / "test.csv")
    return found


@pytest.fixture(scope="session")
def calibrated(folder):
    """Calibrate and apply."""
    first = run(
        "calibrate", "cal.csv", *COLUMNS, "--variables", "age", "-o", "cal.json", cwd=folder
    )
    second = run("apply", "cal.json", "test.csv", "-o", "out.csv", cwd=folder)
    return first, second


def test_version_and_help():
    assert run_process("--version").stdout == f"varcal {vc.__version__}\n"
    assert "demo" in run("--help").stdout
    done = run("audit", "-h")
    assert done.returncode == 0 and done.stdout.isascii()


@pytest.mark.parametrize("name", ["", *sorted(main.commands)])
def test_every_help_has_examples_that_exist(name):
    command = main.commands.get(name, main)
    text = command.help
    examples = re.findall(r"varcal (\w+)(.*(?:\\\n.*)?)", text.partition("Examples:")[2])
    assert examples
    for called, rest in examples:
        command = main.commands[called]
        command = getattr(command, "commands", {}).get((rest.split() or [""])[0], command)
        known = {option for one in command.params for option in one.opts}
        used = re.findall(r"(?<=\s)-{1,2}[a-z][\w-]*", re.sub(r"\s{4,}[a-z ]+$", "", rest))
        assert set(used) <= known, called


def test_help_of_calibrate_names_every_method():
    (option,) = [one for one in main.commands["calibrate"].params if one.name == "method"]
    assert set(methods()) <= set(re.findall(r"[a-z-]+", option.help))


# ------------------------------------------------------------------ audit


def test_audit_ranks_and_explains(folder):
    done = run("audit", "rows.parquet", *COLUMNS, "--exclude", "w,who", cwd=folder)
    assert done.returncode == 0
    assert "note: not audited: tags (cannot be a variable: it is of type List" in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("REPAIR FIRST  ")
    assert re.search(r"^age +off +\d\.\d \(\d\.\d, \d+\.\d\)", done.stdout, re.M)
    assert "uneven error at most: noise" in done.stdout
    assert re.fullmatch(r"6,000 rows, 2 variables in [\d.]+s; repair in [\d.]+s", lines[-1])
    assert "\x1b" not in done.stdout


def test_columns_left_out_and_brought_back(folder):
    given = ["audit", "rows.csv", *COLUMNS, "--json"]
    plain = run(*given, cwd=folder)
    more = run(*given, "--include", "w", cwd=folder)
    told, brought = json.loads(plain.stdout), json.loads(more.stdout)
    assert [name for name, _ in told["left_out"]] == ["w"]
    assert brought["left_out"] == []
    assert {row["variable"] for row in brought["rows"]} == {"age", "noise", "w", "who"}
    done = run(*given, "--include", "ww", cwd=folder)
    assert done.stderr.startswith("error: no column 'ww' in 'rows.csv' (--include)\n")


def test_protected_columns_and_no_repair(folder):
    given = ["audit", "rows.csv", *COLUMNS, "--variables", "age,noise"]
    assert "Without age, " in run(*given, "--protected", "age", cwd=folder).stdout
    done = run(*given, "--no-repair", cwd=folder)
    assert done.returncode == 0
    assert "after repair" not in done.stdout and "repair in" not in done.stdout
    done = run(*given, "--protected", "agee", cwd=folder)
    assert done.stderr.startswith("error: no column 'agee' in 'rows.csv' (--protected)\n")


def test_audit_agrees_with_the_library(folder):
    given = [
        *COLUMNS,
        "--variables",
        "age",
        "--weight",
        "w",
        "--group",
        "who",
        "--event",
        "positive",
    ]
    done = run("audit", "rows.csv", *given, "--pos-label", "yes", "--json", cwd=folder)
    told = json.loads(done.stdout)
    table = csv.read_csv(folder / "rows.csv")
    found = vc.audit(
        "y", "p", ["age"], data=table, sample_weight="w", groups="who", event="positive"
    )
    assert done.returncode == 0 and not done.stderr
    assert told["rows"] == json.loads(json.dumps(found.to_dict()["rows"]))
    assert told["claims"]["risk"]["gap"] == found.gap
    assert told["claims"]["risk"]["ece"] == vars(found.score.ece)
    assert told["passed"] is True and told["gates"] == []


SIZE = r"\d+\.\d"


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        (
            ["--max-vece", "5%"],
            rf"FAILED  1 variable above --max-vece 5%; worst age, {SIZE} or more",
        ),
        (["--max-vece", "50%"], "PASSED  no variable above --max-vece 50%"),
        (
            ["--max-uneven", "2"],
            rf"FAILED  1 variable above --max-uneven 2%; worst age, {SIZE} or more",
        ),
        (["--max-uneven", "0.02", "--strict"], rf"FAILED  1 .* 2%; worst age, {SIZE}"),
        (["--max-ece", "1.5%"], rf"FAILED  ECE of risk above --max-ece 1.5%: {SIZE} or more"),
        (["--max-ece", "20%"], "PASSED  ECE not above --max-ece 20%"),
        (["--max-gap", "20"], "PASSED  overall gap not above --max-gap 20%"),
        (["--max-gap", "0"], rf"FAILED  overall gap of risk above --max-gap 0%: {SIZE} or more"),
        (
            ["--fail-on", "evidence"],
            r"FAILED  evidence of uneven error along 1 variable \(--fail-on evidence\); worst age",
        ),
        (["--fail-on", "off"], r"FAILED  1 variable off \(--fail-on off\); worst age"),
        (
            ["--fail-on", "off", "--limit", "40"],
            r"PASSED  no variable off \(--fail-on off\)",
        ),
    ],
)
def test_gates(gate, said, biased):
    done = run(
        "audit", biased, *COLUMNS, "--variables", "age,noise", "--event", "positive", *gate, *QUICK
    )
    lines = done.stdout.splitlines()
    assert re.fullmatch(said, lines[-2])
    assert done.returncode == (1 if said.startswith("FAILED") else 0)
    assert re.fullmatch(r"4,000 rows, 2 variables in [\d.]+s", lines[-1])
    assert done.stdout.count("FAILED") + done.stdout.count("PASSED") == 1


@pytest.fixture(scope="session")
def biased(tmp_path_factory):
    """Probabilities that are too high by 3 points, and by far more at some ages."""
    rng = np.random.default_rng(0)
    age, rate = rng.random(4000), rng.uniform(0.2, 0.6, 4000)
    path = tmp_path_factory.mktemp("biased") / "rows.csv"
    columns = {
        "y": (rng.random(4000) < rate).astype(int),
        "p": np.clip(rate + 0.03 + 0.6 * (age - 0.5), 0, 1),
        "age": age,
        "noise": rng.normal(size=4000),
        "empty": pa.nulls(4000, pa.string()),
        "same": np.ones(4000),
    }
    csv.write_csv(pa.table(columns), path)
    return path


def test_several_gates(biased):
    gates = ["--max-gap", "10", "--max-ece", "1%", "--max-uneven", "1%"]
    done = run(
        "audit", biased, *COLUMNS, "--event", "positive", "--variables", "age", *gates, *QUICK
    )
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()[-4:-1]] == [
        "PASSED",
        "FAILED",
        "FAILED",
    ]


def test_a_gate_needs_more_than_the_value_above_the_limit(biased):
    """Only --strict fails a model whose interval holds the limit."""
    told = json.loads(run("audit", biased, *COLUMNS, "--variables", "noise", "--json").stdout)
    row = told["rows"][0]
    gaps = [claim["gap"] for claim in told["claims"].values()]
    ends = [max(claim["gap_low"], -claim["gap_high"]) for claim in told["claims"].values()]
    veces = [one["vece"] for one in (row, *row["others"])]
    eces = [claim["ece"] for claim in told["claims"].values()]
    for gate, low, value in (
        ("--max-vece", max(one["low"] for one in veces), max(one["debiased"] for one in veces)),
        ("--max-ece", max(one["low"] for one in eces), max(one["debiased"] for one in eces)),
        ("--max-gap", max(ends), max(map(abs, gaps))),
    ):
        assert low < value
        given = ["audit", biased, *COLUMNS, *QUICK, "--variables", "noise", gate]
        between = f"{50 * (low + value):.6f}%"
        assert run(*given, between).returncode == 0
        assert run(*given, between, "--strict").returncode == 1
        assert run(*given, f"{100 * low - 1e-3:.6f}%").returncode == 1


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("0.5", "--max-ece 0.5 may mean 0.5 or 50 points\nhint: write 0.5% or 50%"),
        ("1", "--max-ece 1 may mean 1 or 100 points\nhint: write 1% or 100%"),
        ("2,5%", "--max-ece 2,5% is not a size\nhint: write it in points, such as 2% or 0.5%"),
        ("-1", "--max-ece -1 is not a size"),
        ("nan", "--max-ece nan is not a size"),
        ("101", "--max-ece 101 is not a size"),
    ],
)
def test_sizes_that_are_not_clear(size, said, biased):
    done = run("audit", biased, *COLUMNS, "--max-ece", size)
    assert done.returncode == 2 and done.stderr.startswith(f"error: {said}") and not done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [("empty", "every value is missing"), ("same", "all rows have the same value")],
)
def test_a_gate_never_passes_what_it_cannot_judge(name, said, biased, tmp_path):
    out = tmp_path / "report.html"
    given = ["audit", biased, *COLUMNS, *QUICK, "--variables", f"noise,{name}"]
    assert run(*given).returncode == 0
    done = run(*given, "--max-uneven", "20%", "-o", out)
    assert done.returncode == 2 and not done.stdout and not out.exists()
    assert done.stderr.startswith(
        f"error: --variables names {name!r}, which cannot be judged: {said}\nhint: "
    )


def test_a_gate_with_too_few_rows(biased, tmp_path):
    rows = biased.read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(rows[:20]))
    given = ["audit", tmp_path / "few.csv", *COLUMNS, "--max-uneven", "2%"]
    done = run(*given, "--variables", "noise")
    assert (
        done.returncode == 2 and "'noise', which cannot be judged: there are too few" in done.stderr
    )
    done = run(*given, "--exclude", "empty,same,age")
    assert done.returncode == 2 and "no variable can be judged" in done.stderr


def test_lists_add_up(biased):
    given = ["--variables", "age", "--variables", "noise, same", "--variables", "age"]
    told = json.loads(run("audit", biased, *COLUMNS, *given, "--json").stdout)
    assert sorted(row["variable"] for row in told["rows"]) == ["age", "noise", "same"]
    given = ["--exclude", "age", "--exclude", "same,empty"]
    told = json.loads(run("audit", biased, *COLUMNS, *given, "--json").stdout)
    assert [row["variable"] for row in told["rows"]] == ["noise"]
    told = run("audit", biased, *COLUMNS, "--classes", "0", "--classes", "1", "--json")
    assert told.returncode == 0
    every = [one for command in main.commands.values() for one in command.params]
    assert all(one.multiple for one in every if one.metavar == "A,B,...")


def test_gate_with_json_keeps_stdout_to_the_document(folder):
    given = ["--variables", "age", "--max-vece", "1%", "--max-ece", "50%", "--json"]
    done = run("audit", "rows.csv", *COLUMNS, *given, cwd=folder)
    told = json.loads(done.stdout)
    assert done.returncode == 1 and told["passed"] is False
    assert [(one["gate"], one["limit"], one["failed"]) for one in told["gates"]] == [
        ("--max-ece", 0.5, []),
        ("--max-vece", 0.01, ["age"]),
    ]
    assert told["gates"][1]["value"] == told["rows"][0]["vece"]["low"]
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["PASSED", "FAILED"]


def test_outputs_never_replace_their_inputs(folder, calibrated, tmp_path):
    """Whatever name they are given by: the same path, a longer one, or a link."""
    for name in ("cal.json", "test.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "rows.json").write_text('{"y": 1, "p": 0.5, "age": 3}\n' * 9)
    for name in ("cal", "rows"):
        (tmp_path / f"{name}-link.json").symlink_to(f"{name}.json")
        (tmp_path / f"{name}-hard.json").hardlink_to(tmp_path / f"{name}.json")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for out in (
        "{}.json",
        "./{}.json",
        f"../{tmp_path.name}/{{}}.json",
        "{}-link.json",
        "{}-hard.json",
    ):
        for command, name, said in (
            (["apply", "cal.json", "test.csv"], "cal", "is the file of the calibrator"),
            (["calibrate", "rows.json", *COLUMNS], "rows", "is an input file"),
            (["audit", "rows.json", *COLUMNS], "rows", "is an input file"),
            (["compare", "rows.json", *COLUMNS], "rows", "is an input file"),
        ):
            done = run(*command, "-o", out.format(name), cwd=tmp_path)
            assert done.returncode == 2 and said in done.stderr
            assert "hint: write to another file" in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    done = run("apply", "cal.json", "test.csv", "-o", "test.csv", cwd=tmp_path)
    assert done.returncode == 0 and b"p_calibrated" in (tmp_path / "test.csv").read_bytes()[:60]
    (tmp_path / "part.csv").write_bytes(before["test.csv"])
    (tmp_path / "test.csv").write_bytes(before["test.csv"])
    done = run("apply", "cal.json", "part.csv", "test.csv", "-o", "part.csv", cwd=tmp_path)
    assert done.returncode == 2 and "'part.csv' is an input file" in done.stderr


def test_audit_writes_reports(folder, tmp_path):
    for name, start in {"r.html": "<!doctype html>", "r.md": "#"}.items():
        out = tmp_path / name
        done = run("audit", folder / "rows.csv", *COLUMNS, "--variables", "age", "-o", out)
        assert done.stdout.endswith(f"→ {out}\n")
        assert out.read_text(encoding="utf-8").startswith(start)
    bad = tmp_path / "r.pdf"
    done = run("audit", folder / "rows.csv", *COLUMNS, "--variables", "age", "-o", bad)
    assert done.returncode == 2 and "use .html or .md or .json" in done.stderr
    done = run("audit", folder / "rows.csv", *COLUMNS, "-o", tmp_path / "no" / "r.html")
    assert done.returncode == 2 and "make the folder first" in done.stderr


def test_standard_input(folder):
    text = (folder / "rows.csv").read_text()
    given = [*COLUMNS, "--variables", "age"]
    done = run("audit", "-", "--format", "csv", *given, given=text)
    assert done.returncode == 0 and re.search("^age +off", done.stdout, re.M)
    done = run("audit", "-", *given, given=text)
    assert done.stderr == "note: standard input read as comma-separated\n"
    done = run("audit", "-", folder / "rows.csv", "--format", "csv", *given, given=text)
    assert done.returncode == 2 and "give it alone" in done.stderr


def test_apply_to_standard_input(folder, calibrated, tmp_path):
    out = tmp_path / "o.jsonl"
    given = ["apply", "cal.json", "-", "--format", "csv", "-o", out]
    done = run(*given, cwd=folder, given="p,age\n0.5,40\n0.5,70\n", TMPDIR=str(tmp_path))
    assert done.returncode == 0 and len(out.read_text().splitlines()) == 2
    done = run(*given, cwd=folder, given="p,agee\n0.5,40\n", TMPDIR=str(tmp_path))
    assert done.stderr == ("error: no column 'age' in standard input\nhint: did you mean 'agee'?\n")
    assert [path.name for path in tmp_path.iterdir()] == ["o.jsonl"]


def test_more_than_two_classes_and_their_order(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 2000)
    y = np.array([3, 1, 2])[[rng.choice(3, p=one) for one in p]]
    table = pa.table({"y": y, "a": p[:, 0], "b": p[:, 1], "c": p[:, 2], "v": rng.random(2000)})
    parquet.write_table(table, tmp_path / "rows.parquet")
    given = ["rows.parquet", "--label", "y", "--prob", "a", "--prob", "b", "--prob", "c"]
    done = run("audit", *given, "--classes", "3,1,2", "--json", cwd=tmp_path)
    claims = json.loads(done.stdout)["claims"]
    assert list(claims) == ["confidence", "class 3", "class 1", "class 2"]
    assert all(abs(claim["gap"]) < 0.05 for claim in claims.values())
    done = run("audit", *given, "--classes", "x,1,2", cwd=tmp_path)
    assert done.returncode == 2 and "are not of the type of the label column, int64" in done.stderr


# ------------------------------------------------------------------ calibrate, apply, compare


def test_calibrate_apply_compare(folder, calibrated):
    first, second = calibrated
    assert first.returncode == 0 and "fitted on 3,000 rows → cal.json" in first.stdout
    assert "VariableCalibrator." in first.stdout and re.search(r"^age +\d", first.stdout, re.M)
    assert re.fullmatch(r"added p_calibrated to 3,000 rows in [\d.]+s → out.csv\n", second.stdout)
    out = csv.read_csv(folder / "out.csv")
    expected = vc.load(folder / "cal.json").predict_proba(out.select(["p"]), out.select(["age"]))
    np.testing.assert_array_equal(out["p_calibrated"], expected[:, 1])
    given = [
        "--label",
        "y",
        "--prob",
        "raw=p",
        "--prob",
        "tree=p_calibrated",
        "--event",
        "positive",
    ]
    done = run("compare", "out.csv", *given, "--variables", "age", cwd=folder)
    assert done.returncode == 0 and not done.stderr
    assert re.search(r"^VECE age +\d+\.\d  +\d+\.\d (fixed|better)$", done.stdout, re.M)
    assert "ECE and VECE in points" in done.stdout
    done = run("compare", "out.csv", *given, "--exclude", "noise,w,who", "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert {row["variable"] for row in told["rows"]} == {"", "age"}
    assert told["methods"] == ["raw", "tree"]
    done = run("compare", "out.csv", *given, "--variables", "age", "-o", "page.html", cwd=folder)
    assert done.returncode == 0 and done.stdout.endswith("\n→ page.html\n")
    assert "Before and after" in (folder / "page.html").read_text(encoding="utf-8")
    done = run("compare", "out.csv", *given, "-o", "page.pdf", cwd=folder)
    assert done.returncode == 2 and ".html" in done.stderr


def test_calibrate_by_score_alone_with_parameters(folder, tmp_path):
    out = tmp_path / "cal.json"
    given = ["--method", "histogram", "--param", "n_bins=4", "--param", "binning=uniform"]
    done = run("calibrate", folder / "cal.csv", *COLUMNS, *given, "--weight", "w", "-o", out)
    assert done.returncode == 0
    fitted = vc.load(out)
    assert fitted.get_params() == {"n_bins": 4, "binning": "uniform"}
    assert fitted.score_names_ == ("p",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--method", "tree"], "needs variables, but none is given"),
        (["--method", "beat"], "did you mean 'beta'?"),
        (
            ["--variables", "agee"],
            "no column 'agee' in 'cal.csv' (--variables)\nhint: did you mean 'age'?",
        ),
    ],
)
def test_calibrate_refuses(given, said, folder):
    done = run("calibrate", "cal.csv", *COLUMNS, *given, "-o", "never.json", cwd=folder)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "never.json").exists()


def test_calibrate_with_groups_agrees_with_the_library(folder, tmp_path):
    given = ["--variables", "age,noise", "--group", "who", "-o", tmp_path / "cal.json"]
    done = run("calibrate", folder / "cal.csv", *COLUMNS, *given)
    assert done.returncode == 0 and not done.stderr
    rows = csv.read_csv(folder / "cal.csv")
    v = rows.select(["age", "noise"])
    ours = vc.VariableCalibrator().fit(rows.select(["p"]), rows["y"], v, groups=rows["who"])
    saved = vc.load(tmp_path / "cal.json")
    np.testing.assert_array_equal(
        saved.predict_proba(rows.select(["p"]), v), ours.predict_proba(rows.select(["p"]), v)
    )


def test_calibrate_with_time_or_blocks(folder, tmp_path):
    rows = csv.read_csv(folder / "cal.csv")
    out = tmp_path / "cal.json"
    given = ["calibrate", folder / "cal.csv", *COLUMNS, "--variables", "age", "-o", out]
    assert run(*given, "--time", "noise").returncode == 0
    ours = vc.VariableCalibrator().fit(
        rows.select(["p"]), rows["y"], rows.select(["age"]), time=rows["noise"]
    )
    saved = vc.load(out)
    assert saved.judged_ == ours.judged_ and saved.judged_.how == "time"
    assert run(*given, "--blocks", "who").returncode == 0
    assert vc.load(out).judged_.how == "blocks"
    assert run(*given, "--same-blocks").returncode == 0
    assert vc.load(out).judged_.how == "random"
    done = run(*given, "--blocks", "who", "--same-blocks")
    assert done.returncode == 2 and "--blocks who and --same-blocks are both given" in done.stderr
    done = run(*given, "--time", "noise", "--method", "beta")
    assert done.returncode == 2 and "cannot use --time noise" in done.stderr


def test_calibrate_reports_problems_with_groups(tmp_path):
    rows = [f"{k % 2},{(k % 10) / 10},{k % 7},{k // 100 or ''},x" for k in range(500)]
    (tmp_path / "rows.csv").write_text("y,p,v,who,all\n" + "\n".join(rows))
    given = ["calibrate", "rows.csv", *COLUMNS, "-o", "cal.json"]
    done = run(*given, "--group", "whom", cwd=tmp_path)
    assert done.stderr == (
        "error: no column 'whom' in 'rows.csv' (--group)\nhint: did you mean 'who'?\n"
    )
    done = run(*given, "--variables", "v", "--group", "who", cwd=tmp_path)
    assert done.stderr == (
        "error: --group 'who' is missing: None at row 0 (100 such rows)\n"
        "hint: every row must belong to a group\n"
    )
    done = run(*given, "--method", "beta", "--group", "who", cwd=tmp_path)
    assert done.stderr == (
        "error: BetaCalibrator holds no rows out, so it cannot use --group who\n"
        "hint: leave --group out, or use --method auto\n"
    )
    assert not (tmp_path / "cal.json").exists()
    done = run(*given, "--variables", "v", "--group", "all", cwd=tmp_path)
    assert done.stderr == (
        "warning: groups holds 1 unit; at least 5 are needed to learn anything about others, "
        "so the scores stay as they are\n"
    )


def test_calibrate_refuses_before_it_makes_notes(folder):
    done = run("calibrate", "missing.csv", *COLUMNS, "-o", "never.json", cwd=folder)
    assert done.stderr.startswith("error: no file 'missing.csv'")
    done = run("calibrate", "cal.csv", *COLUMNS, "-o", "alone.json", cwd=folder)
    assert done.stderr == (
        "note: without --variables only the score is used; "
        "columns that could be given: --variables age,noise,w,who\n"
    )


@pytest.mark.parametrize("extension", ["csv", "parquet", "arrow", "jsonl"])
def test_calibrate_without_variables_names_those_it_could_use(folder, tmp_path, extension):
    rows = csv.read_csv(folder / "cal.csv").select(["y", "p", "age"])
    for k in range(9):
        rows = rows.append_column(f"x {k}", pa.array([k] * len(rows)))
    rows = rows.append_column("a,b", rows.column("age"))
    if extension == "csv":
        csv.write_csv(rows, tmp_path / "cal.csv")
    else:
        listed = pa.array([[1]] * len(rows))
        rows = rows.append_column("list", listed)
        if extension == "parquet":
            parquet.write_table(rows, tmp_path / "cal.parquet")
        elif extension == "arrow":
            feather.write_feather(rows, tmp_path / "cal.arrow")
        else:
            lines = "\n".join(map(json.dumps, rows.to_pylist()))
            (tmp_path / "cal.jsonl").write_text(lines, encoding="utf-8")
    given = ("calibrate", f"cal.{extension}", *COLUMNS, "-o", "cal.json")
    done = run(*given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    named = "'age,x 0,x 1,x 2,x 3,x 4,x 5,x 6'"
    assert done.stderr == (
        "note: without --variables only the score is used; "
        f"columns that could be given: --variables {named} and 2 more\n"
    )
    again = run(*given, "--variables", named.strip("'"), cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    rows.select(["y", "p"]).to_pandas().to_csv(tmp_path / "bare.csv", index=False)
    done = run("calibrate", "bare.csv", *COLUMNS, "-o", "cal.json", cwd=tmp_path)
    assert done.stderr.endswith("only the score is used; the file has no other columns\n")


def test_parameters_of_a_method():
    tree = _built(vc.TreeCalibrator, ("max_depth=4", "min_leaf=0.05"))
    assert (tree.max_depth, tree.min_leaf) == (4, 0.05)
    with pytest.raises(InputError, match="did you mean 'max_depth'"):
        _built(vc.TreeCalibrator, ("depth=3",))
    with pytest.raises(InputError, match="is not NAME=VALUE"):
        _built(vc.TreeCalibrator, ("max_depth",))


def test_unlabelled_rows(tmp_path):
    rows = [f"{'' if k % 5 == 0 else k % 2},{(k % 10) / 10},{k % 7}" for k in range(500)]
    (tmp_path / "rows.csv").write_text("y,p,v\n" + "\n".join(rows))
    given = ["rows.csv", *COLUMNS, "--variables", "v"]
    done = run("audit", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "error: the label column 'y' has no label: None at row 0 (100 such rows)\n"
        "hint: fill it in, or drop such rows with --drop-unlabelled\n"
    )
    assert (
        "100 rows without an outcome"
        in run("audit", *given, "--drop-unlabelled", cwd=tmp_path).stdout
    )
    done = run("calibrate", *given, "--drop-unlabelled", "-o", "cal.json", cwd=tmp_path)
    assert "fitted on 400 rows" in done.stdout


# ------------------------------------------------------------------ wrong input


def audit_of(name):
    return ["audit", name, *COLUMNS, "--variables", "age"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dmo"], "No such command 'dmo'\nhint: did you mean 'demo'?"),
        (["demo", "--nope"], "no option --nope\nhint: varcal demo --help"),
        (["demo", "extra"], "unexpected extra argument"),
        (["audit"], "Missing argument 'FILE...'\nhint: varcal audit --help"),
        (["audit", "rows.csv", "--lable", "y"], "no option --lable\nhint: did you mean --label?"),
        (audit_of("missing.csv"), "no file 'missing.csv'"),
        (audit_of("empty.csv"), "cannot read 'empty.csv' as csv: Empty CSV file"),
        (audit_of("header.csv"), "the file has no rows"),
        (audit_of("cut.parquet"), "cannot read 'cut.parquet' as parquet"),
        (audit_of("rows.xlsx"), "unknown file extension: 'rows.xlsx'"),
        (["audit", "rows.csv", "--label", "yy", "--prob", "p"], "hint: did you mean 'y'?"),
        (["audit", "rows.csv", "--label", "age", "--prob", "p"], "the label column 'age' holds 61"),
        (["audit", "rows.csv", "--label", "y", "--prob", "age"], "--prob 'age' is outside [0, 1]"),
        (["audit", "rows.csv", *COLUMNS, "--variables", "agee"], "did you mean 'age'?"),
        (["audit", "rows.csv", *COLUMNS, "--variables", "age,,p"], "has an empty name"),
        (["audit", "rows.csv", *COLUMNS, "--max-vece", "5 %%"], "such as 2% or 0.5%"),
        (["compare", "rows.csv", "--label", "y", "--prob", "p", "--prob", "p"], "'p' twice"),
        (["apply", "odd.json", "rows.csv", "-o", "o.csv"], "do not match its checksum"),
        (
            ["apply", "cal.json", "out.csv", "-o", "o.csv"],
            "choose another name for the new column with --column",
        ),
        (["apply", "cal.json", "test.csv", "-o", "no/o.csv"], "cannot write 'no/o.csv'"),
        (["apply", "cal.json", "test.csv", "-o", "o.doc"], "unknown file extension"),
        (["apply", "cal.json", "missing.csv", "-o", "o.csv"], "no file 'missing.csv'"),
    ],
)
def test_bad_input_gives_two_lines(arguments, said, folder, calibrated):
    (folder / "empty.csv").write_text("")
    (folder / "rows.xlsx").write_text("")
    (folder / "header.csv").write_text("y,p,age\n")
    whole = (folder / "rows.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[:9000])
    saved = (folder / "cal.json").read_text()
    (folder / "odd.json").write_text(saved.replace("0.1", "0.2", 1))
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("error: ") and said in done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"]
    assert not (folder / "o.csv").exists()


def test_everything_fits_in_80_columns(folder, calibrated):
    """All help, and all results but those that name long columns or files."""
    texts = [run("--help").stdout, *(done.stdout for done in calibrated)]
    texts += [run(name, "--help").stdout for name in main.commands]
    sets = [text for k in range(9) for text in ("--prob", f"the_set_{k}=p")]
    compared = run("compare", "rows.csv", "--label", "y", *sets, "--variables", "age", cwd=folder)
    texts.append(compared.stdout)
    assert compared.stdout.count("VECE age") == 2  # the sets need two blocks
    for text in texts:
        assert text and max(map(len, text.splitlines())) <= 80


@pytest.fixture
def add_command(monkeypatch):
    """Return a function that adds a command to the program for the duration of a test."""
    return lambda body: monkeypatch.setitem(
        main.commands, body.__name__, click.command(body.__name__)(body)
    )


def test_a_crash_is_not_a_failed_gate(add_command):
    @add_command
    def boom():
        1 / 0  # noqa: B018

    done = run("boom")
    assert done.returncode == 3 and "ZeroDivisionError" in done.stderr
    assert "this is a bug in varcal" in done.stderr


def test_a_run_in_process_leaves_nothing_behind(add_command):
    @add_command
    def careful():
        warnings.warn("careful", VarcalWarning, stacklevel=1)

    def settings():
        handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        streams = sys.stdin, sys.stdout, sys.stderr
        told = list(warnings.filters), warnings.showwarning
        return handlers, streams, told, Path.cwd(), dict(os.environ)

    before = settings()
    assert run("careful", SOME="thing").stderr == "warning: careful\n"
    assert settings() == before


# ------------------------------------------------------------------ interrupts, pipes, terminals


def test_interrupted_run_leaves_no_file(folder, calibrated, tmp_path):
    source = tmp_path / "big.csv.gz"
    source.write_bytes(gzip.compress(b"p,age\n" + b"0.5,40\n" * 1_500_000, 1))
    process = subprocess.Popen(
        [*COMMAND, "apply", str(folder / "cal.json"), str(source), "-o", str(tmp_path / "out.csv")],
        env=unmeasured(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob(".varcal-*.tmp")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130 and "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["big.csv.gz"]


def test_a_closed_pipe(folder):
    command = [*COMMAND, "audit", "rows.csv", *COLUMNS, *QUICK]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, text=True
    )
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait() == 141 and not said


def in_terminal(arguments, cwd, **env):
    """Run with standard output and error on a terminal; return what it shows."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=slave, stderr=slave, cwd=cwd, env=os.environ | env
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            more = os.read(master, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(master)
    process.wait()
    return shown.decode()


def test_colour_only_for_terminals_that_want_it(folder):
    gate = ["audit", "rows.csv", *COLUMNS, "--variables", "age", "--max-vece", "0", *QUICK]
    assert "\x1b[31m" in in_terminal(gate, folder)
    assert "\x1b" not in in_terminal(gate, folder, NO_COLOR="1")


def test_progress_on_a_terminal(folder, calibrated, tmp_path):
    out = str(tmp_path / "o.csv")
    shown = in_terminal(["apply", "cal.json", "test.csv", "-o", out], folder, TERM="xterm")
    assert "Applying" in shown and "added p_calibrated to 3,000 rows" in shown
    given = ["calibrate", "cal.csv", *COLUMNS, "--variables", "age", "-o", str(tmp_path / "c.json")]
    shown = in_terminal(given, folder, TERM="xterm")
    assert "Fitting VariableCalibrator on 3,000 rows" in shown and "fitted on 3,000" in shown


def test_messages_are_broken_between_words_on_a_terminal(folder):
    shown = in_terminal(["audit", "rows.csv", "--label", "y", "--prob", "age"], folder)
    lines = shown.splitlines()
    assert lines[0].startswith("error: ") and max(map(len, lines)) <= 80
    assert [line[:6] for line in lines if not line.startswith(" ")] == ["error:", "hint: "]


def test_completion_is_offered():
    env = {"_VARCAL_COMPLETE": "bash_source"}
    assert "_varcal_completion" in run(**env).stdout
    words = {"_VARCAL_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    done = run(COMP_WORDS="varcal calibrate --method te", **words)
    assert "temperature" in done.stdout


# ------------------------------------------------------------------ encodings


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_output_in_any_encoding(encoding):
    code = (
        "import sys, varcal.cli as c\n"
        "@c.main.command()\n"
        "def say():\n"
        "    print('−0.5 × é')\n"
        "c.main(['say'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        check=False,
    )
    expected = {"ascii": "-0.5 x ?", "cp1252": "-0.5 × é", "utf-8": "−0.5 × é"}[encoding]
    assert done.returncode == 0 and done.stdout.decode(encoding).strip() == expected


def test_errors_and_warnings_of_the_library_are_plain_lines(add_command):
    @add_command
    def boom():
        warnings.warn("careful", VarcalWarning, stacklevel=1)
        warnings.warn("somebody else", FutureWarning, stacklevel=1)
        raise InputError("p is odd", "even it")

    done = run("boom")
    assert done.returncode == 2
    assert done.stderr == "warning: careful\nerror: p is odd\nhint: even it\n"


def shape(text):
    """Return what must be the same on every machine: all but digits and the width of columns.

    After a repair, errors may be close to the limit of noise, so both verdicts count as the same.
    """
    text = re.sub(r"\b(fixed|better)\b", "improved", text)
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]+(e-\d+)?", "#", text)).strip()


def said_by(command):
    """Return all that a line of the guide shows; it may end in `| tail -n`."""
    line, _, last = command.partition(" | tail -")
    program, *arguments = shlex.split(line)
    assert program == "varcal" and "|" not in arguments, command
    done = run(*arguments)
    lines = done.stdout.splitlines(keepends=True)
    return done.stderr + "".join(lines[-int(last) :] if last else lines)


def test_guide_shows_real_output(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names, commands = {}, 0
    for language, block in re.findall(r"^```(python|console)\n(.*?)^```", page, re.M | re.S):
        if language == "python":
            exec(block, names)
            continue
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            assert shape(said_by(command)) == shape(shown), command
            commands += 1
    assert commands >= 8
