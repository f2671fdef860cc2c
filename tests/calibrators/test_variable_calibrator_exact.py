"""Answers that must be exact: monotone scores, equal rows, rows in another order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from varcal import VariableCalibrator
from varcal.calibrators import evaluate


def rows_with_pairs(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p, v = rng.uniform(0.02, 0.98, n), rng.normal(size=(n, 3))
    eta = 2 * np.sin(4 * p) + 2 * v[:, 0] * p + 1.5 * v[:, 1] * v[:, 2]
    return p, (rng.random(n) < expit(eta)).astype(int), v


@pytest.mark.parametrize(("seed", "n"), [(2, 40), (1, 257), (0, 1500)])
def test_monotone_never_falls_not_even_by_rounding(seed, n):
    p, y, v = rows_with_pairs(seed, n)
    fit = VariableCalibrator(monotone=True).fit(p, y, v)
    near = p[:100]
    score = np.sort(np.concatenate([np.linspace(0, 1, 501), near, np.nextafter(near, 1.0)]))
    rng = np.random.default_rng(5)
    # Rows of one v are spread over the call, so that they are computed in different places.
    turned = rng.permutation(5 * len(score))
    q = np.empty(5 * len(score))
    q[turned] = fit.predict_proba(
        np.repeat(score, 5)[turned], np.tile(v[:5], (len(score), 1))[turned]
    )[:, 1]
    assert np.diff(q.reshape(-1, 5), axis=0).min() >= 0


def test_equal_rows_get_equal_answers_wherever_they_are(monkeypatch):
    p, y, v = rows_with_pairs(2, 1500)
    fit = VariableCalibrator().fit(p, y, v)
    assert fit.model_.first.products
    monkeypatch.setattr(evaluate, "LEAST_BLOCK", 100)
    monkeypatch.setattr(evaluate, "BLOCK_CELLS", 0)
    for n in (101, 257, 999):
        q = fit.predict_proba(np.full(n, 0.3), np.tile(v[0], (n, 1)))
        assert np.unique(q, axis=0).shape == (1, 2)


def test_the_order_of_rows_changes_nothing_at_all():
    p, y, v = rows_with_pairs(3, 1500)
    weight = np.random.default_rng(3).integers(1, 4, len(p)).astype(float)
    turned = np.random.default_rng(4).permutation(len(p))
    first = VariableCalibrator().fit(p, y, v, sample_weight=weight, blocks=False)
    again = VariableCalibrator().fit(
        p[turned], y[turned], v[turned], sample_weight=weight[turned], blocks=False
    )
    new = rows_with_pairs(6, 300)
    assert (first.predict_proba(new[0], new[2]) == again.predict_proba(new[0], new[2])).all()
    assert first.terms_ == again.terms_


def test_the_order_of_rows_changes_nothing_with_more_classes():
    rng = np.random.default_rng(7)
    z, v = rng.normal(size=(1200, 4)), rng.normal(size=(1200, 2))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    sure = np.exp(0.5 + 0.5 * v[:, :1]) * z
    y = (sure + rng.gumbel(size=z.shape)).argmax(axis=1)
    turned = rng.permutation(len(p))
    first = VariableCalibrator().fit(p, y, v)
    again = VariableCalibrator().fit(p[turned], y[turned], v[turned])
    assert (first.predict_proba(p[:200], v[:200]) == again.predict_proba(p[:200], v[:200])).all()
