"""The benchmarks run, and comparable libraries give the same results."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


def benchmark(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def peers():
    return benchmark("bench_peers")


def test_every_peer_has_a_row_and_agrees(peers, capsys):
    peers.main(["--rows", "2000", "--curve-rows", "400", "--repeats", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(peers.PEERS)
    for peer, line in zip(peers.PEERS, lines[2:], strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[0] == peer.name
        if importlib.util.find_spec(peer.module) is None:
            assert cells[3] == "not installed"
        elif not cells[3].startswith("cannot be imported: "):
            assert all(float(cell) >= 0 for cell in cells[3:6])
            assert (cells[6] == "another figure") == (peer.tolerance is None)


def test_a_peer_that_is_not_installed_is_listed(peers):
    absent = peers.Peer("absent", "no_such_module", "VECE", len, len, 0.0)
    assert "| not installed |" in peers.compare(absent, peers.Data.draw(10), 1)


def test_a_peer_that_cannot_be_imported_is_listed(peers):
    def broken(data):
        raise ModuleNotFoundError("No module named 'psutil'", name="psutil")

    peer = peers.Peer("broken", "numpy", "VECE", broken, peers.our_vece, 1e-9)
    assert "| cannot be imported: psutil |" in peers.compare(peer, peers.Data.draw(10), 1)


def test_a_peer_that_disagrees_is_noticed(peers):
    wrong = peers.Peer("wrong", "numpy", "VECE", lambda data: 1.0, peers.our_vece, 1e-9)
    with pytest.raises(AssertionError, match=r"wrong: the results differ by"):
        peers.compare(wrong, peers.Data.draw(100), 1)


def test_monitors_are_simulated(capsys, monkeypatch):
    pytest.importorskip("numba", reason="the fast extra is not installed")
    monkeypatch.syspath_prepend(str(FOLDER))
    benchmark("simulate_monitor").main(["--quick"])
    found = capsys.readouterr().out
    missed = re.search(r"\| confidence sequence, 95 % \| (\d+\.\d) ±", found)
    assert float(missed[1]) <= 5 and "ADWIN of every cell" in found


def test_costs_of_a_monitor(capsys):
    few = ["--variables", "2", "--rows", "50", "--batches", "20", "--repeats", "2"]
    benchmark("bench_monitor").main(few)
    found = capsys.readouterr().out
    assert "| update with collected sums | " in found and "| 20 | " in found


def test_costs_by_rows_and_variables(capsys):
    small = ["--rows", "1000", "--variables", "2", "--repeats", "1"]
    benchmark("bench_scale").main(small)
    text = capsys.readouterr().out
    for part in ("VECE of 2 variables, 1,000 rows", "One variable, by rows", "by variables"):
        assert part in text


def test_peaks_are_the_highest_of_the_rounds_and_rows_those_of_the_file(
    tmp_path, monkeypatch, capsys
):
    bench = benchmark("bench_duckdb")
    bench.write_rows(tmp_path / "rows.parquet", 1_234)
    rounds = iter([(2.0, 3.0, 100.0)] * len(bench.TASKS) + [(1.0, 4.0, 50.0)] * len(bench.TASKS))
    monkeypatch.setattr(bench, "measure", lambda task, path: next(rounds))
    bench.main(10_000_000, tmp_path / "rows.parquet", 2)
    text = capsys.readouterr().out
    assert text.startswith("1,234 rows")
    assert "| vc.audit, DuckDB | 1.0 | 1.00 | 3.0 | 1.00 | 100 |" in text


def test_one_row_is_timed_with_and_without_short_cuts(monkeypatch, capsys):
    bench = benchmark("bench_one_row")
    model = bench.vc.PlattCalibrator().fit([0.2, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    monkeypatch.setattr(bench, "CALLS", 1)
    monkeypatch.setattr(bench, "cases", lambda: [("Platt", model, ([0.3],), 1e9)])
    monkeypatch.setattr(bench, "peers", list)
    bench.main(1)
    assert capsys.readouterr().out.splitlines()[2].startswith("| Platt | ")


def test_start_up_is_compared_with_loading_libraries(monkeypatch, capsys):
    bench = benchmark("bench_startup")
    seen = []

    def cpu_ms(arguments, folder):
        assert (folder / "variables.json").exists() and (folder / "rows.csv").exists()
        seen.append(arguments)
        return float(len(seen))

    monkeypatch.setattr(bench, "cpu_ms", cpu_ms)
    bench.main(1)
    assert len(seen) == 18  # two rounds
    assert "| `varcal --help` | 13 | 1.3 | 1.2 |" in capsys.readouterr().out


def test_exports_are_compared_with_predict_proba(capsys):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    bench = benchmark("export")
    bench.ONE_BY_ONE = 20
    bench.main(["--rows", "500", "--repeats", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("| variable, with pairs | ") for line in lines) == 2
