"""Paired figures of two sets of probabilities on the same rows, with their differences."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri, stdtrit

from varcal._arrays import Bools, Floats, Ints

#: Probabilities are clipped to this in the log-loss, as in scikit-learn: the largest loss is 36.
LEAST = float(np.finfo(np.float64).eps)


def row_losses(p: Floats, y: Ints) -> dict[str, Floats]:
    """Return the accuracy, log-loss and Brier score of each row.

    The Brier score of two classes is (p − y)²; of more, the sum over classes.

    >>> losses = row_losses(np.array([0.8, 0.4]), np.array([1, 1]))
    >>> {name: values.round(3).tolist() for name, values in losses.items()}
    {'accuracy': [1.0, 0.0], 'log-loss': [0.223, 0.916], 'Brier': [0.04, 0.36]}
    """
    if p.ndim == 1 or p.shape[1] == 2:
        positive = p if p.ndim == 1 else p[:, 1]
        negative = 1 - p if p.ndim == 1 else p[:, 0]
        chosen = np.where(y == 1, positive, negative)
        right = (positive > negative) == (y == 1)
        brier = (positive - (y == 1)) ** 2
    else:
        chosen = p[np.arange(len(y)), y]
        right = p.argmax(axis=1) == y
        brier = (p**2).sum(axis=1) - 2 * chosen + 1
    return {
        "accuracy": right.astype(np.float64),
        "log-loss": -np.log(np.maximum(chosen, LEAST)),
        "Brier": brier,
    }


def mean_interval(
    values: Floats, weight: Floats | None, groups: Ints | None, level: float
) -> tuple[float, float, float]:
    """Return a weighted mean and its interval, for independent rows or for groups."""
    w = np.ones(len(values)) if weight is None else weight
    mean = float((w * values).sum() / w.sum())
    residual = w * (values - mean) / w.sum()
    if groups is not None:
        residual = np.bincount(groups, residual).astype(np.float64)
    n = len(residual)
    if n < 2:
        return mean, math.nan, math.nan
    se = math.sqrt(float((residual**2).sum()) * n / (n - 1))
    z = float(ndtri(0.5 + level / 2) if groups is None else stdtrit(n - 1, 0.5 + level / 2))
    return mean, mean - z * se, mean + z * se


def auc_parts(score: Floats, hit: Bools, weight: Floats | None = None) -> tuple[float, Floats]:
    r"""Return the area under the ROC curve and each row's influence on it (DeLong).

    With :math:`F_0` the distribution of the negatives' scores and :math:`F_1` of the
    positives', the AUC is the mean of :math:`F_0(s)` over positives (ties count half); a
    positive's influence is :math:`(F_0(s) - AUC) / n_1`, a negative's
    :math:`(1 - F_1(s) - AUC) / n_0`.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44.

    >>> auc_parts(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))[0]
    0.75
    """
    w = np.ones(len(score)) if weight is None else weight
    if not w[hit].any() or not w[~hit].any():
        return math.nan, np.zeros(len(score))
    placed = np.empty(len(score))
    placed[hit] = _place(score[~hit], w[~hit], score[hit])
    placed[~hit] = 1 - _place(score[hit], w[hit], score[~hit])
    area = float(np.average(placed[hit], weights=w[hit]))
    return area, w * (placed - area) / np.where(hit, w[hit].sum(), w[~hit].sum())


def _place(sample: Floats, weight: Floats, values: Floats) -> Floats:
    """Return the weighted mid-distribution function of a sample at some values."""
    order = np.argsort(sample)
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    left = below[np.searchsorted(sample[order], values)]
    right = below[np.searchsorted(sample[order], values, side="right")]
    return np.asarray((left + right) / (2 * below[-1]))


def sum_interval(influence: Floats, groups: Ints | None, level: float) -> float:
    """Return the half-width of the interval of a statistic from the influences of the rows."""
    if groups is not None:
        influence = np.bincount(groups, influence).astype(np.float64)
    n = len(influence)
    if n < 2:
        return math.nan
    z = float(ndtri(0.5 + level / 2) if groups is None else stdtrit(n - 1, 0.5 + level / 2))
    return z * math.sqrt(float((influence**2).sum()) * n / (n - 1))
