r"""What smooth effects leave out: the bias that intervals must allow for.

Penalties are learned for smooth curves. Where an effect jumps, or a score of exactly 0 means
something else than the scores near it, the curve passes between, and the posterior of its
coefficients does not know. With residuals r, working weights W and the covariance V of the fit,

.. math:: \operatorname{Cov} r = P = W - W X V X^\top W

if the model holds. Let C be the indicators of fine cells of one variable, with effects
:math:`b \sim N(0, \tau^2 I)` beside the model, and :math:`M = C^\top P C`. The score equation
of :math:`\tau^2` at 0 gives

.. math:: \hat\tau^2 = \frac{\lVert C^\top r \rVert^2 - \operatorname{tr} M
          - k \sqrt{2 \operatorname{tr} M^2}}{\operatorname{tr} M^2}

where k standard errors are taken off, because most variables have no such effect. The second
moment of b in each cell, given the residuals, is added to the variance of η.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal.calibrators._variable._columns.design import SCORE

# Tuned constants, chosen by `intervals` in the benchmark on seeds from 100 on: at jumps the
# coverage must be at least 90 %, in smooth worlds 93 %, with the least width.

#: Rows per cell, and cells at most. With 60 and 24, jumps lose 2 points of coverage.
CELL_ROWS = 40.0
MOST_CELLS = 32
#: k, the standard errors that are taken off what residuals show. With 1, jumps of 1,000 rows have
#: a coverage of 88 %; with 0.5, intervals in smooth worlds are a tenth wider.
DOUBT = 0.6

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Roughness:
    """The extra variance of η along the score and the variables.

    Attributes
    ----------
    variables : tuple of int
        The variables that have any, −1 for the score.
    cuts : tuple of ndarray
        The cells of each: a value v is in cell #{cut < v}; missing values have none.
    variances : tuple of ndarray
        The extra variance in each cell.
    """

    variables: tuple[int, ...]
    cuts: tuple[Floats, ...]
    variances: tuple[Floats, ...]

    @classmethod
    def none(cls) -> Roughness:
        """Return no extra variance."""
        return cls((), (), ())

    def variance(self, z: Floats, columns: list[AnyArray]) -> Floats:
        """Return the extra variance of each row."""
        total = np.zeros(len(z))
        for k, cuts, variances in zip(self.variables, self.cuts, self.variances, strict=True):
            values = z if k == SCORE else columns[k]
            cell = np.searchsorted(cuts, values)
            total += np.where(np.isnan(values), 0.0, variances[cell])
        return total


def fit_roughness(
    numbers: dict[int, Floats], X: Floats, V: Floats, residual: Floats, weight: Floats
) -> Roughness:
    """Estimate the extra variance.

    Parameters
    ----------
    numbers : dict of int to ndarray
        The values of each numeric variable, and of the score.
    X, V : ndarray
        The columns of the fitted model, and the covariance of its coefficients.
    residual, weight : ndarray
        Residuals and working weights.
    """
    from scipy.sparse import csr_matrix  # noqa: PLC0415  only a fit needs it

    found = []
    for k, values in numbers.items():
        rows = np.flatnonzero(~np.isnan(values))
        cuts = _cuts(np.sort(values[rows]))
        cell, n_cells = np.searchsorted(cuts, values[rows]), len(cuts) + 1
        r = np.bincount(cell, residual[rows], minlength=n_cells)
        w = np.bincount(cell, weight[rows], minlength=n_cells)
        sums = csr_matrix((weight[rows], (cell, rows)), shape=(n_cells, len(X))) @ X
        M = np.diag(w) - sums @ V @ sums.T
        square = max(float((M**2).sum()), _TINY)
        excess = float(r @ r) - float(np.trace(M)) - DOUBT * np.sqrt(2.0 * square)
        if excess > 0:
            spread = 1.0 / (square / excess + np.maximum(np.diag(M), 0.0))
            found.append((k, cuts, (spread * r) ** 2 + spread))
    return Roughness(
        tuple(k for k, _, _ in found),
        tuple(cuts for _, cuts, _ in found),
        tuple(variances for _, _, variances in found),
    )


def _cuts(known: Floats) -> Floats:
    """Return the cuts between cells of about equally many rows, given sorted values.

    A value that fills a whole cell has a cell of its own.

    >>> _cuts(np.repeat([0.0, 1.0, 2.0], [80, 1, 80])).round(3)
    array([0., 2.])
    """
    n_cells = int(np.clip(len(known) / CELL_ROWS, 1, MOST_CELLS))
    ends = known[(np.arange(1, n_cells + 1) * len(known)) // n_cells - 1]
    atoms = ends[1:][ends[1:] == ends[:-1]]
    cuts = np.unique(np.append(ends, np.nextafter(atoms, -np.inf)))
    return cuts[(cuts >= known[0]) & (cuts < known[-1])]
