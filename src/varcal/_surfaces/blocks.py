"""Blocks of rows in a random order that does not depend on the order in which rows are given."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._input.predictions import Predictions


def sorted_rows(predictions: Predictions, columns: Floats) -> Ints:
    """Return the rows in an order that depends on their values only; equal rows are alike.

    Variables come first and probabilities last: these may be computed, and what processors round
    differently must not move rows to other blocks.

    Parameters
    ----------
    predictions : Predictions
        The rows.
    columns : ndarray of shape (n, k)
        Their variables as numbers.
    """
    keys = [*np.atleast_2d(predictions.p.T), predictions.y]
    if predictions.weight is not None:
        keys.append(predictions.weight)
    if predictions.groups is not None:
        keys.append(predictions.groups)
    return np.lexsort([*keys, *columns.T])  # the last key counts first


def random_blocks(
    n_rows: int, n_blocks: int, groups: Ints | None, rng: np.random.Generator
) -> Ints:
    """Return the block of each row, whole groups in one block.

    Examples
    --------
    >>> blocks = random_blocks(8, 4, None, np.random.default_rng(0))
    >>> np.bincount(blocks).tolist()
    [2, 2, 2, 2]
    """
    if groups is None:
        return rng.permutation(n_rows) * n_blocks // n_rows
    number = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(number)
    order = rng.permutation(len(sizes))
    ends = np.cumsum(sizes[order])
    block = np.empty(len(sizes), dtype=np.intp)
    block[order] = ((ends - sizes[order] / 2) * n_blocks / n_rows).astype(np.intp)
    return block[number]
