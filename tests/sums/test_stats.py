"""The table of sums: its definition, and its standard errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import varcal as vc
from varcal._input.variables import Variable
from varcal._sums import stats as _stats
from varcal._sums.choose_bins import choose_bins
from varcal._sums.stats import FIELDS, bin_rows


@st.composite
def rows(draw):
    n = draw(st.integers(2, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    v = np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n), 1))
    s = rng.random(n)
    h = rng.random(n) < s if draw(st.booleans()) else rng.normal(size=n)
    return v, s, h, rng.integers(0, 4, n).astype(float)


def table(v, s, h, w=None, bins=None):
    variable = Variable.of(v, "v")
    return bin_rows(bins or choose_bins([variable], n_bins=4), [variable], s, h, w)


@given(rows())
def test_sums_by_their_definition(data):
    v, s, h, w = data
    stats = table(v, s, h, w)
    index = stats.bins.index(Variable.of(v, "v"))
    e, u = h - s, s * (1 - s)
    x = np.where(np.isnan(v), 0, v)
    terms = {
        "n": np.ones_like(s), "weight": w, "weight2": w**2, "hit": w * h, "score": w * s,
        "hit2": w**2 * h, "score2": w**2 * s, "square": w * e**2, "square2": w**2 * e**2,
        "null": w * u, "null2": w**2 * u, "fourth": w**4 * u * (1 - 6 * u), "x": w * x,
    }  # fmt: skip
    assert tuple(terms) == FIELDS
    for name, term in terms.items():
        expected = [term[index == b].sum() for b in range(stats.bins.size)]
        np.testing.assert_allclose(stats.total(name), expected, atol=1e-12)
    # An integer weight is repetition.
    repeated = table(*(np.repeat(column, w.astype(int)) for column in (v, s, h)), bins=stats.bins)
    for name in ("weight", "hit", "score", "square", "null", "x"):
        np.testing.assert_allclose(stats.total(name), repeated.total(name), atol=1e-12)
    np.testing.assert_allclose(stats.gap, repeated.gap, atol=1e-12)


@pytest.mark.parametrize("weight", [None, "w"])
def test_both_ways_of_summing_agree_to_the_bit(monkeypatch, rng, weight):
    n = 5_000
    data = {"y": rng.integers(0, 2, n), "p": rng.random(n), "v": rng.normal(size=n)}
    data |= {"kind": rng.choice(["a", "b"], n), "w": rng.exponential(size=n)}
    bins = vc.make_bins("y", "p", ["v", "kind"], data=data, sample_weight=weight)
    tables = []
    for few in (0, np.inf):
        monkeypatch.setattr(_stats, "_FEW_TERMS", few)
        tables.append(vc.collect(data, bins).tables)
    for a, b in zip(*tables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_standard_error_of_the_gap_matches_simulations(rng):
    """With calibrated outcomes, z = gap/se is standard normal, also in small bins."""
    z = []
    for _ in range(400):
        s = rng.beta(2, 2, 300)
        stats = table(rng.normal(size=300), s, rng.random(300) < s)
        z.extend(stats.gap / stats.gap_se)
    assert 0.94 < np.mean(np.abs(z) < 1.96) < 0.97
