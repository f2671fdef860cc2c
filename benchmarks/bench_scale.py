"""What VECE costs on long and wide data, against the floor and against pandas, in one run.

    python benchmarks/bench_scale.py [--rows N] [--variables K] [--large] [--plot FILE.png]

Prints Markdown: one table at N rows × K variables (10 M × 10 by default), with the memory beyond
the input (peak of traced allocations); then the cost against the number of rows and of variables,
and the slope of log cost on log size over the last three sizes (1 is linear). The floor is
`np.sum` over every column. Times are the processor's, of all threads together, the least of a few
runs; wall clocks stand beside them.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import varcal as vc
from varcal._events import claims
from varcal._predictions import Predictions
from varcal._profile import profile

Call = Callable[[], object]
ENGINES = ["numpy", "fast"] if find_spec("numba") else ["numpy"]


@dataclass(frozen=True)
class World:
    """Outcomes, probabilities and variables of several shapes."""

    y: NDArray[np.int64]
    p: NDArray[np.float64]
    variables: list[NDArray[np.float64]]

    @classmethod
    def draw(cls, n: int, many: int) -> World:
        """Draw n rows of a calibrated model and many variables."""
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
        return cls(y, p, [shapes[k % len(shapes)]() for k in range(many)])

    def floor(self) -> None:
        """Read every column once."""
        for column in (self.y, self.p, *self.variables):
            np.sum(column)

    def ours(self) -> list[float]:
        """Ask for each variable as a user would."""
        return [vc.vece(self.y, self.p, v) for v in self.variables]

    def fine_pass(self) -> None:
        """Sum all moments in a thousand cells, as curves and audits need them."""
        named = {f"v{k}": v for k, v in enumerate(self.variables)}
        predictions = Predictions.of(self.y, self.p, named)
        (claim,) = claims(predictions)
        for variable in predictions.variables:
            profile(
                predictions, claim, variable, {"n_bins": 10, "binning": "quantile", "bins": None}
            )

    def pandas_lean(self) -> list[float]:
        """As little work as pandas can do: codes, no copies, two means."""
        score = np.maximum(self.p, 1 - self.p)
        hit = (self.p > 0.5) == self.y
        frame = pd.DataFrame({"score": score, "hit": hit}, copy=False)
        found = []
        for v in self.variables:
            codes = pd.qcut(v, 10, labels=False, duplicates="drop")
            means = frame.groupby(codes).mean()
            share = np.bincount(codes) / len(v)
            found.append(float((share * (means["score"] - means["hit"]).abs()).sum()))
        return found

    def pandas_plain(self) -> list[float]:
        """The paper's way: the bins become a column of a copied frame, then group by group."""
        columns = {f"v{k}": v for k, v in enumerate(self.variables)}
        score, hit = np.maximum(self.p, 1 - self.p), (self.p > 0.5) == self.y
        frame = pd.DataFrame({"score": score, "hit": hit, **columns})
        found = []
        for name in columns:
            part = frame.copy()
            part["bin"] = pd.qcut(part[name], 10, duplicates="drop")
            groups = [group for _, group in part.groupby("bin", observed=True)]
            gaps = [abs(group["score"].mean() - group["hit"].mean()) for group in groups]
            found.append(sum(len(g) / len(part) * gap for g, gap in zip(groups, gaps, strict=True)))
        return found


@contextmanager
def engine(name: str) -> Iterator[None]:
    before = os.environ.get("VARCAL_ENGINE")
    os.environ["VARCAL_ENGINE"] = name
    try:
        yield
    finally:
        os.environ.pop("VARCAL_ENGINE")
        if before is not None:
            os.environ["VARCAL_ENGINE"] = before


def least(call: Call, repeats: int) -> tuple[float, float]:
    """Return the least processor time and the least wall clock of a few runs."""
    cpu, wall = [], []
    for _ in range(repeats):
        started = time.process_time(), time.perf_counter()
        call()
        cpu.append(time.process_time() - started[0])
        wall.append(time.perf_counter() - started[1])
    return min(cpu), min(wall)


def peak(call: Call) -> float:
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def one_table(n: int, many: int, repeats: int) -> None:
    world = World.draw(n, many)
    one = World(world.y, world.p, world.variables[:1])
    with engine("numpy"):
        ours, theirs = one.ours()[0], one.pandas_lean()[0]
    assert abs(ours - theirs) < 2e-3, (ours, theirs)  # edges of long columns are sampled
    print(f"VECE of {many} variables, {n:,} rows, 10 bins\n")
    print("| | CPU s | wall s | × floor | pandas / this | MB beyond input |")
    print("|---|---|---|---|---|---|")
    floor = least(world.floor, 5 * repeats)
    print(f"| floor: `np.sum` of every column | {floor[0]:.3f} | {floor[1]:.3f} | 1 | | |")
    lean = least(world.pandas_lean, max(repeats // 3, 1))

    def row(name: str, found: tuple[float, float], memory: float, compared: bool = True) -> None:
        ratio = f"{lean[0] / found[0]:.1f}" if compared else ""
        times = f"{found[0]:.3f} | {found[1]:.3f} | {found[0] / floor[0]:.1f}"
        print(f"| {name} | {times} | {ratio} | {memory:.0f} |")

    row(
        "pandas `qcut` + `groupby`, the paper's way",
        least(world.pandas_plain, 1),
        peak(one.pandas_plain),
    )
    row("pandas `qcut` + `groupby`, without copies", lean, peak(one.pandas_lean))
    for name in ENGINES:
        with engine(name):
            world.ours()
            row(f"`varcal.vece`, {name}", least(world.ours, repeats), peak(one.ours))
    for name in ENGINES:
        with engine(name):
            found = least(world.fine_pass, max(repeats // 3, 1))
            row(f"1,000 cells, all moments, {name}", found, peak(one.fine_pass), compared=False)
    if "fast" not in ENGINES:
        print("\nThe `fast` extra (numba) is not installed.")


Series = dict[str, list[float]]


def costs(worlds: Iterator[World], repeats: int) -> Series:
    """Time everything on worlds of growing size."""
    found: Series = {}
    for world in worlds:
        calls: dict[str, tuple[str, Call]] = {
            "np.sum": ("numpy", world.floor),
            "pandas, without copies": ("numpy", world.pandas_lean),
        }
        calls |= {f"varcal, {name}": (name, world.ours) for name in ENGINES}
        for label, (name, call) in calls.items():
            with engine(name):
                call()
                found.setdefault(label, []).append(least(call, repeats)[0])
    return found


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope over the last three sizes, where constant costs no longer count."""
    logs = np.log(np.maximum(seconds[-3:], 1e-9))
    return float(np.polyfit(np.log(sizes[-3:]), logs, 1)[0])


def show(title: str, sizes: Sequence[int], found: Series) -> None:
    print(f"\n{title}\n\n| CPU ms | {' | '.join(f'{size:,}' for size in sizes)} | slope |")
    print("|---" * (len(sizes) + 2) + "|")
    for label, seconds in found.items():
        times = " | ".join(f"{1e3 * second:.3g}" for second in seconds)
        print(f"| {label} | {times} | {slope(sizes, seconds):.2f} |")


def draw(path: str, panels: dict[str, tuple[Sequence[int], Series]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(10, 4.2), layout="constrained")
    for ax, (title, (sizes, found)) in zip(axes, panels.items(), strict=True):
        for (label, seconds), mark in zip(found.items(), "osD^", strict=False):
            ax.loglog(
                sizes, seconds, marker=mark, label=f"{label}: slope {slope(sizes, seconds):.2f}"
            )
        ax.set(xlabel=title, ylabel="CPU seconds")
        ax.grid(which="major", alpha=0.3)
        ax.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--variables", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="go on to ten times as many rows")
    parser.add_argument("--plot", help="draw the costs into this PNG file")
    options = parser.parse_args(arguments)
    one_table(options.rows, options.variables, options.repeats)
    top = round(np.log10(options.rows)) + options.large
    rows = [10**k for k in range(min(4, top - 1), top + 1)]
    by_rows = costs((World.draw(n, 1) for n in rows), options.repeats)
    show("One variable, by rows", rows, by_rows)
    n = options.rows // 10
    many = [1, 2, 5, 10, 20]
    by_many = costs((World.draw(n, k) for k in many), options.repeats)
    show(f"{n:,} rows, by variables", many, by_many)
    if options.plot:
        draw(
            options.plot,
            {"rows (one variable)": (rows, by_rows), f"variables ({n:,} rows)": (many, by_many)},
        )


if __name__ == "__main__":
    main()
