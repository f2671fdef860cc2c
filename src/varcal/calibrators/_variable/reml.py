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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import expit

from varcal._arrays import Bools, Floats, Ints

__all__ = ["GamFit", "LogisticLoss", "Loss", "fit_gam", "quadratic_form", "refine", "without_each"]

# The guard of steps on more rows than fit into one matrix: one of so many rows is looked at, by
# how much their loss may rise, and the least part of a step.
GUARD_STRIDE = 16
GUARD_TOLERANCE = 0.01
GUARD_LEAST_SHARE = 1e-3


# Tuned constants; README.md shows what changes at half and at twice each value.

#: a, the effective degrees of freedom that a group keeps where the data say nothing about it.
PRIOR_EDF = 0.1
#: Where penalties start: stiff, because from soft starts the iteration ends in worse optima.
FIRST_PENALTY = 100.0
#: The least working weight of a row, as a share of its weight, in the posterior covariance: that of
#: a probability of about 1 %.
CERTAIN_WEIGHT = 0.01

# Limits of the iteration. They bound time and rounding; the optimum does not depend on them.

#: Newton steps at most.
MAX_STEPS = 40
#: Rounds of the penalty update at most, for each Newton step.
PENALTY_ROUNDS = 15
#: The same for a fit without one fold, which starts at the penalties of all rows.
HELD_OUT_ROUNDS = 4
#: Newton steps end when the linear predictor and log λ change by less than these.
ETA_TOLERANCE = 0.01
PENALTY_TOLERANCE = 0.03
#: The rounds within a step end when log λ changes by less than this.
ROUND_TOLERANCE = 0.01
#: The range of λ.
LEAST_PENALTY = 1e-7
LARGEST_PENALTY = 1e7
#: The largest change of log λ in a round, and the largest factor of λ in a Newton step.
LARGEST_MOVE = 5.0
LARGEST_FACTOR = 20.0
#: Below this multiple of `PRIOR_EDF` the update has no reliable fixed point: EM steps, raised to a
#: power since single ones are short, take its place.
EM_BELOW = 3.0
EM_POWER = 3
#: The largest ratio of successive changes of log λ that is extrapolated to its limit.
LARGEST_RATIO = 0.8
#: A step is halved down to this share of itself while the loss rises by more than the slack.
SHORTEST_STEP = 1e-3
LOSS_SLACK = 1e-7
#: A ridge on every coefficient, also on those without a penalty.
SMALLEST_RIDGE = 1e-8
#: The least working weight of a row, and the least sum of squares of a group.
LEAST_WORKING_WEIGHT = 1e-9
LEAST_SQUARES = 1e-10
#: Rows from which curvature and variance are summed in single precision.
SINGLE_PRECISION_ROWS = 1_000


class Loss(Protocol):
    """Minus the log-likelihood of rows, as a function of their linear predictors.

    Attributes
    ----------
    offset : ndarray of float
        A constant that is added to each predictor.
    """

    @property
    def offset(self) -> Floats:
        """Return the constants that are added to predictors."""

    def rows(self, eta: Floats) -> Floats:
        """Return the loss of each row."""

    def value(self, eta: Floats) -> float:
        """Return the sum over rows."""

    def mass(self) -> Floats:
        """Return the weight of each row."""

    def shifted(self, eta: Floats) -> Loss:
        """Return the loss as a function of what is added to the given predictor."""

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return minus the first and the (expected) second derivative for each row."""

    def extra_weight(self, curvature: Floats) -> Floats:
        """Return what is added to each second derivative for the posterior covariance."""

    def take(self, rows: Bools | Ints | slice) -> Loss:
        """Return the loss of some of the rows."""

    def __len__(self) -> int:
        """Return the number of rows."""


@dataclass(frozen=True, eq=False)
class LogisticLoss:
    r"""Log-loss of binary outcomes, :math:`\log(1 + e^{o+\eta}) - y (o + \eta)`, weighted.

    Attributes
    ----------
    y : ndarray of float
        Outcomes, 0 or 1.
    weight : ndarray of float
        Weights.
    offset : ndarray of float
        A constant that is added to each linear predictor.
    """

    y: Floats
    weight: Floats
    offset: Floats

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, eta: Floats) -> Floats:
        """Return the weighted loss of each row."""
        total = self.offset + eta
        return np.asarray(self.weight * (np.logaddexp(0.0, total) - self.y * total))

    def value(self, eta: Floats) -> float:
        """Return the weighted sum over rows."""
        return float(self.rows(eta).sum())

    def mass(self) -> Floats:
        """Return the weights."""
        return self.weight

    def shifted(self, eta: Floats) -> LogisticLoss:
        """Return the loss of what is added to the given predictor."""
        return LogisticLoss(self.y, self.weight, self.offset + eta)

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return residuals and working weights."""
        mean = expit(self.offset + eta)
        return self.weight * (self.y - mean), self.weight * np.maximum(
            mean * (1.0 - mean), LEAST_WORKING_WEIGHT
        )

    def extra_weight(self, curvature: Floats) -> Floats:
        """Return what raises working weights to that of a probability of about 1 %.

        Where outcomes are nearly certain, the likelihood is flat on one side of the mode and steep
        on the other; a normal posterior around the mode would give the steep side, too, a large
        probability.
        """
        return np.maximum(CERTAIN_WEIGHT * self.weight - curvature, 0.0)

    def take(self, rows: Bools | Ints | slice) -> LogisticLoss:
        """Return the loss of some of the rows."""
        return LogisticLoss(self.y[rows], self.weight[rows], self.offset[rows])


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


def quadratic_form(X: Floats, V: Floats) -> Floats:
    """Return xᵀVx of every row x.

    >>> quadratic_form(np.array([[1.0, 2.0]]), np.eye(2))
    array([5.])
    """
    short = _in_short_precision(X)
    product = short @ V.astype(short.dtype)
    return np.asarray(np.einsum("ij,ij->i", product, short), dtype=np.float64)


def _in_short_precision(X: Floats) -> NDArray[np.floating[Any]]:
    """Return many rows in single precision, which is faster; few rows stay as they are."""
    return X.astype(np.float32) if len(X) >= SINGLE_PRECISION_ROWS else X


def gram(X: NDArray[np.floating[Any]], weight: Floats) -> Floats:
    """Return XᵀWX, as an array times itself, which costs numpy half the work."""
    scaled = X * np.sqrt(weight).astype(X.dtype)[:, None]
    return np.asarray(scaled.T @ scaled, dtype=np.float64)


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
    short = _in_short_precision(X)
    H, weight = np.zeros((len(beta), len(beta))), np.zeros(len(eta))
    converged, warm = False, penalties is not None
    most = MAX_STEPS if max_steps is None else max_steps
    least = LEAST_PENALTY if least_penalty is None else least_penalty
    for step in range(1, most + 1):
        residual, weight = loss.slopes(eta)
        H = gram(short, weight)
        right = H @ beta + X.T @ residual
        before = lam
        lam, goal = _learn_penalties(
            H, right, groups, size, lam, least, rounds=PENALTY_ROUNDS if warm or step > 1 else 1
        )
        shift = X @ (goal - beta)
        share = _descent(loss, eta, shift, _ridge(lam, groups), beta, goal)
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
    ridge = _ridge(lam, groups)
    # The last step was short enough to use the working weights from before it.
    V = _inverse(H, ridge)
    traces = np.bincount(groups[inside], np.diag(V)[inside], minlength=n_groups)
    evidence = (
        -loss.value(eta)
        - 0.5 * float(ridge @ beta**2)
        + 0.5 * float(np.log(ridge[inside]).sum())
        + 0.5 * float(np.linalg.slogdet(V)[1])
    )
    edf, extra = size - lam * traces, loss.extra_weight(weight)
    raised, mass = _with_certain_rows(H, short, extra), float((weight + extra).sum())
    covariance = V if raised is H else _inverse(raised, ridge)
    return GamFit(beta, lam, edf, covariance, ridge, mass, evidence, converged)


def _with_certain_rows(H: Floats, X: NDArray[np.floating[Any]], extra: Floats) -> Floats:
    """Return XᵀWX with extra weight on some rows."""
    some = extra > 0
    return H + gram(X[some], extra[some]) if some.any() else H


def _ridge(lam: Floats, own: Ints) -> Floats:
    """Return the penalty of every coefficient."""
    if not len(lam):
        return np.full(len(own), SMALLEST_RIDGE)
    return np.where(own >= 0, lam[np.maximum(own, 0)], 0.0) + SMALLEST_RIDGE


def _inverse_root(H: Floats, ridge: Floats) -> Floats:
    """Return R with RᵀR = (H + diag(ridge))⁻¹; a diagonal is added until it exists."""
    if not len(H):
        return H
    extra = 0.0
    while True:
        A = H.copy()
        A.flat[:: len(A) + 1] += ridge + extra
        # A is symmetric, and its transpose has the column order that LAPACK expects.
        factor, failed = lapack.dpotrf(A.T, lower=1, overwrite_a=1)
        if not failed:
            return np.asarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])
        extra = max(10.0 * extra, 1e-10 * float(np.trace(H)) / len(H) + 1e-12)


def _inverse(H: Floats, ridge: Floats) -> Floats:
    """Return (H + diag(ridge))⁻¹."""
    root = _inverse_root(H, ridge)
    return np.asarray(root.T @ root)


def _learn_penalties(
    H: Floats,
    right: Floats,
    own: Ints,
    size: Floats,
    lam: Floats,
    least: float,
    *,
    rounds: int,
) -> tuple[Floats, Floats]:
    """Iterate the penalties on the quadratic approximation; return λ and β.

    Every other round extrapolates the last two, as in Aitken's method.
    """
    first, penalized = lam, own >= 0
    beta = np.zeros(len(own))
    moved = np.zeros(len(lam))
    for turn in range(rounds):
        root = _inverse_root(H, _ridge(lam, own))
        beta = root.T @ (root @ right)
        if not len(lam):
            break
        spread = np.einsum("ij,ij->j", root, root)
        traces = np.bincount(own[penalized], spread[penalized], minlength=len(lam))
        squares = np.bincount(own[penalized], beta[penalized] ** 2, minlength=len(lam))
        edf = size - lam * traces
        fellner_schall = (edf - PRIOR_EDF) / np.maximum(squares, LEAST_SQUARES)
        # Near `PRIOR_EDF` the Fellner–Schall update has no solution: take long EM steps instead.
        em = lam * ((size - PRIOR_EDF) / (squares + traces) / lam) ** EM_POWER
        move = np.log(np.where(edf > EM_BELOW * PRIOR_EDF, fellner_schall, em) / lam)
        if turn % 2:
            # The sum of steps that shrink geometrically.
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.nan_to_num(move / moved)
            move = move / (1.0 - np.clip(ratio, 0.0, LARGEST_RATIO))
        moved = move
        new = lam * np.exp(np.clip(move, -LARGEST_MOVE, LARGEST_MOVE))
        new = np.clip(new, first / LARGEST_FACTOR, first * LARGEST_FACTOR)
        new = new.clip(least, LARGEST_PENALTY)
        change = np.abs(np.log(new / lam)).max(initial=0.0)
        lam = new
        if change < ROUND_TOLERANCE:
            break
    return lam, beta


def _descent(
    loss: Loss, eta: Floats, shift: Floats, ridge: Floats, now: Floats, goal: Floats
) -> float:
    """Return the first of 1, ½, ¼, … of the way to the goal that lowers the penalized loss."""

    def penalized(share: float) -> float:
        beta = now + share * (goal - now)
        return loss.value(eta + share * shift) + 0.5 * float(ridge @ beta**2)

    before, share = penalized(0.0), 1.0
    while share > SHORTEST_STEP and not penalized(share) <= before + LOSS_SLACK:
        share /= 2.0
    return share


def _not_worse(
    beta: Floats, step: Floats, ridge: Floats, rows: list[tuple[Floats, Loss]]
) -> Floats:
    """Return coefficients after a step, or after a part of it if the whole raises the loss.

    Where outcomes are nearly separated, few rows have weight in a Newton step, and it may go far
    beyond the least loss.
    """

    def loss_at(beta: Floats) -> float:
        return (
            sum(loss.value(X @ beta) for X, loss in rows)
            + 0.5 * float(ridge @ beta**2) / GUARD_STRIDE
        )

    before, share = loss_at(beta), 1.0
    # Another sample of rows may have a slightly larger loss after a step of all rows.
    least = before * (1.0 + GUARD_TOLERANCE)
    while not loss_at(beta + share * step) <= least and share > GUARD_LEAST_SHARE:
        share /= 2
    return beta + share * step


def refine(
    beta: Floats,
    ridge: Floats,
    chunks: Callable[[], Iterator[tuple[Floats, Loss]]],
    *,
    steps: int = 1,
) -> tuple[Floats, Floats, float]:
    """Take Newton steps on more rows than fit into one matrix.

    Returns coefficients, their covariance and the sum of the working weights.

    Parameters
    ----------
    beta, ridge : ndarray of shape (p,)
        Coefficients and penalties learned on a sample.
    chunks : callable
        Yields (design, loss) for one chunk of rows after another.
    steps : int
        Passes over the rows.
    """
    size = len(beta)
    raised, mass = np.zeros((size, size)), 0.0
    for _ in range(steps):
        H, right, mass = np.zeros((size, size)), np.zeros(size), 0.0
        raised = np.zeros((size, size))
        kept: list[tuple[Floats, Loss]] = []
        for X, loss in chunks():
            kept.append((X[::GUARD_STRIDE].copy(), loss.take(slice(None, None, GUARD_STRIDE))))
            residual, weight = loss.slopes(X @ beta)
            short = _in_short_precision(X)
            part = gram(short, weight)
            H += part
            extra = loss.extra_weight(weight)
            raised += _with_certain_rows(part, short, extra)
            right += X.T @ residual
            mass += float((weight + extra).sum())
        beta = _not_worse(beta, _inverse(H, ridge) @ (right - ridge * beta), ridge, kept)
    return beta, _inverse(raised, ridge), mass


def without_each(
    X: Floats,
    loss: Loss,
    groups: Ints,
    beta: Floats,
    penalties: Floats,
    splits: Iterable[Bools],
) -> Iterator[Floats]:
    """Yield, for each split, the linear predictor of all rows by a fit of the split's rows.

    Penalties are learned again and one Newton step is taken, both on the quadratic approximation
    at the fit of all rows, from which the rows that take no part are subtracted.

    Parameters
    ----------
    X, loss, groups
        As for `fit_gam`, for all rows.
    beta, penalties : ndarray
        Coefficients and λ of the fit of all rows.
    splits : iterable of ndarray of bool
        Which rows take part.
    """
    size = np.bincount(groups[groups >= 0], minlength=len(penalties)).astype(np.float64)
    eta, short = X @ beta, _in_short_precision(X)
    residual, weight = loss.slopes(eta)
    H = gram(short, weight)
    right = H @ beta + X.T @ residual
    for train in splits:
        out = np.flatnonzero(~train)
        part = gram(short[out], weight[out])
        lam, goal = _learn_penalties(
            H - part,
            right - part @ beta - X[out].T @ residual[out],
            groups,
            size,
            penalties,
            LEAST_PENALTY,
            rounds=HELD_OUT_ROUNDS,
        )
        shift = X @ (goal - beta)
        ridge = _ridge(lam, groups)
        share = _descent(loss.take(train), eta[train], shift[train], ridge, beta, goal)
        yield eta + share * shift
