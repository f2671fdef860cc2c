"""Error rates of tests, intervals and debiased values in simulations whose truth is known.

    python benchmarks/simulate_inference.py [--replicates 400] [--quick] [--table NAME]
    python benchmarks/simulate_inference.py --all [--quick]

With --all, every world of this folder in one table, nominal against measured, in about half an hour
on two cores (five minutes with --quick). Otherwise prints Markdown tables: type-I error,
family-wise error over 106 variables, coverage and width of the 95 % interval, bias of the debiased
value, power compared with other tests, and the same for groups.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
from scipy.special import chdtrc

from scenarios import SCORES, SHAPES, VARIABLES, Scenario
from varcal._evidence.profile import profile
from varcal._inference.calibration_test import calibration_test
from varcal._inference.cumulative_test import cumulative_test
from varcal._inference.debias import debiased, interval
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw
from varcal._inference.multiplicity import holm
from varcal._inference.scored_rows import ScoredRows
from varcal._input.events import claims
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._measures.estimate import gap_law, profile_test


def tables(scenario: Scenario, n: int, replicates: int, seed: int) -> Iterator[tuple]:
    """Yield the rows and sums of each replicate."""
    rng = np.random.default_rng(seed)
    block = max(1, 400_000 // n)
    fine_size, coarse_size = scenario.sizes
    for start in range(0, replicates, block):
        u, s, h, w = scenario.draw(rng, min(block, replicates - start), n)
        for k in range(len(u)):
            fine, coarse = scenario.bins(u[k])
            weight = w[k] if scenario.weighted else None
            sums = [
                ErrorSums.from_rows(index, s[k], h[k], weight, n_bins=size)
                for index, size in ((coarse, coarse_size), (fine, fine_size))
            ]
            yield u[k], s[k], h[k], weight, coarse, fine, sums


def p_value(scenario: Scenario, one: tuple, seed: int, *, constant: bool = False) -> float:
    _, s, _, weight, coarse, fine, (coarse_sums, fine_sums) = one
    rows = ScoredRows(s, coarse, fine, weight) if len(s) <= 20_000 else None
    ordered = None if scenario.variable == "categorical" else fine_sums
    found = calibration_test(coarse_sums, ordered, constant=constant, rows=rows, seed=seed)
    return float(found)


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
            p = [p_value(scenario, one, k) for k, one in enumerate(tables(scenario, n, many, n))]
            rates.append(f"{100 * np.mean(np.array(p) < 0.05):.1f}")
        print(f"| {score} | {variable} | {'yes' if weighted else 'no'} | {' | '.join(rates)} |")


def beyond_type_one(replicates: int) -> None:
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
            p = [
                p_value(scenario, one, k, constant=True)
                for k, one in enumerate(tables(scenario, n, many, n))
            ]
            rates.append(f"{100 * np.mean(np.array(p) < 0.05):.1f}")
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
                fine, coarse = (200 * v).astype(int), (10 * v).astype(int)
                sums = [
                    ErrorSums.from_rows(index, s[0], h[0], n_bins=size)
                    for index, size in ((coarse, 10), (fine, 200))
                ]
                rows = ScoredRows(s[0], coarse, fine)
                p.append(float(calibration_test(*sums, rows=rows, seed=k)))
            hits += holm(p).min() < 0.05
        print(f"| {score} | {n:,} | {100 * hits / replicates:.1f} % |")


def sums_of(scenario: Scenario, n: int, replicates: int, seed: int) -> ErrorSums:
    """Return the coarse sums of many replicates along a leading axis."""
    rng = np.random.default_rng(seed)
    block = max(1, 2_000_000 // n)
    parts = []
    for start in range(0, replicates, block):
        u, s, h, w = scenario.draw(rng, min(block, replicates - start), n)
        coarse = scenario.bins(u)[1]
        weight = w if scenario.weighted else None
        parts.append(ErrorSums.from_rows(coarse, s, h, weight, n_bins=scenario.sizes[1]))
    names = vars(parts[0])
    return ErrorSums(**{name: np.concatenate([vars(p)[name] for p in parts]) for name in names})


def scenarios_of(vece: float) -> list[Scenario]:
    found = []
    for score in SCORES:
        for shape in ("flat",) if vece == 0 else tuple(SHAPES):
            scenario = Scenario(score=score, shape=shape, vece=vece)
            try:
                reached = scenario.truth(scenario.size)[0]
            except ValueError:
                continue
            if abs(reached - vece) < 0.02 * vece + 1e-9:
                found.append(scenario)
    return found


def coverage(replicates: int) -> None:
    print("\n## 95 % interval of VECE (claim: ≥ 94 % on average, ≥ 90 % worst, width ≤ 1.25)\n")
    print("| VECE | n | scenarios | mean coverage | worst | width / that of an oracle |")
    print("|---|---|---|---|---|---|")
    for vece in (0.0, 0.01, 0.04, 0.15):
        for n in (500, 2_000, 20_000):
            covered, widths = [], []
            for k, scenario in enumerate(scenarios_of(vece)):
                truth, gaps, _ = scenario.truth(scenario.size)
                law = GapLaw.from_cells(sums_of(scenario, n, replicates, 10 * n + k))
                low, high = interval(law)
                covered.append(np.mean((low <= truth) & (truth <= high)))
                sign = np.where(gaps < 0, -1.0, 1.0) * law.share
                variance = np.einsum("...b,...bc,...c->...", sign, law.cov, sign)
                size = np.abs(gaps)
                variance = variance + np.einsum("b,...bc,c->...", size, law.share_cov, size)
                widths.append(np.mean(high - low) / np.mean(2 * 1.96 * np.sqrt(variance)))
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
                truth = scenario.truth(scenario.size)[0]
                law = GapLaw.from_cells(sums_of(scenario, n, replicates, 20 * n + k))
                plug, corrected = law.value - truth, debiased(law) - truth
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
    for shape in ("tilt", "hump", "step", "tail", "sine"):
        vece = {"tail": 0.025}.get(shape, 0.045)
        p = _p_values(Scenario(score="uniform", shape=shape, vece=vece), n, replicates, 2)
        rate = 100 * np.mean(p < critical, axis=0)
        totals.append(rate)
        print(f"| {shape} {vece} | {n:,} | {rate[0]:.1f} | {rate[1]:.1f} | {rate[2]:.1f} |")
    mean = np.mean(totals, axis=0)
    print(f"| **mean** | | **{mean[0]:.1f}** | **{mean[1]:.1f}** | **{mean[2]:.1f}** |")


def _p_values(scenario: Scenario, n: int, replicates: int, seed: int) -> np.ndarray:
    rows = []
    for k, one in enumerate(tables(scenario, n, replicates, seed)):
        u, s, h, _, _, _, (coarse, _) = one
        chi = chdtrc(10, (coarse.error**2 / coarse.null2).sum())
        kuiper = cumulative_test(Variable.of(u, "v"), s, h.astype(bool))
        rows.append((p_value(scenario, one, k), chi, kuiper))
    return np.array(rows)


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
            predictions = Predictions.of(y, s, v, groups=unit)
            (claim,) = claims(predictions, "positive")
            options = {"n_bins": 10, "binning": "quantile", "bins": None, "edges": None}
            one = profile(predictions, claim, predictions.variables[0], options)
            found += profile_test(one, None, grouped=True) < 0.05
            constant += profile_test(one, None, grouped=True, beyond=True) < 0.05
            covered += float(interval(gap_law(one.coarse))[0]) <= 0
        rates = [100 * x / replicates for x in (found, constant, covered)]
        print(f"| {many} | {size} | {rates[0]:.1f} % | {rates[1]:.1f} % | {rates[2]:.1f} % |")


ALL = {
    "type-one": type_one,
    "beyond": beyond_type_one,
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
    options = parser.parse_args()
    if options.all:
        from all_worlds import run_all

        run_all(minutes=4 if options.quick else 50)
        return
    replicates = 50 if options.quick else options.replicates
    for name, make in ALL.items():
        if options.table in (None, name):
            start = time.process_time()
            make(replicates if name != "family" else max(20, replicates // 4))
            print(f"\n({replicates} replicates, {time.process_time() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
