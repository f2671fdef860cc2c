"""Type-I errors, power and coverage of audits of predicted means, on data whose truth is known.

python benchmarks/simulate_means.py TABLE ROWS [--samples N] [--world NAME ...] [--out FILE]

Tables: test, power, coverage, groups, trigger. One process; a line of JSON per world is
appended to the file, and worlds that it already holds are skipped.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from varcal._inference import mean_law
from varcal._inference.mean_law import MeanSums, mean_error, mean_test, overall_limits
from varcal._inference.multiplicity import cauchy

Floats = NDArray[np.float64]
Rng = np.random.Generator
#: Outcomes, predictions, exposures and sampling weights of rows.
Rows = tuple[Floats, Floats, Floats | None, Floats | None]


def gamma(rng: Rng, cv: float, n: int) -> Floats:
    """Draw gamma variables with mean 1."""
    return rng.gamma(1 / cv**2, cv**2, n)


def lognormal(rng: Rng, cv: float, n: int) -> Floats:
    """Draw lognormal variables with mean 1."""
    s = np.sqrt(np.log1p(cv**2))
    return np.exp(s * rng.normal(size=n) - s**2 / 2)


def premium(draw: Callable[[Rng, int], Floats]) -> Callable[..., Rows]:
    """Return a world of 7 % claims, whose amounts are drawn."""

    def world(rng: Rng, v: Floats, mu: Floats, g: Floats) -> Rows:
        claims = rng.poisson(0.07 * np.sqrt(mu) * (1 + g))
        row = np.repeat(np.arange(len(v)), claims)
        amounts = draw(rng, len(row)) * np.sqrt(mu)[row]
        return np.bincount(row, amounts, len(v)), 0.07 * mu, None, None

    return world


def severity(draw: Callable[[Rng, int], Floats]) -> Callable[..., Rows]:
    """Return a world of positive amounts."""
    return lambda rng, v, mu, g: (mu * (1 + g) * draw(rng, len(v)), mu, None, None)


def errors(draw: Callable[[Rng, Floats], Floats]) -> Callable[..., Rows]:
    """Return a world of amounts that may be negative."""
    return lambda rng, v, mu, g: (mu + g + draw(rng, v), mu, None, None)


def poisson(rng: Rng, v: Floats, mu: Floats, g: Floats) -> Rows:
    """Counts with exposure."""
    e = rng.uniform(0.1, 1, len(v))
    return rng.poisson(0.3 * e * mu * (1 + g)) / e, 0.3 * mu, e, None


def negative_binomial(rng: Rng, v: Floats, mu: Floats, g: Floats) -> Rows:
    """Counts that vary more than Poisson ones."""
    return rng.poisson(mu * (1 + g) * gamma(rng, 1.5, len(v))) * 1.0, mu, None, None


def soft_labels(rng: Rng, v: Floats, mu: Floats, g: Floats) -> Rows:
    """Shares in (0, 1)."""
    p = mu / (mu + 1.5)
    q = np.clip(p + 0.1 * g, 0.01, 0.99)
    return rng.beta(4 * q, 4 * (1 - q)), p, None, None


def zero_inflated(rng: Rng, v: Floats, mu: Floats, g: Floats) -> Rows:
    """Counts of which 60 % are 0."""
    return rng.poisson(12.5 * mu * (1 + g)) * (rng.random(len(v)) < 0.4) * 1.0, 5 * mu, None, None


def weighted(rng: Rng, v: Floats, mu: Floats, g: Floats) -> Rows:
    """Weibull amounts with sampling weights of 1 to 10."""
    y = mu * (1 + g) * rng.weibull(0.6, len(v)) / math.gamma(1 + 1 / 0.6)
    return y, mu, None, rng.integers(1, 11, len(v)) * 1.0


def dispersed(rng: Rng, v: Floats, mu: Floats, g: Floats) -> Rows:
    """Gamma amounts whose dispersion grows 16-fold along v, which V(μ) does not know."""
    shape = 4 / 16**v
    return mu * (1 + g) * rng.gamma(shape, 1 / shape), mu, None, None


#: Each world, and whether its gap is relative.
WORLDS: dict[str, tuple[Callable[..., Rows], bool]] = {
    "normal": (errors(lambda rng, v: 2 * rng.normal(size=len(v))), False),
    "heteroscedastic": (errors(lambda rng, v: (0.5 + 3 * v**2) * rng.normal(size=len(v))), False),
    "t3": (errors(lambda rng, v: 1.2 * rng.standard_t(3, len(v))), False),
    "outliers": (
        errors(
            lambda rng, v: rng.normal(size=len(v)) * np.where(rng.random(len(v)) < 1e-3, 100, 2)
        ),
        False,
    ),
    "Poisson, exposure": (poisson, True),
    "negative binomial": (negative_binomial, True),
    "premium, claim cv 1.5": (premium(lambda rng, k: gamma(rng, 1.5, k)), True),
    "premium, claim cv 3": (premium(lambda rng, k: gamma(rng, 3, k)), True),
    "premium, lognormal": (premium(lambda rng, k: lognormal(rng, 3, k)), True),
    "severity cv 1.5": (severity(lambda rng, k: gamma(rng, 1.5, k)), True),
    "severity cv 5": (severity(lambda rng, k: lognormal(rng, 5, k)), True),
    "soft labels": (soft_labels, False),
    "Pareto 1.5": (severity(lambda rng, k: (rng.pareto(1.5, k) + 1) / 3), True),
    "premium, claim cv 10": (premium(lambda rng, k: lognormal(rng, 10, k)), True),
    "inverse Gaussian cv 2": (severity(lambda rng, k: rng.wald(1, 0.25, k)), True),
    "zero-inflated": (zero_inflated, True),
    "Weibull, weights": (weighted, True),
    "dispersion varies": (dispersed, True),
    "mixture": (
        severity(lambda rng, k: lognormal(rng, 1, k) * np.where(rng.random(k) < 0.1, 10, 1) / 1.9),
        True,
    ),
}
#: Shapes of the gap along v.
SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "none": lambda v: 0 * v,
    "tilt": lambda v: 2 * v - 1,
    "tail": lambda v: (v > 0.9) * 1.0,
}
LEVEL_SHARES = np.maximum(np.arange(1.0, 21) ** -1.3 / 2.66, 0.008)
LEVEL_SHARES /= LEVEL_SHARES.sum()
#: Levels below this share are pooled.
POOLED = 0.02


def draw(rng: Rng, name: str, n: int, size: float, shape: str) -> tuple[Floats, Rows, Floats]:
    """Draw the variable, rows with a gap, and the gap."""
    world, relative = WORLDS[name]
    v = rng.random(n)
    mu = np.exp(0.85 * (v - 0.5) + 0.43 * rng.normal(size=n))
    g = (0.1 if relative else 1.0) + size * SHAPES[shape](v)
    return v, world(rng, v, mu, g), g


def index_of(kind: str, v: Floats) -> tuple[NDArray[np.intp], int]:
    """Return tenths of v, or levels, of which rare ones are pooled."""
    if kind == "bins":
        return np.minimum((v * 10).astype(np.intp), 9), 10
    own = LEVEL_SHARES >= POOLED
    place = np.where(own, np.cumsum(own), 0)
    index = np.searchsorted(np.cumsum(LEVEL_SHARES), v).clip(0, len(own) - 1)
    return place[index], int(own.sum()) + 1


def sums_of(
    name: str, rows: Rows, index: NDArray[np.intp], n_bins: int, bucket: object = None
) -> MeanSums:
    """Sum rows."""
    y, mu, exposure, weight = rows
    return MeanSums.from_rows(
        index,
        y,
        mu,
        n_bins=n_bins,
        exposure=exposure,
        weight=weight,
        bucket=bucket,
        relative=WORLDS[name][1],
    )


def fine_of(name: str, rows: Rows, v: Floats, kind: str, bucket: object = None) -> MeanSums | None:
    """Return sums over 100 cells of equal counts; levels have no order."""
    rank = np.argsort(np.argsort(v)) * 100 // len(v)
    return sums_of(name, rows, rank, 100, bucket) if kind == "bins" else None


def wald(sums: MeanSums) -> float:
    """Return the p-value of Wald's test of equal gaps."""
    c = sums.cells
    weight = c.weight**2 / np.maximum(c.scatter() * c.n / np.maximum(c.n - 1, 1), 1e-300)
    mean = (weight * c.gap).sum() / weight.sum()
    return float(chdtrc(len(c.gap) - 1, (weight * (c.gap - mean) ** 2).sum()))


def recipe(bins: MeanSums, fine: MeanSums | None) -> float:
    """Return the p-value of the first recipe: chi-square forms with shrunk variances alone."""
    caution, mean_law.CAUTION = mean_law.CAUTION, 0.0
    found = [mean_law._judged(bins, np.eye(len(bins.cells.n)), bins.overall, True)[0]]
    if fine is not None:
        bends = mean_law.trends(fine.cells.weight, fine.cells.weight > 0)[0][:, 1:]
        found.append(mean_law._judged(fine, bends, bins.overall, True)[0])
    mean_law.CAUTION = caution
    return float(cauchy(found))


def gap_size(name: str, n: int) -> float:
    """Return a gap that about half of the samples of n rows show."""
    relative = WORLDS[name][1]
    _, (y, mu, _, _), _ = draw(np.random.default_rng(0), name, 100_000, 0.0, "none")
    errors = np.abs(y - mu) / (mu.mean() if relative else 1.0)
    sd = float(np.sqrt(np.mean(np.minimum(errors, np.quantile(errors, 0.999)) ** 2)))
    sd *= 10 if name == "soft labels" else 1
    return min(5.5 * sd / math.sqrt(n), 1.0 if relative else math.inf)


def table_test(name: str, n: int, samples: int, rng: Rng, power: bool = False) -> dict:
    """Return the share of rejections, in percent, of a constant gap and of the first recipe."""
    found: dict[str, list[bool]] = {}
    size = gap_size(name, n) if power else 0.0
    for k in range(samples):
        v, rows, _ = draw(rng, name, n, size, "tilt" if k % 2 else "tail")
        for kind in ("bins", "levels"):
            bins, fine = sums_of(name, rows, *index_of(kind, v)), fine_of(name, rows, v, kind)
            for test in (mean_test, recipe):
                found.setdefault(f"{kind} {test.__name__}", []).append(test(bins, fine) < 0.05)
            found.setdefault(f"{kind} wald", []).append(wald(bins) < 0.05)
    return {key: round(100 * float(np.mean(each)), 2) for key, each in found.items()}


def table_power(name: str, n: int, samples: int, rng: Rng) -> dict:
    """Return the share of rejections of gaps that change."""
    return table_test(name, n, samples, rng, power=True)


def truth(name: str, kind: str, size: float, shape: str) -> tuple[float, float, Floats]:
    """Return the uneven error, the overall gap and those of bins in the population."""
    v, rows, g = draw(np.random.default_rng(0), name, 400_000, size, shape)
    _, mu, exposure, weight = rows
    w = (1.0 if exposure is None else exposure) * (1.0 if weight is None else weight) + 0 * v
    base = w * mu if WORLDS[name][1] else w
    if name == "soft labels":
        g = np.clip(mu + 0.1 * g, 0.01, 0.99) - mu
    index, many = index_of(kind, v)
    share = np.bincount(index, base, many) / base.sum()
    gaps = np.bincount(index, base * g, many) / np.bincount(index, base, many)
    return float(share @ np.abs(gaps - share @ gaps)), float(share @ gaps), gaps


def table_coverage(name: str, n: int, samples: int, rng: Rng) -> dict:
    """Return coverage of the uneven error (and misses above), of the overall gap and of bins."""
    found: dict[str, object] = {}
    size = 0.3 if WORLDS[name][1] else 0.6
    for shape in SHAPES:
        true = {kind: truth(name, kind, size, shape) for kind in ("bins", "levels")}
        hits: dict[str, list[object]] = {}
        for _ in range(samples):
            v, rows, _ = draw(rng, name, n, size, shape)
            for kind in true:
                error, overall, gaps = true[kind]
                bins, fine = sums_of(name, rows, *index_of(kind, v)), fine_of(name, rows, v, kind)
                if shape == "none":
                    error = 0.0
                one = mean_error(bins, mean_test(bins, fine))
                hits.setdefault(kind, []).append(one.low <= error <= one.high)
                hits.setdefault(f"{kind} above", []).append(error > one.high)
                hits.setdefault(f"{kind} width", []).append(one.high - one.low)
                hits.setdefault(f"{kind} debiased", []).append(one.debiased)
                low, high = mean_law.gap_limits(bins)
                hits.setdefault(f"{kind} each", []).append(((low <= gaps) & (gaps <= high)).mean())
            low, high = overall_limits(bins)
            hits.setdefault("overall", []).append(low <= overall <= high)
            hits.setdefault("effective", []).append(bins.effective)
            largest = np.sort(((rows[0] - rows[1]) * (1 if rows[3] is None else rows[3])) ** 2)
            hits.setdefault("largest", []).append(largest[-1] / largest.sum())
        for key, each in hits.items():
            plain = key.split()[-1] in ("width", "debiased", "effective", "largest")
            value = np.median(each) if plain else 100 * np.mean(each)
            found[f"{shape} {key}"] = round(float(value), 4)
        found[f"{shape} truth"] = round(true["bins"][0], 4)
    return found


def table_groups(name: str, n: int, samples: int, rng: Rng) -> dict:
    """Return the share of rejections with groups, v within or between them, and coverage."""
    found: dict[str, list[bool]] = {}
    world, relative = WORLDS[name]
    for many in (40, 200):
        for where in ("within", "between"):
            for _ in range(samples):
                unit = rng.integers(0, many, n)
                v = rng.random(n) if where == "within" else rng.random(many)[unit]
                mu = np.exp(0.85 * (v - 0.5) + 0.43 * rng.normal(size=n))
                effect = (
                    gamma(rng, 0.4, many)[unit] - 1 if relative else rng.normal(size=many)[unit]
                )
                for shape in ("none", "tilt"):
                    g = (0.1 if relative else 1.0) + 0.3 * SHAPES[shape](v)
                    g = (1 + g) * (1 + effect) - 1 if relative else g + effect
                    rows = world(rng, v, mu, g)
                    bins = sums_of(name, rows, *index_of("bins", v), unit)
                    p = mean_test(bins, fine_of(name, rows, v, "bins", unit))
                    key = f"{many} {where}"
                    found.setdefault(f"{key} {shape} rejects", []).append(p < 0.05)
                    true = truth_of(name, shape)
                    one = mean_error(bins, p)
                    found.setdefault(f"{key} {shape} covers", []).append(
                        one.low <= true <= one.high
                    )
    return {key: round(100 * float(np.mean(each)), 2) for key, each in found.items()}


_TRUTHS: dict[tuple[str, str], float] = {}


def truth_of(name: str, shape: str) -> float:
    """Return the uneven error over bins of a gap of .3 times a shape."""
    if (name, shape) not in _TRUTHS:
        _TRUTHS[name, shape] = 0.0 if shape == "none" else truth(name, "bins", 0.3, shape)[0]
    return _TRUTHS[name, shape]


def table_trigger(name: str, n: int, samples: int, rng: Rng) -> dict:
    """Return coverage of the overall gap by effective errors and by the largest row's share."""
    found = []
    true = truth(name, "bins", 0.0, "none")[1]
    for _ in range(samples):
        v, rows, _ = draw(rng, name, n, 0.0, "none")
        bins = sums_of(name, rows, *index_of("bins", v))
        low, high = overall_limits(bins)
        weight = 1.0 if rows[3] is None else rows[3]
        squares = (weight * (rows[0] - rows[1])) ** 2
        found.append([low <= true <= high, bins.effective, squares.max() / squares.sum()])
    covers, effective, largest = np.array(found, float).T
    figures = {"covers": 100 * covers.mean()}
    marks = {f"m < {most}": effective < most for most in (5, 10, 20)}
    marks |= {f"largest > {least}": largest > least for least in (0.2, 0.3, 0.5)}
    for key, flagged in marks.items():
        figures[key] = 100 * flagged.mean()
        figures[f"covers, not {key}"] = 100 * covers[~flagged].mean() if (~flagged).any() else 100
    return {key: round(float(value), 1) for key, value in figures.items()}


TABLES = {
    "trigger": table_trigger,
    "test": table_test,
    "power": table_power,
    "coverage": table_coverage,
    "groups": table_groups,
}


def main() -> None:
    """Run one table at one number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("rows", type=int)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--world", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("simulate_means.jsonl"))
    options = parser.parse_args()
    done = []
    if options.out.exists():
        done = [json.loads(line) for line in options.out.read_text().splitlines()]
    keys = {(one["table"], one["rows"], one["world"], one["seed"]) for one in done}
    for name in options.world:
        if (options.table, options.rows, name, options.seed) in keys:
            continue
        rng = np.random.default_rng([options.seed, options.rows, *name.encode()])
        begin = time.perf_counter()
        found = TABLES[options.table](name, options.rows, options.samples, rng)
        line = {"table": options.table, "rows": options.rows, "world": name, "seed": options.seed}
        line |= {"samples": options.samples, **found}
        line |= {"seconds": round(time.perf_counter() - begin, 1)}
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
