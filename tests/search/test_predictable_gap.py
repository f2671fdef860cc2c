"""How much of the gap can be predicted: planted gaps, calibrated models, any order of rows."""

import json

import numpy as np
import pytest
from varcal._search.predictable import random_blocks

import varcal as vc
from varcal.exceptions import InputError


def world(n=3000, seed=0, size=0.2):
    rng = np.random.default_rng(seed)
    X = {
        "a": rng.random(n),
        "b": rng.random(n),
        "kind": rng.choice(["x", "y", "z"], n),
        "noise": rng.standard_normal(n),
    }
    p = rng.uniform(0.3, 0.7, n)
    gap = size * ((X["a"] > 0.5) & (X["kind"] == "x"))
    y = (rng.random(n) < p - gap).astype(int)
    return {"y": y, "p": p, "X": X}, gap


def test_a_planted_gap_is_found_and_its_lower_limit_holds():
    given, gap = world()
    found = vc.predictable_gap(**given)
    true = np.sqrt(np.mean(gap**2))
    assert 0 < found.low < found.value < 1.3 * true
    assert found.low < true and found.p_value < 0.001
    assert found.claim == "probability"
    assert "At least" in found.sentence and "Predictable gap" in repr(found)
    again = vc.results.PredictableGap.from_dict(
        json.loads(json.dumps(found.to_dict(), allow_nan=False))
    )
    assert again == found


@pytest.mark.slow
def test_a_calibrated_model_is_seldom_rejected():
    rejected = sum(
        vc.predictable_gap(**world(600, seed, 0.0)[0]).p_value < 0.05 for seed in range(25)
    )
    assert rejected <= 4  # of 25 at 5 %: more in 1 of 140


def test_low_is_above_zero_exactly_where_the_test_rejects():
    for seed in range(8):
        found = vc.predictable_gap(**world(1500, seed, 0.08)[0])
        assert (found.low > 0) == (found.p_value < 0.05)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_order_of_rows_has_no_influence(grouped):
    given, _ = world(600)
    weight = np.random.default_rng(2).exponential(size=600)
    unit = np.arange(600) // 5
    order = np.random.default_rng(1).permutation(600)
    found = []
    for rows in (np.arange(600), order):
        more = {"groups": unit[rows]} if grouped else {}
        found.append(
            vc.predictable_gap(
                given["y"][rows],
                given["p"][rows],
                {name: one[rows] for name, one in given["X"].items()},
                sample_weight=weight[rows],
                **more,
            )
        )
    assert found[0] == found[1]


def test_rounding_of_another_processor_has_no_influence():
    """Blocks followed the order of probabilities, and a last bit changed the value by a tenth."""
    given, _ = world(1500)
    p = given["p"].round(2)  # many are equal
    near = p * (1 + 1e-13 * np.random.default_rng(3).standard_normal(1500))
    found, again = (vc.predictable_gap(**given | {"p": one}) for one in (p, near))
    assert (again.value, again.low) == pytest.approx((found.value, found.low), rel=1e-6)


def test_more_classes_and_missing_values():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 2, 2], 1500)
    y = (rng.random(1500)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    a = rng.random(1500)
    p = np.where((a > 0.5)[:, None], p[:, [1, 0, 2]], p)  # two classes are exchanged
    a[:100] = np.nan
    found = vc.predictable_gap(y, p, {"a": a})
    assert len(found.claims) == 4 and found.low > 0
    assert found.claim != "class 2"


def test_whole_groups_are_in_one_block():
    groups = np.repeat(np.arange(50), 7)
    blocks = random_blocks(350, 8, groups, np.random.default_rng(0))
    assert all(len(set(blocks[groups == one])) == 1 for one in range(50))
    assert set(blocks) == set(range(8))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, "X is None"),
        ({"groups": np.zeros(1500, int)}, "groups has 1 groups"),
        ({"level": 1}, "level must"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    with pytest.raises(InputError, match=message):
        vc.predictable_gap(**world(1500)[0] | change)


def test_few_rows_are_refused():
    with pytest.raises(InputError, match="there are 100 rows"):
        vc.predictable_gap(**world(100)[0])
