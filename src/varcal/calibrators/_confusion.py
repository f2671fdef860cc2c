r"""Which classes are taken for one another: a small symmetric correction that keeps the argmax.

.. math:: \ln q = \text{base} + s \,(W \tilde l + b) + \text{const}, \qquad W = W^\top

with :math:`\tilde l` the centred log-probabilities, a ridge on W and b, and for each row the
largest :math:`s \le 1` at which the class that was largest still is. Corrections of several
penalties are averaged by how well they do on held-out rows; "none" is one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["Confusion", "fit_confusion", "softmax"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
#: Classes beyond which there are too many pairs to learn about.
_MOST_CLASSES = 40
_FLOOR = -12.0
_UNIT = 5.0


def softmax(logits: Floats) -> Floats:
    """Return probabilities of rows of logits.

    >>> softmax(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Confusion:
    """The correction.

    Attributes
    ----------
    pull : ndarray of shape (K, K)
        W.
    bias : ndarray of shape (K,)
        b.
    """

    pull: Floats
    bias: Floats

    @classmethod
    def none(cls, n_classes: int) -> Confusion:
        """Return the correction that changes nothing."""
        return cls(np.zeros((n_classes, n_classes)), np.zeros(n_classes))

    def corrected(self, base: Floats, logs: Floats, *, keep_argmax: bool = True) -> Floats:
        """Return logits of rows, given those before and the log-probabilities."""
        if not (self.pull.any() or self.bias.any()):
            return base
        added = _centred(logs) @ self.pull + self.bias
        if not keep_argmax:
            return np.asarray(base + added)
        rows, top = np.arange(len(base)), base.argmax(axis=1)
        lead = base[rows, top][:, None] - base
        loss = added - added[rows, top][:, None]
        most = np.where(loss > 0, lead / np.where(loss > 0, loss, 1.0), np.inf)
        most[rows, top] = np.inf
        # A hair less than the whole way, so that rounding cannot make a tie.
        share = np.minimum(most.min(axis=1) * (1 - 1e-9), 1.0)
        return np.asarray(base + share[:, None] * added)


def fit_confusion(
    base: Floats, logs: Floats, y: Ints, weight: Floats, folds: Ints, *, keep_argmax: bool
) -> Confusion:
    """Learn the correction.

    Parameters
    ----------
    base, logs : ndarray of shape (n, K)
        Logits to correct and log-probabilities.
    y : ndarray of int
        Class numbers.
    weight : ndarray
        Weights.
    folds : ndarray of int
        The fold of every row.
    keep_argmax : bool
        Whether it will be applied so that the largest class stays.
    """
    n_classes = base.shape[1]
    nothing = Confusion.none(n_classes)
    if not 2 < n_classes <= _MOST_CLASSES:
        return nothing
    held = np.zeros(len(_PENALTIES) + 1)
    for fold in np.unique(folds):
        out = folds == fold
        start = nothing
        held[0] += _loss(base[out], y[out], weight[out])
        for k in reversed(range(len(_PENALTIES))):
            start = _fit(base[~out], logs[~out], y[~out], weight[~out], _PENALTIES[k], start)
            after = start.corrected(base[out], logs[out], keep_argmax=keep_argmax)
            held[k + 1] += _loss(after, y[out], weight[out])
    share = np.exp(held.min() - held)
    share /= share.sum()
    pull, bias, start = nothing.pull, nothing.bias, nothing
    for k in reversed(range(len(_PENALTIES))):
        start = _fit(base, logs, y, weight, _PENALTIES[k], start)
        pull, bias = pull + share[k + 1] * start.pull, bias + share[k + 1] * start.bias
    return Confusion(pull, bias)


def _centred(logs: Floats) -> Floats:
    kept = np.maximum(logs, _FLOOR)
    return np.asarray((kept - kept.mean(axis=1, keepdims=True)) / _UNIT)


def _loss(logits: Floats, y: Ints, weight: Floats) -> float:
    own = logits[np.arange(len(y)), y]
    top = logits.max(axis=1)
    return float(weight @ (top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - own))


def _fit(
    base: Floats, logs: Floats, y: Ints, weight: Floats, penalty: float, start: Confusion
) -> Confusion:
    """Minimize the penalized loss by L-BFGS from another correction."""
    n_classes = base.shape[1]
    features = _centred(logs)
    rows = np.arange(len(y))

    def objective(parameters: Floats) -> tuple[float, Floats]:
        half = parameters[:-n_classes].reshape(n_classes, n_classes)
        pull, bias = (half + half.T) / 2, parameters[-n_classes:]
        logits = base + features @ pull + bias
        error = softmax(logits)
        value = _loss(logits, y, weight) + 0.5 * penalty * float(parameters @ parameters)
        error[rows, y] -= 1.0
        error *= weight[:, None]
        slope = features.T @ error
        gradient = np.append((slope + slope.T).ravel() / 2, error.sum(axis=0))
        return value, gradient + penalty * parameters

    found = minimize(
        objective,
        np.append(start.pull.ravel(), start.bias),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 200, "ftol": 1e-10},
    ).x
    half = found[:-n_classes].reshape(n_classes, n_classes)
    return Confusion((half + half.T) / 2, found[-n_classes:])
