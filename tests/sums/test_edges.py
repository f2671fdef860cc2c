"""Exact edges of lazy rows are those of memory, and sampled edges of many rows are near them."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import varcal as vc
from varcal._input.variables import Variable
from varcal._sums import choose_bins as choose
from varcal._sums import survey
from varcal._sums.choose_bins import ArraySummary, fine_bins
from varcal._sums.kernel import bin_rows
from varcal._sums.sources import ArrowRows
from varcal.exceptions import InputError

N, MANY = 8_000, 200_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    normal = rng.normal(size=N)
    p = rng.beta(2, 3, N)
    odd = rng.random(N)
    return pa.table(
        {
            "y": (rng.random(N) < np.clip(p + 0.1 * np.tanh(normal), 0, 1)).astype(np.int8),
            "p": p,
            "normal": normal,
            "ties": rng.integers(0, 30, N),
            "atom": np.where(rng.random(N) < 0.6, 0.0, rng.exponential(100, N)),
            "holes": np.where(odd < 0.2, np.nan, np.where(odd < 0.25, np.inf, normal)),
            "kind": pa.array(rng.choice(["a", "b"], N)),
        }
    )


@pytest.fixture
def in_batches(monkeypatch):
    """Few rows are sampled, and they come in small batches."""
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 0)
    monkeypatch.setattr("varcal._sums.sources.BATCH_ROWS", 777)
    monkeypatch.setattr(survey, "SAMPLE", 900)


@pytest.mark.parametrize("binning", ["quantile", "atoms", "uniform"])
@pytest.mark.parametrize("name", ["normal", "ties", "atom", "holes", "kind"])
def test_bins_are_those_of_memory(table, in_batches, name, binning):
    wanted = vc.bin_table("y", "p", name, data=table, binning=binning)
    found = vc.bin_table("y", "p", name, data=ds.dataset(table), binning=binning, edges="exact")
    assert found.edges == "exact"
    for column in {"bin", "low", "high", "n"} & wanted.columns.keys():
        assert list(found.columns[column]) == list(wanted.columns[column]), column


def test_so_are_those_of_the_score_and_of_an_audit(table, in_batches):
    rows = ds.dataset(table)
    assert vc.ece("y", "p", data=rows, edges="exact") == pytest.approx(
        vc.ece("y", "p", data=table), abs=1e-14
    )
    wanted = vc.audit("y", "p", data=table)
    found = vc.audit("y", "p", data=rows, edges="exact")
    assert found.edges == "exact" and vc.audit("y", "p", data=rows).edges == "sampled"
    for row in wanted.rows:
        again = next(one for one in found.rows if one.variable == row.variable)
        assert again.error.value == pytest.approx(row.error.value, abs=1e-12)
        assert again.n_bins == row.n_bins


def test_a_missed_quantile_costs_another_pass(table, in_batches, monkeypatch):
    monkeypatch.setattr(survey, "REACH", 0.01)
    made = []
    made_of = survey.RankedSummary
    monkeypatch.setattr(survey, "RankedSummary", lambda *given: made.append(1) or made_of(*given))
    wanted = vc.bin_table("y", "p", "normal", data=table)
    found = vc.bin_table("y", "p", "normal", data=ds.dataset(table), edges="exact")
    assert list(found.columns["n"]) == list(wanted.columns["n"])
    assert len(made) > 1


@pytest.mark.parametrize("binning", ["quantile", "atoms", "uniform"])
def test_a_column_without_any_value_in_the_sample(table, in_batches, binning):
    few = np.full(N, np.nan)
    few[[5, 4_000, 7_000]] = 1.0, 2.0, np.inf
    rows = table.append_column("few", pa.array(few, from_pandas=False))
    wanted = vc.bin_table("y", "p", "few", data=rows, binning=binning)
    found = vc.bin_table("y", "p", "few", data=ds.dataset(rows), binning=binning, edges="exact")
    assert list(found.columns["n"]) == list(wanted.columns["n"])


def test_rows_that_change_between_passes_are_refused(table, in_batches, monkeypatch):
    whole, passes = ArrowRows.map, []

    def shrinking(self, columns, work):
        passes.append(work)
        for k, answer in enumerate(whole(self, columns, work)):
            if len(passes) == 1 or k < 3:
                yield answer

    monkeypatch.setattr(ArrowRows, "map", shrinking)
    with pytest.raises(InputError, match="data has other rows in each pass over it"):
        vc.vece("y", "p", "normal", data=ds.dataset(table), edges="exact")


@pytest.fixture
def sampling(monkeypatch):
    """Sample a tenth of the rows of these tests."""
    monkeypatch.setattr(choose, "SAMPLE", 20_000)


def columns(rng):
    normal = rng.normal(50, 15, MANY)
    odd = rng.random(MANY)
    return {
        "normal": normal,
        "sorted": np.sort(normal),
        "cyclic": np.arange(MANY) % 7.0,
        "integers": rng.integers(17, 90, MANY),
        "heavy": np.exp(3 * rng.normal(size=MANY)),
        "atom": np.where(rng.random(MANY) < 0.4, 0.0, normal),
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
    score, hit = rng.random(MANY), rng.random(MANY) < 0.5
    stats = bin_rows(fine, [variable], score, hit)
    assert stats.n.sum() == MANY
    assert stats.coarsen(coarse).n.sum() == MANY
    exact = ArraySummary(variable.values)
    if binning == "uniform":
        assert coarse.cuts == pytest.approx(np.linspace(coarse.low, coarse.high, 11)[1:-1])
    elif name in ("normal", "sorted", "heavy", "single"):
        shares = bin_rows(coarse, [variable], score, hit).n / MANY
        np.testing.assert_allclose(shares, 0.1, atol=4 * 0.3 / 141)
    if name == "atom" and binning == "atoms":
        assert coarse.starts == {0.0}
        assert exact.count(0.0) in bin_rows(coarse, [variable], score, hit).n


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
