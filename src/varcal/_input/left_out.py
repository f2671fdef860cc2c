"""Columns that an audit leaves out unless they are asked for: identifiers, constants, free text.

Such a column says nothing about calibration, but each one that is tested makes the adjustment for
the number of variables stricter for all others. A column is left out only where that is certain:
numbers with a fraction and dates never are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Ints
from varcal._input.dates import formats_of
from varcal._input.frames import is_frame
from varcal._input.predictions import ALL
from varcal._input.variables import Variable, as_series
from varcal.exceptions import InputError

#: Text of which this share of the values differ is nearly unique. Names of people or places repeat
#: more often: 71 % of the Titanic's tickets differ, 99.8 % of its passengers' names.
NEARLY_UNIQUE_TEXT = 0.95
#: The same for whole numbers in a column that is named like an identifier.
NEARLY_UNIQUE_NUMBERS = 0.99
#: The same for long text; answers to open questions repeat now and then ("none").
NEARLY_UNIQUE_PROSE = 0.5
#: Text is prose where its values have on average this many characters and words.
PROSE_LENGTH, PROSE_WORDS = 30.0, 4.0
#: From this share of different values on, a text needs one that is held by `LEAST_ROWS` rows. In
#: small tables a share of the rows is too weak a rule: 1 % of 400 rows are 4.
MANY_VALUES = 0.5
#: With fewer rows than this, values differ by chance.
LEAST_ROWS = 20
#: With this share of missing values or more, whether a text is given at all may matter.
TELLING_MISSING = 0.01
#: Values that are read to judge what text looks like.
_LOOKED_AT = 1000

#: Names that libraries give to an index without a name.
_NAMELESS = re.compile(r"(unnamed: ?\d+(_level_\d+)?|__index_level_\d+__|index|level_\d+|)", re.I)
#: Last words of names of identifiers.
_ID_WORDS = {"id", "ids", "uuid", "guid", "key", "pk", "nr", "no", "idx", "index", "rowid"}
#: The same without a separator; "paid" and "grid" are not among them.
_ID_NAMES = re.compile(
    r"(account|case|client|customer|employee|member|object|order|passenger|patient|person|product|"
    r"record|row|sample|session|student|subject|transaction|user)(id|key|nr|no|number|num|index)"
)
#: Words of names whose numbers may run from 1 to n and still have a meaning.
_ORDER_WORDS = {
    "age", "date", "day", "days", "hour", "minute", "month", "order", "period", "position", "rank",
    "second", "step", "t", "time", "timestamp", "trial", "week", "year",
}  # fmt: skip


class WholeTable(dict[str, Any]):
    """The columns of a whole table, not selected by name."""


def reason_to_leave_out(variable: Variable, rare: float = 0.01, n_all: int = 0) -> str:
    """Return why an audit leaves a column out, or "" if it does not.

    Parameters
    ----------
    variable : Variable
        The column.
    rare : float
        Levels with less than this share of the rows have no bin of their own.
    n_all : int
        The number of all rows if these are a sample, and at the end the extreme values.

    Examples
    --------
    >>> reason_to_leave_out(Variable.of([f"user-{k}" for k in range(1000)], "name"))
    'identifier: 1,000 different values in 1,000 rows'
    >>> reason_to_leave_out(Variable.of(np.linspace(900.5, 7000, 1000), "income"))
    ''
    """
    values = variable.values[~variable.missing()]
    n_missing = len(variable) - len(values)
    if not len(values):
        return "every value is missing"
    if variable.kind == "levels":
        return _of_levels(variable, values, n_missing, rare)
    if not n_missing and values.min() == values.max():
        return "constant: the same value at every row"
    if variable.kind != "numeric" or len(values) < LEAST_ROWS:
        return ""
    return _of_numbers(variable.name, values, n_all)


def explicit_names(
    X: object, include: str | Sequence[str] | None, known: Sequence[str]
) -> set[str]:
    """Return the columns that the user named one by one; these are never left out.

    A string, a list of names, a single column and a dict of columns name them. The columns of a
    whole frame or of a two-dimensional array are not named, nor is every other column of `data`.

    Parameters
    ----------
    X : object
        The variables, as they were given.
    include : str, sequence of str or None
        Columns that must not be left out.
    known : sequence of str
        The names of all variables.
    """
    chosen = [include] if isinstance(include, str) else list(include or ())
    for name in chosen:
        if name not in known:
            raise InputError.no_column(name, known, "include")
    if isinstance(X, list | tuple) and all(isinstance(name, str) for name in X):
        return {*chosen, *(X if set(X) <= set(known) else known)}  # names, or a column of text
    return {*chosen, *known} if _is_by_hand(X) else set(chosen)


def must_read(X: object, include: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the columns whose values have to be readable; None for all, if they are named.

    >>> must_read(ALL, None), must_read(ALL, "age"), must_read(["age"], None)
    ((), ('age',), None)
    """
    if isinstance(X, list | tuple) or _is_by_hand(X):
        return None
    return (include,) if isinstance(include, str) else tuple(include or ())


def all_left_out(reasons: Mapping[str, str], *, odd: bool = False) -> InputError:
    """Return the error for a table without any variable to audit; odd ones cannot come back."""
    shown = "; ".join(f"{name!r} ({reason})" for name, reason in list(reasons.items())[:3])
    more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    problem = f"X has no variable to audit: {shown}{more}"
    if odd:
        return InputError(problem, "give columns of numbers, texts, dates or truth values", "X")
    settings = {"include": list(reasons)[:1]}
    return InputError(problem, "bring columns back with {include}", "X", settings)


def _is_by_hand(X: object) -> bool:
    """Tell whether variables were given one by one, and not as a whole table."""
    if X is ALL or isinstance(X, WholeTable):
        return False
    if isinstance(X, str | Mapping) or as_series(X) is not None:
        return True
    if is_frame(X):
        return False
    return isinstance(X, np.ndarray | list | tuple) and np.ndim(X) == 1


def _of_levels(variable: Variable, codes: Ints, n_missing: int, rare: float) -> str:
    name, n = variable.name, len(codes)
    counts = np.bincount(codes)
    n_levels, largest = np.count_nonzero(counts), counts.max()
    if n_levels == 1 and not n_missing:
        return "constant: the same value at every row"
    telling = n_missing >= TELLING_MISSING * (n + n_missing)
    is_id = _is_id_name(name) or _NAMELESS.fullmatch(name.strip())
    if n < LEAST_ROWS or (telling and not is_id):
        return ""
    differing = f"{n_levels:,} different values in {n:,} rows"
    share = n_levels / n
    looked_at = [variable.levels[k] for k in np.flatnonzero(counts)[:_LOOKED_AT]]
    texts = [level for level in looked_at if isinstance(level, str)]
    if texts and len(texts) == len(looked_at):
        if share >= NEARLY_UNIQUE_PROSE and _is_prose(texts):
            return f"free text: {differing}"
        if share >= NEARLY_UNIQUE_TEXT and not is_id:
            if formats_of(texts):
                return "dates in an unclear order of day and month: convert them to dates"
            if _are_numbers(texts):
                return "numbers stored as text: convert them to numbers"
    if share >= NEARLY_UNIQUE_TEXT:
        return f"identifier: {differing}"
    if largest < rare * (n + n_missing):
        return f"too many values: {differing}, none of them in {100 * rare:.2g} % of the rows"
    if share >= MANY_VALUES and largest < LEAST_ROWS:
        return f"too many values: {differing}, none of them in {LEAST_ROWS} rows"
    return ""


def _of_numbers(name: str, values: AnyArray, n_all: int) -> str:
    if values.dtype.kind == "f" and (values != np.rint(values)).any():
        return ""
    # Python's own numbers: as floats, neighbouring integers above 2**53 would be equal.
    low, high = values.min().item(), values.max().item()
    nameless = _NAMELESS.fullmatch(name.strip()) is not None
    rows = values[:-2] if n_all > len(values) else values
    counts = low in (0, 1) and high - low + 1 == max(n_all, len(values))
    in_order = counts and ((rows[1:] > rows[:-1]).all() or (rows[1:] < rows[:-1]).all())
    if in_order and (nameless or _ORDER_WORDS.isdisjoint(_words(name))):
        return f"row number: counts from {low:.0f} to {high:,.0f}"
    if not nameless and not _is_id_name(name):
        return ""
    n_distinct = len(np.unique(values))
    if n_distinct < NEARLY_UNIQUE_NUMBERS * len(values):
        return ""
    return f"identifier: {n_distinct:,} different values in {len(values):,} rows"


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case.

    >>> _words("customerID_2"), _words("Customer Id")
    (['customer', 'id'], ['customer', 'id'])
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", apart)]


def _is_id_name(name: str) -> bool:
    """Tell whether the last word of a name, or all of it, says that it is an identifier.

    >>> [_is_id_name(name) for name in ("customer_id", "userId", "PassengerId", "paid", "idle")]
    [True, True, True, False, False]
    """
    words = _words(name)
    return bool(words) and (words[-1] in _ID_WORDS or bool(_ID_NAMES.fullmatch("".join(words))))


def _is_prose(texts: Sequence[str]) -> bool:
    length = sum(map(len, texts)) / len(texts)
    words = sum(len(text.split()) for text in texts) / len(texts)
    return length >= PROSE_LENGTH and words >= PROSE_WORDS


def _are_numbers(texts: Sequence[str]) -> bool:
    """Tell whether texts are numbers with a fraction; whole numbers may be keys."""
    try:
        found = [float(text) for text in texts]
    except ValueError:
        return False
    return any(value != round(value) for value in found if np.isfinite(value))
