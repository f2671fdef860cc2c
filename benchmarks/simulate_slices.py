"""The search of slices on data whose truth is known: errors, power, recovery, intervals, speed.

python benchmarks/simulate_slices.py null NAME [--designs D] [--outcomes M] [--draws B]
python benchmarks/simulate_slices.py power --rows N [--runs R] [--designs D] [--intervals K]
python benchmarks/simulate_slices.py speed --rows N [--variables D]

Figures are printed after each design. `null` counts searches that show a slice where there is none.
`power` plants slices of one, two and three variables in calibrated scores: how often anything is
shown, whether it is the planted slice (Jaccard of the rows at least ½), the mean Jaccard (0 where
nothing is shown), how often the interval of the slice shown covers the true gap of its rows, and
the mean of the true, found and shrunk gaps.
Several outcomes of a design share its simulated outcomes, so that errors are clustered by design.
`bench_slices_peers.py` runs other libraries.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

import varcal as vc
from slice_worlds import Design, design, planted, rates, signed_gap

DRAWS = 99
ALPHA = 0.05
#: Rows and variables of each null. Where a model is fitted to every outcome, columns cannot be
#: shared, and the search is smaller.
NULLS = {
    "calibrated": (5000, 20),
    "rare": (3000, 20),
    "weights": (2000, 20),
    "missing": (2000, 20),
    "average": (2000, 8),
    "groups": (2000, 8),
}
#: The variables of the smaller searches.
FEW = ("x0", "x1", "x3", "x7", "count0", "count2", "kind1", "kind3")


def searched(world: Design, y: np.ndarray, seed: int, **more) -> vc.results.Slices:
    """Search the clearest slice of one set of outcomes."""
    given = {"classes": (0, 1), "most": 1, "random_state": seed} | more
    return vc.slices(y, world.s, world.X, include=list(world.X), **given)


def null_design(name: str, seed: int, n_outcomes: int, draws: int = DRAWS) -> np.ndarray:
    """Return p-values of outcomes without any slice to find."""
    rng = np.random.default_rng([seed, list(NULLS).index(name)])
    n, size = NULLS[name]
    world = design(rng, n, rare=name == "rare")
    if size < 20:
        world = replace(world, X={one: world.X[one] for one in FEW})
    more = {}
    if name == "missing":
        for one in list(world.X)[:10]:
            gone = rng.random(n) < rng.uniform(0.02, 0.3)
            world.X[one] = np.where(gone, np.nan, world.X[one])
    if name == "weights":
        more["sample_weight"] = rng.lognormal(0, 1.0, n)
    if name in ("average", "groups"):
        return np.array([_alone(name, world, rng, seed, draws) for _ in range(n_outcomes)])
    Y = rng.random((n, n_outcomes)) < world.s[:, None]
    return np.array([searched(world, y, seed, draws=draws, **more).p_value for y in Y.T])


def _alone(name: str, world: Design, rng: np.random.Generator, seed: int, draws: int) -> float:
    """Return the p-value of one outcome whose model is fitted, or of dependent rows."""
    n, more = len(world), {"after": name}
    if name == "groups":
        unit = np.repeat(np.arange(n // 10), 10)
        # The unit's own effect is beyond the score, and two variables are the unit's.
        world = replace(world, X=dict(world.X))
        for one in ("x0", "count0"):
            world.X[one] = world.X[one][unit * 10]
        y = _dependent(rng, unit, 0.1) < world.s
        more = {"groups": unit}
    else:
        odds = np.log(world.s / (1 - world.s)) - 0.7
        y = rng.random(n) < 1 / (1 + np.exp(-odds))
    return searched(world, y, seed, draws=draws, **more).p_value


def _dependent(rng: np.random.Generator, unit: np.ndarray, rho: float) -> np.ndarray:
    """Draw uniform numbers that are correlated within units."""
    shared = rng.standard_normal(int(unit.max()) + 1, dtype=np.float32)
    own = rng.standard_normal(len(unit), dtype=np.float32) * np.float32(np.sqrt(1 - rho))
    return ndtr(own + np.float32(np.sqrt(rho)) * shared[unit])


def run_null(name: str, designs: int, n_outcomes: int, draws: int) -> None:
    """Print the share of searches that show a slice."""
    shares = []
    for seed in range(designs):
        found = null_design(name, seed, n_outcomes, draws)
        shares.append((found <= ALPHA + 1e-9).mean())
        mean, error = np.mean(shares), np.std(shares) / np.sqrt(len(shares))
        tests = (seed + 1) * n_outcomes
        print(f"{name}: {tests} tests, {100 * mean:.1f} % ± {100 * error:.1f}", flush=True)


def kept_cells(n: int) -> list[tuple[int, float, float]]:
    """Return depth, share and gap of the planted slices that are neither hopeless nor certain."""
    cells = [(d, s, g) for d in (1, 2, 3) for s in (0.01, 0.05, 0.2) for g in (0.05, 0.1, 0.2)]
    return [c for c in cells if 2.2 < c[2] * np.sqrt(n * c[1] / 0.19) < 25]


def run_power(n: int, runs: int, designs: int, first: int, intervals: int) -> None:
    """Print power, recovery and coverage of planted slices."""
    table = defaultdict(list)
    covered = []
    for seed in range(first, first + designs):
        rng = np.random.default_rng([seed, n])
        world = design(rng, n)
        for cell in kept_cells(n):
            for _ in range(runs // designs):
                depth, share, gap = cell
                inside = planted(rng, world, depth, share)
                rate = rates(world.s, inside, signed_gap(rng, world.s, inside, gap))
                found = searched(world, rng.random(n) < rate, seed)
                if not len(found):
                    table[cell].append((False, 0.0, 0))
                    continue
                one, shown = found[0], found[0].mask(world.X)
                jaccard = (shown & inside).sum() / (shown | inside).sum()
                table[cell].append((True, jaccard, one.depth))
                if len(covered) < intervals:
                    covered.append(_covers(one, (world.s - rate)[shown], world.s[shown]))
        print(f"{seed + 1 - first} designs", flush=True)
        _print_power(n, table, covered)


def _covers(one: vc.results.Slice, gaps: np.ndarray, s: np.ndarray) -> tuple[float, ...]:
    """Return figures of a slice that was shown.

    Whether the interval covers and contains 0, its half-width in standard errors, and the sizes
    of the true, the found and the shrunk gap.
    """
    error = np.sqrt((s * (1 - s)).sum()) / len(s)
    truth, sign = gaps.mean(), np.sign(one.gap)
    return (
        one.low <= truth <= one.high,
        one.low <= 0 <= one.high,
        (one.high - one.low) / 2 / error,
        *(sign * gap for gap in (truth, one.gap, one.shrunk)),
    )


def _print_power(n, table, covered) -> None:
    print(f"n = {n}: depth, share, gap: shown, Jaccard ≥ ½, mean Jaccard, depths shown")
    for cell, lines in table.items():
        shown, jaccard, depth = (
            np.array(column, dtype=float) for column in zip(*lines, strict=True)
        )
        depths = [int((depth == k).sum()) for k in (1, 2, 3)]
        print(
            f"{cell}: {100 * shown.mean():.0f} % {100 * (jaccard >= 0.5).mean():.0f} % "
            f"{jaccard.mean():.2f} {depths}"
        )
    cells = [np.array(lines, dtype=float) for lines in table.values()]
    power = np.mean([lines[:, 0].mean() for lines in cells])
    half = np.mean([(lines[:, 1] >= 0.5).mean() for lines in cells])
    mean = np.mean([lines[:, 1].mean() for lines in cells])
    print(f"average: {100 * power:.0f} % / {100 * half:.0f} % / {mean:.2f}")
    two = np.concatenate([np.array(lines, float) for cell, lines in table.items() if cell[0] == 2])
    two = two[two[:, 0] > 0]
    print(f"two variables planted, three shown: {int((two[:, 2] == 3).sum())} of {len(two)}")
    if covered:
        share, zero, width, *gaps = np.mean(covered, axis=0)
        print(
            f"intervals: {100 * share:.1f} % of {len(covered)}, half-width {width:.2f} se, "
            f"{100 * zero:.0f} % contain 0"
        )
        true, *others = np.array(covered).T[3:]
        texts = [f"true {100 * gaps[0]:.1f}"]
        for name, one in zip(("found", "shrunk"), others, strict=True):
            error = np.std(one - true, ddof=1) / np.sqrt(len(true))
            texts.append(f"{name} {100 * np.mean(one - true):+.1f} ± {100 * error:.1f}")
        print("gaps, points: " + ", ".join(texts))


def run_speed(n: int, n_variables: int) -> None:
    """Print processor seconds of a search of one claim, and as multiples of a tree."""
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    world = design(rng, n, n_variables=n_variables)
    inside = planted(rng, world, 2, 0.1)
    y = rng.random(n) < rates(world.s, inside, signed_gap(rng, world.s, inside, 0.1))
    small = {name: column[:2000] for name, column in world.X.items()}
    vc.slices(y[:2000], world.s[:2000], small, draws=19)  # loads the kernels
    columns = [
        np.unique(column, return_inverse=True)[1] if column.dtype.kind == "U" else column
        for column in world.X.values()
    ]
    matrix = np.column_stack(columns)
    trees, searches = [], []
    for _ in range(3):
        start = time.process_time()
        DecisionTreeRegressor(max_depth=3).fit(matrix, y - world.s)
        trees.append(time.process_time() - start)
        start = time.process_time()
        found = vc.slices(y, world.s, world.X)
        searches.append(time.process_time() - start)
        if searches[-1] > 20:
            break
    ratio = np.median(np.array(searches) / np.array(trees))
    print(f"{n} rows, {n_variables} variables: {np.median(searches):.1f} s, tree "
          f"{np.median(trees):.2f} s, ratio {ratio:.1f}")  # fmt: skip
    print(found)


def main(arguments: list[str] | None = None) -> None:
    """Run one simulation."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    null = kinds.add_parser("null")
    null.add_argument("name", choices=NULLS)
    null.add_argument("--designs", type=int, default=50)
    null.add_argument("--outcomes", type=int, default=20)
    null.add_argument("--draws", type=int, default=DRAWS)
    power = kinds.add_parser("power")
    power.add_argument("--rows", type=int, default=5000)
    power.add_argument("--runs", type=int, default=30)
    power.add_argument("--designs", type=int, default=10)
    power.add_argument("--seed", type=int, default=0)
    power.add_argument("--intervals", type=int, default=0)
    speed = kinds.add_parser("speed")
    speed.add_argument("--rows", type=int, default=50_000)
    speed.add_argument("--variables", type=int, default=20)
    given = parser.parse_args(arguments)
    if given.kind == "null":
        run_null(given.name, given.designs, given.outcomes, given.draws)
    elif given.kind == "power":
        run_power(given.rows, given.runs, given.designs, given.seed, given.intervals)
    else:
        run_speed(given.rows, given.variables)


if __name__ == "__main__":
    main()
