r"""One penalized fit: coefficients and the penalty of every block of columns together.

Minimizes the loss plus ½ Σ λ_g ‖β_g‖² by damped Newton steps; between steps λ follows from the
Fellner–Schall update, which maximizes the marginal likelihood (Laplace),

.. math:: \lambda_g \leftarrow \frac{\mathrm{edf}_g - a}{\|\beta_g\|^2}, \qquad
          \mathrm{edf}_g = m_g - \lambda_g \operatorname{tr} V_{gg}, \qquad
          V = (X^\top W X + \Lambda)^{-1}.

References
----------
S. N. Wood, M. Fasiolo (2017), A generalized Fellner-Schall method for smoothing parameter
optimization, Biometrics 73.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators.variable.losses import Loss

# A tuned constant.

#: a: what a block keeps where the data say nothing about it. Half and twice the value moved the
#: mean log-loss of three worlds by −.0003 and +.0004.
PRIOR_EDF = 0.1

# Limits of the iteration; they bound time and rounding.

#: Where penalties start: stiff, because from soft starts the iteration ends in worse optima.
FIRST_PENALTY = 100.0
MAX_STEPS, ROUNDS, HELD_OUT_ROUNDS = 25, 6, 4
#: Changes of η and of log λ that end it, and of log λ that end the rounds of one step.
ETA_TOLERANCE, PENALTY_TOLERANCE, ROUND_TOLERANCE = 0.01, 0.1, 0.02
LEAST_PENALTY, LARGEST_PENALTY, SMALLEST_RIDGE = 1e-3, 1e7, 1e-8
#: The largest change of log λ in a round, and the largest factor of λ in a Newton step.
LARGEST_MOVE, LARGEST_FACTOR = 5.0, 20.0
#: Below this multiple of `PRIOR_EDF` the update has no reliable fixed point: cubed EM steps.
EM_BELOW, EM_POWER = 3.0, 3
#: The largest ratio of successive changes of log λ that is extrapolated to its limit.
LARGEST_RATIO = 0.8
#: Rows from which curvature is summed in single precision.
SINGLE_PRECISION_ROWS = 1_000
#: Up to this number of rows fits without a fold take a second Newton step.
SECOND_STEP_ROWS = 5_000


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit.

    Attributes
    ----------
    beta, ridge : ndarray of shape (p,)
        Coefficients, and the penalty of each.
    penalties : ndarray of shape (G,)
        λ of each block.
    covariance : ndarray of shape (p, p)
        V, the posterior covariance.
    """

    beta: Floats
    ridge: Floats
    penalties: Floats
    covariance: Floats

    @property
    def leverage(self) -> Floats:
        """The effective degrees of freedom of each coefficient."""
        return np.asarray(1.0 - self.ridge * np.diag(self.covariance))


def fit_blocks(
    X: Floats,
    loss: Loss,
    groups: Ints,
    start: Floats | None = None,
    penalties: Floats | None = None,
    max_steps: int = MAX_STEPS,
) -> Fit:
    """Fit coefficients and penalties together.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The columns.
    loss : Loss
        The loss.
    groups : ndarray of int, shape (p,)
        The block of each column; −1 without a penalty.
    start, penalties : ndarray, optional
        Initial coefficients and λ.
    max_steps : int
        Newton steps at most.

    Examples
    --------
    >>> from varcal.calibrators.variable.losses import LogisticLoss
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.ones(500), rng.normal(size=(500, 2))])
    >>> y = (rng.random(500) < 1 / (1 + np.exp(-X[:, 1]))).astype(float)
    >>> loss = LogisticLoss(y, np.ones(500), np.zeros(500))
    >>> fit = fit_blocks(X, loss, np.array([-1, 0, 1]))
    >>> bool(fit.leverage[1] > 0.9 > 0.5 > fit.leverage[2])
    True
    """
    size = _sizes(groups)
    beta = np.zeros(X.shape[1]) if start is None else start.copy()
    lam = np.full(len(size), FIRST_PENALTY) if penalties is None else penalties.copy()
    eta, short, warm = X @ beta, _short(X), penalties is not None
    H = np.zeros((len(beta), len(beta)))
    for step in range(1, max_steps + 1):
        residual, weight = loss.slopes(eta)
        H = weighted_gram(short, weight)
        before = lam
        rounds = ROUNDS if warm or step > 1 else 1
        lam, goal = _learn_penalties(H, H @ beta + X.T @ residual, groups, size, lam, rounds)
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
            break
    return _finished(beta, lam, groups, H)


def refit_on_all(fit: Fit, groups: Ints, chunks: Iterable[tuple[Floats, Loss]]) -> Fit:
    """Take one Newton step on more rows than fit into one matrix, with the same penalties.

    `chunks` yields columns and losses of parts of the rows; a sixteenth of them guards the step.
    """
    p = len(fit.beta)
    H, right, guard = np.zeros((p, p)), np.zeros(p), []
    for X, loss in chunks:
        residual, weight = loss.slopes(X @ fit.beta)
        H += weighted_gram(_short(X), weight)
        right += X.T @ residual
        guard.append((X[::16].copy(), loss.take(slice(None, None, 16))))

    def penalized(beta: Floats) -> float:
        total = sum(float(loss.rows(X @ beta).sum()) for X, loss in guard)
        return total + float(fit.ridge @ beta**2) / 32

    root = _inverse_root(H, fit.ridge)
    move = root.T @ (root @ (right - fit.ridge * fit.beta))
    share, before = 1.0, penalized(fit.beta)
    most = before + 0.01 * abs(before)
    while share > 1e-3 and not penalized(fit.beta + share * move) <= most:
        share /= 2.0
    return _finished(fit.beta + share * move, fit.penalties, groups, H)


def held_out(
    X: Floats, loss: Loss, groups: Ints, fit: Fit, splits: list[tuple[AnyArray, AnyArray]]
) -> Floats:
    """Return the predictor of each held-out row by a fit without its fold; others as fitted.

    Penalties are learned again and one Newton step is taken on the quadratic approximation at the
    fit of all rows, from which held-out rows are subtracted; few rows take a second step.
    """
    size, eta, short = _sizes(groups), X @ fit.beta, _short(X)
    residual, weight = loss.slopes(eta)
    H = weighted_gram(short, weight)
    found = eta.copy()
    for train, out in splits:
        if np.count_nonzero(train) >= len(X) / 2:
            A = H - weighted_gram(short[~train], weight[~train])
        else:
            A = weighted_gram(short[train], weight[train])
        b = A @ fit.beta + X[train].T @ residual[train]
        lam, goal = _learn_penalties(A, b, groups, size, fit.penalties, HELD_OUT_ROUNDS)
        own = loss.take(train)
        shift = X[train] @ (goal - fit.beta)
        share = _descent(own, eta[train], shift, _ridge(lam, groups), fit.beta, goal)
        beta = fit.beta + share * (goal - fit.beta)
        if float(loss.weight.sum()) <= SECOND_STEP_ROWS:
            beta = fit_blocks(X[train], own, groups, beta, lam, max_steps=1).beta
        found[out] = X[out] @ beta
    return found


def _sizes(groups: Ints) -> Floats:
    n_groups = int(groups.max(initial=-1)) + 1
    return np.bincount(groups[groups >= 0], minlength=n_groups).astype(np.float64)


def _finished(beta: Floats, lam: Floats, groups: Ints, H: Floats) -> Fit:
    """Return the fit, whose covariance is the inverse of a curvature and the penalties."""
    ridge = _ridge(lam, groups)
    root = _inverse_root(H, ridge)
    return Fit(beta, ridge, lam, root.T @ root)


def _ridge(lam: Floats, groups: Ints) -> Floats:
    if not len(lam):
        return np.full(len(groups), SMALLEST_RIDGE)
    return np.where(groups >= 0, lam[np.maximum(groups, 0)], 0.0) + SMALLEST_RIDGE


def _learn_penalties(
    H: Floats, right: Floats, groups: Ints, size: Floats, lam: Floats, rounds: int
) -> tuple[Floats, Floats]:
    """Iterate penalties on the quadratic approximation; return λ and β.

    Every other round extrapolates the last two, as in Aitken's method.
    """
    first, inside = lam, groups >= 0
    own = groups[inside]
    beta, moved = np.zeros(len(groups)), np.zeros(len(lam))
    for turn in range(rounds):
        root = _inverse_root(H, _ridge(lam, groups))
        beta = root.T @ (root @ right)
        if not len(lam):
            break
        spread = np.einsum("ij,ij->j", root, root)
        traces = np.bincount(own, spread[inside], minlength=len(lam))
        squares = np.bincount(own, beta[inside] ** 2, minlength=len(lam))
        edf = size - lam * traces
        direct = (edf - PRIOR_EDF) / np.maximum(squares, 1e-10)
        em = lam * ((size - PRIOR_EDF) / (squares + traces) / lam) ** EM_POWER
        move = np.log(np.where(edf > EM_BELOW * PRIOR_EDF, direct, em) / lam)
        if turn % 2:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.nan_to_num(move / moved)
            move = move / (1.0 - np.clip(ratio, 0.0, LARGEST_RATIO))
        moved = move
        new = lam * np.exp(np.clip(move, -LARGEST_MOVE, LARGEST_MOVE))
        new = np.clip(new, first / LARGEST_FACTOR, first * LARGEST_FACTOR)
        new = new.clip(LEAST_PENALTY, LARGEST_PENALTY)
        change = np.abs(np.log(new / lam)).max(initial=0.0)
        lam = new
        if change < ROUND_TOLERANCE:
            break
    return lam, beta


def _short(X: Floats) -> NDArray[np.floating[Any]]:
    return X.astype(np.float32) if len(X) >= SINGLE_PRECISION_ROWS else X


def weighted_gram(X: NDArray[np.floating[Any]], weight: Floats) -> Floats:
    """Return XᵀWX, as an array times itself, which costs numpy half the work."""
    scaled = X * np.sqrt(weight).astype(X.dtype)[:, None]
    return np.asarray(scaled.T @ scaled, dtype=np.float64)


def _inverse_root(H: Floats, ridge: Floats) -> Floats:
    """Return R with RᵀR = (H + diag(ridge))⁻¹; a diagonal is added until it exists."""
    extra = 0.0
    while True:
        A = H.copy()
        A.flat[:: len(A) + 1] += ridge + extra
        # A is symmetric, and its transpose has the column order that LAPACK expects.
        factor, failed = lapack.dpotrf(A.T, lower=1, overwrite_a=1)
        if not failed:
            return np.asarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])
        extra = max(10.0 * extra, 1e-10 * float(np.trace(H)) / len(H) + 1e-12)


def _descent(
    loss: Loss, eta: Floats, shift: Floats, ridge: Floats, now: Floats, goal: Floats
) -> float:
    """Return the first of 1, ½, ¼, … of the way to the goal that lowers the penalized loss."""

    def penalized(share: float) -> float:
        beta = now + share * (goal - now)
        return float(loss.rows(eta + share * shift).sum()) + 0.5 * float(ridge @ beta**2)

    before, share = penalized(0.0), 1.0
    while share > 1e-3 and not penalized(share) <= before + 1e-7:
        share /= 2.0
    return share
