import json

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid

import varcal as vc
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


def test_a_dict_of_a_curve_is_json(age):
    found = json.loads(json.dumps(age.to_dict(), allow_nan=False))
    assert found == age.to_dict() and found["gap"] == age.gap.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"event": "classwise"}, "classwise"),
        ({"level": 95}, "level must lie between 0 and 1; got 95"),
        ({"trim": 0.5}, "trim must lie in [0, 0.5); got 0.5"),
        ({"degree": 7}, "degree must be"),
        ({"span": -1.0}, "span must lie between 0 and 1000"),
        ({"v": np.ones((3, 2))}, "v has 2 variables; a curve is along one"),
        ({"v": [np.nan] * 3}, "missing at every row"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError) as caught:
        vc.curve([0, 1, 1], [0.2, 0.6, 0.7], **{"v": [1.0, 2.0, 3.0]} | options)
    assert message in str(caught.value)


@pytest.mark.parametrize("fit", [{}, {"span": 0.9}, {"span": 0.5, "degree": 1}])
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
    assert np.isnan(lines.vce_low) and lines.regions == ()
    assert lines.vece == whole.vece and lines.worst_set.sum() == 1
    assert "nan" not in repr(lines)
    lines.plot()
    assert lines.to_dict()["vce_low"] is None


def test_density_and_regions_fit_the_cells_of_the_curve(rng):
    # 901 cells are merged into 225, which a second merging would make 180.
    v = np.repeat(np.arange(901), 12)
    p = 0.5 + rng.uniform(-0.1, 0.1, len(v))
    y = rng.random(len(v)) < p - 0.3 * (v > 800)
    found = vc.curve(y, p, v, event="positive")
    assert len(found.x) == len(found.density) == len(found.to_frame())
    (region,) = found.regions
    assert region.n == pytest.approx(1200, abs=60)


def test_histograms_count_the_rows(rng):
    whole = rng.poisson(30, 5000)
    parts = {
        "whole": whole,
        "real": rng.normal(size=5000),
        "heap": np.where(rng.random(5000) < 0.8, 0.0, rng.exponential(1, 5000)),
    }
    y, p = rng.integers(0, 2, 5000), rng.random(5000)
    for name, v in parts.items():
        found = vc.curve(y, p, {name: v}).histogram
        counted = np.histogram(v, found.edges)[0] / 5000
        np.testing.assert_allclose(found.share, counted, atol=0.003)
        assert found.trimmed and 0.95 < found.share.sum() < 1
    edges = vc.curve(y, p, whole).histogram.edges
    assert (edges % 1 == 0.5).all() and len(set(np.diff(edges))) == 1
    alone = vc.curve(y, p, np.ones(5000)).histogram
    assert alone.share.tolist() == [1.0] and not alone.trimmed
    levels = vc.curve(y, p, np.array(["a", "b", None], object)[whole % 3]).histogram
    assert levels.edges.tolist() == [-0.5, 0.5, 1.5] and levels.share.sum() == pytest.approx(1)
