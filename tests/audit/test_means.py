"""Audits of predicted means: places and errors against plain sums, verdicts, words, wrong use."""

import json

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from varcal.exceptions import InputError


def visits(n=6000, seed=0, fault=0.4):
    """Counts; A/E is 1 + fault from the age of 61 on."""
    rng = np.random.default_rng(seed)
    age, mu = rng.integers(18, 80, n), np.exp(rng.normal(1, 0.4, n))
    return pd.DataFrame(
        {
            "y": rng.poisson(mu * np.where(age > 60, 1 + fault, 1.0)),
            "mu": mu,
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "noise": rng.normal(size=n),
            "row": np.arange(n),
        }
    )


@pytest.fixture(scope="module")
def found():
    return vc.audit("y", "mu", data=visits(), outcome="mean")


def test_the_place_has_the_means_of_its_rows(found):
    data, place = visits(), found.places[0]
    assert found.verdict == "repair" and place.variable == "age"
    start = int(place.text.split()[0])
    rows = data[data["age"] >= start]
    assert place.text == f"{start} and over" and 57 <= start <= 63
    assert place.n == len(rows) and place.share == pytest.approx(len(rows) / len(data))
    assert place.mean.predicted == pytest.approx(rows["mu"].mean())
    assert place.mean.observed == pytest.approx(rows["y"].mean())
    assert place.mean.ratio == pytest.approx(rows["y"].sum() / rows["mu"].sum())
    assert place.mean.low < 0.4 < place.mean.high
    shown = f"{place.mean.predicted:.2f}, observed {place.mean.observed:.2f}"
    assert str(place) == f"age {place.text}: predicts {shown}: A/E {place.mean.ratio:.2f}"


def test_only_the_variable_with_the_fault_is_found(found):
    assert [row.variable for row in found if row.verdict != "no evidence"] == ["age"]
    row = found.row("age")
    assert row.verdict == "above limit" and row.low <= row.uneven.low < row.uneven.high <= row.high
    alone = vc.estimate("y", "mu", "age", data=visits(), outcome="mean", binning="atoms")
    assert row.uneven.value == alone.uneven.value and row.error == alone.error
    assert dict(found.left_out)["row"].startswith("row number")
    assert found.overall == alone.overall


def test_forms(found):
    frame = found.to_frame()
    assert frame["variable"].iloc[0] == "age" and frame["place_a_e"].iloc[0] > 1.3
    document = json.loads(json.dumps(found.to_dict()))
    assert document["verdict"] == "repair" and len(document["rows"]) == 3
    assert document["rows"][0]["table"]["columns"]["a_e"][0] < 1.2
    text = str(found)
    assert text.startswith("REPAIR  Predictions of y are surely off along age")
    assert "Limit 2% of the predicted mean" in text and "over: A/E 1." in text
    assert max(map(len, text.splitlines())) <= 80
    assert "severity" not in text
    assert "<table" in found._repr_html_() and "A/E" in str(found.row("age"))


def test_right_predictions_are_fine_or_cannot_be_told():
    many = vc.audit("y", "mu", ["age", "sex"], data=visits(200_000, fault=0.0), outcome="mean")
    assert many.verdict == "fine" and not many.places
    few = vc.audit("y", "mu", ["age", "sex"], data=visits(400, fault=0.0), outcome="mean")
    assert few.verdict == "cannot tell"


def test_a_constant_gap_is_no_uneven_error():
    data = visits(20_000, fault=0.0)
    data["mu"] *= 0.8
    found = vc.audit("y", "mu", ["age", "noise"], data=data, outcome="mean")
    assert found.verdict == "repair" and "are too low" in str(found)
    assert not any(row.verdict == "above limit" for row in found)
    assert found.overall.low < 0.25 < found.overall.high


def test_a_difference_needs_its_limit():
    data = visits()
    data["y"] -= 3.0
    with pytest.raises(InputError, match="which difference"):
        vc.audit("y", "mu", data=data, outcome="mean", gap="difference")
    found = vc.audit("y", "mu", data=data, outcome="mean", gap="difference", limit=5)
    assert found.gap == "difference" and found.verdict == "watch"
    gap = (data["mu"] - data["y"]).mean()
    assert found.overall.value == pytest.approx(gap)
    assert found.overall.low < gap < found.overall.high
    assert "difference" in str(found) and "A/E" not in str(found)


def test_groups_widen_the_intervals_of_bins():
    rng = np.random.default_rng(2)
    person = np.repeat(np.arange(200), 20)
    mu = np.full(4000, 2.0)
    y = rng.poisson(mu * rng.gamma(4, 0.25, 200)[person])
    v = rng.uniform(size=200)[person]
    alone = vc.audit(y, mu, {"v": v}, outcome="mean")
    grouped = vc.audit(y, mu, {"v": v}, outcome="mean", groups=person)
    widths = [
        np.subtract(one.row("v").table.columns["a_e_high"], one.row("v").table.columns["a_e_low"])
        for one in (alone, grouped)
    ]
    assert (widths[1] > 1.5 * widths[0]).all()
    assert grouped.row("v").p_holm > 0.01 > alone.row("v").p_holm
    assert grouped.overall.high - grouped.overall.low > alone.overall.high - alone.overall.low


def test_few_large_amounts_are_said():
    rng = np.random.default_rng(0)
    y = rng.pareto(1.1, 2000)
    found = vc.audit(y, np.full(2000, 2.0), {"v": rng.normal(size=2000)}, outcome="mean")
    assert found.few_errors and found.verdict != "fine"
    assert "audit frequency and severity apart" in str(found).replace("\n", " ")


def test_labels_of_zero_and_one_are_noted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    found = vc.audit(y, np.full(500, 1.2), {"v": rng.normal(size=500)}, outcome="mean")
    assert 'for probabilities omit outcome="mean"' in str(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slices": True}, "slices belongs to probabilities"),
        ({"ladder": "score"}, "ladder belongs to probabilities"),
        ({"protected": "sex"}, "protected belongs to probabilities"),
        ({"relative_limit": 0.1}, "relative_limit belongs to probabilities"),
        ({"pos_label": 1}, "pos_label belongs to probabilities"),
        ({"limit": 3}, "limit is 3, and gaps are relative"),
        ({"limit": -1}, "limit must lie between 0 and 1"),
        ({"outcome": None, "gap": "relative"}, "gap belongs to predictions of a mean"),
    ],
)
def test_wrong_use(change, message):
    given = {"y": "y", "p": "mu", "data": visits(200), "outcome": "mean"} | change
    with pytest.raises(InputError, match=message):
        vc.audit(**given)


def test_a_page_is_not_available_yet(found, tmp_path):
    with pytest.raises(InputError, match="page or a Markdown report is for probabilities only"):
        found.report(tmp_path / "page.html")
    found.report(tmp_path / "audit.json")
    assert json.loads((tmp_path / "audit.json").read_text())["outcome"] == "mean"


def test_models_are_classifiers():
    from sklearn.linear_model import LinearRegression

    data = visits(200)
    model = LinearRegression().fit(data[["age"]], data["y"])
    with pytest.raises(InputError, match="is for probabilities only"):
        vc.audit_estimator(model, data[["age"]], data["y"], outcome="mean")


def test_an_assertion_follows_the_verdict():
    from varcal.testing import assert_calibrated

    data = visits()
    with pytest.raises(AssertionError, match="A/E"):
        assert_calibrated("y", "mu", data=data, outcome="mean")
    assert_calibrated("y", "mu", data=data, outcome="mean", limit=0.9)


def test_types_have_names():
    found = vc.audit("y", "mu", ["age"], data=visits(300), outcome="mean")
    assert isinstance(found, vc.results.MeanAudit)
    assert isinstance(found.rows[0], vc.results.MeanAuditRow)


def test_dates_and_given_cuts():
    data = visits(3000)
    data["when"] = pd.date_range("2024-01-01", periods=3000, freq="6h")
    found = vc.audit("y", "mu", data=data, outcome="mean", bins={"age": [18, 40, 61, 79]})
    assert len(found.row("age").table) == 3
    assert {"when", "when (weekday)"} <= {row.variable for row in found}
