"""Condition: a range or a set of levels of one variable, in words, in SQL and on rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import Bools
from varcal._edge_texts import edge_texts, zone_text
from varcal._export.dialects import Dialect
from varcal._input.dates import as_dates
from varcal._input.variables import Kind, Variable
from varcal._text import MINUS
from varcal.exceptions import InputError

#: The name of the model's own probability among the variables of a rule.
SCORE = "score"
#: A rule lists at most this many levels.
MOST_LISTED = 6


@dataclass(frozen=True)
class Condition:
    """Which values of a variable are meant.

    Attributes
    ----------
    variable : str
        The variable; "score" for the probability that the claim is about (see `is_score`).
    kind : {"numeric", "datetime", "duration", "levels"}
        The kind of the variable.
    low, high : float or None
        For ranges: values above `low` and up to `high`; None where there is no such end. Instants
        are seconds since 1970 in UTC, durations are seconds.
    levels : tuple
        For levels: those that are meant, or with `negated` all others.
    negated : bool
        Whether `levels` are those that are not meant.
    missing : bool
        Whether a missing value is meant as well.
    values : bool
        Whether any value that is not missing is meant; if not, only missing ones are.
    is_score : bool
        Whether the variable is the model's own probability.
    zone, date_format : str
        The time zone of instants, and how they were written if they were read from text.
    """

    variable: str
    kind: Kind
    low: float | None = None
    high: float | None = None
    levels: tuple[Hashable, ...] = ()
    negated: bool = False
    missing: bool = False
    values: bool = True
    is_score: bool = False
    zone: str = ""
    date_format: str = ""

    @property
    def text(self) -> str:
        """The condition in words.

        >>> Condition("age", "numeric", low=36.0, high=60.0).text
        '36 < age ≤ 60'
        >>> Condition("sex", "levels", levels=("Female",), missing=True).text
        'sex = Female or missing'
        """
        if not self.values:
            return f"{self.variable} is missing"
        told = self._levels_text() if self.kind == "levels" else self._range_text()
        if not told:
            return f"{self.variable} is known"
        return f"{told} or missing" if self.missing else told

    def mask(self, variable: Variable) -> Bools:
        """Return which rows of a variable are meant.

        >>> ages = Variable.of([30, 40, None, 70], "age")
        >>> Condition("age", "numeric", low=36.0, missing=True).mask(ages)
        array([False,  True,  True,  True])
        """
        variable = self._of_same_kind(variable)
        gone = variable.missing()
        if not self.values:
            return gone
        if self.kind == "levels":
            meant = dict.fromkeys(self.levels, True)
            chosen = [(level in meant) != self.negated for level in variable.levels]
            inside = np.array([*chosen, False], dtype=bool)[variable.values]
        else:
            inside = ~gone
            if self.low is not None:
                inside &= variable.values > self.low
            if self.high is not None:
                inside &= variable.values <= self.high
        found: Bools = inside | gone if self.missing else inside & ~gone
        return found

    def to_sql(self, dialect: Dialect, column: str | None = None) -> str:
        """Write the condition for a database; it is never NULL."""
        name = dialect.identifier(column or self.variable)
        if not self.values:
            return f"({self._missing_sql(dialect, name)})"
        gone = self._missing_sql(dialect, name)
        if self.kind == "levels":
            listed = ", ".join(_literal(dialect, self.variable, level) for level in self.levels)
            inside = f"{name} {'NOT IN' if self.negated else 'IN'} ({listed})" if listed else ""
        else:
            number = self._number_sql(dialect, name)
            ends = [] if self.low is None else [f"{number} > {dialect.cut(self.low)}"]
            ends += [] if self.high is None else [f"{number} <= {dialect.cut(self.high)}"]
            inside = " AND ".join(ends)
        if self.missing:
            return f"({gone} OR ({inside}))" if inside else "(1 = 1)"
        return f"(NOT ({gone}) AND {inside})" if inside else f"(NOT ({gone}))"

    def _number_sql(self, dialect: Dialect, name: str) -> str:
        if self.kind == "numeric":
            return f"CAST({name} AS {dialect.double})"
        if self.kind == "duration" and dialect.name not in ("duckdb", "postgres"):
            raise InputError(
                f"{self.variable!r} is a duration, which {dialect.title} cannot turn into seconds",
                "use a column of seconds",
            )
        return dialect.seconds.format(name)

    def _missing_sql(self, dialect: Dialect, name: str) -> str:
        if self.kind != "numeric":
            return f"{name} IS NULL"
        return f"{name} IS NULL OR {dialect.is_nan.format(self._number_sql(dialect, name))}"

    def _of_same_kind(self, variable: Variable) -> Variable:
        """Read text as dates where the rule has dates, and refuse another kind."""
        if variable.kind == self.kind:
            return variable
        if variable.kind == "levels" and not variable.levels:  # every value is missing
            return replace(variable, kind=self.kind, values=np.full(len(variable), np.nan))
        if self.date_format and variable.kind == "levels":
            dated = as_dates(variable, self.date_format)
            if dated is not None:
                return dated
        if self.kind == "levels" and variable.kind == "numeric":
            values = variable.values
            known = ~variable.missing()
            distinct, codes = np.unique(values[known], return_inverse=True)
            places = np.full(len(values), -1, dtype=np.intp)
            places[known] = codes
            return replace(variable, kind="levels", values=places, levels=tuple(distinct.tolist()))
        raise InputError(
            f"X {self.variable!r} holds {_KINDS[variable.kind]}, and the rule is about "
            f"{_KINDS[self.kind]}",
            "give the column as it was in the search",
            argument="X",
        )

    def _range_text(self) -> str:
        ends = [end for end in (self.low, self.high) if end is not None]
        dated = self.kind == "datetime"
        texts = edge_texts(ends, datetime=dated, duration=self.kind == "duration", zone=self.zone)
        texts = [text.replace("-", MINUS) if not dated else text for text in texts]
        told = ""
        if len(texts) == 2:
            told = f"{texts[0]} < {self.variable} ≤ {texts[1]}"
        elif self.low is not None:
            told = f"{self.variable} > {texts[0]}"
        elif self.high is not None:
            told = f"{self.variable} ≤ {texts[0]}"
        return told + zone_text(self.zone) if told else ""

    def _levels_text(self) -> str:
        names = [str(level) for level in self.levels]
        if not names:
            return ""
        if len(names) == 1:
            return f"{self.variable} {'≠' if self.negated else '='} {names[0]}"
        shown = ", ".join(names[:MOST_LISTED])
        if len(names) > MOST_LISTED:
            shown += f" and {len(names) - MOST_LISTED} more"
        return f"{self.variable} {'not in' if self.negated else 'in'} {{{shown}}}"


#: Kinds in messages.
_KINDS = {"numeric": "numbers", "datetime": "dates", "duration": "durations", "levels": "levels"}


def _literal(dialect: Dialect, variable: str, level: Hashable) -> str:
    if isinstance(level, bool):
        return dialect.truth_value(level)
    if isinstance(level, str):
        return dialect.text(level)
    if isinstance(level, int | float):
        return dialect.cut(float(level))
    raise InputError(
        f"{variable!r} has the level {level!r}, which is neither text, a truth value nor a number",
        "convert the column to text before the search",
    )
