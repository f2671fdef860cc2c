"""Histories of batches with known truth, summed by cell, for `simulate_monitor.py`.

Rows are drawn one by one and summed by a compiled loop (the `fast` extra); what a bet gains comes
from `log_gains` of the library, looked up by score, outcome and weight. Scores take 512
values. Each row has five variables of ten equally frequent bins; cell 0 is all rows.
"""

# ruff: noqa: NPY002  the legacy generator is the faster one in compiled loops
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from scipy import stats

import internals

VARIABLES, BINS, LEVELS = 5, 10, 512
CELLS = 1 + VARIABLES * BINS
#: The cell that changes: the fourth bin of the first variable.
CHANGED = 4
PART = np.array([0.2] + [0.8 / (CELLS - 1)] * (CELLS - 1))
#: Sums by row: n, weight, weight², hit, score, weight² · error, weight² · error², null variance.
_N_SUMS = 8


def quantiles(law) -> np.ndarray:
    """Return the scores: evenly spaced quantiles of a law."""
    return law.ppf((np.arange(LEVELS) + 0.5) / LEVELS)


@dataclass(frozen=True, eq=False)
class World:
    """A population of rows.

    Attributes
    ----------
    score : ndarray
        The scores, equally frequent.
    shift : callable
        From the number of the batch to what is added to the probability, by cell of the first
        variable (the last entry is for all rows).
    correlation : float
        Of the variables, through a normal copula.
    weights : tuple of float
        Equally frequent weights.
    """

    score: np.ndarray = field(default_factory=lambda: quantiles(stats.beta(1, 2)))
    shift: Callable[[int], np.ndarray] = lambda t: np.zeros(BINS + 1)
    correlation: float = 0.0
    weights: tuple[float, ...] = (1.0,)


def calm(t: int) -> np.ndarray:
    """Return no shift at any batch."""
    return np.zeros(BINS + 1)


def change(size: float, *, everywhere: bool = False, at: int = 200) -> Callable[[int], np.ndarray]:
    """Return a shift that begins after batch `at`, in one bin or everywhere."""

    def shift(t: int) -> np.ndarray:
        found = np.zeros(BINS + 1)
        if t > at:
            found[BINS if everywhere else CHANGED - 1] = size
        return found

    return shift


class Batches:
    """Batches of several histories at once.

    Parameters
    ----------
    world : World
        The population.
    histories, rows : int
        Histories, and rows per batch.
    limit : float
        Of the bets.
    seed : int
        Random seed.
    """

    def __init__(self, world: World, histories: int, rows: int, limit: float, seed: int) -> None:
        self.world, self.histories, self.rows = world, histories, rows
        self.cap = max(world.weights)
        tables = [
            internals.log_gains(
                world.score,
                np.full(LEVELS, bool(hit)),
                np.full(LEVELS, weight / self.cap),
                limit,
            )
            for weight in world.weights
            for hit in (0, 1)
        ]
        self.gains = np.stack(tables).reshape(len(world.weights), 2, LEVELS, -1)
        self.edges = stats.norm.ppf(np.arange(1, BINS) / BINS)
        _seed(seed)

    def draw(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sums and gains of batch t: (histories, sides, cells, sums or bets)."""
        sums = np.zeros((self.histories, 2, CELLS, _N_SUMS))
        gains = np.zeros((self.histories, 2, CELLS, 2 * len(internals.STAKES)))
        world = self.world
        _draw(
            self.rows,
            world.score,
            world.shift(t),
            np.sqrt(world.correlation),
            np.sqrt(1 - world.correlation),
            self.edges,
            np.array(world.weights),
            self.gains,
            sums,
            gains,
        )
        return sums, gains

    def moments(self, sums: np.ndarray, gains: np.ndarray, *, claims: int = 1) -> Any:
        """Return the moments of the risk, or of the risk and the confidence side by side."""
        found = [self._of(sums.sum(axis=1), gains.sum(axis=1))]
        if claims == 2:
            turned = sums.copy()
            turned[:, 0, :, 3] = sums[:, 0, :, 1] - sums[:, 0, :, 3]
            turned[:, 0, :, 4] = sums[:, 0, :, 1] - sums[:, 0, :, 4]
            turned[:, 0, :, 5] *= -1
            half = len(internals.STAKES)
            flipped = gains.copy()
            flipped[:, 0] = np.roll(gains[:, 0], half, axis=-1)
            found.append(self._of(turned.sum(axis=1), flipped.sum(axis=1)))
        joined = {
            name: np.concatenate([getattr(one, name) for one in found], axis=1)
            for name in ("error2", "weight2", "top", "gains")
        }
        return internals.Moments(np.concatenate([one.sums for one in found], axis=2), **joined)

    def _of(self, sums: np.ndarray, gains: np.ndarray) -> Any:
        n, weight, weight2, hit, score, error2, square2, _ = np.moveaxis(sums, -1, 0)
        top = np.full(n.shape, self.cap)
        shaped = gains.reshape(*gains.shape[:-1], 2, len(internals.STAKES))
        added = np.stack([n, weight, hit, score, square2])
        return internals.Moments(added, error2, weight2, top, shaped)


@numba.njit(cache=True)
def _seed(seed):
    np.random.seed(seed)


@numba.njit(cache=True)
def _draw(rows, score, shift, common, own, edges, weights, table, sums, gains):
    cells = np.zeros(1 + VARIABLES, np.int64)
    for history in range(sums.shape[0]):
        for _ in range(rows):
            if common > 0.0:
                shared = common * np.random.standard_normal()
                for j in range(VARIABLES):
                    z = shared + own * np.random.standard_normal()
                    k = 0
                    while k < BINS - 1 and z > edges[k]:
                        k += 1
                    cells[1 + j] = 1 + j * BINS + k
            else:
                draw = np.random.randint(BINS**VARIABLES)
                for j in range(VARIABLES):
                    cells[1 + j] = 1 + j * BINS + draw % BINS
                    draw //= BINS
            k = np.random.randint(LEVELS)
            s = score[k]
            p = s + shift[cells[1] - 1] + shift[BINS]
            h = 1 if np.random.random() < p else 0
            w = np.random.randint(weights.size) if weights.size > 1 else 0
            u = weights[w]
            x = h - s
            side = 1 if s > 0.5 else 0
            for c in cells:
                total = sums[history, side, c]
                total[0] += 1.0
                total[1] += u
                total[2] += u * u
                total[3] += u * h
                total[4] += u * s
                total[5] += u * u * x
                total[6] += u * u * x * x
                total[7] += u * u * s * (1.0 - s)
                bets = gains[history, side, c]
                for b in range(bets.size):
                    bets[b] += table[w, h, k, b]


@numba.njit(cache=True)
def adwin_history(seed, rows, score, shifts, delta):
    """Return the first batch at which an ADWIN of any cell sees a change; 0 if none does.

    Bifet and Gavaldà (2007), with five buckets a level, on the errors of the rows of each cell;
    cuts are tried after every 32nd row.
    """
    np.random.seed(seed)
    most, per = 24, 6
    number = np.zeros((CELLS, most), np.int64)
    total = np.zeros((CELLS, most, per))
    square = np.zeros((CELLS, most, per))
    seen = np.zeros(CELLS, np.int64)
    cells = np.zeros(1 + VARIABLES, np.int64)
    for t in range(1, shifts.shape[0]):
        for _ in range(rows):
            draw = np.random.randint(BINS**VARIABLES)
            for j in range(VARIABLES):
                cells[1 + j] = 1 + j * BINS + draw % BINS
                draw //= BINS
            s = score[np.random.randint(LEVELS)]
            p = s + shifts[t, cells[1] - 1] + shifts[t, BINS]
            x = (1.0 if np.random.random() < p else 0.0) - s
            for c in cells:
                seen[c] += 1
                total[c, 0, number[c, 0]] = x
                square[c, 0, number[c, 0]] = x * x
                number[c, 0] += 1
                level = 0
                while number[c, level] == per:
                    k = number[c, level + 1]
                    total[c, level + 1, k] = total[c, level, 0] + total[c, level, 1]
                    square[c, level + 1, k] = square[c, level, 0] + square[c, level, 1]
                    number[c, level + 1] += 1
                    for i in range(2, per):
                        total[c, level, i - 2] = total[c, level, i]
                        square[c, level, i - 2] = square[c, level, i]
                    number[c, level] -= 2
                    level += 1
                if seen[c] % 32 == 0:
                    n_all, sum_all, square_all = 0.0, 0.0, 0.0
                    for i in range(most):
                        for k in range(number[c, i]):
                            n_all += 2.0**i
                            sum_all += total[c, i, k]
                            square_all += square[c, i, k]
                    mean = sum_all / n_all
                    variance = square_all / n_all - mean * mean
                    odds = np.log(2.0 * np.log(n_all) / delta)
                    n0, sum0 = 0.0, 0.0
                    for i in range(most - 1, -1, -1):
                        for k in range(number[c, i]):
                            n0 += 2.0**i
                            sum0 += total[c, i, k]
                            n1 = n_all - n0
                            if n0 < 5 or n1 < 5:
                                continue
                            m = 1.0 / (1.0 / n0 + 1.0 / n1)
                            cut = np.sqrt(2.0 / m * variance * odds) + 2.0 / 3.0 / m * odds
                            if abs(sum0 / n0 - (sum_all - sum0) / n1) > cut:
                                return t
    return 0
