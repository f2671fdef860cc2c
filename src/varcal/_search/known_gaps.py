"""What is known already and taken off before a search: the overall gap, or that along variables.

Log-odds are moved by an additive model of cells, Uβ. The fit takes most of the residuals along U;
simulated residuals must lose that part as well. Each column of them is reduced by its own first
step of the fit, v·U(UᵀVU)⁻¹Uᵀe, and all are scaled to the sum of squares of the data, because a fit
also takes some of the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from varcal._arrays import Bools, Floats, Ints, Singles
from varcal._search.cells import Grid

#: Ridge of the additive model, in rows; it keeps small cells from infinite log-odds.
RIDGE = 0.5
#: Steps of the fit at most, and the step below which it ends. Scores of 0 and 1 take up to 18 steps
#: on the outputs of the paper, others about five.
_MOST_STEPS, _SMALL = 200, 1e-6
#: Distance from 0 and 1 at which log-odds are taken.
_EPS = 1e-12
#: Columns of simulated outcomes that the scale is estimated from.
_TRIED = 8


@dataclass(frozen=True, eq=False)
class Explained:
    """Scores with known gaps taken off.

    Attributes
    ----------
    score : ndarray
        The adjusted probability of the claim.
    design : csr_array
        The columns of the additive model, U.
    weight : ndarray
        The weight of each row.
    scale : float
        The factor of simulated residuals.
    """

    score: Floats
    design: Any
    weight: Floats
    scale: float = 1.0

    @cached_property
    def _variance(self) -> Floats:
        found: Floats = self.weight * self.score * (1 - self.score)
        return found

    @cached_property
    def _factor(self) -> Any:
        return cho_factor(_information(self.design, self._variance))

    def removed_from(self, e: Singles) -> Singles:
        """Take the part along the design off columns of residuals, and scale them."""
        beta = cho_solve(self._factor, self.design.T @ e.astype(np.float64))
        found = e - (self.design @ beta) * self._variance[:, None]
        return (self.scale * found).astype(np.float32)


def fit(design: Any, score: Floats, hit: Bools, weight: Floats) -> Explained:
    """Fit an additive model of log-odds to the gap of a claim.

    Examples
    --------
    >>> hit = np.array([True, True, False, True])
    >>> found = fit(overall_design(np.zeros(4, np.intp)), np.full(4, 0.5), hit, np.ones(4))
    >>> bool(0.6 < found.score[0] < 0.75)
    True
    """
    from scipy.special import expit  # noqa: PLC0415  only a search needs it

    from varcal.calibrators.regression import minimize_convex  # noqa: PLC0415  loads sklearn

    s0 = np.clip(score, _EPS, 1 - _EPS)
    odds = np.log(s0 / (1 - s0))
    total = float(weight.sum())

    def evaluate(beta: Floats) -> tuple[Floats, Callable[[], Floats]]:
        s = expit(odds + design @ beta)
        slope = (design.T @ (weight * (s - hit)) + RIDGE * beta) / total

        def solve() -> Floats:
            step: Floats = cho_solve(
                cho_factor(_information(design, weight * s * (1 - s))), slope * total
            )
            return step

        return slope, solve

    def loss(beta: Floats) -> float:
        eta = odds + design @ beta
        surprise = np.logaddexp(0.0, np.where(hit, -eta, eta))
        return float(weight @ surprise + RIDGE / 2 * (beta @ beta)) / total

    start = np.zeros(design.shape[1])
    beta, _, _ = minimize_convex(
        evaluate, loss, start, tol=0.0, max_iter=_MOST_STEPS, last_step=_SMALL
    )
    s = expit(odds + design @ beta)
    found = Explained(s, design, weight)
    return Explained(s, design, weight, _scale(found, hit))


def overall_design(side: Ints) -> Any:
    """Return one column per predicted side; all rows may be on one side."""
    n = len(side)
    from scipy.sparse import csr_array  # noqa: PLC0415  only a search needs it

    return csr_array((np.ones(n), side, np.arange(n + 1)), shape=(n, int(side.max()) + 1))


def single_design(grid: Grid, side: Ints) -> Any:
    """Return one column per coarse cell of each variable and predicted side."""
    n_sides = int(side.max()) + 1
    places, offset = [], 0
    for axis, line in zip(grid.axes, grid.coarse, strict=True):
        places.append(offset + line.astype(np.intp) * n_sides + side)
        offset += (len(axis.coarse) - 1) * n_sides
    index = np.column_stack(places)
    n, d = index.shape
    from scipy.sparse import csr_array  # noqa: PLC0415  only a search needs it

    return csr_array((np.ones(n * d), index.ravel(), np.arange(0, n * d + 1, d)), shape=(n, offset))


def _information(design: Any, variance: Floats) -> Floats:
    weighted = design.multiply(variance[:, None]).tocsr()
    found: Floats = (design.T @ weighted).toarray()
    found[np.diag_indices_from(found)] += RIDGE
    return found


def _scale(found: Explained, hit: Bools) -> float:
    """Return the ratio of the sizes of observed and simulated residuals."""
    rng = np.random.default_rng(0)
    s, w = found.score, found.weight
    drawn = rng.random((len(s), _TRIED)) < s[:, None]
    e = (w[:, None] * (drawn - s[:, None])).astype(np.float32)
    simulated = float((found.removed_from(e).astype(np.float64) ** 2).sum()) / _TRIED
    observed = float(((w * (hit - s)) ** 2).sum())
    return float(np.sqrt(observed / simulated)) if simulated > 0 else 1.0
