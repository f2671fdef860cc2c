"""Error rates of tests, intervals and debiased values in simulations whose truth is known.

    python benchmarks/simulate_inference.py [--replicates 400] [--quick] [--table NAME]
    python benchmarks/simulate_inference.py --all [--quick] [--only TEXT]

With --all, every world of `worlds.py` in one table, nominal against measured, in about half an hour
on two cores (five minutes with --quick). Otherwise prints Markdown tables: type-I error,
family-wise error over 106 variables, coverage and width of the 95 % interval, bias of the debiased
value, power compared with other tests, and the same for groups.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.special import chdtrc, ndtr

import varcal as vc
from worlds import SCORES, VARIABLES, Scenario, constant_p, run_all, scenarios_of


def p_values(scenario: Scenario, n: int, replicates: int, *, constant: bool = False) -> np.ndarray:
    """Return the p-value of each replicate; the seed is the number of rows."""
    return np.array(
        [
            constant_p(rows, k) if constant else vc.estimate(**rows, random_state=k).p_value
            for k, rows in enumerate(scenario.samples(n, replicates, n))
        ]
    )


def type_one(replicates: int) -> None:
    print("\n## Type-I error at 5 % (claim: ≤ 6.5 %, and ≥ 3.5 % for n ≥ 1,000)\n")
    print("| scores | variable | weights | n = 200 | 1,000 | 10,000 |\n|---|---|---|---|---|---|")
    cases = [(score, variable, False) for score in SCORES for variable in VARIABLES] + [
        ("uniform", "continuous", True),
        ("rare", "continuous", True),
    ]
    for score, variable, weighted in cases:
        scenario = Scenario(score=score, variable=variable, shape="flat", weighted=weighted)
        rates = []
        for n in (200, 1_000, 10_000):
            many = replicates if n < 10_000 else max(100, replicates // 2)
            rates.append(f"{100 * np.mean(p_values(scenario, n, many) < 0.05):.1f}")
        print(f"| {score} | {variable} | {'yes' if weighted else 'no'} | {' | '.join(rates)} |")


def uneven_type_one(replicates: int) -> None:
    print("\n## Type-I error of the test of a constant gap, at overall gaps\n")
    print("| scores | overall gap | n = 1,000 | 10,000 |\n|---|---|---|---|")
    for score, offset in (
        ("uniform", 0.0),
        ("uniform", 0.07),
        ("concentrated", 0.07),
        ("concentrated", 0.2),
    ):
        scenario = Scenario(score=score, shape="flat", offset=offset)
        rates = []
        for n in (1_000, 10_000):
            many = replicates if n < 10_000 else max(100, replicates // 2)
            p = p_values(scenario, n, many, constant=True)
            rates.append(f"{100 * np.mean(p < 0.05):.1f}")
        print(f"| {score} | {offset} | {' | '.join(rates)} |")


def family(replicates: int) -> None:
    print("\n## Family-wise error over 106 variables after Holm (claim: ≤ 6 %)\n")
    print("| scores | n | any of 106 found |\n|---|---|---|")
    for score, n in (("uniform", 2_000), ("beta(2,5)", 2_000), ("rare", 2_000)):
        scenario = Scenario(score=score, shape="flat")
        rng = np.random.default_rng(7)
        hits = 0
        for k in range(replicates):
            _, s, h, _ = scenario.draw(rng, 1, n)
            p = []
            for j in range(106):
                v = rng.random(n) if j % 3 else np.floor(5 * rng.random(n)) / 5
                given = scenario.given(v)
                found = vc.estimate(h[0], s[0], **given, event="positive", random_state=k)
                p.append(found.p_value)
            hits += 106 * min(p) < 0.05
        print(f"| {score} | {n:,} | {100 * hits / replicates:.1f} % |")


def oracle_width(rows: dict, scenario: Scenario, gaps: np.ndarray) -> float:
    """Return the width of the normal interval of someone who knows the signs of all gaps."""
    coarse = np.digitize(rows["v"], rows["bins"][1:-1])
    n = np.bincount(coarse, minlength=scenario.sizes[1])
    error = rows["p"] - rows["y"]
    spread = np.bincount(coarse, (error - (np.bincount(coarse, error) / n)[coarse]) ** 2).sum()
    share, size = n / n.sum(), np.abs(gaps)
    among = share @ size**2 - (share @ size) ** 2
    return 2 * 1.96 * np.sqrt((spread / n.sum() + among) / n.sum())


def coverage(replicates: int) -> None:
    print("\n## 95 % interval of VECE (claim: ≥ 94 % on average, ≥ 90 % worst, width ≤ 1.25)\n")
    print("| VECE | n | scenarios | mean coverage | worst | width / that of an oracle |")
    print("|---|---|---|---|---|---|")
    for vece in (0.0, 0.01, 0.04, 0.15):
        for n in (500, 2_000, 20_000):
            covered, widths = [], []
            for k, scenario in enumerate(scenarios_of(vece)):
                truth, gaps = scenario.integral, scenario.truth(scenario.size)[1]
                found, oracle = [], []
                for rows in scenario.samples(n, replicates, 10 * n + k, 2_000_000):
                    one = vc.estimate(**rows)
                    found.append((one.low, one.high))
                    oracle.append(oracle_width(rows, scenario, gaps))
                low, high = np.transpose(found)
                covered.append(np.mean((low <= truth) & (truth <= high)))
                widths.append(np.mean(high - low) / np.mean(oracle))
            print(
                f"| {vece} | {n:,} | {len(covered)} | {100 * np.mean(covered):.1f} % | "
                f"{100 * np.min(covered):.1f} % | {np.mean(widths):.2f} |"
            )


def bias(replicates: int) -> None:
    print(
        "\n## Bias of the debiased value (claim: at most what is allowed), root mean square error\n"
    )
    print(
        "| VECE | n | bias of the plug-in value | of the debiased value | allowed | RMSE ratio |\n"
        "|---|---|---|---|---|---|"
    )
    for vece in (0.0, 0.01, 0.04):
        for n in (500, 2_000):
            rows = []
            for k, scenario in enumerate(scenarios_of(vece)):
                truth = scenario.integral
                samples = scenario.samples(n, replicates, 20 * n + k, 2_000_000)
                found = [vc.estimate(**rows) for rows in samples]
                both = np.array([(one.value, one.debiased) for one in found])
                plug, corrected = both.T - truth
                rows.append(
                    (
                        plug.mean(),
                        corrected.mean(),
                        plug.std(),
                        (corrected**2).mean(),
                        (plug**2).mean(),
                    )
                )
            plug, corrected, sd, mse, base = np.array(rows).mean(axis=0)
            allowed = max(abs(plug), sd) / 4
            print(
                f"| {vece} | {n:,} | {1e4 * plug:.0f}e-4 | {1e4 * corrected:.0f}e-4 | "
                f"{1e4 * allowed:.0f}e-4 | {np.sqrt(mse / base):.2f} |"
            )


def power(replicates: int) -> None:
    print("\n## Power at 5 %, each test at its own simulated critical value\n")
    print("| shape | n | combined | chi-square, 10 bins | Kuiper |\n|---|---|---|---|---|")
    n, totals = 800, []
    null = _p_values(Scenario(score="uniform", shape="flat"), n, 2 * replicates, 1)
    critical = np.quantile(null, 0.05, axis=0)
    for shape in ("tilt", "hump", "step", "tail", "sine", "four periods", "flat"):
        vece = {"tail": 0.025, "four periods": 0.056, "flat": 0.038}.get(shape, 0.045)
        p = _p_values(Scenario(score="uniform", shape=shape, vece=vece), n, replicates, 2)
        rate = 100 * np.mean(p < critical, axis=0)
        totals.append(rate)
        print(f"| {shape} {vece} | {n:,} | {rate[0]:.1f} | {rate[1]:.1f} | {rate[2]:.1f} |")
    mean = np.mean(totals, axis=0)
    print(f"| **mean** | | **{mean[0]:.1f}** | **{mean[1]:.1f}** | **{mean[2]:.1f}** |")


def _p_values(scenario: Scenario, n: int, replicates: int, seed: int) -> np.ndarray:
    found = []
    rng = np.random.default_rng(seed)
    block = max(1, 400_000 // n)
    for start in range(0, replicates, block):
        drawn = scenario.draw(rng, min(block, replicates - start), n)
        for k, (u, s, h, _) in enumerate(zip(*drawn, strict=True), start):
            bins = (10 * u).astype(int)
            error, null = (np.bincount(bins, one, 10) for one in (h - s, s * (1 - s)))
            rows = {"y": h, "p": s, "event": "positive", "classes": (0, 1)}
            combined = vc.estimate(**rows, **scenario.given(u), random_state=k).p_value
            found.append((combined, chdtrc(10, (error**2 / null).sum()), _kuiper(u, s, h)))
    return np.array(found)


def _kuiper(u: np.ndarray, s: np.ndarray, h: np.ndarray) -> float:
    """P-value of the range of cumulative differences (Arrieta-Ibarra et al. 2022, Feller 1951)."""
    walk = np.append(0.0, np.cumsum((h - s)[np.argsort(u)])) / np.sqrt((s * (1 - s)).sum())
    k = np.arange(1, 200)
    tail = 8 * ((-1.0) ** (k - 1) * k * ndtr(-k * max(np.ptp(walk), 0.5))).sum()
    return float(np.clip(tail, 1e-300, 1.0))


def groups(replicates: int) -> None:
    print("\n## Groups with dependent outcomes: type-I error and coverage of 0 along v\n")
    print("| groups | rows each | test | constant gap | interval covers 0 |\n|---|---|---|---|---|")
    for many, size in ((30, 30), (120, 10), (400, 5)):
        rng = np.random.default_rng(many)
        found, constant, covered = 0, 0, 0
        for _ in range(replicates):
            unit = np.repeat(np.arange(many), size)
            v = rng.random(many)[unit] * 0.5 + 0.5 * rng.random(len(unit))
            s = rng.uniform(0.3, 0.7, len(unit))
            y = (
                np.where(rng.random(len(unit)) < 0.7, rng.random(many)[unit], rng.random(len(unit)))
                < s
            )
            test = vc.estimate(y, s, v, event="positive", groups=unit)
            found += test.p_value < 0.05
            covered += test.low <= 0
            X, more = {"v": v}, {"binning": "quantile", "ladder": "none"}
            audited = vc.audit(y, s, X, groups=unit, include=["v"], **more)
            constant += audited.rows[0].uneven.p_value < 0.05
        rates = [100 * x / replicates for x in (found, constant, covered)]
        print(f"| {many} | {size} | {rates[0]:.1f} % | {rates[1]:.1f} % | {rates[2]:.1f} % |")


ALL = {
    "type-one": type_one,
    "uneven": uneven_type_one,
    "coverage": coverage,
    "bias": bias,
    "power": power,
    "groups": groups,
    "family": family,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="50 replicates")
    parser.add_argument("--table", choices=ALL, help="print only this table")
    parser.add_argument("--all", action="store_true", help="all worlds in one table, half an hour")
    parser.add_argument("--only", default="", help="with --all: a part of the names of worlds")
    parser.add_argument("--minutes", type=float, default=50, help="with --all: at most these")
    options = parser.parse_args()
    if options.all:
        run_all(minutes=4 if options.quick else options.minutes, only=options.only)
        return
    replicates = 50 if options.quick else options.replicates
    for name, make in ALL.items():
        if options.table in (None, name):
            start = time.process_time()
            make(replicates if name != "family" else max(20, replicates // 4))
            print(f"\n({replicates} replicates, {time.process_time() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
