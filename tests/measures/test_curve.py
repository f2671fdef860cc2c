import json

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid

import varcal as vc
from varcal._inference.smoothers import smoother_weights
from varcal._measures.curve_result import SERIES, Curve
from varcal.exceptions import InputError


def test_a_curve_has_its_worst_value_and_intervals(age):
    assert age.direction == "over" and 40 < age.worst < 55
    assert age.vce_low < age.vce < age.vce_high
    assert (age.band_low <= age.gap_low + 1e-12).all() and (
        age.gap_high <= age.band_high + 1e-12
    ).all()
    np.testing.assert_allclose(age.gap, age.predicted - age.observed, atol=1e-9)
    assert age.worst_set[np.abs(age.x - age.worst).argmin()]
    assert age.regions[0].n <= age.n_rows == 16_281
    assert "most at 48: too sure by" in repr(age)
    covered = trapezoid(age.density, age.x)
    assert 0.9 < covered < 1.1


def test_the_papers_fit_is_the_direct_local_quadratic(adult):
    v = adult["fnlwgt"].astype(float)
    found = vc.curve(adult.y, adult.p, {"v": v}, span=0.9, grid=np.quantile(v, [0.1, 0.5, 0.9]))
    error = 1.0 - ((adult.p > 0.5) == adult.y)
    order = np.argsort(v, kind="stable")
    direct = smoother_weights(v[order], found.x, span=0.9, degree=2) @ error[order]
    np.testing.assert_allclose(1 - found.observed, direct, atol=1e-3)
    assert found.span == 0.9


def test_grids(adult, age):
    few = vc.curve(adult.y, adult.p, {"age": adult["age"]}, grid=5, trim=0.1)
    assert len(few.x) == 5 == len(few.gap) == len(few.worst_set)
    np.testing.assert_allclose(np.diff(few.x), np.diff(few.x)[0])
    here = vc.curve(adult.y, adult.p, {"age": adult["age"]}, grid=[30, 50])
    np.testing.assert_allclose(here.gap, np.interp([30, 50], age.x, age.gap))
    with pytest.raises(InputError, match="grid has a point outside the data: 200"):
        vc.curve(adult.y, adult.p, adult["age"], grid=[30, 200])
    with pytest.raises(InputError, match="at least 2 points"):
        vc.curve(adult.y, adult.p, adult["age"], grid=1)


def test_span_and_degree(adult):
    wide = vc.curve(adult.y, adult.p, {"age": adult["age"]}, span=50, degree=0)
    overall = (np.maximum(adult.p, 1 - adult.p) - ((adult.p > 0.5) == adult.y)).mean()
    np.testing.assert_allclose(wide.gap, overall, atol=0.02)
    linear = vc.curve(adult.y, adult.p, {"age": adult["age"]}, span=0.5, degree=1)
    assert np.abs(linear.gap - wide.gap).max() > 0.05


def test_levels_and_missing_values(adult):
    found = vc.curve(adult.y, adult.p, {"workclass": adult["workclass"]})
    table = vc.bin_table(adult.y, adult.p, {"workclass": adult["workclass"]}).columns
    kept = [found.labels[int(x)] for x in found.x]
    gaps = dict(zip(table["bin"], table["gap"], strict=True))
    np.testing.assert_allclose(found.gap, [gaps[label] for label in kept], atol=1e-12)
    assert found.n_missing == 963 and found.missing_gap == pytest.approx(gaps["missing"])
    assert found.n_rows + found.n_missing == len(adult)
    assert found.worst_label == kept[int(np.abs(found.gap).argmax())]
    assert found.to_frame()["workclass"].tolist() == kept


def test_dates_booleans_and_constants(rng):
    n = 3000
    s = rng.uniform(0.2, 0.8, n)
    day = np.datetime64("2024-01-01") + rng.integers(0, 365, n)
    late = day > np.datetime64("2024-09-01")
    y = rng.random(n) < s - 0.15 * late
    dates = vc.curve(y, s, {"day": day}, event="positive")
    assert dates.kind == "datetime" and dates.worst_label.startswith("2024-")
    assert dates.regions and dates.regions[-1].label.count("2024") == 2
    assert pd.api.types.is_datetime64_any_dtype(dates.to_frame()["day"])
    flags = vc.curve(y, s, {"late": late}, event="positive")
    assert flags.labels == ("False", "True") and flags.worst_label == "True"
    constant = vc.curve(y, s, {"c": np.ones(n)}, event="positive")
    assert len(constant.x) == 1 and np.isfinite(constant.band_low).all()
    infinite = np.where(rng.random(n) < 0.05, np.inf, rng.normal(size=n))
    assert np.isfinite(vc.curve(y, s, infinite, event="positive").gap).all()


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_few_rows_never_give_nan(n, rng):
    v, s = rng.normal(size=n), rng.uniform(0.3, 0.7, n)
    found = vc.curve(rng.random(n) < s, s, v, event="positive")
    for name in SERIES:
        assert np.isfinite(getattr(found, name)).all(), name


def test_weights_and_groups(rng):
    n = 2000
    v, s = rng.random(n), rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < s
    plain = vc.curve(y, s, v, event="positive")
    weighted = vc.curve(y, s, v, event="positive", sample_weight=np.full(n, 3.0))
    np.testing.assert_allclose(plain.gap, weighted.gap, atol=1e-9)
    unit = rng.integers(0, 40, n)
    shared = rng.normal(0, 0.15, 40)[unit]
    dependent = rng.random(n) < np.clip(s + shared, 0, 1)
    alone = vc.curve(dependent, s, v, event="positive")
    grouped = vc.curve(dependent, s, v, event="positive", groups=unit)
    assert np.mean(grouped.band_high - grouped.band_low) > 1.1 * np.mean(
        alone.band_high - alone.band_low
    )


def test_round_trip_through_json(age):
    again = Curve.from_dict(json.loads(json.dumps(age.to_dict(), allow_nan=False)))
    assert again.to_dict() == age.to_dict() and repr(again) == repr(age)


def test_frames_keep_their_library(make_frame, rng):
    s = rng.random(200)
    data = make_frame(
        {"y": (rng.random(200) < s).astype(int), "p": s, "age": rng.integers(18, 80, 200)}
    )
    frame = vc.curve("y", "p", "age", data=data).to_frame()
    assert isinstance(frame, pd.DataFrame if isinstance(data, dict) else type(data))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"event": "classwise"}, "classwise"),
        ({"level": 95}, "level must lie between 0 and 1; got 95"),
        ({"trim": 0.5}, "trim must lie in [0, 0.5); got 0.5"),
        ({"degree": 7}, "degree must be"),
        ({"span": -1.0}, "span must lie between 0 and 1000"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError) as caught:
        vc.curve([0, 1, 1], [0.2, 0.6, 0.7], [1.0, 2.0, 3.0], **options)
    assert message in str(caught.value)


def test_one_variable_at_a_time():
    with pytest.raises(InputError, match="v has 2 variables; a curve is along one"):
        vc.curve([0, 1], [0.2, 0.6], np.ones((2, 2)))
    with pytest.raises(InputError, match="missing at every row"):
        vc.curve([0, 1], [0.2, 0.6], [np.nan, np.nan])


def test_a_variable_named_like_a_figure_keeps_its_column(rng):
    s = rng.uniform(0.2, 0.8, 200)
    frame = vc.curve(rng.random(200) < s, s, {"gap": rng.normal(size=200)}).to_frame()
    assert "value" in frame and len(frame.columns) == len(SERIES) + 2


@pytest.mark.parametrize("fit", [{}, {"span": 0.9}, {"span": 0.5, "degree": 1}, {"grid": 40}])
def test_lines_without_bands_are_those_with_bands(fit, rng):
    v = rng.normal(size=3000)
    p = rng.beta(2, 3, 3000)
    y = rng.random(3000) < p
    whole = vc.curve(y, p, v, **fit)
    lines = vc.curve(y, p, v, bands=False, **fit)
    for name in ("predicted", "observed"):
        wanted, low, high = (
            np.interp(lines.x, whole.x, getattr(whole, f"{name}{end}"))
            for end in ("", "_low", "_high")
        )
        # With bands, a line never leaves its pointwise one.
        np.testing.assert_allclose(np.clip(getattr(lines, name), low, high), wanted, atol=2e-3)
    assert np.isnan(lines.band_low).all() and np.isnan(lines.observed_high).all()
    assert np.isnan(lines.vce_low) and lines.regions == () == lines.excess
    assert lines.vece == whole.vece and lines.worst_set.sum() == 1
    assert "nan" not in repr(lines)
    lines.plot()
    assert Curve.from_dict(lines.to_dict()).vce == lines.vce


def test_density_regions_and_grids_fit_the_cells_of_the_curve(rng):
    # 901 cells are merged into 225, which a second merging would make 180.
    v = np.repeat(np.arange(901), 12)
    p = 0.5 + rng.uniform(-0.1, 0.1, len(v))
    y = rng.random(len(v)) < p - 0.3 * (v > 800)
    found = vc.curve(y, p, v, event="positive")
    assert len(found.x) == len(found.density) == len(found.to_frame())
    (region,) = found.regions
    assert region.n == pytest.approx(1200, abs=60)
    assert len(vc.curve(y, p, v, event="positive", grid=20).x) == 20


def test_lines_alone_look_for_the_worst_value_where_bands_do(rng):
    v = rng.choice([0, 1, 2, 3], 5000, p=[0.33, 0.33, 0.33, 0.01])
    p = 0.5 + rng.uniform(-0.01, 0.01, 5000)
    y = np.where(v == 3, 0, rng.random(5000) < p)
    few = [vc.curve(y, p, v, event="positive", bands=bands).worst for bands in (True, False)]
    assert few == [3, 3]
    x, weight = rng.normal(size=3000), rng.exponential(size=3000) ** 4
    y, p = rng.random(3000) < 0.5 - 0.1 * np.tanh(x), np.full(3000, 0.5)
    with_bands, lines = (
        vc.curve(y, p, x, event="positive", sample_weight=weight, trim=0.3, bands=bands)
        for bands in (True, False)
    )
    inside = np.quantile(x, [0.3, 0.7])
    assert inside[0] - 0.1 < lines.worst < inside[1] + 0.1
    assert inside[0] - 0.1 < with_bands.worst < inside[1] + 0.1
