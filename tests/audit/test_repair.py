"""What a repair would achieve, against simulations with known truth."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.special import expit, logit
from sklearn.metrics import accuracy_score, log_loss

import varcal as vc
from varcal._audit import repair as repair_module
from varcal._audit.repair import repair_of
from varcal._input.predictions import Predictions
from varcal.calibrators._interface import held_out
from varcal.exceptions import InputError


def columns(rows):
    """The variables of checked rows as plain columns."""
    return {
        one.name: np.array([*one.levels, None], dtype=object)[one.values]
        if one.kind == "levels"
        else one.values
        for one in rows.variables
    }


def audit_of(rows, **options):
    return vc.audit(
        rows.y,
        rows.p,
        columns(rows),
        sample_weight=rows.weight,
        groups=rows.groups,
        **options,
    )


def try_repair(y, p, X, *, protected=(), random_state=0, event="positive", **given):
    rows = Predictions.of(y, p, X, **given)
    return repair_of(
        rows,
        lambda part: audit_of(part, event=event),
        protected=protected,
        random_state=random_state,
    )


def draw(n, seed, size=1.0):
    """Rows whose risk is off along a category and a number, with the true rate of each."""
    rng = np.random.default_rng(seed)
    group, x = rng.integers(0, 20, n), rng.uniform(0, 1, n)
    p = rng.beta(2, 4, n).clip(0.01, 0.99)
    shift = np.random.default_rng(99).normal(0, 0.6, 20)[group] + 1.2 * np.sin(2 * np.pi * x)
    rate = expit(logit(p) + size * shift)
    X = {"group": group.astype(str), "x": x, "noise": rng.normal(size=n)}
    return rng.random(n) < rate, p, X, rate


@pytest.fixture(scope="module")
def found():
    y, p, X, _ = draw(4000, 0)
    repair, reason = try_repair(y, p, X, protected=["group"])
    assert reason == ""
    return repair


def test_rows_are_halved_and_judged_alike(found):
    assert (found.n_rows, found.n_learned, found.sampled) == (2000, 2000, False)
    assert found.before.n_rows == found.full.after.n_rows == found.allowed.after.n_rows == 2000


def test_a_repair_helps_where_there_is_an_error(found):
    assert found.helps and found.full.helps and not found.full.worse
    before = {row.variable: row.uneven for row in found.before}
    after = {row.variable: row.uneven for row in found.full.after}
    assert after["x"].high < before["x"].low
    assert after["group"].debiased < 0.7 * before["group"].debiased
    loss = found.full.log_loss
    assert found.full.log_loss_change[0] == pytest.approx(loss[1] - loss[0])
    assert found.full.log_loss_change[2] < -found.full.least_change < 0


def test_protected_columns_are_not_read(found):
    assert found.protected == ("group",)
    assert found.full.variables == ("group", "x", "noise")
    assert found.allowed.variables == ("x", "noise")
    before = {row.variable: row.uneven for row in found.before}
    after = {row.variable: row.uneven for row in found.allowed.after}
    assert after["x"].high < before["x"].low
    assert after["group"].debiased > before["group"].debiased / 2
    assert found.full.log_loss[1] < found.allowed.log_loss[1] < found.allowed.log_loss[0]


def test_losses_are_those_of_scikit_learn():
    """Of the rows that are judged, before and after."""
    y, p, X, _ = draw(1000, 3)
    judged = []
    rows = Predictions.of(y, p, X)

    def audit(part):
        judged.append(part)
        return audit_of(part)

    repair, _ = repair_of(rows, audit)
    for k, part in enumerate(judged):
        assert repair.full.log_loss[k] == pytest.approx(log_loss(part.y, part.p))
        assert repair.full.accuracy[k] == pytest.approx(accuracy_score(part.y, part.p > 0.5))


@pytest.mark.slow
def test_intervals_after_the_repair_hold_the_truth():
    """Cross-fitted probabilities fail here: their audit gives 0.0 where the truth is 4.3 points."""
    held = []
    for seed in range(8):
        y, p, X, rate = draw(1000, seed)
        parts = []
        rows = Predictions.of(y, p, X | {"rate": rate})

        def audit(part, parts=parts):
            kept = tuple(one for one in part.variables if one.name != "rate")
            parts.append(part)
            return audit_of(Predictions(part.y, part.p, part.classes, kept), event="positive")

        repair, _ = repair_of(rows, audit, protected=["rate"])
        after = {row.variable: row for row in repair.allowed.after}["group"]
        part = parts[-1]
        rate_of = next(one.values for one in part.variables if one.name == "rate")
        level = next(one.values for one in part.variables if one.name == "group")
        # Bins of the audit pool no level here: every one has some 25 rows.
        apart = part.p - rate_of
        by_level = np.bincount(level, apart - apart.mean())
        truth = np.abs(by_level).sum() / len(level)
        held.append(after.uneven.low <= truth <= after.uneven.high)
    assert np.mean(held) >= 0.8


def test_nothing_to_repair():
    y, p, X, _ = draw(4000, 1, size=0.0)
    repair, _ = try_repair(y, p, X)
    assert not repair.helps and not repair.full.worse
    assert abs(repair.full.log_loss_change[0]) < repair.full.least_change


def test_a_tiny_but_certain_rise_is_not_worse(monkeypatch):
    """Worse needs a size, and so does better."""
    y, p, X, _ = draw(4000, 2, size=0.0)

    def slightly(calibrator, learned, judged):
        return judged.p * 0.999

    monkeypatch.setattr(held_out, "calibrate_held_out", slightly)
    repair, _ = try_repair(y, p, X)
    assert abs(repair.full.log_loss_change[0]) < repair.full.least_change
    assert not repair.full.worse and not repair.full.helps

    monkeypatch.setattr(held_out, "calibrate_held_out", lambda *given: given[2].p * 0.5)
    repair, _ = try_repair(y, p, X)
    assert repair.full.worse and not repair.helps


def test_more_rows_than_needed_are_sampled(monkeypatch):
    monkeypatch.setattr(repair_module, "REPAIR_ROWS", 300)
    monkeypatch.setattr(repair_module, "JUDGED_ROWS", 400)
    y, p, X, _ = draw(2000, 4)
    repair, _ = try_repair(y, p, X)
    assert (repair.n_learned, repair.n_rows, repair.sampled) == (300, 400, True)


def test_groups_are_never_on_both_sides():
    y, p, X, _ = draw(3000, 5)
    unit = np.arange(3000) // 10
    rows = Predictions.of(y, p, X, groups=unit)
    learned, judged = repair_module._split(rows, 0)
    assert not set(unit[learned]) & set(unit[judged])
    assert len(learned) == len(judged) == 1500
    repair, _ = try_repair(y, p, X, groups=unit)
    assert repair.helps and repair.before.grouped and repair.full.after.grouped


@pytest.mark.parametrize(
    ("n", "n_groups", "reason"),
    [
        (40, 0, "a repair needs 50 rows; there are 40"),
        (600, 11, "a repair needs 12 groups; there are 11"),
        (600, 12, ""),
    ],
)
def test_reasons_for_no_repair(n, n_groups, reason):
    y, p, X, _ = draw(n, 6)
    groups = {"groups": np.arange(n) % n_groups} if n_groups else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        repair, told = try_repair(y, p, {"x": X["x"]}, **groups)
    assert told == reason
    assert (repair is None) == bool(reason)


def test_half_of_the_rows_may_be_too_few_for_an_audit():
    y, p, X, _ = draw(600, 6)
    unit = np.arange(600) % 13
    repair, reason = try_repair(y, p, X, groups=unit, sample_weight=(unit < 7).astype(float))
    assert repair is None
    assert reason.startswith("half of the rows cannot be audited: groups has")


def test_one_class():
    repair, reason = try_repair([True] * 100, np.full(100, 0.5), {"x": np.arange(100)})
    assert repair is None
    assert reason == "the rows to learn from have outcomes of a single class"


def test_sampling_weights_and_missing_values():
    y, p, X, _ = draw(3000, 7)
    rng = np.random.default_rng(0)
    X["x"] = np.where(rng.random(3000) < 0.1, np.nan, X["x"])
    X["group"] = np.where(rng.random(3000) < 0.1, None, X["group"].astype(object))
    X["never"] = np.full(3000, np.nan)
    weight = rng.uniform(0, 200, 3000)
    weight[:5] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        repair, _ = try_repair(y, p, X, sample_weight=weight)
    assert repair.helps
    ten_times, _ = try_repair(y, p, X, sample_weight=weight * 10)
    assert ten_times.full.log_loss[1] == pytest.approx(repair.full.log_loss[1], abs=1e-6)


def test_two_columns_give_the_same_as_one():
    y, p, X, _ = draw(1000, 8)
    one, _ = try_repair(y, p, X)
    two, _ = try_repair(y, np.column_stack([1 - p, p]), X)
    assert one.full.log_loss == pytest.approx(two.full.log_loss)


def test_more_classes():
    rng = np.random.default_rng(0)
    n = 3000
    logits, x = rng.normal(size=(n, 4)) * 2, rng.uniform(-1, 1, n)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    true = p ** np.exp(1.2 * x)[:, None]
    true /= true.sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    repair, _ = try_repair(y, p, {"x": x}, event="correct")
    assert repair.helps
    assert repair.full.accuracy[0] == repair.full.accuracy[1]
    assert repair.full.after.rows[0].uneven.high < repair.before.rows[0].uneven.low


def test_unknown_protected_column():
    y, p, X, _ = draw(100, 9)
    with pytest.raises(InputError, match="no column 'grup'"):
        try_repair(y, p, X, protected=["grup"])


def test_the_same_seed_gives_the_same_figures():
    y, p, X, _ = draw(1000, 10)
    first, again, other = (try_repair(y, p, X, random_state=seed)[0] for seed in (0, 0, 1))
    assert first.full.log_loss == again.full.log_loss != other.full.log_loss


def test_audits_try_a_repair_when_it_is_asked_for():
    y, p, X, _ = draw(2000, 11)
    found = vc.audit(y, p, X, protected=["group"])
    assert found.repair is found.repair
    assert found.repair.full.helps and found.repair.allowed.variables == ("x", "noise")
    assert found.repair.full.after.repair is None
    off = vc.audit(y, p, X, repair=False)
    assert off.repair is None and off.repair_obstacle == "no repair was asked for"


def test_lazy_rows_are_sampled(tmp_path, monkeypatch):
    monkeypatch.setattr("varcal._engines.protocol.FEW_ROWS", 0)
    monkeypatch.setattr("varcal._audit.audit.MOST_ROWS", 2_000)
    y, p, X, _ = draw(8000, 12)
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"y": y, "p": p, **X}), path)
    found = vc.audit("y", "p", data=str(path), event="positive")
    assert found.engine == "duckdb"
    repair = found.repair
    assert repair.helps and repair.sampled
    assert 900 < repair.n_rows < 1100 and 900 < repair.n_learned < 1100
    assert repair.full.variables == ("group", "x", "noise")


def test_collected_sums_have_no_rows_to_repair():
    y, p, X, _ = draw(1000, 13)
    table = pa.table({"y": y, "p": p, **X})
    sums = vc.collect(table, vc.make_bins("y", "p", data=table))
    found = vc.audit(sums)
    assert found.repair is None
    assert found.repair_obstacle == "a repair needs the rows, and only their sums are in memory"


def test_a_column_without_values_in_half_of_the_rows_is_no_obstacle(rng):
    n = 300
    p = rng.beta(2, 2, n)
    v = np.where(np.arange(n) < 2, [0.0, 1.0] * (n // 2), np.nan)
    X = {"v": rng.normal(size=n), "rare": v}
    y = rng.random(n) < p
    found = [vc.audit(y, p, X, random_state=seed).repair for seed in range(8)]
    assert {len(one.before) for one in found} == {1, 2}  # without values to judge by, or with some
    alone = [vc.audit(y, p, {"rare": v}, random_state=seed) for seed in range(8)]
    obstacles = {one.repair_obstacle for one in alone}
    assert obstacles == {"", "half of the rows cannot be audited: no variable has a value there"}


def test_protected_columns_that_are_left_out_and_wrong_ones(rng):
    n = 300
    rows = {"y": rng.integers(0, 2, n), "p": rng.beta(2, 2, n), "v": rng.normal(size=n)}
    rows["same"] = np.ones(n)
    found = vc.audit("y", "p", data=rows, protected=["same"])
    assert found.left_out[0][0] == "same" and found.repair.full.variables == ("v",)
    with pytest.raises(InputError, match="protected: no column 'other'"):
        vc.audit("y", "p", data=rows, protected="other")
    with pytest.raises(InputError, match="protected must be a name or a list of names; got 5"):
        vc.audit("y", "p", data=rows, protected=5)
