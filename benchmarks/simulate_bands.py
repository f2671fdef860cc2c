"""Coverage of the simultaneous band of the gap and of the v* set, on data whose truth is known.

python benchmarks/simulate_bands.py [--quick] [--samples N] [--table NAME ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import varcal as vc

Floats = NDArray[np.float64]

SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "none": lambda u: 0 * u,
    "tilt": lambda u: 2 * u - 1,
    "hump": lambda u: np.exp(-(((u - 0.5) / 0.12) ** 2) / 2),
    "tail": lambda u: 1 / (1 + np.exp(-(u - 0.9) / 0.025)),
    "sine": lambda u: np.sin(6 * np.pi * u),
}
SCORES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "Beta(2, 5)": lambda rng, n: rng.beta(2, 5, n),
    "U(.2, .8)": lambda rng, n: rng.uniform(0.2, 0.8, n),
    "concentrated at 1": lambda rng, n: np.where(
        rng.random(n) < 0.5, 1 - 1e-3 * rng.random(n), rng.uniform(0.5, 1, n)
    ),
    "2 % positives": lambda rng, n: rng.beta(1, 49, n),
}
#: Ages, whole or not, of which a sixth to a third are beyond a limit of 65 years.
AGES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "years": lambda rng, n: rng.integers(18, 91, n).astype(float),
    "bell": lambda rng, n: np.clip(np.round(rng.normal(50, 17, n)), 18, 90),
    "continuous": lambda rng, n: rng.uniform(18, 91, n),
}
SIZES = {"Beta(2, 5)": (0.05, 0.15), "U(.2, .8)": (0.05, 0.15), "concentrated at 1": (0.1, 0.3)}
TABLE = np.linspace(-0.5, 0.5, 201)


def true_gap(scores: str, wanted: Floats) -> Floats:
    """Return the mean gap if the hit rate is the score minus `wanted`, clipped to [0, 1]."""
    s = SCORES[scores](np.random.default_rng(1), 20_000)
    means = [np.mean(s - np.clip(s - gap, 0, 1)) for gap in TABLE]
    return np.interp(wanted, TABLE, means)


def draw(rng: np.random.Generator, u: Floats, scores: str, wanted: Floats) -> tuple[Floats, Floats]:
    """Draw scores and hits of rows whose gap is `wanted`."""
    s = SCORES[scores](rng, len(u))
    return s, (rng.random(len(u)) < s - wanted).astype(float)


def curve(v: Floats, s: Floats, hit: Floats, **more) -> vc.results.Curve:
    """Return the curve of the gap."""
    return vc.curve(hit, s, v, event="positive", classes=(0, 1), **more)


def searched(found: vc.results.Curve) -> NDArray[np.bool_]:
    """Return which places were searched for v*."""
    low, high = found.searched
    return (low <= found.x) & (found.x <= high)


class Tally:
    """The results for all samples of one scenario."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[tuple[float, ...]] = []

    def add(self, found: vc.results.Curve, truth: Floats) -> None:
        """Add one sample."""
        covered = np.all((found.band_low <= truth) & (truth <= found.band_high))
        size = np.where(searched(found), np.abs(truth), -1)
        star = bool(found.worst_set[int(np.argmax(size))])
        point = np.mean((found.gap_low <= truth) & (truth <= found.gap_high))
        width = np.mean(found.band_high - found.band_low)
        top = found.vce_low <= size.max() <= found.vce_high
        self.rows.append((covered, star, np.mean(found.worst_set), point, width, top))

    @property
    def means(self) -> Floats:
        """The averages over the samples."""
        return np.mean(self.rows, axis=0)


def table(title: str, lines: dict[str, list[Tally]]) -> None:
    """Print one Markdown table, with one line per sample size or setting."""
    print(f"\n### {title}\n")
    print(
        "| | band covers | worst | (scenario) | v* set covers | worst | share of the set "
        "| pointwise | max gap in interval | mean width |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for label, tallies in lines.items():
        means = np.array([tally.means for tally in tallies])
        stars = np.array([tally.means[1] for tally in tallies if not tally.name.startswith("none")])
        stars = stars if len(stars) else np.array([np.nan])
        worst = int(np.argmin(means[:, 0]))
        band, _, share, point, width, top = means.mean(0)
        print(
            f"| {label} | {band:.1%} | {means[worst, 0]:.1%} | {tallies[worst].name} "
            f"| {stars.mean():.1%} | {stars.min():.1%} | {share:.2f} | {point:.1%} | {top:.1%} "
            f"| {width:.4f} |",
            flush=True,
        )


def smooth_shapes(sizes: list[int], samples: int) -> None:
    """Print the main table: shapes × scores, independent rows, no ties."""
    lines: dict[str, list[Tally]] = {}
    for n in sizes:
        many = samples if n < 300_000 else max(samples // 4, 20)
        u = (np.arange(n) + 0.5) / n
        tallies = lines.setdefault(f"n = {n:,}", [])
        for scores, amounts in SIZES.items():
            for name, shape in SHAPES.items():
                for amount in amounts if name != "none" else (0.0,):
                    tally = Tally(f"{name} {amount}, {scores}")
                    rng = np.random.default_rng([n, len(tallies)])
                    wanted = amount * shape(u)
                    for _ in range(many):
                        s, hit = draw(rng, u, scores, wanted)
                        found = curve(u, s, hit)
                        tally.add(found, true_gap_at(scores, amount * shape(found.x)))
                    tallies.append(tally)
    table("Smooth shapes", lines)


_TRUTH: dict[str, Floats] = {}


def true_gap_at(scores: str, wanted: Floats) -> Floats:
    """Return the same as `true_gap`, from a table that is computed once."""
    if scores not in _TRUTH:
        _TRUTH[scores] = true_gap(scores, TABLE)
    return np.interp(wanted, TABLE, _TRUTH[scores])


def other_designs(sizes: list[int], samples: int) -> None:
    """Print the table for ties, frequent values, weights and rare outcomes."""
    lines: dict[str, list[Tally]] = {}
    designs: dict[str, Callable[[np.random.Generator, int], Floats]] = {
        "60 tied values": lambda rng, n: np.floor(rng.random(n) * 60 + 0.5) / 60,
        "12 tied values": lambda rng, n: np.floor(rng.random(n) * 11 + 0.5) / 11,
        "skewed counts": lambda rng, n: np.minimum(np.floor(rng.exponential(15, n)), 80) / 80,
        "30 % at one value": lambda rng, n: np.where(rng.random(n) < 0.3, 0.4, rng.random(n)),
    }
    for n in sizes:
        for design, values in designs.items():
            tallies = lines.setdefault(f"{design}, n = {n:,}", [])
            # Two periods of the sine would fall into the last sixth of the skewed rows.
            for name in ("none", "tilt", "hump", "sine")[: 3 if "skewed" in design else 4]:
                tally = Tally(name)
                rng = np.random.default_rng([n, len(tallies), len(lines)])
                for _ in range(samples):
                    v = np.sort(values(rng, n))
                    s, hit = draw(rng, v, "U(.2, .8)", 0.15 * SHAPES[name](v))
                    found = curve(v, s, hit)
                    tally.add(found, 0.15 * SHAPES[name](found.x))
                tallies.append(tally)
        tallies = lines.setdefault(f"weights exp(N(0, ¾)), n = {n:,}", [])
        rare = lines.setdefault(f"2 % positives, n = {n:,}", [])
        u = (np.arange(n) + 0.5) / n
        for name in ("none", "tilt", "hump", "sine"):
            weighted, sparse = Tally(name), Tally(name)
            rng = np.random.default_rng([n, len(rare)])
            for _ in range(samples):
                s, hit = draw(rng, u, "U(.2, .8)", 0.15 * SHAPES[name](u))
                w = np.exp(rng.normal(0, 0.75, n))
                found = curve(u, s, hit, sample_weight=w)
                weighted.add(found, 0.15 * SHAPES[name](found.x))
                s, hit = draw(rng, u, "2 % positives", -0.015 * SHAPES[name](u))
                found = curve(u, s, hit)
                sparse.add(found, true_gap_at("2 % positives", -0.015 * SHAPES[name](found.x)))
            tallies.append(weighted)
            rare.append(sparse)
    table("Other designs", lines)


def grouped(samples: int) -> None:
    """Print the table for groups with a common error, with and without taking them into account."""
    lines: dict[str, list[Tally]] = {}
    n = 6000
    for many in (20, 60, 256):
        for along in ("mixed", "sorted"):
            aware = lines.setdefault(f"{many} groups, {along} along v", [])
            blind = lines.setdefault(f"{many} groups, {along}, ignored", [])
            for name in ("none", "tilt", "hump"):
                yes, no = Tally(name), Tally(name)
                rng = np.random.default_rng([many, len(along), len(aware)])
                for _ in range(samples):
                    u = np.sort(rng.random(n))
                    if along == "mixed":
                        group = rng.integers(0, many, n)
                    else:
                        group = np.minimum((u + rng.normal(0, 0.15, n)) % 1 * many, many - 1)
                        group = group.astype(int)
                    shared = np.clip(rng.normal(0, 0.08, many), -0.16, 0.16)
                    wanted = 0.1 * SHAPES[name](u) + shared[group]
                    s, hit = draw(rng, u, "U(.2, .8)", np.clip(wanted, -0.2, 0.2))
                    for tally, buckets in ((yes, group), (no, None)):
                        found = curve(u, s, hit, groups=buckets)
                        tally.add(found, 0.1 * SHAPES[name](found.x))
                aware.append(yes)
                blind.append(no)
    table("Groups (n = 6,000)", lines)


def categories(sizes: list[int], samples: int) -> None:
    """Print the table for levels of unequal size."""
    lines: dict[str, list[Tally]] = {}
    for n in sizes:
        for many in (3, 12, 40):
            tallies = lines.setdefault(f"{many} levels, n = {n:,}", [])
            share, names = 1 / (1 + np.arange(many)), np.array([f"{k:02}" for k in range(many)])
            for scores in ("U(.2, .8)", "concentrated at 1"):
                for name, amount in (("none", 0.0), ("half", 0.1)):
                    tally = Tally(f"{name}, {scores}")
                    rng = np.random.default_rng([n, many, len(tallies)])
                    wanted = amount * (np.arange(many) % 2)
                    for _ in range(samples):
                        v = rng.choice(many, n, p=share / share.sum())
                        s, hit = draw(rng, v, scores, wanted[v])
                        found = curve(names[v], s, hit)
                        tally.add(found, true_gap_at(scores, wanted[np.array(found.labels, int)]))
                    tallies.append(tally)
    table("Categorical", lines)


def jumps(sizes: list[int], samples: int) -> None:
    """Print the table for a gap that jumps at the age of 65, alone or on a wave."""
    lines: dict[str, list[Tally]] = {}
    for n in sizes:
        for ages, values in AGES.items():
            tallies = lines.setdefault(f"{ages}, n = {n:,}", [])
            for jump, wave in ((0.15, 0.0), (0.15, 0.05), (0.06, 0.0)):
                tally = Tally(f"jump {jump}, wave {wave}")
                rng = np.random.default_rng([n, len(tallies), len(ages)])

                def gap(v: Floats, jump: float = jump, wave: float = wave) -> Floats:
                    return jump * (v >= 65) + wave * np.sin((v - 18) / 73 * 2 * np.pi)

                for _ in range(samples):
                    v = np.sort(values(rng, n))
                    s, hit = draw(rng, v, "U(.2, .8)", gap(v))
                    found = curve(v, s, hit)
                    tally.add(found, gap(found.x))
                tallies.append(tally)
    table("Jumps", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--samples", type=int)
    parser.add_argument(
        "--table", nargs="*", default=["smooth", "other", "groups", "levels", "jumps"]
    )
    options = parser.parse_args()
    samples = options.samples or (40 if options.quick else 300)
    sizes = [500, 2000, 20_000] if options.quick else [500, 2000, 20_000, 1_000_000]
    few = [500, 5000] if options.quick else [500, 5000, 50_000]
    started = time.perf_counter()
    if "smooth" in options.table:
        smooth_shapes(sizes, samples)
    if "other" in options.table:
        other_designs(few, samples)
    if "groups" in options.table:
        grouped(samples)
    if "levels" in options.table:
        categories([500, 5000], samples)
    if "jumps" in options.table:
        jumps([2000, 5000, 15_000, 50_000], samples)
    print(f"\n{samples} samples per scenario; {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
