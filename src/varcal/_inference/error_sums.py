"""ErrorSums: the sums per bin that inference needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Floats, ratio_or_zero


@dataclass(frozen=True)
class ErrorSums:
    r"""Sums over the rows of each bin; the last axis of every array runs over bins.

    With the score :math:`s`, the hit :math:`h \in \{0, 1\}`, :math:`e = h - s` and the
    weight :math:`w`, each array has one sum per bin. Leading axes may be replicates or classes.

    Parameters
    ----------
    n : array
        Rows.
    weight, weight2 : array
        :math:`\sum w` and :math:`\sum w^2`.
    error, error2, square2 : array
        :math:`\sum we`, :math:`\sum w^2 e` and :math:`\sum w^2 e^2`.
    score2 : array
        :math:`\sum w^2 s`.
    null2 : array
        :math:`\sum w^2 s(1 - s)`, the variance of ``error`` if the scores are calibrated.
    fourth : array
        :math:`\sum w^4 s(1 - s)(1 - 6s(1 - s))`, its fourth cumulant.

    Examples
    --------
    >>> cells = ErrorSums.from_rows([0, 0, 1], [0.5, 0.5, 0.9], [1, 1, 0], n_bins=2)
    >>> cells.gap
    array([-0.5,  0.9])
    """

    n: Floats
    weight: Floats
    weight2: Floats
    error: Floats
    error2: Floats
    square2: Floats
    score2: Floats
    null2: Floats
    fourth: Floats

    @classmethod
    def from_rows(
        cls,
        index: ArrayLike,
        score: ArrayLike,
        hit: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        n_bins: int,
    ) -> ErrorSums:
        """Sum rows by bin; arrays of rows may have leading axes of replicates."""
        s = np.asarray(score, float)
        e = np.asarray(hit, float) - s
        w = np.broadcast_to(1.0 if weight is None else np.asarray(weight, float), s.shape)
        index = np.broadcast_to(np.asarray(index, np.intp), s.shape)
        lead = s.shape[:-1]
        start = np.arange(int(np.prod(lead))).reshape(*lead, 1) * n_bins
        flat = (index + start).ravel()
        w2, v = w * w, s * (1 - s)

        def sums(values: Floats | None) -> Floats:
            bulk = np.bincount(
                flat,
                None if values is None else values.ravel(),
                minlength=n_bins * int(np.prod(lead)),
            )
            return bulk.reshape(*lead, n_bins).astype(float)

        return cls(
            n=sums(None),
            weight=sums(w),
            weight2=sums(w2),
            error=sums(w * e),
            error2=sums(w2 * e),
            square2=sums(w2 * e * e),
            score2=sums(w2 * s),
            null2=sums(w2 * v),
            fourth=sums(w2 * w2 * v * (1 - 6 * v)),
        )

    @property
    def share(self) -> Floats:
        """Each bin's share of the weight."""
        return ratio_or_zero(self.weight, self.weight.sum(-1, keepdims=True))

    @property
    def gap(self) -> Floats:
        """Mean score minus hit rate of each bin: positive is overconfident, 0 if empty."""
        return ratio_or_zero(-self.error, self.weight)

    @property
    def overall(self) -> Floats:
        """Gap over all rows."""
        return ratio_or_zero(-self.error.sum(-1), self.weight.sum(-1))

    @property
    def effective_n(self) -> Floats:
        r""":math:`(\sum w)^2 / \sum w^2` over all rows."""
        return ratio_or_zero(self.weight.sum(-1) ** 2, self.weight2.sum(-1))

    @property
    def effective_rows(self) -> Floats:
        r""":math:`(\sum w)^2 / \sum w^2` of each bin: its rows if all have the same weight."""
        return ratio_or_zero(self.weight**2, self.weight2)

    def scatter(self) -> Floats:
        r""":math:`\sum w^2 (e - \bar e_b)^2` of each bin, about the bin's own mean."""
        mean = -self.gap
        return np.maximum(self.square2 - 2 * mean * self.error2 + mean**2 * self.weight2, 0.0)


def plug_in(gap: Floats, share: Floats) -> Floats:
    r"""Return the plug-in calibration error of binned gaps, :math:`\sum_b \pi_b |g_b|`.

    Parameters
    ----------
    gap, share : array
        Gap and share of the weight of each bin, along the last axis.

    Examples
    --------
    >>> float(plug_in(np.array([0.1, -0.3]), np.array([0.5, 0.5])))
    0.2
    """
    return np.asarray((share * np.abs(gap)).sum(-1))
