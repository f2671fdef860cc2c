"""Exact edges of lazy rows are those of memory, and sampled edges of many rows are near them."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import varcal as vc
from varcal._sums import choose_bins as choose
from varcal._sums import stream as survey
from varcal.exceptions import InputError

N, MANY = 8_000, 200_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    normal = rng.normal(size=N)
    p = rng.beta(2, 3, N)
    odd, few = rng.random(N), np.full(N, np.nan)
    few[[5, 4_000, 7_000]] = 1.0, 2.0, np.inf  # no value is in the sample
    return pa.table(
        {
            "y": (rng.random(N) < np.clip(p + 0.1 * np.tanh(normal), 0, 1)).astype(np.int8),
            "p": p,
            "normal": normal,
            "ties": rng.integers(0, 30, N),
            "atom": np.where(rng.random(N) < 0.6, 0.0, rng.exponential(100, N)),
            "holes": np.where(odd < 0.2, np.nan, np.where(odd < 0.25, np.inf, normal)),
            "few": pa.array(few, from_pandas=False),
            "kind": pa.array(rng.choice(["a", "b"], N)),
        }
    )


@pytest.fixture
def small_samples(in_batches, monkeypatch):
    monkeypatch.setattr(survey, "SAMPLE", 900)


@pytest.mark.parametrize("binning", ["quantile", "atoms", "uniform"])
@pytest.mark.parametrize("name", ["normal", "ties", "atom", "holes", "few", "kind"])
def test_bins_are_those_of_memory(table, small_samples, name, binning):
    wanted = vc.bin_table("y", "p", name, data=table, binning=binning)
    found = vc.bin_table("y", "p", name, data=ds.dataset(table), binning=binning, edges="exact")
    assert found.edges == "exact"
    for column in {"bin", "low", "high", "n"} & wanted.columns.keys():
        assert list(found.columns[column]) == list(wanted.columns[column]), column


@pytest.fixture
def sampling(monkeypatch):
    """Sample a tenth of the rows of these tests."""
    monkeypatch.setattr(choose, "SAMPLE", 20_000)


def test_vece_from_a_sample_is_near_the_exact_one(sampling, rng):
    p = rng.beta(2, 3, MANY)
    v = rng.normal(size=MANY)
    y = rng.random(MANY) < np.clip(p + 0.05 * np.sin(v), 0, 1)
    sampled = vc.vece(y, p, v, edges="sampled")
    assert sampled == pytest.approx(vc.vece(y, p, v), abs=1e-3)
    assert sampled != vc.vece(y, p, v) == vc.vece(y, p, v, edges="exact")
    assert vc.bin_table(y, p, v).edges == "exact"
    assert vc.bin_table(y, p, v, edges="sampled").edges == "sampled"
    with pytest.raises(InputError, match="edges must be one of 'exact', 'sampled'; got 'fast'"):
        vc.vece(y, p, v, edges="fast")
