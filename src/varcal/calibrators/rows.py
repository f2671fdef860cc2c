"""The rows that a calibrator is given, checked once and held as plain arrays."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._input.dates import formats_of, with_dates
from varcal._input.frames import Table, check_indexes, is_frame
from varcal._input.labels import position_of
from varcal._input.predictions import (
    Predictions,
    read_scores,
)
from varcal._input.variables import Variable, as_series, refuse_rows
from varcal._options import EPS, check_flag
from varcal.exceptions import InputError, VarcalError, VarcalWarning, arguments_named

#: The mean from which weights that are not whole numbers are unlikely to be numbers of rows.
MOST_ROWS_EACH = 2.0


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
    exposure : ndarray of float or None
        What predicted means refer to.
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
    exposure: Floats | None = None

    def __len__(self) -> int:
        return len(self.p)

    @property
    def n_classes(self) -> int:
        """Return K."""
        return len(self.classes)

    def take(self, rows: AnyArray) -> CalibrationRows:
        """Return some of the rows (positions or a mask), without the variables."""
        taken: dict[str, Any] = {"variables": ()}
        for name in ("p", "y", "weight", "groups", "time", "exposure"):
            values = getattr(self, name)
            taken[name] = None if values is None else values[rows]
        return replace(self, **taken)

    def with_weight(self) -> CalibrationRows:
        """Return the rows whose weight is not 0, with their variables."""
        if self.weight is None or self.weight.all():
            return self
        kept = self.weight > 0
        taken = tuple(variable.take(kept) for variable in self.variables)
        return replace(self.take(kept), variables=taken)

    def weighted(self, weight: Floats) -> CalibrationRows:
        """Return the rows with other weights."""
        return replace(self, weight=weight)

    def total(self) -> float:
        """Return the sum of the weights."""
        return float(len(self) if self.weight is None else self.weight.sum())

    def present(self) -> Bools:
        """Return which classes have at least one row."""
        return np.bincount(self.y, minlength=self.n_classes) > 0

    def columns(self) -> Floats:
        """Return the scores with one column per class, shape (n, K)."""
        return np.column_stack([1.0 - self.p, self.p]) if self.p.ndim == 1 else self.p

    def floor(self, eps: float | None = None) -> float:
        """Return what scores of 0 are raised to, and those of 1 are lowered by: `eps`, if given.

        Otherwise it is half of the smallest positive probability of any class in these rows, at
        least 2.2e-16, so that one score next to 0 does not decide a fit. Where all probabilities
        are 0 or 1 it is 1 / 2n. At most 1 / 2n everywhere was worse on 23 of 23 tables with
        forests and nearest neighbours: beta by 1.8 ± .3 × 10⁻³ in log-loss, Platt by 4.1 ± .8.
        """
        if eps is not None:
            return float(eps)
        cells = self.columns()
        inside = cells[(cells > 0) & (cells < 1)]
        return max(0.5 * float(inside.min() if inside.size else 1 / self.total()), EPS)

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
    *,
    from_logits: bool = False,
) -> tuple[CalibrationRows, int]:
    """Check the arguments of `fit`; also return the number of columns of p.

    Rows of weight 0 are left out, so that they cannot move an edge of a bin or a split.
    """
    given = {"p": p, "y": y, "X": X, "sample_weight": sample_weight, "groups": groups}
    check_indexes(given | {"time": time, "blocks": blocks})
    groups, together = _units_of(groups, time, blocks, X)
    named = {"groups": "blocks"} if together.startswith("blocks") else {}
    with arguments_named(v="X", **named):
        checked = Predictions.of(
            y,
            p,
            X,
            classes=classes,
            sample_weight=sample_weight,
            groups=groups,
            from_logits=from_logits,
            swapped="p and y seem to be swapped: fit takes the scores first, fit(p, y, X)",
        )
        turned = position_of(checked.classes, pos_label) == 0 and checked.p.ndim == 1
    rows = CalibrationRows(
        second_column(checked.p),
        # The class that a vector is about comes second, as everywhere in a calibrator.
        checked.classes[::-1] if turned else checked.classes,
        1 - checked.y if turned else checked.y,
        checked.weight,
        checked.variables,
        checked.groups,
        together,
        None if time is None else instants_of(time, X, len(checked)),
        look_for_blocks=groups is None and time is None and blocks is not False,
    )
    return rows.with_weight(), 1 if checked.p.ndim == 1 else checked.p.shape[1]


def score_rows(
    p: object, X: object, n_classes: int, *, from_logits: bool = False
) -> CalibrationRows:
    """Check the arguments of `predict_proba`."""
    check_flag("from_logits", from_logits)
    check_indexes({"p": p, "X": X})
    with arguments_named(v="X"):
        scores, variables = read_scores(p, X, from_logits=from_logits)
    found = 2 if scores.ndim == 1 else scores.shape[1]
    if found != n_classes:
        raise InputError(
            f"p has {found} classes, but the calibrator was fitted on {n_classes}",
            "give the same columns as in fit, in the same order",
        )
    nothing = np.empty(0, dtype=np.intp)
    return CalibrationRows(second_column(scores), tuple(range(n_classes)), nothing, None, variables)


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


def second_column(p: Floats) -> Floats:
    """Return P(second class) of two classes in either form of input; of more, all columns."""
    return np.ascontiguousarray(p[:, 1]) if p.ndim == 2 and p.shape[1] == 2 else p


def refuse_invalid(answer: Floats, rows: CalibrationRows, *, normalized: bool) -> None:
    """Refuse an answer from fitted values of a file that is not one of probabilities."""
    # A NaN fails every comparison.
    valid = answer.shape == (len(rows), rows.n_classes) and bool(
        (answer >= 0).all() and (answer <= 1).all()
    )
    if not valid or (normalized and not (abs(answer.sum(axis=1) - 1.0) < 1e-6).all()):
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


def _units_of(groups: object, time: object, blocks: object, X: object) -> tuple[object, str]:
    """Return the column of units that belong together, and what it is called.

    Examples
    --------
    >>> _units_of(None, None, "day", {"day": [1, 1, 2]})
    ([1, 1, 2], "blocks of 'day'")
    """
    if blocks is True or blocks is None:
        raise InputError(
            f"blocks is {blocks}",
            'give "auto", False, the name of a column of X, or one value per row',
            "blocks",
        )
    if (isinstance(blocks, str) and blocks == "auto") or blocks is False:
        return groups, "" if groups is None else "groups"
    for name, other in (("groups", groups), ("time", time)):
        if other is not None:
            raise InputError(
                f"blocks is given together with {name}",
                "give one of them: each says which rows are held out together",
                "blocks",
            )
    if isinstance(blocks, str):
        return _named(blocks, X, "blocks"), f"blocks of {blocks!r}"
    return blocks, "blocks"


def instants_of(time: object, X: object, n: int) -> Floats:
    """Return the times of rows as numbers; dates are seconds since 1970 in UTC.

    Parameters
    ----------
    time : str or array-like
        The name of a column of `X`, or dates, texts that are dates, or numbers.
    X : object
        The variables.
    n : int
        The number of rows.

    Examples
    --------
    >>> instants_of(["2024-03-01", "2024-03-02"], None, 2)
    array([1.7092512e+09, 1.7093376e+09])
    """
    if isinstance(time, str):
        time = _named(time, X, "time")
    column = with_dates(Variable.of(time, "time", "time"))
    if len(column) != n:
        raise InputError(
            f"lengths differ: p {n:,}, time {len(column):,}",
            "give one value per row in each",
            "time",
        )
    hint = "every row needs a time: fill it in, or leave such rows out"
    refuse_rows(column.missing(), None, "time", "is missing", hint)
    if column.kind == "levels":
        texts = [str(level) for level in column.levels]
        odd = next((text for text in texts if not formats_of([text])), texts[0])
        raise InputError(
            f"time cannot be read as dates: it holds {odd!r}",
            "write all dates as 2024-03-31, convert them, or give numbers that rise with time",
            "time",
        )
    values = np.asarray(column.values, dtype=np.float64)
    hint = "give dates or finite numbers"
    refuse_rows(~np.isfinite(values), values, "time", "is infinite", hint)
    return values


def _named(name: str, X: object, argument: str) -> object:
    """Return a column of X by its name."""
    if not (is_frame(X) or isinstance(X, Mapping)):
        raise InputError(
            f"{argument} is {name!r}, but X has no named columns",
            "give the column itself, or X as a frame or a dict",
            argument,
        )
    table = Table.of(X, "X")
    if name not in table.columns:
        raise InputError.no_column(name, table.columns, argument, where="X")
    column: object = table.column(name, argument)
    return column


def are_sampling_weights(weight: Floats) -> bool:
    """Return whether weights are far above 1 and are not numbers of rows.

    >>> are_sampling_weights(np.array([10.5, 31.5])), are_sampling_weights(np.array([2.0, 5.0]))
    (True, False)
    """
    return float(weight.mean()) > MOST_ROWS_EACH and not (weight == np.rint(weight)).all()


def row_counts(weight: Floats) -> Floats:
    r"""Return weights as numbers of rows.

    Weights that are all below 1 are not counts: they are scaled to their effective number of
    rows, :math:`(\sum w)^2 / \sum w^2`.

    >>> row_counts(np.array([0.1, 0.1])), row_counts(np.array([1.0, 3.0]))
    (array([1., 1.]), array([1., 3.]))
    """
    if weight.max() >= 1:
        return weight
    # The squares of very small weights would underflow.
    scaled = weight / weight.max()
    return np.asarray(scaled * (scaled.sum() / (scaled**2).sum()))


def warn_of_sampling_weights(weight: Floats, stacklevel: int = 5) -> None:
    """Warn of weights that are far above 1 and are not numbers of rows."""
    if are_sampling_weights(weight):
        warnings.warn(
            "sample_weight is read as the number of rows that each row stands for: "
            f"{float(weight.sum()):,.0f} in total on {len(weight):,} rows, so the fit trusts them "
            f"{float(weight.mean()):,.1f} times as much as rows without weights; if these are "
            "sampling weights, divide them by their mean",
            VarcalWarning,
            stacklevel=stacklevel,
        )
