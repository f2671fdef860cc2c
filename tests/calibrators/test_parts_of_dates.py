"""Hour, weekday and month of a date are variables of calibrators and of their exports."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import varcal as vc
from varcal.exceptions import InputError

ZONES = [None, "UTC", "+05:30", "Europe/Berlin", "Australia/Lord_Howe"]


def world(n=6_000, zone=None, seed=0):
    """Return rows whose gap follows the hour of day, and differs from October to December."""
    rng = np.random.default_rng(seed)
    when = pd.to_datetime("2021-01-01") + pd.to_timedelta(
        rng.integers(0, 3 * 365 * 86_400_000, n), unit="ms"
    )
    if zone is not None:
        when = when.tz_localize("UTC").tz_convert(zone)
    p = rng.uniform(0.05, 0.95, n)
    lift = np.sin(2 * np.pi * when.hour / 24) + 0.7 * (when.month > 9)
    y = rng.random(n) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - lift))
    return p, y.astype(int), pd.DataFrame({"when": when, "age": rng.normal(size=n)})


@pytest.mark.parametrize(
    "calibrator",
    [vc.VariableCalibrator(), vc.calibrators.TreeCalibrator(min_leaf=0.02, max_depth=5)],
)
def test_a_daily_cycle_is_repaired(calibrator):
    p, y, X = world(12_000)
    fit, held = slice(0, 6_000), slice(6_000, None)
    q = calibrator.fit(p[fit], y[fit], X[fit]).predict_proba(p[held], X[held])[:, 1]
    seconds = X.assign(when=X["when"].astype("int64") / 1e6)  # a number has no parts
    plain = vc.VariableCalibrator().fit(p[fit], y[fit], seconds[fit])
    without = plain.predict_proba(p[held], seconds[held])[:, 1]
    assert log_loss(y[held], q) < log_loss(y[held], without) - 0.03
    hour = X["when"].dt.hour[held]
    before, after = (vc.estimate(y[held], each, hour, event="positive") for each in (without, q))
    assert before.low > 0.1 and after.p_value > 0.01 and after.value < 0.2 * before.value


def test_parts_in_words_and_effects():
    p, y, X = world()
    model = vc.VariableCalibrator().fit(p, y, X)
    assert model.describe().rows[0]["along"] == "when (hour)"
    assert "when (hour)" in list(model.effects())
    assert "when (hour)" in str(
        vc.calibrators.TreeCalibrator(min_leaf=0.02).fit(p, y, X).describe()
    )
    one_day = X.assign(when=pd.to_datetime("2024-05-01 12:00"))
    assert vc.calibrators.TreeCalibrator().fit(p, y, one_day).schema_.names == ("when", "age")
    named = X.assign(**{"when (hour)": 1.0 * X["when"].dt.hour})
    assert vc.calibrators.TreeCalibrator().fit(p, y, named).schema_.names.count("when (hour)") == 1


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", ["VariableCalibrator", "TreeCalibrator", "AugmentedCalibrator"])
def test_exports_and_files_compute_parts(name, zone, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    p, y, X = world(3_000, zone)
    X.loc[:20, "when"] = pd.NaT
    model = getattr(vc.calibrators, name)().fit(p, y, X)
    wanted = model.predict_proba(p, X)
    exported = model.to_sql("duckdb")
    with duckdb.connect() as connection:
        connection.register("scores", X.assign(p=p))
        assert np.abs(exported.run(connection) - wanted).max() < 1e-12
        assert exported.check(connection).largest < 1e-12
    assert model.to_python().check().largest < 1e-12
    score = model.scorer()
    for i in range(200):
        row = {"when": X["when"][i], "age": X["age"][i]}
        assert score(p[i], row) == pytest.approx(wanted[i, 1], abs=1e-12)
    model.save(tmp_path / "model.json")
    assert (vc.load(tmp_path / "model.json").predict_proba(p, X) == wanted).all()
    if zone in ZONES[:3]:
        onnx = model.to_onnx()
        assert np.abs(onnx.run(p, X) - wanted).max() < 1e-12 and onnx.check().largest < 1e-12
    else:
        with pytest.raises(InputError, match=f"time zone '{zone}'.*\n.*fixed offset"):
            model.to_onnx()


def test_dates_that_are_text():
    p, y, X = world(3_000)
    text = X.assign(when=X["when"].dt.strftime("%Y-%m-%dT%H:%M:%S+02:00"))
    model = vc.calibrators.TreeCalibrator(min_leaf=0.02).fit(p, y, text)
    assert model.schema_.variables[2].part == ("when", "hour", "+02:00")
    # The same instants in another zone are at the same hour of the clock of the fit.
    zoned = X.assign(when=pd.to_datetime(text["when"], utc=True).dt.tz_convert("Asia/Tokyo"))
    assert (model.predict_proba(p, zoned) == model.predict_proba(p, text)).all()


@pytest.mark.parametrize("zone", ["", "+02:00"])
def test_dates_that_are_text_in_exports(zone):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    p, y, X = world(3_000)
    text = X.assign(when=X["when"].dt.strftime(f"%Y-%m-%d %H:%M:%S{zone}"))
    model = vc.calibrators.TreeCalibrator(min_leaf=0.02).fit(p, y, text)
    wanted = model.predict_proba(p, text)
    exported, score = model.to_sql("duckdb"), model.scorer()
    with duckdb.connect() as connection:
        connection.register("scores", text.assign(p=p))
        assert np.abs(exported.run(connection) - wanted).max() < 1e-12
        assert exported.check(connection).largest < 1e-12
    found = [score(p[i], {"when": text["when"][i], "age": X["age"][i]}) for i in range(50)]
    assert found == pytest.approx(wanted[:50, 1], abs=1e-12)
    other = X.assign(when=X["when"].dt.strftime("%d.%m.%Y %H:%M"))
    model = vc.calibrators.TreeCalibrator(min_leaf=0.02).fit(p, y, other)
    with pytest.raises(InputError, match=r"'when' was text in fit, with dates written as day\.mo"):
        model.to_sql("duckdb")
