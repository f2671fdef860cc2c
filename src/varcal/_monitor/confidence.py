"""Confidence sequences: intervals of a mean that hold at all times at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats, ratio_or_zero
from varcal._monitor.moments import Moments

#: The rates that are averaged, as parts of the largest possible one. They span what is best from
#: some ten to many million rows.
_RATES = np.geomspace(0.001, 0.9, 24)
#: Predicted mean errors are held within this: a larger one would allow a lower error relative to
#: it, and so a wider interval for everybody.
MOST_PREDICTED = 0.25


def reach_of(spread: Floats, log_odds: Floats | float, lowest: float = 1.0) -> Floats:
    r"""Return how far a sum of errors can be from the sum of their means, at all times at once.

    V is the sum of the squared distances of errors from what was predicted before each batch. No
    error is further than c from its prediction on the side that counts. The reach r solves
    :math:`\text{mean}_\lambda \exp(\lambda r - \psi(\lambda) V) = \text{odds}` with
    :math:`\psi(\lambda) = (-\ln(1 - c\lambda) - c\lambda) / c^2`: the mean on the left exceeds the
    odds 2/α at any time with a probability of at most α/2 for either direction (Howard, Ramdas,
    McAuliffe and Sekhon 2021).

    Parameters
    ----------
    spread : ndarray
        V.
    log_odds : float or ndarray
        The logarithm of the odds.
    lowest : float
        The bound c: 1 if 0 was predicted for errors from −1 to 1.

    Examples
    --------
    >>> reach_of(np.array([200.0]), np.log(2 / 0.05)).round(1)
    array([52.6])
    """
    spread = np.asarray(spread, np.float64)[..., None]
    odds = np.broadcast_to(np.asarray(log_odds, np.float64)[..., None], spread.shape)
    rates = _RATES / lowest
    cost = (-np.log1p(-_RATES) - _RATES) / lowest**2 * spread
    # One rate alone gives an upper bound, from which Newton's steps fall to the solution.
    reach = ((cost + odds + np.log(len(rates))) / rates).min(axis=-1)
    for _ in range(12):
        power = rates * reach[..., None] - cost
        top = power.max(axis=-1, keepdims=True)
        weight = np.exp(power - top)
        value = top[..., 0] + np.log(weight.mean(axis=-1)) - odds[..., 0]
        slope = (weight * rates).sum(axis=-1) / weight.sum(axis=-1)
        reach = reach - value / slope
    return np.asarray(reach)


@dataclass(eq=False)
class Running:
    """The sums of all batches since the start, by cell, from which the mean gap is estimated.

    Attributes
    ----------
    n, weight, hit, score : ndarray
        As in `Moments`.
    spread : ndarray
        Σ u² (x − m)², with m the mean error of all earlier batches, held within
        `MOST_PREDICTED`.
    first, top : ndarray
        The largest size of an item in the first batch with rows, and in any batch; without groups
        both are constant.
    """

    n: Floats
    weight: Floats
    hit: Floats
    score: Floats
    spread: Floats
    first: Floats
    top: Floats

    @classmethod
    def new(cls, *shape: int) -> Running:
        """Return the sums of no batch; the last number is that of cells."""
        return cls(*(np.zeros(shape) for _ in range(7)))

    def update(self, moments: Moments) -> None:
        """Add a batch."""
        mean = ratio_or_zero(self.hit - self.score, self.weight)
        mean = np.clip(mean, -MOST_PREDICTED, MOST_PREDICTED)
        self.spread += moments.square2 - 2 * mean * moments.error2 + mean**2 * moments.weight2
        for name in ("n", "weight", "hit", "score"):
            getattr(self, name).__iadd__(getattr(moments, name))
        filled = moments.n > 0
        self.first = np.where((self.first == 0) & filled, moments.top, self.first)
        self.top = np.where(filled, np.maximum(self.top, moments.top), self.top)

    def cap(self, *, grouped: bool) -> tuple[Floats, Floats]:
        """Return the largest size that an item can have, and the price of not knowing it before.

        With groups the largest size of a unit is known only when it is seen. It is rounded up to
        the k-th doubling of the first one, which has a part of 1 / ((k + 1)(k + 2)) of the error.
        """
        base = np.where(self.first > 0, self.first, 1.0)
        if not grouped:
            return base, np.zeros_like(base)
        k = np.ceil(np.log2(np.maximum(self.top, base) / base) - 1e-12)
        return base * 2.0**k, np.log((k + 1) * (k + 2))

    def interval(self, log_odds: Floats | float, *, grouped: bool) -> tuple[Floats, Floats, Floats]:
        """Return the mean gap and the ends of its interval; without rows −1 to 1."""
        cap, price = self.cap(grouped=grouped)
        return gap_interval(
            self.score - self.hit,
            self.weight,
            self.spread,
            cap,
            log_odds + price,
            1 + MOST_PREDICTED,
        )


def gap_interval(
    error: Floats,
    weight: Floats,
    spread: Floats,
    cap: Floats,
    log_odds: Floats | float,
    lowest: float = 1.0,
) -> tuple[Floats, Floats, Floats]:
    """Return a mean gap, and the ends of its interval within [−1, 1].

    Parameters
    ----------
    error, weight, spread : ndarray
        Σ u (s − h), Σ u and Σ u² (x − m)².
    cap : ndarray
        The largest u that is possible.
    log_odds, lowest
        As in `reach_of`.
    """
    gap = ratio_or_zero(error, weight)
    reach = cap * reach_of(spread / cap**2, np.broadcast_to(log_odds, gap.shape), lowest)
    half = np.where(weight > 0, ratio_or_zero(reach, weight), np.inf)
    return gap, np.maximum(gap - half, -1.0), np.minimum(gap + half, 1.0)
