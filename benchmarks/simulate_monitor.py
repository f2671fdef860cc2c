"""False alarms, delays, places and intervals of monitors, on simulated histories.

    python benchmarks/simulate_monitor.py [--histories 1000] [--quick] [--table NAME]

Prints Markdown tables with Monte-Carlo standard errors. The detectors, e-values and intervals are
those of the library, applied to many histories at once; only the sums of rows are made by
`monitor_worlds.py`. It needs the `fast` extra. Tables: false-alarms, delays, places, intervals.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

import internals
from monitor_worlds import (
    BINS,
    CELLS,
    CHANGED,
    PART,
    VARIABLES,
    Batches,
    World,
    adwin_history,
    calm,
    change,
    quantiles,
)

ALPHA, ARL = 0.05, 20_000
#: The drifts of the CUSUMs; each has the limit that alarms in 5 % of calm histories.
DRIFTS = (0.25, 0.5, 1.0)
#: Histories at a time: their arrays stay in the cache.
CHUNK = 100
CHANGES = {
    "10 points in a tenth": change(0.10),
    "5 points in a tenth": change(0.05),
    "3 points everywhere": change(0.03, everywhere=True),
}


def rate(hits: int, of: int) -> str:
    """Write a share with its standard error, in percent."""
    share = hits / of
    return f"{100 * share:.1f} ± {100 * np.sqrt(share * (1 - share) / of):.1f} %"


def alternating(size: float):
    """Return gaps of ± size by bin of the first variable, at every batch."""
    found = np.append(size * (-1.0) ** np.arange(BINS), 0.0)
    return lambda t: found


#: The scenarios without a change: world, rows per batch, limit.
CALM = {
    "independent variables, 1,000 rows": (World(), 1000, 0.0),
    "independent variables, 50 rows": (World(), 50, 0.0),
    "correlation 0.7, 300 rows": (World(correlation=0.7), 300, 0.0),
    "weights from 0.2 to 5, 300 rows": (World(weights=(0.2, 0.5, 1.0, 2.0, 5.0)), 300, 0.0),
    "1 % positives, 300 rows": (World(quantiles(stats.beta(0.5, 49.5))), 300, 0.0),
    "gaps exactly ± 2 points, limit 2": (
        World(quantiles(stats.uniform(0.05, 0.9)), alternating(0.02)),
        300,
        0.02,
    ),
}


def false_alarms(histories: int, batches: int) -> dict[float, float]:
    """Print how often calm histories raise an alarm; return the limits of the CUSUMs."""
    print(
        f"\n{histories:,} histories of {batches:,} batches, alpha = 0.05, arl = 20,000 "
        "(at most 5 % by batch 1,000)\n"
    )
    print("| without a change | bets, alpha | bets, arl | self-normalized, alpha | arl |")
    print("|---|---|---|---|---|")
    limits: dict[float, float] = {}
    for number, (name, (world, rows, limit)) in enumerate(CALM.items()):
        start = time.perf_counter()
        counts, tops = np.zeros(4, int), []
        rivals = Rivals() if not number else None
        for chunk in range(0, histories, CHUNK):
            many = min(CHUNK, histories - chunk)
            found = Batches(world, many, rows, limit, 1000 * number + chunk)
            flat = np.full((CELLS, 2), limit)
            detectors = [internals.Detector.new(many, CELLS) for _ in range(2)]
            alarms = np.zeros((4, many), bool)
            if rivals is not None:
                rivals.begin(many)
            for t in range(1, batches + 1):
                sums, gains = found.draw(t)
                moments = found.moments(sums, gains)
                plain = replace(moments, gains=None)
                for k, (one, given) in enumerate(zip(detectors, (moments, plain), strict=True)):
                    one.update(internals.log_evidence(given, flat), given)
                    alarms[2 * k] |= one.total(PART, spent=True) >= 1 / ALPHA
                    alarms[2 * k + 1] |= one.total(PART, spent=False) >= ARL
                if rivals is not None:
                    rivals.update(sums.sum(axis=1), t)
            counts += alarms.sum(axis=1)
            if rivals is not None:
                tops.append(rivals.highest)
                rivals.end()
        print(
            f"| {name} | {' | '.join(rate(k, histories) for k in counts)} |"
            f"  <!-- {time.perf_counter() - start:.0f} s -->",
            flush=True,
        )
        if rivals is not None:
            highest = np.concatenate(tops, axis=1)
            limits = {drift: float(np.quantile(highest[k], 0.95)) for k, drift in enumerate(DRIFTS)}
            lines = rivals.lines(histories, highest)
    print(f"| {reference_line(histories, batches)} |", flush=True)
    print("\n| other methods, independent variables, 1,000 rows | alarm within all batches |")
    print("|---|---|")
    print("\n".join(lines))
    return limits


def reference_line(histories: int, batches: int) -> str:
    """Return false alarms with a reference that has gaps of ± 3 points itself."""
    world = World(quantiles(stats.uniform(0.05, 0.9)), alternating(0.03))
    counts = np.zeros(2, int)
    for chunk in range(0, histories, CHUNK):
        many = min(CHUNK, histories - chunk)
        found = Batches(world, many, 300, 0.0, 777 + chunk)
        reference = internals.Running.new(many, CELLS)
        for t in range(1, 21):
            reference.update(found.moments(*found.draw(t)))
        odds = np.log(2 / (internals.REFERENCE_ERROR * PART))
        _, low, high = reference.interval(odds)
        limits = np.minimum(np.stack([-low, high], axis=-1), 1.0)
        detector, alarms = internals.Detector.new(many, CELLS), np.zeros((2, many), bool)
        for t in range(21, batches + 21):
            moments = found.moments(*found.draw(t))
            plain = replace(moments, gains=None)
            detector.update(internals.log_evidence(plain, limits), plain)
            alarms[0] |= detector.total(PART, spent=True) >= 1 / ALPHA
            alarms[1] |= detector.total(PART, spent=False) >= ARL
        counts += alarms.sum(axis=1)
    shown = " | ".join(rate(k, histories) for k in counts)
    return f"reference of 20 batches with gaps of ± 3 points, 300 rows | – | – | {shown}"


class Rivals:
    """CUSUMs and repeated z tests on the same sums."""

    NAMES = (
        "z test of every cell at each batch, 1.96",
        "the same with Bonferroni over cells",
        "z test of all rows so far, Bonferroni over cells",
        "z test at each batch, Bonferroni over cells and 1,000 batches",
        "CUSUM k = 0.5, h = 5, every cell",
    )

    def __init__(self, limits: dict[float, float] | None = None) -> None:
        self.limits = limits or {}
        self.counts = np.zeros(len(self.NAMES), int)

    def begin(self, many: int) -> None:
        """Start some histories."""
        self.up = np.zeros((len(DRIFTS), many, CELLS, 2))
        self.highest = np.zeros((len(DRIFTS), many))
        self.sum = np.zeros((2, many, CELLS))
        self.alarms = np.zeros((len(self.NAMES), many), bool)
        self.first = np.zeros((len(self.NAMES) + len(DRIFTS), many), int)

    def update(self, sums: np.ndarray, t: int) -> None:
        """Add a batch."""
        error, null = sums[..., 3] - sums[..., 4], sums[..., 7]
        z = error / np.sqrt(np.maximum(null, 1e-12))
        for k, drift in enumerate(DRIFTS):
            self.up[k] = np.maximum(self.up[k] + np.stack([z, -z], axis=-1) - drift, 0.0)
        self.highest = np.maximum(self.highest, self.up.max(axis=(2, 3)))
        self.sum += np.stack([error, null])
        over = np.abs(z).max(axis=1)
        whole = np.abs(self.sum[0] / np.sqrt(np.maximum(self.sum[1], 1e-12))).max(axis=1)
        bonferroni = stats.norm.isf(0.025 / CELLS)
        both = stats.norm.isf(0.025 / CELLS / 1000)
        now = [
            over > stats.norm.isf(0.025),
            over > bonferroni,
            whole > bonferroni,
            over > both,
            self.up[DRIFTS.index(0.5)].max(axis=(1, 2)) >= 5,
        ]
        self.alarms |= np.array(now)
        now += [
            self.up[k].max(axis=(1, 2)) >= self.limits.get(drift, np.inf)
            for k, drift in enumerate(DRIFTS)
        ]
        self.first = np.where((self.first == 0) & np.array(now), t, self.first)

    def end(self) -> None:
        """Count the alarms of these histories."""
        self.counts += self.alarms.sum(axis=1)

    def lines(self, histories: int, highest: np.ndarray) -> list[str]:
        """Return the lines of a table."""
        found = [
            f"| {name} | {rate(count, histories)} |"
            for name, count in zip(self.NAMES, self.counts, strict=True)
        ]
        for k, drift in enumerate(DRIFTS):
            limit = np.quantile(highest[k], 0.95)
            found.append(
                f"| CUSUM k = {drift:g}, h = {limit:.1f}: the 95 % point of these runs | 5 % |"
            )
        return found


class Ours:
    """One way to run the monitor on simulated histories."""

    def __init__(self, many: int, limit: float, *, claims: int, spent: bool, bets: bool) -> None:
        self.spent, self.bets = spent, bets
        self.limits = np.full((claims * CELLS, 2), limit)
        self.part = np.concatenate([PART / claims] * claims)
        self.detector = internals.Detector.new(many, claims * CELLS)
        self.first = np.zeros(many, int)
        self.cell = np.zeros(many, int)
        self.bet = np.zeros(many, int)
        self.start = np.zeros(many, int)
        self.partner = np.zeros(many, bool)

    def update(self, moments: Any, t: int) -> None:
        """Add a batch, and note where and since when new alarms are."""
        if not self.bets:
            moments = replace(moments, gains=None)
        self.detector.update(internals.log_evidence(moments, self.limits), moments)
        alarm_at = 1 / ALPHA if self.spent else ARL
        new = (self.first == 0) & (self.detector.total(self.part, spent=self.spent) >= alarm_at)
        for h in np.flatnonzero(new):
            flow = self.detector.flow[h] * self.part[:, None]
            cell, bet = np.unravel_index(flow.argmax(), flow.shape)
            self.first[h], self.cell[h], self.bet[h] = t, cell, bet
            self.start[h] = self.detector.start[h, cell, bet]
            changed = flow[1 : 1 + BINS].max()  # the variable that changed
            self.partner[h] = changed >= internals.ALSO * flow[cell, bet]


#: How the monitor is run: limit, number of claims, whether alpha is spent, whether by bets.
SETTINGS = {
    "bets, arl = 20,000, limit 0, one claim": (0.0, 1, False, True),
    "self-normalized, the same": (0.0, 1, False, False),
    "bets, alpha = 0.05, limit 0, one claim": (0.0, 1, True, True),
    "bets, alpha = 0.05, limit 0, both claims": (0.0, 2, True, True),
    "default: alpha = 0.05, limit 2 points, both claims": (0.02, 2, True, True),
}


def follow(world: World, histories: int, setting: str, seed: int, last: int = 400) -> Ours:
    """Run a setting until every history has raised an alarm."""
    limit, claims, spent, bets = SETTINGS[setting]
    found = Batches(world, histories, 1000, limit, seed)
    ours = Ours(histories, limit, claims=claims, spent=spent, bets=bets)
    for t in range(1, last + 1):
        ours.update(found.moments(*found.draw(t), claims=claims), t)
        if ours.first.all():
            break
    return ours


def delay_text(first: np.ndarray, at: int = 200) -> str:
    """Write the median and the mean delay of histories without an early alarm."""
    late = first[(first == 0) | (first > at)]
    if not len(late):
        return "all before the change"
    late = np.where(late == 0, np.inf, late - at)
    found = np.isfinite(late)
    if found.mean() < 0.5:
        return f"{100 * found.mean():.0f} % found"
    mean = late[found].mean()
    return f"{np.median(late):.0f} ({mean:.1f} ± {late[found].std() / np.sqrt(found.sum()):.1f})"


def delays(histories: int, limits: dict[float, float]) -> None:
    """Print how many batches pass until a change is found."""
    print(
        f"\n{histories} histories, 1,000 rows a batch, change after batch 200; median (mean ± "
        "standard error) delay in batches\n"
    )
    print(f"| method | {' | '.join(CHANGES)} |")
    print("|---" * (1 + len(CHANGES)) + "|")
    for setting in SETTINGS:
        row = [
            delay_text(follow(World(shift=shift), histories, setting, 50 + k).first)
            for k, shift in enumerate(CHANGES.values())
        ]
        print(f"| {setting} | {' | '.join(row)} |", flush=True)
    columns = []
    for k, shift in enumerate(CHANGES.values()):
        found = Batches(World(shift=shift), histories, 1000, 0.0, 50 + k)
        rivals = Rivals(limits)
        rivals.begin(histories)
        for t in range(1, 401):
            rivals.update(found.draw(t)[0].sum(axis=1), t)
        texts = {
            name: delay_text(first) for name, first in zip(Rivals.NAMES, rivals.first, strict=False)
        }
        tuned = rivals.first[len(Rivals.NAMES) :]
        shown = {
            f"CUSUM k = {drift:g}, h = {limits[drift]:.1f} by simulation": delay_text(first)
            for drift, first in zip(DRIFTS, tuned, strict=True)
        }
        shown[Rivals.NAMES[3]] = texts[Rivals.NAMES[3]]
        columns.append(shown)
    for name in columns[0]:
        print(f"| {name} | {' | '.join(column[name] for column in columns)} |")
    few = min(histories, 40)
    row = []
    for shift in CHANGES.values():
        shifts = np.array([shift(t) for t in range(401)])
        score = World().score
        first = np.array([adwin_history(k, 1000, score, shifts, 0.002) for k in range(few)])
        early = int(((first > 0) & (first <= 200)).sum())
        row.append(f"{delay_text(first)}, {early} of {few} early")
    print(f"| ADWIN of every cell, δ = 0.002, by row, {few} histories | {' | '.join(row)} |")


def places(histories: int) -> None:
    """Print how often the right place is named, and how far the start is off."""
    setting = next(iter(SETTINGS))
    print(
        "\n| change, at the alarm | right cell and direction | or a variable said to be "
        "correlated | start within 5 batches | start, median (10 %, 90 %) |"
    )
    print("|---|---|---|---|---|")
    for correlation in (0.0, 0.7):
        for name, shift in CHANGES.items():
            world = World(shift=shift, correlation=correlation)
            ours = follow(world, histories, setting, 90)
            late = (ours.first > 200) & (ours.first > 0)
            wanted = 0 if "everywhere" in name else CHANGED
            right = (ours.cell == wanted) & (ours.bet < 6)
            said = right | ((ours.partner | (ours.cell == 0)) & (ours.bet < 6))
            off = ours.start[late] - 201
            many = int(late.sum())
            spread = ", ".join(f"{q:.0f}" for q in np.quantile(off, [0.1, 0.9]))
            print(
                f"| {name}, correlation {correlation:g} | {rate(int(right[late].sum()), many)} | "
                f"{rate(int(said[late].sum()), many)} | "
                f"{rate(int((np.abs(off) <= 5).sum()), many)} | {np.median(off):.0f} ({spread}) |",
                flush=True,
            )


def intervals(histories: int, batches: int) -> None:
    """Print how often a confidence sequence misses the running mean gap at any time."""
    rng = np.random.default_rng(5)
    level, rows = 0.05, 50
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 4000)])
    reaches = internals.reach_of(grid, np.log(2 / level), 1 + internals.MOST_PREDICTED)
    missed = daily = 0
    for _ in range(0, histories, CHUNK):
        score = rng.beta(1, 2, (CHUNK, batches, rows))
        wave = 0.05 * np.sin(np.arange(batches) / 50)[None, :, None]
        p = np.clip(score + wave, 0, 1)
        x = (rng.random(p.shape) < p) - score
        truth = (p - score).sum(axis=2).cumsum(axis=1)
        total = x.sum(axis=2).cumsum(axis=1)
        n = rows * np.arange(1, batches + 1)
        mean = np.hstack([np.zeros((CHUNK, 1)), (total / n)[:, :-1]])
        mean = np.clip(mean, -internals.MOST_PREDICTED, internals.MOST_PREDICTED)
        spread = ((x - mean[:, :, None]) ** 2).sum(axis=2).cumsum(axis=1)
        reach = np.interp(spread, grid, reaches)
        missed += int((np.abs(total - truth) > reach).any(axis=1).sum())
        plain = 1.96 * np.sqrt(spread)
        daily += int((np.abs(total - truth) > plain).any(axis=1).sum())
    print("\n| mean gap so far, gap moving by ± 5 points | missed at any time |")
    print("|---|---|")
    print(f"| confidence sequence, 95 % | {rate(missed, histories)} |")
    print(f"| 95 % interval read at each of {batches:,} batches | {rate(daily, histories)} |")
    print("\n| rows | half width, points | times the fixed-sample interval |")
    print("|---|---|---|")
    variance = float(np.mean(World().score * (1 - World().score)))
    for n in (1_000, 10_000, 100_000, 1_000_000):
        half = float(
            internals.reach_of(
                np.array([n * variance]), np.log(2 / level), 1 + internals.MOST_PREDICTED
            )[0]
        )
        half /= n
        print(f"| {n:,} | {100 * half:.2f} | {half / (1.96 * np.sqrt(variance / n)):.2f} |")


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="few histories and batches")
    parser.add_argument("--table", choices=["false-alarms", "delays", "places", "intervals"])
    given = parser.parse_args(arguments)
    histories, batches, some = given.histories, 1000, 200
    if given.quick:
        histories, batches, some = 20, 30, 4
    limits = {0.25: 23.7, 0.5: 12.7, 1.0: 6.4}  # of a whole run, if only delays are asked for
    if given.table in (None, "false-alarms"):
        limits = false_alarms(histories, batches)
    if given.table in (None, "delays"):
        delays(some, limits)
    if given.table in (None, "places"):
        places(some)
    if given.table in (None, "intervals"):
        intervals(max(histories, CHUNK), batches)


if __name__ == "__main__":
    assert calm(1).shape == (BINS + 1,) and VARIABLES * BINS + 1 == CELLS
    main()
