"""The two passes over batches: what the first learns, and the tables that the second sums."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from varcal._binning.stats import FIELDS
from varcal._engines.batch_columns import batch_columns
from varcal._engines.kernel_numpy import bin_rows
from varcal._evidence._survey.scan import Scan, Survey
from varcal._evidence.collected import Collected
from varcal._evidence.plan import plan_of
from varcal._evidence.question import Question
from varcal._evidence.roles import Roles
from varcal._input.events import CORRECT, claim_of
from varcal._input.variables import Variable

OPTIONS = {"n_bins": 10, "binning": "atoms", "bins": None, "edges": None}


def make_rows(n=4_000):
    rng = np.random.default_rng(5)
    p = np.concatenate([rng.random(n - 3), [0.5, 0.0, 1.0]])
    return {
        "y": (rng.random(n) < p).astype(np.int8),
        "p": p,
        "v": np.where(rng.random(n) < 0.05, np.nan, np.round(rng.normal(size=n), 2)),
        "kind": rng.choice(["a", "b"], n),
        "w": rng.exponential(size=n),
    }


@pytest.mark.parametrize("weight", [None, "w"])
def test_tables_of_two_claims_are_those_of_each(weight):
    rows = make_rows()
    roles = Roles.of(list(rows), "y", "p", ["v", "kind"], weight)
    survey = Survey.of(Scan(roles, 1.0)(rows, 0), roles, None)
    plan = plan_of(survey, Question(OPTIONS, "both", sided=True, score=OPTIONS))
    assert {table.key for table in plan.wanted} == {CORRECT, 1}
    sums = plan.tally()(rows, 0)
    read = roles.read(rows, part=survey.part)
    variables = {variable.name: variable for variable in read.variables}
    collected = Collected(plan, sums)
    for key in (CORRECT, 1):
        claim = claim_of(read, key)
        for name in ("v", "kind", None):
            along = [Variable("confidence", "numeric", claim.score)]
            along = along if name is None else [variables[name]]
            mine = collected.profile(key, name).fine
            own = bin_rows(mine.bins, along, claim.score, claim.hit, read.weight)
            for field, a, b in zip(FIELDS, mine.sums.sum(axis=1), own.sums[:, 0], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=field)


def test_the_sample_is_independent_of_data_simulated_with_any_seed():
    n = 100_000
    for seed in range(3):
        drawn = np.random.default_rng(seed).random(n)
        rows = {"y": np.arange(n) % 2, "p": drawn, "v": drawn}
        seen = Scan(Roles.of(list(rows), "y", "p", ["v"]), 0.1)(rows, 0)
        (sample,) = seen.sample["v"]
        assert len(sample) == pytest.approx(n / 10, abs=500)
        assert np.mean(sample) == pytest.approx(0.5, abs=0.015)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_ends_of_scores_are_those_of_all_finite_rows(n_classes):
    rng = np.random.default_rng(2)
    p = rng.random(40_000) if n_classes == 1 else rng.dirichlet(np.ones(3), 40_000)
    columns = np.column_stack([1 - p, p]) if n_classes == 1 else p
    scores = np.column_stack([columns, columns.max(axis=1)])[:-1]
    p[-1] = np.nan
    names = [f"p{k}" for k in range(n_classes)]
    rows = dict(zip(names, p.reshape(len(p), -1).T, strict=True))
    rows |= {"y": np.arange(len(p)) % max(n_classes, 2)}
    low, high = Scan(Roles.of(list(rows), "y", names, None), 0.1)(rows, 0).score_ends
    np.testing.assert_array_equal(low, scores.min(axis=0))
    np.testing.assert_array_equal(high, scores.max(axis=0))


@pytest.mark.parametrize("library", [pa.table, pl.DataFrame])
def test_plain_numbers_of_a_batch_share_their_memory(library):
    frame = library({"x": np.arange(4.0), "n": np.arange(4), "gap": [1.5, None, 2.0, 3.0]})
    columns = batch_columns(frame)
    for name in ("x", "n"):
        assert isinstance(columns[name], np.ndarray)
        assert np.shares_memory(columns[name], batch_columns(frame)[name])
        assert columns[name].tolist() == [0, 1, 2, 3]
    assert not isinstance(columns["gap"], np.ndarray)
