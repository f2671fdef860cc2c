"""Every world with a known truth, old and new, in one form: nominal against measured rates.

`simulate_inference.py --all` runs them and prints one table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import repeat

import numpy as np

import edge_worlds_a
import edge_worlds_b
import simulate_bands
import simulate_claims as claims
from edge_worlds_a import Found, World
from scenarios import SCORES, VARIABLES, Scenario
from simulate_inference import p_value, scenarios_of, sums_of, tables
from varcal._audit.findings import look
from varcal._inference.debias import debiased, interval
from varcal._inference.duality import with_p
from varcal._inference.gap_law import GapLaw
from varcal._inference.measured import Measured
from varcal._input.events import audit_keys
from varcal._smoothing.bands import curve_bands

Rng = np.random.Generator
#: Rates that a world should keep: coverage at least, false findings at most.
LEAST_COVERAGE, MOST_FALSE = 0.93, 0.065
#: How many times as many replicates a world has that missed its rate.
AGAIN = 4


def _test(rng: Rng, scenario: Scenario, n: int, constant: bool = False) -> Found:
    (one,) = tables(scenario, n, 1, int(rng.integers(2**31)))
    p = p_value(scenario, one, int(rng.integers(2**31)), constant=constant)
    return Found(p < 0.05)


def _interval(rng: Rng, scenario: Scenario, n: int) -> Found:
    seed = int(rng.integers(2**31))
    law = GapLaw.from_cells(sums_of(scenario, n, 1, seed))
    (low,), (high,) = interval(law)
    (one,) = tables(scenario, n, 1, seed)
    p = p_value(scenario, one, seed)
    value, middle = float(law.value[0]), float(debiased(law)[0])
    found = with_p(Measured(value, middle, float(low), float(high), 1.0, 0.0, 0.0), p, 0.95)
    truth = scenario.truth(scenario.size)[0]
    return Found(bool(found.low <= truth <= found.high), found.high - found.low)


def _claim_test(rng: Rng, score: str, variable: str, n: int) -> Found:
    p = claims.SCORES[score](rng, n)
    v = claims.VARIABLES[variable](rng, p)
    return Found(claims.p_value(rng.random(n) < p, p, v, seed=int(rng.integers(2**31))) < 0.05)


def _biased(rng: Rng, kind: str, size: float) -> Found:
    p = rng.uniform(0.2, 0.8, 1000)
    y = rng.random(1000) < p - size * (1 if kind == "risk" else np.sign(p - 0.5))
    v = claims.VARIABLES["follows the score"](rng, p)
    return Found(claims.p_value(y, p, v, seed=int(rng.integers(2**31))) < 0.05)


def _larger_claim(rng: Rng, kind: str, size: float, n: int, truth: float) -> Found:
    p, u = rng.beta(2, 2, n), rng.random(n)
    y = rng.random(n) < np.clip(p + claims.shifts(kind, p, u, size), 0, 1)
    evidence = claims.evidence_of(y, p, u)
    keys = audit_keys(evidence.classes)
    seed = int(rng.integers(2**31))
    (found,) = look(evidence, keys, ["v"], sided=True, level=0.95, n_variables=1, random_state=seed)
    size_of = found.beyond
    return Found(bool(size_of.low <= truth + 1e-9 <= size_of.high), size_of.high - size_of.low)


def _band(rng: Rng, scores: str, shape: str, amount: float, n: int) -> Found:
    u = (np.arange(n) + 0.5) / n
    function = simulate_bands.SHAPES[shape]
    s, hit = simulate_bands.draw(rng, u, scores, amount * function(u))
    bands = curve_bands(simulate_bands.sorted_cells(u, s, hit))
    truth = simulate_bands.true_gap_at(scores, amount * function(bands.x))
    covered = bool(np.all((bands.low <= truth) & (truth <= bands.high)))
    return Found(covered, float(np.mean(bands.high - bands.low)))


def _old() -> Iterator[World]:
    for score in SCORES:
        for variable in VARIABLES:
            for n in (200, 1_000, 10_000):
                scenario = Scenario(score=score, variable=variable, shape="flat")
                name = f"calibrated, {score}, v {variable}, n = {n:,}"
                yield World(name, 0.05, "test", partial(_test, scenario=scenario, n=n), 1_000)
        for offset in (0.05, 0.15) if score != "rare" else (0.01,):
            scenario = Scenario(score=score, shape="flat", offset=offset)
            draw = partial(_test, scenario=scenario, n=1_000, constant=True)
            yield World(f"constant gap {offset}, {score}, n = 1,000", 0.05, "test", draw, 1_000)
    for vece in (0.0, 0.01, 0.04, 0.15):
        for scenario in scenarios_of(vece):
            for n in (500, 2_000):
                name = f"VECE {vece}, {scenario.shape}, {scenario.score}, n = {n:,}"
                draw = partial(_interval, scenario=scenario, n=n)
                yield World(name, 0.95, "interval", draw, 400)


def _claims() -> Iterator[World]:
    for score in claims.SCORES:
        for variable in claims.VARIABLES:
            for n in (200, 1_000, 10_000):
                draw = partial(_claim_test, score=score, variable=variable, n=n)
                name = f"both claims, {score}, v {variable}, n = {n:,}"
                yield World(name, 0.05, "test", draw, 1_000)
    for kind in ("risk", "confidence"):
        for size in (0.05, 0.15):
            name = f"both claims, {kind} off by {size} everywhere, v follows the score"
            yield World(name, 0.05, "test", partial(_biased, kind=kind, size=size), 1_000)
    for kind, size in (("risk", 0.0), ("risk", 0.06), ("confidence", 0.12), ("one side", 0.12)):
        truth = claims.truth_of(kind, size, 400_000)
        for n in (500, 2_000):
            draw = partial(_larger_claim, kind=kind, size=size, n=n, truth=truth)
            yield World(f"larger claim, {kind} {size}, n = {n:,}", 0.95, "interval", draw, 400)


def _bands() -> Iterator[World]:
    for scores, amounts in simulate_bands.SIZES.items():
        for shape in simulate_bands.SHAPES:
            for n in (500, 5_000, 50_000):
                amount = amounts[1] if shape != "none" else 0.0
                draw = partial(_band, scores=scores, shape=shape, amount=amount, n=n)
                name = f"band, {shape} {amount}, {scores}, n = {n:,}"
                yield World(name, 0.95, "interval", draw, 300)


SOURCES: tuple[Callable[[], Iterator[World]], ...] = (
    _old,
    _claims,
    _bands,
    edge_worlds_a.worlds,
    lambda: iter(edge_worlds_b.WORLDS),
    edge_worlds_a.shifted_worlds,
)


@cache
def _worlds() -> list[World]:
    return [world for source in SOURCES for world in source()]


def _run(k: int, seconds: float, again: bool = False) -> tuple[int, list[Found]]:
    """Draw replicates of one world until there are enough, or the time is over."""
    world = _worlds()[k]
    rng = np.random.default_rng([16 if again else 15, k])
    found: list[Found] = []
    start = time.process_time()
    while len(found) < world.replicates * (AGAIN if again else 1):
        found.append(world.draw(rng))
        if time.process_time() - start > seconds and len(found) >= 20:
            break
    return k, found


def _missed(world: World, rate: float, slack: float = 0.0) -> bool:
    """Return whether a world misses its rate by more than the slack."""
    if world.kind == "interval":
        return rate + slack < LEAST_COVERAGE
    return rate - slack > MOST_FALSE * world.nominal / 0.05


def _row(world: World, found: list[Found]) -> tuple[float, float, str]:
    """Return the measured rate, its standard error, and the row of the table."""
    rate = float(np.mean([one.hit for one in found]))
    error = float(np.sqrt(rate * (1 - rate) / len(found)))
    width = np.mean([one.width for one in found])
    shown = "" if np.isnan(width) else f"{100 * width:.1f}"
    measured = f"{100 * world.nominal:g} | {100 * rate:.1f} ± {100 * error:.1f}"
    return rate, error, f"| {world.name} | {measured} | {len(found):,} | {shown} |"


def run_all(minutes: float, workers: int = 2) -> None:
    """Print nominal and measured rates of all worlds; then run those again that miss their rate.

    Of so many worlds some miss by chance, and others would be found without fault by chance if the
    same replicates were used twice: the second table has new seeds and more replicates.
    """
    worlds = _worlds()
    seconds = 60 * minutes * workers / len(worlds)
    head = "| world | nominal | measured | replicates | width × 100 |\n|---|---|---|---|---|"
    print(head)
    missed = []
    with ProcessPoolExecutor(workers) as pool:
        for k, found in pool.map(_run, range(len(worlds)), repeat(seconds)):
            rate, _, row = _row(worlds[k], found)
            print(row, flush=True)
            if _missed(worlds[k], rate):
                missed.append(k)
        print(f"\n{len(worlds)} worlds; {len(missed)} measured below 93 % or above 6.5 %. Again:\n")
        print(head)
        wrong = []
        for k, found in pool.map(_run, missed, repeat(AGAIN * seconds), repeat(True)):
            rate, error, row = _row(worlds[k], found)
            print(row, flush=True)
            if _missed(worlds[k], rate):
                sure = _missed(worlds[k], rate, 2 * error)
                wrong.append(
                    worlds[k].name + (", by more than two standard errors" if sure else "")
                )
    print(f"\nStill below 93 % or above 6.5 %: {len(wrong)}")
    print("\n".join(f"- {name}" for name in wrong))
