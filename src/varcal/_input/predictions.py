"""Predictions: outcomes, probabilities, variables, weights and groups, checked once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.dates import as_dates, read_parts, with_dates
from varcal._input.frames import Table, check_lengths, column_names, column_of, columns_by_name
from varcal._input.groups import check_units, group_numbers
from varcal._input.labels import Labels, Part
from varcal._input.probabilities import (
    check_order,
    check_probabilities,
    checked_weights,
    from_log_odds,
    in_class_order,
    probabilities,
    weights,
)
from varcal._input.variables import (
    Variable,
    as_series,
    present_levels,
    read_columns,
)
from varcal._options import checked, of_type, or_none
from varcal.exceptions import InputError

#: Stands for "every column of data that has no other role".
ALL = "every other column"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked predictions, the input of every computation.

    Use `Predictions.of` to create them; it does all checks.

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
        Sampling weights, scaled by a power of two if they are extremely large or small.
    unit : Variable or None
        The unit that a row belongs to.
    n_dropped : int
        The number of rows dropped because their outcome is missing.
    backend : str or None
        The frame library that the data came in.
    odd : mapping
        Columns that cannot be variables, with the reason.
    engine : str
        What read them.
    """

    y: AnyArray
    p: Floats
    classes: tuple[Hashable, ...]
    variables: tuple[Variable, ...] = ()
    weight: Floats | None = None
    unit: Variable | None = None
    n_dropped: int = 0
    backend: str | None = None
    odd: Mapping[str, str] = field(default_factory=dict)
    engine: str = "numpy"

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def groups(self) -> Ints | None:
        """The number of each row's unit, None without groups."""
        return None if self.unit is None else group_numbers(self.unit)

    def take(self, rows: AnyArray, **changes: Any) -> Predictions:
        """Return the given rows (positions or a mask); `changes` are other fields to replace.

        >>> Predictions.of([0, 1, 1], [0.2, 0.9, 0.4]).take(np.array([2, 0])).p
        array([0.4, 0.2])
        """
        return replace(
            self,
            y=self.y[rows],
            p=self.p[rows],
            variables=tuple(variable.take(rows) for variable in self.variables),
            weight=None if self.weight is None else self.weight[rows],
            unit=None if self.unit is None else self.unit.take(rows),
            **changes,
        )

    @classmethod
    @checked(part=or_none(of_type(Part, "facts about all rows")))
    def of(
        cls,
        y: object,
        p: object,
        v: object = None,
        *,
        data: object = None,
        classes: Sequence[Hashable] | None = None,
        pos_label: Hashable = None,
        sample_weight: object = None,
        groups: object = None,
        from_logits: bool = False,
        unlabelled: str = "raise",
        part: Part | None = None,
        must_read: Collection[str] | None = None,
    ) -> Predictions:
        """Check predictions and bring them into one form.

        Parameters
        ----------
        y : array-like or column name
            Labels: integers, booleans, strings or categories.
        p : array-like, column name, or names of one column per class
            Probabilities: (n,) is P(y = pos_label), (n, K) one column per class.
        v : array-like, frame, dict of columns, or column names, optional
            The variables.
        data : frame or dict of columns, optional
            With it, a string or a list of strings names columns; anything else is an array.
        classes : sequence, optional
            The labels in the order of the columns of `p`. By default labels 0/1 and booleans
            mean [0, 1], and any others are assigned to the columns in sorted order.
        pos_label : label, optional
            The class that a vector `p` is about, of two; the second one by default.
        sample_weight : array-like or column name, optional
            Sampling weights, not negative.
        groups : array-like or column name, optional
            The unit (patient, customer, …) that each row belongs to.
        from_logits : bool
            Whether `p` holds logits: (n,) log-odds of `pos_label`, (n, K) logits.
        unlabelled : {"raise", "drop"}
            What to do with rows whose label is missing.
        part : Part, optional
            Facts about all rows, if these are a batch of them.
        must_read : collection of str, optional
            Variables that have to be readable, by default all. Others that are not go to `odd`.

        Returns
        -------
        Predictions

        Raises
        ------
        InputError
            If an argument is invalid; the message says what is wrong, where, and how to fix it.

        Examples
        --------
        >>> checked = Predictions.of(["no", "yes", "yes"], [0.2, 0.9, 0.4])
        >>> checked.classes, checked.y
        (('no', 'yes'), array([0, 1, 1]))
        """
        table = None if data is None else Table.of(data, "data")
        given, p_names, p_backend = probabilities(p, table)
        labels = Labels.of(column_of(y, table, "y"))
        if v is ALL:
            v = other_columns(table, y, p, sample_weight, groups)
        variables, v_backend, odd = _variables(v, table, must_read)
        variables = tuple(_dated(variable, part) for variable in variables)
        if part is not None and part.calendar:
            variables = read_parts(variables, part.calendar)
        weight = None if sample_weight is None else weights(sample_weight, table)
        unit = None
        if groups is not None:
            unit = Variable.of(column_of(groups, table, "groups"), "groups", "groups")
        lengths = {"y": len(labels), "p": len(given)}
        lengths |= {f"variable {variable.name!r}": len(variable) for variable in variables}
        lengths |= {} if weight is None else {"sample_weight": len(weight)}
        lengths |= {} if unit is None else {"groups": len(unit)}
        if part is not None and not any(lengths.values()):
            return cls.empty(part, 0)
        check_lengths(lengths, by_name=table is not None)
        rows = cls(
            labels.column.values,
            given.astype(np.float64, copy=False),
            () if part is None else part.classes,
            variables,
            weight,
            unit,
            backend=(table.backend if table is not None else None) or v_backend or p_backend,
            odd=odd,
        )
        unknown = labels.missing()
        if unknown.any():
            _check_unlabelled(labels, unlabelled, part)
            labels, rows = labels.take(~unknown), rows.take(~unknown, n_dropped=int(unknown.sum()))
            if not len(labels) and part is not None:
                return cls.empty(part, rows.n_dropped)
        labels.check_numbers(rows.p)
        probability = from_log_odds(rows.p) if from_logits else rows.p
        check_probabilities(probability, given.dtype)
        if part is not None and not part.classes:
            codes, encoded = np.zeros(len(labels), np.intp), _distinct(labels)
        else:
            n_classes = 2 if probability.ndim == 1 else probability.shape[1]
            known = classes if part is None else part.classes
            by_meaning = part is not None and part.by_meaning
            codes, encoded = labels.encode(n_classes, known, by_meaning=by_meaning)
            check_order(p_names, encoded)
            probability = in_class_order(probability, encoded, pos_label)
        return replace(
            rows,
            y=codes,
            p=probability,
            classes=encoded,
            weight=None if rows.weight is None else checked_weights(rows.weight, part),
            unit=None if rows.unit is None else check_units(rows.unit),
        )

    @classmethod
    def empty(cls, part: Part, n_dropped: int) -> Predictions:
        """Return a batch without rows."""
        return cls(np.zeros(0, np.intp), np.zeros(0), part.classes, n_dropped=n_dropped)


def _check_unlabelled(labels: Labels, unlabelled: str, part: Part | None) -> None:
    """Refuse rows without a label unless they are to be dropped, and some row has one."""
    unknown = labels.missing()
    if unlabelled == "raise":
        row = int(unknown.argmax())
        raise InputError.at_row(
            "y",
            "has no label",
            labels.raw(row),
            row,
            int(unknown.sum()),
            "fill it in, or drop such rows with {unlabelled}",
            settings={"unlabelled": "drop"},
        )
    if part is None and unknown.all():
        raise InputError(
            "y has no label at any row", "at least one outcome is needed", argument="y"
        )


def _distinct(labels: Labels) -> tuple[Hashable, ...]:
    """Return the labels of a batch, while those of other batches are not known."""
    column = labels.column
    if column.kind == "levels":
        if column.levels == (False, True):
            return column.levels
        return tuple(present_levels(column.values, column.levels)[1])
    values = column.values
    if len(values) and values.dtype.kind in "iu" and values.min() >= 0 and values.max() <= 1:
        return tuple({int(values.min()), int(values.max())})
    return tuple(np.unique(values).tolist())


def other_columns(table: Table | None, *roles: object) -> list[str]:
    """Return the columns of data that are neither outcome, probability, weight nor group."""
    if table is None:
        raise InputError("X is not given", "give a frame of variables, or data=", argument="X")
    taken = {name for role in roles for name in column_names(role, table) or ()}
    others = [name for name in table.columns if name not in taken]
    if not others:
        raise InputError(
            "data has no column left for a variable", "give the variables", argument="data"
        )
    return others


def _dated(variable: Variable, part: Part | None) -> Variable:
    """Read text as dates where it is dates; of a batch, where all rows are."""
    if part is None:
        return with_dates(variable)
    form = part.date_formats.get(variable.name)
    if form is None or variable.kind != "levels" or not variable.levels:
        return variable
    found = as_dates(variable, form)
    if found is None:
        raise InputError(
            f"variable {variable.name!r} holds text that is not a date written as {form}",
            "correct it, or convert the column to dates",
            argument="v",
        )
    return found


def _variables(
    v: object, table: Table | None, must_read: Collection[str] | None = None
) -> tuple[tuple[Variable, ...], str | None, dict[str, str]]:
    """Return the variables, their library, and columns that cannot be variables."""
    if v is None:
        return (), None, {}
    names = column_names(v, table)
    if names is not None and table is not None:
        if len(set(names)) < len(names):
            raise InputError(
                f"v names a column twice: {names}", "name each variable once", argument="v"
            )
        columns, backend = {name: table.column(name, "v") for name in names}, table.backend
    else:
        columns = columns_by_name(column_of(v, table, "v"), "v")
        if not columns:
            shape = f" (shape {np.shape(v)})" if isinstance(v, np.ndarray) else ""
            raise InputError(f"v has no columns{shape}", "give at least one variable", argument="v")
        series = as_series(next(iter(columns.values())))
        backend = None if series is None else str(series.implementation.value)
    found, odd = read_columns(columns, must_read)
    return found, backend, odd


def read_scores(
    p: object, v: object = None, *, from_logits: bool = False
) -> tuple[Floats, tuple[Variable, ...]]:
    """Check probabilities, or logits, and variables without an outcome.

    Examples
    --------
    >>> p, variables = read_scores([0.2, 0.9], {"age": [31, 54]})
    >>> p, variables[0].name
    (array([0.2, 0.9]), 'age')
    """
    given, _, _ = probabilities(p, None)
    scores = given.astype(np.float64, copy=False)
    variables = tuple(with_dates(variable) for variable in _variables(v, None)[0])
    lengths = {"p": len(scores)}
    lengths |= {f"variable {variable.name!r}": len(variable) for variable in variables}
    check_lengths(lengths, by_name=False)
    scores = from_log_odds(scores) if from_logits else scores
    check_probabilities(scores, given.dtype)
    return scores, variables
