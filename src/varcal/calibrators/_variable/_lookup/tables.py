"""Tables of the variables of a fitted additive model: effects and their variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints, Singles
from varcal._binning.bins import CutGrid
from varcal.calibrators._variable._columns.design import SCORE, Block, Design, few_columns
from varcal.calibrators._variable._columns.spline_basis import LevelBasis, NumberBasis, Parts

#: Knots are left out where the table is straight within this error, because the tables of all
#: variables should stay in cache; README.md shows its sensitivity.
TABLE_ERROR = 5e-5
#: Lengths of the runs of knots that are tried for that, the longest first.
KNOT_RUNS = (8, 4, 2)
#: Even ranks that have a knot, however few distinct values there are.
RANK_KNOTS = 257


@dataclass(frozen=True, eq=False)
class Track:
    """One variable, or the score, as tables.

    Attributes
    ----------
    knots : ndarray or None
        Values at which numbers are tabulated; None for levels, whose codes index the tables.
    grid : CutGrid or None
        Finds the knot below a number.
    effect : ndarray of shape (2 + w, G)
        The effect, the effect times z̃, and the columns that enter products.
    step : ndarray of shape (2 + w, G) or None
        The difference to the next knot.
    spread : ndarray of shape (G, 3 + 2 R)
        The variance of the variable's own effect, as coefficients of powers of z̃, and what it
        adds to the rays, without and times z̃.
    """

    knots: Floats | None
    grid: CutGrid | None
    effect: Floats
    step: Floats | None
    spread: Singles

    def place(self, values: AnyArray) -> tuple[Ints, Floats | None]:
        """Return the table column of each value, and the share of the way to the next one."""
        if self.knots is None or self.grid is None:
            return np.asarray(values, dtype=np.intp), None
        at = self.grid.find(values)
        share, gap = self.knots[at + 1], self.knots[at]
        with np.errstate(invalid="ignore", over="ignore"):
            share -= gap
            np.subtract(values, gap, out=gap)
            np.divide(gap, share, out=share)
        # Unlike maximum and minimum, these replace NaN.
        np.fmax(share, 0.0, out=share)
        np.fmin(share, 1.0, out=share)
        gone = np.isnan(values)
        if gone.any():
            # The last column of a table is for missing values.
            at[gone], share[gone] = len(self.knots), 0.0
        return at, share


@dataclass(frozen=True, eq=False)
class ModelParts:
    """The parts of a model from which tables are made.

    Attributes
    ----------
    columns : ndarray of shape (p, 1 + R)
        Coefficients and rays.
    V : ndarray of shape (p, p) or None
        The covariance; None where the variance is a constant.
    spans : dict of Block to slice
        The rows of each block in `columns`.
    """

    columns: Floats
    V: Floats | None
    spans: dict[Block, slice]

    def of(self, k: int, parts: Parts, *, by_score: bool) -> tuple[Floats, Ints]:
        """Return the columns of a variable, one row per knot, and their positions in the model."""
        rows = len(next(iter(parts.values())))
        found, places = [np.empty((rows, 0))], [np.empty(0, dtype=np.intp)]
        for block, span in self.spans.items():
            if block.variables == (k,) and block.by_score == by_score and not block.is_pair:
                found.append(parts[block.part])
                places.append(np.arange(span.start, span.stop))
        return np.hstack(found), np.concatenate(places)

    def track(self, knots: Floats | None, parts: Parts, k: int, factor: Floats | None) -> Track:
        """Tabulate one variable."""
        plain, here = self.of(k, parts, by_score=False)
        sloped, there = self.of(k, parts, by_score=True)
        main, slope = plain @ self.columns[here], sloped @ self.columns[there]
        factors = np.empty((len(main), 0)) if factor is None else factor
        effect = np.vstack([main[:, 0], slope[:, 0], factors.T])
        spread = np.empty((len(main), 0))
        if self.V is not None:
            own = [
                np.einsum("ij,ij->i", left @ self.V[np.ix_(i, j)], right)
                for left, i, right, j in (
                    (plain, here, plain, here),
                    (2.0 * plain, here, sloped, there),
                    (sloped, there, sloped, there),
                )
            ]
            spread = np.column_stack([*own, main[:, 1:], slope[:, 1:]])
        grid, step = None, None
        if knots is not None:
            kept = _needed(knots, effect)
            knots, effect, spread = knots[kept[:-1]], effect[:, kept], spread[kept]
            grid = CutGrid.of(knots[1:-1].tolist())
            # There is no next knot after the last one and after missing values.
            step = np.diff(effect, axis=1, append=0.0)
            step[:, -2:] = 0.0
        return Track(knots, grid, effect, step, spread.astype(np.float32))


def tracks_of(design: Design, model: ModelParts) -> dict[int, Track]:
    """Return the tables of the score (−1) and of the variables in a model."""
    paired = design.paired()
    tracks = {SCORE: _score_track(design, model, paired)}
    for k, basis in enumerate(design.bases):
        if basis is not None and (k in paired or any(k in b.variables for b in model.spans)):
            tracks[k] = _track(basis, k, model, paired)
    return tracks


def _track(basis: NumberBasis | LevelBasis, k: int, model: ModelParts, paired: set[int]) -> Track:
    if isinstance(basis, LevelBasis):
        knots, values = None, np.arange(len(basis.rows))
    else:
        ends = [basis.low, basis.high] if basis.raw_scale > 0 else []
        steps = [basis.atoms, np.nextafter(basis.atoms, -np.inf), np.nextafter(basis.atoms, np.inf)]
        knots = _knots(np.concatenate([_tabulated_values(basis), ends, *steps]))
        values = np.append(knots, np.nan)
    parts = basis.parts(values)
    return model.track(knots, parts, k, few_columns(parts) if k in paired else None)


def _score_track(design: Design, model: ModelParts, paired: set[int]) -> Track:
    basis = design.score
    inner = [basis.low, basis.high, min(max(0.0, basis.low), basis.high)]
    knots = _knots(np.append(inner, [] if basis.rank is None else _tabulated_values(basis.rank)))
    values = np.append(knots, knots[0])
    paired_score = (
        design.score_only().ingredients(values, []).paired_score if SCORE in paired else None
    )
    return model.track(knots, basis.parts(values), SCORE, paired_score)


def _needed(knots: Floats, table: Floats) -> Bools:
    """Return which columns of a table cannot be interpolated from others; the last is kept."""
    needed = np.ones(table.shape[1], dtype=np.bool_)
    last = len(knots) - 1
    for run in KNOT_RUNS:
        ends = np.append(np.arange(0, last, run), last)
        near = [np.interp(knots, knots[ends], row[ends]) for row in table[:, :-1]]
        wrong = np.abs(np.array(near) - table[:, :-1]).max(axis=0)
        straight = np.maximum.reduceat(wrong, ends[:-1]) <= TABLE_ERROR
        # Runs from which knots were left out before stay as they are.
        straight &= np.minimum.reduceat(needed[:-1], ends[:-1])
        inside = np.repeat(straight, np.diff(ends))
        inside[ends[:-1]] = False
        needed[:last] &= ~inside
    return needed


def _tabulated_values(basis: NumberBasis) -> Floats:
    """Return values that are dense in ranks: a curve bends also where values are far apart."""
    even = np.linspace(basis.rank[0], basis.rank[-1], RANK_KNOTS)
    return np.append(basis.at, np.interp(even, basis.rank, basis.at))


def _knots(values: Floats) -> Floats:
    """Return distinct values, at least two."""
    found = np.unique(values)
    return found if len(found) > 1 else np.append(found, np.nextafter(found, np.inf))
