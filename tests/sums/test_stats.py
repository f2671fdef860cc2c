import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from varcal._input.variables import Variable
from varcal._sums.choose_bins import choose_bins
from varcal._sums.stats import bin_rows
from varcal._sums.stats import FIELDS


@st.composite
def rows(draw):
    n = draw(st.integers(2, 80))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    v = np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n), 1))
    s = rng.random(n)
    return v, s, rng.random(n) < s, rng.integers(0, 4, n).astype(float), rng


def table(v, s, h, w=None, bins=None, **options):
    variable = Variable.of(v, "v")
    return bin_rows(bins or choose_bins([variable], n_bins=4), [variable], s, h, w, **options)


@given(rows())
def test_an_integer_weight_is_repetition(data):
    v, s, h, w, _ = data
    bins = choose_bins([Variable.of(v, "v")], n_bins=4)
    times = w.astype(int)
    weighted = table(v, s, h, w, bins)
    repeated = table(*(np.repeat(x, times) for x in (v, s, h)), bins=bins)
    for name in ("weight", "hit", "score", "square", "null", "x"):
        np.testing.assert_allclose(weighted.total(name), repeated.total(name), atol=1e-12)
    np.testing.assert_allclose(weighted.gap, repeated.gap, atol=1e-12)


@given(rows())
def test_sums_by_their_definition(data):
    v, s, h, w, _ = data
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


def test_standard_error_of_the_gap_matches_simulations(rng):
    """With calibrated outcomes, z = gap/se is standard normal, also in small bins."""
    z = []
    for _ in range(400):
        s = rng.beta(2, 2, 300)
        stats = table(rng.normal(size=300), s, rng.random(300) < s)
        z.extend(stats.gap / stats.gap_se)
    assert 0.94 < np.mean(np.abs(z) < 1.96) < 0.97
