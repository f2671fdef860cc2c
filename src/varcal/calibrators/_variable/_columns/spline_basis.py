"""The columns of one variable in an additive model: rank, curve, raw value, atoms, levels.

A number enters by its tempered mid-rank u in [0, 1] (a value held by m rows counts √m, so that
frequent values do not take up most of the scale): as a line in u, and as a cubic P-spline in u
whose second-difference penalty is transformed into a ridge. In addition it enters by its winsorized
raw value, by an indicator of each value that many rows hold (an atom), and by an indicator of
missing values. A category enters as a random effect. Every block has unit total variance on the
calibration rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.exceptions import InputError

#: The difference of two values must not overflow.
MOST_VALUE = 1e307
#: The blocks of one variable by the name of their part.
Parts = dict[str, Floats]

# Tuned constants; ../README.md shows what changes at half and at twice each value.

#: B-splines of a curve at most, and rows for each: few rows have fewer splines.
SPLINES = 20
ROWS_PER_SPLINE = 20.0
#: Columns of a curve: the smoothest of the splines' combinations.
CURVE_COLUMNS = 12
#: A value held by m rows counts m to this power in ranks: 1 gives mid-ranks, 0 ranks of the
#: distinct values.
TEMPER = 0.5
#: A value that holds at least this share of the rows gets an indicator.
ATOM_SHARE = 0.1
#: Raw values are winsorized at this quantile and at 1 minus it.
WINSOR = 0.005
#: The raw value is left out where the line of its rank explains more than this share of its
#: variance.
REDUNDANT_SHARE = 0.95
#: Columns of a category at most, and rows that a level with a column of its own has at least.
LEVEL_COLUMNS = 60
LEVEL_ROWS = 3.0

# Numerical limits.

#: Cubic splines are at least five: two pieces.
LEAST_SPLINES = 5
#: Ranks are stored at this number of points at most.
RANK_GRID = 1024
#: A spread below this share of the values' size is rounding.
ROUNDING = 1e-9


def usable_scale(spread: float, size: float = 1.0) -> float:
    """Return a standard deviation, or 0 if it is mere rounding for values of that size.

    >>> usable_scale(0.5), usable_scale(1e-16), usable_scale(1e-3, size=1e9)
    (0.5, 0.0, 0.0)
    """
    return spread if spread > ROUNDING * size else 0.0


def weighted_counts(values: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the distinct values and the weight of each.

    >>> weighted_counts(np.array([2.0, 1.0, 2.0]), None)
    (array([1., 2.]), array([1., 2.]))
    """
    found, place = np.unique(values, return_inverse=True)
    return found, np.bincount(place, weight, minlength=len(found)).astype(np.float64)


def weighted_quantiles(values: Floats, counts: Floats, shares: tuple[float, ...]) -> Floats:
    """Return the smallest distinct values that reach the given shares of the weight."""
    reached = np.cumsum(counts)
    at = np.searchsorted(reached, np.asarray(shares) * reached[-1] * (1 - 1e-12))
    return np.asarray(values[np.minimum(at, len(values) - 1)])


def bspline_columns(u: Floats, n_splines: int) -> Floats:
    """Return the uniform cubic B-splines on [0, 1] at u, shape (n, n_splines).

    >>> bspline_columns(np.array([0.0, 0.5]), 5).sum(axis=1)
    array([1., 1.])
    """
    pieces = n_splines - 3
    x = np.clip(u, 0.0, 1.0) * pieces
    first = np.minimum(x.astype(np.intp), pieces - 1)
    t = x - first
    columns = np.zeros((len(u), n_splines))
    flat = columns.ravel()
    at = np.arange(len(u)) * n_splines + first
    # Products are faster than numpy's powers.
    rest, square = 1 - t, t * t
    cube = square * t
    flat[at] = rest * rest * rest / 6
    flat[at + 1] = (3 * cube - 6 * square + 4) / 6
    flat[at + 2] = (-3 * cube + 3 * square + 3 * t + 1) / 6
    flat[at + 3] = cube / 6
    return columns


def _ridge_map(n_splines: int, most: int) -> Floats:
    """Return the map that makes the second-difference penalty a ridge, smoothest column first."""
    differences = np.diff(np.eye(n_splines), 2, axis=0)
    values, vectors = np.linalg.eigh(differences.T @ differences)
    turn = vectors[:, 2:] / np.sqrt(values[2:])
    # The sign of an eigenvector depends on the library: fix it, so that files are equal everywhere.
    turn *= np.sign(turn[np.abs(turn).argmax(axis=0), np.arange(turn.shape[1])])
    return np.asarray(turn[:, :most])


@dataclass(frozen=True, eq=False)
class NumberBasis:
    """The columns of a number or a date.

    Attributes
    ----------
    at, rank : ndarray
        Values and their tempered mid-ranks, between which ranks are interpolated.
    rank_mean, rank_scale : float
        Mean and standard deviation of the rank.
    n_splines : int
        The number of B-splines before the transformation.
    turn, shift, slope : ndarray
        The curve is ``splines @ turn − shift − line · slope``: centred, orthogonal to the line.
    low, high, raw_mean, raw_scale : float
        Bounds, mean and standard deviation of the raw value; a scale of 0 leaves it out.
    atoms, atom_mean, atom_scale : ndarray
        Values with an indicator, and mean and standard deviation of the indicators.
    missing_mean : float
        The share of missing rows; 0 leaves their indicator out.
    """

    at: Floats
    rank: Floats
    rank_mean: float
    rank_scale: float
    n_splines: int
    turn: Floats
    shift: Floats
    slope: Floats
    low: float
    high: float
    raw_mean: float
    raw_scale: float
    atoms: Floats
    atom_mean: Floats
    atom_scale: Floats
    missing_mean: float

    @classmethod
    def of(
        cls,
        values: Floats,
        weight: Floats | None,
        *,
        n_splines: int | None = None,
        n_curves: int | None = None,
        temper: float | None = None,
        smooth_only: bool = False,
    ) -> NumberBasis | None:
        """Learn the columns from the calibration rows; None where nothing varies.

        Parameters
        ----------
        values, weight : ndarray
            The variable, NaN where it is missing, and weights.
        n_splines, n_curves, temper : optional
            In place of `SPLINES`, `CURVE_COLUMNS` and `TEMPER`.
        smooth_only : bool
            Whether to leave out the raw value and the indicators of frequent values.
        """
        n_splines = SPLINES if n_splines is None else n_splines
        n_curves = CURVE_COLUMNS if n_curves is None else n_curves
        temper = TEMPER if temper is None else temper
        values = np.asarray(values, dtype=np.float64)
        gone = np.isnan(values)
        total = float(len(values) if weight is None else weight.sum())
        missing = float(gone.sum() if weight is None else weight[gone].sum()) / total
        some = values[~gone]
        if not len(some) or (not gone.any() and some.min() == some.max()):
            return None
        finite = some[np.isfinite(some)]
        ends = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
        found, counts = weighted_counts(
            np.clip(some, *ends), None if weight is None else weight[~gone]
        )
        tempered = counts**temper
        rank = (np.cumsum(tempered) - tempered / 2) / tempered.sum()
        share = counts / counts.sum()
        mean = float(share @ rank)
        scale = usable_scale(float(np.sqrt(share @ (rank - mean) ** 2))) or 1.0
        line = (rank - mean) / scale
        splines = int(max(LEAST_SPLINES, min(n_splines, len(found) + 2, total / ROWS_PER_SPLINE)))
        turn = _ridge_map(splines, n_curves)
        curve = bspline_columns(rank, splines) @ turn
        shift = share @ curve
        curve = curve - shift
        slope = (share * line) @ curve
        curve = curve - line[:, None] * slope
        spread = float(np.sqrt((share @ curve**2).sum()))
        if len(found) < 3 or spread < ROUNDING:
            turn, shift, slope, spread = turn[:, :0], shift[:0], slope[:0], 1.0
        low, high = weighted_quantiles(found, counts, (WINSOR, 1 - WINSOR))
        if low == high:
            low, high = found[0], found[-1]
        if max(-low, high) > MOST_VALUE:
            raise InputError(
                f"a variable holds values up to {max(-low, high):g}, beyond {MOST_VALUE:g}",
                "divide the column by a constant",
                argument="v",
            )
        kept_raw = np.clip(found, low, high)
        raw_mean = float(share @ kept_raw)
        apart = kept_raw - raw_mean
        # The squares of very large numbers would overflow, and so may quotients of the smallest.
        size = max(float(np.abs(apart).max()), float(np.finfo(np.float64).tiny))
        apart /= size
        raw_scale = size * float(np.sqrt(share @ apart**2))
        raw_scale = usable_scale(raw_scale, float(np.abs(kept_raw).max()))
        correlation = float(share @ (line * (apart / (raw_scale / size or 1.0))))
        several = len(found) > 2 and not smooth_only
        uses_raw = several and correlation**2 <= REDUNDANT_SHARE
        heavy = (share >= ATOM_SHARE) & (share < 1 - ROUNDING) & several
        grid = _thinned(rank, heavy)
        return cls(
            at=found[grid],
            rank=rank[grid],
            rank_mean=mean,
            rank_scale=scale,
            n_splines=splines,
            turn=turn / spread,
            shift=shift / spread,
            slope=slope / spread,
            low=float(low),
            high=float(high),
            raw_mean=raw_mean,
            raw_scale=raw_scale if uses_raw else 0.0,
            atoms=found[heavy],
            atom_mean=share[heavy],
            atom_scale=np.sqrt(share[heavy] * (1 - share[heavy])),
            missing_mean=missing,
        )

    def ranks(self, values: Floats) -> Floats:
        """Return the tempered mid-rank of values; beyond the fitted range, that of its end."""
        u = np.interp(values, self.at, self.rank)
        lost = ~np.isfinite(u)
        if lost.any():
            # Between subnormal numbers the slope of the rank overflows.
            at = np.searchsorted(self.at, values[lost])
            u[lost] = self.rank[np.minimum(at, len(self.rank) - 1)]
        return u

    def parts(self, values: AnyArray) -> Parts:
        """Return the blocks; missing values are 0, the mean, in all but their own indicator."""
        values = np.asarray(values, dtype=np.float64)
        gone = np.isnan(values)
        u = self.ranks(np.where(gone, self.at[0], values))
        line = (u - self.rank_mean) / self.rank_scale
        blocks = {"line": line[:, None]}
        if self.turn.shape[1]:
            curve = bspline_columns(u, self.n_splines) @ self.turn - self.shift
            blocks["curve"] = curve - line[:, None] * self.slope
        if self.raw_scale > 0:
            raw = (np.clip(values, self.low, self.high) - self.raw_mean) / self.raw_scale
            blocks["raw"] = raw[:, None]
        if len(self.atoms):
            blocks["atoms"] = ((values[:, None] == self.atoms) - self.atom_mean) / self.atom_scale
        for block in blocks.values():
            block[gone] = 0.0
        if self.missing_mean > 0:
            spread = np.sqrt(self.missing_mean * max(1 - self.missing_mean, 1e-12))
            blocks["missing"] = ((gone - self.missing_mean) / spread)[:, None]
        return blocks


def _thinned(rank: Floats, needed: Bools) -> Ints:
    """Return positions of about `RANK_GRID` evenly spaced ranks and of the needed ones."""
    if len(rank) <= RANK_GRID:
        return np.arange(len(rank))
    even = np.searchsorted(rank, np.linspace(rank[0], rank[-1], RANK_GRID))
    heavy = np.flatnonzero(needed)
    around = np.concatenate([heavy - 1, heavy, heavy + 1])
    picked = np.concatenate([[0, len(rank) - 1], even, around])
    return np.unique(np.clip(picked, 0, len(rank) - 1))


@dataclass(frozen=True, eq=False)
class LevelBasis:
    """The columns of a category, a random effect; unseen levels are at the population mean.

    Attributes
    ----------
    rows : ndarray of shape (n_levels + 2, width)
        The columns of each fitted level, then of unseen levels (code −2), which are 0, the mean,
        then of missing values (code −1). Rare levels share a column.
    """

    rows: Floats

    @classmethod
    def of(cls, codes: Ints, n_levels: int, weight: Floats | None) -> LevelBasis | None:
        """Learn the columns from codes; None where nothing varies.

        Examples
        --------
        >>> LevelBasis.of(np.array([0, 0, 0, 1, 1, 1]), 2, None).rows.ravel()
        array([-1.,  1.,  0.,  0.])
        """
        place = np.where(codes < 0, n_levels, codes)
        counts = np.bincount(place, weight, minlength=n_levels + 1).astype(np.float64)
        held = np.flatnonzero(counts > 0)
        if len(held) < 2:
            return None
        largest = held[np.argsort(-counts[held], kind="stable")]
        own = np.sort(
            largest[: LEVEL_COLUMNS - 1][counts[largest[: LEVEL_COLUMNS - 1]] >= LEVEL_ROWS]
        )
        pooled = np.setdiff1d(held, own)
        if not len(own):
            return None
        column = np.zeros((n_levels + 1, len(own) + bool(len(pooled))))
        column[own, np.arange(len(own))] = 1.0
        column[pooled, -1:] = 1.0
        if column.shape[1] == 2:
            # Two levels need one indicator.
            column = column[:, 1:]
        share = counts @ column / counts.sum()
        scale = usable_scale(float(np.sqrt((share * (1 - share)).sum()))) or 1.0
        rows = np.where((counts > 0)[:, None], (column - share) / scale, 0.0)
        return cls(np.insert(rows, n_levels, 0.0, axis=0))

    def rare(self) -> Ints:
        """Return the positions of fitted levels without a column of their own.

        >>> LevelBasis.of(np.repeat([0, 1, 2, 3], [9, 9, 1, 1]), 4, None).rare()
        array([2, 3])
        """
        last = self.rows[:-2, -1]
        sharing = np.flatnonzero(last == last.max())
        return sharing if len(sharing) > 1 else sharing[:0]

    def without(self, rare: Ints) -> LevelBasis:
        """Return the columns with one row, the last of the levels, in place of some equal ones."""
        kept = np.setdiff1d(np.arange(len(self.rows) - 2), rare)
        return LevelBasis(np.vstack([self.rows[kept], self.rows[rare[:1]], self.rows[-2:]]))

    def parts(self, codes: AnyArray) -> Parts:
        """Return the block of columns."""
        return {"levels": self.rows[np.asarray(codes, dtype=np.intp)]}
