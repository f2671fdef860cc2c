"""Answers of calibrators that were read from a file, which may have been changed on purpose."""

from __future__ import annotations

from collections.abc import Callable

from varcal._arrays import Floats
from varcal.calibrators._interface.rows import CalibrationRows
from varcal.exceptions import InputError

__all__ = ["careful_answer", "valid"]


def valid(answer: Floats, *, normalized: bool = True) -> bool:
    """Tell whether rows are probabilities.

    >>> import numpy as np
    >>> valid(np.array([[0.2, 0.8]])), valid(np.array([[np.nan, 0.8]])), valid(np.ones((1, 2)))
    (True, False, False)
    """
    # A NaN fails every comparison.
    inside = bool((answer >= 0).all() and (answer <= 1).all())
    return inside and (not normalized or bool((abs(answer.sum(axis=1) - 1.0) < 1e-6).all()))


def careful_answer(
    answer: Callable[[CalibrationRows], Floats], rows: CalibrationRows, *, normalized: bool
) -> Floats:
    """Return the answer to rows, or say that the contents of the file do not fit together."""
    try:
        found = answer(rows)
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise _damaged(type(error).__name__) from error
    if found.shape != (len(rows), rows.n_classes) or not valid(found, normalized=normalized):
        raise _damaged("no probabilities")
    return found


def _damaged(problem: str) -> InputError:
    return InputError(
        f"the file that this calibrator was loaded from is inconsistent ({problem})",
        "save the fitted calibrator again; sign it with key= if others can write the file",
    )
