"""BLAS computes with one thread inside varcal, and its limits are the same before and after."""

import multiprocessing
import os
import sys
import threading
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.linalg  # noqa: F401 (loads the BLAS of scipy)
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import varcal as vc
from varcal._runtime import threads
from varcal._runtime.threads import OneBlasThread, one_blas_thread
from varcal.calibrators import (
    AugmentedCalibrator,
    BetaCalibrator,
    DirichletCalibrator,
    TreeCalibrator,
    VariableCalibratedClassifier,
    VariableCalibrator,
)
from varcal.exceptions import InputError


def limits():
    """Return the number of threads of every BLAS library."""
    return {one["filepath"]: one["num_threads"] for one in threadpool_info() if is_blas(one)}


def is_blas(one):
    return one["user_api"] == "blas"


@pytest.fixture
def three_threads():
    """Let every BLAS library use three threads, as if the machine had three cores."""
    with threadpool_limits(3, "blas"):
        assert set(limits().values()) == {3}
        yield
        assert set(limits().values()) == {3}


@pytest.fixture
def inside(monkeypatch):
    """Collect the limits at the end of every block."""
    found = []
    leave = OneBlasThread.__exit__

    def watched(self, *error):
        found.append(set(limits().values()))
        leave(self, *error)

    monkeypatch.setattr(OneBlasThread, "__exit__", watched)
    return found


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    v = {"a": rng.normal(size=n), "b": rng.normal(size=n)}
    return p, (rng.random(n) < p).astype(int), v


P, Y, V = rows()
THREE = np.random.default_rng(1).dirichlet([1, 1, 1], 300)
Y3 = np.arange(300) % 3
BINARY = VariableCalibrator().fit(P, Y, V)
DIRICHLET = DirichletCalibrator().fit(THREE, Y3)
AUGMENTED = AugmentedCalibrator().fit(P, Y, V)
MANY = {name: np.tile(values[:250], 300) for name, values in V.items()}

ENTRIES = {
    "audit": lambda: vc.audit(Y, P, V),
    "compare": lambda: vc.compare(Y, {"raw": P, "squared": P**2}, V),
    "curve": lambda: vc.curve(Y, P, V["a"]),
    "estimate": lambda: vc.estimate(Y, P, V["a"]),
    "reliability": lambda: vc.reliability(Y, P),
    "beta": lambda: BetaCalibrator().fit(P, Y),
    "dirichlet": lambda: DirichletCalibrator().fit(THREE, Y3),
    "tree": lambda: TreeCalibrator().fit(P, Y, V),
    "variable": lambda: VariableCalibrator().fit(P, Y, V),
    "variable, three classes": lambda: VariableCalibrator().fit(THREE, Y3, V),
    "classifier": lambda: VariableCalibratedClassifier(LogisticRegression(), variables=0).fit(
        np.column_stack([*V.values()]), Y
    ),
    "predictions": lambda: BINARY.predict_proba(P[:9], {k: x[:9] for k, x in V.items()}),
    "predictions of many rows": lambda: BINARY.predict_proba(np.tile(P[:250], 300), MANY),
    "predictions of three classes": lambda: DIRICHLET.predict_proba(THREE[:9]),
    "augmented predictions": lambda: AUGMENTED.predict_proba(
        P[:9], {k: x[:9] for k, x in V.items()}
    ),
    "intervals": lambda: BINARY.predict_interval(P[:9], {k: x[:9] for k, x in V.items()}),
    "effects": BINARY.effects,
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.filterwarnings("ignore::varcal.exceptions.VarcalWarning")
def test_every_entry_computes_with_one_thread(entry, three_threads, inside):
    entry()
    assert inside
    assert all(one == {1} for one in inside)


def test_a_loaded_calibrator_makes_its_tables_with_one_thread(three_threads, inside, tmp_path):
    BINARY.save(tmp_path / "fit.json")
    loaded = vc.load(tmp_path / "fit.json")
    inside.clear()
    loaded.predict_proba(P[:9], {k: x[:9] for k, x in V.items()})
    assert inside
    assert all(one == {1} for one in inside)


FAILURES = {
    "audit": lambda: vc.audit(Y, P, {"a": V["a"][:9]}),
    "compare": lambda: vc.compare(Y, {}, V),
    "curve": lambda: vc.curve(Y, P, V["a"], event="classwise"),
    "estimate": lambda: vc.estimate(Y, P, V["a"][:9]),
    "reliability": lambda: vc.reliability(Y[:9], P),
    "fit": lambda: VariableCalibrator(max_shift=-1).fit(P, Y, V),
    "intervals": lambda: BINARY.predict_interval(P, V, level=7),
}


@pytest.mark.parametrize("entry", FAILURES.values(), ids=FAILURES)
def test_an_error_restores_the_limits(entry, three_threads, inside):
    with pytest.raises(InputError):
        entry()
    assert len(inside) == 1


def test_a_limit_of_one_is_not_touched(monkeypatch):
    monkeypatch.setattr(threads, "_set_limit", None)
    with threadpool_limits(1, "blas"), one_blas_thread:
        assert set(limits().values()) == {1}


def test_blocks_may_be_nested(three_threads):
    with one_blas_thread:
        with one_blas_thread:
            pass
        assert set(limits().values()) == {1}


class Worker(threading.Thread):
    """A thread that enters and leaves a block when told to."""

    def __init__(self, block=one_blas_thread):
        super().__init__()
        self.block = block
        self.orders = threading.Semaphore(0), threading.Semaphore(0)
        self.done = threading.Semaphore(0)
        self.start()

    def run(self):
        for order, step in zip(
            self.orders, (self.block.__enter__, self.block.__exit__), strict=True
        ):
            order.acquire()
            step()
            self.done.release()

    def enter(self):
        self.orders[0].release()
        self.done.acquire()

    def leave(self):
        self.orders[1].release()
        self.done.acquire()


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_of_two_threads_may_end_in_any_order(three_threads, first):
    both = [Worker(), Worker()]
    for one in both:
        one.enter()
    both[first].leave()
    assert set(limits().values()) == {1}
    both[1 - first].leave()
    assert set(limits().values()) == {3}
    for one in both:
        one.join()


def test_many_threads_leave_the_limits_as_they_were(three_threads):
    def work(seed):
        p, y, v = rows(200, seed)
        VariableCalibrator().fit(p, y, v)
        with one_blas_thread:
            return set(limits().values())

    found = joblib.Parallel(n_jobs=4, backend="threading")(map(joblib.delayed(work), range(8)))
    assert found == [{1}] * 8


def test_processes_of_joblib_leave_the_limits_as_they_were():
    def work(seed):
        p, y, v = rows(200, seed)
        with threadpool_limits(3, "blas"):
            VariableCalibrator().fit(p, y, v)
            return set(limits().values())

    assert joblib.Parallel(n_jobs=2)(map(joblib.delayed(work), range(2))) == [{3}] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_forgets_the_blocks_of_other_threads(three_threads):
    def child(answer):
        before = set(limits().values())
        with one_blas_thread:
            within = set(limits().values())
        answer.send((before, within, set(limits().values())))

    worker = Worker()
    worker.enter()
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    assert here.poll(60)
    assert here.recv() == ({3}, {1}, {3})
    process.join()
    worker.leave()
    worker.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_inside_a_block_is_still_inside(three_threads):
    here, there = multiprocessing.Pipe()
    with one_blas_thread:
        target = lambda: there.send(set(limits().values()))  # noqa: E731
        process = multiprocessing.get_context("fork").Process(target=target)
        process.start()
        assert here.poll(60)
        assert here.recv() == {1}
        process.join()


class FakeLibrary:
    """A BLAS library whose limit is the process's, or with OpenMP each thread's own."""

    def __init__(self, filepath, layer):
        self.filepath, self.internal_api, self.threading_layer = filepath, "openblas", layer
        self.state = threading.local() if layer == "openmp" else SimpleNamespace()

    def get_num_threads(self):
        return getattr(self.state, "limit", 3)

    def set_num_threads(self, limit):
        self.state.limit = limit


@pytest.fixture
def fake_libraries(monkeypatch):
    """The libraries that are found; a test may change them."""
    found = []
    selected = SimpleNamespace(select=lambda user_api: SimpleNamespace(lib_controllers=list(found)))
    monkeypatch.setattr(threads, "ThreadpoolController", lambda: selected)
    return found


def test_with_openmp_every_thread_has_its_own_limit(fake_libraries):
    fake_libraries.append(FakeLibrary("own", "openmp"))
    block = OneBlasThread()
    worker = Worker(block)
    worker.enter()
    assert fake_libraries[0].get_num_threads() == 3
    with block:
        assert fake_libraries[0].get_num_threads() == 1
        with block:
            pass
        worker.leave()
        assert fake_libraries[0].get_num_threads() == 1
    assert fake_libraries[0].get_num_threads() == 3
    worker.join()


def test_libraries_that_are_loaded_inside_a_block_are_found_by_the_next(
    fake_libraries, monkeypatch
):
    monkeypatch.setattr(threads, "_LOADERS", ("a_module_of_scipy",))
    early, late = FakeLibrary("numpy", "pthreads"), FakeLibrary("scipy", "pthreads")
    fake_libraries.append(early)
    block = OneBlasThread()
    with block:
        fake_libraries.append(late)
        monkeypatch.setitem(sys.modules, "a_module_of_scipy", None)
        with block:
            assert early.get_num_threads() == late.get_num_threads() == 1
        assert early.get_num_threads() == late.get_num_threads() == 1
    assert early.get_num_threads() == late.get_num_threads() == 3


def test_the_modules_that_load_the_blas_of_scipy_exist():
    assert all(name in sys.modules for name in threads._LOADERS)
    assert len(ThreadpoolController().select(user_api="blas").lib_controllers) >= 1


def test_other_pools_keep_their_sizes(tmp_path):
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    def sizes():
        own = duckdb.sql("SELECT current_setting('threads')").fetchall()
        others = [one for one in threadpool_info() if not is_blas(one)]
        return own, pa.cpu_count(), pa.io_thread_count(), dict(os.environ), others

    pq.write_table(pa.table({"p": P, "y": Y, **V}), tmp_path / "rows.parquet")
    before = sizes()
    vc.audit("y", "p", ["a"], data=tmp_path / "rows.parquet")
    vc.audit("y", "p", ["a"], data=duckdb.sql(f"FROM '{tmp_path / 'rows.parquet'}'"))
    assert sizes() == before
