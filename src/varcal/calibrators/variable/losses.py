r"""Losses of rows: all that depends on the kind of outcome.

Predictors of shape (outputs, n) are logits of the second of two classes (one output), or of all
classes. A fit (`reml`) has one predictor η for each row: the logit, or the logarithm of a power of
all probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from varcal._arrays import AnyArray, Bools, Floats, Ints

#: The least working weight of a row.
LEAST_WEIGHT = 1e-9
#: The largest |ln t| of a power t of probabilities.
LARGEST_LOG_POWER = 5.0
#: The largest |ln μ| of a mean: squares must not overflow.
MOST_LOG = 150.0


def means(eta: Floats) -> Floats:
    """Return the probabilities of outputs, given predictors of shape (…, outputs, n)."""
    if eta.shape[-2] == 1:
        return np.asarray(expit(eta))
    q = np.exp(eta - eta.max(axis=-2, keepdims=True))
    return np.asarray(q / q.sum(axis=-2, keepdims=True))


def outcomes(y: Ints, n_outputs: int) -> Bools:
    """Return whether the outcome of each row is that of each output."""
    return np.asarray(y == (np.arange(n_outputs)[:, None] if n_outputs > 1 else 1)).reshape(
        n_outputs, -1
    )


def log_losses(eta: Floats, y: AnyArray) -> Floats:
    """Return the log-loss of each row, given predictors of shape (outputs, n)."""
    if len(eta) == 1:
        return np.asarray(np.logaddexp(0.0, eta[0]) - y * eta[0])
    top = eta.max(axis=0)
    return np.asarray(top + np.log(np.exp(eta - top).sum(axis=0)) - eta[y, np.arange(eta.shape[1])])


@dataclass(frozen=True, eq=False)
class LogisticLoss:
    r"""Log-loss of two classes, :math:`w\{\log(1 + e^{o+\eta}) - y (o + \eta)\}`."""

    y: Floats
    weight: Floats
    offset: Floats

    def rows(self, eta: Floats) -> Floats:
        """Return the weighted loss of each row."""
        return self.weight * log_losses((self.offset + eta)[None], self.y)

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return residuals and working weights."""
        mean = expit(self.offset + eta)
        spread = np.maximum(mean * (1.0 - mean), LEAST_WEIGHT)
        return self.weight * (self.y - mean), self.weight * spread

    def take(self, rows: AnyArray | slice) -> LogisticLoss:
        """Return the loss of some of the rows."""
        return LogisticLoss(self.y[rows], self.weight[rows], self.offset[rows])


@dataclass(frozen=True, eq=False)
class PowerLoss:
    r"""Log-loss of many classes as a function of a log power, :math:`q_k \propto p_k^{e^\eta}`."""

    logs: Floats
    y: Ints
    weight: Floats

    def rows(self, eta: Floats) -> Floats:
        """Return the weighted loss of each row."""
        return self.weight * log_losses(powered(self.logs, eta).T, self.y)

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return minus the first derivative and the expected second one."""
        logits = powered(self.logs, eta)
        q = means(logits.T).T
        mean = (q * logits).sum(axis=1)
        spread = (q * logits**2).sum(axis=1) - mean**2
        own = logits[np.arange(len(self.y)), self.y]
        return self.weight * (own - mean), self.weight * np.maximum(spread, LEAST_WEIGHT)

    def take(self, rows: AnyArray | slice) -> PowerLoss:
        """Return the loss of some of the rows."""
        return PowerLoss(self.logs[rows], self.y[rows], self.weight[rows])


def powered(logs: Floats, eta: Floats) -> Floats:
    """Return the logits e^η ln p of rows."""
    return np.asarray(logs * np.exp(np.clip(eta, -LARGEST_LOG_POWER, LARGEST_LOG_POWER))[:, None])


@dataclass(frozen=True, eq=False)
class MeanLoss:
    r"""Half the deviance of the mean :math:`e^{o+\eta}` with the variance μᵖ, 1 ≤ p ≤ 2.

    With p = 0 the mean is :math:`o + \eta`, and the loss half the squared error.
    """

    y: Floats
    weight: Floats
    offset: Floats
    power: float

    def mean(self, eta: Floats) -> Floats:
        """Return the mean of each row."""
        total = self.offset + eta
        return np.asarray(np.exp(np.clip(total, -MOST_LOG, MOST_LOG)) if self.power else total)

    def rows(self, eta: Floats) -> Floats:
        """Return half the weighted deviance of each row, up to a constant."""
        mean, p = self.mean(eta), self.power
        if p == 0:
            loss = (self.y - mean) ** 2 / 2
        elif p == 1:
            loss = mean - self.y * np.log(mean)
        elif p == 2:
            loss = self.y / mean + np.log(mean)
        else:
            loss = mean ** (2 - p) / (2 - p) - self.y * mean ** (1 - p) / (1 - p)
        return np.asarray(self.weight * loss)

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return minus the first derivative and the expected second one."""
        mean, p = self.mean(eta), self.power
        if p == 0:
            return self.weight * (self.y - mean), self.weight
        return self.weight * (self.y - mean) * mean ** (1 - p), self.weight * mean ** (2 - p)

    def take(self, rows: AnyArray | slice) -> MeanLoss:
        """Return the loss of some of the rows."""
        return MeanLoss(self.y[rows], self.weight[rows], self.offset[rows], self.power)


Loss = LogisticLoss | MeanLoss | PowerLoss
