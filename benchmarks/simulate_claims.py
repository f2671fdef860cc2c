"""Error rates, power and coverage of an audit that judges all claims of a model at once.

    python benchmarks/simulate_claims.py [--replicates 1000] [--quick] [--table NAME]

Prints Markdown tables with Monte-Carlo standard errors: type-I error for two classes (also of
biased models and of variables that follow the score), of Holm's adjustment over 100 variables and
for rows in groups; power compared with the test of the one claim that is wrong; coverage of the
interval of the larger uneven error; and the same for more classes.
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
    return vc.audit(y, p, X, include=list(X), repair=False, **more)


def p_value(y, p, v, event="both", seed=0, **more) -> float:
    """Return the p-value of one variable: of all claims, or of one event's own test."""
    return audited(y, p, v, event=event, random_state=seed, **more).rows[0].uneven.p_value


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
    print("| what is wrong | size | that claim's own test | both claims | difference |")
    print("|---|---|---|---|---|")
    cases = [
        ("risk", "positive", (0.06, 0.08, 0.1)),
        ("confidence", "correct", (0.06, 0.08, 0.1)),
        ("one side", "positive", (0.08, 0.11)),
        ("one side, top fifth", "positive", (-0.15, -0.2)),
    ]
    for kind, event, sizes in cases:
        for size in sizes:
            rng = np.random.default_rng([int(1000 * abs(size)), *kind.encode()])
            own, both = [], []
            for k in range(replicates):
                p, u = rng.beta(2, 2, 1000), rng.random(1000)
                y = rng.random(1000) < np.clip(p + shifts(kind, p, u, size), 0, 1)
                own.append(p_value(y, p, u, event, seed=k) < 0.05)
                both.append(p_value(y, p, u, seed=k) < 0.05)
            apart = 100 * (np.mean(both) - np.mean(own))
            row = [kind, f"{100 * abs(size):.0f} points", rate(own), rate(both), f"{apart:+.1f}"]
            print(f"| {' | '.join(row)} |", flush=True)
    rng = np.random.default_rng(7)
    hits = []
    for k in range(max(50, replicates // 5)):
        x, p = rng.standard_normal(20_000), rng.beta(2, 2, 20_000)
        y = rng.random(20_000) < np.clip(p + 0.06 * x, 0, 1)
        hits.append(p_value(y, p, x, seed=k) < 0.05)
    print(f"\nTrue rate p + 0.06 x, n = 20,000: found in {sum(hits)} of {len(hits)} draws.")


def truth_of(kind: str, size: float, n: int = 2_000_000) -> float:
    """Return the larger uneven error of the two claims, from many rows without noise."""
    rng = np.random.default_rng(1)
    p, u = rng.beta(2, 2, n), rng.random(n)
    error = np.clip(p + shifts(kind, p, u, size), 0, 1) - p
    side = p > 0.5
    error -= np.where(side, error[side].mean(), error[~side].mean())
    place = (10 * u).astype(int)
    sums = [np.abs(np.bincount(place, s * error) / n).sum() for s in (1.0, np.where(side, 1, -1))]
    return max(sums)


def coverage(replicates: int) -> None:
    print("\n## Coverage of the 95 % interval of the larger uneven error\n")
    print("| what is wrong | n | true value | covered | mean width |\n|---|---|---|---|---|")
    for kind, size in (("risk", 0.0), ("risk", 0.06), ("confidence", 0.12), ("one side", 0.12)):
        true = truth_of(kind, size)
        for n in (500, 2_000):
            rng = np.random.default_rng([n, int(100 * size), *kind.encode()])
            hits, widths = [], []
            for k in range(max(50, replicates // 2)):
                p, u = rng.beta(2, 2, n), rng.random(n)
                y = rng.random(n) < np.clip(p + shifts(kind, p, u, size), 0, 1)
                found = audited(y, p, u, random_state=k).rows[0].uneven
                hits.append(found.low <= true + 1e-9 and true <= found.high)
                widths.append(found.high - found.low)
            print(
                f"| {kind} | {n:,} | {100 * true:.1f} points | {rate(hits)} | "
                f"{100 * np.mean(widths):.1f} |",
                flush=True,
            )


def classes(replicates: int) -> None:
    print("\n## More classes, n = 2,000: type-I error and power at 5 %\n")
    print("| classes | world | top class alone | all claims |\n|---|---|---|---|")
    for n_classes in (3, 5, 10):
        for world in (
            "calibrated",
            "follows the score",
            "biased",
            "two classes swapped",
            "top class",
        ):
            rng = np.random.default_rng([n_classes, *world.encode()])
            top, every = [], []
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
                top.append(p_value(y, p, v, "correct", seed=k, classes=labels) < 0.05)
                every.append(p_value(y, p, v, seed=k, classes=labels) < 0.05)
            print(f"| {n_classes} | {world} | {rate(top)} | {rate(every)} |", flush=True)


TABLES = {
    "type-one": type_one,
    "biased": biased,
    "family": family,
    "groups": grouped,
    "power": power,
    "coverage": coverage,
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
