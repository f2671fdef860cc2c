"""Answers of calibrators that were read from a file, which may have been changed on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from varcal._arrays import Floats
from varcal.calibrators._interface.rows import CalibrationRows
from varcal.exceptions import InputError, VarcalError

__all__ = ["careful_answer", "consistent", "valid"]


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
    with consistent(True):
        found = answer(rows)
    if found.shape != (len(rows), rows.n_classes) or not valid(found, normalized=normalized):
        raise _damaged("no probabilities")
    return found


@contextmanager
def consistent(read: bool) -> Iterator[None]:
    """Say where something fails because what was read from a file does not fit together.

    Parameters
    ----------
    read : bool
        Whether the calibrator was read from a file; other errors are passed on as they are.

    Examples
    --------
    >>> try:
    ...     with consistent(True):
    ...         [0.5][1]
    ... except InputError as error:
    ...     print(error.message)
    the file that this calibrator was loaded from is inconsistent (IndexError)
    """
    try:
        yield
    except (VarcalError, MemoryError):
        raise
    except Exception as error:
        if not read:
            raise
        raise _damaged(type(error).__name__) from error


def _damaged(problem: str) -> InputError:
    return InputError(
        f"the file that this calibrator was loaded from is inconsistent ({problem})",
        "save the fitted calibrator again",
    )
