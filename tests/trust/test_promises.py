"""What every call leaves as it found it, and numbers that do not depend on how rows are given."""

import json
import os
import random
import sys
import threading
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import varcal as vc
from cases.public_calls import calls

N = 600
RNG = np.random.default_rng(3)
P = RNG.random(N)
Y = (RNG.random(N) < P**1.4).astype(int)
V = pd.DataFrame({"age": RNG.integers(18, 80, N), "job": RNG.choice(["a", "b", "c"], N)})
WEIGHT = RNG.uniform(0.5, 2, N)
ORDERS = [np.arange(N)[::-1], RNG.permutation(N)]


def numbers(value):
    """Yield every number of a plain value with its place, text by text."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from ((f"{name}.{place}", one) for place, one in numbers(each))
    elif isinstance(value, list | tuple):
        for k, each in enumerate(value):
            yield from ((f"{k}.{place}", one) for place, one in numbers(each))
    else:
        yield "", value


def assert_alike(one, other, tolerance=1e-12):
    first, second = dict(numbers(one)), dict(numbers(other))
    assert first.keys() == second.keys()
    for place, value in first.items():
        if isinstance(value, float) and not isinstance(value, bool):
            assert value == pytest.approx(
                second[place], rel=tolerance, abs=tolerance, nan_ok=True
            ), place
        else:
            assert value == second[place], place


RESULTS = {
    "vece": lambda y, p, v, w: vc.vece(y, p, v["age"], sample_weight=w),
    "ece": lambda y, p, v, w: vc.ece(y, p, sample_weight=w),
    "bin_table": lambda y, p, v, w: vc.bin_table(y, p, v, sample_weight=w).to_dict(),
    "estimate": lambda y, p, v, w: vc.estimate(y, p, v["age"], sample_weight=w).to_dict(),
    "curve": lambda y, p, v, w: vc.curve(y, p, v["age"], sample_weight=w).to_dict(),
    "reliability": lambda y, p, v, w: vc.reliability(y, p, sample_weight=w).to_dict(),
    "audit": lambda y, p, v, w: vc.audit(y, p, v, sample_weight=w, ladder="none").to_dict(),
    "ladder": lambda y, p, v, w: vc.audit(y, p, v, sample_weight=w).ladder.to_dict(),
    "decompose": lambda y, p, v, w: vc.decompose(y, p, sample_weight=w).to_dict(),
    "surface": lambda y, p, v, w: vc.surface(y, p, v, sample_weight=w).to_dict(),
    "predictable_gap": lambda y, p, v, w: vc.predictable_gap(y, p, v, sample_weight=w).to_dict(),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_do_not_depend_on_the_order_of_rows(name, weighted):
    weight = WEIGHT if weighted else None
    plain = RESULTS[name](Y, P, V, weight)
    for order in ORDERS:
        other = None if weight is None else weight[order]
        moved = RESULTS[name](Y[order], P[order], V.iloc[order].reset_index(drop=True), other)
        # Sums in another order differ in the last digits, which p-values multiply.
        assert_alike(plain, moved, 1e-12 if name in ("vece", "ece", "bin_table") else 1e-9)


def everything(y=Y, p=P, v=V):
    """Return the JSON of several results."""
    audit = vc.audit(y, p, v, random_state=1)
    compare = vc.compare(y, {"a": p, "b": p**1.4}, v)
    fit = vc.VariableCalibrator().fit(p, y, v)
    return json.dumps(
        [audit.to_dict(), compare.to_dict(), fit.predict_proba(p[:50], v[:50]).tolist()],
        sort_keys=True,
    )


def test_the_same_input_gives_the_same_json_also_in_threads():
    first = everything()
    found = []
    threads = [threading.Thread(target=lambda: found.append(everything())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [first] * 3


def state_of_the_process():
    return {
        "numpy seed": np.random.get_state()[1].tolist(),  # noqa: NPY002  the state of others
        "random seed": random.getstate(),
        "numpy errors": np.geterr(),
        "numpy print": np.get_printoptions(),
        "filters": [str(one) for one in warnings.filters],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "rcParams": {name: str(value) for name, value in mpl.rcParams.items()},
        "backend": mpl.get_backend(),
        "pandas": str(pd.options.display.max_rows),
        "recursion": sys.getrecursionlimit(),
        "umask": _umask(),
        "threads": threading.active_count(),
    }


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_no_call_changes_the_process_or_its_arguments(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        public = calls(tmp_path)
        for call in public:
            if call.name in ("Monitor.acknowledge", "Monitor.save", "Monitor.reset"):
                continue
            held = {
                name: value.copy() for name, value in call.given.items() if hasattr(value, "copy")
            }
            before = state_of_the_process()
            try:
                call.function(**call.given)
            except vc.exceptions.VarcalError:
                continue
            finally:
                plt.close("all")
            after = state_of_the_process()
            assert after == before, call.name
            for name, value in held.items():
                now = call.given[name]
                if isinstance(value, np.ndarray):
                    np.testing.assert_array_equal(now, value)
                elif isinstance(value, dict):
                    assert list(now) == list(value)
