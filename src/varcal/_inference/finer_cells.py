"""Finer cells within the bins of a variable, for gaps that cancel inside a bin."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Bools, Ints, ratio_or_zero
from varcal._inference.error_sums import ErrorSums

#: The number of finer cells is this times the root of the rows, counted as rows with p = 1/2.
CELLS_PER_ROOT = 1.0
#: The most finer cells, whose law takes products of matrices.
MOST_FINER = 200


def finer_cells(fine: ErrorSums, merge: Ints, placed: Bools) -> Ints | None:
    r"""Return the finer cell of each fine one; None where rows allow none within the bins.

    A gap that changes its sign inside a bin cancels there. With :math:`V = \sum s(1 - s)`, each bin
    is cut into cells of equal V, :math:`\sqrt{4V}` over all bins: more with more rows, and as
    many rows in each as needed for a gap that is not mostly noise.

    Parameters
    ----------
    fine : ErrorSums
        The sums of fine cells, by predicted side.
    merge : array of int
        The bin of each fine cell.
    placed : array of bool
        Which fine cells have an order.
    """
    by_side = ratio_or_zero(fine.null2 * fine.n, fine.weight2)
    v = by_side.sum(0)
    total = float(v.sum())
    many = min(CELLS_PER_ROOT * np.sqrt(4 * total / len(by_side)), MOST_FINER)
    bins = np.bincount(merge, v)
    pieces = np.maximum(np.floor(many * bins / max(total, 1e-300)), 1.0)[merge]
    before = np.cumsum(v) - v / 2 - (np.cumsum(bins) - bins)[merge]
    piece = np.floor(pieces * ratio_or_zero(before, bins[merge].astype(np.float64)))
    piece = np.clip(piece, 0, pieces - 1) * placed
    found = np.unique(np.stack([merge, piece]), axis=1, return_inverse=True)[1].ravel()
    return found if found.max() + 1 > len(bins) else None


def merged_cells(cells: ErrorSums, index: Ints) -> ErrorSums:
    """Add up the sums of the cells with the same number, along the last axis."""
    starts = np.searchsorted(index, np.arange(index.max() + 1))
    return ErrorSums(
        **{name: np.add.reduceat(sums, starts, axis=-1) for name, sums in vars(cells).items()}
    )
