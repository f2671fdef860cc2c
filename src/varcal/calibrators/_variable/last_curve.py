r"""A last curve from the predictor of a logistic model to the logit of the outcome.

Shrinkage makes predictors too flat, overfitting too steep, and effects that are additive in the
middle may not be at the ends. What remains of these errors shows on rows that were left out of the
fit. With the posterior covariance V, leaving out row i changes its predictor by about

.. math:: \eta_{-i} - \eta_i = - \frac{v_i (y_i - \mu_i)}{1 - w_i v_i}, \qquad
          v_i = x_i^\top V x_i,\; w_i = \mu_i (1 - \mu_i),

and a penalized logistic model of y with the offset :math:`\eta_{-i}` learns what to add to it: a
level, a slope, a fold at ½ and a curve, each as far as it raises the marginal likelihood, and
none if that does not rise. Among nearly equal rows :math:`\eta_{-i}` differs by their outcomes
alone, so the curve must be too coarse to pick these out: it depends on the predictor's value, not
on its rank, has four columns, and adds about one logit at most. Where many rows are equal, or have
the weight of many rows, there is no last curve (`link` in the code).

References
----------
K. R. Rad, A. Maleki (2020), A scalable estimate of the out-of-sample prediction error via
approximate leave-one-out cross-validation, JRSS B 82.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from varcal._arrays import Floats
from varcal.calibrators._variable._columns.design import Design, group_numbers
from varcal.calibrators._variable._columns.score_basis import ScoreBasis
from varcal.calibrators._variable._reml.fit_gam import fit_gam
from varcal.calibrators._variable._reml.losses import Loss
from varcal.calibrators._variable.additive_model import AdditiveModel

# Tuned constants; README.md shows what changes at half and at twice each value.

#: The least λ. Columns have unit variance, so λ = 1 lets each block add about one logit.
LINK_LEAST_PENALTY = 1.0
#: Gains in log marginal likelihood between which the curve is applied in part; where there is
#: nothing to learn, its penalties cost about 0.2.
LINK_RAMP = (-0.2, 0.8)

#: A numerical limit: the least 1 − w·v of a row. Below it the row alone determines its prediction,
#: and leaving it out cannot be approximated.
LEAST_REST = 0.05


def left_out(eta: Floats, variance: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the predictor of every row without that row, and its variance."""
    mean = expit(eta)
    rest = np.maximum(1.0 - mean * (1.0 - mean) * variance, LEAST_REST)
    return eta - variance * (y - mean) / rest, variance / rest


def fit_link(score: Floats, loss: Loss) -> AdditiveModel | None:
    """Return the curve of a score that is added to a predictor, both of left-out rows.

    None where there is nothing to add.

    Parameters
    ----------
    score : ndarray
        The score: for two classes the predictor itself.
    loss : Loss
        The loss as a function of what is added.

    Examples
    --------
    >>> from varcal.calibrators._variable._reml.losses import LogisticLoss
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=5000)
    >>> y = (rng.random(5000) < expit(2 * eta)).astype(float)
    >>> link = fit_link(eta, LogisticLoss(y, np.ones(5000), eta))
    >>> added, _ = link.predictor(np.array([-1.0, 0.0, 1.0]), [])
    >>> bool((abs(added - [-1, 0, 1]) < 0.2).all())
    True
    """
    design = Design(ScoreBasis.of(score, loss.mass(), by_rank=False), ())
    blocks = design.blocks(score, [])
    X = np.hstack([columns for _, columns in blocks])
    fit = fit_gam(X, loss, group_numbers(blocks), least_penalty=LINK_LEAST_PENALTY)
    level = fit_gam(X[:, :1], loss, np.array([-1]))
    low, high = LINK_RAMP
    share = float(np.clip((fit.evidence - level.evidence - low) / (high - low), 0.0, 1.0))
    if share == 0:
        return None
    beta, covariance = share * fit.beta, share**2 * fit.covariance
    return AdditiveModel(design, beta, covariance, fit.ridge, fit.mass)
