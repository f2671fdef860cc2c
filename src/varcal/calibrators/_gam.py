r"""Penalized additive models whose penalties are learned from the data.

A row's linear predictor is :math:`\eta = x^\top \beta`, the columns of X fall into groups, and
group g has the ridge penalty :math:`\tfrac12 \lambda_g \lVert \beta_g \rVert^2`. Read as a prior,
:math:`\beta_g \sim N(0, I / \lambda_g)`, the penalties are variance components; they maximize
the Laplace-approximated marginal likelihood (REML) by the Fellner–Schall update

.. math:: \lambda_g \leftarrow \frac{\mathrm{edf}_g}{\lVert \beta_g \rVert^2}, \qquad
          \mathrm{edf}_g = m_g - \lambda_g \operatorname{tr} V_{gg}, \qquad
          V = (X^\top W X + \Lambda)^{-1},

alternated with penalized Newton steps. A group without evidence runs to edf 0 and is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import expit

__all__ = ["GamFit", "LogisticLoss", "Loss", "fit_gam", "quadratic_form", "refine"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Groups with fewer effective degrees of freedom are left out of the model.
LEAST_EDF = 0.02
_SMALL = 1e-8
#: Where penalties start: stiff, since from soft starts the iteration ends in worse optima.
FIRST_PENALTY = 100.0


class Loss(Protocol):
    """Minus the log-likelihood of rows, as a function of one linear predictor a row."""

    def rows(self, eta: Floats) -> Floats:
        """Return the loss of each row."""

    def value(self, eta: Floats) -> float:
        """Return the sum over rows."""

    def mass(self) -> Floats:
        """Return the weight of each row."""

    def shifted(self, eta: Floats) -> Loss:
        """Return the loss as a function of what is added to a predictor."""

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return minus the first derivative and the (expected) second one, a row each."""

    def take(self, rows: NDArray[np.bool_] | Ints | slice) -> Loss:
        """Return the loss of some rows."""

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
        What is added to the linear predictor.
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
        """Return the loss of what is added to a predictor."""
        return LogisticLoss(self.y, self.weight, self.offset + eta)

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return residuals and working weights."""
        mean = expit(self.offset + eta)
        return self.weight * (self.y - mean), self.weight * np.maximum(mean * (1.0 - mean), 1e-9)

    def take(self, rows: NDArray[np.bool_] | Ints | slice) -> LogisticLoss:
        """Return the loss of some rows."""
        return LogisticLoss(self.y[rows], self.weight[rows], self.offset[rows])


@dataclass(frozen=True, eq=False)
class GamFit:
    """A fitted model.

    Attributes
    ----------
    beta : ndarray of shape (p,)
        Coefficients, 0 where the group was dropped.
    kept : ndarray of int
        The columns that are in the model.
    penalties : ndarray of shape (G,)
        λ of each group.
    edf : ndarray of shape (G,)
        Effective degrees of freedom of each group, 0 where it was dropped.
    ridge : ndarray
        λ of each kept column, 0 where it is free.
    covariance : ndarray
        Posterior covariance of the coefficients of the kept columns.
    evidence : float
        The log marginal likelihood (Laplace), up to a constant of the free columns.
    iterations : int
        Newton steps.
    converged : bool
        Whether λ and the linear predictor settled.
    """

    beta: Floats
    kept: Ints
    penalties: Floats
    edf: Floats
    ridge: Floats
    covariance: Floats
    evidence: float
    iterations: int
    converged: bool

    def predictor(self, X: Floats) -> Floats:
        """Return η of rows of the full design."""
        return np.asarray(X[:, self.kept] @ self.beta[self.kept])

    def variance(self, X: Floats) -> Floats:
        """Return the posterior variance of η."""
        return quadratic_form(X[:, self.kept], self.covariance)


def quadratic_form(X: Floats, V: Floats) -> Floats:
    """Return xᵀVx of every row x.

    >>> quadratic_form(np.array([[1.0, 2.0]]), np.eye(2))
    array([5.])
    """
    return np.asarray(np.einsum("ij,ij->i", X @ V, X))


def gram(X: Floats, weight: Floats) -> Floats:
    """Return XᵀWX; numpy sees one array times itself and does half the work."""
    scaled = X * np.sqrt(weight)[:, None]
    return np.asarray(scaled.T @ scaled)


def fit_gam(
    X: Floats,
    loss: Loss,
    groups: Ints,
    *,
    start: Floats | None = None,
    penalties: Floats | None = None,
    least_edf: float = LEAST_EDF,
    max_steps: int = 40,
) -> GamFit:
    """Fit coefficients and penalties together.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The design.
    loss : Loss
        What is minimized.
    groups : ndarray of int, shape (p,)
        The group of every column; −1 is free of penalty.
    start : ndarray of shape (p,), optional
        Where the coefficients start.
    penalties : ndarray of shape (G,), optional
        Where λ starts; by default stiff, as columns are expected to be of unit scale.
    least_edf : float
        Groups below it are dropped.
    max_steps : int
        The most Newton steps.

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
    # A start far from 0 must not be pulled back before its penalty is learned.
    lam = (
        size / np.maximum(size / FIRST_PENALTY, squares) if penalties is None else penalties.copy()
    )
    alive = np.ones(n_groups, dtype=bool)
    kept = np.arange(X.shape[1])
    Xk, eta = X, X @ beta
    converged, step = False, 0
    for step in range(1, max_steps + 1):  # noqa: B007
        residual, weight = loss.slopes(eta)
        H = gram(Xk, weight)
        right = H @ beta[kept] + Xk.T @ residual
        before = lam.copy()
        lam, alive, goal = _learn_penalties(
            H, right, groups[kept], size, lam, alive, least_edf if step > 3 else 0.0, free=step > 1
        )
        own = _ridge(lam, groups[kept])
        now = _descend(loss, Xk, own, beta[kept], goal)
        moved = float(np.abs(Xk @ (now - beta[kept])).max(initial=0.0))
        beta = np.zeros_like(beta)
        beta[kept] = now
        still = np.flatnonzero((groups < 0) | alive[np.maximum(groups, 0)]) if n_groups else kept
        if len(still) < len(kept):
            kept, Xk = still, X[:, still]
            beta[np.setdiff1d(np.arange(len(beta)), kept)] = 0.0
            moved = np.inf
        eta = Xk @ beta[kept]
        change = float(np.abs(np.log(lam / before))[alive].max(initial=0.0))
        if step > 4 and moved < 0.01 and change < 0.02:
            converged = True
            break
    ridge = _ridge(lam, groups[kept])
    V = _inverse(gram(Xk, loss.slopes(eta)[1]), ridge)
    edf = _edf(V, groups[kept], size, lam, alive)
    evidence = (
        -loss.value(eta)
        - 0.5 * float(ridge @ beta[kept] ** 2)
        + 0.5 * float(np.log(ridge[groups[kept] >= 0]).sum())
        + 0.5 * float(np.linalg.slogdet(V)[1])
    )
    return GamFit(beta, kept, lam, edf, ridge, V, evidence, step, converged)


def _ridge(lam: Floats, own: Ints) -> Floats:
    if not len(lam):
        return np.full(len(own), _SMALL)
    return np.where(own >= 0, lam[np.maximum(own, 0)], 0.0) + _SMALL


def _edf(V: Floats, own: Ints, size: Floats, lam: Floats, alive: NDArray[np.bool_]) -> Floats:
    traces = np.bincount(own[own >= 0], np.diag(V)[own >= 0], minlength=len(lam))
    return np.where(alive, np.maximum(size - lam * traces, 0.0), 0.0)


def _inverse(H: Floats, ridge: Floats) -> Floats:
    """Return (H + diag(ridge))⁻¹; the diagonal grows until it is positive definite."""
    if not len(H):
        return H
    extra = 0.0
    while True:
        A = H.copy()
        A[np.diag_indices_from(A)] += ridge + extra
        factor, wrong = lapack.dpotrf(A, lower=1)
        if not wrong:
            inverse, _ = lapack.dpotri(factor, lower=1)
            return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)
        extra = max(10.0 * extra, 1e-10 * float(np.trace(H)) / len(H) + 1e-12)


def _learn_penalties(
    H: Floats,
    right: Floats,
    own: Ints,
    size: Floats,
    lam: Floats,
    alive: NDArray[np.bool_],
    least_edf: float,
    *,
    free: bool,
    rounds: int = 12,
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Run Fellner–Schall on the quadratic approximation; return λ, who is left, and β."""
    lam, alive = lam.copy(), alive.copy()
    begun = lam.copy()
    inside = np.arange(len(own))
    goal = np.zeros(len(own))
    for _ in range(rounds if free else 1):
        mine = own[inside]
        V = _inverse(H[np.ix_(inside, inside)], _ridge(lam, mine))
        beta = V @ right[inside]
        goal = np.zeros(len(own))
        goal[inside] = beta
        if not free or not len(lam):
            break
        edf = _edf(V, mine, size, lam, alive)
        squares = np.bincount(mine[mine >= 0], beta[mine >= 0] ** 2, minlength=len(lam))
        ratio = np.maximum(edf, 1e-8) / np.maximum(squares, 1e-10) / lam
        # A penalty on its way to infinity gets there geometrically: take longer steps upwards.
        longer = np.where((ratio > 1.0) & (edf < 0.2), ratio**1.6, ratio)
        new = np.clip(lam * longer, begun / 20.0, begun * 20.0).clip(1e-7, 1e9)
        change = np.abs(np.log(new / lam))[alive].max(initial=0.0)
        lam = np.where(alive, new, lam)
        alive &= edf >= least_edf
        inside = np.flatnonzero((own < 0) | alive[np.maximum(own, 0)])
        if change < 0.01:
            break
    return lam, alive, goal


def _descend(loss: Loss, X: Floats, ridge: Floats, now: Floats, goal: Floats) -> Floats:
    """Return the largest halved step towards the goal that lowers the penalized loss."""
    start, direction = X @ now, X @ (goal - now)

    def penalized(share: float) -> float:
        beta = now + share * (goal - now)
        return loss.value(start + share * direction) + 0.5 * float(ridge @ beta**2)

    before, share = penalized(0.0), 1.0
    while share > 1e-3 and not penalized(share) <= before + 1e-7:
        share /= 2.0
    return np.asarray(now + share * (goal - now))


def refine(
    beta: Floats,
    ridge: Floats,
    chunks: Callable[[], Iterator[tuple[Floats, Loss]]],
    *,
    steps: int = 2,
) -> tuple[Floats, Floats]:
    """Take Newton steps on rows too many for one matrix; return coefficients and covariance.

    Parameters
    ----------
    beta, ridge : ndarray of shape (p,)
        Coefficients and penalties that were learned on a sample.
    chunks : callable
        Gives (design, loss) of one chunk of rows after another.
    steps : int
        Passes over the rows.
    """
    V = np.empty((0, 0))
    for _ in range(steps):
        H, right = np.zeros((len(beta), len(beta))), np.zeros(len(beta))
        for X, loss in chunks():
            residual, weight = loss.slopes(X @ beta)
            H += gram(X, weight)
            right += X.T @ residual
        V = _inverse(H, ridge)
        beta = beta + V @ (right - ridge * beta)
    return beta, V
