"""Paired figures of two sets of probabilities on the same rows, with their differences."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._inference.debiased import Measured, interval
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw, cluster_law
from varcal._inference.multiplicity import two_sided_quantile

#: Probabilities are clipped to this in the log-loss, as in scikit-learn: the largest loss is 36.
LEAST = float(np.finfo(np.float64).eps)
#: Standard errors by which the first set's gaps are shifted to the side on which the change is
#: larger, at the level 0.95; at other levels it is scaled like the quantile. With a calibrated
#: first set, 1.5 covered 93 to 97 % (300 samples), 1.75 covered 96 to 97 %, 1 % wider.
SHIFT = 1.75
#: Points of the quadrature of a normal expectation. The functions are piecewise linear; twice as
#: many points change no limit by more than 1 %.
NODES = 40


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
    reach = sum_interval(residual, groups, level)
    return mean, mean - reach, mean + reach


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
    z = two_sided_quantile(level, math.inf if groups is None else n - 1)
    return z * math.sqrt(float((influence**2).sum()) * n / (n - 1))


def change_law(
    index: Ints,
    change: Floats,
    weight: Floats | None,
    n_bins: int,
    bucket: Ints | None = None,
    n_buckets: int = 1,
) -> GapLaw:
    """Return the law of the change of each bin's gap, from the rows' changes of score − hit.

    Parameters
    ----------
    index : array of int
        The bin of each row.
    change : array
        The second set's score − hit, minus the first set's.
    weight : array, optional
        Weights of rows.
    n_bins : int
        The number of bins.
    bucket, n_buckets : array of int, int, optional
        The bucket of groups of each row, and their number.

    Examples
    --------
    >>> law = change_law(np.array([0, 0, 1, 1]), np.array([0.1, 0.3, -0.1, -0.1]), None, 2)
    >>> law.gap.round(6).tolist()
    [0.2, -0.1]
    """
    cell = index if bucket is None else index + n_bins * bucket
    sums = ErrorSums.from_rows(
        cell, change, np.zeros(len(change)), weight, n_bins=n_bins * n_buckets
    )
    # Few rows vary too little by chance; five rows of the bin's own mean square are added.
    sums = replace(sums, null2=sums.square2, fourth=np.zeros_like(sums.n))
    if bucket is None:
        return GapLaw.from_cells(sums)
    return cluster_law(
        ErrorSums(**{name: one.reshape(n_buckets, n_bins) for name, one in vars(sums).items()})
    )


def paired_interval(
    first: GapLaw, second: GapLaw, change: GapLaw, level: float
) -> tuple[float, float]:
    r"""Return an interval of the change of an error over the same bins.

    With the first set's gaps :math:`x_b` and the paired changes :math:`\delta_b`, the error
    changes by

    .. math:: \Delta = \sum_b \pi_b h_b(x_b), \qquad h_b(x) = |x + \delta_b| - |x|.

    Outcomes are part of :math:`x_b`, but cancel in :math:`\delta_b`. Each :math:`h_b` is monotone
    and lies within :math:`\pm|\delta_b|`, so that the limits of :math:`\Delta` follow from
    :math:`x_b` shifted by 1.75 standard errors to either side, plus and minus the normal quantile
    times the standard deviation of :math:`\sum \pi_b h_b` about there. With groups, bins are
    correlated; no correlation of two monotone functions is larger than that of their arguments.
    The interval is cut to :math:`\pm\sum \pi_b |\delta_b|`, with its own uncertainty, and to
    what the two errors' intervals at half the risk allow.

    Parameters
    ----------
    first, second : GapLaw
        The laws of the two sets' gaps over the same bins.
    change : GapLaw
        The law of the changes, from :func:`change_law`.
    level : float
        The level.
    """
    z = max(first.quantile(level), change.quantile(level))
    delta, sign, share = change.gap, np.sign(change.gap), first.share
    se = first.standard_error
    own = float(share @ np.abs(change.cov) @ share)
    together = np.maximum(first.correlation * np.outer(sign, sign), 0.0) + np.eye(len(sign))
    node, mass = np.polynomial.hermite_e.hermegauss(NODES)
    mass = mass / mass.sum()
    shift = SHIFT / two_sided_quantile(0.95) * z * se * sign
    size = np.abs(delta)
    of_shares = max(float(size @ first.share_cov @ size), 0.0)
    most = float(share @ size) + z * math.sqrt(own + of_shares)
    ends = []
    for side in (-1.0, 1.0):
        middle = first.gap + side * shift
        values = _change(middle[:, None] + se[:, None] * node, delta[:, None])
        spread = np.sqrt(np.maximum(values**2 @ mass - (values @ mass) ** 2, 0.0))
        at = _change(middle, delta)
        variance = (share * spread) @ together @ (share * spread) + own
        variance += max(float(at @ first.share_cov @ at), 0.0)
        ends.append(float(share @ at) + side * z * math.sqrt(variance))
    low, high = max(ends[0], -most), min(ends[1], most)
    (low_first, high_first), (low_second, high_second) = (
        map(float, interval(law, (1 + level) / 2)) for law in (first, second)
    )
    apart = low_second - high_first, high_second - low_first
    if max(low, apart[0]) <= min(high, apart[1]):
        low, high = max(low, apart[0]), min(high, apart[1])
    return low, high


def unpaired_interval(first: Measured, second: Measured, together: float) -> tuple[float, float]:
    r"""Return an interval of the change of an error over different bins, from the two intervals.

    The lower limit is :math:`d - \sqrt{a^2 + b^2 - 2ab\rho^2}` with the change d of the debiased
    values, the second set's distance a to its lower limit, the first set's distance b to its upper
    limit, and the correlation :math:`\rho` of the plug-in values; the upper limit is built alike.
    Near 0, absolute values correlate like the square of what is inside them, hence the square.

    Parameters
    ----------
    first, second : Measured
        The two errors, with intervals at half the risk: for a level of 0.95 at 0.975. At 0.95,
        coverage was 90 % where the errors differ much.
    together : float
        The correlation of the plug-in values, 0 if it is not known.

    References
    ----------
    Zou, G. Y. (2007). Toward using confidence intervals to compare correlations. Psychological
    Methods 12, 399-413.

    Examples
    --------
    >>> one = Measured(0.05, 0.05, 0.02, 0.08, 0.0, 0.01, 0.02)
    >>> low, high = unpaired_interval(one, one, 0.0)
    >>> round(low, 4), round(high, 4)
    (-0.0424, 0.0424)
    """
    middle = second.debiased - first.debiased

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a * a + b * b - 2 * max(together, 0.0) ** 2 * a * b, 0.0))

    return (
        middle - reach(second.debiased - second.low, first.high - first.debiased),
        middle + reach(second.high - second.debiased, first.debiased - first.low),
    )


def _change(gap: Floats, delta: Floats) -> Floats:
    out: Floats = np.abs(gap + delta) - np.abs(gap)
    return out
