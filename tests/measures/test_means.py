"""Predictions of a mean: tables and errors against plain sums and model-diagnostics."""

import json

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from varcal.exceptions import InputError


def policies(n=4000, seed=0):
    """Claims per year with exposure; A/E is 1.4 above the age of 60, and 1 otherwise."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    age[:100] = np.nan
    exposure, mu = rng.uniform(0.2, 1, n), np.exp(rng.normal(0, 0.5, n))
    claims = rng.poisson(mu * exposure * np.where(age > 60, 1.4, 1.0))
    region = rng.choice(["north", "south", "islands"], n, p=[0.6, 0.395, 0.005])
    return pd.DataFrame(
        {
            "y": claims / exposure,
            "mu": mu,
            "age": age,
            "region": region,
            "years": exposure,
            "noise": rng.normal(size=n),
            "person": rng.integers(0, 300, n),
        }
    )


def test_a_e_is_the_ratio_of_plain_sums():
    data = policies()
    cuts = [18, 30, 45, 60, 79]
    table = vc.bin_table("y", "mu", "age", data=data, outcome="mean", exposure="years", bins=cuts)
    by = pd.cut(data["age"], cuts, include_lowest=True)
    actual, expected = (
        (data[name] * data["years"]).groupby(by, observed=True).sum() for name in ("y", "mu")
    )
    found = table.to_frame().iloc[:-1]
    np.testing.assert_allclose(found["a_e"], actual / expected, rtol=1e-12)
    years = data["years"].groupby(by, observed=True).sum()
    np.testing.assert_allclose(found["predicted"], expected / years, rtol=1e-12)
    np.testing.assert_allclose(found["observed"], actual / years, rtol=1e-12)
    assert table.columns["bin"][-1] == "missing"
    assert (found["a_e_low"] < found["a_e"]).all() and (found["a_e"] < found["a_e_high"]).all()
    assert found["a_e_low"].iloc[-1] > 1.2


@pytest.mark.parametrize("variable", ["age", "region"])
def test_bias_is_that_of_model_diagnostics(variable):
    diagnostics = pytest.importorskip("model_diagnostics.calibration")
    data = policies().dropna()
    data = data[data["region"] != "islands"]
    table = vc.bin_table(
        "y", "mu", variable, data=data, outcome="mean", gap="difference", exposure="years"
    )
    theirs = diagnostics.compute_bias(
        y_obs=data["y"],
        y_pred=data["mu"],
        feature=data[variable],
        weights=data["years"],
        n_bins=10,
        bin_method="quantile",
    ).sort(variable)
    order = np.argsort(table.columns["bin"]) if variable == "region" else slice(None)
    np.testing.assert_allclose(
        np.array(table.columns["gap"])[order], theirs["bias_mean"].to_numpy(), atol=1e-12
    )
    assert np.array(table.columns["n"])[order].tolist() == theirs["bias_count"].to_list()


def test_weights_count_as_copies_of_rows_in_sums():
    data = policies(500)
    times = np.arange(500) % 3 + 1
    copies = data.loc[data.index.repeat(times)]
    cuts = {"noise": [-1.0, 0.0, 1.0]}
    one = vc.bin_table(
        "y", "mu", "noise", data=data, outcome="mean", sample_weight=times, bins=cuts
    )
    two = vc.bin_table("y", "mu", "noise", data=copies, outcome="mean", bins=cuts)
    np.testing.assert_allclose(one.columns["a_e"], two.columns["a_e"], rtol=1e-12)


def test_errors_find_the_fault_and_spare_noise():
    covered, spared = np.zeros(3), 0
    for seed in range(40):
        data = policies(5000, seed)
        how = {"data": data, "outcome": "mean", "exposure": "years"}
        found = vc.estimate("y", "mu", "age", **how)
        # Where A/E is 1.4 for a share of the predictions, and 1 for the others.
        above = float(np.average(data["age"] > 60, weights=data["years"] * data["mu"]))
        truth = (2 * above * (1 - above) * 0.4, 0.4 * above, -0.4 * above)
        intervals = (found.uneven, found.error, found.overall)
        covered += [one.low < x < one.high for one, x in zip(intervals, truth, strict=True)]
        assert found.uneven.p_value < 1e-3 and not found.few_errors
        spared += vc.estimate("y", "mu", "noise", **how).uneven.p_value > 0.05
    # At 95 % fewer than 34 of 40 are seen in 1 % of such tests.
    assert (covered >= 34).all() and spared >= 34
    assert json.loads(json.dumps(found.to_dict()))["overall"]["scale"] == "relative"


def test_scaling_amounts_scales_differences_and_keeps_ratios():
    rng = np.random.default_rng(3)
    mu, v = rng.uniform(1, 3, 3000), rng.uniform(size=3000)
    y = mu * (1 + 0.3 * (v > 0.5)) * rng.gamma(2, 0.5, 3000)
    for gap, factor in (("relative", 1.0), ("difference", 1000.0)):
        one = vc.estimate(y, mu, v, outcome="mean", gap=gap)
        two = vc.estimate(1000 * y, 1000 * mu, v, outcome="mean", gap=gap)
        assert two.uneven.debiased == pytest.approx(factor * one.uneven.debiased)
        assert two.overall.low == pytest.approx(factor * one.overall.low)


def test_words():
    data = policies(20_000, seed=2)
    text = repr(vc.estimate("y", "mu", "age", data=data, outcome="mean", exposure="years"))
    assert "predicts 1.1" in text and ", observed 1." in text and ": A/E 1.1" in text
    table = vc.bin_table("y", "mu", data=data, outcome="mean")
    assert repr(table).startswith("prediction · means · 20,000 rows")
    assert vc.results.BinTable.from_dict(table.to_dict()).columns == table.columns


def test_few_large_amounts_are_said():
    rng = np.random.default_rng(0)
    y = rng.pareto(1.1, 2000)
    found = vc.estimate(y, np.full(2000, y.mean()), rng.normal(size=2000), outcome="mean")
    assert found.few_errors and "audit frequency and severity apart" in repr(found)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_perfect_predictions_have_no_error():
    y = np.arange(1.0, 301.0)
    found = vc.estimate(y, y, y, outcome="mean")
    assert found.uneven.debiased == found.error.debiased == 0
    assert found.overall.gap == 0 and found.uneven.p_value == found.error.p_value == 1


def test_lazy_rows_that_fit_are_read():
    pl = pytest.importorskip("polars")
    data = policies(500).dropna()
    lazy = pl.DataFrame(data.to_dict("list")).lazy()
    one, two = (
        vc.bin_table("y", "mu", "age", data=each, outcome="mean", exposure="years")
        for each in (data, lazy)
    )
    assert one.columns == two.columns


def test_rows_without_outcome_are_refused_or_dropped():
    data = policies(300).dropna()
    y = data["y"].to_numpy().copy()
    y[4] = np.nan
    with pytest.raises(InputError, match="y has no label: None at row 4"):
        vc.bin_table(y, data["mu"].to_numpy(), outcome="mean")
    table = vc.bin_table(y, data["mu"].to_numpy(), outcome="mean", unlabelled="drop")
    assert table.n_dropped == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": [0, 1]}, "classes belongs to probabilities"),
        ({"pos_label": 1}, "pos_label belongs to probabilities"),
        ({"event": "positive"}, "event belongs to probabilities"),
        ({"from_logits": True}, "from_logits belongs to probabilities"),
        ({"exposure": [1.0, 0.0, 1.0]}, "exposure is not an exposure: 0.0 at row 1"),
        ({"exposure": [1.0, 1.0]}, "lengths differ"),
        ({"y": [1.0, -2.0, 0.0], "gap": "relative"}, "y is negative: -2.0 at row 1"),
        ({"p": [1.0, 0.0, 2.0], "gap": "relative"}, "p is not positive: 0.0 at row 1"),
        ({"p": [1.0, np.nan, 2.0]}, "p is missing"),
        ({"y": [1.0, np.inf, 2.0]}, "y is too large"),
        ({"y": ["a", "b", "c"]}, "y holds levels, not numbers"),
        ({"outcome": None, "gap": "relative"}, "gap belongs to predictions of a mean"),
        ({"outcome": None, "exposure": [1, 1, 1]}, "exposure belongs to predictions of a mean"),
        ({"outcome": "median"}, "outcome must be"),
    ],
)
def test_wrong_use(change, message):
    given = {"y": [1.0, 2.0, 0.0], "p": [1.0, 1.5, 0.5], "outcome": "mean"} | change
    for function in (vc.bin_table, vc.estimate):
        with pytest.raises(InputError, match=message):
            function(**given)


def test_amounts_that_may_be_negative_are_compared_by_difference():
    y, mu, how = [1.0, -2.0, 0.0, 4.0], [1.0, 1.0, 0.5, 1.0], {"outcome": "mean", "n_bins": 1}
    table = vc.bin_table(y, mu, gap="difference", **how)
    assert table.columns["gap"] == [0.125]
    with pytest.raises(InputError, match=r"y is negative: -2\.0 at row 1"):
        vc.bin_table(y, mu, **how)


def test_an_error_of_exactly_zero_has_an_upper_limit():
    y = np.random.default_rng(0).poisson(1.0, 2000)
    found = vc.estimate(y, np.full(2000, y.mean()), np.zeros(2000), outcome="mean")
    # The overall A/E is known to about 4 %, and so is the error over a single bin.
    assert found.error.low == 0 and 0.035 < found.error.high < 0.05


def test_outcomes_that_are_all_zero_are_refused():
    with pytest.raises(InputError, match="y is 0 in all 200 rows"):
        vc.estimate(np.zeros(200), np.full(200, 0.01), np.arange(200), outcome="mean")


def test_limits_of_a_difference_may_be_below_minus_one():
    rng = np.random.default_rng(5)
    mu, v = np.full(2000, 50.0), rng.uniform(size=2000)
    y = rng.gamma(4, 10, 2000)
    found = vc.estimate(y, mu, v, outcome="mean", gap="difference")
    assert found.overall.low < 10 < found.overall.high and found.overall.low > 8
    table = vc.bin_table(y, mu, v, outcome="mean", gap="difference").to_frame()
    assert ((table["gap_low"] > 4) & (table["gap_high"] < 17)).all()


@pytest.mark.parametrize("name", ["vece", "ece", "curve", "compare", "slices", "make_bins"])
def test_functions_without_means_say_so(name):
    with pytest.raises(InputError, match="is for probabilities only"):
        getattr(vc, name)([1.0, 2.0], [1.0, 2.0], [1, 2], outcome="mean")


def test_collected_sums_are_refused():
    sim = vc.datasets.make_gap(300)
    data = {"y": sim.y, "p": sim.p, "v": sim.v}
    sums = vc.collect(data, vc.make_bins("y", "p", data=data))
    with pytest.raises(InputError, match="needs rows"):
        vc.estimate(sums, outcome="mean")
