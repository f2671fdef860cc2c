"""Thousands of rare levels: small files, the same predictions, and unseen levels."""

import numpy as np
import pytest

import varcal as vc
from varcal.calibrators.variable import variable_calibrator


def rows(n, n_levels, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n)
    number = rng.integers(0, n_levels, n)
    number[: n // 3] = rng.integers(0, 4, n // 3)  # four frequent levels
    level = np.array([f"level {k:06d}" for k in number], dtype=object)
    # Frequent levels are predicted too low, rare ones too high.
    y = (rng.random(n) < np.clip(p + np.where(number < 4, 0.15, -0.1), 0, 1)).astype(int)
    return p, y, {"level": level, "x": rng.normal(size=n)}


@pytest.fixture(scope="module")
def many():
    """Rows of thousands of levels, and the fit on them."""
    p, y, v = rows(8_000, 6_000)
    return p, y, v, vc.VariableCalibrator().fit(p, y, v)


def test_many_rare_levels_make_a_small_file_and_the_same_predictions(many, tmp_path, monkeypatch):
    p, y, v, small = many
    monkeypatch.setattr(variable_calibrator, "MOST_RARE_LEVELS", 10**9)
    large = vc.VariableCalibrator().fit(p, y, v)
    sizes = []
    for name, one in (("small", small), ("large", large)):
        one.save(tmp_path / name)
        sizes.append((tmp_path / name).stat().st_size)
    assert sizes[0] < 1_000_000 and sizes[1] > 4 * sizes[0]
    # Folds depend on the levels, and shares on folds.
    assert np.abs(small.predict_proba(p, v) - large.predict_proba(p, v)).mean() < 0.01
    again = vc.load(tmp_path / "small")
    np.testing.assert_array_equal(small.predict_proba(p, v), again.predict_proba(p, v))
    curve = next(one for one in small.effects().curves if one.name == "level")
    assert curve.at[-1] == "other" and len(curve.at) < 100


def test_an_unseen_level_is_one_of_many_rare_ones(many):
    _, _, v, fitted = many
    rare = next(level for level in v["level"] if int(level.split()[1]) > 4)
    unseen = {"level": ["never seen"], "x": [0.0]}
    known = {"level": [rare], "x": [0.0]}
    assert (
        fitted.predict_proba([0.5], unseen).tolist() == fitted.predict_proba([0.5], known).tolist()
    )
    frequent = {"level": ["level 000001"], "x": [0.0]}
    assert (
        fitted.predict_proba([0.5], frequent)[0, 1] > 0.6 > fitted.predict_proba([0.5], known)[0, 1]
    )


@pytest.mark.parametrize("n_levels", [30, 150])
def test_few_levels_keep_their_names(n_levels):
    p, y, v = rows(3000, n_levels)
    fitted = vc.VariableCalibrator().fit(p, y, v)
    assert len(fitted.schema_.levels[0]) == len(set(v["level"])) and not fitted.schema_.pooled
    unseen = fitted.predict_proba([0.5], {"level": ["never seen"], "x": [0.0]})
    rare = fitted.predict_proba([0.5], {"level": [f"level {n_levels - 1:06d}"], "x": [0.0]})
    assert unseen.tolist() != rare.tolist()


@pytest.mark.parametrize("options", [{}, {"preserve_ranking": True}])
def test_identifiers_take_no_room(tmp_path, options):
    p, y, _ = rows(5000, 10)
    v = {
        "id": [f"customer {k}" for k in range(5000)],
        "x": np.random.default_rng(1).normal(size=5000),
    }
    fitted = vc.VariableCalibrator(**options).fit(p, y, v, blocks=False)
    fitted.save(tmp_path / "calibrator.json")
    assert fitted.schema_.levels[0] == ()
    assert (tmp_path / "calibrator.json").stat().st_size < 300_000
    again = vc.load(tmp_path / "calibrator.json")
    np.testing.assert_array_equal(again.predict_proba(p, v), fitted.predict_proba(p, v))


def test_three_classes(tmp_path):
    rng = np.random.default_rng(3)
    p = rng.dirichlet([2, 2, 2], 4000)
    level = [f"level {k}" for k in np.where(rng.random(4000) < 0.4, 0, rng.integers(1, 3000, 4000))]
    y = [rng.choice(3, p=row) for row in p]
    fitted = vc.VariableCalibrator().fit(p, y, {"level": level})
    assert len(fitted.schema_.levels[0]) < 70
    fitted.save(tmp_path / "calibrator.json")
    again = vc.load(tmp_path / "calibrator.json")
    np.testing.assert_array_equal(
        again.predict_proba(p, {"level": level}), fitted.predict_proba(p, {"level": level})
    )
