"""The columns of the score in an additive model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats
from varcal.calibrators._variable._columns.spline_basis import (
    NumberBasis,
    Parts,
    usable_scale,
    weighted_counts,
    weighted_quantiles,
)

# Tuned constants; ../README.md shows what changes at half and at twice each value.

#: z is winsorized at this quantile and at 1 minus it.
SCORE_WINSOR = 0.005
#: |z| is left out where its standard deviation is below this share of that of z: scores mirrored
#: around ½ differ in sign alone.
FOLD_SPREAD = 0.05
#: Scores of exactly 0 or 1 only say "beyond all others": their logit is taken to lie this far
#: beyond the others.
BEYOND = 1.0
#: Their logit where there are no other scores.
ALL_CERTAIN = 5.0
#: B-splines and columns of the last curve, which must be coarse; see `last_curve.py`.
LINK_SPLINES = 6
LINK_COLUMNS = 4

# Numerical limits.

#: Values that stand for all between the lowest and the highest logit of the last curve.
LINK_GRID = 257
_TINY = float(np.finfo(np.float64).tiny)
_EPS = 2.0**-54


def log_odds(p: Floats) -> Floats:
    """Return logit p, finite also for 0 and 1.

    >>> log_odds(np.array([0.0, 0.5, 1.0])).round(1)
    array([-708.4,    0. ,   37.4])
    """
    return np.asarray(np.log(np.maximum(p, _TINY)) - np.log(np.maximum(1.0 - p, _EPS)))


def _ends() -> Floats:
    """Return the logits of 0 and 1, and the certainty of 1 among many classes."""
    return np.append(log_odds(np.array([0.0, 1.0])), -np.log(_TINY))


@dataclass(frozen=True, eq=False)
class ScoreBasis:
    """The score as a winsorized logit z, as |z|, and as a curve of its rank.

    Attributes
    ----------
    low, high : float
        The quantiles of the calibration rows at which z is winsorized.
    least, most : float
        Bounds a little beyond the calibration scores other than 0 and 1; z is clipped to them
        where it is mixed with other logits.
    mean, scale : float
        Mean and standard deviation of z.
    fold_mean, fold_scale : float
        Mean and standard deviation of |z|; a scale of 0 leaves it out.
    rank : NumberBasis or None
        The curve of the rank of z, or of z itself; None where all scores are equal.
    """

    low: float
    high: float
    least: float
    most: float
    mean: float
    scale: float
    fold_mean: float
    fold_scale: float
    rank: NumberBasis | None

    @classmethod
    def of(cls, z: Floats, weight: Floats | None, *, by_rank: bool = True) -> ScoreBasis:
        """Learn the columns from the logits of the calibration rows."""
        found, counts = weighted_counts(z, weight)
        low, high = weighted_quantiles(found, counts, (SCORE_WINSOR, 1 - SCORE_WINSOR))
        inside = found[~np.isclose(found[:, None], _ends(), rtol=0.0, atol=BEYOND).any(axis=1)]
        least, most = (
            (inside[0] - BEYOND, inside[-1] + BEYOND)
            if len(inside)
            else (-ALL_CERTAIN, ALL_CERTAIN)
        )
        low, high = np.clip((low, high), least, most)
        kept, share = np.clip(found, low, high), counts / counts.sum()
        mean = float(share @ kept)
        spread = float(np.sqrt(share @ (kept - mean) ** 2))
        scale = usable_scale(spread, max(1.0, float(np.abs(kept).max()))) or 1.0
        fold_mean = float(share @ np.abs(kept))
        fold_scale = float(np.sqrt(share @ (np.abs(kept) - fold_mean) ** 2))
        # For two distinct scores |z| adds nothing to z.
        folds = fold_scale > FOLD_SPREAD * scale and len(np.unique(kept)) > 2
        if by_rank:
            rank = NumberBasis.of(np.clip(z, low, high), weight, temper=1.0, smooth_only=True)
        else:
            even = np.linspace(low, high, LINK_GRID)
            rank = NumberBasis.of(
                even, None, n_splines=LINK_SPLINES, n_curves=LINK_COLUMNS, smooth_only=True
            )
        return cls(
            low=float(low),
            high=float(high),
            least=float(least),
            most=float(most),
            mean=mean,
            scale=scale,
            fold_mean=fold_mean,
            fold_scale=fold_scale if folds else 0.0,
            rank=rank,
        )

    def clipped(self, z: Floats) -> Floats:
        """Return z, winsorized."""
        return np.minimum(np.maximum(z, self.low), self.high)

    def bounded(self, z: Floats) -> Floats:
        """Return z, clipped a little beyond the calibration rows."""
        return np.minimum(np.maximum(z, self.least), self.most)

    def grid(self, size: int) -> Floats:
        """Return increasing values over the range of z, denser where there are more rows."""
        if self.rank is None or self.low == self.high:
            return np.array([self.low - 1.0, self.low + 1.0])
        even = np.linspace(self.rank.rank[0], self.rank.rank[-1], size)
        dense = np.interp(even, self.rank.rank, self.rank.at)
        return np.unique(np.concatenate([dense, np.linspace(self.low, self.high, size // 2)]))

    def unit(self, z: Floats) -> Floats:
        """Return z̃, the winsorized and standardized logit."""
        return np.asarray((self.clipped(z) - self.mean) / self.scale)

    def parts(self, z: Floats) -> Parts:
        """Return the blocks of columns: the intercept, z̃, |z| and the curve."""
        kept = self.clipped(z)
        blocks = {
            "level": np.ones((len(z), 1)),
            "slope": ((kept - self.mean) / self.scale)[:, None],
        }
        if self.fold_scale > 0:
            blocks["fold"] = ((np.abs(kept) - self.fold_mean) / self.fold_scale)[:, None]
        if self.rank is not None:
            blocks |= {k: v for k, v in self.rank.parts(kept).items() if k == "curve"}
        return blocks

    def pair_columns(self, z: Floats, most: int) -> Floats:
        """Return the columns that enter products with other variables."""
        if self.rank is None:
            return np.empty((len(z), 0))
        parts = self.rank.parts(self.clipped(z))
        return np.hstack([parts["line"], parts.get("curve", np.empty((len(z), 0)))[:, :most]])
