"""Clinical measures against R's rms, scikit-learn and scipy; intervals against a known truth."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit
from scipy.stats import binomtest
from statsmodels.nonparametric.smoothers_lowess import lowess

import varcal as vc


def rows(n=400, seed=0, slope=0.7):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 1.5
    y = (rng.random(n) < expit(0.3 + slope * z)).astype(int)
    return y, expit(z)


def test_equal_to_val_prob_of_rms():
    # R: d <- read.csv(...); val.prob(d$p, d$y, pl = FALSE), rms 6.5.0, on the rows above
    found = vc.measures(*rows())
    r = {"slope": 0.707040297882, "ICI": 0.0767722889939}
    r |= {"E90": 0.146241916964, "Emax": 0.148923991018}
    for name, value in r.items():
        assert found[name].value == pytest.approx(value, rel=1e-7), name


def test_equal_to_logistic_regression_and_exact_intervals():
    y, p = rows(seed=1)
    found = vc.measures(y, p, level=0.9)
    z = logit(p)
    model = sm.GLM(y, np.ones((len(y), 1)), family=sm.families.Binomial(), offset=z).fit(tol=1e-12)
    large = found["intercept"]
    wanted = [model.params[0], *model.conf_int(0.1)[0]]
    assert [large.value, large.low, large.high] == pytest.approx(wanted, abs=1e-6)
    model = sm.GLM(y, sm.add_constant(z), family=sm.families.Binomial()).fit(tol=1e-12)
    slope = found["slope"]
    wanted = [model.params[1], *model.conf_int(0.1)[1]]
    assert [slope.value, slope.low, slope.high] == pytest.approx(wanted, abs=1e-6)
    ratio = found["observed/expected"]
    exact = binomtest(int(y.sum()), len(y)).proportion_ci(0.9, method="exact")
    expected = p.mean()
    assert ratio.value == pytest.approx(y.mean() / expected)
    assert [ratio.low, ratio.high] == pytest.approx([exact.low / expected, exact.high / expected])


def test_weights_are_numbers_of_rows():
    y, p = rows(600, seed=3)
    w = np.random.default_rng(3).integers(0, 4, 600)
    found, repeated = (
        vc.measures(y, p, sample_weight=w),
        vc.measures(np.repeat(y, w), np.repeat(p, w)),
    )
    for one, other in zip(found, repeated, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-9), one.measure
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=0.01)
    family = sm.families.Binomial()
    model = sm.GLM(y, sm.add_constant(logit(p)), family=family, freq_weights=w).fit(tol=1e-12)
    slope = found["slope"]
    wanted = [model.params[1], *model.conf_int()[1]]
    assert [slope.value, slope.low, slope.high] == pytest.approx(wanted, abs=1e-6)
    same = vc.measures(y, p, sample_weight=np.full(600, 0.5))
    assert same["slope"].low == pytest.approx(vc.measures(y, p)["slope"].low)
    assert "Rows are weighted" in repr(found)


def test_errors_equal_another_lowess():
    y, p = rows(1500, seed=2)
    smooth = lowess(y, p, it=0, delta=0.01 * np.ptp(p), return_sorted=False)
    off = abs(p - smooth)
    found = vc.measures(y, p)
    wanted = {"ICI": off.mean(), "E50": np.median(off), "E90": np.quantile(off, 0.9)}
    for name, value in (wanted | {"Emax": off.max()}).items():
        assert found[name].value == pytest.approx(value, abs=1e-8), name


@pytest.mark.parametrize("slope", [1.0, 0.6])
def test_intervals_hold_the_truth(slope):
    z = np.random.default_rng(0).normal(size=100_000) * 1.5
    off = abs(expit(z) - expit(0.3 * (slope < 1) + slope * z))
    truth = {"ICI": off.mean(), "E50": np.median(off), "E90": np.quantile(off, 0.9)}
    held = dict.fromkeys(truth, 0)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=1000) * 1.5
        y = (rng.random(1000) < expit(0.3 * (slope < 1) + slope * z)).astype(int)
        found = vc.measures(y, expit(z))
        for name, value in truth.items():
            held[name] += found[name].low - 1e-12 <= value <= found[name].high
    assert min(held.values()) >= 33  # at 90 % of 40, fewer are seen once in 40 runs


def test_groups_are_those_rows_alone():
    y, p = rows(900, seed=3)
    v = np.where(np.arange(900) % 3 == 0, "a", "b")
    found = vc.measures(y, p, pd.DataFrame({"site": v, "age": np.arange(900.0)})).to_frame()
    here = found[(found["variable"] == "site") & (found["group"] == "a")]
    alone = vc.measures(y[v == "a"], p[v == "a"]).to_frame()
    np.testing.assert_allclose(here[["value", "low", "high"]], alone[["value", "low", "high"]])
    assert (found["variable"] == "age").sum() == 4 * 7


def test_the_other_class_mirrors():
    y, p = rows()
    one, other = vc.measures(y, p), vc.measures(y, 1 - p, pos_label=0)
    assert other["intercept"].value == pytest.approx(-one["intercept"].value)
    assert other["slope"].value == pytest.approx(one["slope"].value)
    # Points between which lowess interpolates are counted from the left.
    assert other["ICI"].value == pytest.approx(one["ICI"].value, rel=0.01)


def test_what_rows_do_not_determine_is_missing_and_said():
    y, p = np.array([0] * 30 + [1] * 30), np.r_[np.full(30, 0.2), np.full(29, 0.7), 1.0]
    found = vc.measures(y, p)
    assert np.isnan(found["slope"].value)  # separated
    assert found.notes == (
        "Intercept and slope leave out 1 row whose probability is 0 or 1 (infinite logits).",
    )
    assert found.to_dict()["measures"][1]["value"] is None
    assert "30 of 60" in repr(found)


def test_more_classes_are_refused():
    with pytest.raises(vc.exceptions.InputError, match="y has 3 classes; these measures"):
        vc.measures([0, 1, 2], np.full((3, 3), 1 / 3))
    with pytest.raises(KeyError, match="the measures are intercept"):
        vc.measures(*rows())["Slope"]
