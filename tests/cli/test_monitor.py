"""`varcal monitor`: one line and an exit code per batch, for cron."""

import json

import pyarrow as pa
import pytest
from pyarrow import csv

import varcal as vc
from cases.command_line import COLUMNS, run
from cases.monitors import make_rows


@pytest.fixture
def folder(tmp_path):
    """Rows to choose bins from, and days of which the last three are off."""
    csv.write_csv(pa.table(make_rows(3000, seed=50)), tmp_path / "first.csv")
    for day in range(1, 7):
        rows = make_rows(1500, shift=0.5 if day > 3 else 0, seed=day)
        csv.write_csv(pa.table(rows), tmp_path / f"2026-11-0{day}.csv")
    return tmp_path


def start(folder, *more):
    done = run("monitor", "init", "state.json", "first.csv", *COLUMNS, *more, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def update(folder, day, *more):
    return run("monitor", "update", "state.json", f"2026-11-0{day}.csv", *more, cwd=folder)


def test_every_batch_is_one_line_and_an_alarm_is_exit_code_4(folder):
    assert start(folder).stdout.startswith("watching ")
    for day in (1, 2, 3):
        done = update(folder, day)
        assert done.returncode == 0
        assert done.stdout.startswith(f"2026-11-0{day}: No alarm after {day} batch")
        assert done.stdout.count("\n") == 1
    done = update(folder, 4, "-o", "page.html")
    assert done.returncode == 4
    assert done.stdout.startswith("2026-11-04: Alarm: too low by ")
    assert done.stdout.count("\n") == 1 and done.stdout.endswith(", since 2026-11-04.\n")
    assert "Too low where" in (folder / "page.html").read_text()
    assert update(folder, 5).returncode == 4
    note = ["--note", "labels of one clinic"]
    known = run("monitor", "acknowledge", "state.json", *note, cwd=folder)
    assert known.returncode == 0 and known.stdout.startswith("Known alarm: ")
    done = update(folder, 6, "--json")
    assert done.returncode == 0
    status = json.loads(done.stdout)
    assert status["alarm"] and status["acknowledged"] and status["where"]["variable"] == "age"
    over = run("monitor", "reset", "state.json", cwd=folder)
    assert (over.returncode, over.stdout) == (0, "No alarm: no batch yet.\n")
    done = run("monitor", "report", "state.json", "-o", "page.md", cwd=folder)
    assert done.returncode == 0
    assert "labels of one clinic" in (folder / "page.md").read_text()


def test_sums_of_workers_are_one_batch(folder):
    start(folder)
    monitor = vc.load(folder / "state.json")
    for k in range(3):
        rows = csv.read_csv(folder / f"2026-11-0{k + 1}.csv")
        vc.collect(rows, monitor.bins).save(folder / f"worker-{k}.json")
    names = [f"worker-{k}.json" for k in range(3)]
    unnamed = run("monitor", "update", "state.json", *names, cwd=folder)
    assert unnamed.returncode == 2 and "the batch has no name" in unnamed.stderr
    mixed = run("monitor", "update", "state.json", names[0], "first.csv", "--id", "1", cwd=folder)
    assert mixed.returncode == 2 and "give files of one kind" in mixed.stderr
    done = run("monitor", "update", "state.json", *names, "--id", "1", cwd=folder)
    assert done.returncode == 0 and "(4,500 rows)" in done.stdout
    done = run("monitor", "update", "state.json", "worker-[02].json", "--id", "2", cwd=folder)
    assert "(7,500 rows)" in done.stdout
