import json

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from varcal._inference.multiplicity import benjamini_hochberg, holm
from varcal.exceptions import InputError


@pytest.fixture(scope="module")
def found(adult):
    return vc.audit(adult.y, adult.p, adult.X)


def test_the_overall_gap_comes_first_and_the_ranking_goes_beyond_it(found):
    assert found.gap == found.claims["risk"].gap == pytest.approx(-0.1915, abs=1e-3)
    assert found.claims["confidence"].gap == pytest.approx(0.2065, abs=1e-3)
    assert found.gap_low < found.gap < found.gap_high
    assert [row.variable for row in found.rows[:2]] == ["relationship", "marital-status"]
    uneven = [row.uneven.debiased for row in found]
    assert uneven == sorted(uneven, reverse=True)
    for row in found:
        overall = abs(found.claims[row.claim].gap)
        assert row.vece.debiased >= overall - 1e-3  # VECE is never below it
        assert row.uneven.low <= row.uneven.debiased <= row.uneven.high
        assert row.low <= row.uneven.low and row.uneven.high <= row.high
        (other,) = row.others
        assert {row.claim, other.claim} == {"risk", "confidence"}
        assert other.uneven.debiased <= row.uneven.debiased
        assert other.low <= other.uneven.low <= other.uneven.debiased <= other.high
        assert row.rank_low <= 1 + found.rows.index(row) <= row.rank_high


def test_a_predicted_probability_is_too_high_or_too_low_and_not_confident(rng):
    s = rng.uniform(0.3, 0.9, 4000)
    v = {"age": rng.uniform(18, 90, 4000)}
    y = rng.random(4000) < s - 0.1 - 0.1 * (v["age"] > 60)
    for claim, side in ((s, "predicted too high"), (1 - s, "predicted too low")):
        found = vc.audit(y == side.endswith("high"), claim, v, event="positive")
        word = side.removeprefix("predicted ")
        assert found.row("age").where.startswith(f"risk {word} by ")
        assert f"risk {word} by" in repr(found["age"])
        assert word in found["age"]._repr_html_()
        assert "sure by" not in repr(found["age"])


def test_many_zeros_do_not_hide_the_other_values(found):
    row = found.row("capital-gain")
    assert row.n_bins > 2 and row.uneven.low > 0


def test_noise_columns_are_not_found(rng):
    n = 4000
    s = rng.uniform(0.3, 0.9, n)
    y = rng.random(n) < s - 0.07
    X = {f"noise{k}": rng.normal(size=n) for k in range(8)} | {"age": rng.integers(18, 90, n)}
    y = np.where(X["age"] > 70, rng.random(n) < s - 0.27, y)
    found = vc.audit(y, s, X, event="positive")
    assert found.rows[0].variable == "age" and found.rows[0].verdict == "off"
    assert {row.verdict for row in found.rows[1:]} == {"no evidence"}
    assert "age" in found.sentence
    assert found.rows[0].place.text.endswith(" and over") and found.rows[0].place.gap > 0.2
    assert all(row.place is None and row.where == "" for row in found.rows[1:])


def test_what_cancels_in_one_claim_shows_in_the_other(rng):
    """True rate p + 0.06 x: over- and underestimated risk cancel in the confidence."""
    n = 20_000
    x, noise, p = rng.standard_normal(n), rng.standard_normal(n), rng.beta(2, 2, n)
    y = rng.random(n) < np.clip(p + 0.06 * x, 0, 1)
    found = vc.audit(y, p, {"x": x, "noise": noise})
    row = found.rows[0]
    assert (row.variable, row.claim, row.verdict) == ("x", "risk", "off")
    assert row.where.startswith("risk too low by ") and "where x" in row.where
    assert row.others[0].uneven.debiased < 0.01 and found.row("noise").verdict == "no evidence"
    assert vc.audit(y, p, {"x": x}, event="correct").rows[0].verdict == "no evidence"
    sure = rng.uniform(0.5, 1, n) * np.sign(rng.random(n) - 0.5)
    p = np.where(sure > 0, sure, 1 + sure)
    pull = 0.1 * np.tanh(x) * np.sign(p - 0.5)
    y = rng.random(n) < np.clip(p + pull, 0, 1)
    row = vc.audit(y, p, {"x": x}).rows[0]
    assert (row.claim, row.verdict) == ("confidence", "off")
    assert row.others[0].claim == "risk" and row.others[0].uneven.debiased < 0.01


def test_more_classes_have_a_claim_each(rng):
    n = 6000
    p = rng.dirichlet([2, 2, 2], n)
    v = rng.random(n)
    shift = 0.5 * np.minimum(p[:, 0], p[:, 1]) * np.where(v > 0.5, 1, -1)
    true = p + np.column_stack([shift, -shift, np.zeros(n)])
    y = np.array(["a", "b", "c"])[(rng.random(n)[:, None] > true.cumsum(1)).sum(1)]
    found = vc.audit(y, p, {"v": v, "noise": rng.random(n)}, classes=["a", "b", "c"])
    assert list(found.claims) == ["confidence", "class a", "class b", "class c"]
    row = found.row("v")
    assert row.claim in ("class a", "class b") and row.verdict == "off"
    by_claim = {other.claim: other for other in row.others}
    assert by_claim["class c"].uneven.debiased < 0.01
    assert found.row("noise").verdict == "no evidence"
    only = vc.audit(y, p, {"v": v}, classes=["a", "b", "c"], event="classwise")
    assert list(only.claims) == ["class a", "class b", "class c"]
    assert only.rows[0].verdict == "off"
    with pytest.raises(InputError, match="pos_label is 'a'"):
        vc.audit(y, p, {"v": v}, classes=["a", "b", "c"], pos_label="a")


def test_the_risk_of_the_other_class_is_the_opposite(rng):
    n = 3000
    v, p = rng.random(n), rng.beta(2, 2, n)
    y = (rng.random(n) < np.clip(p + 0.2 * (v - 0.5), 0, 1)).astype(int)
    one, two = (vc.audit(y, q, {"v": v}, pos_label=label) for label, q in ((1, p), (0, 1 - p)))
    a, b = one.rows[0], two.rows[0]
    assert two.claims["risk"].label == "0" and two.gap == pytest.approx(-one.gap)
    assert b.uneven.debiased == pytest.approx(a.uneven.debiased, rel=1e-9)
    assert b.uneven.p_value == pytest.approx(a.uneven.p_value, rel=1e-6)
    assert b.place.gap == pytest.approx(-a.place.gap) and b.place.text == a.place.text


def test_intervals_agree_with_p_values(rng):
    for _ in range(12):
        n = int(rng.integers(150, 1500))
        p, v = rng.beta(2, 3, n), rng.random(n)
        y = rng.random(n) < np.clip(p + rng.uniform(0, 0.2) * (v - 0.5), 0, 1)
        for row in vc.audit(y, p, {"v": v, "w": rng.random(n), "g": rng.integers(0, 4, n)}):
            assert (row.uneven.low > 0) == (row.uneven.p_value < 0.05)
            assert (row.low > 0) == (row.p_holm < 0.05)
            assert row.low <= row.uneven.debiased <= row.high


def test_curves_rows_and_missing_names(found):
    assert found["age"].variable == "age" and len(found) == 14
    with pytest.raises(InputError, match="did you mean 'age'"):
        found["agee"]
    with pytest.raises(InputError, match="no column 'x'"):
        found.row("x")


def test_frames(found, adult, make_frame):
    data = make_frame({"y": adult.y[:800].tolist(), "p": adult.p[:800].tolist(),
                       "age": adult["age"][:800].tolist(), "w": [1.0] * 800,
                       "sex": adult["sex"][:800].tolist()})  # fmt: skip
    audit = vc.audit("y", "p", data=data, sample_weight="w")
    assert {row.variable for row in audit} == {"age", "sex"}
    frame = audit.to_frame()
    assert isinstance(frame, pd.DataFrame if isinstance(data, dict) else type(data))
    assert len(vc.audit("y", "p", ["age"], data=data)) == 1


def test_saved_and_loaded(found, tmp_path):
    path = tmp_path / "audit.json"
    found.save(path)
    again = vc.load(path)
    assert again.to_dict() == found.to_dict() and repr(again) == repr(found)
    json.loads(path.read_text(encoding="utf-8"))
    path.write_text(path.read_text(encoding="utf-8")[:200], encoding="utf-8")
    with pytest.raises(InputError, match="is not a saved varcal result"):
        vc.load(path)
    with pytest.raises(InputError, match="cannot read"):
        vc.load(tmp_path / "nothing.json")
    with pytest.raises(InputError, match="cannot write"):
        found.save(tmp_path / "no" / "audit.json")
    assert list(tmp_path.iterdir()) == [path]


def test_changes_since_last_month(rng):
    def month(step, n=6000):
        s, v = rng.uniform(0.3, 0.7, n), rng.random(n)
        y = rng.random(n) < s - step * (v > 0.5)
        return vc.audit(y, s, {"v": v, "w": rng.normal(size=n)}, event="positive")

    before, after = month(0.02), month(0.2)
    changes = after.since(before)
    table = changes.to_frame().set_index("variable")
    assert table.loc["v", "verdict"] == "worse" and table.loc["w", "verdict"] == "unchanged"
    assert table.loc["v", "low"] < table.loc["v", "change"] < table.loc["v", "high"]
    assert before.since(after).to_frame().set_index("variable").loc["v", "verdict"] == "better"
    fewer = vc.audit([0, 1] * 50, [0.4, 0.6] * 50, {"z": range(100)}, event="positive")
    assert set(fewer.since(before).columns["verdict"]) == {"new", "gone"}
    assert "worse" in repr(changes)


def test_a_bias_everywhere_is_not_a_hidden_error(rng):
    """Risk too high by 14 points everywhere: the confidence is off along what follows the score."""
    n = 5000
    p = rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < p - 0.14
    found = vc.audit(y, p, {"v": rng.normal(size=n), "like p": p + 0.05 * rng.normal(size=n)})
    assert found.claims["risk"].gap == pytest.approx(0.14, abs=0.02)
    assert abs(found.claims["confidence"].gap) < 0.03
    assert {row.verdict for row in found} == {"no evidence"}


def test_multiclass_weights_dropped_rows_and_notes(rng):
    n = 900
    p = rng.dirichlet([2, 2, 2], n)
    y = np.array(["abc"[k] for k in rng.integers(0, 3, n)], dtype=object)
    y[:5] = None
    v = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    found = vc.audit(y, p, {"v": v}, unlabelled="drop", sample_weight=rng.random(n))
    assert found.n_dropped == 5
    assert any("5 rows without an outcome" in note for note in found.notes)
    assert any("Missing values" in note for note in found.notes)
    assert found.rows[0].missing == pytest.approx(0.1, abs=0.04)


def test_own_cut_points_and_wrong_ones(adult):
    audit = vc.audit(adult.y, adult.p, {"age": adult["age"]}, bins={"age": [18, 30, 65]})
    assert audit.row("age").n_bins == 4
    with pytest.raises(InputError, match="no column 'agee'"):
        vc.audit(adult.y, adult.p, {"age": adult["age"]}, bins={"agee": [18, 30]})
    with pytest.raises(InputError, match="no column 'agee' in the audit\nhint: did you mean 'age'"):
        audit["agee"]


def test_groups_widen_intervals(rng):
    unit = np.repeat(np.arange(150), 20)
    n = len(unit)
    s, v = rng.uniform(0.3, 0.7, n), rng.random(n)
    y = rng.random(n) < np.clip(s + rng.normal(0, 0.2, 150)[unit], 0, 1)
    alone = vc.audit(y, s, {"v": v}, event="positive")
    grouped = vc.audit(y, s, {"v": v}, event="positive", groups=unit)
    assert grouped.gap_high - grouped.gap_low > 1.5 * (alone.gap_high - alone.gap_low)
    assert grouped.grouped


def test_too_few_rows():
    found = vc.audit([0, 1] * 20, [0.4, 0.6] * 20, {"v": range(40)})
    assert found.rows[0].verdict == "too few rows"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"event": "each"}, "event must be"),
        ({"limit": 2}, "limit must lie in [0, 1)"),
        ({"limit": "2"}, "limit must lie in [0, 1)"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError) as caught:
        vc.audit([0, 1], [0.2, 0.6], {"v": [1, 2]}, **options)
    assert message in str(caught.value)


def test_no_variables():
    with pytest.raises(InputError, match="X is not given"):
        vc.audit([0, 1], [0.2, 0.6])
    with pytest.raises(InputError, match="no column left"):
        vc.audit("y", "p", data={"y": [0, 1], "p": [0.2, 0.6]})
    with pytest.raises(InputError, match="X is None"):
        vc.audit([0, 1], [0.2, 0.6], None)


def test_multiplicity_is_that_of_statsmodels(rng):
    from statsmodels.stats.multitest import multipletests

    p = rng.random(40) ** 3
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1])
    np.testing.assert_allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1])


def test_progress_bar_only_on_a_terminal(rng, monkeypatch, capsys):
    import sys

    from varcal._text.progress import progress

    assert list(progress([1, 2], "Auditing", n_rows=10**7)) == [1, 2]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress([1, 2], "Auditing", n_rows=10)) == [1, 2]
    assert not capsys.readouterr().err
    assert list(progress([1, 2], "Auditing", n_rows=10**7)) == [1, 2]


def test_columns_without_values_are_left_out_with_a_note(rng):
    y, p = rng.integers(0, 2, 300), rng.uniform(0.05, 0.95, 300)
    found = vc.audit(y, p, {"gone": np.full(300, np.nan), "v": rng.normal(size=300)})
    assert "v" in found and "gone" not in found
    assert found.left_out == (("gone", "every value is missing"),)
    with pytest.raises(InputError, match="X has no value"):
        vc.audit(y, p, {"gone": np.full(300, np.nan)})


def test_odd_variables_and_groups(rng):
    y, p = rng.integers(0, 2, 300), rng.uniform(0.05, 0.95, 300)
    unit = np.arange(300) % 20
    found = vc.audit(y, p, {"c": np.ones(300), "v": rng.normal(size=300) * 1e20}, groups=unit)
    assert {row.variable for row in found} == {"c", "v"}
    with pytest.raises(InputError, match="4 groups with weight"):
        vc.audit(y, p, {"v": rng.normal(size=300)}, groups=unit % 4)
    weight = np.where(unit == 0, 1.0, 0.0)
    with pytest.raises(InputError, match="groups has 1 group with weight"):
        vc.audit(y, p, {"v": rng.normal(size=300)}, groups=unit, sample_weight=weight)
    many = vc.audit(y, p, {"id": [f"u{k}" for k in range(300)]})
    assert many.rows[0].verdict == "too few rows"  # every level is rare: one pooled bin


def test_a_constant_gap_does_not_raise_the_noise_floor(rng):
    """The noise floor is that of a perfect model whatever the gap, also with groups."""
    n = 5000
    p, unit = rng.uniform(0.4, 0.6, n), rng.integers(0, 50, n)
    floors = [
        vc.estimate(rng.random(n) < p - gap, p, rng.random(n), event="positive", groups=unit)
        for gap in (0.0, 0.3)
    ]
    assert floors[1].noise_floor < 1.3 * floors[0].noise_floor


def test_since_refuses_another_event(found, adult):
    other = vc.audit(adult.y, adult.p, {"age": adult["age"]}, event="positive")
    with pytest.raises(InputError, match="previous is of event"):
        found.since(other)
    with pytest.raises(InputError, match="previous is a dict"):
        found.since({})


def test_intervals_for_all_variables_contain_those_for_one():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 400)
    y = rng.random(400) < p
    X = {"x": rng.normal(size=400), "level": rng.choice(list("abc"), 400)}
    row = vc.audit(y, p, X, repair=False).row("x")
    assert row.p_holm < 0.05 and row.low > 0  # found by its test, not by its size
    assert row.low <= row.uneven.low <= row.uneven.debiased <= row.uneven.high <= row.high


def test_places_have_the_ends_of_their_bins_with_many_classes(rng):
    n, k = 4000, 12
    p = rng.dirichlet(np.full(k, 0.5), n)
    v = rng.uniform(0, 100, n)
    true = p.copy()
    true[v > 50, 0] *= 0.1
    true /= true.sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    found = vc.audit(
        y, p, {"v": v}, event="classwise", classes=list(range(k)), bins={"v": [25, 50, 75]}
    )
    row = found.row("v")
    assert row.claim == "class 0" and row.place.text == "50 and over"
    assert row.place.n == (v > 50).sum()
    assert row.weakest.text in ("up to 25", "25 to 50", "50 to 75", "75 and over")


def test_a_bin_of_a_single_cell_is_shown_as_a_range_unless_its_values_are_the_same(rng):
    n = 8000
    p = rng.beta(2, 2, n)
    y = rng.random(n) < p
    v = rng.choice([0.0, 2.0], n)
    v[:5] = rng.uniform(0.3, 0.7, 5)
    place = vc.audit(y, p, {"v": v}, bins={"v": [-1, 0, 1, 3]}, repair=False).rows[0].weakest
    assert (place.text, place.n) == ("0 to 1", 5)
    v[:50] = 1.0
    place = vc.audit(y, p, {"v": v}, repair=False).rows[0].weakest
    assert (place.text, place.n) == ("1", 50)


def test_values_without_weight_are_no_values(rng):
    y, p = rng.integers(0, 2, 300), rng.uniform(0.05, 0.95, 300)
    weight = np.repeat([0.0, 1.0], 150)
    rows = {"y": y, "p": p, "w": weight, "gone": np.where(weight == 0, 1.0, np.nan)}
    rows["v"] = rng.normal(size=300)
    bins = vc.make_bins("y", "p", data=rows, sample_weight="w")
    found = vc.audit("y", "p", data=rows, sample_weight="w", repair=False)
    for one in (found, vc.audit(vc.collect(rows, bins))):
        assert one.left_out == (("gone", "every value is missing"),)


def test_more_levels_than_groups_can_tell_apart_are_tested_by_the_most_frequent(rng):
    y, p = rng.integers(0, 2, 300), rng.uniform(0.05, 0.95, 300)
    level = rng.choice(list("abcdefghijkl"), 300)
    y = np.where(level == "a", 1, y)
    level = np.where(rng.random(300) < 0.3, "a", level)
    (row,) = vc.audit(y, p, {"level": level}, groups=np.arange(300) % 12, repair=False)
    assert 0 < row.uneven.p_value < 0.9


def test_a_nearly_constant_column_has_a_bound(rng):
    n = 3000
    p = rng.uniform(0.2, 0.8, n)
    v = np.zeros(n)
    v[:6] = 1
    (row,) = vc.audit(rng.random(n) < p, p, {"v": v.astype(int).astype(str)}, n_bins=1000)
    assert row.high <= 4 * 6 / n
