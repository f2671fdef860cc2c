r"""Many classes: a temperature that depends on V and on how sure the score is.

.. math:: q_k \propto p_k^{\,e^{\eta}}, \qquad \eta = \text{additive in } V \text{ and the score}.

A positive power of all probabilities of a row keeps their order, so the predicted class never
changes. As a function of η the log-loss of a row has the slopes

.. math:: \frac{d\ell}{d\eta} = t\,(\bar l - l_y), \qquad
          \mathrm{E}\,\frac{d^2\ell}{d\eta^2} = t^2 \operatorname{Var}_q l, \qquad
          t = e^\eta,\; l = \ln p,\; \bar l = \mathrm{E}_q l,

so that the same penalized fit serves as for two classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TemperatureLoss", "sharpened"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Powers are kept within these bounds on the logarithmic scale.
_MOST = 8.0


def log_rows(p: Floats) -> Floats:
    """Return ln p minus the largest of each row, with a floor where a float cannot go on."""
    logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    return np.asarray(logs - logs.max(axis=1, keepdims=True))


def sharpened(logs: Floats, eta: Floats) -> Floats:
    """Return the probabilities whose logarithms are e^η times those given.

    >>> sharpened(log_rows(np.array([[0.2, 0.8]])), np.array([0.0])).round(3)
    array([[0.2, 0.8]])
    """
    powers = np.exp(logs * np.exp(np.clip(eta, -_MOST, _MOST))[:, None])
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class TemperatureLoss:
    """Log-loss of rows of many classes as a function of their log inverse temperature.

    Attributes
    ----------
    logs : ndarray of shape (n, K)
        ln p, the largest of each row at 0.
    y : ndarray of int
        The class numbers.
    weight : ndarray of float
        Weights.
    offset : ndarray of float
        What is added to the predictor.
    """

    logs: Floats
    y: Ints
    weight: Floats
    offset: Floats

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, eta: Floats) -> Floats:
        """Return the weighted loss of each row."""
        scaled = self.logs * self._power(eta)[:, None]
        total = np.log(np.exp(scaled).sum(axis=1))
        return np.asarray(self.weight * (total - scaled[np.arange(len(self.y)), self.y]))

    def value(self, eta: Floats) -> float:
        """Return the weighted sum over rows."""
        return float(self.rows(eta).sum())

    def mass(self) -> Floats:
        """Return the weights."""
        return self.weight

    def shifted(self, eta: Floats) -> TemperatureLoss:
        """Return the loss of what is added to a predictor."""
        return TemperatureLoss(self.logs, self.y, self.weight, self.offset + eta)

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return minus the first derivative and the expected second one."""
        power = self._power(eta)
        q = np.exp(self.logs * power[:, None])
        q /= q.sum(axis=1, keepdims=True)
        mean = (q * self.logs).sum(axis=1)
        own = self.logs[np.arange(len(self.y)), self.y]
        spread = (q * self.logs**2).sum(axis=1) - mean**2
        first = self.weight * power * (own - mean)
        return first, self.weight * np.maximum(power**2 * spread, 1e-9)

    def take(self, rows: NDArray[np.bool_] | Ints | slice) -> TemperatureLoss:
        """Return the loss of some rows."""
        return TemperatureLoss(
            self.logs[rows], self.y[rows], self.weight[rows], self.offset[rows]
        )

    def _power(self, eta: Floats) -> Floats:
        return np.asarray(np.exp(np.clip(self.offset + eta, -_MOST, _MOST)))
