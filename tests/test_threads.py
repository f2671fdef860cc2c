"""BLAS computes with one thread inside varcal, and its limits are the same before and after."""

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

import varcal as vc
from varcal import _threads
from varcal.calibrators import VariableCalibratedClassifier, VariableCalibrator


def limits():
    """Return the numbers of threads of the BLAS libraries."""
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture
def three_threads():
    """Let every BLAS library use three threads, as if the machine had three cores."""
    with threadpool_limits(3, "blas"):
        assert limits() == {3}
        yield
        assert limits() == {3}


@pytest.fixture
def inside(monkeypatch):
    """Collect the limits at the beginning of every block."""
    found = []
    real = _threads._blas()

    class Watched:
        def limit(self, **given):
            block = real.limit(**given)
            found.append(limits())
            return block

    monkeypatch.setattr(_threads, "_blas", Watched)
    return found


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    v = {"a": rng.normal(size=n), "b": rng.normal(size=n)}
    return p, (rng.random(n) < p).astype(int), v


P, Y, V = rows()
BINARY = VariableCalibrator().fit(P, Y, V)

ENTRIES = {
    "audit": lambda: vc.audit(Y, P, V),
    "compare": lambda: vc.compare(Y, {"raw": P, "squared": P**2}, V),
    "variable": lambda: VariableCalibrator().fit(P, Y, V),
    "classifier": lambda: VariableCalibratedClassifier(LogisticRegression(), variables=0).fit(
        np.column_stack([*V.values()]), Y
    ),
    "predictions": lambda: BINARY.predict_proba(P[:9], {k: x[:9] for k, x in V.items()}),
    "intervals": lambda: BINARY.predict_interval(P[:9], {k: x[:9] for k, x in V.items()}),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.filterwarnings("ignore::varcal.exceptions.VarcalWarning")
def test_every_entry_computes_with_one_thread(entry, three_threads, inside):
    entry()
    assert inside
    assert all(one == {1} for one in inside)


def work(seed):
    p, y, v = rows(200, seed)
    VariableCalibrator().fit(p, y, v)


def test_many_threads_leave_the_limits_as_they_were(three_threads):
    joblib.Parallel(n_jobs=4, backend="threading")(map(joblib.delayed(work), range(8)))
