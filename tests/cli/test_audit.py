"""`varcal audit`: what it prints and writes, and its gates."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import varcal as vc
from cases.command_line import COLUMNS, run

QUICK = ["--ladder", "none"]


def test_audit_ranks_and_explains(folder):
    done = run("audit", "rows.parquet", *COLUMNS, "--exclude", "w,who", cwd=folder)
    assert done.returncode == 0
    assert "Not audited: tags (cannot be a variable: it is of type List" in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("REPAIR: VARIABLES  P(y = yes) is ")
    assert re.search(r"^age +x +\d\.\d \(\d\.\d, \d+\.\d\)", done.stdout, re.M)
    assert re.search(r"^> variables ", done.stdout, re.M)
    assert "uneven error at most: noise" in done.stdout
    assert re.fullmatch(r"6,000 rows, 2 variables in [\d.]+s; repairs in [\d.]+s", lines[-1])
    assert "\x1b" not in done.stdout


def test_columns_left_out_and_brought_back(folder):
    given = ["audit", "rows.csv", *COLUMNS, *QUICK, "--json"]
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
    done = run(*given, "--protected", "noise", cwd=folder)
    assert re.search("^noise ", done.stdout, re.M) and "(not noise)" in done.stdout
    done = run(*given, *QUICK, cwd=folder)
    assert done.returncode == 0
    assert "Repair it needs" not in done.stdout and "repairs in" not in done.stdout
    done = run(*given, "--protected", "agee", cwd=folder)
    assert done.stderr.startswith("error: no column 'agee' in 'rows.csv' (--protected)\n")


def test_audit_agrees_with_the_library(folder):
    given = [*COLUMNS, "--variables", "age", "--weight", "w", "--group", "who"]
    done = run("audit", "rows.csv", *given, *QUICK, "--pos-label", "yes", "--json", cwd=folder)
    told = json.loads(done.stdout)
    table = csv.read_csv(folder / "rows.csv")
    found = vc.audit("y", "p", ["age"], data=table, sample_weight="w", groups="who", ladder="none")
    assert done.returncode == 0 and not done.stderr
    (row,), (mine,) = told["rows"], found.to_dict()["rows"]
    assert row == {name: value for name, value in mine.items() if name != "table"}
    assert told["verdict"] == found.verdict
    assert told["targets"]["P(y = yes)"]["gap"] == found.gap
    assert told["targets"]["P(y = yes)"]["by_score"]["debiased"] == found.by_score.debiased
    assert told["passed"] is True and told["gates"] == []


SIZE = r"\d+\.\d"


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        (["--gate"], r"FAILED  the verdict is repair \(--gate\)"),
        (["--gate", "--limit", "40"], r"PASSED  the verdict is watch \(--gate\)"),
        (
            ["--max-uneven", "2"],
            rf"FAILED  uneven error of 1 variable above 2% \(--max-uneven\); worst age, {SIZE} .*",
        ),
        (["--max-uneven", "0.02", "--strict"], rf"FAILED  .* above 2% .*; worst age, {SIZE}"),
        (
            ["--max-by-score", "1.5%"],
            rf"FAILED  error by score above 1.5% \(--max-by-score\); worst P\(y = 1\), {SIZE} .*",
        ),
        (["--max-average", "0"], rf"FAILED  average gap above 0% .*; worst P\(y = 1\), {SIZE} .*"),
        (
            ["--fail-on", "evidence"],
            r"FAILED  1 variable with evidence \(--fail-on evidence\); .* age",
        ),
        (["--fail-on", "off"], r"FAILED  1 variable above the limit \(--fail-on off\); first age"),
    ],
)
def test_gates(gate, said, biased):
    done = run("audit", biased, *COLUMNS, "--variables", "age,noise", *gate, *QUICK)
    lines = done.stdout.splitlines()
    assert re.fullmatch(said, lines[-2])
    assert done.returncode == (1 if said.startswith("FAILED") else 0)
    assert re.fullmatch(r"4,000 rows, 2 variables in [\d.]+s", lines[-1])
    assert done.stdout.count("FAILED") + done.stdout.count("PASSED") == 1


def test_a_gate_that_does_not_look_at_what_is_wrong_says_so(biased):
    given = ["audit", biased, *COLUMNS, *QUICK, "--variables", "age,noise"]
    done = run(*given, "--max-average", "20", "--max-by-score", "50%")
    lines = done.stdout.splitlines()[-4:-1]
    assert done.returncode == 0
    assert [line.split()[0] for line in lines] == ["PASSED", "PASSED", "WARNING"]


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


def test_a_gate_needs_more_than_the_value_above_the_limit(biased):
    """Only --strict fails a model whose interval holds the limit."""
    quick = ["audit", biased, *COLUMNS, *QUICK, "--variables", "age,noise"]
    told = json.loads(run(*quick, "--json").stdout)
    (target,), row = told["targets"].values(), told["rows"][0]
    for gate, low, value in (
        ("--max-uneven", row["low"], row["uneven"]["debiased"]),
        ("--max-by-score", target["by_score"]["low"], target["by_score"]["debiased"]),
        ("--max-average", max(target["gap_low"], -target["gap_high"]), abs(target["gap"])),
    ):
        assert low < value
        between = f"{50 * (low + value):.6f}%"
        assert run(*quick, gate, between).returncode == 0
        assert run(*quick, gate, between, "--strict").returncode == 1
        assert run(*quick, gate, f"{100 * low - 1e-3:.6f}%").returncode == 1


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("0.5", "--max-by-score 0.5 may mean 0.5 or 50 points\nhint: write 0.5% or 50%"),
        ("1", "--max-by-score 1 may mean 1 or 100 points\nhint: write 1% or 100%"),
        ("2,5%", "--max-by-score 2,5% is not a size\nhint: write it in points, such as 2% or 0.5%"),
        ("-1", "--max-by-score -1 is not a size"),
        ("nan", "--max-by-score nan is not a size"),
        ("101", "--max-by-score 101 is not a size"),
    ],
)
def test_sizes_that_are_not_clear(size, said, biased):
    done = run("audit", biased, *COLUMNS, "--max-by-score", size)
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
    given = ["audit", tmp_path / "few.csv", *COLUMNS, *QUICK, "--gate"]
    done = run(*given, "--variables", "noise")
    assert (
        done.returncode == 2 and "'noise', which cannot be judged: there are too few" in done.stderr
    )
    done = run(*given, "--exclude", "empty,same,age")
    assert done.returncode == 2 and "no variable can be judged" in done.stderr


def test_gate_with_json_keeps_stdout_to_the_document(folder):
    given = ["--variables", "age", "--max-uneven", "1%", "--max-by-score", "50%", "--json"]
    done = run("audit", "rows.csv", *COLUMNS, *QUICK, *given, cwd=folder)
    told = json.loads(done.stdout)
    assert done.returncode == 1 and told["passed"] is False
    assert [(one["gate"], one["limit"], one["failed"]) for one in told["gates"]] == [
        ("--max-by-score", 0.5, []),
        ("--max-uneven", 0.01, ["age"]),
    ]
    assert told["gates"][1]["value"] == told["rows"][0]["low"]
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["PASSED", "FAILED"]


def test_audit_writes_reports(folder, tmp_path):
    for name, start in {"r.html": "<!doctype html>", "r.md": "#"}.items():
        out = tmp_path / name
        done = run("audit", folder / "rows.csv", *COLUMNS, "--variables", "age", *QUICK, "-o", out)
        assert done.stdout.endswith(f"→ {out}\n")
        assert out.read_text(encoding="utf-8").startswith(start)
    bad = tmp_path / "r.pdf"
    done = run("audit", folder / "rows.csv", *COLUMNS, "--variables", "age", "-o", bad)
    assert done.returncode == 2 and "use .html or .md or .json" in done.stderr
    done = run("audit", folder / "rows.csv", *COLUMNS, "-o", tmp_path / "no" / "r.html")
    assert done.returncode == 2 and "make the folder first" in done.stderr


def test_standard_input(folder):
    text = (folder / "rows.csv").read_text()
    given = [*COLUMNS, *QUICK, "--variables", "age"]
    done = run("audit", "-", "--format", "csv", *given, given=text)
    assert done.returncode == 0 and re.search("^age +x", done.stdout, re.M)
    done = run("audit", "-", *given, given=text)
    assert done.stderr == "note: standard input read as comma-separated\n"
    done = run("audit", "-", folder / "rows.csv", "--format", "csv", *given, given=text)
    assert done.returncode == 2 and "give it alone" in done.stderr


def test_more_than_two_classes_and_their_order(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 2000)
    y = np.array([3, 1, 2])[[rng.choice(3, p=one) for one in p]]
    table = pa.table({"y": y, "a": p[:, 0], "b": p[:, 1], "c": p[:, 2], "v": rng.random(2000)})
    parquet.write_table(table, tmp_path / "rows.parquet")
    given = ["rows.parquet", "--label", "y", "--prob", "a", "--prob", "b", "--prob", "c"]
    done = run("audit", *given, *QUICK, "--classes", "3,1,2", "--json", cwd=tmp_path)
    targets = json.loads(done.stdout)["targets"]
    assert list(targets) == ["top class", "P(y = 3)", "P(y = 1)", "P(y = 2)"]
    assert all(abs(one["gap"]) < 0.05 for one in targets.values())
    done = run("audit", *given, "--classes", "x,1,2", cwd=tmp_path)
    assert done.returncode == 2 and "are not of the type of the label column, int64" in done.stderr
