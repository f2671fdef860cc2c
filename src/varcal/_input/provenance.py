"""Which arrays are a calibrator's answers on the very rows that it was fitted on.

A calibrator notes the fingerprint of its calibration rows when it is fitted, and compares it
with the rows that it is asked about. Where they are the same, the fingerprint of the answer is
remembered here, so that an audit that is handed that answer can say that it is no held-out
evidence. Fingerprints do not depend on the order of the rows and survive copies, slices of the
positive column and frames; they say nothing about other rows.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict

import numpy as np

from varcal._arrays import Floats
from varcal.exceptions import VarcalWarning

__all__ = ["fingerprint", "in_sample", "remember", "warn_in_sample"]

#: How many answers are remembered, the oldest forgotten first.
MEMORY = 256

_answers: OrderedDict[str, str] = OrderedDict()


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
    mixed = np.full(n, 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        # Adding 0 turns -0 into 0, so that equal numbers have equal bits.
        bits = (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)
        mixed ^= bits
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(32)
    return f"{n:x}-{int(mixed.sum(dtype=np.uint64)):016x}"


def remember(p: Floats, calibrator: str) -> None:
    """Note that `p` is what a calibrator said about the rows that it was fitted on."""
    key = _of_probabilities(p)
    _answers[key] = calibrator
    _answers.move_to_end(key)
    while len(_answers) > MEMORY:
        _answers.popitem(last=False)


def in_sample(p: Floats) -> str | None:
    """Name the calibrator that was fitted on the rows of `p`, if any is known.

    Parameters
    ----------
    p : ndarray of shape (n,) or (n, K)
        Probabilities, as they come through the door.

    Examples
    --------
    >>> p = np.array([0.25, 0.5])
    >>> remember(p, "BetaCalibrator")
    >>> in_sample(np.column_stack([1 - p, p])), in_sample(p / 2)
    ('BetaCalibrator', None)
    """
    return _answers.get(_of_probabilities(p)) if _answers else None


def warn_in_sample(p: Floats, stacklevel: int = 3) -> None:
    """Warn where probabilities are a calibrator's answers on the rows that it was fitted on."""
    calibrator = in_sample(p)
    if calibrator is not None:
        warnings.warn(
            f"these probabilities are what a {calibrator} said of the very rows that it was "
            "fitted on: they look better than they are; use rows that it has not seen",
            VarcalWarning,
            stacklevel=stacklevel,
        )


def _of_probabilities(p: Floats) -> str:
    if p.ndim == 1:
        return fingerprint(p)
    return fingerprint(p[:, 1]) if p.shape[1] == 2 else fingerprint(*p.T)
