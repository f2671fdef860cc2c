"""Worlds at the edges: changes between models and audits, ranks, the ends of curves.

The form of the worlds is that of `edge_worlds_a.py`.

python benchmarks/edge_worlds_b.py [--only TEXT] [--replicates N]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import varcal as vc
from edge_worlds_a import Found, World, _profile, run
from varcal._audit.audit_changes import changes
from varcal._inference.duality import with_p
from varcal._inference.measured import Measured, measure
from varcal._inference.ranks import rank_range
from varcal._measures.estimate import profile_test
from varcal._smoothing.bands import curve_bands
from varcal._smoothing.cells import Cells

Floats = NDArray[np.float64]
LEVEL = 0.95


# Two sets of probabilities for the same rows


def _sets(rng: np.random.Generator, n: int, kind: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the variable, the true rate, and two sets of probabilities."""
    v, q = rng.random(n), rng.uniform(0.2, 0.8, n)
    tilt = 2 * v - 1
    if kind == "calibrated, tilted":
        return v, q, q, q + 0.02 * tilt
    if kind == "tilted, tilted half as much":
        return v, q, q + 0.1 * tilt, q + 0.05 * tilt
    if kind == "opposite tilts":
        return v, q, q + 0.04 * tilt, q - 0.04 * tilt
    if kind == "too sure, noisy":
        z = 1.2 * rng.standard_normal(n) + v - 0.5
        return v, expit(z), expit(1.3 * z), expit(z + 0.15 * rng.standard_normal(n))
    z = rng.standard_normal(n)  # predictions change
    return v, expit(z), expit(z + 0.6 * (v - 0.5)), expit(z - 0.3)


def _claim(p: Floats, q: Floats, event: str) -> tuple[Floats, Floats]:
    """Return the score and the hit rate of a claim."""
    if event == "positive":
        return p, q
    return np.maximum(p, 1 - p), np.where(p > 0.5, q, 1 - q)


@cache
def _true_changes(kind: str, event: str) -> tuple[float, float]:
    """Return the change of VECE and of ECE over ten bins, from a million rows."""
    rng = np.random.default_rng(1)
    v, q, *sets = _sets(rng, 1_000_000, kind)
    errors = []
    for p in sets:
        score, rate = _claim(p, q, event)
        gaps = [(score - rate)[np.argsort(by)].reshape(10, -1).mean(1) for by in (v, score)]
        errors.append([np.abs(gap).mean() for gap in gaps])
    vece, ece = np.subtract(errors[1], errors[0])
    return float(vece), float(ece)


def changed(
    rng: np.random.Generator, n: int, kind: str, event: str, metric: str, n_groups: int, by: str
) -> Found:
    """The interval of a change; rows of a group share half of their luck."""
    v, q, before, after = _sets(rng, n, kind)
    unit = None
    luck = rng.random(n)
    if n_groups:
        # Groups are neighbours along v, or have rows everywhere.
        place = np.argsort(np.argsort(v)) if by == "v" else np.arange(n)
        unit = place * n_groups // n if by == "v" else place % n_groups
        luck = np.where(rng.random(n) < 0.5, rng.random(n_groups)[unit], luck)
    sets = {"before": before, "after": after}
    found = vc.compare(luck < q, sets, {"v": v}, event=event, groups=unit)
    row = found.row("after", metric, "v" if metric == "VECE" else "")
    truth = _true_changes(kind, event)[metric == "ECE"]
    low, high = row.difference_low, row.difference_high
    return Found(bool(low <= truth <= high), high - low)


def any_verdict(rng: np.random.Generator, n: int) -> Found:
    """Whether any of 8 variables gets a verdict where VECE is 0.05 before and after."""
    X = {f"v{k}": rng.random(n) for k in range(8)}
    q, side = rng.uniform(0.3, 0.7, n), rng.random(n) < 0.5
    sets = {"one": q + 0.05, "other": np.where(side, q + 0.05 + 0.05, q)}
    found = vc.compare(rng.random(n) < q, sets, X, event="positive")
    rows = [row for row in found.rows if row.method == "other" and row.metric == "VECE"]
    return Found(any(row.verdict != "unchanged" for row in rows))


# Several variables


def _beyond(y, s: Floats, v: Floats) -> Measured:
    found, rows = _profile(y, s, v)
    p_value = profile_test(found, rows, grouped=False, beyond=True)
    return with_p(measure(found.coarse, LEVEL, beyond=True), p_value, LEVEL)


def _audited(rng: np.random.Generator, n: int, tilts: Floats) -> list[Measured]:
    """Measure `beyond` along variables with the given tilts."""
    variables = rng.random((len(tilts), n))
    s = rng.uniform(0.35, 0.65, n)
    y = rng.random(n) < s - tilts @ (2 * variables - 1)
    return [_beyond(y, s, v) for v in variables]


def any_change(rng: np.random.Generator, n: int, size: float) -> Found:
    """Whether any of 8 variables is flagged by a second audit when nothing changed."""
    tilts = np.full(8, size)
    before, after = ({str(k): m for k, m in enumerate(_audited(rng, n, tilts))} for _ in range(2))
    verdicts = changes(before, after, LEVEL).columns["verdict"]
    return Found(any(verdict != "unchanged" for verdict in verdicts))


def ranks(rng: np.random.Generator, n: int) -> Found:
    """Whether the ranks of all of 8 variables are within their ranges, and how wide these are."""
    tilts = np.array([0.09, 0.07, 0.055, 0.04, 0.03, 0.02, 0.01, 0.0])
    found = _audited(rng, n, tilts)
    best, worst = rank_range(*([getattr(m, k) for m in found] for k in ("debiased", "low", "high")))
    true = np.arange(1, 9)
    return Found(bool(np.all((best <= true) & (true <= worst))), float(np.mean(worst - best + 1)))


# The ends of a curve

#: By name: the variable, the scores and the true gap along the variable.
CURVES: dict[str, tuple[Callable, Callable, Callable]] = {
    "v is the score, gap .3 v³": (
        lambda rng, n: rng.beta(2, 5, n),
        lambda v: v,
        lambda v: 0.3 * v**3,
    ),
    "exponential v": (
        lambda rng, n: rng.exponential(size=n),
        lambda v: expit(v - 2),
        lambda v: expit(v - 2) - expit(0.6 * (v - 2)),
    ),
    "v with t(4) tails": (
        lambda rng, n: rng.standard_t(4, n),
        expit,
        lambda v: expit(v) - expit(0.6 * v),
    ),
    "p near .99, faulty tail": (
        lambda rng, n: rng.random(n),
        lambda v: 0.98 + 0.02 * (997 * v % 1),
        lambda v: 0.15 * expit((v - 0.965) / 0.006),
    ),
    "p near .99, sharper tail": (
        lambda rng, n: rng.random(n),
        lambda v: 0.98 + 0.02 * (997 * v % 1),
        lambda v: 0.3 * expit((v - 0.97) / 0.004),
    ),
    "calibrated": (lambda rng, n: rng.random(n), lambda v: 0.5 + 0 * v, lambda v: 0 * v),
    "tilt": (lambda rng, n: rng.random(n), lambda v: 0.5 + 0 * v, lambda v: 0.15 * (2 * v - 1)),
}


def curve(rng: np.random.Generator, n: int, kind: str, what: str) -> Found:
    """The band, the interval of the largest gap, or the set of places that could have it."""
    variable, scores, gap = CURVES[kind]
    v = np.sort(variable(rng, n))
    s = scores(v)
    hit = rng.random(n) < s - gap(v)
    bands = curve_bands(Cells.from_rows(v, hit, s, most=1_000), level=LEVEL)
    truth = gap(bands.x)
    if what == "band":
        covered = np.all((bands.low <= truth) & (truth <= bands.high))
        return Found(bool(covered), float(np.mean(bands.high - bands.low)))
    size = np.where(bands.searched, np.abs(truth), -1.0)
    if what == "v* set":
        return Found(bool(bands.candidates[np.argmax(size)]), float(bands.candidates.mean()))
    covered = bands.worst_low <= size.max() <= bands.worst_high
    return Found(bool(covered), bands.worst_high - bands.worst_low)


#: rows, sets, event, metric, groups, along what groups lie
CHANGES = (
    (1_000, "calibrated, tilted", "positive", "VECE", 0, ""),
    (10_000, "calibrated, tilted", "positive", "VECE", 0, ""),
    (1_000, "opposite tilts", "positive", "VECE", 0, ""),
    (1_000, "tilted, tilted half as much", "positive", "VECE", 0, ""),
    (1_000, "too sure, noisy", "positive", "VECE", 0, ""),
    (1_000, "predictions change", "correct", "VECE", 0, ""),
    (1_800, "calibrated, tilted", "positive", "VECE", 20, "v"),
    (1_800, "too sure, noisy", "positive", "VECE", 60, "rows"),
    (1_000, "calibrated, tilted", "positive", "ECE", 0, ""),
    (1_000, "too sure, noisy", "positive", "ECE", 0, ""),
    (1_000, "predictions change", "positive", "ECE", 0, ""),
    (1_800, "too sure, noisy", "positive", "ECE", 20, "rows"),
)
#: curve, rows, what
ENDS = (
    ("v is the score, gap .3 v³", 50_000, "band"),
    ("exponential v", 50_000, "band"),
    ("v with t(4) tails", 50_000, "band"),
    ("p near .99, faulty tail", 3_000, "band"),
    *(
        (kind, n, what)
        for kind in ("p near .99, faulty tail", "p near .99, sharper tail", "calibrated", "tilt")
        for n in (3_000, 50_000)
        for what in ("VCE(v*)", "v* set")
    ),
)


def worlds() -> Iterator[World]:
    """Yield every world."""
    for n, kind, event, metric, n_groups, by in CHANGES:
        draw = partial(
            changed, n=n, kind=kind, event=event, metric=metric, n_groups=n_groups, by=by
        )
        grouped = f", {n_groups} groups along {by}" if n_groups else ""
        name = f"change of {metric}, {kind}, {event}, n = {n:,}{grouped}"
        yield World(name, 0.95, "interval", draw, 300)
    yield World(
        "any verdict of 8 variables, n = 1,000", 0.05, "test", partial(any_verdict, n=1_000), 300
    )
    for n in (500, 2_000, 10_000):
        for size in (0.0, 0.03):
            draw = partial(any_change, n=n, size=size)
            name = f"since, any of 8 variables, n = {n:,}, tilt {size}"
            yield World(name, 0.05, "test", draw, 400)
    for n in (500, 2_000, 5_000, 20_000):
        name = f"ranks of 8 variables, n = {n:,}"
        yield World(name, 0.95, "interval", partial(ranks, n=n), 200)
    for kind, n, what in ENDS:
        draw = partial(curve, n=n, kind=kind, what=what)
        yield World(f"{what}, {kind}, n = {n:,}", 0.95, "interval", draw, 400)


WORLDS = tuple(worlds())


if __name__ == "__main__":
    run(WORLDS, 16)
