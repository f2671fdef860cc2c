r"""A fitted additive model as look-up tables, which are fast for many rows.

The effect of a variable is tabulated at knots and interpolated between them. The posterior
variance :math:`x^\top V x` consists of a part for each variable by itself,
:math:`x_j^\top V_{jj} x_j`, which is a table, too, and of a part between variables,

.. math:: x^\top (V - B) x \approx \sum_k \pm (x^\top r_k)^2 + \text{a constant}, \qquad
          B = \operatorname{diag}(V_{11}, V_{22}, \dots),

with rays :math:`r_k`, so that :math:`x^\top r_k` is additive in the variables. On rows with the
second moments of the calibration rows, :math:`x = m^{-1/2} L w` with
:math:`L L^\top = V^{-1} - \Lambda`, it is :math:`w^\top M w / m` with
:math:`M = L^\top (V - B) L`: the rays are the eigenvectors of M with the largest eigenvalues, as
many as are needed to leave a small spread.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._threads import one_blas_thread
from varcal.calibrators._variable._columns.design import SCORE, Block, Design
from varcal.calibrators._variable._lookup.tables import ModelParts, Track, tracks_of


@dataclass(frozen=True, eq=False)
class FactorPlaces:
    """Where the factors of all products of pairs are, in the columns of all tables in turn.

    Attributes
    ----------
    left, right : ndarray of int
        The places of both factors of each product.
    """

    left: Ints
    right: Ints

    @classmethod
    def of(cls, lookup: Lookup) -> FactorPlaces:
        """Find the places."""
        widths = [len(track.effect) - 2 for track in lookup.tracks.values()]
        begins = dict(zip(lookup.tracks, np.cumsum([0, *widths]), strict=False))
        none = np.empty(0, dtype=np.intp)
        left, right = [none], [none]
        for pair in lookup.pairs:
            first, second = (
                begins[k] + np.arange(width)
                for k, width in zip(pair.variables, pair.widths, strict=True)
            )
            left.append(np.repeat(first, len(second)))
            right.append(np.tile(second, len(first)))
        return cls(np.concatenate(left), np.concatenate(right))


def one_row(lookup: Lookup, z: Floats, columns: list[AnyArray]) -> tuple[Floats, Floats]:
    """Return η and its posterior variance of one row, as arrays of one number."""
    score = lookup.design.score
    kept = min(max(z.item(0), score.low), score.high)
    unit = (kept - score.mean) / score.scale
    level, slope, factors = 0.0, 0.0, []
    wide = lookup.tracks[SCORE].spread.shape[1] > 0
    spread = np.zeros((1, lookup.tracks[SCORE].spread.shape[1]))
    for k, track in lookup.tracks.items():
        value = kept if k == SCORE else columns[k].item(0)
        at, share = _place(track, value)
        values = track.effect[:, at]
        if track.step is not None:
            values = values + track.step[:, at] * share
            # The variance is taken at the nearer knot.
            at += share > 0.5
        level += values.item(0)
        slope += values.item(1)
        if wide:
            spread += track.spread[at]
        factors.append(values[2:])
    eta = np.array([level + unit * slope])
    n_rays = len(lookup.sign)
    rays = spread[:, 3 : 3 + n_rays] + unit * spread[:, 3 + n_rays :]
    if lookup.pairs:
        found, places = np.concatenate(factors), lookup.factor_places
        paired = lookup.weight @ (found[places.left] * found[places.right])[:, None]
        eta += paired[0]
        rays += paired[1:].T
    variance = np.einsum("ij,ij,j->i", rays, rays, lookup.sign)
    if wide:
        variance += spread[:, 0] + unit * (spread[:, 1] + unit * spread[:, 2])
    return eta, np.maximum(variance + lookup.rest, 0.0)


def _place(track: Track, value: float) -> tuple[int, float]:
    """Return the table column of a value, and the share of the way to the next one."""
    knots = track.knots
    if knots is None:
        return int(value), 0.0
    if value != value:
        return len(knots), 0.0
    at = bisect_left(knots, value, 1, len(knots) - 1) - 1
    low = knots.item(at)
    share = (value - low) / (knots.item(at + 1) - low)
    if share != share:
        return at, 0.0
    return at, min(max(share, 0.0), 1.0)


# Constants that trade accuracy of the variance for speed; README.md shows what changes at half
# and at twice each value.

#: Rays at most, and rays times tables (one for each variable and one for the score) at most.
MOST_RAYS = 48
MOST_TABLE_RAYS = 320
#: The standard deviation of the variance of η that may be left to a constant.
RAY_ERROR = 0.0005

# Numerical limits and speed.

#: Rays that are allowed however many variables there are.
LEAST_RAYS = 8
#: The mean variance of η below which it is taken as a constant.
CONSTANT_VARIANCE = 0.002

#: Rows that stay in cache together.
BLOCK = 8_192
#: Products of pairs have a multiple of so many columns: BLAS rounds the last few in another way.
WHOLE_COLUMNS = 64
#: Blocks from which threads share the work, and how many threads at most.
THREADED_BLOCKS = 8
MOST_THREADS = 4
#: The relative and the absolute ridge that a singular matrix gets first.
_FIRST_RIDGE, _LEAST_RIDGE = 1e-9, 1e-12


@dataclass(frozen=True, eq=False)
class _Pair:
    """The products of two variables.

    Attributes
    ----------
    variables : tuple of (int, int)
        The variables, −1 for the score.
    widths : tuple of (int, int)
        The number of columns of each that enter.
    """

    variables: tuple[int, int]
    widths: tuple[int, int]

    def multiply(self, factors: dict[int, Floats], out: Floats) -> None:
        """Write the products of columns into `out`."""
        left, right = (
            factors[k][:width] for k, width in zip(self.variables, self.widths, strict=True)
        )
        for k, row in enumerate(left):
            np.multiply(row, right, out=out[k * len(right) : (k + 1) * len(right)])


@dataclass(frozen=True, eq=False)
class Lookup:
    """A model as look-up tables.

    Attributes
    ----------
    design : Design
        The design, which standardizes scores.
    tracks : dict of int to Track
        The tables of each variable in the model, −1 for the score.
    pairs : tuple of _Pair
        The pairs.
    weight : ndarray of shape (1 + R, c)
        The coefficients of their products in η and in the rays.
    sign : ndarray of shape (R,)
        The sign with which each ray enters the variance.
    rest : float
        The mean variance beyond the tables.
    """

    design: Design
    tracks: dict[int, Track]
    pairs: tuple[_Pair, ...]
    weight: Floats
    sign: Floats
    rest: float

    @classmethod
    @one_blas_thread()
    def of(cls, design: Design, beta: Floats, V: Floats, ridge: Floats, mass: float) -> Lookup:
        """Tabulate a model.

        Parameters
        ----------
        design, beta, V
            Columns, coefficients and their posterior covariance.
        ridge : ndarray
            The penalty of each coefficient.
        mass : float
            The sum of the working weights of the calibration rows.
        """
        layout = design.layout()
        own = np.where(of_one_variable(layout), V, 0.0)
        most = max(min(MOST_RAYS, MOST_TABLE_RAYS // (1 + len(design.live()))), LEAST_RAYS)
        rays, sign, rest, flat = _rays_of(V, own, ridge, mass, most)
        columns = np.column_stack([beta, rays])
        ends = np.cumsum([size for _, size in layout])
        spans = {
            block: slice(end - size, end) for (block, size), end in zip(layout, ends, strict=True)
        }
        parts = ModelParts(columns, None if flat else V, spans)
        tracks = tracks_of(design, parts)
        return cls(design, tracks, *_pairs_of(design, tracks, parts), sign, rest)

    @cached_property
    def factor_places(self) -> FactorPlaces:
        """Where the factors of pairs are among the columns of all tables."""
        return FactorPlaces.of(self)

    def predictor(self, z: Floats, columns: list[AnyArray]) -> tuple[Floats, Floats]:
        """Return η and its posterior variance for each row."""
        if len(z) == 1:
            return one_row(self, z, columns)
        eta, variance = np.empty(len(z)), np.empty(len(z))

        def fill(rows: slice) -> None:
            eta[rows], variance[rows] = self._block(z[rows], [each[rows] for each in columns])

        blocks = equal_blocks(len(z), BLOCK)
        with one_blas_thread():
            if len(blocks) < THREADED_BLOCKS:
                for rows in blocks:
                    fill(rows)
            else:
                with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
                    list(pool.map(fill, blocks))
        return eta, variance

    def _block(self, z: Floats, columns: list[AnyArray]) -> tuple[Floats, Floats]:
        kept = self.design.score.clipped(z)
        unit = self.design.score.unit(z)
        n_rays = len(self.sign)
        added = np.zeros((2, len(z)))
        # Tables are in single precision; sums are not, so that all targets of an export agree.
        spread = np.zeros((len(z), self.tracks[SCORE].spread.shape[1]))
        factors = {}
        for k, track in self.tracks.items():
            at, share = track.place(kept if k == SCORE else columns[k])
            values = track.effect.take(at, axis=1)
            if share is not None and track.step is not None:
                more = track.step.take(at, axis=1)
                more *= share
                values += more
                # The variance is taken at the nearer knot.
                at += share > 0.5
            added += values[:2]
            if spread.shape[1]:
                spread += track.spread.take(at, axis=0)
            factors[k] = values[2:]
        eta = added[0] + unit * added[1]
        rays = spread[:, 3 : 3 + n_rays] + unit[:, None] * spread[:, 3 + n_rays :]
        if self.pairs:
            paired = self.weight @ self._products(factors, len(z))
            eta += paired[0, : len(z)]
            rays += paired[1:, : len(z)].T
        # Not a product by BLAS, whose rounding depends on where in the block a row stands.
        variance = np.einsum("ij,ij,j->i", rays, rays, self.sign)
        if spread.shape[1]:
            variance += spread[:, 0] + unit * (spread[:, 1] + unit * spread[:, 2])
        return eta, np.maximum(variance + self.rest, 0.0)

    def _products(self, factors: dict[int, Floats], n_rows: int) -> Floats:
        """Return the products of all pairs, with columns of zeros up to a whole number."""
        # One row is a product of a matrix and a vector, here and in `one_row`.
        n_columns = -(-n_rows // WHOLE_COLUMNS) * WHOLE_COLUMNS if n_rows > 1 else 1
        products, begin = np.empty((self.weight.shape[1], n_columns)), 0
        products[:, n_rows:] = 0.0
        for pair in self.pairs:
            end = begin + pair.widths[0] * pair.widths[1]
            pair.multiply(factors, products[begin:end, :n_rows])
            begin = end
        return products


def of_one_variable(layout: list[tuple[Block, int]]) -> Bools:
    """Return for which two coefficients a covariance is in the table of one variable, as a matrix.

    Pairs have no tables of their own: their variance is left to the rays.
    """
    owner = np.concatenate(
        [np.full(size, SCORE - 1 if b.is_pair else b.variables[0]) for b, size in layout]
    )
    return np.asarray((owner[:, None] == owner) & (owner >= SCORE))


def equal_blocks(n_rows: int, most: int) -> list[slice]:
    """Return slices of equal length that cover all rows; the last two may overlap.

    BLAS may round matrices of another shape in another way, and equal rows must get equal answers.

    >>> equal_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(3, 5, None)]
    """
    size = min(n_rows, most)
    if not n_rows:
        return []
    begins = [*range(0, n_rows - size, size), n_rows - size]
    return [slice(begin, begin + size) for begin in begins]


def _rays_of(
    V: Floats, own: Floats, ridge: Floats, mass: float, most: int
) -> tuple[Floats, Floats, float, bool]:
    """Return rays, their signs, the mean of the other variance, and whether that is all of it."""
    nothing = np.empty((len(V), 0)), np.empty(0)
    H = np.asarray(np.linalg.inv(V), dtype=np.float64)
    H.flat[:: len(H) + 1] -= ridge
    total = float(np.einsum("ij,ji->", V, H)) / mass
    if total < CONSTANT_VARIANCE:
        return *nothing, total, True
    between = V - own
    seen = between @ H
    mean, size = float(np.trace(seen)), float(np.einsum("ij,ji->", seen, seen))
    if 2.0 * size <= (RAY_ERROR * mass) ** 2:
        return *nothing, mean / mass, False
    L = _root(H)
    values, vectors = np.linalg.eigh(L.T @ between @ L)
    order = np.argsort(-np.abs(values), kind="stable")
    left = np.sqrt(2.0 * np.cumsum(values[order[::-1]] ** 2)[::-1]) / mass
    kept = order[: min(most, int((left > RAY_ERROR).sum()))]
    rays = between @ (L @ vectors[:, kept]) / np.sqrt(np.abs(values[kept]))
    return rays, np.sign(values[kept]), (mean - float(values[kept].sum())) / mass, False


def _root(H: Floats) -> Floats:
    """Return L with LLᵀ = H up to rounding; H may be singular."""
    extra = _FIRST_RIDGE * float(np.trace(H)) / len(H)
    while True:
        factor, failed = lapack.dpotrf(H + extra * np.eye(len(H)), lower=1)
        if not failed:
            return np.asarray(factor)
        extra = 10.0 * extra + _LEAST_RIDGE


def _pairs_of(
    design: Design, tracks: dict[int, Track], parts: ModelParts
) -> tuple[tuple[_Pair, ...], Floats]:
    """Return the pairs and the weights of their products."""
    factors = {k: track.effect[2:].T for k, track in tracks.items()}
    columns, spans = parts.columns, {(b.part, b.shared): at for b, at in parts.spans.items()}
    # Of all pairs with shared penalties, the first products form one block, the others another.
    nothing = np.zeros((0, columns.shape[1]))
    lines = columns[spans["product", True]] if ("product", True) in spans else nothing
    others = columns[spans["surface", True]] if ("surface", True) in spans else nothing
    found, weights, begin = [], [nothing], 0
    for k, pair in enumerate(design.pairs):
        left, right = (design.factor(factors[j], j, fine=False).shape[1] for j in pair)
        weight = np.zeros((left * right, columns.shape[1]))
        end = begin + left * right - 1
        if len(lines):
            weight[0] = lines[k]
        if len(others):
            weight[1:] = others[begin:end]
        begin = end
        found.append(_Pair(pair, (left, right)))
        weights.append(weight)
    for pair in design.own:
        left, right = (factors[j].shape[1] for j in pair)
        found.append(_Pair(pair, (left, right)))
        weights.append(columns[parts.spans[Block("surface", pair)]])
    return tuple(found), np.ascontiguousarray(np.vstack(weights).T)
