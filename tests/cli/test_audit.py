"""`varcal audit`: what it prints and writes, and its gates."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import varcal as vc
from cases.command_line import COLUMNS, run

QUICK = ["--ladder", "none"]
SIZE = r"\d+\.\d"


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A right model, one 20 points too high for all, and one too high at some ages."""
    found = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    n = 4000
    age, rate = rng.random(n), rng.uniform(0.2, 0.6, n)
    rows = {
        "y": (rng.random(n) < rate).astype(int),
        "age": age,
        "noise": rng.normal(size=n),
        "empty": pa.nulls(n, pa.string()),
        "same": np.ones(n),
    }
    tilted = np.clip(rate + 0.03 + 0.6 * (age - 0.5), 0, 1)
    for name, p in {"right": rate, "high": rate + 0.2, "tilted": tilted}.items():
        for ending, size in {"": n, "-few": 60}.items():
            csv.write_csv(pa.table(rows | {"p": p})[:size], found / f"{name}{ending}.csv")
    return found


def test_verdict_repair_and_next_steps(folder):
    done = run("audit", "rows.parquet", *COLUMNS, "--exclude", "w,who", cwd=folder)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("REPAIR: VARIABLES  P(y = yes) is right on average, wrong for")
    assert re.search(r"^> variables  ", done.stdout, re.M)
    assert re.search(r"^age +x +\d+\.\d \(\d+\.\d, \d+\.\d\) ", done.stdout, re.M)
    assert "tags (cannot be a variable: it is of type List" in " ".join(done.stdout.split())
    assert "varcal calibrate … --method variables -o repair.json" in done.stdout
    assert re.fullmatch(r"6,000 rows, 2 variables in [\d.]+s; repairs in [\d.]+s", lines[-1])
    assert "\x1b" not in done.stdout and max(map(len, lines)) <= 80


def test_audit_agrees_with_the_library(folder):
    given = [*COLUMNS, *QUICK, "--variables", "age", "--weight", "w", "--group", "who"]
    given += ["--pos-label", "yes", "--relative-limit", "20%", "--json"]
    done = run("audit", "rows.csv", *given, cwd=folder)
    table = csv.read_csv(folder / "rows.csv")
    names = {"sample_weight": "w", "groups": "who", "pos_label": "yes"}
    found = vc.audit("y", "p", ["age"], data=table, relative_limit=0.2, ladder="none", **names)
    told, expected = json.loads(done.stdout), json.loads(json.dumps(found.to_dict()))
    assert done.returncode == 0 and not done.stderr
    for one in (*expected["rows"], expected["targets"]["P(y = yes)"]):
        one.pop("table", None)
        one.pop("score", None)
    assert told == expected | {"gates": [], "passed": True}


@pytest.mark.parametrize("name", ["right", "high", "tilted", "right-few", "high-few"])
def test_the_gate_follows_the_verdict(name, models):
    given = ["audit", models / f"{name}.csv", *COLUMNS, *QUICK, "--exclude", "empty,same"]
    verdict = json.loads(run(*given, "--json").stdout)["verdict"]
    assert (verdict == "repair") == name.startswith(("high", "tilted"))
    done = run(*given, "--gate")
    if name == "right-few":
        assert done.returncode == 2 and "error: no variable can be judged" in done.stderr
        return
    word = "FAILED" if verdict == "repair" else "PASSED"
    assert f"\n{word}  the verdict is {verdict} (--gate)\n" in done.stdout
    assert done.returncode == (word == "FAILED")


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        (["--max-uneven", "2"], f"uneven error of 1 variable above 2% .*; worst age, {SIZE} or"),
        (["--max-uneven", "50%"], "not above"),
        (["--max-by-score", "1.5%"], rf"error by score above 1.5% .*; worst P\(y = 1\), {SIZE} or"),
        (["--max-by-score", "20%"], "not above"),
        (["--max-average", "0"], rf"average gap above 0% .*; worst P\(y = 1\), {SIZE} or more$"),
        (["--max-average", "20"], "not above"),
        (["--fail-on", "evidence"], r"1 variable with evidence .*; first age$"),
        (["--fail-on", "off"], r"1 variable above the limit \(--fail-on off\); first age$"),
        (["--fail-on", "off", "--limit", "40"], "no variable"),
    ],
)
def test_gates_on_single_figures(gate, said, models):
    given = ["audit", models / "tilted.csv", *COLUMNS, *QUICK, "--variables", "age,noise"]
    done = run(*given, *gate)
    passed = said.startswith(("no", "not"))
    assert done.returncode == (not passed) and max(map(len, done.stdout.splitlines())) <= 80
    text = done.stdout.replace("\n        ", " ")  # long lines are broken
    assert re.findall("^(PASSED|FAILED)", text, re.M) == ["PASSED" if passed else "FAILED"]
    assert re.search(f"^(PASSED|FAILED)  .*{said}", text, re.M)
    warned = passed and "--limit" not in gate  # the verdict is repair
    assert ("\nWARNING  the verdict is repair" in text) == warned


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("0.5", "0.5 may mean 0.5 or 50 points\nhint: write 0.5% or 50%"),
        ("1", "1 may mean 1 or 100 points\nhint: write 1% or 100%"),
        ("2,5%", "2,5% is not a size\nhint: write it in points, such as 2% or 0.5%"),
        *((size, f"{size} is not a size") for size in ("-1", "nan", "101")),
    ],
)
def test_sizes_that_are_not_clear(size, said, models):
    done = run("audit", models / "right.csv", *COLUMNS, "--max-uneven", size)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith(f"error: --max-uneven {said}")


@pytest.mark.parametrize(
    ("file", "name", "said"),
    [
        ("right", "empty", "every value is missing"),
        ("right", "same", "all rows have the same value"),
        ("right-few", "noise", "there are too few rows"),
    ],
)
def test_a_gate_never_passes_what_it_cannot_judge(file, name, said, models, tmp_path):
    out = tmp_path / "report.html"
    given = ["audit", models / f"{file}.csv", *COLUMNS, *QUICK, "--variables", f"{name},age"]
    assert run(*given).returncode == 0
    for gate in (["--gate"], ["--max-uneven", "20%"]):
        done = run(*given, *gate, "-o", out)
        assert done.returncode == 2 and not done.stdout and not out.exists()
        assert f"{name!r}, which cannot be judged: {said}\nhint: " in done.stderr


def test_gates_with_json_keep_stdout_to_the_document(models):
    given = [*COLUMNS, *QUICK, "--variables", "age", "--gate", "--max-uneven", "1%"]
    done = run("audit", models / "tilted.csv", *given, "--max-by-score", "50%", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and told["passed"] is False
    assert [(one["gate"], one["limit"], one["failed"]) for one in told["gates"]] == [
        ("--gate", "repair", []),
        ("--max-by-score", 0.5, []),
        ("--max-uneven", 0.01, ["age"]),
    ]
    assert told["gates"][2]["value"] == told["rows"][0]["uneven"]["low"]
    assert [line[:6] for line in done.stderr.splitlines()] == ["FAILED", "PASSED", "FAILED"]
