"""Predictions: outcomes, probabilities, variables, weights and groups, checked once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.dates import as_dates, read_parts, with_dates
from varcal._input.frames import (
    Table,
    check_lengths,
    column_names,
    column_of,
    columns_by_name,
    is_frame,
    library_of,
    numbers_of,
)
from varcal._input.groups import check_units, group_numbers
from varcal._input.labels import Labels, Part, position_of
from varcal._input.variables import Variable, extremes, read_columns, refuse_rows
from varcal._options import checked
from varcal.exceptions import InputError

#: Stands for "every column of data that has no other role".
ALL = "every other column"
#: How far the sum of a row's probabilities may be from 1, besides the rounding of their dtype.
SUM_TOLERANCE = 1e-6
#: Values further than this outside [0, 1] are taken for logits or percentages, others for
#: rounding errors; only the hint depends on it.
FAR_OUTSIDE = 0.5
#: Weights are scaled if the largest is above 2 to this power, or below 2 to minus this power.
MOST_EXPONENT = 200
#: Smaller weights in relation to the largest one are refused: their fourth powers, which variances
#: of variances need, would vanish. Doubles have 16 digits, so that such rows count for nothing.
LEAST_RATIO = 1e-60
#: Amounts beyond this are refused: sums of their fourth powers, which the tests need, overflow.
MOST_AMOUNT = 1e60


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked predictions, the input of every computation.

    Use `Predictions.of` to create them; it does all checks.

    Attributes
    ----------
    y : ndarray of int
        The position in `classes` of each row's label; for soft labels the share of the second.
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

    @property
    def soft(self) -> bool:
        """Whether labels are shares of the second of two classes."""
        return self.y.dtype.kind == "f" and len(self.classes) == 2

    @cached_property
    def groups(self) -> Ints | None:
        """The number of each row's unit, None without groups."""
        return None if self.unit is None else group_numbers(self.unit)

    def take(self, rows: AnyArray | slice, **changes: Any) -> Predictions:
        """Return the given rows; `changes` are other fields to replace.

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
    @checked()
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
        swapped: str = "",
        soft: bool = False,
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
        swapped : str
            The hint if `y` and `p` seem to be swapped, for calibrators, whose order is another.
        soft : bool
            Whether `y` may hold shares between 0 and 1, of the second of two classes. They stay as
            they are, and the classes are 0 and 1.

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
        given, p_names, p_library = _probabilities(p, table)
        labels = Labels.of(column_of(y, table, "y"))
        if v is ALL:
            v = other_columns(table, y, p, sample_weight, groups)
        variables, v_library, odd = _variables(v, table, must_read)
        variables = tuple(_dated(variable, part) for variable in variables)
        if part is not None:
            variables = read_parts(variables, part.calendar)
        weight = unit = None
        if sample_weight is not None:
            weight = numbers_of(column_of(sample_weight, table, "sample_weight"), "sample_weight")
        if groups is not None:
            unit = Variable.of(column_of(groups, table, "groups"), "groups", "groups")
        lengths = {"y": len(labels), "p": len(given)}
        lengths |= {f"variable {variable.name!r}": len(variable) for variable in variables}
        lengths |= {} if weight is None else {"sample_weight": len(weight)}
        lengths |= {} if unit is None else {"groups": len(unit)}
        if part is not None and not any(lengths.values()):
            return cls.empty(part, 0)
        check_lengths(lengths, by_name=table is not None)
        library = (table.backend if table is not None else None) or v_library or p_library
        rows = cls(
            labels.values,
            given.astype(np.float64, copy=False),
            () if part is None else part.classes,
            variables,
            weight,
            unit,
            backend=library,
            odd=odd,
        )
        unknown = labels.missing()
        if unknown.any():
            labels.check_missing(unlabelled, part)
            labels, rows = labels.take(~unknown), rows.take(~unknown, n_dropped=int(unknown.sum()))
            if not len(labels) and part is not None:
                return cls.empty(part, rows.n_dropped)
        shares = soft and classes is None and labels.are_shares(rows.p)
        if not shares:
            labels.check_numbers(rows.p, swapped)
        p = _from_logits(rows.p) if from_logits else rows.p
        _check_probabilities(p, given.dtype)
        encoded: tuple[Hashable, ...]
        if shares:
            codes, encoded = labels.values.astype(np.float64, copy=False), (0, 1)
            p = in_class_order(p, encoded, pos_label)
        elif part is not None and not part.classes:
            codes, encoded = np.zeros(len(labels), np.intp), labels.distinct()
        else:
            codes, encoded = labels.encode(2 if p.ndim == 1 else p.shape[1], classes, part)
            _check_order(p_names, encoded)
            p = in_class_order(p, encoded, pos_label)
        return replace(
            rows,
            y=codes,
            p=p,
            classes=encoded,
            weight=None if rows.weight is None else checked_weights(rows.weight, part),
            unit=None if rows.unit is None else check_units(rows.unit),
        )

    @classmethod
    def of_means(
        cls,
        y: object,
        mu: object,
        v: object = None,
        *,
        data: object = None,
        exposure: object = None,
        sample_weight: object = None,
        groups: object = None,
        unlabelled: str = "raise",
        must_read: Collection[str] | None = None,
    ) -> tuple[Predictions, Floats | None]:
        """Check amounts and their predicted means; also return the exposure of each row.

        Parameters
        ----------
        y, mu : array-like or column names
            Outcomes and predicted means, per unit of exposure if there is one.
        v, data, sample_weight, groups, unlabelled, must_read
            As in `of`.
        exposure : array-like or column name, optional
            Positive numbers.

        Returns
        -------
        rows : Predictions
            With `y` and `p` as they are, and without classes.
        exposure : ndarray or None

        Examples
        --------
        >>> rows, _ = Predictions.of_means([0, 2.5], [0.5, 1.5])
        >>> rows.y, rows.p
        (array([0. , 2.5]), array([0.5, 1.5]))
        """
        table = None if data is None else Table.of(data, "data")
        given = {"y": y, "p": mu, "sample_weight": sample_weight, "exposure": exposure}
        numbers = {
            name: numbers_of(column_of(value, table, name), name).astype(np.float64, copy=False)
            for name, value in given.items()
            if value is not None
        }
        if v is ALL:
            v = other_columns(table, *given.values(), groups)
        variables, library, odd = _variables(v, table, must_read)
        variables = tuple(with_dates(variable) for variable in variables)
        unit = None
        if groups is not None:
            unit = check_units(Variable.of(column_of(groups, table, "groups"), "groups", "groups"))
        for name, values in numbers.items():
            if values.ndim != 1:
                problem = f"{name} has shape {values.shape}"
                raise InputError(problem, "give one number per row", name)
        lengths = {name: len(values) for name, values in numbers.items()}
        lengths |= {f"variable {variable.name!r}": len(variable) for variable in variables}
        lengths |= {} if unit is None else {"groups": len(unit)}
        check_lengths(lengths, by_name=table is not None)
        backend = (table.backend if table is not None else None) or library or library_of(mu)
        weight, share = numbers.get("sample_weight"), numbers.get("exposure")
        rows = cls(numbers["y"], numbers["p"], (), variables, weight, unit, 0, backend, odd)
        unknown = np.isnan(rows.y)
        if unknown.any():
            Labels("y", "numeric", rows.y).check_missing(unlabelled, None)
            rows = rows.take(~unknown, n_dropped=int(unknown.sum()))
            share = None if share is None else share[~unknown]
        _check_amounts(rows.y, rows.p, share)
        if rows.weight is not None:
            rows = replace(rows, weight=checked_weights(rows.weight, None))
        return rows, share

    @classmethod
    def empty(cls, part: Part, n_dropped: int) -> Predictions:
        """Return a batch without rows."""
        return cls(np.zeros(0, np.intp), np.zeros(0), part.classes, n_dropped=n_dropped)


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
    given, _, _ = _probabilities(p, None)
    scores = given.astype(np.float64, copy=False)
    variables = read_variables(v)
    lengths = {"p": len(scores)}
    lengths |= {f"variable {variable.name!r}": len(variable) for variable in variables}
    check_lengths(lengths, by_name=False)
    scores = _from_logits(scores) if from_logits else scores
    _check_probabilities(scores, given.dtype)
    return scores, variables


# ------------------------------------------------------------------ variables


def read_variables(v: object) -> tuple[Variable, ...]:
    """Return the variables that are given as an array, a frame or a dict; none for None."""
    return tuple(with_dates(variable) for variable in _variables(v, None)[0])


def other_columns(table: Table | None, *roles: object) -> list[str]:
    """Return the columns of data that are neither outcome, probability, weight nor group."""
    if table is None:
        raise InputError("X is not given", "give a frame of variables, or data=", argument="X")
    taken = {name for role in roles for name in column_names(role, table) or ()}
    others = [name for name in table.columns if name not in taken]
    if not others:
        raise InputError("data has no column left for a variable", "give the variables", "data")
    return others


def _variables(
    v: object, table: Table | None, must_read: Collection[str] | None = None
) -> tuple[tuple[Variable, ...], str | None, dict[str, str]]:
    """Return the variables, their library, and columns that cannot be variables."""
    if v is None:
        return (), None, {}
    names = column_names(v, table)
    if names is not None and table is not None:
        if len(set(names)) < len(names):
            problem = f"v names a column twice: {names}"
            raise InputError(problem, "name each variable once", "v")
        columns = {name: table.column(name, "v") for name in names}
        library = table.backend
    else:
        columns = columns_by_name(column_of(v, table, "v"), "v")
        if not columns:
            shape = f" (shape {np.shape(v)})" if isinstance(v, np.ndarray) else ""
            problem = f"v has no columns{shape}"
            raise InputError(problem, "give at least one variable", "v")
        library = library_of(next(iter(columns.values())))
    found, odd = read_columns(columns, must_read)
    return found, library, odd


def _dated(variable: Variable, part: Part | None) -> Variable:
    """Read text as dates where it is dates; of a batch, where all rows are."""
    if not variable.levels:
        return variable
    if part is None:
        return with_dates(variable)
    form = part.date_formats.get(variable.name)
    if form is None:
        return variable
    found = as_dates(variable, form)
    if found is None:
        problem = f"variable {variable.name!r} holds text that is not a date written as {form}"
        hint = "correct it, or convert the column to dates"
        raise InputError(problem, hint, "v")
    return found


# ------------------------------------------------------------------ probabilities


def _probabilities(p: object, table: Table | None) -> tuple[AnyArray, tuple[str, ...], str | None]:
    """Return p in its own dtype, the names of its columns, and the library of its frame."""
    names = column_names(p, table)
    if names is not None and table is not None:
        if len(set(names)) < len(names):
            raise InputError(f"p names a column twice: {names}", "name one column per class", "p")
        frame = table
    elif is_frame(p):
        frame = Table.of(p, "p")
        names = list(frame.columns)
    else:
        return _shaped(numbers_of(column_of(p, table, "p"), "p")), (), library_of(p)
    columns = [numbers_of(frame.column(name, "p"), f"p {name!r}") for name in names]
    stacked = columns[0] if len(columns) == 1 else np.column_stack(columns or [np.empty((0, 0))])
    return _shaped(stacked), tuple(names), frame.backend


def _from_logits(logits: Floats) -> Floats:
    """Convert logits to probabilities."""
    refuse_rows(~np.isfinite(logits), logits, "p", "is not finite", "logits are finite numbers")
    if logits.ndim == 1:
        small = np.exp(-np.abs(logits))
        return np.where(logits >= 0, 1.0, small) / (1.0 + small)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _shaped(p: AnyArray) -> AnyArray:
    if p.ndim == 2 and p.shape[1] == 1:
        p = p[:, 0]
    if p.ndim not in (1, 2) or 0 in p.shape[1:]:
        hint = "give (n,) for P(y = pos_label), or (n, K) with one column per class"
        raise InputError(f"p has shape {p.shape}", hint, "p")
    return p


def _check_probabilities(p: Floats, given: np.dtype[Any]) -> None:
    """Refuse values outside [0, 1] and rows that do not sum to 1; `given` is the input's dtype."""
    low, high = extremes(p)
    if not (low >= 0 and high <= 1):  # also true when either is NaN
        refuse_rows(np.isnan(p), p, "p", "is missing", "drop such rows or fill them in first")
        hint = "probabilities lie in [0, 1]; if this is a rounding error, clip them first"
        if low < -FAR_OUTSIDE or high > 1 + FAR_OUTSIDE:
            hint = (
                "if these are logits, pass {from_logits}; divide percentages by 100; for amounts "
            )
            hint += "or counts pass {outcome} to audit(), estimate() or bin_table(), and repair "
            hint += "them with MeanCalibrator"
        outside, settings = (p < 0) | (p > 1), {"from_logits": True, "outcome": "mean"}
        refuse_rows(outside, p, "p", "is outside [0, 1]", hint, settings)
    if p.ndim == 2:
        rounding = float(np.finfo(given).eps) if given.kind == "f" else 0.0
        tolerance = SUM_TOLERANCE + p.shape[1] * rounding
        sums = p.sum(axis=1)
        problem = f"must sum to 1 in each row (within {tolerance:.3g}), but sums to"
        hint = "give one column for every class, or divide each row by its sum"
        refuse_rows(np.abs(sums - 1.0) > tolerance, sums, "p", problem, hint)


def _check_amounts(y: Floats, mu: Floats, exposure: Floats | None) -> None:
    """Refuse amounts that are missing, infinite or far too large, and rows without exposure."""
    hint = "drop such rows or fill them in first"
    refuse_rows(np.isnan(mu), None, "p", "is missing", hint)
    for name, values in (("y", y), ("p", mu)):
        far = ~(np.abs(values) <= MOST_AMOUNT)
        hint = f"amounts are finite numbers of at most {MOST_AMOUNT:g}; use a larger unit"
        refuse_rows(far, values, name, "is too large", hint)
    if exposure is not None:
        bad = ~((exposure > 0) & (exposure <= MOST_AMOUNT))
        hint = "exposures are positive: drop the row, or correct its exposure"
        refuse_rows(bad, exposure, "exposure", "is not an exposure", hint)


def in_class_order(p: Floats, classes: Sequence[Hashable], pos_label: Hashable) -> Floats:
    """Return p in the order of the classes: a vector of P(y = first class) as both columns.

    A vector is P(y = pos_label). That of the second class stays a vector, and nothing behind this
    function has to know which class a vector is about.

    >>> in_class_order(np.array([0.2, 0.9]), ("bad", "good"), "bad")
    array([[0.2, 0.8],
           [0.9, 0.1]])
    """
    if position_of(classes, pos_label) == 1 or p.ndim == 2:
        return p
    return np.column_stack([p, 1.0 - p])


def _check_order(names: Sequence[str], classes: Sequence[Hashable]) -> None:
    """Refuse columns of p that are named after the labels, but in another order."""
    texts = [str(label) for label in classes]
    if list(names) == texts or sorted(names) != sorted(texts):
        return
    order = [classes[texts.index(name)] for name in names]
    raise InputError(
        f"p has columns named {list(names)!r}, but the classes are in the order {list(classes)!r}",
        "column names are ignored; state the order with {classes}",
        "p",
        {"classes": order},
    )


# ------------------------------------------------------------------ weights


def checked_weights(given: AnyArray, part: Part | None = None) -> Floats:
    """Check the values of weights and scale them if they are extremely large or small."""
    weight: Floats = given.astype(np.float64, copy=False)
    if weight.ndim != 1:
        problem = f"sample_weight has shape {weight.shape}"
        raise InputError(problem, "give one weight per row", "sample_weight")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    problem = "is negative" if (weight[bad][:1] < 0).any() else "is not a finite number"
    refuse_rows(bad, weight, "sample_weight", problem, "weights are finite and not negative")
    largest = float(weight.max(initial=0.0))
    faint = (weight > 0) & (weight < largest * LEAST_RATIO)
    problem = f"is less than {LEAST_RATIO:g} times the largest, {largest:g}"
    hint = "such a row could never matter: give it the weight 0, or correct the weights"
    refuse_rows(faint, weight, "sample_weight", problem, hint)
    if part is None and not largest:
        raise no_weight()
    exponent = weight_exponent(largest) if part is None else part.exponent
    # Scaling by a power of two keeps ratios exact.
    return np.ldexp(weight, -exponent) if exponent else weight


def no_weight() -> InputError:
    """Return the error for weights that are all 0."""
    hint = "at least one weight must be positive"
    return InputError("sample_weight is 0 at every row", hint, "sample_weight")


def weight_exponent(largest: float) -> int:
    """Return the power of two to divide weights by, so that fourth powers do not overflow."""
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) >= MOST_EXPONENT else 0
