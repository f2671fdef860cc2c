"""How often intervals of clinical measures, score decompositions and isotonic bands hold the truth.

    python benchmarks/simulate_measures.py --draws 200

Scores are σ(z) with z normal (standard deviation 1.5); the truth is a known function of z.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import expit, logit, xlogy

import varcal as vc

WORLDS = {
    "calibrated": expit,
    "too extreme": lambda z: expit(0.6 * z),
    "shifted": lambda z: expit(z + 0.4),
    "hump": lambda z: np.clip(expit(z) + 0.1 * np.sin(3 * np.pi * expit(z)), 0, 1),
}
ERRORS = {"ICI": np.mean, "E50": np.median, "E90": lambda off: np.quantile(off, 0.9)}
PARTS = ("score", "miscalibration", "discrimination", "uncertainty")


def loss(rule, q, c):
    if rule == "log":
        return -(xlogy(c, q) + xlogy(1 - c, 1 - q)).mean()
    return (c * (1 - q) ** 2 + (1 - c) * q**2).mean()


def truth_of(world, rule):
    """Return the parts of the score and the errors of a large sample."""
    z = np.random.default_rng(0).normal(size=400_000) * 1.5
    p, c = expit(z), WORLDS[world](z)
    rate = np.full(len(c), c.mean())
    ours, best, base = (loss(rule, q, c) for q in (p, c, rate))
    parts = dict(zip(PARTS, (ours, ours - best, base - best, base), strict=True))
    return parts | {name: at(abs(p - c)) for name, at in ERRORS.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--rows", type=int, nargs="*", default=[300, 2000])
    given = parser.parse_args()
    print("held in % of draws; bias of the debiased parts × 1,000")
    for world, rule in ((world, rule) for world in WORLDS for rule in ("log", "brier")):
        truth = truth_of(world, rule)
        for n in given.rows:
            held, bias, band = dict.fromkeys(truth, 0), dict.fromkeys(PARTS, 0.0), 0
            for seed in range(given.draws):
                rng = np.random.default_rng(seed)
                z = rng.normal(size=n) * 1.5
                y = (rng.random(n) < WORLDS[world](z)).astype(int)
                found = vc.decompose(y, expit(z), rule=rule)
                for name in PARTS:
                    part = getattr(found, name)
                    held[name] += part.low - 1e-9 <= truth[name] <= part.high + 1e-9
                    bias[name] += 1000 * (part.debiased - truth[name]) / given.draws
                if rule == "log":
                    measures = vc.measures(y, expit(z))
                    for name in ERRORS:
                        one = measures[name]
                        held[name] += one.low - 1e-9 <= truth[name] <= one.high + 1e-9
                    fit = vc.reliability(y, expit(z), event="positive", method="isotonic").isotonic
                    c = WORLDS[world](logit(fit.score))
                    band += bool(((fit.low <= c + 1e-9) & (c <= fit.high + 1e-9)).all())
            names = list(truth) if rule == "log" else list(PARTS)
            shares = {name: round(100 * held[name] / given.draws) for name in names}
            shares |= {"isotonic band": round(100 * band / given.draws)} if rule == "log" else {}
            off = {name: round(float(value), 1) for name, value in bias.items()}
            print(f"{world}, {rule}, {n:,} rows: {shares}; bias {off}", flush=True)


if __name__ == "__main__":
    main()
