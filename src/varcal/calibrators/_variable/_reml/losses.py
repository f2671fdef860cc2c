"""Losses of rows as functions of their linear predictors, with their derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from varcal._arrays import Bools, Floats, Ints

# A tuned constant; README.md shows what changes at half and at twice its value.

#: The least working weight of a row, as a share of its weight, in the posterior covariance: that of
#: a probability of about 1 %.
CERTAIN_WEIGHT = 0.01


#: The least working weight of a row.
LEAST_WORKING_WEIGHT = 1e-9


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
