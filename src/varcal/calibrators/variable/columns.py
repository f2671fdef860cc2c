"""The columns of the score and of each variable, as tables over knots or levels.

A column is straight between knots, so that the fitted effect of a variable is a table of heights
at the same knots: fitting, predicting and exporting read one and the same function. A number has
a line and a P-spline of its tempered rank, its winsorized value, and an indicator of missing
values. A category is a random effect. Every block has unit variance on
the calibration rows, so that one initial penalty suits all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.variables import Variable
from varcal.calibrators.evaluate import interpolated
from varcal.calibrators.schema import Schema
from varcal.exceptions import InputError

#: A value held by m rows counts m to this power in ranks, so that frequent values do not fill them
#: (tuned): with 1 the log-loss of 19 tables of 300 rows was .0006 ± .0003 larger.
TEMPER = 0.5

# Limits of resolution: half and twice each value moved the mean log-loss of three worlds by less
# than .0004 either way.

#: B-splines of a curve at most.
SPLINES = 20
#: Columns of a curve: the smoothest combinations of its B-splines.
CURVE_COLUMNS = 12
#: Values and logits are winsorized at this quantile and at 1 minus it.
WINSOR = 0.005
#: The value itself is left out where the line of its rank explains this share of its variance.
#: Without any, the log-loss was .0111 larger on Adult and .0083 on bank marketing.
REDUNDANT_SHARE = 0.95
#: Levels with a column at most, and rows that such a level has at least.
LEVEL_COLUMNS, LEVEL_ROWS = 60, 3.0
#: With more rare levels than this their names are not kept: a file with 78,000 of them had 51 MB.
MOST_RARE_LEVELS = 200

# Numerical limits.

#: Knots of a table: with 96 the log-loss on Adult, whose capital gains have many thresholds, was
#: .0028 ± .0010 larger; files of ten variables stay below 500 kB.
KNOTS = 256
#: The difference of two values must not overflow.
MOST_VALUE = 1e307
#: A spread below this share of the values' size is rounding.
ROUNDING = 1e-9
#: The position of the score among the variables.
SCORE = -1


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of one variable.

    Attributes
    ----------
    variable : int
        Its position; −1 for the score.
    knots : ndarray of shape (m,)
        Increasing values; empty for a category.
    table : ndarray of shape (m + 1, width) or (n_levels + 2, width)
        The columns at each knot, then of missing values; or those of each level, then of unseen
        levels and of missing values.
    parts : tuple of (str, int)
        The blocks that the columns consist of, and the width of each.
    """

    variable: int
    knots: Floats
    table: Floats
    parts: tuple[tuple[str, int], ...]

    def at(self, values: AnyArray) -> Floats:
        """Return the columns of rows."""
        if not len(self.knots):
            return self.table[np.asarray(values, dtype=np.intp)]
        gone = np.isnan(values)
        inside = np.clip(np.where(gone, self.knots[0], values), self.knots[0], self.knots[-1])
        last = max(len(self.knots) - 2, 0)
        left = np.clip(np.searchsorted(self.knots, inside, side="right") - 1, 0, last)
        share = (inside - self.knots[left]) / np.append(np.diff(self.knots), 1.0)[left]
        found = self.table[left]
        found += share[:, None] * (self.table[np.minimum(left + 1, len(self.knots) - 1)] - found)
        found[gone] = self.table[-1]
        return found

    def block(self, name: str) -> slice:
        """Return where a block lies; an empty slice if it does not exist."""
        begin = 0
        for part, width in self.parts:
            if part == name:
                return slice(begin, begin + width)
            begin += width
        return slice(0, 0)

    def narrow(self, most: int) -> Columns:
        """Return the first blocks, as many as are not wider together."""
        kept, width = [], 0
        for name, size in self.parts:
            if width + size > most:
                break
            kept.append((name, size))
            width += size
        return Columns(self.variable, self.knots, self.table[:, :width], tuple(kept))


def heights_at(knots: Floats, heights: Floats, values: AnyArray) -> Floats:
    """Return the heights of a table at values: numbers, or codes of levels."""
    if not len(knots):
        return np.asarray(heights[np.asarray(values, dtype=np.intp)])
    found = interpolated(values, knots, heights[:-1])
    gone = np.isnan(values)
    return np.where(gone, heights[-1], found) if gone.any() else found


def weighted_quantiles(values: Floats, counts: Floats, shares: tuple[float, ...]) -> Floats:
    """Return the smallest distinct values that reach the given shares of the weight."""
    reached = np.cumsum(counts)
    at = np.searchsorted(reached, np.asarray(shares) * reached[-1] * (1 - 1e-12))
    return np.asarray(values[np.minimum(at, len(values) - 1)])


def distinct(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values, the weight of each, infinite ones moved to the finite ends."""
    finite = values[np.isfinite(values)]
    ends = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    found, place = np.unique(np.clip(values, *ends), return_inverse=True)
    return found, np.bincount(place, weight, minlength=len(found)).astype(np.float64)


def score_columns(z: Floats, weight: Floats, ends: tuple[float, float]) -> tuple[Columns, Floats]:
    """Return the columns of the score's logit: a constant, z̃, and a curve of its rank.

    The first and the last knot are `ends`, between which all logits lie. Also returns the
    winsorized logit at the knots, and 0 for a missing one.
    """
    found, counts = distinct(np.append(z, ends), np.append(weight, [0.0, 0.0]))
    low, high = weighted_quantiles(found, counts, (WINSOR, 1 - WINSOR))
    share = counts / counts.sum()
    kept = np.clip(found, low, high)
    mean = float(share @ kept)
    scale = float(np.sqrt(share @ (kept - mean) ** 2))
    if scale <= ROUNDING * max(1.0, float(np.abs(kept).max())):
        knots = np.unique([found[0], mean, found[-1]])
        level = Columns(SCORE, knots, np.ones((len(knots) + 1, 1)), (("level", 1),))
        return level, np.append(np.full(len(knots), mean), 0.0)
    unit = (kept - mean) / scale
    blocks = {"level": np.ones((len(found), 1)), "slope": unit[:, None]}
    rank = np.cumsum(share) - share / 2
    if len(np.unique(kept)) > 2:
        blocks["curve"] = _curve(rank, share, unit)
    # Knots where rows are many, and along the whole range.
    along = 0.5 * rank + 0.5 * (kept - kept[0]) / (kept[-1] - kept[0])
    knots = _thinned(along)
    columns = _standardized(SCORE, found, share, knots, blocks, whole=("level", "slope"))
    return columns, np.append(kept[knots], 0.0)


def number_columns(k: int, values: Floats, weight: Floats) -> Columns | None:
    """Return the columns of a number or date, NaN where it is missing; None if it is constant."""
    gone = np.isnan(values)
    if gone.all() or (not gone.any() and values.min() == values.max()):
        return None
    found, counts = distinct(values[~gone], weight[~gone])
    missing = float(weight[gone].sum() / weight.sum())
    share = counts / counts.sum()
    tempered = counts**TEMPER
    rank = (np.cumsum(tempered) - tempered / 2) / tempered.sum()
    mean = float(share @ rank)
    scale = float(np.sqrt(share @ (rank - mean) ** 2)) or 1.0
    line = (rank - mean) / scale
    blocks = {"line": line[:, None]}
    low, high = weighted_quantiles(found, counts, (WINSOR, 1 - WINSOR))
    if low == high:
        low, high = found[0], found[-1]
    if max(-low, high) > MOST_VALUE:
        raise InputError(
            f"a variable holds values up to {max(-low, high):g}, beyond {MOST_VALUE:g}",
            "divide the column by a constant",
            argument="X",
        )
    if len(found) > 2:
        blocks["curve"] = _curve(rank, share, line)
        raw = np.clip(found, low, high) / max(abs(low), abs(high), np.finfo(float).tiny)
        raw = raw - share @ raw
        spread = float(np.sqrt(share @ raw**2))
        if spread > ROUNDING and (share @ (line * raw) / spread) ** 2 <= REDUNDANT_SHARE:
            blocks["raw"] = raw[:, None]
    return _standardized(k, found, share * (1 - missing), _thinned(rank), blocks, missing)


def level_columns(k: int, codes: Ints, n_levels: int, weight: Floats) -> Columns | None:
    """Return the columns of a category; rare levels share one; None where nothing varies.

    Codes are positions of levels, −1 for missing values, −2 for levels that are not listed.

    Examples
    --------
    >>> level_columns(0, np.array([0, 0, 0, 1, 1, 1]), 2, np.ones(6)).table.ravel()
    array([-1.,  1.,  0.,  0.])
    """
    size = n_levels + 2
    place = np.where(codes < 0, size + codes, codes)
    counts = np.bincount(place, weight, minlength=size).astype(np.float64)
    held, own = np.flatnonzero(counts > 0), frequent(counts, LEVEL_COLUMNS - 1)
    if len(held) < 2 or not len(own):
        return None
    pooled = np.setdiff1d(held, own)
    column = np.zeros((size, len(own) + bool(len(pooled))))
    column[own, np.arange(len(own))] = 1.0
    column[pooled, -1:] = 1.0
    if column.shape[1] == 2:
        column = column[:, 1:]  # two levels need one indicator
    share = counts @ column / counts.sum()
    scale = float(np.sqrt((share * (1 - share)).sum())) or 1.0
    # Levels without a row are at the mean.
    table = np.where((counts > 0)[:, None], (column - share) / scale, 0.0)
    return Columns(k, np.empty(0), table, (("levels", table.shape[1]),))


def frequent(counts: Floats, most: int) -> Ints:
    """Return the positions of the most frequent levels, of those with enough rows."""
    largest = np.argsort(-counts, kind="stable")[:most]
    return np.sort(largest[counts[largest] >= LEVEL_ROWS])


def pool_rare_levels(schema: Schema, variables: tuple[Variable, ...], mass: Floats) -> Schema:
    """Forget the names of rare levels where there are many; they share one effect."""
    for k, levels in enumerate(schema.levels):
        if len(levels) <= MOST_RARE_LEVELS:
            continue
        codes = schema.align(variables)[k]
        held = codes >= 0
        counts = np.bincount(codes[held], mass[held], minlength=len(levels))
        own = frequent(counts.astype(np.float64), LEVEL_COLUMNS - 1)
        if len(levels) - len(own) > MOST_RARE_LEVELS:
            schema = schema.listing(k, tuple(levels[j] for j in own))
    return schema


def _curve(u: Floats, share: Floats, line: Floats) -> Floats:
    """Return a P-spline of u whose penalty is a ridge: centred, without a line, smoothest first."""
    splines = max(5, min(SPLINES, len(u) + 2))
    differences = np.diff(np.eye(splines), 2, axis=0)
    values, vectors = np.linalg.eigh(differences.T @ differences)
    turn = (vectors[:, 2:] / np.sqrt(values[2:]))[:, :CURVE_COLUMNS]
    # The sign of an eigenvector depends on the library: fix it, so that files are equal everywhere.
    turn *= np.sign(turn[np.abs(turn).argmax(axis=0), np.arange(turn.shape[1])])
    curve = _bsplines(u, splines) @ turn
    curve -= share @ curve
    return np.asarray(curve - line[:, None] * ((share * line) @ curve))


def _bsplines(u: Floats, n_splines: int) -> Floats:
    """Return the uniform cubic B-splines on [0, 1] at u."""
    pieces = n_splines - 3
    x = np.clip(u, 0.0, 1.0) * pieces
    first = np.minimum(x.astype(np.intp), pieces - 1)
    t = x - first
    columns, rows = np.zeros((len(u), n_splines)), np.arange(len(u))
    columns[rows, first] = (1 - t) ** 3 / 6
    columns[rows, first + 1] = (3 * t**3 - 6 * t**2 + 4) / 6
    columns[rows, first + 2] = (-3 * t**3 + 3 * t**2 + 3 * t + 1) / 6
    columns[rows, first + 3] = t**3 / 6
    return columns


def _thinned(rank: Floats) -> Ints:
    """Return positions of about `KNOTS` evenly spaced ranks."""
    if len(rank) <= KNOTS:
        return np.arange(len(rank))
    return np.unique(np.searchsorted(rank, np.linspace(rank[0], rank[-1], KNOTS)))


def _standardized(
    k: int,
    found: Floats,
    share: Floats,
    knots: Ints,
    blocks: dict[str, Floats],
    missing: float = 0.0,
    whole: tuple[str, ...] = (),
) -> Columns:
    """Return columns that are straight between knots; blocks have mean 0 and total variance 1."""
    if missing > 0:
        blocks["missing"] = np.zeros((len(found), 1))
    widths = [block.shape[1] for block in blocks.values()]
    table = np.vstack(
        [np.hstack([block[knots] for block in blocks.values()]), np.zeros(sum(widths))]
    )
    parts = tuple(zip(blocks, widths, strict=True))
    raw = Columns(k, found[knots], table, parts)
    rows = raw.at(found)
    for name in blocks:
        own = raw.block(name)
        if name in whole:
            continue
        if name == "missing":
            table[:, own] = -missing
            table[-1, own] = 1.0 - missing
            table[:, own] /= np.sqrt(missing * max(1.0 - missing, 1e-12))
            continue
        mean = share @ rows[:, own] / share.sum()
        spread = float(np.sqrt((share @ (rows[:, own] - mean) ** 2).sum() / share.sum()))
        table[:-1, own] = (table[:-1, own] - mean) / (spread if spread > ROUNDING else 1.0)
        if spread <= ROUNDING:
            table[:, own] = 0.0
    table[-1, raw.block("level")] = 1.0
    return raw
