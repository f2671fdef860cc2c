"""What BLAS threads cost: every task with default threads and with one thread.

    python benchmarks/bench_threads.py [repeats]

Each task runs in two processes of its own: in one numpy and scipy choose the number of their BLAS
threads, in the other OPENBLAS_NUM_THREADS (and its like) is 1. The table shows the minimum wall and
CPU times of at least `repeats` runs and half a second, and their ratios. These should be near 1,
at most 1.3. The last rows repeat a fit in Python threads and in joblib processes, as many as there
are cores; the CPU time of the processes is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

#: How long a task is repeated at least.
LEAST_SECONDS = 0.5
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def rows(n: int, k: int, seed: int = 0) -> tuple[Any, Any, dict[str, Any]]:
    import numpy as np

    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    v = {f"v{j}": rng.normal(size=n) for j in range(k)}
    y = (rng.random(n) < p ** np.exp(0.3 * v["v0"])).astype(int)
    return y, p, v


def fit(n: int, k: int, seed: int = 0) -> Callable[[], object]:
    from varcal.calibrators import VariableCalibrator

    y, p, v = rows(n, k, seed)
    return lambda: VariableCalibrator().fit(p, y, v)


def audit(n: int, k: int) -> Callable[[], object]:
    import varcal as vc

    y, p, v = rows(n, k)
    return lambda: vc.audit(y, p, v)


def curve(n: int) -> Callable[[], object]:
    import varcal as vc

    y, p, v = rows(n, 1)
    return lambda: vc.curve(y, p, v["v0"])


def estimate(n: int) -> Callable[[], object]:
    import varcal as vc

    y, p, v = rows(n, 1)
    return lambda: vc.estimate(y, p, v["v0"])


def predict(n: int, k: int) -> Callable[[], object]:
    fitted: Any = fit(3_000, k)()
    _, p, v = rows(n, k, 1)
    return lambda: fitted.predict_proba(p, v)


def one_fit(seed: int) -> None:
    fit(1_000, 5, seed)()


def fits(backend: str) -> Callable[[], object]:
    from joblib import Parallel, delayed

    jobs = os.cpu_count() or 1
    pool = Parallel(n_jobs=jobs, backend=backend)
    return lambda: pool(delayed(one_fit)(seed) for seed in range(4 * jobs))


PROCESSES = "fits of 1,000 × 5 in joblib processes"
TASKS: dict[str, Callable[[], Callable[[], object]]] = {
    "VariableCalibrator.fit, 1,000 × 5": lambda: fit(1_000, 5),
    "VariableCalibrator.fit, 6,000 × 6": lambda: fit(6_000, 6),
    "VariableCalibrator.fit, 100,000 × 10": lambda: fit(100_000, 10),
    "predict_proba, 1 row": lambda: predict(1, 5),
    "predict_proba, 100,000 × 5": lambda: predict(100_000, 5),
    "audit, 1,000 × 10": lambda: audit(1_000, 10),
    "curve, 10,000 rows": lambda: curve(10_000),
    "estimate, 10,000 rows": lambda: estimate(10_000),
    "fits of 1,000 × 5 in Python threads": lambda: fits("threading"),
    PROCESSES: lambda: fits("loky"),
}


def measure(name: str, repeats: int) -> dict[str, float]:
    """Return the minimum wall and CPU seconds of a task in this process."""
    warnings.simplefilter("ignore")
    task = TASKS[name]()
    task()
    walls: list[float] = []
    processors: list[float] = []
    while len(walls) < repeats or sum(walls) < LEAST_SECONDS:
        wall, before = time.perf_counter(), time.process_time()
        task()
        processors.append(time.process_time() - before)
        walls.append(time.perf_counter() - wall)
    return {"wall": min(walls), "cpu": min(processors)}


def in_process(name: str, repeats: int, *, one_thread: bool) -> dict[str, float]:
    """Measure a task in a new process."""
    environment = {key: value for key, value in os.environ.items() if key not in LIMITS}
    if one_thread:
        environment |= dict.fromkeys(LIMITS, "1")
    command = [sys.executable, __file__, str(repeats), "--task", name]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(found.stdout)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repeats", nargs="?", type=int, default=5)
    parser.add_argument("--task", choices=TASKS, help="measure one task in this process")
    given = parser.parse_args()
    if given.task:
        print(json.dumps(measure(given.task, given.repeats)))
        return
    print(f"{os.cpu_count()} cores\n")
    print(
        "| task | wall ms, default | wall ms, 1 thread | ratio "
        "| CPU ms, default | CPU ms, 1 thread | ratio |\n|---|---|---|---|---|---|---|"
    )
    for name in TASKS:
        default, single = (
            in_process(name, given.repeats, one_thread=one_thread) for one_thread in (False, True)
        )
        cells = [
            f"{default[kind] * 1e3:.4g} | {single[kind] * 1e3:.4g} "
            f"| {default[kind] / single[kind]:.2f}"
            for kind in ("wall", "cpu")
        ]
        if name == PROCESSES:
            cells[1] = "– | – | –"
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
