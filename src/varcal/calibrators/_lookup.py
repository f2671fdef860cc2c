r"""A fitted additive model as tables, for many rows.

The effect of a variable is read off at knots and interpolated between them. The posterior
variance :math:`x^\top V x` is a sum of squares :math:`\sum_k (x^\top r_k)^2` over rays that are
additive in the variables, too, and are read off the same tables at the knot below. Of all rays
those are kept that carry the variance of the calibration rows; the mean of the others is added.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal.calibrators._design import SCORE, Block, Design
from varcal.calibrators._spline_basis import LevelBasis, NumberBasis, Parts

__all__ = ["Lookup"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: The most rays, of one variable and over many; the share of the variance that they carry; and
#: the mean variance that needs any.
_RAYS = 48
_ALL_RAYS = 480
_CARRIED = 0.98
_SPREAD = 0.002
#: Rows that stay in cache together.
_BLOCK = 4_096
#: Blocks from which threads share the work.
_THREADED = 16


@dataclass(frozen=True, eq=False)
class _Track:
    """One variable, or the score, as tables.

    Attributes
    ----------
    knots : ndarray or None
        Where numbers are read off; None for levels, whose codes are the rows of the tables.
    effect, slope : ndarray of shape (G,)
        What the variable adds, and what times z̃.
    rays, ray_slopes : ndarray of shape (G, R)
        The same for the rays.
    factor : ndarray of shape (G, w) or None
        The columns that enter products with other variables.
    """

    knots: Floats | None
    effect: Floats
    slope: Floats | None
    rays: NDArray[np.float32]
    ray_slopes: NDArray[np.float32] | None
    factor: Floats | None

    def place(self, values: NDArray[Any]) -> tuple[Ints, Floats | None]:
        """Return the row of the tables for each value, and how far on to the next one it is."""
        if self.knots is None:
            return np.asarray(values, dtype=np.intp), None
        last = len(self.knots) - 2
        at = np.searchsorted(self.knots, values, side="right") - 1
        at = np.clip(at, 0, last)
        low = self.knots[at]
        with np.errstate(invalid="ignore"):
            share = np.clip((values - low) / (self.knots[at + 1] - low), 0.0, 1.0)
        gone = np.isnan(share)
        # The last row of the tables is that of missing values.
        at[gone], share[gone] = last + 2, 0.0
        return at, share


def _between(table: Floats, at: Ints, share: Floats | None) -> Floats:
    low = table[at]
    if share is None:
        return low
    high = table[np.minimum(at + 1, len(table) - 1)]
    weight = share if table.ndim == 1 else share[:, None]
    return np.asarray(low + weight * (high - low))


@dataclass(frozen=True, eq=False)
class Lookup:
    """A model as tables.

    Attributes
    ----------
    tracks : dict of int to _Track
        The variables that the model looks at, −1 for the score.
    design : Design
        How products of pairs are made.
    pairs : ndarray of shape (c, 1 + R)
        What their columns add to η and to the rays.
    rest : float
        The mean variance beyond the rays.
    """

    design: Design
    tracks: dict[int, _Track]
    pairs: Floats
    rest: float

    @classmethod
    def of(cls, design: Design, beta: Floats, V: Floats, ridge: Floats, mass: float) -> Lookup:
        """Read a model off.

        Parameters
        ----------
        design, beta, V
            Columns, coefficients and their posterior covariance.
        ridge : ndarray
            The penalty of each coefficient.
        mass : float
            The sum of the working weights of the calibration rows.
        """
        most = min(_RAYS, _ALL_RAYS // (1 + len(design.live())))
        rays, rest = _rays_of(V, ridge, mass, max(most, 8))
        W = np.column_stack([beta, rays])
        spans, begin, first = {}, 0, len(W)
        for block, size in design.layout():
            spans[block] = W[begin : begin + size]
            if block.is_pair:
                first = min(first, begin)
            begin += size
        paired = design.paired()
        tracks = {SCORE: _score_track(design, spans, paired)}
        for k, basis in enumerate(design.bases):
            if basis is not None and (k in paired or any(k in b.variables for b in spans)):
                tracks[k] = _track(design, basis, k, spans, paired)
        return cls(design, tracks, W[first:], rest)

    def predictor(self, z: Floats, columns: list[NDArray[Any]]) -> tuple[Floats, Floats]:
        """Return η of rows and its posterior variance."""
        eta, variance = np.empty(len(z)), np.empty(len(z))

        def fill(begin: int) -> None:
            rows = slice(begin, begin + _BLOCK)
            eta[rows], variance[rows] = self._block(z[rows], [each[rows] for each in columns])

        begins = range(0, len(z), _BLOCK)
        if len(begins) < _THREADED:
            for begin in begins:
                fill(begin)
        else:
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
                list(pool.map(fill, begins))
        return eta, variance

    def _block(self, z: Floats, columns: list[NDArray[Any]]) -> tuple[Floats, Floats]:
        unit = self.design.score.unit(z)
        single = unit.astype(np.float32)[:, None]
        eta = np.zeros(len(z))
        rays = np.zeros((len(z), self.pairs.shape[1] - 1), dtype=np.float32)
        factors = {}
        for k, track in self.tracks.items():
            at, share = track.place(self.design.score.clipped(z) if k == SCORE else columns[k])
            eta += _between(track.effect, at, share)
            rays += track.rays[at]
            if track.slope is not None and track.ray_slopes is not None:
                eta += unit * _between(track.slope, at, share)
                rays += single * track.ray_slopes[at]
            if track.factor is not None:
                factors[k] = _between(track.factor, at, share)
        if len(self.pairs):
            products = np.hstack([block for _, block in self.design.products(factors)])
            eta += products @ self.pairs[:, 0]
            rays += (products @ self.pairs[:, 1:]).astype(np.float32)
        spread = np.einsum("ij,ij->i", rays, rays).astype(np.float64)
        return eta, spread + self.rest


def _rays_of(V: Floats, ridge: Floats, mass: float, most: int) -> tuple[Floats, float]:
    """Return rays, the heaviest on the calibration rows, and the mean variance of the others."""
    values, vectors = np.linalg.eigh(V)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    # rootᵀ (V⁻¹ − Λ) root: how much of each ray the calibration rows see.
    seen = np.eye(len(V)) - root.T @ (ridge[:, None] * root)
    weight, turn = np.linalg.eigh(seen)
    turn *= np.sign(turn[np.abs(turn).argmax(axis=0), np.arange(len(turn))])
    weight = np.maximum(weight[::-1], 0.0)
    rays, carried = (root @ turn)[:, ::-1], np.cumsum(weight)
    total = float(carried[-1])
    kept = min(most, int(np.searchsorted(carried, _CARRIED * total)) + 1)
    if total / mass < _SPREAD:
        kept = 0
    return rays[:, :kept], float(weight[kept:].sum()) / mass


def _summed(parts: Parts, blocks: dict[Block, Floats], k: int, *, by_score: bool) -> Floats | None:
    """Return what the columns of one variable add, one row a knot."""
    total: Floats | None = None
    for block, W in blocks.items():
        if block.variables == (k,) and block.by_score == by_score and not block.is_pair:
            added = parts[block.part] @ W
            total = added if total is None else total + added
    return total


def _made(
    knots: Floats | None,
    parts: Parts,
    blocks: dict[Block, Floats],
    k: int,
    factor: Floats | None,
) -> _Track:
    width = next(iter(blocks.values())).shape[1]
    rows = len(next(iter(parts.values())))
    main = _summed(parts, blocks, k, by_score=False)
    main = np.zeros((rows, width)) if main is None else main
    slope = _summed(parts, blocks, k, by_score=True)
    return _Track(
        knots,
        main[:, 0].copy(),
        None if slope is None else slope[:, 0].copy(),
        main[:, 1:].astype(np.float32),
        None if slope is None else slope[:, 1:].astype(np.float32),
        factor,
    )


def _track(
    design: Design,
    basis: NumberBasis | LevelBasis,
    k: int,
    blocks: dict[Block, Floats],
    paired: set[int],
) -> _Track:
    if isinstance(basis, LevelBasis):
        knots, values = None, np.arange(len(basis.rows))
    else:
        ends = [basis.low, basis.high] if basis.raw_scale > 0 else []
        steps = [basis.atoms, np.nextafter(basis.atoms, -np.inf), np.nextafter(basis.atoms, np.inf)]
        knots = _knots(np.concatenate([basis.at, ends, *steps]))
        values = np.append(knots, np.nan)
    parts = basis.parts(values)
    every = [parts if j == k else {} for j in range(len(design.bases))]
    factor = design.factors(np.empty(0), every, {k})[k] if k in paired else None
    return _made(knots, parts, blocks, k, factor)


def _score_track(design: Design, blocks: dict[Block, Floats], paired: set[int]) -> _Track:
    basis = design.score
    inner = [basis.low, basis.high, min(max(0.0, basis.low), basis.high)]
    knots = _knots(np.append(inner, [] if basis.rank is None else basis.rank.at))
    values = np.append(knots, knots[0])
    factor = design.factors(values, [], {SCORE})[SCORE] if SCORE in paired else None
    return _made(knots, basis.parts(values), blocks, SCORE, factor)


def _knots(values: Floats) -> Floats:
    """Return distinct values, at least two."""
    found = np.unique(values)
    return found if len(found) > 1 else np.append(found, np.nextafter(found, np.inf))
