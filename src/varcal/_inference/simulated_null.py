"""Null distributions from simulated hits, for outcomes that are too sparse for moments.

Hits are drawn for each row if there are few rows, and otherwise for each cell from its sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from varcal._arrays import Floats, Singles, ratio_or_zero
from varcal._inference.error_sums import ErrorSums
from varcal._inference.multiplicity import cauchy
from varcal._inference.quadratic_forms import Form
from varcal._inference.scored_rows import ScoredRows

#: Hits are simulated if the sum of s(1 − s) in some bin is below this.
SPARSE_VARIANCE = 5.0
#: The largest number of draws times rows in a simulation.
SIMULATION_BUDGET = 2_000_000
#: Fewer draws than this are too inaccurate; above 10,000 rows hits are drawn by cell.
FEWEST_DRAWS = 200
#: The largest number of draws.
MOST_DRAWS = 2_000
#: With a constant gap, an estimated gap is shrunk towards 0 as if by this many rows, and a
#: probability is at least this part of its score: where no hit was seen, some could have been.
SHRINK_ROWS, LEAST_PROBABILITY = 5.0, 0.1
#: The largest number of trials of a binomial law; with more it is a Poisson law to all digits.
MOST_TRIALS = 2.0**40
#: Numbers drawn together: one block of hits stays in the processor's cache.
BLOCK = 2**18
#: If fewer draws than this exceed the observed statistic, the p-value comes from a fitted tail.
FEWEST_EXCEEDANCES = 20
#: The tail is fitted to the largest 1/TAIL_SHARE of the draws.
TAIL_SHARE = 10
#: A simulated statistic counts as equal to the observed one if it is lower by at most this: the
#: draws are summed in single precision.
SAME_STATISTIC = 1e-3
#: The smallest p-value that is ever returned.
LEAST_P = 1e-300


def is_sparse(cells: ErrorSums) -> bool:
    """Tell whether the expected variance of some bin with rows is small."""
    v = ratio_or_zero(cells.null2 * cells.n, cells.weight2)
    return bool((v[cells.n > 0] < SPARSE_VARIANCE).any())


def draws_for(rows: ScoredRows) -> int:
    """Return the number of draws of rows: 0 for more than 10,000 rows."""
    draws = int(SIMULATION_BUDGET / max(len(rows.score), 1))
    return min(draws, MOST_DRAWS) if draws >= FEWEST_DRAWS else 0


def draw_hits(probability: Floats, draws: int, seed: int) -> Iterator[Singles]:
    """Draw Bernoulli hits, in blocks of draws that need little memory."""
    rng = np.random.default_rng(seed)
    p = probability.astype(np.float32)
    block = max(1, BLOCK // max(len(p), 1))
    for start in range(0, draws, block):
        size = (min(block, draws - start), len(p))
        yield (rng.random(size, dtype=np.float32) < p).astype(np.float32)


def simulate(rows: ScoredRows, forms: list[Form], hits: Iterable[Singles]) -> Floats:
    """Return the p-values that moment matching gives to simulated hits."""
    w = np.ones_like(rows.score) if rows.weight is None else rows.weight
    designs = []
    for form, index in zip(forms, (rows.coarse, rows.fine), strict=False):
        design = w[:, None] * form.loading[rows.coarse if index is None else index]
        designs.append((design.astype(np.float32), rows.score @ design))
    return np.concatenate(
        [
            cauchy(
                [
                    form.tail(((block @ design - center) ** 2).sum(-1))
                    for form, (design, center) in zip(forms, designs, strict=True)
                ]
            )
            for block in hits
        ]
    )


def draw_cells(cells: ErrorSums, draws: int, seed: int, *, constant: bool = False) -> Floats:
    r"""Draw the sums ``we`` of cells from their sums of scores, of shape (draws, cells).

    The number of hits of a cell, or of misses if they are rarer, is a sum of Bernoulli variables
    with the mean :math:`\mu = \sum s` and the variance :math:`\sum s(1 - s)`. It is drawn from
    the binomial law with the same two moments, of
    :math:`\mu^2 / \sum s^2` trials, which is exact for equal scores and very close for rare hits.
    All rows of a cell have the weight that gives their sum its variance and fourth cumulant.
    With ``constant`` the gap is not 0 but the overall gap, shrunk as if by `SHRINK_ROWS` rows.
    """
    unit2 = ratio_or_zero(cells.weight2, cells.n)
    unit2 = np.maximum(unit2, ratio_or_zero(cells.fourth, cells.null2))  # squared weight of a row
    rows, mean, v = (ratio_or_zero(x, unit2) for x in (cells.weight2, cells.score2, cells.null2))
    if constant:
        total = float(cells.effective_n)
        gap = float(cells.overall) * total / (total + SHRINK_ROWS)
        shifted = np.clip(
            mean - gap * rows,
            LEAST_PROBABILITY * mean,
            rows - LEAST_PROBABILITY * (rows - mean),
        )
        g = ratio_or_zero(mean - shifted, rows)
        v = np.maximum(v + g * (2 * mean - rows) - g**2 * rows, LEAST_PROBABILITY * v)
        mean = shifted
    rare = np.minimum(mean, rows - mean)
    trials = ratio_or_zero(rare**2, np.maximum(rare - v, rare**2 / MOST_TRIALS))
    trials = np.maximum(np.rint(trials), np.ceil(rare))
    p = np.clip(ratio_or_zero(rare, trials), 0.0, 1.0)
    rng = np.random.default_rng(seed)
    size = (len(p), draws)  # numbers with the same law in a row are drawn faster
    drawn = rng.binomial(trials.astype(np.int64)[:, None], p[:, None], size).astype(np.float64)
    side = np.where(mean <= rows - mean, 1.0, -1.0)
    sums: Floats = (side * np.sqrt(unit2))[:, None] * (drawn - rare[:, None])
    return sums.T


def tail_p(observed: Floats, null: Floats) -> Floats:
    """Return the p-value of an observed statistic among simulated ones, large being extreme.

    It is ``(1 + exceedances) / (1 + draws)``. If fewer than 20 draws exceed the statistic, it
    comes from an exponential tail fitted to the largest tenth of the draws.
    """
    draws = len(null)
    exceed = int((null >= observed - SAME_STATISTIC).sum())
    if exceed >= FEWEST_EXCEEDANCES or draws < FEWEST_DRAWS:
        return np.asarray((1 + exceed) / (1 + draws))
    top = np.sort(null)[-(draws // TAIL_SHARE) :]
    scale = max(float((top - top[0]).mean()), SAME_STATISTIC)
    p = len(top) / draws * np.exp(-(observed - top[0]) / scale)
    return np.asarray(np.maximum(p, LEAST_P))
