"""Cost of VECE on long and wide data, compared with a lower bound and with pandas, in one run.

    python benchmarks/bench_scale.py [--rows N] [--variables K] [--large]

Prints Markdown: a table for N rows × K variables (10 M × 10 by default), with the memory needed in
addition to the input (peak of traced allocations); then the cost by number of rows and by number of
variables, with the slope of log cost on log size over the last three sizes (1 is linear). The lower
bound ("floor") is `np.sum` over every column. Times are CPU times of all threads, the minimum of a
few runs for each variable, summed over variables; wall-clock times are shown next to them.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import varcal as vc

Call = Callable[[], Any]


@dataclass(frozen=True)
class Sample:
    """Outcomes, probabilities, and variables of several distributions."""

    y: NDArray[np.int64]
    p: NDArray[np.float64]
    variables: list[NDArray[np.float64]]

    @classmethod
    def draw(cls, n: int, n_variables: int) -> Sample:
        """Draw n rows of a calibrated model with some variables."""
        rng = np.random.default_rng(0)
        shapes: list[Callable[[], NDArray[np.float64]]] = [
            lambda: rng.normal(50, 15, n),
            lambda: rng.gamma(2, 3, n),
            lambda: rng.random(n),
            lambda: np.round(rng.normal(40, 12, n)),
            lambda: rng.lognormal(size=n),
        ]
        p = rng.beta(2, 3, n)
        y = (rng.random(n) < p).astype(np.int64)
        return cls(y, p, [shapes[k % len(shapes)]() for k in range(n_variables)])

    def floor(self) -> list[Call]:
        """Sum every column."""
        return [partial(np.sum, column) for column in (self.y, self.p, *self.variables)]

    def ours(self, edges: str | None = None) -> list[Call]:
        """Call `vece` for each variable, as a user would."""
        return [partial(vc.vece, self.y, self.p, v, edges=edges) for v in self.variables]

    def pandas_lean(self) -> list[Call]:
        """Do as little as possible in pandas: integer codes, no copies, two means."""
        score, hit = np.maximum(self.p, 1 - self.p), (self.p > 0.5) == self.y
        frame = pd.DataFrame({"score": score, "hit": hit}, copy=False)

        def vece(v: NDArray[np.float64]) -> float:
            codes = pd.qcut(v, 10, labels=False, duplicates="drop")
            means = frame.groupby(codes).mean()
            share = np.bincount(codes) / len(v)
            return float((share * (means["score"] - means["hit"]).abs()).sum())

        return [partial(vece, v) for v in self.variables]

    def pandas_plain(self) -> list[Call]:
        """Do as the paper does: add the bins as a column to a copy, and loop over groups."""
        columns = {f"v{k}": v for k, v in enumerate(self.variables)}
        score, hit = np.maximum(self.p, 1 - self.p), (self.p > 0.5) == self.y
        frame = pd.DataFrame({"score": score, "hit": hit, **columns})

        def vece(name: str) -> float:
            part = frame.copy()
            part["bin"] = pd.qcut(part[name], 10, duplicates="drop")
            groups = [group for _, group in part.groupby("bin", observed=True)]
            gaps = [len(g) * abs(g["score"].mean() - g["hit"].mean()) for g in groups]
            return float(sum(gaps) / len(part))

        return [partial(vece, name) for name in columns]


def minimum(calls: list[Call], repeats: int) -> tuple[float, float]:
    """Return the CPU time and the wall-clock time of all calls, each the minimum of a few runs."""
    cpu, wall = np.empty((repeats, len(calls))), np.empty((repeats, len(calls)))
    for place in np.ndindex(cpu.shape):  # every call once, then the next round
        started = time.process_time(), time.perf_counter()
        calls[place[1]]()
        cpu[place], wall[place] = time.process_time() - started[0], time.perf_counter() - started[1]
    return float(cpu.min(axis=0).sum()), float(wall.min(axis=0).sum())


def peak(call: Call) -> float:
    tracemalloc.start()
    call()
    _, largest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return largest / 1e6


def one_table(n: int, n_variables: int, repeats: int) -> None:
    sample = Sample.draw(n, n_variables)
    lean = sample.pandas_lean()
    ours, theirs = sample.ours()[0](), lean[0]()
    assert abs(ours - theirs) < 1e-12, (ours, theirs)
    print(f"VECE of {n_variables} variables, {n:,} rows, 10 bins\n")
    print("| | CPU s | wall s | × floor | pandas / this | MB beyond input |")
    print("|---|---|---|---|---|---|")
    floor = minimum(sample.floor(), repeats)
    pandas = minimum(lean, repeats)
    print(f"| floor: `np.sum` of every column | {floor[0]:.3f} | {floor[1]:.3f} | 1 | | |")

    def row(name: str, calls: list[Call], times: tuple[float, float], compared: bool) -> None:
        ratio = f"{pandas[0] / times[0]:.1f}" if compared else ""
        shown = f"{times[0]:.3f} | {times[1]:.3f} | {times[0] / floor[0]:.1f}"
        print(f"| {name} | {shown} | {ratio} | {peak(calls[0]):.0f} |", flush=True)

    row("pandas `qcut` + `groupby`, without copies", lean, pandas, True)
    plain = sample.pandas_plain()
    row("pandas `qcut` + `groupby`, the paper's way", plain, minimum(plain, 1), True)
    del plain
    tasks = {
        "`varcal.vece`": sample.ours(),
        '`varcal.vece`, `edges="sampled"`': sample.ours("sampled"),
    }
    for title, calls in tasks.items():
        row(title, calls, minimum(calls, repeats), compared=True)


Series = dict[str, list[float]]


def costs(samples: Iterator[Sample], repeats: int) -> Series:
    """Measure all contestants on samples of growing size."""
    found: Series = {}
    for sample in samples:
        contestants = {
            "np.sum": sample.floor(),
            "varcal": sample.ours(),
            "pandas, without copies": sample.pandas_lean(),
        }
        for label, calls in contestants.items():
            found.setdefault(label, []).append(minimum(calls, repeats)[0])
    return found


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope over the last three sizes, where constant costs hardly matter."""
    logs = np.log(np.maximum(seconds[-3:], 1e-9))
    return float(np.polyfit(np.log(sizes[-3:]), logs, 1)[0])


def show(title: str, sizes: Sequence[int], found: Series) -> None:
    print(f"\n{title}\n\n| CPU ms | {' | '.join(f'{size:,}' for size in sizes)} | slope |")
    print("|---" * (len(sizes) + 2) + "|")
    for label, seconds in found.items():
        times = " | ".join(f"{1e3 * second:.3g}" for second in seconds)
        print(f"| {label} | {times} | {slope(sizes, seconds):.2f} |")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--variables", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="also measure ten times as many rows")
    options = parser.parse_args(arguments)
    one_table(options.rows, options.variables, options.repeats)
    top = round(np.log10(options.rows)) + options.large
    rows = [10**k for k in range(min(4, top - 1), top + 1)]
    by_rows = costs((Sample.draw(n, 1) for n in rows), options.repeats)
    show("One variable, by rows", rows, by_rows)
    n = options.rows // 10
    numbers = [1, 2, 5, 10, 20]
    by_variables = costs((Sample.draw(n, k) for k in numbers), options.repeats)
    show(f"{n:,} rows, by variables", numbers, by_variables)


if __name__ == "__main__":
    main()
