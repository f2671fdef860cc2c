r"""Which pairs of variables interact: screened by score tests, admitted on held-out rows.

For the columns T of a pair and a fitted model with residuals r, working weights W and posterior
covariance V, the score of a variance component for T at zero is

.. math:: \lVert T^\top r \rVert^2 - \operatorname{tr} M, \qquad
          M = T^\top W T - T^\top W X\, V\, X^\top W T,

and over :math:`\sqrt{2 \operatorname{tr} M^2}` it is roughly standard normal where nothing is
missing. The pairs with the largest scores are then tried on held-out rows.
"""

from __future__ import annotations

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators._variable._columns.design import Block, Design, group_numbers
from varcal.calibrators._variable._reml.fit_gam import fit_gam
from varcal.calibrators._variable._reml.losses import Loss
from varcal.calibrators._variable.folds import Folds
from varcal.calibrators._variable.gain import LEAST_ERROR, Gain, gain_of

#: Pairs whose products are held in memory together.
SCREENED_TOGETHER = 32


def pair_scores(
    design: Design,
    factors: dict[int, AnyArray],
    X: Floats,
    eta: Floats,
    V: Floats,
    loss: Loss,
    pairs: list[tuple[int, int]],
) -> Floats:
    """Return the standardized score of each pair.

    Parameters
    ----------
    design : Design
        How pairs become columns.
    factors : dict of int to ndarray
        The columns of every variable that enter products.
    X, eta, V, loss
        The fitted model without the pairs: columns, predictor, posterior covariance, loss.
    pairs : list of (int, int)
        The pairs to score.
    """
    # Single precision is enough to rank pairs.
    residual, weight = (each.astype(np.float32) for each in loss.slopes(eta))
    weighted = np.ascontiguousarray((X * weight[:, None]).T, dtype=np.float32)
    halves = {k: columns.astype(np.float32) for k, columns in factors.items()}
    scores = np.empty(len(pairs))
    for begin in range(0, len(pairs), SCREENED_TOGETHER):
        some = [
            design.pair_columns(halves, pair, fine=False)
            for pair in pairs[begin : begin + SCREENED_TOGETHER]
        ]
        every = np.hstack(some)
        cross = (weighted @ every).astype(np.float64)
        explained, end = V @ cross, 0
        squares = (residual @ every).astype(np.float64) ** 2
        for k, T in enumerate(some, begin):
            own = slice(end, end + T.shape[1])
            end = own.stop
            M = (T * weight[:, None]).T @ T - cross[:, own].T @ explained[:, own]
            excess = float(squares[own].sum() - np.trace(M))
            scores[k] = excess / max(float(np.sqrt(2.0 * (M**2).sum())), LEAST_ERROR)
    return scores


def held_out_gain(
    blocks: list[tuple[Block, Floats]],
    loss: Loss,
    eta: Floats,
    folds: Folds,
    units: Ints | None = None,
) -> Gain:
    """Return by how much columns lower the loss of held-out rows, given a predictor.

    Parameters
    ----------
    blocks : list of (Block, ndarray)
        The columns; their penalties are learned again without each fold.
    loss : Loss
        The loss of the rows.
    eta : ndarray
        The predictor without the columns.
    folds : Folds
        Which rows are held out together.
    units : ndarray of int, optional
        The group of every row.
    """
    T, groups = np.hstack([columns for _, columns in blocks]), group_numbers(blocks)
    gains, judged = np.zeros(len(eta)), folds.judged()
    for train, out in folds.splits():
        fit = fit_gam(T[train], loss.shifted(eta).take(train), groups)
        held = loss.take(out)
        gains[out] = held.rows(eta[out]) - held.rows(eta[out] + T[out] @ fit.beta)
    return gain_of(gains[judged], loss.mass()[judged], None if units is None else units[judged])
