"""Studies of the tests, intervals and bands for `sensitivity.py`, on data whose truth is known.

Each study is a function from a seed to figures: percentages for error rates, points for widths and
biases. A seed stands for a block of replicates. Draws are kept, so that a constant is halved and
doubled on the same rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import internals
import varcal as vc
from simulate_bands import SHAPES as CURVES
from simulate_bands import curve, draw, searched, true_gap_at
from worlds import VARIABLES, Scenario

Figures = dict[str, float]

#: Shapes of the alternatives, with the VECE of each.
ALTERNATIVES = {"tilt": 0.045, "hump": 0.045, "step": 0.045, "tail": 0.025, "sine": 0.045}
BIN_OPTIONS = {"n_bins": 10, "binning": "quantile", "bins": None}


def percent(found: list[np.ndarray]) -> float:
    """Return the mean over worlds of shares, in percent."""
    return 100 * float(np.mean([np.mean(one) for one in found]))


def rejected(worlds: list[tuple[Scenario, int]], many: int, seed: int) -> float:
    """Return how often `estimate` rejects at 5 %, over worlds with their numbers of rows."""
    return percent(
        [
            [vc.estimate(**rows).p_value < 0.05 for rows in world.samples(n, many, 1000 * seed + n)]
            for world, n in worlds
        ]
    )


def calibration_tests(seed: int) -> Figures:
    """Return type-I error and power at 5 %."""
    null = [
        (Scenario(score, shape="flat"), n)
        for score in ("uniform", "beta(2,5)", "concentrated", "rare")
        for n in (200, 1000)
    ] + [(Scenario(shape="flat"), 20)]
    other = [(Scenario(shape=shape, vece=size), 800) for shape, size in ALTERNATIVES.items()]
    return {"type-I": rejected(null, 60, seed), "power": rejected(other, 60, seed)}


@cache
def sided_rows(world: str, seed: int) -> list[tuple]:
    """Return labels, scores and a variable, with the same gap within each side or a wrong one."""
    rng = np.random.default_rng([seed, *world.encode()])
    found = []
    for _ in range(20):
        p, v = rng.uniform(0.2, 0.8, 1000), rng.random(1000)
        gap = {"flat": 0.0, "biased": 0.15, "both sides": 0.08 * (2 * v - 1)}.get(world)
        if gap is None:  # opposite sides
            gap = 0.08 * (2 * v - 1) * np.sign(p - 0.5)
        found.append((rng.random(1000) < p - gap, p, v))
    for _ in range(10 * (world != "biased")):
        p, v = rng.dirichlet(np.full(5, 1.2), 2000), rng.random(2000)
        move = {"flat": 0.0, "both sides": 0.5 * np.minimum(p[:, 0], p[:, 1])}.get(world)
        if move is None:
            move = np.where(p.argmax(1) == 0, 1.0, -1.0) * 0.5 * np.minimum(p[:, 0], p[:, 1])
        true = p.copy()
        true[:, 0] += move * (2 * v - 1)
        true[:, 1] -= move * (2 * v - 1)
        y = (rng.random(2000)[:, None] > true.cumsum(axis=1)).sum(axis=1)
        found.append((np.minimum(y, 4), p, v))
    return found


def cell_tests(seed: int) -> Figures:
    """Return type-I error and power at 5 % of the test of an audit, with two and five classes."""

    def rejected(*worlds: str) -> float:
        return percent(
            [
                [
                    vc.audit(
                        y, p, {"v": v}, ladder="none", classes=range(max(np.ndim(p) * 5 - 5, 2))
                    )
                    .rows[0]
                    .uneven.p_value
                    < 0.05
                    for y, p, v in sided_rows(world, seed)
                ]
                for world in worlds
            ]
        )

    return {
        "type-I": rejected("flat", "biased"),
        "power, both sides": rejected("both sides"),
        "power, opposite sides": rejected("opposite sides"),
    }


def sparse_tests(seed: int) -> Figures:
    """Return type-I error and power with rare hits, also in a bin of a few rows."""
    null = [(Scenario("rare", variable, "flat"), n) for variable in VARIABLES for n in (300, 3000)]
    other = [(Scenario("rare", shape="tail", vece=0.005), n) for n in (800, 2500)]
    return {"type-I": rejected(null, 25, seed), "power": rejected(other, 25, seed)}


@cache
def interval_worlds() -> list[tuple[Scenario, int]]:
    """Return worlds of VECE 0 to 0.15 with the number of rows of each."""
    worlds = [Scenario(score, shape="flat") for score in ("beta(2,5)", "uniform", "concentrated")]
    worlds += [
        Scenario(score, shape=shape, vece=min(vece, 0.015) if shape == "tail" else vece)
        for score, vece in (("beta(2,5)", 0.01), ("uniform", 0.04), ("concentrated", 0.04))
        for shape in ("tilt", "hump", "tail", "sine")
    ]
    worlds += [Scenario("uniform", shape=shape, vece=0.1) for shape in ("step", "hump")]
    return [(world, n) for world in worlds for n in (500, 2000)]


@cache
def interval_sums(which: int, many: int, seed: int) -> Any:
    """Return the sums of replicates of one of these worlds."""
    world, n = interval_worlds()[which]
    rng = np.random.default_rng(1000 * seed + which)
    u, s, h, _ = world.draw(rng, many, n)
    return internals.ErrorSums.from_rows(world.bins(u)[1], s, h, n_bins=world.sizes[1])


@cache
def interval_truth(which: int, center: bool) -> float:
    """Return the true VECE of one of these worlds, or the uneven error over bins."""
    world, _ = interval_worlds()[which]
    return world.truth(world.size, center=center)[0]


def _intervals(seed: int, worlds: list[int], many: int, center: bool) -> Figures:
    covered, width, bias, bias_at_zero, square = [], [], [], [], []
    for which in worlds:
        truth = interval_truth(which, center)
        sums = interval_sums(which, many, seed)
        law = internals.GapLaw.from_cells(sums)
        if center:
            law = internals.GapLaw.from_cells(sums, internals.constant_gap_variance(sums)).center()
        low, high = internals.interval(law)
        found = internals.debiased(law)
        covered.append((low <= truth + 1e-12) & (truth <= high))
        width.append(np.mean(high - low))
        (bias if truth > 1e-9 else bias_at_zero).append(np.mean(found - truth))
        square.append(np.mean((found - truth) ** 2))
    return {
        "coverage": percent(covered),
        "width": 100 * float(np.mean(width)),
        "bias at 0": 100 * float(np.mean(bias_at_zero)),
        "bias above 0": 100 * float(np.mean(bias)),
        "RMSE": 100 * float(np.sqrt(np.mean(square))),
    }


def vece_intervals(seed: int) -> Figures:
    """Return coverage, width, bias and error of the interval and the debiased value of VECE."""
    return _intervals(seed, list(range(len(interval_worlds()))), 60, center=False)


def uneven_intervals(seed: int) -> Figures:
    """Return the same of the uneven error over bins, with 500 or 2,000 rows in turn."""
    half = [k for k in range(len(interval_worlds())) if k // 2 % 2 == k % 2]
    return _intervals(seed, half, 20, center=True)


def detectable(seed: int) -> Figures:
    """Return the power at the least detectable error, in the shape that is hardest to find."""
    found = []
    for n in (1000, 4000):
        rng = np.random.default_rng([seed, n])
        for _ in range(50):
            u, s, draws = rng.random(n), rng.uniform(0.2, 0.8, n), rng.random(n)
            rows = {"v": u, "event": "positive", "bins": np.linspace(0, 1, 11)}
            size = vc.estimate(draws < s, s, **rows).detectable
            sign = 2 * ((10 * u).astype(int) % 2) - 1
            found.append(vc.estimate(draws < s + size * sign, s, **rows).p_value < 0.05)
    return {"power": percent([found])}


@cache
def clustered(many: int, rows: int, tilt: float, replicates: int, seed: int) -> list:
    """Return profiles of rows whose hits depend on each other within groups."""
    rng = np.random.default_rng([seed, many])
    found = []
    for _ in range(replicates):
        unit = np.repeat(np.arange(many), rows)
        n = len(unit)
        v = rng.random(many)[unit] * 0.5 + 0.5 * rng.random(n)
        s = rng.uniform(0.3, 0.7, n)
        shared = np.where(rng.random(n) < 0.7, rng.random(many)[unit], rng.random(n))
        y = shared < s + tilt * (2 * v - 1)
        predictions = internals.Predictions.of(y, s, v, groups=unit)
        claim = internals.claim_of(predictions, 1)
        found.append(
            internals.profile_of(predictions, claim, predictions.variables[0], BIN_OPTIONS, 200)
        )
    return found


def clusters(seed: int) -> Figures:
    """Return type-I error and power at 5 % with 12, 30, 60 and 150 groups."""
    sizes = ((12, 60), (30, 30), (60, 20), (150, 10))

    def rejected(tilt: float, replicates: int) -> float:
        return percent(
            [
                [
                    internals.cluster_test(
                        [one.coarse], [one.fine], np.ones(one.fine.bins.size, bool)
                    )
                    < 0.05
                    for one in clustered(many, rows, tilt, replicates, seed)
                ]
                for many, rows in sizes
            ]
        )

    return {"type-I": rejected(0.0, 25), "power": rejected(0.2, 10)}


def comparisons(seed: int) -> Figures:
    """Return coverage and width of the interval of a difference between two uneven errors."""
    covered, width = [], []
    rng = np.random.default_rng(seed)
    for _ in range(20):
        v, s = rng.random(1000), rng.uniform(0.3, 0.7, 1000)
        gap = 0.2 * (2 * v - 1)
        y = (rng.random(1000) < s - gap).astype(int)
        row = vc.compare(y, {"a": s, "b": s - gap / 2}, {"v": v}).row("b", "uneven", "v")
        covered.append(row.difference_low <= -0.05 <= row.difference_high)
        width.append(row.difference_high - row.difference_low)
    return {"coverage": percent([covered]), "width": 100 * float(np.mean(width))}


def verdicts(seed: int) -> Figures:
    """Return how often a calibrated variable is reported as having too few rows."""
    rng = np.random.default_rng(seed)
    rates = {}
    for name, low, high, sizes in (
        ("scores .2 to .8", 0.2, 0.8, (120, 240, 480, 960)),
        ("scores .95 to 1", 0.95, 1.0, (40, 80, 160, 320)),
    ):
        few = []
        for n in sizes:
            for _ in range(2):
                v, s = rng.random(n), rng.uniform(low, high, n)
                y = (rng.random(n) < s).astype(int)
                found = vc.audit(y, s, {"v": v}, ladder="none")
                few.append(found.row("v").verdict == "too few rows")
        rates[name] = percent([few])
    return rates


def fine_cells(seed: int) -> Figures:
    """Return what the number of fine cells changes: lg p, the band's coverage and width."""
    lg_p, covered, width = [], [], []
    rng = np.random.default_rng(seed)
    for _ in range(20):
        v, s = rng.random(5000), rng.uniform(0.3, 0.7, 5000)
        y = (rng.random(5000) < s - 0.04 * np.sin(6 * v)).astype(int)
        predictions = internals.Predictions.of(y, s, v)
        claim = internals.claim_of(predictions, 1)
        found = internals.profile_of(
            predictions, claim, predictions.variables[0], BIN_OPTIONS, n_fine=internals.N_FINE
        )
        lg_p.append(np.log10(internals.profile_test(found).p_value))
        bands = internals.curve_bands(found.cells())
        truth = 0.04 * np.sin(6 * bands.x)
        covered.append(bool(np.all((bands.low <= truth) & (truth <= bands.high))))
        width.append(np.mean(bands.high - bands.low))
    return {
        "lg p": float(np.mean(lg_p)),
        "coverage": percent([covered]),
        "width": 100 * float(np.mean(width)),
    }


def _band_figures(found: list[tuple[vc.results.Curve, np.ndarray]]) -> Figures:
    covered = [np.all((one.band_low <= truth) & (truth <= one.band_high)) for one, truth in found]
    star = [
        one.worst_set[np.argmax(np.where(searched(one), np.abs(truth), -1))]
        for one, truth in found
        if truth.any()
    ]
    return {
        "coverage": percent([covered]),
        "width": 100 * float(np.mean([np.mean(one.band_high - one.band_low) for one, _ in found])),
        "v* in its set": percent([star]),
        "share in the set": percent([[one.worst_set.mean() for one, _ in found]]),
    }


def curve_band(seed: int) -> Figures:
    """Return coverage and width of the band of the gap, and of the set of v*."""
    rng = np.random.default_rng(seed)
    found = []
    for n in (200, 1000, 10_000):
        u = (np.arange(n) + 0.5) / n
        for scores in ("U(.2, .8)", "concentrated at 1"):
            for shape in CURVES.values():
                for _ in range(4):
                    one = curve(u, *draw(rng, u, scores, 0.15 * shape(u)))
                    found.append((one, true_gap_at(scores, 0.15 * shape(one.x))))
    return _band_figures(found)


def tied_band(seed: int) -> Figures:
    """Return the same where the variable has 12 or 30 values, or levels of unequal size."""
    rng = np.random.default_rng([seed, 1])
    found = []
    for scores in ("U(.2, .8)", "concentrated at 1"):
        for size in (0.0, 0.1):
            for values, n in ((12, 90), (12, 180), (12, 600), (30, 600), (30, 2000)):
                for _ in range(4):
                    v = rng.integers(0, values, n) / (values - 1)
                    one = curve(v, *draw(rng, v, scores, size * np.sin(5 * v)))
                    found.append((one, true_gap_at(scores, size * np.sin(5 * one.x))))
            share = 1 / (1 + np.arange(12))
            for _ in range(4):
                v = rng.choice(12, 100, p=share / share.sum())
                s, hit = draw(rng, v / 11, scores, size * np.sin(5 * v / 11))
                one = curve(np.array([f"{k:02}" for k in v]), s, hit)
                at = np.array(one.labels, int) / 11
                found.append((one, true_gap_at(scores, size * np.sin(5 * at))))
    return _band_figures(found)
