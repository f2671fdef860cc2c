"""The rows that a calibrator is given, checked once and held as plain arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._input.frames import Table, check_indexes, is_frame
from varcal._input.labels import position_of
from varcal._input.predictions import Predictions, read_scores
from varcal._input.variables import Variable, as_series
from varcal._options import EPS
from varcal.calibrators.held_together import instants_of, units_of
from varcal.exceptions import InputError, VarcalError


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """Checked rows, to fit or to calibrate.

    Attributes
    ----------
    p : ndarray of float
        Binary: P(y = second class), shape (n,). More classes: shape (n, K).
    classes : tuple
        The K labels; their numbers in `predict_proba`, which does not need the labels.
    y : ndarray of int
        The class number of each row; empty in `predict_proba`.
    weight : ndarray of float or None
        Positive weights.
    variables : tuple of Variable
        The variables; may be empty.
    groups : ndarray of int or None
        The number of the unit that each row belongs to.
    together : str
        What these units are: the argument or the variable that named them; empty without any.
    time : ndarray of float or None
        When each row was made.
    look_for_blocks : bool
        Whether to look for blocks of rows that are correlated.
    """

    p: Floats
    classes: tuple[Hashable, ...]
    y: AnyArray
    weight: Floats | None = None
    variables: tuple[Variable, ...] = ()
    groups: Ints | None = None
    together: str = ""
    time: Floats | None = None
    look_for_blocks: bool = True

    def __len__(self) -> int:
        return len(self.p)

    @property
    def n_classes(self) -> int:
        """Return K."""
        return len(self.classes)

    def take(self, rows: AnyArray) -> CalibrationRows:
        """Return some of the rows (positions or a mask), without the variables."""
        weight = None if self.weight is None else self.weight[rows]
        groups = None if self.groups is None else self.groups[rows]
        time = None if self.time is None else self.time[rows]
        return replace(
            self,
            p=self.p[rows],
            y=self.y[rows],
            weight=weight,
            variables=(),
            groups=groups,
            time=time,
        )

    def block(self, rows: slice | Ints) -> CalibrationRows:
        """Return some of the scores and nothing else."""
        return replace(
            self, p=self.p[rows], y=self.y[:0], weight=None, variables=(), groups=None, time=None
        )

    def plain(self) -> CalibrationRows:
        """Return the rows without the variables."""
        return replace(self, variables=())

    def weighted(self, weight: Floats) -> CalibrationRows:
        """Return the rows with other weights."""
        return replace(self, weight=weight)

    def total(self, rows: AnyArray | None = None) -> float:
        """Return the sum of the weights."""
        if self.weight is None:
            return float(len(self) if rows is None else np.arange(len(self))[rows].size)
        return float(self.weight.sum() if rows is None else self.weight[rows].sum())

    def present(self) -> Bools:
        """Return which classes have at least one row."""
        return np.bincount(self.y, minlength=self.n_classes) > 0

    def columns(self) -> Floats:
        """Return the scores with one column per class, shape (n, K)."""
        return np.column_stack([1.0 - self.p, self.p]) if self.p.ndim == 1 else self.p

    def floor(self) -> float:
        """Return what scores of 0 are raised to, and those of 1 are lowered by.

        It is min(½ · smallest positive probability of any class, 1 / 2n): below all other scores,
        and not more certain than n rows can be. It is at least 2.2e-16, so that one score next to
        0 does not decide a fit.
        """
        cells = self.columns()
        least = float(cells[cells > 0].min())
        return max(min(least / 2, 0.5 / self.total()), EPS)

    def sums(self, *, with_variables: bool) -> Floats:
        """Return the number of rows, and sums that other rows hardly share."""
        scores = self.p if self.p.ndim == 1 else self.p @ np.arange(1.0, self.n_classes + 1)
        used = [each.values for each in self.variables] if with_variables else []
        with np.errstate(all="ignore"):
            products = [scores @ np.nan_to_num(column.astype(np.float64)) for column in used]
            return np.array([len(self), scores.sum(), scores @ scores, *products])


def labelled_rows(
    p: object,
    y: object,
    X: object,
    sample_weight: object,
    classes: Sequence[Hashable] | None,
    groups: object = None,
    time: object = None,
    blocks: object = "auto",
    pos_label: Hashable = None,
) -> tuple[CalibrationRows, int]:
    """Check the arguments of `fit`; also return the number of columns of p.

    Rows of weight 0 are left out, so that they cannot move an edge of a bin or a split.
    """
    given = {"p": p, "y": y, "X": X, "sample_weight": sample_weight, "groups": groups}
    check_indexes(given | {"time": time, "blocks": blocks})
    groups, together = units_of(groups, time, blocks, X)
    try:
        with _probabilities_only():
            checked = Predictions.of(
                y, p, X, classes=classes, sample_weight=sample_weight, groups=groups
            )
        turned = position_of(checked.classes, pos_label) == 0 and checked.p.ndim == 1
    except InputError as error:
        if together.startswith("blocks") and "groups" in error.message:
            message = error.message.replace("groups", "blocks", 1)
            raise InputError(message, error.hint, "blocks") from None
        if "swapped" not in error.hint:
            raise
        raise InputError(
            error.message, "p and y seem to be swapped: fit takes the scores first, fit(p, y, X)"
        ) from None
    n_columns = 1 if checked.p.ndim == 1 else checked.p.shape[1]
    weight, variables, codes = checked.weight, checked.variables, checked.y
    found = checked.classes
    if turned:  # the class that a vector is about comes second, as everywhere in a calibrator
        codes, found = 1 - codes, found[::-1]
    units = checked.groups
    instants = None if time is None else instants_of(time, X, len(codes))
    scores = second_column(checked.p)
    if weight is not None and not weight.all():
        kept = weight > 0
        scores, codes, weight = scores[kept], codes[kept], weight[kept]
        variables = tuple(variable.take(kept) for variable in variables)
        units = None if units is None else units[kept]
        instants = None if instants is None else instants[kept]
    rows = CalibrationRows(
        scores,
        found,
        codes,
        weight,
        variables,
        units,
        together,
        instants,
        look_for_blocks=units is None and instants is None and blocks is not False,
    )
    return rows, n_columns


def score_names(p: object) -> tuple[str, ...]:
    """Return the names of the columns of p: those of a frame or of a named series.

    Examples
    --------
    >>> score_names([0.2, 0.9])
    ()
    """
    if is_frame(p):
        return Table.of(p, "p").columns
    name = None if as_series(p) is None else getattr(p, "name", None)
    return (name,) if isinstance(name, str) and name else ()


def score_rows(p: object, X: object, n_classes: int) -> CalibrationRows:
    """Check the arguments of `predict_proba`."""
    check_indexes({"p": p, "X": X})
    with _probabilities_only():
        scores, variables = read_scores(p, X)
    found = 2 if scores.ndim == 1 else scores.shape[1]
    if found != n_classes:
        raise InputError(
            f"p has {found} classes, but the calibrator was fitted on {n_classes}",
            "give the same columns as in fit, in the same order",
        )
    nothing = np.empty(0, dtype=np.intp)
    return CalibrationRows(second_column(scores), tuple(range(n_classes)), nothing, None, variables)


@contextmanager
def _probabilities_only() -> Iterator[None]:
    """Say what to do about logits, which a calibrator does not take."""
    try:
        yield
    except InputError as error:
        if "from_logits" not in error.hint:
            raise
        hint = "turn logits z into 1 / (1 + exp(-z)) first; divide percentages by 100"
        raise InputError(error.message, hint, error.argument) from None


def second_column(p: Floats) -> Floats:
    """Return P(second class) of two classes in either form of input; of more, all columns."""
    return np.ascontiguousarray(p[:, 1]) if p.ndim == 2 and p.shape[1] == 2 else p


def valid(answer: Floats, *, normalized: bool = True) -> bool:
    """Tell whether rows are probabilities.

    >>> import numpy as np
    >>> valid(np.array([[0.2, 0.8]])), valid(np.array([[np.nan, 0.8]])), valid(np.ones((1, 2)))
    (True, False, False)
    """
    # A NaN fails every comparison.
    inside = bool((answer >= 0).all() and (answer <= 1).all())
    return inside and (not normalized or bool((abs(answer.sum(axis=1) - 1.0) < 1e-6).all()))


def refuse_invalid(answer: Floats, rows: CalibrationRows, *, normalized: bool) -> None:
    """Refuse an answer from fitted values of a file that is not one of probabilities."""
    if answer.shape != (len(rows), rows.n_classes) or not valid(answer, normalized=normalized):
        raise _damaged("no probabilities")


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
