"""Saved monitors: the same after loading, never half written, never overwritten for others."""

import signal
import subprocess
import sys
import time

import pytest

import varcal as vc
from cases.monitors import assert_same_state, make_bins, make_rows
from varcal._monitor import monitor_file
from varcal._monitor.monitor_file import monitor_in_turn
from varcal.exceptions import InputError


@pytest.fixture
def monitor():
    monitor = vc.Monitor(make_bins())
    monitor.update(make_rows(400), id=1)
    return monitor


@pytest.mark.parametrize("kind", ["plain", "weights", "groups", "reference"])
def test_a_loaded_monitor_goes_on_as_the_saved_one(kind, tmp_path):
    rows = make_rows(
        1000, 0.4, w=lambda rng, n: rng.random(n) + 0.5, unit=lambda rng, n: rng.permutation(n) // 4
    )
    options = {"weights": {"sample_weight": "w", "weight_cap": 2}, "groups": {"groups": "unit"}}
    bins = vc.make_bins("y", "p", ["age", "job"], data=rows, monitor=0.02, **options.get(kind, {}))
    monitor = vc.Monitor(bins, reference=rows if kind == "reference" else None, arl=20)
    monitor.update(rows, id=1)
    if kind == "plain":
        monitor.acknowledge("known")
    monitor.save(tmp_path / "state.json")
    loaded = vc.load(tmp_path / "state.json")
    assert_same_state(loaded, monitor)
    for one in (loaded, monitor):
        one.update(
            make_rows(400, seed=9) | {"w": rows["w"][:400], "unit": rows["unit"][:400]}, id=2
        )
    assert_same_state(loaded, monitor)
    assert (loaded.status, loaded.notes) == (monitor.status, monitor.notes)
    assert loaded.status.alarm or kind != "plain"


def test_a_state_that_another_process_saved_is_not_overwritten(monitor, tmp_path):
    path = tmp_path / "state.json"
    monitor.save(path)
    one, other = vc.load(path), vc.load(path)
    one.update(make_rows(100), id=10)
    one.save(path)
    other.update(make_rows(100), id=11)
    with pytest.raises(InputError, match=r"has changed since it was read.*up to '10'") as caught:
        other.save(path)
    assert "load it again" in caught.value.hint
    assert vc.load(path)._last_id == "10"
    with pytest.raises(InputError, match="holds another monitor"):
        vc.Monitor(monitor.bins).save(path)
    one.save(path)  # its own state may be written again
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".state.json.lock", "state.json"]


def test_files_that_are_not_monitors_are_refused(monitor, tmp_path):
    path = tmp_path / "state.json"
    monitor.save(path)
    path.write_text(path.read_text().replace("0.02", "0.03"))
    with pytest.raises(InputError, match="is not a saved monitor"), monitor_in_turn(path):
        raise AssertionError
    with pytest.raises(InputError, match="unknown extension"):
        monitor.save(tmp_path / "state.pickle")
    with pytest.raises(InputError, match="cannot write"):
        monitor.save(tmp_path / "absent" / "state.json")


UPDATES = """
import sys
import varcal as vc
from varcal._monitor.monitor_file import monitor_in_turn
path, rows, prefix = sys.argv[1:]
with monitor_in_turn(path) as monitor:
    batch = vc.collect(rows, monitor.bins)
for k in range(int(prefix), 10**6, 2):
    try:
        with monitor_in_turn(path) as monitor:
            monitor.update(batch, id=k)
    except vc.exceptions.InputError:
        continue
    print(k, flush=True)
"""


def test_two_processes_that_are_killed_lose_no_update(tmp_path):
    from pyarrow import parquet, table

    path, rows = tmp_path / "state.json", tmp_path / "rows.parquet"
    vc.Monitor(make_bins()).save(path)
    parquet.write_table(table(make_rows(200)), rows)
    command = [sys.executable, "-c", UPDATES, str(path), str(rows)]
    running = [
        subprocess.Popen([*command, str(k)], stdout=subprocess.PIPE, text=True) for k in range(2)
    ]
    while vc.load(path).n_batches < 12:  # each load sees a whole state
        assert all(one.poll() is None for one in running)
        time.sleep(0.01)
    for one in running:
        one.send_signal(signal.SIGKILL)
    said = [int(line) for one in running for line in one.communicate()[0].split()]
    final = vc.load(path)
    # A process may be killed between writing the state and saying so.
    assert len(said) <= final.n_batches <= len(said) + 2
    assert final.n_rows == 200 * final.n_batches and max(said) <= int(final._last_id)
    final.update(make_rows(10), id=10**7)
    final.save(path)


def test_waiting_for_another_process_ends(monitor, tmp_path, monkeypatch):
    monkeypatch.setattr(monitor_file, "MAX_WAIT", 0.0)
    path = tmp_path / "state.json"
    monitor.save(path)
    hold = "import sys, filelock\nwith filelock.FileLock(sys.argv[1]): print(flush=True), input()"
    command = [sys.executable, "-c", hold, str(tmp_path / ".state.json.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        with pytest.raises(InputError, match=r"another process has been writing it for 0 seconds"):
            monitor.save(path)
        holder.communicate(b"\n")
    monitor.save(path)
