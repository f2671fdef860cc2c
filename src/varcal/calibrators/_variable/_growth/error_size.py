r"""How far predictions are from the truth on average, measured on held-out rows.

A posterior variance does not know the bias that shrinkage and early stopping leave. Residuals do:
if the logits of all rows of a cell are wrong by Δ, the products of the residuals of two different
rows have the mean :math:`w_i w_j \Delta^2`, with :math:`w = q (1 - q)`, because outcomes are
independent and neither row had a part in the other's prediction (both are of the same fold). So

.. math:: \hat{\sigma}^2 = \frac{\sum_c (R_c^2 - \sum_i r_i^2) / W_c}
                               {\sum_c (W_c^2 - \sum_i w_i^2) / W_c}

estimates the mean square of Δ, as far as the error does not change within cells. It is measured
over cells of single variables, of pairs and of triples of those that the second stage uses most,
and the largest counts: cells that cut across an error show a part of it only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from scipy.special import expit

from varcal._arrays import Floats, Ints, ratio_or_zero
from varcal.calibrators._variable._growth.blend import Held
from varcal.calibrators._variable._growth.grow_tree import Codes

__all__ = ["error_variance"]

# Tuned constants; ../README.md tells how they were chosen.

#: Variables whose pairs and triples are looked at.
LOOKED_AT = 4
#: The mean weight W of the smallest cells, which hold about three rows each.
CELL_WEIGHT = 0.6
#: Cells of one variable, as shares of the largest number of them.
SHARES = (1.0, 0.75, 0.5)
#: What is found is multiplied by this: where the truth was known, cells showed between 36 and 65 %
#: of the mean square of strong interactions, because errors change within them.
UNSEEN = 2.0


def error_variance(
    rows: Held, eta: Floats, codes: Codes, sizes: Sequence[int], most_used: Sequence[int]
) -> float:
    """Return the mean squared error of logits.

    Parameters
    ----------
    rows : Held
        Outcomes and folds.
    eta : ndarray
        The predictor of each row by a model that has not seen its fold.
    codes : ndarray of shape (d, n)
        The cells of the rows; those of categories in order of their outcomes.
    sizes : sequence of int
        The number of cells of each variable.
    most_used : sequence of int
        Variables, the one that matters most first.

    Examples
    --------
    >>> from varcal.calibrators._variable.folds import Folds
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(8, size=(2, 20_000)).astype(np.uint8)
    >>> error = np.where((codes[0] + codes[1]) % 2, 0.5, -0.5)
    >>> y = (rng.random(20_000) < expit(error)).astype(float)
    >>> rows = Held(y, np.ones(20_000), Folds(np.arange(20_000) % 3, 3))
    >>> found = error_variance(rows, np.zeros(20_000), codes, [8, 8], [0, 1])
    >>> bool(abs(found / UNSEEN - 0.25) < 0.05)
    True
    """
    judged = rows.folds.judged()
    mean, mass, fold = expit(eta[judged]), rows.mass[judged], rows.folds.fold[judged]
    residual, weight = rows.y[judged] - mean, mean * (1.0 - mean)
    chosen = list(most_used)[:LOOKED_AT]
    found = 0.0
    for number in (1, 2, 3):
        most = (float(mass @ weight) / rows.folds.k / CELL_WEIGHT) ** (1 / number)
        for some, share in product(combinations(chosen, number), SHARES):
            cell = fold.astype(np.intp)
            for k in some:
                side = int(np.clip(share * most, 2, sizes[k]))
                cell = cell * side + codes[k][judged].astype(np.intp) * side // sizes[k]
            found = max(found, _mean_square(cell, residual, weight, mass))
    return UNSEEN * found


def _mean_square(cell: Ints, residual: Floats, weight: Floats, mass: Floats) -> float:
    _, cell = np.unique(cell, return_inverse=True)
    parts = (mass * residual, mass * weight, mass * residual**2, mass * weight**2)
    R, W, own_R, own_W = (np.bincount(cell, each).astype(float) for each in parts)
    pairs = np.maximum(W**2 - own_W, 0.0)
    below = float(ratio_or_zero(pairs, W).sum())
    if below <= 0:
        return 0.0
    # The largest of several estimates is too large by about its standard error.
    error = float(np.sqrt(2.0 * ratio_or_zero(pairs, W**2).sum()))
    return (float(ratio_or_zero(R**2 - own_R, W).sum()) - error) / below
