r"""Classes that are confused with one another: a small symmetric correction of logits.

.. math:: \ln q = \text{base} + s \,(W \tilde l + b) + \text{const}, \qquad W = W^\top

with :math:`\tilde l` the centred log-probabilities, a ridge on W and b, and for each row the
largest :math:`s \le 1` that keeps the largest class the largest. The corrections of several
penalties, and no correction, are averaged with weights from their log-loss on held-out rows. How
far the average is trusted depends on how much it lowers that loss, in standard errors.

The variance of the logit of class k comes from Laplace's approximation for each class,

.. math:: V_k = (X^\top \operatorname{diag}\{w q_k (1 - q_k)\} X + \lambda I)^{-1}, \qquad
          x = (\tilde l, 1),

which ignores that W is symmetric, and so is rather too large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import Floats, Ints
from varcal.calibrators._variable._reml.curvature import quadratic_form
from varcal.calibrators._variable.folds import Folds
from varcal.calibrators._variable.gain import gain_of
from varcal.calibrators._variable.trust import share_of
from varcal.calibrators.softmax import softmax

# Tuned constants; README.md shows what changes at half and at twice each value.

#: The ridge penalties whose corrections are averaged.
PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
#: The penalty that "no correction" stands for in the mean penalty, which intervals depend on.
NO_CORRECTION_PENALTY = 300.0
#: Classes beyond which there are too many pairs of them to learn about.
MOST_CLASSES = 40
#: The least log-probability, relative to the largest of a row, that the correction sees.
LOG_FLOOR = -12.0
#: Log-probabilities are divided by this, so that one penalty suits W and b.
LOG_UNIT = 5.0

#: The relative distance that is kept from a tie of the largest class.
TIE_MARGIN = 1e-9
#: When L-BFGS stops.
_OPTIMIZER = {"maxiter": 200, "ftol": 1e-10}


@dataclass(frozen=True, eq=False)
class Confusion:
    """The correction.

    Attributes
    ----------
    pull : ndarray of shape (K, K)
        W.
    bias : ndarray of shape (K,)
        b.
    share : float
        How far W and b are trusted, between 0 and 1.
    covariance : ndarray of shape (K, K + 1, K + 1)
        The posterior covariance of the coefficients of each class; 0 where none were learned.
    """

    pull: Floats
    bias: Floats
    share: float
    covariance: Floats

    @classmethod
    def none(cls, n_classes: int) -> Confusion:
        """Return the correction that changes nothing."""
        size = n_classes + 1
        pull, bias = np.zeros((n_classes, n_classes)), np.zeros(n_classes)
        return cls(pull, bias, 0.0, np.zeros((n_classes, size, size)))

    def variance(self, logs: Floats) -> Floats:
        """Return the variance of logits, including what of the correction is not trusted."""
        features = _centred(logs)
        left = (1.0 - self.share) * (features @ self.pull + self.bias)
        X = np.column_stack([features, np.ones(len(logs))])
        own = np.column_stack([quadratic_form(X, V) for V in self.covariance])
        return np.asarray(own + (1.0 - self.share) * left**2)

    def corrected(self, base: Floats, logs: Floats, *, keep_argmax: bool = True) -> Floats:
        """Return the corrected logits, given the logits and the log-probabilities."""
        if not (self.share and (self.pull.any() or self.bias.any())):
            return base
        added = self.share * (_centred(logs) @ self.pull + self.bias)
        if not keep_argmax:
            return np.asarray(base + added)
        rows, top = np.arange(len(base)), base.argmax(axis=1)
        lead = base[rows, top][:, None] - base
        loss = added - added[rows, top][:, None]
        most = np.where(loss > 0, lead / np.where(loss > 0, loss, 1.0), np.inf)
        most[rows, top] = np.inf
        # Slightly less, so that rounding cannot make a tie.
        share = np.minimum(most.min(axis=1) * (1 - TIE_MARGIN), 1.0)
        return np.asarray(base + share[:, None] * added)


def fit_confusion(
    base: Floats,
    logs: Floats,
    y: Ints,
    weight: Floats,
    folds: Folds,
    units: Ints | None = None,
    *,
    keep_argmax: bool,
) -> tuple[Confusion, Floats]:
    """Learn the correction; return also what it adds to the logits of held-out rows.

    Parameters
    ----------
    base, logs : ndarray of shape (n, K)
        The logits to correct, and the log-probabilities.
    y : ndarray of int
        Class numbers.
    weight : ndarray
        Weights.
    folds : Folds
        Which rows are held out together.
    units : ndarray of int, optional
        The group of each row, if rows are not independent.
    keep_argmax : bool
        Whether the largest class must stay the largest.
    """
    n_classes = base.shape[1]
    nothing = Confusion.none(n_classes)
    if not 2 < n_classes <= MOST_CLASSES:
        return nothing, np.zeros(base.shape)
    held, without = np.zeros((len(PENALTIES) + 1, len(y))), []
    judged = folds.judged()
    held[0] = _losses(base, y)
    for train, out in folds.splits():
        path = _path(base[train], logs[train], y[train], weight[train])
        without.append((out, path))
        for k, correction in enumerate(path):
            after = correction.corrected(base[out], logs[out], keep_argmax=keep_argmax)
            held[k + 1, out] = _losses(after, y[out])
    total = held[:, judged] @ weight[judged]
    mix = np.exp(total.min() - total)
    mix /= mix.sum()
    apart = base.copy()
    for out, path in without:
        apart[out] = _mixed(path, mix).corrected(base[out], logs[out], keep_argmax=keep_argmax)
    saved = weight * (held[0] - _losses(apart, y))
    mean = _mixed(_path(base, logs, y, weight), mix)
    few = None if units is None else units[judged]
    share = share_of(gain_of(saved[judged], weight[judged], few))
    penalty = float(np.exp(mix @ np.log([NO_CORRECTION_PENALTY, *PENALTIES])))
    covariance = _covariance(base, logs, weight, penalty)
    return replace(mean, share=share, covariance=covariance), share * (apart - base)


def _path(base: Floats, logs: Floats, y: Ints, weight: Floats) -> list[Confusion]:
    """Return the corrections of all penalties, each started from the next larger penalty's."""
    start, path = Confusion.none(base.shape[1]), []
    for penalty in reversed(PENALTIES):
        start = _fit(base, logs, y, weight, penalty, start)
        path.append(start)
    return path[::-1]


def _mixed(path: list[Confusion], mix: Floats) -> Confusion:
    """Return the weighted mean of no correction and those of all penalties."""
    pull = sum(
        (part * one.pull for part, one in zip(mix[1:], path, strict=True)), 0.0 * path[0].pull
    )
    bias = sum(
        (part * one.bias for part, one in zip(mix[1:], path, strict=True)), 0.0 * path[0].bias
    )
    return replace(path[0], pull=pull, bias=bias)


def _covariance(base: Floats, logs: Floats, weight: Floats, penalty: float) -> Floats:
    """Return the posterior covariance of the coefficients of each class."""
    X = np.column_stack([_centred(logs), np.ones(len(logs))])
    q = softmax(base)
    work = weight[:, None] * q * (1.0 - q)
    ridge = penalty * np.eye(X.shape[1])
    return np.stack([np.linalg.inv((X * w[:, None]).T @ X + ridge) for w in work.T])


def _centred(logs: Floats) -> Floats:
    kept = np.maximum(logs, LOG_FLOOR)
    return np.asarray((kept - kept.mean(axis=1, keepdims=True)) / LOG_UNIT)


def _losses(logits: Floats, y: Ints) -> Floats:
    own = logits[np.arange(len(y)), y]
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - own)


def _fit(
    base: Floats, logs: Floats, y: Ints, weight: Floats, penalty: float, start: Confusion
) -> Confusion:
    """Minimize the penalized loss by L-BFGS, starting from another correction."""
    n_classes = base.shape[1]
    features = _centred(logs)
    rows = np.arange(len(y))

    def objective(parameters: Floats) -> tuple[float, Floats]:
        half = parameters[:-n_classes].reshape(n_classes, n_classes)
        pull, bias = (half + half.T) / 2, parameters[-n_classes:]
        logits = base + features @ pull + bias
        error = softmax(logits)
        value = float(weight @ _losses(logits, y)) + 0.5 * penalty * float(parameters @ parameters)
        error[rows, y] -= 1.0
        error *= weight[:, None]
        slope = features.T @ error
        gradient = np.append((slope + slope.T).ravel() / 2, error.sum(axis=0))
        return value, gradient + penalty * parameters

    from scipy.optimize import minimize  # noqa: PLC0415  only a fit needs it

    found = minimize(
        objective,
        np.append(start.pull.ravel(), start.bias),
        jac=True,
        method="L-BFGS-B",
        options=_OPTIMIZER,
    ).x
    half = found[:-n_classes].reshape(n_classes, n_classes)
    return replace(start, pull=(half + half.T) / 2, bias=found[-n_classes:], share=1.0)
