"""Worlds at the edges: groups, overall gaps, classes, heavy weights and rare outcomes.

A world draws rows whose truth is known, and tells whether an interval covers it, or whether a test
rejects a true hypothesis. `width` is that of the interval, NaN for tests.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from varcal._evidence.gather import gather
from varcal._evidence.profile import Profile
from varcal._evidence.question import BinOptions, Question
from varcal._inference.duality import with_p
from varcal._inference.measured import measure
from varcal._measures.estimate import estimate, overall_gap, profile_test

OPTIONS: BinOptions = {"n_bins": 10, "binning": "quantile", "bins": None, "edges": None}


class Found(NamedTuple):
    """What one replicate gives."""

    hit: bool
    width: float = np.nan


@dataclass(frozen=True)
class World:
    """A world with a nominal rate, a function of one replicate, and how many are needed.

    ``nominal`` is the least coverage of an interval or the largest rate of false rejections, and
    ``kind`` says which.
    """

    name: str
    nominal: float
    kind: str
    draw: Callable[[np.random.Generator], Found]
    replicates: int

    def one(self, rng: np.random.Generator) -> bool:
        """Draw one replicate, and tell whether the interval covered or the test rejected."""
        return self.draw(rng).hit


def _profile(y, s, v, *, options: BinOptions = OPTIONS, **more) -> tuple[Profile, object]:
    evidence = gather(y, s, v, Question(options, "positive", None), **more)
    (key,) = evidence.keys("positive")
    name = evidence.along[0].name
    found = evidence.profile(key, name)
    return found, evidence.rows(key, name, found)


def _covers(found, truth: float) -> Found:
    return Found(bool(found.low <= truth <= found.high), float(found.high - found.low))


# Groups


def grouped(
    rng: np.random.Generator, n_groups: int, variable: str, tilt: float, beyond: bool
) -> Found:
    """Rows of a group share 70 % of their luck; v is that of the group, a site, or mixed."""
    unit = np.repeat(np.arange(n_groups), 30)
    own, shared = rng.random(len(unit)), rng.random(n_groups)[unit]
    v = {"by group": shared, "mixed": (own + shared) / 2, "sites": unit % 4}[variable]
    s = rng.uniform(0.3, 0.7, len(unit))
    luck = np.where(rng.random(len(unit)) < 0.7, rng.random(n_groups)[unit], rng.random(len(unit)))
    y = luck < s - tilt * (2 * v - 1)
    options = OPTIONS if tilt == 0 else {**OPTIONS, "bins": np.linspace(0, 1, 11).tolist()}
    found, _ = _profile(y, s, v, groups=unit, options=options)
    p_value = profile_test(found, None, grouped=True, beyond=beyond)
    measured = with_p(measure(found.coarse, 0.95, beyond=beyond), p_value, 0.95)
    return _covers(measured, _tilted(variable, tilt))


def shifted(rng: np.random.Generator, n_groups: int, variable: str, gap: float) -> Found:
    """VECE where all rows have the same gap; groups have rows everywhere along v, or mixed."""
    unit = np.repeat(np.arange(n_groups), 30)
    own, shared = rng.random(len(unit)), rng.random(n_groups)[unit]
    v = {"within groups": own, "mixed": (own + shared) / 2}[variable]
    s = rng.uniform(0.3, 0.7, len(unit))
    luck = np.where(rng.random(len(unit)) < 0.7, rng.random(n_groups)[unit], rng.random(len(unit)))
    options: BinOptions = {**OPTIONS, "bins": np.linspace(0, 1, 11).tolist()}
    found, _ = _profile(luck < s - gap, s, v, groups=unit, options=options)
    p_value = profile_test(found, None, grouped=True)
    return _covers(with_p(measure(found.coarse, 0.95), p_value, 0.95), gap)


def _tilted(variable: str, tilt: float) -> float:
    """Return the error of a tilt over ten bins: gaps are symmetric, so that none is overall."""
    if tilt == 0:
        return 0.0
    middle = (np.arange(1000) + 0.5) / 1000
    mass = np.ones(1000) if variable == "by group" else 2 - 4 * np.abs(middle - 0.5)
    mass, gap = mass.reshape(10, 100), (tilt * (2 * middle - 1)).reshape(10, 100)
    return float(np.abs((mass * gap).sum(1)).sum() / mass.sum())


# The overall gap


def overall(rng: np.random.Generator, n: int, scores: str, gap: float) -> Found:
    """The gap over all rows, for scores near 1, rare positives and dense scores."""
    s = {
        "near .999": lambda: 1 - rng.beta(1, 999, n),
        ".5 % positives": lambda: rng.uniform(0.004, 0.006, n),
        ".2 % predicted": lambda: rng.uniform(0.001, 0.003, n),
        "dense": lambda: rng.uniform(0.2, 0.8, n),
        "all of (0, 1)": lambda: rng.random(n),
    }[scores]()
    y = rng.random(n) < np.clip(s - gap, 0, 1)
    truth = gap - gap**2 / 2 if scores == "all of (0, 1)" else gap  # clipped at 0
    return _covers(overall_gap(_profile(y, s, rng.random(n))[0].coarse, 0.95), truth)


# Classes


def classwise(rng: np.random.Generator, n_classes: int, n: int, size: float, score: bool) -> Found:
    """The classwise error along a variable or the score; class 0 is over-predicted at large v."""
    p = rng.dirichlet(np.full(n_classes, 0.7), n)
    v = rng.random(n)
    true = p.copy()
    moved = size * v * p[:, 0]
    true[:, 0] -= moved
    true[:, 1] += moved
    y = np.minimum((rng.random(n)[:, None] > true.cumsum(1)).sum(1), n_classes - 1)
    if score:
        found = estimate(y, p, event="classwise", classes=range(n_classes))
        return _covers(found, 0.0)
    cuts = np.linspace(0, 1, 11)
    found = estimate(y, p, v, event="classwise", bins=cuts, classes=range(n_classes))
    return _covers(found, 2 * size * 0.5 / n_classes / n_classes)


# Weights


def weighted(rng: np.random.Generator, n: int, weights: str, variable: str, gap: float) -> Found:
    """Rows with the same gap everywhere, of which few carry most of the weight."""
    s = rng.uniform(0.2, 0.8, n)
    v = rng.random(n) if variable == "numeric" else rng.choice(list("abcde"), n)
    w = np.ones(n)
    if weights.startswith("lognormal"):
        w = rng.lognormal(0, float(weights.split()[1]), n)
    elif weights != "equal":
        w[0] = float(weights)
    found, rows = _profile(rng.random(n) < s - gap, s, v, sample_weight=w)
    return Found(profile_test(found, rows, grouped=False, beyond=True) < 0.05)


# Rare outcomes in many rows


def rare(
    rng: np.random.Generator, n: int, rate: float, scores: str, level: float, beyond: bool
) -> Found:
    """Calibrated rows with so few positives that no bin has more than a few."""
    s, v = np.full(n, rate), rng.random(n)
    if scores in ("gamma", "near 1"):
        s = np.minimum(rng.gamma(0.8, rate / 0.8, n), 0.9)
    elif scores == "lognormal, sorted by v":
        s = np.minimum(rate * rng.lognormal(-2, 2, n), 0.9)
        s[np.argsort(v)] = np.sort(s)
    s = 1 - s if scores == "near 1" else s
    found, _ = _profile(rng.random(n) < s, s, v)
    return Found(profile_test(found, None, grouped=False, beyond=beyond) < level)


#: groups, variable, tilt
GROUPED = (
    *((n, "by group", 0.0) for n in (12, 20, 50, 150)),
    *((n, "sites", 0.0) for n in (12, 20, 50)),
    *((n, "by group", 0.08) for n in (20, 50)),
    *((n, "by group", 0.2) for n in (50, 150)),
    *((n, "mixed", 0.2) for n in (20, 50, 150)),
)
#: groups, variable, gap
SHIFTED = (
    (20, "within groups", 0.12),
    (50, "within groups", 0.07),
    (50, "within groups", 0.12),
    (50, "mixed", 0.07),
    (150, "within groups", 0.07),
)
#: scores, rows, gap
OVERALL = (
    ("near .999", 1_000, 0.0),
    ("near .999", 10_000, 0.0),
    (".5 % positives", 600, 0.0),
    (".5 % positives", 5_000, 0.0),
    (".2 % predicted", 600, -0.003),
    ("dense", 100, 0.0),
    ("dense", 600, 0.1),
    ("all of (0, 1)", 600, 0.0),
    ("all of (0, 1)", 600, 0.3),
)
#: classes, rows, size of the error, whether along the score
CLASSES = (
    (10, 1_000, 0.0, False),
    (3, 1_000, 0.0, False),
    (20, 1_000, 0.0, False),
    (10, 1_000, 0.5, False),
    (3, 1_000, 0.3, False),
    (3, 10_000, 0.3, False),
    (10, 1_000, 0.0, True),
    (3, 1_000, 0.0, True),
)
#: rows, weights (one number: that of a single row), variable, constant gap
WEIGHTED = (
    (60, "1000", "numeric", 0.0),
    (60, "1000", "levels", 0.0),
    (300, "30", "numeric", 0.0),
    (300, "30", "levels", 0.1),
    (100, "lognormal 2", "numeric", 0.0),
    (300, "lognormal 2", "numeric", 0.0),
    (300, "lognormal 2", "levels", 0.1),
    (1_000, "lognormal 2", "numeric", 0.1),
    (300, "lognormal 1", "numeric", 0.1),
    (300, "equal", "numeric", 0.1),
    (3_000, "1000", "numeric", 0.0),
)
#: rows, mean score (or distance from 1), scores, whether beyond, level
RARE = (
    (12_000, 0.0002, "gamma", False, 0.01),
    (20_000, 0.0004, "lognormal, sorted by v", False, 0.01),
    (50_000, 0.0002, "equal", False, 0.01),
    (50_000, 0.0004, "near 1", False, 0.05),
    (12_000, 0.0002, "gamma", True, 0.05),
    (20_000, 0.0004, "lognormal, sorted by v", True, 0.05),
)


def worlds() -> Iterator[World]:
    """Yield every world."""
    for beyond in (False, True):
        for n_groups, variable, tilt in GROUPED:
            draw = partial(grouped, n_groups=n_groups, variable=variable, tilt=tilt, beyond=beyond)
            what = "beyond" if beyond else "VECE"
            name = f"{what}, v {variable}, {n_groups} groups, tilt {tilt}"
            yield World(name, 0.95, "interval", draw, 400)
    for scores, n, gap in OVERALL:
        draw = partial(overall, n=n, scores=scores, gap=gap)
        yield World(f"overall gap {gap}, {scores}, n = {n:,}", 0.95, "interval", draw, 2_000)
    for n_classes, n, size, score in CLASSES:
        draw = partial(classwise, n_classes=n_classes, n=n, size=size, score=score)
        name = f"classwise {'ECE' if score else 'VECE'}, {n_classes} classes, n = {n:,}"
        yield World(f"{name}, size {size}", 0.95, "interval", draw, 300)
    for n, weights, variable, gap in WEIGHTED:
        draw = partial(weighted, n=n, weights=weights, variable=variable, gap=gap)
        name = f"beyond, weights {weights}, {variable}, n = {n:,}, gap {gap}"
        yield World(name, 0.05, "test", draw, 1_000)
    for n, rate, scores, beyond, level in RARE:
        draw = partial(rare, n=n, rate=rate, scores=scores, level=level, beyond=beyond)
        name = f"{100 * rate:g} % positives, {scores}, n = {n:,}"
        yield World(f"{'beyond, ' if beyond else ''}{name}", level, "test", draw, 2_000)


def shifted_worlds() -> Iterator[World]:
    """Yield the worlds that came last; seeds of the others depend on their number."""
    for n_groups, variable, gap in SHIFTED:
        draw = partial(shifted, n_groups=n_groups, variable=variable, gap=gap)
        name = f"VECE, v {variable}, {n_groups} groups, gap {gap}"
        yield World(name, 0.95, "interval", draw, 400)


WORLDS = (*worlds(), *shifted_worlds())


def run(worlds: tuple[World, ...], seed: int) -> None:
    """Print nominal and measured rates of the worlds whose name contains a text."""
    parser = argparse.ArgumentParser(description=run.__doc__)
    parser.add_argument("--only", default="", help="a part of the name")
    parser.add_argument("--replicates", type=int, help="the same for every world")
    options = parser.parse_args()
    print("| world | nominal | measured | width × 100 |\n|---|---|---|---|")
    for k, world in enumerate(worlds):
        if options.only not in world.name:
            continue
        rng = np.random.default_rng([seed, k])
        found = [world.draw(rng) for _ in range(options.replicates or world.replicates)]
        rate = np.mean([one.hit for one in found])
        error = np.sqrt(rate * (1 - rate) / len(found))
        width = np.mean([one.width for one in found])
        print(
            f"| {world.name} | {100 * world.nominal:g} | {100 * rate:.1f} ± {100 * error:.1f} | "
            f"{'' if np.isnan(width) else f'{100 * width:.2f}'} |",
            flush=True,
        )


if __name__ == "__main__":
    run(WORLDS, 15)
