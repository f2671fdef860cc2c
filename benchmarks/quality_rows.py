"""Rows for benchmarks of calibrators: worlds whose truth is known, and the paper's outputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

#: Variables of the paper's sets, and the rows that it calibrates on.
PAPER = {
    "adult": (
        ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"],
        2_500,
    ),
    "bank": (["age", "balance", "campaign", "pdays", "previous"], 1_000),
    "cardio": (["age", "height", "weight", "ap_hi", "ap_lo"], 6_000),
    "cifar": (["median_rt", "mean_rt", "std_rt"], 2_000),
}
#: The number of rows of a world that calibrators are judged on.
TEST_ROWS = 20_000
Eta = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Rows:
    """Scores, outcomes, variables and, where it is known, the truth.

    Attributes
    ----------
    p : ndarray of shape (n, K)
        Scores of all classes.
    y : ndarray
        Outcomes, 0 to K − 1.
    V : DataFrame or None
        Variables; text columns are categories.
    truth : ndarray or None
        P(y = 1), if it is known.
    part : ndarray or None
        Rows that intervals are judged on by themselves.
    """

    p: np.ndarray
    y: np.ndarray
    V: pd.DataFrame | None = None
    truth: np.ndarray | None = None
    part: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        V = None if self.V is None else self.V.iloc[rows].reset_index(drop=True)
        truth, part = (None if x is None else x[rows] for x in (self.truth, self.part))
        return Rows(self.p[rows], self.y[rows], V, truth, part)


def two(q: np.ndarray) -> np.ndarray:
    """Return the probabilities of both classes."""
    return np.column_stack([1 - q, q])


def split(rows: Rows, n: int, n_test: int, seed: int) -> tuple[Rows, Rows]:
    """Return n random rows to calibrate on, and n_test others, the same for every n."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    return rows.take(order[:n]), rows.take(order[len(order) - n_test :])


# Worlds: the logit of the truth, given six numbers in (−1, 1), one of 20 levels and the score's
# logit. Two more variables do not matter.
def _additive(v: np.ndarray, level: np.ndarray, z: np.ndarray) -> np.ndarray:
    levels = np.random.default_rng(7).normal(0, 0.3, 20)
    return 0.9 * z + 0.4 * v[:, 0] + 0.4 * np.sin(3 * v[:, 1]) + v[:, 2] ** 2 - 0.3 + levels[level]


def _jump(v: np.ndarray, level: np.ndarray, z: np.ndarray) -> np.ndarray:
    return z + 0.7 * np.sign(v[:, 0] - 0.3) + 0.6 * (np.abs(v[:, 1]) < 0.25) - 0.2


def _checkerboard(v: np.ndarray, level: np.ndarray, z: np.ndarray) -> np.ndarray:
    cells = np.floor(3 * (v[:, :2] + 1)).astype(int)
    return z + 0.7 * (-1.0) ** cells.sum(axis=1)


def _spikes(v: np.ndarray, level: np.ndarray, z: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(11)
    height = rng.choice([-1.5, 0.0, 1.5], (4, 4, 4), p=[0.15, 0.7, 0.15])
    cells = np.minimum(np.floor(2 * (v[:, :3] + 1)).astype(int), 3)
    return z + height[cells[:, 0], cells[:, 1], cells[:, 2]]


def _rings(v: np.ndarray, level: np.ndarray, z: np.ndarray) -> np.ndarray:
    return z + 0.9 * np.sin(5 * np.hypot(v[:, 0], v[:, 1]))


def _products(v: np.ndarray, level: np.ndarray, z: np.ndarray) -> np.ndarray:
    return z + 1.5 * v[:, 0] * v[:, 1] + 0.5 * v[:, 2] + 0.3 * z * v[:, 3]


WORLDS: dict[str, Eta] = {
    "none": lambda v, level, z: z,
    "additive": _additive,
    "jump": _jump,
    "checkerboard": _checkerboard,
    "spikes": _spikes,
    "rings": _rings,
    "products": _products,
}


def world(name: str, n: int, seed: int) -> Rows:
    """Draw rows of a world."""
    rng = np.random.default_rng([seed, 16])
    v = rng.uniform(-1, 1, (n, 6))
    tens, level = rng.integers(0, 10, n), rng.integers(0, 20, n)
    z = 1.4 * rng.normal(size=n) - (3.5 if name == "rare" else 0.3)
    truth = expit(WORLDS["none" if name == "rare" else name](v, level, z))
    V = pd.DataFrame(v, columns=[f"v{k}" for k in range(6)])
    V = V.assign(tens=tens.astype(float), level=np.char.add("L", level.astype(str)).astype(object))
    return Rows(two(expit(z)), (rng.random(n) < truth).astype(int), V, truth)


@cache
def world_test(name: str) -> Rows:
    """Return the rows that all calibrators of a world are judged on."""
    return world(name, TEST_ROWS, 10**6)


def world_and_test(name: str, n: int, seed: int) -> tuple[Rows, Rows]:
    """Return rows of a world to calibrate on, and those to judge on."""
    return world(name, n, seed), world_test(name)


def wide(n: int, n_columns: int, seed: int) -> Rows:
    """Draw rows with many numbers, three of which matter."""
    rng = np.random.default_rng([seed, 19])
    v = rng.normal(size=(n, n_columns))
    z = 1.5 * rng.normal(size=n)
    truth = expit(0.8 * z + 0.3 * v[:, 0] + 0.4 * np.sin(2 * v[:, 2]) + 0.3 * v[:, 1] * v[:, 3])
    V = pd.DataFrame(v, columns=[f"v{k}" for k in range(n_columns)])
    return Rows(two(expit(z)), (rng.random(n) < truth).astype(int), V, truth)


def wide_and_test(n: int, n_columns: int, seed: int) -> tuple[Rows, Rows]:
    """Return wide rows to calibrate on, and many others."""
    n_test = 100_000 if n_columns <= 20 else 10_000
    return wide(n, n_columns, seed), wide(n_test, n_columns, 10**6)


# Worlds for intervals: the score, four numbers, the truth, and rows to look at by themselves.
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


def _smooth(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    eta = 0.8 * z + 0.7 * np.sin(2 * v[:, 0]) + 0.6 * v[:, 1] ** 2 + 0.3 * z * v[:, 2]
    return expit(z), expit(eta), expit(eta) > 0.5


def _weak(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    truth = expit(z + 0.25 * v[:, 0] - 0.2 * np.cos(3 * v[:, 1]))
    return expit(z), truth, truth > 0.5


def _wavy(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    truth = expit(z + 0.8 * np.sin(2 * np.pi * v[:, 0]) + 0.4 * v[:, 1])
    return expit(z), truth, truth > 0.5


def _one_jump(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    truth = expit(z + 0.8 * np.sign(v[:, 0] - 0.3) + 0.3 * v[:, 1])
    return expit(z), truth, np.abs(v[:, 0] - 0.3) < 0.1


def _two_jumps(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    eta = z + 0.7 * np.sign(v[:, 0] - 0.3) + 0.9 * (np.abs(v[:, 1]) < 0.2) - 0.2
    near = (np.abs(v[:, 0] - 0.3) < 0.1) | (np.abs(np.abs(v[:, 1]) - 0.2) < 0.1)
    return expit(z), expit(eta), near


def _tree(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    side = np.where(v[:, 1] > -0.3, 1.1, -0.5)
    truth = expit(z + np.where(v[:, 0] > 0.2, side, np.where(v[:, 2] > 0.5, -1.2, 0.2)))
    return expit(z), truth, truth > 0.5


def _tree_of_score(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    high = np.where(v[:, 0] > 0.0, 1.6, np.where(v[:, 1] > 0.4, 0.2, 1.0))
    low = np.where(v[:, 2] > -0.2, -1.4, -0.3)
    truth = expit(np.where(z > 0.2, high, low))
    return expit(z), truth, truth > 0.5


def _votes(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    p = rng.binomial(20, expit(1.8 * z)) / 20
    return p, expit(logit(0.05 + 0.9 * p) + 0.5 * np.sin(2 * v[:, 0])), (p == 0) | (p == 1)


def _atoms(z: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> Drawn:
    p = rng.binomial(20, expit(1.8 * z)) / 20
    truth = np.select([p == 0, p == 1], [0.12, 0.8], 0.03 + 0.94 * p)
    return p, expit(logit(truth) + 0.3 * v[:, 0]), (p == 0) | (p == 1)


INTERVALS = {
    "smooth": _smooth, "weak": _weak, "wavy": _wavy, "jump": _one_jump, "jumps": _two_jumps,
    "tree": _tree, "tree of score": _tree_of_score, "votes": _votes, "atoms": _atoms,
}  # fmt: skip


def interval_world(name: str, n_cal: int, seed: int) -> tuple[Rows, Rows]:
    """Draw rows of a world for intervals: to calibrate on, and 2,000 others."""
    rng = np.random.default_rng([seed, 18])
    n = n_cal + 2_000
    z, v = 1.3 * rng.normal(size=n) - 0.3, rng.uniform(-1, 1, (n, 4))
    p, truth, part = INTERVALS[name](z, v, rng)
    V = pd.DataFrame(v, columns=[f"v{k}" for k in range(4)])
    drawn = Rows(two(p), (rng.random(n) < truth).astype(int), V, truth, part)
    return drawn.take(np.arange(n_cal)), drawn.take(np.arange(n_cal, n))


@cache
def paper(name: str) -> Rows:
    """Return the outputs of one of the paper's models, and the variables."""
    table = pd.read_csv(f"{os.environ['VARCAL_PAPER_DATA']}/{name}_out.csv.gz")
    if name == "cardio":
        table = table[table["age"] > 32].reset_index(drop=True)
    p = table[[f"prob_{k}" for k in range(10 if name == "cifar" else 2)]].to_numpy(float)
    return Rows(p, table["actual"].to_numpy().astype(int), table[PAPER[name][0]].astype(float))


@cache
def _beta_of_paper(name: str) -> np.ndarray:
    rows = paper(name)
    logs = np.log(np.clip(rows.p, 1e-6, 1))
    return LogisticRegression(C=1e6, max_iter=1000).fit(logs, rows.y).predict_proba(logs)[:, 1]


def calibrated(name: str, n: int, seed: int) -> tuple[Rows, Rows]:
    """Return rows whose scores are true probabilities: of the paper's models or of a world."""
    if name in WORLDS or name == "rare":
        return world_and_test(name, n, seed)
    truth = _beta_of_paper(name)
    y = (np.random.default_rng([seed, 9]).random(len(truth)) < truth).astype(int)
    return split(Rows(two(truth), y, paper(name).V, truth), n, 6_000, seed)
