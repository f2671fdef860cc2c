import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc
from varcal._binning.choose import choose_bins, fine_bins
from varcal._engines import kernel_choice as _choice
from varcal._engines import kernel_numpy as _numpy
from varcal._engines.kernel_numpy import bin_rows
from varcal._input.variables import Variable
from varcal.exceptions import InputError, MissingDependencyError

numba = pytest.importorskip("numba", reason="the fast extra is not installed")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(_numpy, "_CHUNK", 64)


@st.composite
def tables(draw):
    """Rows of a variable of any kind, with or without weights and buckets."""
    n = draw(st.integers(1, 700))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(
        st.sampled_from(["normal", "tied", "heavy", "wide", "ints", "single", "levels", "dates"])
    )
    v = {
        "normal": lambda: rng.normal(size=n),
        "tied": lambda: np.round(rng.normal(size=n), 1),
        "heavy": lambda: np.exp(20 * rng.normal(size=n)),
        "wide": lambda: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.integers(-300, 300, n),
        "ints": lambda: rng.integers(-5, 60, n),
        "single": lambda: rng.normal(size=n).astype(np.float32),
        "levels": lambda: pd.Categorical(rng.choice(["a", "b", "c"], n)),
        "dates": lambda: np.datetime64("2020-01-01") + rng.integers(0, 900, n),
    }[kind]()
    if kind in ("normal", "tied", "heavy", "wide", "single") and draw(st.booleans()):
        v = np.where(rng.random(n) < 0.2, rng.choice([np.nan, np.inf, -np.inf], n), v)
    score = rng.random(n)
    if draw(st.booleans()):
        score = np.round(score, draw(st.integers(0, 1)))
    weight = rng.integers(0, 3, n) * rng.random(n) if draw(st.booleans()) else None
    n_buckets = draw(st.sampled_from([1, 1, 7]))
    bucket = rng.integers(0, n_buckets, n) if n_buckets > 1 else None
    return Variable.of(v, "v"), score, rng.random(n) < score, weight, bucket, n_buckets


def both(monkeypatch, *arguments, **options):
    found = []
    for engine in ("numpy", "fast"):
        monkeypatch.setenv(_choice.VARIABLE, engine)
        found.append(bin_rows(*arguments, **options).sums)
    return found


@settings(max_examples=150)
@given(tables(), st.integers(1, 40), st.sampled_from([0, 90, 400]), st.booleans())
def test_sums_are_those_of_numpy_to_the_bit(table, n_bins, n_fine, moments):
    variable, *rest = table
    _, bins = fine_bins(variable, n_bins, "atoms", n_fine=n_fine)
    with pytest.MonkeyPatch.context() as patch:
        by_numpy, by_numba = both(patch, bins, [variable], *rest, moments=moments)
    np.testing.assert_array_equal(by_numba, by_numpy)


@given(tables(), st.booleans())
def test_joint_bins_too(table, moments):
    variable, score, *rest = table
    pair = [variable, Variable.of(np.round(score, 1), "other")]
    bins = choose_bins(pair, n_bins=3)
    with pytest.MonkeyPatch.context() as patch:
        by_numpy, by_numba = both(patch, bins, pair, score, *rest, moments=moments)
    np.testing.assert_array_equal(by_numba, by_numpy)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_the_layout_of_columns_change_nothing(threads, monkeypatch, rng):
    n = 5000
    grid = rng.normal(size=(n, 3))
    score = rng.random((n, 2))[:, 0]
    hit = rng.random(n) < score
    grid.setflags(write=False)
    variable = Variable.of(grid[:, 1], "v")
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
    by_numpy, by_numba = both(monkeypatch, choose_bins([variable]), [variable], score, hit)
    np.testing.assert_array_equal(by_numba, by_numpy)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((), {}),
        ((), {"event": "positive"}),
        ((), {"event": "positive", "pos_label": 0}),
        ((2,), {}),
        ((3,), {"event": "classwise"}),
        ((3,), {}),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.int8])
def test_metrics_are_equal_to_the_bit(shape, options, dtype, monkeypatch, rng):
    n = 1500
    p = rng.dirichlet([1] * shape[0], n) if shape else np.round(rng.random(n), 2)
    y = rng.integers(0, shape[0] if shape else 2, n).astype(dtype)
    v = rng.normal(size=n)
    found = {}
    for engine in ("numpy", "fast"):
        monkeypatch.setenv(_choice.VARIABLE, engine)
        found[engine] = (vc.vece(y, p, v, **options), vc.ece(y, p, **options))
    assert found["numpy"] == found["fast"]


def test_missing_values_without_a_bin_are_refused(monkeypatch):
    monkeypatch.setenv(_choice.VARIABLE, "fast")
    bins = choose_bins([Variable.of([1.0, 2.0, 3.0], "v")], n_bins=2)
    holed = Variable.of([1.0, np.nan], "v")
    with pytest.raises(InputError, match="missing values, but its bins have none for them"):
        bin_rows(bins, [holed], np.array([0.5, 0.5]), np.array([True, False]))


def test_kernels_run_without_a_cache():
    from varcal._engines.kernel_numba import compiled

    scope = {}
    exec("def double(x):\n    return 2.0 * x", scope)  # from no file, beside which to keep it
    assert compiled(numba.float64)(scope["double"])(1.5) == 3.0


def test_choice_of_kernel(monkeypatch):
    monkeypatch.delenv(_choice.VARIABLE, raising=False)
    assert _choice.engine_for(10) == "numpy"
    assert _choice.engine_for(_choice.LEAST_ROWS) == "fast"
    monkeypatch.setattr(_choice, "_has_numba", lambda: False)
    assert _choice.engine_for(_choice.LEAST_ROWS) == "numpy"
    monkeypatch.setenv(_choice.VARIABLE, "fast")
    with pytest.raises(MissingDependencyError, match="VARCAL_ENGINE=fast needs numba"):
        _choice.engine_for(10)
    monkeypatch.setenv(_choice.VARIABLE, "quick")
    with pytest.raises(InputError, match="VARCAL_ENGINE"):
        _choice.engine_for(10)


def test_batches_use_the_kernel_of_the_whole(monkeypatch, rng):
    monkeypatch.delenv(_choice.VARIABLE, raising=False)
    asked = []
    monkeypatch.setattr(_numpy, "engine_for", lambda n: asked.append(n) or "numpy")
    variable = Variable.of(rng.normal(size=50), "v")
    bins = choose_bins([variable])
    for n_all in (None, 10**8):
        bin_rows(bins, [variable], rng.random(50), rng.random(50) < 0.5, n_all=n_all)
    assert asked == [50, 10**8]


def test_small_inputs_load_no_compiler():
    code = "import sys, varcal as vc; vc.vece([0, 1, 1], [0.2, 0.9, 0.4], [1, 2, 3]);"
    code += "print('numba' in sys.modules)"
    bare = {name: value for name, value in os.environ.items() if name != _choice.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], env=bare, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
