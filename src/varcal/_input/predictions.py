"""The door: outcomes, probabilities, variables, weights and groups, checked once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._input.frames import Table, is_frame
from varcal._input.groups import check_units, group_numbers
from varcal._input.labels import Labels
from varcal._input.variables import Variable, as_series, extremes, plain_array
from varcal._options import check_choice
from varcal.exceptions import InputError

#: Stands for "every column of data that has no other role".
ALL = "every other column"
#: How far the probabilities of a row may sum from 1, besides the rounding of their dtype.
SUM_TOLERANCE = 1e-6
#: Weights beyond 2 to this power, up or down, are scaled.
MOST_EXPONENT = 200


@dataclass(frozen=True)
class Part:
    """What is known of all rows when some of them come in at the door.

    Attributes
    ----------
    classes : tuple
        Every label, in the order of the columns of `p`; none where they are not known, and rows
        are only checked.
    by_meaning : bool
        Whether labels are 0/1 or booleans, which mean the same in every part.
    exponent : int
        Weights are divided by 2 to this power.
    """

    classes: tuple[Hashable, ...]
    by_meaning: bool = False
    exponent: int = 0


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked predictions: what everything else in varcal computes on.

    Made by `Predictions.of`, never by hand: that is where every check is.

    Attributes
    ----------
    y : ndarray of int
        The position in `classes` of each row's label.
    p : ndarray of float
        Binary: P(y = second class), shape (n,), or both columns, shape (n, 2). More classes:
        shape (n, K).
    classes : tuple
        The labels, in the order of the columns of `p`.
    variables : tuple of Variable
        The variables, possibly none.
    weight : ndarray of float or None
        Sampling weights, scaled by a power of two so that the largest lies in [0.5, 1).
    unit : Variable or None
        The unit that a row belongs to.
    n_dropped : int
        Rows left out because their outcome is not known (only on request).
    backend : str or None
        The frame library that the data came in.
    """

    y: AnyArray
    p: Floats
    classes: tuple[Hashable, ...]
    variables: tuple[Variable, ...] = ()
    weight: Floats | None = None
    unit: Variable | None = None
    n_dropped: int = 0
    backend: str | None = None

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def groups(self) -> Ints | None:
        """The number of the unit that a row belongs to, None without groups."""
        return None if self.unit is None else group_numbers(self.unit)

    @classmethod
    def of(
        cls,
        y: object,
        p: object,
        v: object = None,
        *,
        data: object = None,
        classes: Sequence[Hashable] | None = None,
        sample_weight: object = None,
        groups: object = None,
        from_logits: bool = False,
        unlabelled: str = "raise",
        part: Part | None = None,
    ) -> Predictions:
        """Check predictions and bring them into one form.

        Parameters
        ----------
        y : array-like or column name
            Labels: integers, booleans, strings or categories.
        p : array-like, column name, or names of one column a class
            Probabilities: (n,) is P(y = second class), (n, K) one column a class.
        v : array-like, frame, dict of columns, or column names, optional
            The variables.
        data : frame or dict of columns, optional
            With it, a string or a list of strings names columns; anything else is an array.
        classes : sequence, optional
            The labels in the order of the columns of `p`. Without it labels 0/1 and booleans
            mean [0, 1], and any others go to the columns in sorted order.
        sample_weight : array-like or column name, optional
            Sampling weights, not negative.
        groups : array-like or column name, optional
            The unit (patient, customer, …) that each row belongs to.
        from_logits : bool
            Whether `p` holds logits: (n,) log-odds of the second class, (n, K) logits.
        unlabelled : {"raise", "drop"}
            What to do with rows whose label is missing.
        part : Part, optional
            What is known of all rows, where these are a part of them.

        Returns
        -------
        Predictions

        Raises
        ------
        InputError
            If anything is not as it must be; the message says what, where and the way out.

        Examples
        --------
        >>> checked = Predictions.of(["no", "yes", "yes"], [0.2, 0.9, 0.4])
        >>> checked.classes, checked.y
        (('no', 'yes'), array([0, 1, 1]))
        """
        check_choice("unlabelled", unlabelled, ["raise", "drop"])
        table = None if data is None else Table.of(data, "data")
        given, p_names, p_backend = probabilities(p, table)
        probability = given.astype(np.float64, copy=False)
        labels = Labels.of(_column(y, table, "y"))
        if v is ALL:
            v = _other_columns(table, y, p, sample_weight, groups)
        variables, v_backend = _variables(v, table)
        weight = None
        if sample_weight is not None:
            weight = weights(sample_weight, table)
        unit = None
        if groups is not None:
            unit = Variable.of(_column(groups, table, "groups"), "groups", "groups")

        lengths = {"y": len(labels), "p": len(probability)}
        lengths |= {f"v {variable.name!r}": len(variable) for variable in variables}
        if weight is not None:
            lengths["sample_weight"] = len(weight)
        if unit is not None:
            lengths["groups"] = len(unit)
        if part is not None and not any(lengths.values()):
            return cls.none(part, 0)
        _check_lengths(lengths, by_name=table is not None)

        n_dropped = 0
        unknown = labels.missing()
        if unknown.any():
            if unlabelled == "raise":
                row = int(unknown.argmax())
                raise InputError.at_row(
                    "y",
                    "has no label",
                    labels.raw(row),
                    row,
                    int(unknown.sum()),
                    'fill it in, or leave such rows out with unlabelled="drop"',
                )
            kept = ~unknown
            n_dropped = int(unknown.sum())
            if n_dropped == len(labels):
                if part is not None:
                    return cls.none(part, n_dropped)
                raise InputError("y has no label at any row", "at least one outcome is needed")
            labels, probability = labels.take(kept), probability[kept]
            variables = tuple(variable.take(kept) for variable in variables)
            weight = None if weight is None else weight[kept]
            unit = None if unit is None else unit.take(kept)

        labels.check_numbers(probability)
        if from_logits:
            probability = from_log_odds(probability)
        n_classes = 2 if probability.ndim == 1 else probability.shape[1]
        _check_probabilities(probability, given.dtype)
        if part is None:
            y_codes, found = labels.encode(n_classes, classes)
        elif part.classes:
            meant = part.by_meaning
            y_codes, found = labels.encode(n_classes, part.classes, by_meaning=meant)
        else:
            y_codes, found = np.zeros(len(labels), np.intp), part.classes
        _check_order(p_names, found)
        if weight is not None:
            weight = _checked_weights(weight, part)
        return cls(
            y=y_codes,
            p=probability,
            classes=found,
            variables=variables,
            weight=weight,
            unit=None if unit is None else check_units(unit),
            n_dropped=n_dropped,
            backend=(table.backend if table is not None else None) or v_backend or p_backend,
        )

    @classmethod
    def none(cls, part: Part, n_dropped: int) -> Predictions:
        """Return a part of which no row is left."""
        return cls(np.zeros(0, np.intp), np.zeros(0), part.classes, n_dropped=n_dropped)


def read_scores(p: object, v: object = None) -> tuple[Floats, tuple[Variable, ...]]:
    """Check probabilities and variables that come without an outcome.

    Examples
    --------
    >>> p, variables = read_scores([0.2, 0.9], {"age": [31, 54]})
    >>> p, variables[0].name
    (array([0.2, 0.9]), 'age')
    """
    given, _, _ = probabilities(p, None)
    scores = given.astype(np.float64, copy=False)
    variables, _ = _variables(v, None)
    lengths = {"p": len(scores)} | {f"v {one.name!r}": len(one) for one in variables}
    _check_lengths(lengths, by_name=False)
    _check_probabilities(scores, given.dtype)
    return scores, variables


def _column(value: object, table: Table | None, argument: str) -> object:
    """Return the column that a name stands for, or the array itself."""
    if table is not None and isinstance(value, str):
        return table.column(value, argument)
    if isinstance(value, str):
        raise InputError(
            f"{argument} is the string {value!r}",
            "give an array, or a column name together with data=",
        )
    if table is not None and isinstance(value, int):
        raise InputError(f"{argument} is the number {value!r}", "names of columns are strings")
    return value


def _names(value: object, table: Table | None) -> list[str] | None:
    """Return the column names that an argument holds, or None if it holds values."""
    if table is None:
        return None
    if isinstance(value, str):
        return [value]
    is_names = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    return list(value) if is_names and value else None  # type: ignore[call-overload]


def probabilities(p: object, table: Table | None) -> tuple[AnyArray, tuple[str, ...], str | None]:
    """Return p in its own dtype, the names of its columns, and the library it came in."""
    names = _names(p, table)
    if names is not None and table is not None:
        if len(set(names)) < len(names):
            raise InputError(f"p names a column twice: {names}", "name one column a class")
        frame = table
    elif is_frame(p):
        frame = Table.of(p, "p")
        names = list(frame.columns)
    else:
        series = as_series(p)
        backend = None if series is None else str(series.implementation.value)
        return _shaped(_numbers(_column(p, table, "p"), "p")), (), backend
    columns = [_numbers(frame.column(name, "p"), f"p {name!r}") for name in names]
    stacked = columns[0] if len(columns) == 1 else np.column_stack(columns or [np.empty((0, 0))])
    return _shaped(stacked), tuple(names), frame.backend


def weights(sample_weight: object, table: Table | None) -> AnyArray:
    """Return weights in their own dtype, before their values are checked."""
    return _numbers(_column(sample_weight, table, "sample_weight"), "sample_weight")


def _shaped(p: AnyArray) -> AnyArray:
    if p.ndim == 2 and p.shape[1] == 1:
        p = p[:, 0]
    if p.ndim not in (1, 2) or 0 in p.shape[1:]:
        raise InputError(
            f"p has shape {p.shape}",
            "give (n,) for P(y = second class), or (n, K) with one column a class",
        )
    return p


_NUMBERS_HINT = {
    "p": "give real numbers; labels go in y, which comes before p",
    "sample_weight": "weights are real numbers, finite and not negative",
}


def _numbers(values: object, argument: str) -> AnyArray:
    """Return real numbers in their own dtype, without a copy where they are already so."""
    if is_frame(values):
        raise InputError(f"{argument} is a frame", "give one column of it")
    array = plain_array(values, argument) if as_series(values) is None else None
    if array is not None and array.ndim > 1:
        if array.dtype.kind in "iuf":
            return array
        if array.ndim == 2:
            parts = [_numbers(array[:, k], argument) for k in range(array.shape[1])]
            return np.column_stack(parts)
    column = Variable.of(values if array is None else array, argument, argument)
    if column.kind == "levels" and not column.levels:
        return np.full(len(column), np.nan)
    if column.kind != "numeric" or column.duration:
        shown: str = "durations" if column.duration else column.kind
        if column.levels == (False, True):
            shown = "booleans"
        hint = _NUMBERS_HINT[argument.split(" ")[0]]
        raise InputError(f"{argument} holds {shown}, not numbers", hint)
    return column.values


def _other_columns(table: Table | None, *roles: object) -> list[str]:
    """Name the columns of data that are neither outcome, probability, weight nor group."""
    if table is None:
        raise InputError("no variables are given", "give a frame of variables, or data=")
    taken = {name for role in roles for name in _names(role, table) or ()}
    others = [name for name in table.columns if name not in taken]
    if not others:
        raise InputError("data has no column besides y and p", "give the variables")
    return others


def _variables(v: object, table: Table | None) -> tuple[tuple[Variable, ...], str | None]:
    names = _names(v, table)
    if v is None:
        return (), None
    if names is not None and table is not None:
        if len(set(names)) < len(names):
            raise InputError(f"v names a column twice: {names}", "name each variable once")
        return tuple(Variable.of(table.column(n, "v"), n) for n in names), table.backend
    if is_frame(v) or isinstance(v, Mapping):
        frame = Table.of(v, "v")
        if not frame.columns:
            raise InputError("v has no columns", "give at least one variable")
        return tuple(Variable.of(frame.column(n, "v"), n) for n in frame.columns), frame.backend
    column = _column(v, table, "v")
    name = getattr(v, "name", None)
    name = name if isinstance(name, str) and name else "v"
    series = as_series(column)
    if series is not None:
        return (Variable.of(column, name),), str(series.implementation.value)
    array = plain_array(column, "v")
    if array.ndim != 2:
        return (Variable.of(array, name),), None
    if not array.shape[1]:
        raise InputError(f"v has shape {array.shape}: no columns", "give at least one variable")
    return tuple(Variable.of(array[:, k], f"v{k}") for k in range(array.shape[1])), None


def _check_lengths(lengths: dict[str, int], *, by_name: bool) -> None:
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {count:,}" for name, count in lengths.items())
        names = "; with data=, names of columns are strings" if by_name else ""
        raise InputError(f"lengths differ: {shown}", f"give one value a row in each{names}")
    if not lengths["p"]:
        what = "y and p are" if "y" in lengths else "p is"
        raise InputError(f"{what} empty", "at least one row is needed")


def from_log_odds(logits: Floats) -> Floats:
    """Return the probabilities that logits stand for."""
    bad = ~np.isfinite(logits)
    if bad.any():
        _raise_at(logits, bad, "is not finite", "logits are finite numbers")
    if logits.ndim == 1:
        small = np.exp(-np.abs(logits))
        return np.where(logits >= 0, 1.0, small) / (1.0 + small)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _check_probabilities(p: Floats, given: np.dtype[Any]) -> None:
    low, high = extremes(p)
    if not (low >= 0 and high <= 1):  # also true when either is NaN
        missing = np.isnan(p)
        if missing.any():
            _raise_at(p, missing, "is missing", "leave such rows out or fill them in first")
        outside = (p < 0) | (p > 1)
        if low < -0.5 or high > 1.5:
            hint = "logits are taken with from_logits=True, percentages divided by 100"
        else:
            hint = "a probability lies in [0, 1]; if this is rounding, np.clip(p, 0, 1) first"
        _raise_at(p, outside, "is outside [0, 1]", hint)
    if p.ndim == 2:
        rounding = float(np.finfo(given).eps) if given.kind == "f" else 0.0
        tolerance = SUM_TOLERANCE + p.shape[1] * rounding
        off = np.abs(p.sum(axis=1) - 1.0) > tolerance
        if off.any():
            row = int(off.argmax())
            raise InputError.at_row(
                "p",
                f"must sum to 1 in each row (within {tolerance:.3g}), but sums to",
                float(p[row].sum()),
                row,
                int(off.sum()),
                "give one column for every class, or divide each row by its sum",
            )


def _raise_at(p: Floats, bad: Bools, problem: str, hint: str) -> None:
    rows = bad if bad.ndim == 1 else bad.any(axis=1)
    row = int(rows.argmax())
    where = "p" if bad.ndim == 1 else f"p in column {int(bad[row].argmax())}"
    value = float(p[row] if bad.ndim == 1 else p[row, bad[row].argmax()])
    raise InputError.at_row(where, problem, value, row, int(rows.sum()), hint)


def _check_order(names: Sequence[str], classes: Sequence[Hashable]) -> None:
    """Refuse columns of p that carry the labels as names, but in another order."""
    texts = [str(label) for label in classes]
    if list(names) == texts or sorted(names) != sorted(texts):
        return
    order = [classes[texts.index(name)] for name in names]
    raise InputError(
        f"the columns of p are named {list(names)!r}, but the classes are in the order "
        f"{list(classes)!r}",
        f"names of columns carry no meaning: say it with classes={order!r}",
    )


def _checked_weights(given: AnyArray, part: Part | None) -> Floats:
    weight: Floats = given.astype(np.float64, copy=False)
    if weight.ndim != 1:
        raise InputError(f"sample_weight has shape {weight.shape}", "give one weight a row")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(bad.argmax())
        problem = "is negative" if weight[row] < 0 else "is not a finite number"
        raise InputError.at_row(
            "sample_weight",
            problem,
            float(weight[row]),
            row,
            int(bad.sum()),
            "weights are finite and not negative",
        )
    if part is None:
        if not weight.any():
            raise no_weight()
        exponent = weight_exponent(float(weight.max()))
    else:
        exponent = part.exponent
    # A power of two keeps ratios to the bit.
    return np.ldexp(weight, -exponent) if exponent else weight


def no_weight() -> InputError:
    """Return the error of weights that are all 0."""
    return InputError("sample_weight is 0 at every row", "at least one row must count")


def weight_exponent(largest: float) -> int:
    """Return by which power of two weights are divided, lest their fourth powers overflow."""
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) >= MOST_EXPONENT else 0
