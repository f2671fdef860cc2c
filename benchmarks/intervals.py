"""Coverage and width of the intervals of the variable calibrator, where the truth is known.

    python benchmarks/bench_variable_calibrator.py intervals [--seeds 0-19]

Coverage is the share of rows, over all draws, whose true probability lies in the interval of 95 %;
± is its standard error over draws. Widths are in points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

import varcal as vc

#: Rows whose intervals are looked at.
TEST_ROWS = 2_000
World = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _scores(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return 1.3 * rng.normal(size=n) - 0.3, rng.uniform(-1, 1, (n, 4))


def smooth(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, variables and the truth: three smooth effects, one that varies with z."""
    z, v = _scores(rng, n)
    eta = 0.8 * z + 0.7 * np.sin(2 * v[:, 0]) + 0.6 * v[:, 1] ** 2 + 0.3 * z * v[:, 2]
    return expit(z), v, expit(eta)


def weak(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows with two small effects."""
    z, v = _scores(rng, n)
    return expit(z), v, expit(z + 0.25 * v[:, 0] - 0.2 * np.cos(3 * v[:, 1]))


def wavy(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows with an effect of two periods."""
    z, v = _scores(rng, n)
    return expit(z), v, expit(z + 0.8 * np.sin(2 * np.pi * v[:, 0]) + 0.4 * v[:, 1])


def jump(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows with a large step along one variable."""
    z, v = _scores(rng, n)
    return expit(z), v, expit(z + 0.8 * np.sign(v[:, 0] - 0.3) + 0.3 * v[:, 1])


def jumps(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows with steps along two variables, one of them a window."""
    z, v = _scores(rng, n)
    eta = z + 0.7 * np.sign(v[:, 0] - 0.3) + 0.9 * (np.abs(v[:, 1]) < 0.2) - 0.2
    return expit(z), v, expit(eta)


def votes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return shares of 20 votes, many of them 0 and 1, which are too extreme."""
    z, v = _scores(rng, n)
    p = rng.binomial(20, expit(1.8 * z)) / 20
    return p, v, expit(logit(0.05 + 0.9 * p) + 0.5 * np.sin(2 * v[:, 0]))


def atoms(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return votes whose 0 and 1 mean something else than the curve of the others says."""
    z, v = _scores(rng, n)
    p = rng.binomial(20, expit(1.8 * z)) / 20
    truth = np.select([p == 0, p == 1], [0.12, 0.8], 0.03 + 0.94 * p)
    return p, v, expit(logit(truth) + 0.3 * v[:, 0])


WORLDS: dict[str, World] = {
    "smooth": smooth, "weak": weak, "wavy": wavy, "jump": jump, "jumps": jumps,
    "votes": votes, "atoms": atoms,
}  # fmt: skip


def one_draw(world: World, n: int, seed: int) -> tuple[float, float, float]:
    """Return coverage, mean width, and the root mean square error, in points."""
    rng = np.random.default_rng([seed, 18])
    p, v, truth = world(rng, n + TEST_ROWS)
    y = (rng.random(n) < truth[:n]).astype(int)
    fit = vc.VariableCalibrator().fit(p[:n], y, v[:n])
    low, high = (each[:, 1] for each in fit.predict_interval(p[n:], v[n:]))
    q = fit.predict_proba(p[n:], v[n:])[:, 1]
    covered = np.mean((low <= truth[n:]) & (truth[n:] <= high))
    wrong = np.sqrt(np.mean((q - truth[n:]) ** 2))
    return 100 * float(covered), 100 * float(np.mean(high - low)), 100 * float(wrong)


def intervals(seeds: list[int], rows: list[int]) -> None:
    """Print coverage and width in every world."""
    print("\n### Intervals of 95 %: coverage over rows, mean width and error, in points\n")
    print("| world | rows | coverage | width | error of q |\n|---|---|---|---|---|")
    for name, world in WORLDS.items():
        for n in rows:
            found = np.array([one_draw(world, n, seed) for seed in seeds])
            error = found[:, 0].std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else 0.0
            mean = found.mean(axis=0)
            print(
                f"| {name} | {n:,} | {mean[0]:.1f} ±{error:.1f} | {mean[1]:.1f} | {mean[2]:.2f} |",
                flush=True,
            )
