"""Audits of predicted means: places and errors against plain sums, verdicts, words, wrong use."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import special

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
    assert place.predicted == pytest.approx(rows["mu"].mean())
    assert place.observed == pytest.approx(rows["y"].mean())
    assert 1 - place.gap == pytest.approx(rows["y"].sum() / rows["mu"].sum())
    assert place.low < -0.4 < place.high


def test_only_the_variable_with_the_fault_is_found(found):
    assert [row.variable for row in found if row.verdict != "no evidence"] == ["age"]
    row = found.row("age")
    assert row.verdict == "above limit" and row.low <= row.uneven.low < row.uneven.high <= row.high
    alone = vc.estimate("y", "mu", "age", data=visits(), outcome="mean", binning="atoms")
    assert row.uneven.value == alone.uneven.value and row.error == alone.error
    assert dict(found.left_out)["row"].startswith("row number")
    assert (found.gap, found.target.gap_low) == (alone.overall.gap, alone.overall.low)


def test_forms(found, tmp_path):
    frame = found.to_frame()
    assert frame["variable"].iloc[0] == "age" and frame["place_gap"].iloc[0] < -0.3
    found.save(tmp_path / "audit.json")
    assert str(vc.load(tmp_path / "audit.json").rows[0]) == str(found.rows[0])
    text = str(found)
    assert text.startswith("REPAIR: VARIABLES  The predicted mean of y is too low: A/E 1.1")
    assert "off by more than 2% once" in text.replace("\n", " ") and "62 and over" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "severity" not in text and "probabilit" not in text
    assert "A/E" in found._repr_html_() and "A/E" in str(found.row("age"))


@pytest.mark.parametrize(("gap", "limit"), [("relative", None), ("difference", 0.2)])
def test_pages_and_pictures_say_what_is_predicted(gap, limit, tmp_path):
    data = visits(3000).assign(y=lambda x: 1000 * x["y"], mu=lambda x: 1000 * x["mu"])
    limit = limit and 1000 * limit
    found = vc.audit("y", "mu", data=data, outcome="mean", gap=gap, limit=limit)
    found.save(tmp_path / "audit.json")
    loaded = vc.load(tmp_path / "audit.json")
    assert loaded.to_dict(ladder=True) == found.to_dict(ladder=True)
    for name in ("page.html", "page.md", "page.json"):
        found.report(tmp_path / name)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "predicts" in page and ("A/E" in page) == (gap == "relative")
    shown = re.sub("<[^>]*>", " ", page[page.index("<main") : page.index("</main")])
    for word in ("probabilit", "points", "says", "happens"):
        assert word not in shown
    ax = found.row("age").plot()
    assert ax.get_ylim()[1] > 3000
    assert found.plot().get_title(loc="left") == "Uneven error of y"


def test_the_ladder_finds_the_repair_that_suffices(found):
    assert found.advice == "variables" and "MeanCalibrator().fit(mu, y, X)" in str(found)
    rungs = {rung.name: rung for rung in found.ladder.rungs}
    assert rungs["variables"].uneven["age"].high < rungs["shift"].uneven["age"].low
    data = visits(8000, fault=0.0)
    loss = np.asarray(
        2 * (special.xlogy(data["y"], data["y"] / data["mu"]) - data["y"] + data["mu"])
    )
    data["mu"] *= 0.7
    even = vc.audit("y", "mu", ["age", "sex"], data=data, outcome="mean")
    assert even.advice == "shift"
    assert even.ladder.rung("shift").log_loss == pytest.approx(loss.mean(), rel=0.01)
    assert even.ladder.places_after[0] == pytest.approx(
        data["y"].mean() - data["mu"].mean(), rel=0.05
    )


def test_rungs_of_differences_are_judged_by_squares():
    """Repairs of differences may predict below 0, where counts have no deviance."""
    rng = np.random.default_rng(0)
    x, mu = rng.uniform(size=4000), rng.gamma(0.5, 1, 4000) + 0.001
    y = rng.poisson(mu * np.where(x > 0.5, 0.3, 1.5))
    found = vc.audit(y, mu, {"x": x}, outcome="mean", gap="difference", limit=0.05)
    assert found.advice == "variables" and "nan" not in str(found)
    assert found.ladder.rungs[0].log_loss == pytest.approx(np.mean((y - mu) ** 2))
    for size in (1.0, 1e6):  # no figure of the ladder touches the next, nor is rounding shown
        given = {"gap": "difference", "limit": 0.05 * size, "sample_weight": mu / 2}
        one = vc.audit(y * size, mu * size, {"x": x}, outcome="mean", **given)
        text = str(one)
        for line in re.findall("^[ >] (?:as it is|shift|score curve|variables)  .*", text, re.M):
            assert len(re.split(" +", line[18:])) == 12 and "e−1" not in line, line
        assert "Rows are weighted: so are predicts, observed," in text.replace("\n", " ")
        assert (
            "score" not in text.replace("score curve", "") and max(map(len, text.split("\n"))) < 90
        )
    assert "Audit of the predicted mean" in repr(found.report())
    with pytest.raises(InputError, match="curves are of probabilities only"):
        found["x"]
    with pytest.raises(InputError, match="'difference', those of this audit as 'relative'"):
        vc.audit(y, mu, {"x": x}, outcome="mean").since(found)


def test_right_predictions_are_fine_or_cannot_be_told():
    many = vc.audit("y", "mu", ["age", "sex"], data=visits(200_000, fault=0.0), outcome="mean")
    assert many.verdict == "fine" and not many.places
    few = vc.audit("y", "mu", ["age", "sex"], data=visits(400, fault=0.0), outcome="mean")
    assert few.verdict == "cannot tell"


def test_a_constant_gap_is_no_uneven_error():
    data = visits(20_000, fault=0.0)
    data["mu"] *= 0.8
    found = vc.audit("y", "mu", ["age", "noise"], data=data, outcome="mean")
    assert found.verdict == "repair" and "is too low" in str(found)
    assert not any(row.verdict == "above limit" for row in found)
    assert found.target.gap_low < -0.25 < found.target.gap_high


def test_a_difference_needs_its_limit():
    data = visits()
    data["y"] -= 3.0
    with pytest.raises(InputError, match="which difference"):
        vc.audit("y", "mu", data=data, outcome="mean", gap="difference")
    found = vc.audit("y", "mu", data=data, outcome="mean", gap="difference", limit=5)
    assert found.target.scale == "difference" and found.verdict == "watch"
    assert found.gap == pytest.approx((data["mu"] - data["y"]).mean())
    assert found.target.gap_low < found.gap < found.target.gap_high
    assert "A/E" not in str(found)


def test_groups_widen_the_intervals_of_bins():
    rng = np.random.default_rng(2)
    person = np.repeat(np.arange(200), 20)
    mu = np.full(4000, 2.0)
    y = rng.poisson(mu * rng.gamma(4, 0.25, 200)[person])
    v = rng.uniform(size=200)[person]
    alone = vc.audit(y, mu, {"v": v}, outcome="mean")
    grouped = vc.audit(y, mu, {"v": v}, outcome="mean", groups=person)
    widths = [
        np.subtract(one.row("v").table.columns["gap_high"], one.row("v").table.columns["gap_low"])
        for one in (alone, grouped)
    ]
    assert (widths[1] > 1.5 * widths[0]).all()
    assert grouped.row("v").p_holm > 0.01 > alone.row("v").p_holm
    ends = [one.target.gap_high - one.target.gap_low for one in (grouped, alone)]
    assert ends[0] > ends[1]


def test_few_large_amounts_are_said():
    rng = np.random.default_rng(0)
    y = rng.pareto(1.1, 2000)
    found = vc.audit(y, np.full(2000, 2.0), {"v": rng.normal(size=2000)}, outcome="mean")
    assert found.target.few_events and found.verdict != "fine"
    assert "audit frequency and severity apart" in str(found).replace("\n", " ")


def test_no_limit_is_above_what_the_bins_allow():
    # Few cells with large claims: the law of the gaps allowed 198 % along four levels.
    rng = np.random.default_rng(0)
    size, place = rng.gamma(0.7, 200, 64) + 5, np.arange(64) % 4
    rate = rng.poisson(0.13 * size) / size
    found = vc.audit(rate, np.full(64, 0.13), {"place": place}, outcome="mean", exposure=size)
    columns = found.row("place").table.columns
    reach = max(abs(end) for name in ("gap_low", "gap_high") for end in columns[name])
    assert found.row("place").high < 2 * reach
    assert "percent" in str(found.since(found))


def test_labels_of_zero_and_one_are_noted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    found = vc.audit(y, np.full(500, 1.2), {"v": rng.normal(size=500)}, outcome="mean")
    assert 'for probabilities omit outcome="mean"' in str(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slices": True}, "slices belongs to probabilities"),
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


def test_dates_and_given_cuts():
    data = visits(3000)
    data["when"] = pd.date_range("2024-01-01", periods=3000, freq="6h")
    found = vc.audit("y", "mu", data=data, outcome="mean", bins={"age": [18, 40, 61, 79]})
    assert len(found.row("age").table) == 3
    assert {"when", "when (weekday)"} <= {row.variable for row in found}


def test_a_saved_repair_of_means_is_not_one_of_probabilities(tmp_path):
    vc.calibrators.MeanCalibrator().fit([0.5, 2.5, 3.5, 1.0], [1, 2, 4, 1]).save(
        tmp_path / "m.json"
    )
    (tmp_path / "rows.csv").write_text("p\n0.5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"of means, not of probabilities\nhint: .*predict\(mu"):
        vc.apply(tmp_path / "m.json", tmp_path / "rows.csv", out=tmp_path / "out.csv")
