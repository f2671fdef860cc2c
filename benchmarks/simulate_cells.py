"""Error rates, power and coverage of an audit, whose cells are bins within each predicted side.

    python benchmarks/simulate_cells.py [--replicates 1000] [--quick] [--table NAME]

Prints Markdown tables with Monte-Carlo standard errors: type-I error for two classes (also of
biased models and of variables that follow the score), of Holm's adjustment over 100 variables and
for rows in groups; power; coverage of the interval of the uneven error, of all variables at once
and of all places, and bias of the debiased value; average, score and verdict with rare events; and
type-I error and power with more classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import varcal as vc

Rng = np.random.Generator

#: How scores are distributed.
SCORES: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "Beta(2, 5)": lambda rng, n: rng.beta(2, 5, n),
    "Beta(2, 2)": lambda rng, n: rng.beta(2, 2, n),
    "U(.2, .8)": lambda rng, n: rng.uniform(0.2, 0.8, n),
    "heaped near 1": lambda rng, n: np.clip(1 - rng.exponential(0.02, n), 0.001, 0.9999),
    "near 0 and 1": lambda rng, n: np.abs(
        (rng.random(n) < 0.5) - np.clip(rng.exponential(0.02, n), 0.0001, 0.999)
    ),
    "2 % positives": lambda rng, n: rng.beta(1, 49, n),
}
#: What is audited along.
VARIABLES: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "continuous": lambda rng, p: rng.random(len(p)),
    "tied": lambda rng, p: rng.poisson(3, len(p)).astype(float),
    "levels": lambda rng, p: rng.choice(
        list("abcdef"), len(p), p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04]
    ),
    "follows the score": lambda rng, p: p + 0.3 * p.std() * rng.standard_normal(len(p)),
}


def audited(y, p, v, **more) -> vc.results.Audit:
    """Audit along one variable, or several in a dict."""
    X = v if isinstance(v, dict) else {"v": v}
    return vc.audit(y, p, X, include=list(X), ladder="none", **more)


def p_value(y, p, v, seed=0, **more) -> float:
    """Return the p-value of one variable."""
    return audited(y, p, v, random_state=seed, **more).rows[0].uneven.p_value


def rate(hits: list[bool]) -> str:
    share = np.mean(hits)
    return f"{100 * share:.1f} ± {100 * np.sqrt(share * (1 - share) / len(hits)):.1f}"


def type_one(replicates: int) -> None:
    print("\n## Type-I error at 5 %, two classes\n")
    print("| scores | variable | n = 200 | 1,000 | 10,000 |\n|---|---|---|---|---|")
    for score, draw in SCORES.items():
        for name, along in VARIABLES.items():
            cells = []
            for n in (200, 1_000, 10_000):
                rng = np.random.default_rng([n, *name.encode(), *score.encode()])
                many = replicates if n < 10_000 else max(100, replicates // 2)
                hits = []
                for k in range(many):
                    p = draw(rng, n)
                    hits.append(p_value(rng.random(n) < p, p, along(rng, p), seed=k) < 0.05)
                cells.append(rate(hits))
            print(f"| {score} | {name} | {' | '.join(cells)} |", flush=True)


def biased(replicates: int) -> None:
    print(
        "\n## Type-I error at 5 % of a biased model, variable that follows the score, n = 1,000\n"
    )
    print("| scores | wrong everywhere | rejected |\n|---|---|---|")
    inside = {  # so that no rate is clipped at 0 or 1, which would make the gap change
        ".2 + .6 Beta(2, 2)": lambda rng, n: 0.2 + 0.6 * rng.beta(2, 2, n),
        "U(.2, .8)": SCORES["U(.2, .8)"],
    }
    for score, draw in inside.items():
        for kind in ("risk", "confidence"):
            for size in (0.05, 0.15):
                rng = np.random.default_rng([int(100 * size), *kind.encode(), *score.encode()])
                hits = []
                for k in range(replicates):
                    p = draw(rng, 1000)
                    sign = 1 if kind == "risk" else np.sign(p - 0.5)
                    y = rng.random(1000) < np.clip(p - size * sign, 0, 1)
                    v = VARIABLES["follows the score"](rng, p)
                    hits.append(p_value(y, p, v, seed=k) < 0.05)
                print(f"| {score} | {kind} by {100 * size:.0f} points | {rate(hits)} |", flush=True)


def family(replicates: int) -> None:
    print("\n## Any of 100 noise variables found after Holm, n = 1,000\n")
    print("| scores | found |\n|---|---|")
    for score in ("Beta(2, 2)", "Beta(2, 5)", "2 % positives"):
        rng = np.random.default_rng([5, *score.encode()])
        hits = []
        for k in range(max(50, replicates // 4)):
            p = SCORES[score](rng, 1000)
            y = rng.random(1000) < p
            X = {f"x{j}": rng.random(1000) for j in range(100)}
            found = audited(y, p, X, random_state=k)
            hits.append(any(row.p_holm < 0.05 for row in found))
        print(f"| {score} | {rate(hits)} |", flush=True)


def grouped(replicates: int) -> None:
    print("\n## Type-I error at 5 % for rows in groups, 40 rows each\n")
    print("| groups | variable | rejected |\n|---|---|---|")
    for n_groups in (12, 20, 50, 150):
        for name in ("within groups", "constant in a group"):
            rng = np.random.default_rng([n_groups, len(name)])
            hits = []
            for k in range(max(50, replicates // 3)):
                unit = np.repeat(np.arange(n_groups), 40)
                p = rng.beta(2, 2, len(unit))
                luck = rng.normal(0, 0.08, n_groups)[unit]
                y = rng.random(len(unit)) < np.clip(p + luck, 0, 1)
                v = rng.random(len(unit)) if name == "within groups" else rng.random(n_groups)[unit]
                hits.append(p_value(y, p, v, seed=k, groups=unit) < 0.05)
            print(f"| {n_groups} | {name} | {rate(hits)} |", flush=True)


def shifts(kind: str, p: np.ndarray, u: np.ndarray, size: float) -> np.ndarray:
    """Return how far the true rate is from the score."""
    sign = np.sign(p - 0.5)
    smooth, top = size * (2 * u - 1), size * (u > 0.8)
    return {
        "risk": smooth,
        "confidence": smooth * sign,
        "one side": smooth * (sign > 0),
        "one side, top fifth": top * (sign > 0),
    }[kind]


def power(replicates: int) -> None:
    print("\n## Power in percent, n = 1,000, scores Beta(2, 2)\n")
    print("| what is wrong | size | found |\n|---|---|---|")
    cases = [
        ("risk", (0.06, 0.08, 0.1)),
        ("confidence", (0.06, 0.08, 0.1)),
        ("one side", (0.08, 0.11)),
        ("one side, top fifth", (-0.15, -0.2)),
    ]
    for kind, sizes in cases:
        for size in sizes:
            rng = np.random.default_rng([int(1000 * abs(size)), *kind.encode()])
            hits = []
            for k in range(replicates):
                y, p, u = tilted(rng, 1000, kind, size)
                hits.append(p_value(y, p, u, seed=k) < 0.05)
            print(f"| {kind} | {100 * abs(size):.0f} points | {rate(hits)} |", flush=True)
    rng = np.random.default_rng(7)
    hits = []
    for k in range(max(50, replicates // 5)):
        x, p = rng.standard_normal(20_000), rng.beta(2, 2, 20_000)
        y = rng.random(20_000) < np.clip(p + 0.06 * x, 0, 1)
        hits.append(p_value(y, p, x, seed=k) < 0.05)
    print(f"\nTrue rate p + 0.06 x, n = 20,000: found in {sum(hits)} of {len(hits)} draws.")


def tilted(rng: Rng, n: int, kind: str, size: float) -> tuple[np.ndarray, ...]:
    """Return labels, probabilities and a variable along which they are off."""
    p, u = rng.beta(2, 2, n), rng.random(n)
    return rng.random(n) < np.clip(p + shifts(kind, p, u, size), 0, 1), p, u


def truth_of(kind: str, size: float, n: int = 2_000_000) -> float:
    """Return the uneven error over cells, from many rows without noise."""
    rng = np.random.default_rng(1)
    p, u = rng.beta(2, 2, n), rng.random(n)
    error = np.clip(p + shifts(kind, p, u, size), 0, 1) - p
    side = p > 0.5
    error -= np.where(side, error[side].mean(), error[~side].mean())
    return float(np.abs(np.bincount((10 * u).astype(int) + 10 * side, error) / n).sum())


def coverage(replicates: int) -> None:
    print("\n## 95 % interval and debiased value of the uneven error, in points\n")
    print("| what is wrong | n | true | covered | width | bias | of the plug-in value |")
    print("|---|---|---|---|---|---|---|")
    worlds = (
        ("risk", 0.0),
        ("risk", 0.06),
        ("confidence", 0.12),
        ("one side", 0.12),
        ("one side, top fifth", -0.2),
    )
    for kind, size in worlds:
        true = truth_of(kind, size)
        for n in (500, 2_000, 10_000):
            rng = np.random.default_rng([n, int(100 * abs(size)), *kind.encode()])
            hits, figures = [], []
            for k in range(max(50, replicates // 2)):
                y, p, u = tilted(rng, n, kind, size)
                found = audited(y, p, u, random_state=k).rows[0].uneven
                hits.append(found.low <= true + 1e-9 and true <= found.high)
                figures.append((found.high - found.low, found.debiased - true, found.value - true))
            width, bias, plug_in = 100 * np.mean(figures, axis=0)
            print(
                f"| {kind} | {n:,} | {100 * true:.2f} | {rate(hits)} | {width:.1f} | {bias:+.2f} "
                f"| {plug_in:+.2f} |",
                flush=True,
            )


def joint(replicates: int) -> None:
    print("\n## Intervals of 8 variables at once, and of their places\n")
    print("| n | all intervals hold | all places hold | false `above limit` |")
    print("|---|---|---|---|")
    tilts = np.array([0.09, 0.07, 0.05, 0.03, 0.02, 0.0, 0.0, 0.0])
    true = {str(k): tilt * 0.5 for k, tilt in enumerate(tilts)}
    for n in (500, 2_000, 10_000):
        rng = np.random.default_rng([n, 8])
        hits, places, false = [], [], []
        for k in range(max(50, replicates // 2)):
            u, p = rng.random((8, n)), rng.uniform(0.3, 0.7, n)
            q = p - tilts @ (2 * u - 1)
            found = audited(
                rng.random(n) < q, p, {str(j): one for j, one in enumerate(u)}, random_state=k
            )
            hits.append(
                all(row.low <= true[row.variable] + 1e-9 <= row.high + 2e-9 for row in found)
            )
            held = [holds(place, found, u[int(place.variable)], p, q) for place in named(found)]
            places.append(all(held))
            false += [
                row.verdict == "above limit" for row in found if true[row.variable] < found.limit
            ]
        row = [rate(hits), rate(places), rate(false)]
        print(f"| {n:,} | {' | '.join(row)} |", flush=True)


def named(found: vc.results.Audit) -> list:
    """Return all places of an audit."""
    return [place for row in found for place in row.places]


def holds(place, found: vc.results.Audit, v, p, q) -> bool:
    """Tell whether the interval of a place holds the mean gap of its rows."""
    columns = found.row(place.variable).table.columns
    inside = v == columns["bin"][place.first_bin]
    if "low" in columns:  # bins are in the order of the values
        ends = np.cumsum([0, *columns["n"][: columns["side"].count("all")]])
        inside = np.zeros(len(p), dtype=bool)
        inside[np.argsort(v)[ends[place.first_bin] : ends[place.last_bin + 1]]] = True
    if place.side:
        inside &= (p > 0.5) == (place.side == found.target.label)
    assert inside.sum() == place.n
    gap = float((p - q)[inside].mean())
    return place.low <= gap <= place.high


#: By name: what is said of a risk, and the true risk, given a level that a tenth of the rows has.
RARE: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "right": lambda risk, level: (risk, risk),
    ".05 % for everybody": lambda risk, level: (np.full(len(risk), 0.0005), risk),
    "half the risk": lambda risk, level: (risk / 2, risk),
    "a tenth has four times": lambda risk, level: (
        risk / 1.3,
        np.minimum(risk / 1.3 * np.where(level, 4, 1), 1),
    ),
}


def rare(replicates: int) -> None:
    print("\n## Rare events: average, score, places and verdict\n")
    print(
        "| the model | rate | n | average held | score held | places hold | repair | watch | fine "
        "| cannot tell |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    worlds = [("right", 0.02, 5_000), ("right", 0.005, 10_000), ("right", 0.001, 10_000)]
    worlds += [(name, 0.009, n) for name in RARE for n in (20_000, 40_000)]
    for name, events, n in worlds:
        rng = np.random.default_rng([n, int(1e4 * events), *name.encode()])
        average, score, places, verdicts = [], [], [], []
        for k in range(max(50, replicates // 5)):
            v = rng.choice(list("abcdef"), n, p=[0.1, 0.3, 0.3, 0.2, 0.0995, 0.0005])
            p, q = RARE[name](rng.beta(0.8, 0.8 / events, n), v == "a")
            X = {"v": v, "x": rng.random(n), "z": rng.poisson(2, n).astype(float)}
            y = rng.random(n) < q
            found = audited(y, p, X, random_state=k, classes=[False, True])
            verdicts.append(found.verdict)
            average.append(found.target.gap_low <= (p - q).mean() <= found.target.gap_high)
            columns = found.target.score.columns
            bins = np.searchsorted(columns["high"][:-1], p)
            gaps = np.bincount(bins, p - q) / n
            score.append(
                found.by_score.low <= np.abs(gaps).sum() + 1e-12 <= found.by_score.high + 1e-12
            )
            held = [holds(place, found, X[place.variable], p, q) for place in named(found)]
            places.append(all(held))
        shares = [
            f"{100 * np.mean([one == word for one in verdicts]):.0f}"
            for word in ("repair", "watch", "fine", "cannot tell")
        ]
        held = [rate(one) for one in (average, score, places)]
        row = [name, f"{100 * events:g} %", f"{n:,}", *held, *shares]
        print(f"| {' | '.join(row)} |", flush=True)


def classes(replicates: int) -> None:
    print("\n## More classes, n = 2,000: type-I error and power at 5 %\n")
    print("| classes | world | found |\n|---|---|---|")
    for n_classes in (3, 5, 10):
        for world in (
            "calibrated",
            "follows the score",
            "biased",
            "two classes swapped",
            "top class",
        ):
            rng = np.random.default_rng([n_classes, *world.encode()])
            hits = []
            for k in range(max(50, replicates // 3)):
                p = rng.dirichlet(np.full(n_classes, 6 / n_classes), 2000)
                u = rng.random(2000)
                true = p.copy()
                v = u
                if world == "follows the score":
                    v = p.max(axis=1) + 0.05 * rng.standard_normal(2000)
                elif world == "biased":
                    at_top = np.arange(2000), p.argmax(axis=1)
                    true = p + 0.08 / (n_classes - 1)
                    true[at_top] = p[at_top] - 0.08
                    v = p[:, 0] + 0.05 * rng.standard_normal(2000)
                elif world == "two classes swapped":
                    move = 0.5 * np.minimum(p[:, 0], p[:, 1]) * (2 * u - 1)
                    true[:, 0] += move
                    true[:, 1] -= move
                elif world == "top class":
                    mix = 0.4 * u[:, None]
                    true = (1 - mix) * p + mix / n_classes
                y = (rng.random(2000)[:, None] > true.cumsum(axis=1)).sum(axis=1)
                y = np.minimum(y, n_classes - 1)
                labels = list(range(n_classes))
                hits.append(p_value(y, p, v, seed=k, classes=labels) < 0.05)
            print(f"| {n_classes} | {world} | {rate(hits)} |", flush=True)


TABLES = {
    "type-one": type_one,
    "biased": biased,
    "family": family,
    "groups": grouped,
    "power": power,
    "coverage": coverage,
    "joint": joint,
    "rare": rare,
    "classes": classes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="100 replicates")
    parser.add_argument("--table", choices=TABLES, help="print only this table")
    options = parser.parse_args()
    replicates = 100 if options.quick else options.replicates
    for name, table in TABLES.items():
        if options.table in (None, name):
            table(replicates)


if __name__ == "__main__":
    main()
