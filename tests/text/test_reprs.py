"""Every result shows itself briefly, as text and as an escaped table, and can be pickled."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import varcal as vc

#: The most lines and columns of a text.
LINES, COLUMNS = 42, 100
EVIL = "<img src=x onerror=alert(1)>"
#: Results without a table, whose text a notebook shows.
PLAIN = {"Reliability", "PredictableGap", "Monitor", "Status", "Collected", "BinPlan", "Applied"}
PLAIN |= {"OnnxExport", "SqlExport", "PythonExport"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One result of every kind, along variables of which one has an evil name."""
    rng = np.random.default_rng(0)
    n = 2000
    p, age = rng.uniform(0.05, 0.95, n), rng.uniform(20, 60, n)
    X = {EVIL: age, "job": rng.choice([f"job {k}" for k in range(40)], n)}
    X |= {f"a variable with a long name {k}": rng.integers(0, 5, n) for k in range(6)}
    y = (rng.random(n) < np.clip(p + 0.3 * (age > 45), 0, 1)).astype(int)
    few = {name: X[name] for name in (EVIL, "job")}
    audit = vc.audit(y, p, X)
    fitted = vc.VariableCalibrator().fit(p, y, few)
    data = {"y": y, "p": p, **X}
    bins = vc.make_bins("y", "p", data=data, monitor=0.02)
    monitor = vc.Monitor(bins)
    monitor.update(data, id=1)
    slices = vc.slices(y, p, few, draws=19)
    platt = vc.calibrators.PlattCalibrator().fit(p, y)
    source = tmp_path_factory.mktemp("rows") / "in.csv"
    np.savetxt(source, p, header="p", comments="")
    found = [
        audit,
        audit.row(EVIL),
        audit.ladder,
        audit.since(audit),
        vc.compare(y, {"raw": p, EVIL: fitted.predict_proba(p, few)}, few),
        vc.curve(y, p, {EVIL: age}),
        vc.estimate(y, p, {EVIL: age}),
        vc.reliability(y, p),
        vc.bin_table(y, p, {EVIL: age}),
        slices,
        slices[0],
        vc.surface(y, p, {EVIL: age, "job": X["job"]}),
        vc.predictable_gap(y, p, few),
        monitor,
        monitor.status,
        bins,
        vc.collect(data, bins),
        replace(vc.apply(platt, source, source.with_name("out.csv"), p="p"), out="out.csv"),
        fitted.describe(),
        fitted.effects(),
        fitted.to_onnx(),
        fitted.to_sql("duckdb"),
        fitted.to_python(),
    ]
    return {type(one).__name__: one for one in found}


NAMES = [
    *("Audit", "AuditRow", "Ladder", "Changes", "Comparison", "Curve", "Estimate", "Reliability"),
    *("BinTable", "Slices", "Slice", "Surface", "PredictableGap", "Monitor", "Status", "BinPlan"),
    *("Collected", "Applied", "Description", "Effects", "OnnxExport", "SqlExport", "PythonExport"),
]


@pytest.mark.parametrize("name", NAMES)
def test_results_are_shown_briefly(results, name):
    shown = repr(results[name])
    assert len(shown.split("\n")) <= LINES
    assert max(map(len, shown.split("\n"))) <= COLUMNS, shown
    assert not shown.startswith(f"{name}(") or name == "Applied"
    if name not in PLAIN:
        page = results[name]._repr_html_()
        assert "<table" in page and "<img" not in page


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "OnnxExport"])
def test_results_can_be_pickled(results, name):
    again = pickle.loads(pickle.dumps(results[name]))
    assert type(again) is type(results[name])
    one, other = (
        value.to_dict() if hasattr(value, "to_dict") else repr(value)
        for value in (again, results[name])
    )
    np.testing.assert_equal(one, other)
