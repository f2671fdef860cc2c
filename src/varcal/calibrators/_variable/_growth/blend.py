"""How far one predictor is mixed with another, by the loss of held-out rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from varcal._arrays import Bools, Floats, Ints
from varcal.calibrators._variable.folds import Folds
from varcal.calibrators._variable.gain import Gain, cautious_gain
from varcal.calibrators._variable.trust import share_of

# Tuned constants; ../README.md tells how they were chosen.

#: Held-out gains, in standard errors, between which the share of the second predictor rises from 0
#: to the best one. In 1,000 rows with jumps the log-loss was .5214 without trees of three levels,
#: .5193 with them at (1.5, 3.5) and .5179 at (0.5, 2), which cost .0003 on calibrated scores.
BLEND_RAMP = (1.25, 3.0)

#: Newton steps of the best share at most, and the step that ends the search.
_STEPS, _TOLERANCE = 50, 1e-10


@dataclass(frozen=True, eq=False)
class Held:
    """Held-out rows.

    Attributes
    ----------
    y, mass : ndarray
        Outcomes, and the number of rows that each row stands for.
    folds : Folds
        Which rows are held out together.
    units : ndarray or None
        The group of each row.
    """

    y: Floats
    mass: Floats
    folds: Folds
    units: Ints | None = None

    def loss(self, eta: Floats) -> Floats:
        """Return the log-loss of each row, times its weight."""
        return np.asarray(self.mass * (np.logaddexp(0.0, eta) - self.y * eta))


def blend(rows: Held, first: Floats, second: Floats) -> tuple[float, Gain]:
    """Return the share of the second of two predictors of held-out rows, and what it gains.

    The gain of each fold is measured with the best share of the other folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=4000)
    >>> y = (rng.random(4000) < expit(eta)).astype(float)
    >>> rows = Held(y, np.ones(4000), Folds(np.arange(4000) % 5, 5))
    >>> share, gain = blend(rows, np.zeros(4000), eta)
    >>> bool(0.9 < share <= 1), bool(gain.ratio > 3)
    (True, True)
    >>> blend(rows, eta, eta + rng.normal(size=4000))[0] < 0.05
    True
    """
    judged, apart = rows.folds.judged(), second - first
    best = _best_share(rows, first, apart, judged)
    after = first.copy()
    for _, held in rows.folds.splits():
        others = judged & ~held
        share = _best_share(rows, first, apart, others) if others.any() else best
        after[held] += share * apart[held]
    gain = held_out_gain(rows, first, after)
    return best * share_of(gain, BLEND_RAMP), gain


def held_out(splits: Iterable[tuple[Bools, Bools]], etas: Floats) -> Floats:
    """Return the predictor of each row by the model that is judged on it; 0 without one."""
    eta = np.zeros(etas.shape[1])
    for (_, held), each in zip(splits, etas, strict=True):
        eta[held] = each[held]
    return eta


def held_out_gain(rows: Held, before: Floats, after: Floats) -> Gain:
    """Return by how much the second predictor lowers the mean loss of held-out rows."""
    judged = rows.folds.judged()
    saved = rows.loss(before) - rows.loss(after)
    mass, units = rows.mass[judged], None if rows.units is None else rows.units[judged]
    mean = expit(before[judged])
    curvature = mass * mean * (1.0 - mean)
    return cautious_gain(saved[judged], mass, units, curvature, (after - before)[judged])


def _best_share(rows: Held, first: Floats, apart: Floats, some: Bools) -> float:
    """Return the share between 0 and 1 with the least loss of some rows; the loss is convex."""
    eta, apart, y, mass = first[some], apart[some], rows.y[some], rows.mass[some]
    share = 0.5
    for _ in range(_STEPS):
        mean = expit(eta + share * apart)
        slope = float(mass @ ((y - mean) * apart))
        curvature = float(mass @ (mean * (1.0 - mean) * apart**2))
        if curvature <= 0:
            return 0.0
        moved = float(np.clip(share + slope / curvature, 0.0, 1.0))
        if abs(moved - share) < _TOLERANCE:
            return moved
        share = moved
    return share
