"""`varcal monitor`: one line and an exit code per batch, for cron."""

import json

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

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


def test_a_repeated_batch_is_refused_and_the_state_stays(folder):
    start(folder)
    update(folder, 2)
    before = (folder / "state.json").read_bytes()
    for day, what in ((2, "already counted"), (1, "the latest batch is '2026-11-02'")):
        done = update(folder, day)
        assert done.returncode == 2 and what in done.stderr and "--id is" in done.stderr
    broken = run("monitor", "update", "state.json", "absent.csv", cwd=folder)
    assert broken.returncode == 2
    (folder / "day.csv").write_text("y,p,age\n1,0.5,30\n")
    lacking = run("monitor", "update", "state.json", "day.csv", "--id", "2026-12-01", cwd=folder)
    assert lacking.returncode == 2 and "no column 'job'" in lacking.stderr
    assert (folder / "state.json").read_bytes() == before


def test_sums_of_workers_are_one_batch(folder):
    start(folder)
    monitor = vc.load(folder / "state.json")
    for k in range(3):
        rows = csv.read_csv(folder / f"2026-11-0{k + 1}.csv")
        ending = ("json", "parquet")[k % 2]
        vc.collect(rows, monitor.bins).save(folder / f"worker-{k}.{ending}")
    names = ["worker-0.json", "worker-1.parquet", "worker-2.json"]
    unnamed = run("monitor", "update", "state.json", *names, cwd=folder)
    assert unnamed.returncode == 2 and "the batch has no name" in unnamed.stderr
    mixed = run("monitor", "update", "state.json", names[0], "first.csv", "--id", "1", cwd=folder)
    assert mixed.returncode == 2 and "give files of one kind" in mixed.stderr
    done = run("monitor", "update", "state.json", *names, "--id", "1", cwd=folder)
    assert done.returncode == 0 and "(4,500 rows)" in done.stdout
    done = run("monitor", "update", "state.json", "worker-*.json", "--id", "2", cwd=folder)
    assert "(7,500 rows)" in done.stdout


def test_settings_of_a_monitor(folder):
    start(folder, "--limit", "3%", "--arl", "5000", "--event", "positive", "--exclude", "job")
    monitor = vc.load(folder / "state.json")
    assert (monitor.limit, monitor.arl, monitor.alpha) == (0.03, 5000, None)
    assert monitor._cells.variables == ("age",)
    assert {cell.claim for cell in monitor._cells.cells} == {"probability"}
    again = run("monitor", "init", "state.json", "first.csv", *COLUMNS, cwd=folder)
    assert again.returncode == 2 and "holds another monitor" in again.stderr
    both = ["--alpha", "0.01", "--arl", "50"]
    wrong = run("monitor", "init", "new.json", "first.csv", *COLUMNS, *both, cwd=folder)
    assert wrong.returncode == 2 and "--alpha and arl are both given" in wrong.stderr
    done = run("monitor", "init", "ref.json", "first.csv", *COLUMNS, "--reference", cwd=folder)
    assert done.returncode == 0 and "limits come from a reference" in done.stderr
    assert vc.load(folder / "ref.json").has_reference


def test_a_report_never_replaces_the_state_or_the_batch(folder):
    start(folder)
    before = (folder / "state.json").read_bytes()
    for command in (["report", "state.json"], ["update", "state.json", "2026-11-01.csv"]):
        done = run("monitor", *command, "-o", "state.json", cwd=folder)
        assert done.returncode == 2 and "'state.json' is an input file" in done.stderr
    monitor = vc.load(folder / "state.json")
    vc.collect(make_rows(500), monitor.bins).save(folder / "sums-1.json")
    given = ["sums-*.json", "--id", "1", "-o", "sums-1.json"]
    done = run("monitor", "update", "state.json", *given, cwd=folder)
    assert done.returncode == 2 and "'sums-1.json' is an input file" in done.stderr
    assert (folder / "state.json").read_bytes() == before


def test_a_batch_whose_report_cannot_be_written_is_not_counted(folder):
    start(folder)
    before = (folder / "state.json").read_bytes()
    (folder / "page.html").mkdir()
    done = update(folder, 4, "-o", "page.html")
    assert done.returncode == 2 and "it is a folder" in done.stderr
    assert (folder / "state.json").read_bytes() == before
    assert update(folder, 4).returncode == 4


def test_rows_are_told_from_sums_and_a_file_names_its_batch(folder):
    start(folder)
    rows = csv.read_csv(folder / "2026-11-01.csv")
    parquet.write_table(rows, folder / "day.1.parquet")
    done = run("monitor", "update", "state.json", "day.1.parquet", cwd=folder)
    assert done.stdout.startswith("day.1: No alarm after 1 batch (1,500 rows)"), done.stderr
    (folder / "day.2.json").write_text("\n".join(map(json.dumps, rows.slice(0, 200).to_pylist())))
    done = run("monitor", "update", "state.json", "day.2.json", "--format", "jsonl", cwd=folder)
    assert done.stdout.startswith("day.2: No alarm after 2 batches (1,700 rows)"), done.stderr


def test_a_state_that_does_not_exist_is_said_to_be_missing(folder):
    done = run("monitor", "update", "state.json", "2026-11-01.csv", cwd=folder)
    assert done.returncode == 2 and "No such file" in done.stderr
    assert not (folder / ".state.json.lock").exists()


def test_a_hint_says_which_options_are_those_of_init(folder):
    start(folder)
    rows = make_rows(3)
    lines = [f"{rows['p'][k]},{rows['age'][k]},{rows['job'][k]}," for k in range(3)]
    (folder / "day.csv").write_text("\n".join(["p,age,job,y", *lines]))
    done = run("monitor", "update", "state.json", "day.csv", cwd=folder)
    assert done.returncode == 2 and "has no label" in done.stderr
    assert "--drop-unlabelled is an option of varcal monitor init" in done.stderr
