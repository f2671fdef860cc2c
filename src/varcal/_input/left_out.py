"""Columns that an audit leaves out unless they are asked for: identifiers, constants, free text.

Such a column says nothing about calibration, but each one that is tested makes the adjustment for
the number of variables stricter for all others. A column is left out only where that is certain:
numbers with a fraction and dates never are.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._input.dates import formats_of
from varcal._input.frames import is_frame
from varcal._input.predictions import ALL
from varcal._input.variables import Kind, Variable, as_series
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


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """What must be known about a column to judge whether it is left out.

    Attributes
    ----------
    kind : {"numeric", "datetime", "duration", "levels"}
        The kind of the column.
    n, n_missing : int
        Rows with a value, and rows without.
    values : ndarray
        Numbers: those of all rows or of a sample, in the order of the rows, without missing ones.
    ends : tuple of float
        Numbers: the smallest and the largest of all rows.
    n_levels : int
        The number of distinct levels; where there were too many to count, a lower bound.
    largest : int
        Rows of the most frequent level.
    levels : sequence
        Some of the levels.
    pruned : bool
        Whether there are more levels than were counted.
    """

    kind: Kind
    n: int
    n_missing: int
    values: AnyArray = field(default_factory=lambda: np.zeros(0))
    ends: tuple[float, float] = (0.0, 0.0)
    n_levels: int = 0
    largest: int = 0
    levels: Sequence[Hashable] = ()
    pruned: bool = False

    @classmethod
    def of(cls, variable: Variable) -> ColumnFacts:
        """Return the facts of a column in memory."""
        values = variable.values[~variable.missing()]
        n_missing = len(variable) - len(values)
        if variable.kind != "levels":
            # Python's own numbers: as floats, neighbouring integers above 2**53 would be equal.
            ends = (values.min().item(), values.max().item()) if len(values) else (0.0, 0.0)
            return cls(variable.kind, len(values), n_missing, values, ends)
        counts = np.bincount(values, minlength=1)
        held = np.flatnonzero(counts)
        return cls(
            variable.kind,
            len(values),
            n_missing,
            n_levels=len(held),
            largest=int(counts.max()),
            levels=[variable.levels[k] for k in held[:_LOOKED_AT]],
        )


def reason_to_leave_out(name: str, facts: ColumnFacts, rare: float = 0.01) -> str:
    """Return why an audit leaves a column out, or "" if it does not.

    Parameters
    ----------
    name : str
        The name of the column.
    facts : ColumnFacts
        What is known about it.
    rare : float
        Levels with less than this share of the rows have no bin of their own.

    Examples
    --------
    >>> texts = Variable.of([f"user-{k}" for k in range(1000)], "name")
    >>> reason_to_leave_out("name", ColumnFacts.of(texts))
    'identifier: 1,000 different values in 1,000 rows'
    >>> income = Variable.of(np.linspace(900.5, 7000, 1000), "income")
    >>> reason_to_leave_out("income", ColumnFacts.of(income))
    ''
    """
    if not facts.n:
        return "every value is missing"
    if facts.kind == "levels":
        return _of_levels(name, facts, rare)
    if not facts.n_missing and facts.ends[0] == facts.ends[1]:
        return "constant: the same value at every row"
    if facts.kind != "numeric" or facts.n < LEAST_ROWS:
        return ""
    return _of_numbers(name, facts)


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


def _of_levels(name: str, facts: ColumnFacts, rare: float) -> str:
    n = facts.n
    if facts.n_levels == 1 and not facts.n_missing:
        return "constant: the same value at every row"
    telling = facts.n_missing >= TELLING_MISSING * (n + facts.n_missing)
    is_id = _is_id_name(name) or _NAMELESS.fullmatch(name.strip())
    if n < LEAST_ROWS or (telling and not is_id):
        return ""
    many = "more than " if facts.pruned else ""
    differing = f"{many}{facts.n_levels:,} different values in {n:,} rows"
    share = facts.n_levels / n
    looked_at = facts.levels[:_LOOKED_AT]
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
    if facts.largest < rare * (n + facts.n_missing):
        return f"too many values: {differing}, none of them in {100 * rare:.2g} % of the rows"
    if share >= MANY_VALUES and facts.largest < LEAST_ROWS:
        return f"too many values: {differing}, none of them in {LEAST_ROWS} rows"
    return ""


def _of_numbers(name: str, facts: ColumnFacts) -> str:
    low, high = facts.ends
    if facts.values.dtype.kind == "f" and (facts.values != np.rint(facts.values)).any():
        return ""
    nameless = _NAMELESS.fullmatch(name.strip()) is not None
    starts_at_row = low in (0, 1) and high - low + 1 == facts.n
    rising = facts.values[1:] > facts.values[:-1]
    falling = facts.values[1:] < facts.values[:-1]
    in_order = starts_at_row and (rising.all() or falling.all())
    if in_order and (nameless or _ORDER_WORDS.isdisjoint(_words(name))):
        return f"row number: counts from {low:.0f} to {high:,.0f}"
    if not nameless and not _is_id_name(name):
        return ""
    n_distinct = len(np.unique(facts.values))
    if n_distinct < NEARLY_UNIQUE_NUMBERS * len(facts.values):
        return ""
    if len(facts.values) < facts.n:
        return "identifier: nearly every row holds a value of its own"
    return f"identifier: {n_distinct:,} different values in {facts.n:,} rows"


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
