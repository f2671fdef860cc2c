"""Whatever can be saved loads again and says the same, whatever its columns are like."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc
from cases.monitors import assert_same_state
from varcal.exceptions import InputError

#: Columns by what is odd about them: functions of a random generator and the number of rows.
COLUMNS = {
    "numbers": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-5, 9),
    "whole": lambda rng, n: rng.integers(0, rng.integers(2, 90), n),
    "flag": lambda rng, n: (rng.random(n) < rng.choice([0.5, 0.98])).astype(int),
    "nearly constant": lambda rng, n: np.where(np.arange(n) < 2, 0, 1),
    "constant": lambda rng, n: np.full(n, rng.choice([0.0, 7.5, 1e300])),
    "neighbours": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, np.nextafter(1.0, 2.0)),
    "tiny": lambda rng, n: rng.random(n) * 1e-310,
    "huge": lambda rng, n: (rng.random(n) - 0.5) * 3e308,
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.1, np.inf, rng.random(n)),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.4, np.nan, rng.random(n)),
    "bool": lambda rng, n: rng.random(n) < 0.3,
    "levels": lambda rng, n: rng.choice(["a", "b", "", "é", "missing"], n),
    "rare levels": lambda rng, n: np.where(rng.random(n) < 0.9, "a", rng.choice(list("bcdefg"), n)),
    "holes": lambda rng, n: np.where(rng.random(n) < 0.3, None, rng.choice(["x", "y"], n)),
    "dates": lambda rng, n: pd.Timestamp("2024") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
    "zoned": lambda rng, n: pd.date_range("2024-03-30", periods=n, freq="h", tz="Europe/Rome"),
    "durations": lambda rng, n: pd.to_timedelta(rng.integers(0, 90, n), "min"),
    "date texts": lambda rng, n: np.char.add("2024-01-", rng.integers(10, 29, n).astype(str)),
}


@st.composite
def tables(draw):
    """Return a table of rows, and the options that name its weights and groups."""
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, k = draw(st.integers(80, 300)), draw(st.sampled_from([2, 2, 3]))
    p = rng.dirichlet(np.full(k, draw(st.sampled_from([0.2, 1.0]))), n)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, k - 1)
    y[:k] = range(k)
    frame = pd.DataFrame({kind: COLUMNS[kind](rng, n) for kind in kinds})
    scores = {f"p{j}": p[:, j] for j in range(k)} if k > 2 else {"p": p[:, 1]}
    options = {}
    if draw(st.booleans()):
        options["sample_weight"], frame["w"] = "w", rng.integers(0, 3, n) + 0.25
    if draw(st.booleans()):
        options["groups"], frame["unit"] = "unit", np.arange(n) // 4
    names = list(scores) if k > 2 else "p"
    return frame.assign(y=y, **scores), names, kinds, options


def loaded(value, path):
    value.save(path)
    return vc.load(path)


@given(tables())
@settings(max_examples=4, print_blob=True)
def test_every_kind_loads_again(tmp_path_factory, table):
    frame, p, kinds, options = table
    folder = tmp_path_factory.mktemp("saved")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_sums(frame, p, kinds, options, folder)
        for search in (
            lambda: vc.audit("y", p, kinds, data=frame, include=kinds, ladder="none", **options),
            lambda: vc.slices("y", p, kinds, data=frame, draws=9, **options),
        ):
            try:
                found = search()
            except InputError:  # such as too few groups, or no variable with a value
                continue
            again = loaded(found, folder / "found.json")
            assert again.to_dict() == found.to_dict() and again.sentence == found.sentence
        v = frame[kinds]
        for calibrator in (vc.TreeCalibrator(), vc.AugmentedCalibrator(), vc.VariableCalibrator()):
            try:
                fitted = calibrator.fit(frame[p], frame["y"], v)
                q = fitted.predict_proba(frame[p], v)
            except InputError:  # such as powers of numbers that overflow
                continue
            again = loaded(fitted, folder / "calibrator.json")
            assert (again.predict_proba(frame[p], v) == q).all()
            assert str(again.describe()) == str(fitted.describe())


def check_sums(frame, p, kinds, options, folder):
    try:
        bins = vc.make_bins("y", p, kinds, data=frame, monitor=0.02, **options)
        sums = vc.collect(frame, bins)
    except InputError:  # such as a sum that overflows
        return
    again = loaded(sums, folder / "sums.json")
    assert again.plan == sums.plan and len(again) == len(sums)
    for a, b in zip(again.tables, sums.tables, strict=True):
        np.testing.assert_array_equal(a, b)
    monitor = vc.Monitor(bins)
    monitor.update(frame, id=1)
    again = loaded(monitor, folder / "monitor.json")
    assert_same_state(again, monitor)
    assert again.status == monitor.status


@pytest.mark.parametrize("rare", [0, 1, -3.5, 1e300])
def test_an_audit_of_a_value_that_few_rows_do_not_have_loads_again(rare, tmp_path):
    """The percentiles of such a variable were neighbouring floats, too near for 40 bars."""
    sim = vc.datasets.make_gap(2000, random_state=0)
    v = np.where(np.arange(2000) < 5, rare, 2.0)
    found = vc.audit(sim.y, sim.p, {"v": v, "same": sim.v}, ladder="none")
    edges = found["v"].histogram.edges
    assert (np.diff(edges) > 0).all() and edges[0] <= min(rare, 2) and edges[-1] >= max(rare, 2)
    assert loaded(found, tmp_path / "audit.json").to_dict() == found.to_dict()


@pytest.mark.parametrize("classes", [("all", "none"), ("", "x")])
def test_an_audit_of_classes_named_like_its_sides_loads_again(classes, tmp_path):
    rng = np.random.default_rng(0)
    p, v = rng.random(600), rng.random(600)
    y = np.array(classes)[(rng.random(600) < p).astype(int)]
    found = vc.audit(y, p, {"v": v}, classes=classes)
    assert not {"", "all"} & set(found.target.sides) and found.row("v").n_bins == 10
    assert loaded(found, tmp_path / "audit.json").to_dict() == found.to_dict()
