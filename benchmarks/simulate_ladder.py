"""What a ladder says about each repair, and whether its advice is right, where the truth is known.

    python benchmarks/simulate_ladder.py [--draws 15] [--first 0] [--sizes 600 2000 6000 20000]
        [--worlds NAME ...] [--keep FILE] [--quick]

Each world has a score and six variables; the probability of every row is known. A draw is one
sample that `vc.audit` reads. True figures are sums over 60,000 other rows with their probabilities
in place of outcomes, in the bins of the audit.

The fits that are judged are those on parts of a sample: five of a shift and of a curve, one of the
variables. Bias is the mean of estimate − mean true figure of these fits; coverage is the
share of these fits within the interval.

The best advice for a sample is about repairs fitted on all of its rows: the lowest rung with no
true figure (average, error by score, uneven error along a variable) above the audit's limit that
loses less than the ladder's `matters` in true log-loss to every higher rung; if there is none, the
rung with the lowest true log-loss. Log-loss lost is that of the advised rung minus the lowest one,
in thousandths. A repair is needless if the best advice is "as it is".

`--keep` appends each draw to a file of JSON lines and does not repeat those in it. The fits that
are judged are seen by wrapping one private function, which is looked up by its name.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import varcal as vc
from varcal.calibrators import BetaCalibrator, ShiftCalibrator, VariableCalibrator

Floats = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
Rng = np.random.Generator
RUNGS = ("as it is", "shift", "score curve", "variables")
SIZES = (600, 2_000, 6_000, 20_000)
#: Rows that true figures are computed from.
N_TRUE = 60_000
SCORE_BINS = 10
#: Where `calibrate_held_out` is, which fits and answers for the ladder.
HELD_OUT = "varcal.calibrators.calibrator"
MANY_LEVELS = [f"c{k:02d}" for k in range(60)]
MANY_EFFECTS = np.random.default_rng(9).normal(0, 0.5, len(MANY_LEVELS))


def variables(rng: Rng, n: int) -> tuple[Columns, Floats]:
    """Return six variables, and the part of the score that they explain."""
    X = {
        "age": rng.integers(18, 80, n),
        "income": rng.lognormal(0, 0.6, n),
        "visits": rng.poisson(2, n),
        "region": rng.choice(list("NESWC"), n, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
        "sex": rng.choice(["f", "m"], n),
        "channel": rng.choice(list("pqrstuvw"), n, p=[0.3, 0.2, 0.15, 0.12, 0.1, 0.07, 0.04, 0.02]),
    }
    X["city"] = rng.choice(MANY_LEVELS, n)
    score = 0.015 * (X["age"] - 49) + 0.4 * np.log(X["income"]) + 0.15 * (X["visits"] - 2)
    return X, score + 0.3 * (X["region"] == "N") + rng.normal(0, 0.8, n)


def _ages(X: Columns) -> Floats:
    return (X["age"] - 48.5) / 18.0


def _along(X: Columns) -> Floats:
    return 0.22 * _ages(X) + 0.5 * (X["region"] == "S") - 0.1


#: The true logit, from that of the score and the variables.
FAULTS: dict[str, Callable[[Floats, Columns], Floats]] = {
    "right": lambda s, X: s,
    "nearly right": lambda s, X: s + 0.03 + 0.05 * _ages(X),
    "shift": lambda s, X: s + 0.5,
    "slope": lambda s, X: 0.65 * s - 0.2,
    "variable": lambda s, X: s + _along(X),
    "variable x score": lambda s, X: s + 0.35 * _ages(X) * (s + 0.8),
    "pair": lambda s, X: s + 0.35 * np.where((X["age"] > 48) == (X["sex"] == "f"), 1, -1),
    "everything": lambda s, X: (
        0.8 * s + 0.2 + _along(X) + 0.2 * np.where((X["age"] > 48) == (X["sex"] == "f"), 1, -1)
    ),
    "1 %, shift": lambda s, X: s + 0.7,
    "1 %, variable": lambda s, X: s + 0.6 * _ages(X),
    "step": lambda s, X: s + 0.9 * (X["age"] >= 66) - 0.2,
    "rare level": lambda s, X: s - 1.8 * (X["channel"] == "u"),
    "ties": lambda s, X: s,
    "many levels": lambda s, X: s + MANY_EFFECTS[np.searchsorted(MANY_LEVELS, X["city"])],
}
#: The first ten are those on which the rule was first chosen.
FIRST = tuple(FAULTS)[:10]


def rows_of(world: str, rng: Rng, n: int) -> tuple[Columns, Floats, Floats]:
    """Return variables, the probabilities that a model says, and the true ones."""
    X, score = variables(rng, n)
    if world.startswith("1 %"):
        score = 0.9 * score - (5.7 if world == "1 %, shift" else 5.2)
    else:
        score = 1.1 * score - 0.9
    if world == "ties":  # shares of 40 trees
        score = logit((rng.binomial(40, expit(score)) + 0.5) / 41)
    # One of the two columns with levels beside region and sex, so that there are six.
    del X["channel" if world == "many levels" else "city"]
    return X, expit(score), expit(FAULTS[world](score, X | {"city": X.get("city")}))


@cache
def population(world: str) -> tuple[Columns, Floats, Floats]:
    """Return the rows from which true figures of a world are computed."""
    return rows_of(world, np.random.default_rng([7, *world.encode()]), N_TRUE)


def bin_index(values: NDArray[Any], row: Any) -> NDArray[np.intp]:
    """Return the bin of each value, of the bins in a variable's table of an audit."""
    columns = row.table.columns
    first = [k for k, side in enumerate(columns["side"]) if side == "all"]
    if row.kind == "levels":
        place = {columns["bin"][k]: k for k in first}
        return np.array([place.get(str(value), len(first) - 1) for value in values])
    low, high = (np.array([columns[end][k] for k in first]) for end in ("low", "high"))
    ranges = np.flatnonzero(low < high)
    index = ranges[np.searchsorted(high[ranges][:-1], values)] if len(ranges) else 0 * values
    for k in np.flatnonzero(low == high):
        index = np.where(values == low[k], k, index)
    return index.astype(np.intp)


def mean_absolute(index: NDArray[np.intp], gap: Floats) -> float:
    return float(np.abs(np.bincount(index, gap)).sum() / len(gap))


def true_figures(p: Floats, q: Floats, bins: dict[str, NDArray[np.intp]]) -> dict[str, Any]:
    """Return the figures of probabilities p where q is true, and their log-loss."""
    gap, side = p - q, (p > 0.5).astype(np.intp)
    if min(side.mean(), 1 - side.mean()) < 0.01:
        side = 0 * side
    mean = np.bincount(side, gap) / np.maximum(np.bincount(side), 1)
    cuts = np.unique(np.quantile(p, np.linspace(0, 1, SCORE_BINS + 1)[1:-1]))
    inside = np.clip(p, np.finfo(float).eps, 1 - np.finfo(float).eps)
    return {
        "average": float(gap.mean()),
        "by_score": mean_absolute(np.searchsorted(cuts, p), gap),
        "uneven": {
            name: mean_absolute(2 * index + side, gap - mean[side]) for name, index in bins.items()
        },
        "log_loss": float(-(q * np.log(inside) + (1 - q) * np.log1p(-inside)).mean()),
    }


@contextmanager
def seen_fits() -> Iterator[list[tuple[Any, list[str]]]]:
    """Collect the calibrators that a ladder judges, each with the variables it reads."""
    module = import_module(HELD_OUT)
    original = module.calibrate_held_out
    found: list[tuple[Any, list[str]]] = []

    def wrapped(calibrator: Any, learn: Any, held: Any) -> Any:
        found.append((calibrator, [one.name for one in learn.variables]))
        return original(calibrator, learn, held)

    module.calibrate_held_out = wrapped
    try:
        yield found
    finally:
        module.calibrate_held_out = original


def applied(calibrator: Any, p: Floats, X: Columns, names: list[str]) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrator.predict_proba(p, {name: X[name] for name in names} or None)[:, 1]


def true_of_sample(audit: Any, fits: list[tuple[Any, list[str]]], world: str) -> dict[str, Any]:
    """Return the true figures of the fits that a ladder judged, by rung."""
    X, p, q = population(world)
    bins = {row.variable: bin_index(X[row.variable], row) for row in audit.rows}
    kinds = dict(
        zip(("ShiftCalibrator", "BetaCalibrator", "VariableCalibrator"), RUNGS[1:], strict=True)
    )
    judged: dict[str, list[Any]] = {"as it is": [true_figures(p, q, bins)]}
    for fit, names in fits:
        name = kinds[type(fit).__name__]
        judged.setdefault(name, []).append(true_figures(applied(fit, p, X, names), q, bins))
    # Variables are learned from each half; their figures are of the second one, fitted last.
    return judged | {"variables": judged.get("variables", [])[-1:]}


def true_of_all(
    y: NDArray[Any], p: Floats, X: Columns, audit: Any, world: str
) -> dict[str, dict[str, Any]]:
    """Return the true figures of repairs fitted on all rows of a sample."""
    X_true, p_true, q = population(world)
    bins = {row.variable: bin_index(X_true[row.variable], row) for row in audit.rows}
    made = {"as it is": p_true}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, calibrator in zip(RUNGS[1:], (ShiftCalibrator(), BetaCalibrator()), strict=False):
            made[name] = calibrator.fit(p, y).predict_proba(p_true)[:, 1]
        full = VariableCalibrator().fit(p, y, X)
        made["variables"] = full.predict_proba(p_true, X_true)[:, 1]
    return {name: true_figures(one, q, bins) for name, one in made.items()}


def best_advice(figures: dict[str, dict[str, Any]], limit: float, matters: float) -> str:
    """Return the lowest rung that truly suffices, else that with the lowest log-loss."""
    for k, name in enumerate(RUNGS):
        one = figures[name]
        largest = max(abs(one["average"]), one["by_score"], *one["uneven"].values())
        higher = [figures[other]["log_loss"] for other in RUNGS[k + 1 :]]
        if largest <= limit and one["log_loss"] - min([np.inf, *higher]) < matters:
            return name
    return min(RUNGS, key=lambda name: figures[name]["log_loss"])


def sample(world: str, n: int, draw: int) -> tuple[NDArray[Any], Floats, Columns] | None:
    """Return outcomes, probabilities and variables of a sample; None with too few events."""
    rng = np.random.default_rng([draw, n, *world.encode()])
    X, p, q = rows_of(world, rng, n)
    y = (rng.random(n) < q).astype(int)
    return None if y.sum() < 4 else (y, p, X)


def one_draw(world: str, n: int, draw: int) -> dict[str, Any] | None:
    """Return what the ladder of one sample says, and what is true; None without a ladder."""
    given = sample(world, n, draw)
    if given is None:
        return None
    y, p, X = given
    with seen_fits() as fits:
        audit = vc.audit(y, p, X, include=list(X), random_state=draw)
        ladder = audit.ladder
    if ladder is None:
        return None
    figures = true_of_all(y, p, X, audit, world)
    return {
        "world": world,
        "n": n,
        "draw": draw,
        "ladder": {key: ladder.to_dict()[key] for key in ("rungs", "matters")},
        "suffices": ladder.suffices,
        "advice": audit.advice,
        "judged": true_of_sample(audit, fits, world),
        "all": figures,
        "best": best_advice(figures, audit.limit, ladder.matters),
    }


# ------------------------------------------------------------------ reports


def mean_se(values: list[float], digits: int = 2) -> str:
    if not values:
        return "–"
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):+.{digits}f} ({error:.{digits}f})"


def judged_figures(one: dict[str, Any], rung: dict[str, Any]) -> Iterator[tuple[str, tuple, list]]:
    """Yield kind, (value, low, high) and the true values of the figures of one rung."""
    true = one["judged"].get(rung["name"], [])
    for kind in ("average", "by_score"):
        figure = tuple(rung[kind][end] for end in ("value", "low", "high"))
        yield kind, figure, [each[kind] for each in true]
    for name, left in rung["uneven"].items():
        figure = (left["value"], left["low"], left["high"])
        yield "uneven", figure, [each["uneven"][name] for each in true]
    largest = max(rung["uneven"].values(), key=lambda left: left["value"])
    figure = (largest["value"], largest["low"], largest["high"])
    yield "largest", figure, [max(each["uneven"].values()) for each in true]


def report_figures(found: list[dict[str, Any]]) -> None:
    print("\n## Bias in points (standard error) and coverage in %, of the fits that are judged\n")
    print("| n | rung | average | by score | uneven, each | uneven, largest |")
    print("|---|---|---|---|---|---|")
    for n in sorted({one["n"] for one in found}):
        for k, name in enumerate(RUNGS):
            bias: dict[str, list[float]] = {}
            inside: dict[str, list[float]] = {}
            for one in found:
                if one["n"] != n or one["world"].startswith("1 %"):
                    continue
                rung = one["ladder"]["rungs"][k]
                own: dict[str, list[tuple[float, float]]] = {}
                for kind, (value, low, high), true in judged_figures(one, rung):
                    if true:
                        covered = np.mean([low <= each <= high for each in true])
                        own.setdefault(kind, []).append((value - np.mean(true), covered))
                for kind, pairs in own.items():
                    bias.setdefault(kind, []).append(100 * float(np.mean([b for b, _ in pairs])))
                    inside.setdefault(kind, []).append(100 * float(np.mean([c for _, c in pairs])))
            cells = [
                f"{mean_se(bias.get(kind, []))}, {np.mean(inside.get(kind, [np.nan])):.1f}"
                for kind in ("average", "by_score", "uneven", "largest")
            ]
            print(f"| {n:,} | {name} | {' | '.join(cells)} |")


def advice_row(found: list[dict[str, Any]]) -> str:
    right = [100.0 * (one["suffices"] == one["best"]) for one in found]
    lost = [
        1e3
        * (
            one["all"][one["suffices"]]["log_loss"]
            - min(f["log_loss"] for f in one["all"].values())
        )
        for one in found
    ]
    needless = [
        100.0 * (one["suffices"] != "as it is") for one in found if one["best"] == "as it is"
    ]
    retrain = np.mean([100.0 * (one["advice"] == "retrain") for one in found])
    return (
        f"{len(found)} | {mean_se(right, 0)} | {mean_se(lost)} | {mean_se(needless, 0)} "
        f"| {retrain:.0f} |"
    )


def report_advice(found: list[dict[str, Any]]) -> None:
    print("\n## Advice\n")
    print("| n | worlds | draws | right, % | log-loss lost, 1e-3 | needless, % | retrain, % |")
    print("|---|---|---|---|---|---|---|")
    sets = {
        "first ten": FIRST,
        "own four": tuple(FAULTS)[10:],
        "rare": ("1 %, shift", "1 %, variable"),
        "all": tuple(FAULTS),
    }
    for n in sorted({one["n"] for one in found}):
        for name, worlds in sets.items():
            part = [one for one in found if one["n"] == n and one["world"] in worlds]
            if part:
                print(f"| {n:,} | {name} | {advice_row(part)}")
    print("\n## Advised as it is / shift / score curve / variables, by world and best advice\n")
    sizes = sorted({one["n"] for one in found})
    print("| world | best | " + " | ".join(f"{n:,}" for n in sizes) + " |")
    print("|---|---|" + "---|" * len(sizes))
    for world in FAULTS:
        for best in RUNGS:
            cells = []
            for n in sizes:
                part = [
                    one["suffices"]
                    for one in found
                    if (one["n"], one["world"], one["best"]) == (n, world, best)
                ]
                cells.append("/".join(str(part.count(name)) for name in RUNGS) if part else "")
            if any(cells):
                print(f"| {world} | {best} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=15)
    parser.add_argument("--first", type=int, default=0, help="the number of the first draw")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--worlds", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--quick", action="store_true", help="three draws of 600 and 2,000 rows")
    options = parser.parse_args()
    draws, sizes = (3, SIZES[:2]) if options.quick else (options.draws, options.sizes)
    known: dict[tuple[str, int, int], Any] = {}
    if options.keep and options.keep.exists():
        lines = options.keep.read_text(encoding="utf-8").splitlines()
        known = {(one["world"], one["n"], one["draw"]): one for one in map(json.loads, lines)}
    numbers = range(options.first, options.first + draws)
    for draw in numbers:
        for n in sizes:
            for world in options.worlds:
                if (world, n, draw) in known:
                    continue
                one = one_draw(world, n, draw)
                if one is None:
                    continue
                known[world, n, draw] = one
                if options.keep:
                    with options.keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(one) + "\n")
    found = [
        one
        for (world, n, draw), one in known.items()
        if world in options.worlds and n in sizes and draw in numbers
    ]
    report_advice(found)
    report_figures(found)


if __name__ == "__main__":
    main()
