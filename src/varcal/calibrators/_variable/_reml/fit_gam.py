r"""Penalized additive models whose penalties are learned from the data.

A row's linear predictor is :math:`\eta = x^\top \beta`, the columns of X fall into groups, and
group g has the ridge penalty :math:`\tfrac12 \lambda_g \lVert \beta_g \rVert^2`. Read as a prior,
:math:`\beta_g \sim N(0, I / \lambda_g)`, the penalties are variance components; they maximize
the Laplace-approximated marginal likelihood (REML) by the Fellner–Schall update

.. math:: \lambda_g \leftarrow \frac{\mathrm{edf}_g - a}{\lVert \beta_g \rVert^2}, \qquad
          \mathrm{edf}_g = m_g - \lambda_g \operatorname{tr} V_{gg}, \qquad
          V = (X^\top W X + \Lambda)^{-1},

alternated with penalized Newton steps. The density :math:`\lambda^{-a/2}` keeps variances off 0,
where the mode of a variance component lies too often: a group without evidence keeps a degrees
of freedom (a = `PRIOR_EDF`), so that many small effects are shrunk and not removed.

References
----------
S. N. Wood, M. Fasiolo (2017), A generalized Fellner-Schall method for smoothing parameter
optimization, Biometrics 73. Y. Chung et al. (2013), A nondegenerate penalized likelihood
estimator for variance parameters in multilevel models, Psychometrika 78.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats, Ints
from varcal.calibrators._variable._reml.curvature import (
    descent,
    gram,
    in_short_precision,
    inverse,
    with_certain_rows,
)
from varcal.calibrators._variable._reml.losses import Loss
from varcal.calibrators._variable._reml.penalties import (
    FIRST_PENALTY,
    LEAST_PENALTY,
    learn_penalties,
    ridge_of,
)

# Limits of the iteration. They bound time and rounding; the optimum does not depend on them.

#: Newton steps at most.
MAX_STEPS = 40
#: Rounds of the penalty update at most, for each Newton step.
PENALTY_ROUNDS = 15
#: Newton steps end when the linear predictor and log λ change by less than these.
ETA_TOLERANCE = 0.01
PENALTY_TOLERANCE = 0.03


@dataclass(frozen=True, eq=False)
class GamFit:
    """A fitted model.

    Attributes
    ----------
    beta : ndarray of shape (p,)
        Coefficients.
    penalties : ndarray of shape (G,)
        λ of each group.
    edf : ndarray of shape (G,)
        Effective degrees of freedom of each group.
    covariance : ndarray of shape (p, p)
        Posterior covariance of the coefficients, with extra weight on nearly certain rows.
    ridge : ndarray of shape (p,)
        The penalty of each coefficient.
    mass : float
        The sum of the working weights in that covariance.
    evidence : float
        The log marginal likelihood (Laplace), up to a constant for unpenalized columns.
    converged : bool
        Whether λ and the linear predictor converged.
    """

    beta: Floats
    penalties: Floats
    edf: Floats
    covariance: Floats
    ridge: Floats
    mass: float
    evidence: float
    converged: bool


def fit_gam(
    X: Floats,
    loss: Loss,
    groups: Ints,
    *,
    start: Floats | None = None,
    penalties: Floats | None = None,
    max_steps: int | None = None,
    least_penalty: float | None = None,
) -> GamFit:
    """Fit coefficients and penalties together.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The design.
    loss : Loss
        The loss to minimize.
    groups : ndarray of int, shape (p,)
        The group of every column; −1 for columns without a penalty.
    start : ndarray of shape (p,), optional
        Initial coefficients.
    penalties : ndarray of shape (G,), optional
        Initial λ, from a similar fit; by default `FIRST_PENALTY`, which suits columns of unit
        variance.
    max_steps : int, optional
        Newton steps at most; by default `MAX_STEPS`.
    least_penalty : float, optional
        The least λ; by default `LEAST_PENALTY`.

    Examples
    --------
    >>> from scipy.special import expit
    >>> from varcal.calibrators._variable._reml.losses import LogisticLoss
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.ones(500), rng.normal(size=(500, 2))])
    >>> y = (rng.random(500) < expit(X[:, 1])).astype(float)
    >>> loss = LogisticLoss(y, np.ones(500), np.zeros(500))
    >>> fit = fit_gam(X, loss, np.array([-1, 0, 1]))
    >>> bool(fit.edf[0] > 0.9 > 0.5 > fit.edf[1])
    True
    """
    n_groups = int(groups.max(initial=-1)) + 1
    size = np.bincount(groups[groups >= 0], minlength=n_groups).astype(np.float64)
    beta = np.zeros(X.shape[1]) if start is None else start.copy()
    inside = groups >= 0
    squares = np.bincount(groups[inside], beta[inside] ** 2, minlength=n_groups)
    # A start far from 0 must not be shrunk before its penalty is learned.
    lam = (
        size / np.maximum(size / FIRST_PENALTY, squares) if penalties is None else penalties.copy()
    )
    eta = X @ beta
    # The exact gradient decides where steps end, so single precision is enough for curvature.
    short = in_short_precision(X)
    H, weight = np.zeros((len(beta), len(beta))), np.zeros(len(eta))
    converged, warm = False, penalties is not None
    most = MAX_STEPS if max_steps is None else max_steps
    least = LEAST_PENALTY if least_penalty is None else least_penalty
    for step in range(1, most + 1):
        residual, weight = loss.slopes(eta)
        H = gram(short, weight)
        right = H @ beta + X.T @ residual
        before = lam
        lam, goal = learn_penalties(
            H, right, groups, size, lam, least, rounds=PENALTY_ROUNDS if warm or step > 1 else 1
        )
        shift = X @ (goal - beta)
        share = descent(loss, eta, shift, ridge_of(lam, groups), beta, goal)
        shift *= share
        beta, eta = beta + share * (goal - beta), eta + shift
        change = float(np.abs(np.log(lam / before)).max(initial=0.0))
        if (
            step > (1 if warm else 2)
            and float(np.abs(shift).max(initial=0.0)) < ETA_TOLERANCE
            and change < PENALTY_TOLERANCE
        ):
            converged = True
            break
    ridge = ridge_of(lam, groups)
    # The last step was short enough to use the working weights from before it.
    V = inverse(H, ridge)
    traces = np.bincount(groups[inside], np.diag(V)[inside], minlength=n_groups)
    evidence = (
        -loss.value(eta)
        - 0.5 * float(ridge @ beta**2)
        + 0.5 * float(np.log(ridge[inside]).sum())
        + 0.5 * float(np.linalg.slogdet(V)[1])
    )
    edf, extra = size - lam * traces, loss.extra_weight(weight)
    raised, mass = with_certain_rows(H, short, extra), float((weight + extra).sum())
    covariance = V if raised is H else inverse(raised, ridge)
    return GamFit(beta, lam, edf, covariance, ridge, mass, evidence, converged)
