"""Known gaps that are taken off, and standard errors of slices."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logit

from varcal._input.predictions import Predictions
from varcal._search.condition import Condition
from varcal._search.figures import Wanted, figures_of
from varcal._search.known_gaps import RIDGE, fit, overall_design


def two_classes(n=2000, **more):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, n)
    return Predictions.of((rng.random(n) < p).astype(int), p, {"x": rng.normal(size=n)}, **more)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sure", [0.0, 1e-300, 1.0])
def test_gaps_of_certain_scores_are_taken_off_without_overflow(sure):
    n, hits = 4000, 1200
    hit, weight = np.arange(n) < hits, np.full(n, 2.0)
    side = (np.arange(n) % 2).astype(np.intp)
    found = fit(overall_design(side), np.full(n, sure), hit, weight)
    # Each side has one rate s, at which the residuals balance the ridge: wn(h - s) = ridge·β.
    start = logit(min(max(sure, 1e-12), 1 - 1e-12))
    rate = brentq(
        lambda s: (n * (0.3 - s)) - RIDGE * (logit(s) - start), 1e-11, 1 - 1e-11, xtol=1e-14
    )
    assert found.score == pytest.approx(np.full(n, rate), abs=1e-9)
    assert 0.9 < found.scale < 1.1


def test_the_standard_error_is_that_of_a_mean():
    rows = two_classes(5000)
    condition = Condition("x", "numeric", low=0.0)
    figures = figures_of(rows, [Wanted((condition,), 1)], hashed=False).own[0]
    inside = rows.variables[0].values > 0
    e = (rows.p - rows.y)[inside]
    assert figures.standard_error == pytest.approx(e.std() / np.sqrt(len(e)), rel=0.01)
    paired = two_classes(5000, groups=np.arange(5000) // 50)
    grouped = figures_of(paired, [Wanted((condition,), 1)], hashed=False).own[0]
    assert grouped.standard_error >= figures.standard_error
