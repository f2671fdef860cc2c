"""Rows for the growth benchmark: five worlds whose truth is known, diamonds, and flights.

Worlds have eight variables: six numbers, one with ten values, and a category of twenty levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from real_tables import DIAMOND, FLIGHT, whole_table

#: Rows of a world that calibrators are judged on.
TEST_ROWS = 60_000
#: Rows of a table that its model is trained on, and that calibrators are judged on.
TRAIN_ROWS = {"diamonds": 2_500, "flights": 10_000}
TABLE_TEST_ROWS = {"diamonds": 15_000, "flights": 60_000}


@dataclass(frozen=True)
class Rows:
    """Scores, outcomes, variables and, where it is known, the truth.

    Attributes
    ----------
    p, y : ndarray
        Scores of the second class, and outcomes.
    V : DataFrame
        Variables; text columns are categories.
    truth : ndarray
        The probability of the second class; the outcome where it is not known.
    """

    p: np.ndarray
    y: np.ndarray
    V: pd.DataFrame
    truth: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.p[rows], self.y[rows], self.V.iloc[rows], self.truth[rows])


def _none(v: np.ndarray, level: np.ndarray, z: np.ndarray) -> np.ndarray:
    return z


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


WORLDS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "none": _none,
    "additive": _additive,
    "jump": _jump,
    "checkerboard": _checkerboard,
    "spikes": _spikes,
}
NAMES = (*WORLDS, "diamonds", "flights, random", "flights, by date")


def _world(name: str, n: int, seed: int) -> Rows:
    rng = np.random.default_rng([seed, 16])
    v = rng.uniform(-1, 1, (n, 6))
    tens, level = rng.integers(0, 10, n), rng.integers(0, 20, n)
    z = 1.4 * rng.normal(size=n) - 0.3
    truth = expit(WORLDS[name](v, level, z))
    V = pd.DataFrame(v, columns=[f"v{k}" for k in range(6)])
    V = V.assign(tens=tens.astype(float), level=np.char.add("L", level.astype(str)))
    return Rows(expit(z), (rng.random(n) < truth).astype(int), V, truth)


@cache
def _world_test(name: str) -> Rows:
    return _world(name, TEST_ROWS, 10**6)


@cache
def _table(name: str) -> tuple[Rows, np.ndarray]:
    """Return the rows of a table that its model has not seen, and the date of each."""
    table = whole_table("ggplot2/diamonds" if name == "diamonds" else "flights")
    if name == "diamonds":
        y, columns = (table["price"] > 2400).astype(int), DIAMOND
        model, dates = GaussianNB(), np.arange(len(table))
    else:
        y, columns = (table["arr_delay"] > 10).astype(int), FLIGHT
        model = HistGradientBoostingClassifier(random_state=0)
        dates = (31 * table["month"] + table["day"]).to_numpy()
    X = table[columns]
    codes = X.apply(lambda c: c if c.dtype.kind in "if" else pd.factorize(c, sort=True)[0])
    n = TRAIN_ROWS[name]
    # On busy cores the threads of a boosted model wait for one another.
    with threadpool_limits(1):
        p = model.fit(codes[:n], y[:n]).predict_proba(codes[n:])[:, 1]
    p = np.clip(p, 1e-12, 1 - 1e-12)
    V = X[n:].apply(lambda c: c.astype(float) if c.dtype.kind in "if" else c.astype(str))
    outcome = y[n:].to_numpy()
    return Rows(p, outcome, V.reset_index(drop=True), outcome.astype(float)), dates[n:]


def draw(name: str, n: int, seed: int) -> tuple[Rows, Rows] | None:
    """Return rows to calibrate and rows to test on, or None if the table has too few."""
    if name in WORLDS:
        return _world(name, n, seed), _world_test(name)
    rows, dates = _table(name.partition(",")[0])
    rng = np.random.default_rng([seed, 17])
    if name.endswith("by date"):
        days = rng.permutation(np.unique(dates))
        first = np.isin(dates, days[: len(days) // 2])
        cal, test = (rng.permutation(np.flatnonzero(part)) for part in (first, ~first))
    else:
        order = rng.permutation(len(dates))
        held = TABLE_TEST_ROWS[name.partition(",")[0]]
        cal, test = order[held:], order[:held]
    if len(cal) < n:
        return None
    return rows.take(cal[:n]), rows.take(test[: TABLE_TEST_ROWS[name.partition(",")[0]]])
