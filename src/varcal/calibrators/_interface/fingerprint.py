"""A short text that says which rows a calibrator was fitted on, whatever their order."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats

#: Rows that stay in cache together.
BLOCK = 8_192


def fingerprint(*columns: Floats) -> str:
    """Return a short text that is the same for the same rows in any order.

    Parameters
    ----------
    *columns : ndarray of shape (n,)
        The numbers of each row.

    Examples
    --------
    >>> a, b = np.array([0.1, 0.2, 0.3]), np.array([7.0, 8.0, 9.0])
    >>> fingerprint(a, b) == fingerprint(a[::-1], b[::-1]) != fingerprint(a, b[::-1])
    True
    """
    n = columns[0].shape[0] if columns else 0
    blocks = (slice(first, first + BLOCK) for first in range(0, n, BLOCK))
    total = sum(_mixed([column[rows] for column in columns]) for rows in blocks)
    return f"{n:x}-{total % 2**64:016x}"


def _mixed(columns: list[Floats]) -> int:
    """Return the sum of the mixed bits of rows."""
    mixed = np.full(len(columns[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        # Adding 0 turns -0 into 0, so that equal numbers have equal bits.
        with np.errstate(invalid="ignore"):  # a NaN that signals
            bits = (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)
        mixed ^= bits
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        np.right_shift(mixed, np.uint64(29), out=bits)
        mixed ^= bits
        mixed *= np.uint64(0x94D049BB133111EB)
        np.right_shift(mixed, np.uint64(32), out=bits)
        mixed ^= bits
    return int(mixed.sum(dtype=np.uint64))
