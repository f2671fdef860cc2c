import numpy as np
import pytest

import varcal as vc
from varcal._input.variables import Variable
from varcal._sums import choose as _summary
from varcal._sums.choose import ArraySummary, fine_bins
from varcal._sums.kernel import bin_rows
from varcal.exceptions import InputError

N = 200_000


@pytest.fixture
def sampling(monkeypatch):
    """Sample a tenth of the rows of these tests."""
    monkeypatch.setattr(_summary, "SAMPLE", 20_000)


def columns(rng):
    normal = rng.normal(50, 15, N)
    odd = rng.random(N)
    return {
        "normal": normal,
        "sorted": np.sort(normal),
        "cyclic": np.arange(N) % 7.0,
        "integers": rng.integers(17, 90, N),
        "heavy": np.exp(3 * rng.normal(size=N)),
        "atom": np.where(rng.random(N) < 0.4, 0.0, normal),
        "single": normal.astype(np.float32),
        "missing": np.where(odd < 0.3, np.nan, normal),
        "infinite": np.where(odd < 0.1, -np.inf, np.where(odd < 0.3, np.inf, normal)),
    }


NAMES = list(columns(np.random.default_rng(0)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("binning", ["quantile", "uniform", "atoms"])
def test_bins_of_a_sample_hold_every_row_in_about_equal_parts(name, binning, sampling, rng):
    variable = Variable.of(columns(rng)[name], "v")
    coarse, fine = fine_bins(variable, 10, binning, edges="sampled", n_fine=100)
    assert fine.sampled and coarse.sampled == (binning != "uniform")
    assert set(coarse.cuts) <= set(fine.cuts)
    score, hit = rng.random(N), rng.random(N) < 0.5
    stats = bin_rows(fine, [variable], score, hit)
    assert stats.n.sum() == N
    assert stats.coarsen(coarse).n.sum() == N
    exact = ArraySummary(variable.values)
    if binning == "uniform":
        assert coarse.cuts == pytest.approx(np.linspace(coarse.low, coarse.high, 11)[1:-1])
    elif name in ("normal", "sorted", "heavy", "single"):
        shares = bin_rows(coarse, [variable], score, hit).n / N
        np.testing.assert_allclose(shares, 0.1, atol=4 * 0.3 / 141)
    if name == "atom" and binning == "atoms":
        assert coarse.starts == {0.0}
        assert exact.count(0.0) in bin_rows(coarse, [variable], score, hit).n


def test_vece_from_a_sample_is_near_the_exact_one(sampling, rng):
    p = rng.beta(2, 3, N)
    v = rng.normal(size=N)
    y = rng.random(N) < np.clip(p + 0.05 * np.sin(v), 0, 1)
    sampled = vc.vece(y, p, v, edges="sampled")
    assert sampled == pytest.approx(vc.vece(y, p, v), abs=1e-3)
    assert sampled != vc.vece(y, p, v) == vc.vece(y, p, v, edges="exact")
    assert vc.bin_table(y, p, v).edges == "exact"
    assert vc.bin_table(y, p, v, edges="sampled").edges == "sampled"
    with pytest.raises(InputError, match="edges must be one of 'exact', 'sampled'; got 'fast'"):
        vc.vece(y, p, v, edges="fast")
