"""Sizes beyond the usual: variables, categories, loads, batches of a monitor, rows of sums."""

from __future__ import annotations

import math
import resource
import tempfile
from pathlib import Path

import numpy as np

import varcal as vc
from torture.outcome import Outcome

#: Megabytes by which memory may grow over thousands of repetitions.
FLAT = 40.0


def memory() -> float:
    """Return the memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def many_variables(outcome: Outcome, n: int = 5_000) -> None:
    """Audit along thousands of variables."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    y = (rng.uniform(size=300) < p).astype(int)
    found = vc.audit(y, p, {f"v{k}": rng.normal(size=300) for k in range(n)}, ladder="none")
    if len(found) == n:
        outcome.add("variables audited", n)
    else:
        outcome.fail(f"{n} variables gave {len(found)} rows")


def many_categories(outcome: Outcome, n: int = 1_000_000) -> None:
    """Measure and repair along a variable of which every value is another category."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=n)
    y = (rng.uniform(size=n) < p).astype(int)
    levels = np.char.add("level ", np.arange(n).astype(str))
    found = vc.vece(y, p, levels)
    fitted = vc.VariableCalibrator().fit(p, y, {"level": levels})
    q = fitted.predict_proba(p[:1000], {"level": levels[:1000]})
    if np.isfinite(found) and np.isfinite(q).all():
        outcome.add("categories measured and repaired", n)
    else:
        outcome.fail(f"{n} categories gave {found}")


def many_loads(outcome: Outcome, n: int = 10_000) -> None:
    """Load a calibrator again and again."""
    sim = vc.datasets.make_gap(500, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cal.json")
        vc.calibrators.TreeCalibrator().fit(sim.p, sim.y, {"age": sim.v}).save(path)
        for _ in range(n // 10):
            vc.load(path)
        before = memory()
        for _ in range(n - n // 10):
            vc.load(path)
    _judge_memory(outcome, "loads with flat memory", n, memory() - before)


def many_batches(outcome: Outcome, n: int = 10_000) -> None:
    """Update a monitor again and again; its memory and its file must not grow without end."""
    rng = np.random.default_rng(0)
    rows = {"y": rng.integers(0, 2, 500), "p": rng.uniform(size=500), "age": rng.normal(size=500)}
    bins = vc.make_bins("y", "p", data=rows, monitor=0.2)
    monitor = vc.Monitor(bins)
    batch = vc.collect(rows, bins)
    sizes = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "monitor.json")
        before = 0.0
        for k in range(n):
            monitor.update(batch, id=k)
            if k == n // 10:
                before = memory()
            if (k + 1) % max(1, n // 10) == 0:
                monitor.save(path)
                sizes.append(path.stat().st_size)
    if sizes[-1] > 2 * sizes[0] + 100_000:
        outcome.fail(f"the file of a monitor grew from {sizes[0]} to {sizes[-1]} bytes")
    _judge_memory(outcome, "batches with flat memory", n, memory() - before)


def many_rows(outcome: Outcome, batches: int = 20, repeats: int = 50) -> None:
    """Sum 1e8 rows in batches of 1e5, and compare with the exact sums.

    Each batch is added as often as `repeats` says, in turn, so that additions are as many as for
    different rows while making the rows takes little time.
    """
    size = 100_000
    rng = np.random.default_rng(0)
    bins = None
    exact: dict[str, list[float]] = {"score": [], "hit": []}
    made = []
    for _ in range(batches):
        rows = {"p": rng.uniform(size=size), "v": rng.uniform(size=size)}
        rows["y"] = (rng.uniform(size=size) < rows["p"]).astype(int)
        if bins is None:
            bins = vc.make_bins("y", "p", "v", data=rows, events=["positive"], n_bins=10)
        made.append(vc.collect(rows, bins))
        exact["score"].append(math.fsum(rows["p"]))
        exact["hit"].append(float(rows["y"].sum()))
    total = None
    for _ in range(repeats):
        for one in made:
            total = one if total is None else total + one
    table = vc.bin_table(total, v="v", event="positive").columns
    counts = np.array(table["n"], dtype=float)
    for name, column in (("score", "predicted"), ("hit", "observed")):
        found = math.fsum(counts * np.array(table[column], dtype=float))
        wanted = math.fsum(exact[name]) * repeats
        drift = abs(found - wanted) / wanted
        if drift > 1e-12:
            outcome.fail(f"the sum of {name} over {counts.sum():.0f} rows is off by {drift:.1e}")
    outcome.add("rows summed", int(counts.sum()))


def _judge_memory(outcome: Outcome, what: str, n: int, grown: float) -> None:
    if grown > FLAT:
        outcome.fail(f"{n} {what}: grew by {grown:.0f} MB")
    else:
        outcome.add(what, n)
