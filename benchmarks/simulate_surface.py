"""Coverage of a surface's band, and of the mask's signs, on data whose true gap is known.

python benchmarks/simulate_surface.py [--rows 50000] [--samples N] [--world NAME ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import varcal as vc

Floats = NDArray[np.float64]
Shape = Callable[[Floats, Floats], Floats]


def bump(x: Floats, width: float) -> Floats:
    """Return a Gaussian of height 1."""
    return np.exp(-((x / width) ** 2) / 2)


#: Gaps over the ranks of both variables. The constants of the smoother were chosen on these …
TUNED: dict[str, Shape] = {
    "zero": lambda u, v: 0 * u,
    "saddle": lambda u, v: 0.6 * (u - 0.5) * (v - 0.5),
    "narrow bump": lambda u, v: 0.2 * bump(u - 0.3, 0.08) * bump(v - 0.65, 0.08),
    "wave": lambda u, v: 0.12 * np.sin(3 * np.pi * u) * np.cos(2 * np.pi * v),
    "ridge": lambda u, v: 0.15 * bump(u - v, 0.1),
    "corner": lambda u, v: 0.2 * np.clip((u - 0.7) / 0.3, 0, 1) * np.clip((v - 0.7) / 0.3, 0, 1),
    "steep diagonal": lambda u, v: 0.15 / (1 + np.exp(-(u + v - 1.1) / 0.03)),
    "jump": lambda u, v: 0.12 * (u + v > 1.1),
    "ring": lambda u, v: 0.15 * bump(np.hypot(u - 0.5, v - 0.5) - 0.3, 0.08),
    "steep edge": lambda u, v: 0.2 * np.exp(-u / 0.05),
}
#: … these were seen once, before bands were made a little wider …
SEEN_ONCE: dict[str, Shape] = {
    "two bumps": lambda u, v: (
        0.18 * bump(u - 0.7, 0.1) * bump(v - 0.75, 0.1)
        - 0.18 * bump(u - 0.25, 0.1) * bump(v - 0.2, 0.1)
    ),
    "checkers": lambda u, v: 0.1 * np.sin(4 * np.pi * u) * np.sin(4 * np.pi * v),
    "valley": lambda u, v: 0.3 * np.abs(u - v) - 0.1,
    "fan": lambda u, v: 0.2 * u * np.sin(6 * v),
    "block": lambda u, v: 0.12 * ((u > 0.6) & (v < 0.35)),
    "one variable": lambda u, v: 0.12 * np.tanh((u - 0.8) / 0.05),
}
#: … and these were not looked at before all constants were fixed.
UNSEEN: dict[str, Shape] = {
    "stripes": lambda u, v: 0.1 * np.sin(5 * np.pi * u),
    "cross": lambda u, v: 0.1 * (bump(u - 0.45, 0.1) + bump(v - 0.6, 0.1)),
    "spiral": lambda u, v: (
        0.1 * np.sin(np.arctan2(v - 0.5, u - 0.5) + 9 * np.hypot(u - 0.5, v - 0.5))
    ),
    "cliff": lambda u, v: 0.12 * (u > 0.37),
    "tilted plane": lambda u, v: 0.2 * (u + v - 1),
}


@dataclass(frozen=True)
class World:
    """What varies beside the shape."""

    shape: Shape
    scores: str = "middle"
    correlation: float = 0.4
    options: dict[str, Any] = field(default_factory=dict)


WORLDS = {name: World(shape) for name, shape in (TUNED | SEEN_ONCE | UNSEEN).items()}
WORLDS |= {
    "independent variables": World(SEEN_ONCE["fan"], correlation=0.0),
    "strongly dependent": World(SEEN_ONCE["fan"], correlation=0.8),
    "5 % positives": World(lambda u, v: -0.1 * u * v, "rare"),
    "5 % positives, zero": World(TUNED["zero"], "rare"),
    "weights": World(SEEN_ONCE["fan"], options={"weights": True}),
    "groups of 5": World(TUNED["saddle"], options={"groups": True}),
    "10 % missing": World(SEEN_ONCE["fan"], options={"missing": True}),
    "eight levels": World(SEEN_ONCE["fan"], options={"levels": 1}),
    "eight by eight levels": World(SEEN_ONCE["fan"], options={"levels": 2}),
    "whole numbers": World(SEEN_ONCE["fan"], options={"whole": True}),
}


def draw(world: World, n: int, seed: int) -> tuple[dict[str, Any], Floats]:
    """Return the arguments of `surface` and the true gap of each row."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((2, n))
    normal[1] = world.correlation * normal[0] + np.sqrt(1 - world.correlation**2) * normal[1]
    u, v = (one.argsort().argsort() / n + 0.5 / n for one in normal)
    s = 0.2 + 0.6 * rng.beta(2, 2, n) if world.scores == "middle" else rng.beta(1, 19, n)
    noise, unit = np.zeros(n), None
    if "groups" in world.options:
        unit = rng.integers(0, n // 5, n)
        # The gap of a group varies about the surface with a standard deviation of 10 points.
        noise = rng.normal(0, 0.1, n // 5)[unit]
    rate = np.clip(s - world.shape(u, v), 0.001, 0.999)
    hit = rng.random(n) < np.clip(rate - noise, 0, 1)
    first: Any = normal[0].copy()
    second: Any = np.exp(normal[1])
    if "missing" in world.options:
        first[rng.random(n) < 0.1] = np.nan
        second[rng.random(n) < 0.1] = np.nan
    if "whole" in world.options:
        first, second = np.round(4 * first), np.minimum(np.round(second), 6)
    if world.options.get("levels"):
        second = np.array([f"level {k}" for k in (8 * v).astype(int)])
    if world.options.get("levels") == 2:
        first = np.array([f"level {k}" for k in (8 * u).astype(int)])
    weight = rng.uniform(0.3, 3, n) if "weights" in world.options else None
    given = {"y": hit.astype(int), "p": s, "X": {"v1": first, "v2": second}}
    return given | {"sample_weight": weight, "groups": unit}, s - rate


def truth(given: dict[str, Any], gap: Floats, found: vc.results.Surface) -> Floats:
    """Return the mean true gap of the rows of each cell."""
    columns = zip(given["X"].values(), (found.first, found.second), strict=True)
    places = [cells_of(column, axis) for column, axis in columns]
    shape = found.gap.shape
    cell = np.ravel_multi_index(places, shape)
    weight = np.ones(len(gap)) if given["sample_weight"] is None else given["sample_weight"]
    total, size = (np.bincount(cell, one, shape[0] * shape[1]) for one in (weight * gap, weight))
    with np.errstate(invalid="ignore"):
        return (total / size).reshape(shape)


def cells_of(values: NDArray[Any], axis: Any) -> NDArray[np.intp]:
    """Return the cell of each row; the cell of missing values is the last one."""
    if axis.kind == "levels":
        return np.array([axis.labels.index(one) for one in values])
    place = np.searchsorted(axis.edges, values, side="left")
    # A frequent value has a cell of its own, between two equal edges.
    alone = np.searchsorted(axis.edges, values, side="right") - place == 2
    place = np.where(alone, place, np.maximum(place - 1, 0))
    return np.where(np.isnan(values), len(axis) - 1, place)


def sample(world: World, n: int, seed: int) -> tuple[bool, bool, float, float]:
    """Return whether all cells are covered, any sign is wrong, mean half-width, share sure."""
    given, gap = draw(world, n, seed)
    found = vc.surface(**given)
    true = truth(given, gap, found)
    judged = found.judged
    inside = (found.low <= true) & (true <= found.high)
    wrong = found.sure * np.sign(np.nan_to_num(true)) < 0
    reach = ((found.high - found.low) / 2)[judged]
    sure = float(found.share[found.sure != 0].sum())
    return bool(inside[judged].all()), bool(wrong.any()), float(reach.mean()), sure


def main() -> None:
    """Print one line per world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--world", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    options = parser.parse_args()
    start = time.process_time()
    print(f"{options.rows:,} rows, {options.samples} samples, level 95 %\n")
    print("| world | covered | wrong sign | half-width, points | rows surely off |")
    print("|---|---|---|---|---|")
    for name in options.world:
        runs = [
            sample(WORLDS[name], options.rows, options.seed + k) for k in range(options.samples)
        ]
        covered, wrong, reach, sure = np.array(runs, dtype=float).mean(axis=0)
        print(
            f"| {name} | {100 * covered:.0f} % | {100 * wrong:.0f} % | {100 * reach:.1f} | "
            f"{100 * sure:.0f} % |",
            flush=True,
        )
    print(f"\n{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
