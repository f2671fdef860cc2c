"""Slices: conditions, the regions where a model is most wrong, and saved results."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any

import numpy as np

from varcal._arrays import Bools
from varcal._edge_texts import edge_texts, zone_text
from varcal._export.dialects import DIALECTS, Dialect
from varcal._files.saved import Kind as SavedKind
from varcal._files.schema import built_from, plain, restored
from varcal._input.dates import as_dates, with_dates
from varcal._input.frames import columns_by_name, frame_of
from varcal._input.variables import Kind, Variable
from varcal._options import check_choice, checked
from varcal._text import (
    CONFIDENCE,
    MINUS,
    RISK,
    Shown,
    count,
    interval,
    off_by,
    p_equation,
    percent,
    signed,
)
from varcal._version import __version__
from varcal.exceptions import InputError

#: A rule lists at most this many levels.
MOST_LISTED = 6


@dataclass(frozen=True)
class Condition:
    """Which values of a variable are meant.

    Attributes
    ----------
    variable : str
        The variable.
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

    def to_sql(self, dialect: Dialect) -> str:
        """Write the condition for a database; it is never NULL."""
        name = dialect.identifier(self.variable)
        gone = f"{name} IS NULL"
        if self.kind == "numeric":
            gone += f" OR {dialect.is_nan.format(self._number_sql(dialect, name))}"
        if not self.values:
            return f"({gone})"
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
        if not texts:
            return ""
        told = f"{self.variable} {'>' if self.high is None else '≤'} {texts[0]}"
        if len(texts) == 2:
            told = f"{texts[0]} < {self.variable} ≤ {texts[1]}"
        return told + zone_text(self.zone)

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


@dataclass(frozen=True, repr=False)
class Slice(Shown):
    """A region of the variables in which the model is wrong.

    Attributes
    ----------
    conditions : tuple of Condition
        A row belongs to the slice if it meets all of them.
    claim : str
        What is wrong: "probability" (that of the positive class), "confidence" (in the
        predicted class) or, with more than two classes, "class <label>".
    rows, share, weight : int, float, float
        Rows of the slice, their share of the weight of all rows, and their weight.
    predicted, observed, gap : float
        What the model says on average, how often it happens, and the difference.
    shrunk : float
        The gap without what a search overstates it by: rules are chosen for their gap.
    low, high : float
        Interval of the true gap of these rows, which allows for the search.
    p_adjusted : float
        How likely a slice as clear as this would be found anywhere if there were no gap: the
        adjusted p-value. It is never below 1 / (draws + 1).
    over_parents : float
        What the shorter rules do not explain: the gap minus that of the rows that would join the
        slice if a condition were dropped, for the condition with the smallest such difference.
    """

    conditions: tuple[Condition, ...]
    claim: str
    rows: int
    share: float
    weight: float
    predicted: float
    observed: float
    gap: float
    shrunk: float
    low: float
    high: float
    p_adjusted: float
    over_parents: float

    def _check_saved(self) -> None:
        """Raise ValueError unless the slice has a condition."""
        if not self.conditions:
            raise ValueError("a slice has no conditions")

    @property
    def rule(self) -> str:
        """The conditions in words."""
        texts = [one.text for one in self.conditions]
        several = len(texts) > 1
        return " and ".join(f"({text})" if several and " or " in text else text for text in texts)

    @property
    def depth(self) -> int:
        """The number of conditions."""
        return len(self.conditions)

    @property
    def sentence(self) -> str:
        """What is wrong where, in one sentence."""
        says = "is sure by" if self.claim == CONFIDENCE else "says"
        happens = "it is right in" if self.claim == CONFIDENCE else "it happens in"
        return (
            f"Where {self.rule} ({count(self.rows, 'row')}, {percent(self.share)}), the model "
            f"{says} {percent(self.predicted)} and {happens} {percent(self.observed)}: "
            f"{off_by(self.shrunk, self.claim)}, allowing for the search."
        )

    def _shown(self) -> tuple[str, dict[str, list[Any]], str]:
        return self.sentence, _table((self,)), ""

    def mask(self, X: object) -> Bools:
        """Return which rows belong to the slice.

        Parameters
        ----------
        X : frame, dict of columns or array
            Variables of the same names as in the search.

        Examples
        --------
        >>> condition = Condition("age", "numeric", low=36.0)
        >>> found = Slice((condition,), "class a", 2, 0.5, 2, 0.4, 0.5, -0.1, 0, 0, 0, 0.01, 0)
        >>> found.mask({"age": [30, 40, 50]})
        array([False,  True,  True])
        """
        columns = columns_by_name(X, "X")
        parts: list[Bools] = []
        for condition in self.conditions:
            name = condition.variable
            if name not in columns:
                raise InputError.no_column(name, columns, "X", where="X")
            parts.append(condition.mask(with_dates(Variable.of(columns[name], name, "X"))))
            if len(parts[0]) != len(parts[-1]):
                raise InputError(
                    f"X has columns of {len(parts[0])} and {len(parts[-1])} rows",
                    "give one value per row",
                    argument="X",
                )
        inside: Bools = np.logical_and.reduce(parts)
        return inside

    def to_sql(self, dialect: str = "duckdb") -> str:
        r"""Write the rule as a condition for WHERE.

        Parameters
        ----------
        dialect : {"duckdb", "postgres", "spark", "bigquery", "snowflake"}
            The database.

        Examples
        --------
        >>> condition = Condition("sex", "levels", levels=("Female",))
        >>> found = Slice((condition,), "class a", 2, 0.5, 2, 0.4, 0.5, -0.1, 0, 0, 0, 0.01, 0)
        >>> found.to_sql()
        '(NOT ("sex" IS NULL) AND "sex" IN (\'Female\'))'
        """
        check_choice("dialect", dialect, list(DIALECTS))
        return " AND ".join(one.to_sql(DIALECTS[dialect]) for one in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {"rule": self.rule, "sentence": self.sentence, **plain(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Slice:
        """Return the slice that `to_dict` described."""
        return built_from(data, cls)


@dataclass(frozen=True, repr=False)
class Slices(Shown):
    """The slices where a model is most wrong, the clearest first.

    Attributes
    ----------
    p_value : float
        How likely slices as clear as the clearest one would be if there were no gap anywhere (or
        none beyond `after`).
    slices : tuple of Slice
        Those with an adjusted p-value of at most 1 − level and an interval without 0; possibly
        none.
    n, n_searched, n_dropped, n_variables : int
        Rows behind the figures, rows that were searched, rows dropped because their outcome
        is missing, and variables.
    draws : int
        Simulated sets of outcomes that were searched in the same way.
    max_depth, after, level, random_state
        The settings of the search.
    grouped : bool
        Whether rows belong to groups.
    left_out : tuple of (str, str)
        Columns that were left out, with the reason.
    notes : tuple of str
        What else to know about the search.
    engine : str
        Where the rows were.
    backend : str or None
        The frame library of the data.
    """

    p_value: float
    slices: tuple[Slice, ...]
    n: int
    n_searched: int
    n_dropped: int
    n_variables: int
    draws: int
    max_depth: int
    after: str | None
    level: float
    random_state: int
    grouped: bool = False
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    engine: str = "numpy"
    backend: str | None = None

    def __len__(self) -> int:
        return len(self.slices)

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.slices)

    def __getitem__(self, position: int) -> Slice:
        return self.slices[position]

    @property
    def sentence(self) -> str:
        """The finding in one sentence."""
        found = len(self.slices)
        searched = f"{count(self.n_variables, 'variable')} and {count(self.n, 'row')}"
        if not found and self.p_value <= 1 - self.level:
            tested = p_equation(self.p_value)
            return f"Some slice of {searched} is off ({tested}), but none is certain."
        if not found:
            what = "is clearly off" if self.after is None else "is clearly worse than the average"
            return f"No slice of {searched} {what} ({p_equation(self.p_value)})."
        return f"{count(found, 'slice')} of {searched}. {self.slices[0].sentence}"

    def to_frame(self) -> Any:
        """Return the slices as a frame of the input's library, one row per slice."""
        figures = [each.name for each in fields(Slice) if each.name != "conditions"]
        names = ("rule", *figures, "depth")
        columns = {name: [getattr(one, name) for one in self.slices] for name in names}
        return frame_of(columns, self.backend)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        head = {"format": SLICES.format, "varcal": __version__, "sentence": self.sentence}
        return head | plain(self) | {"slices": [one.to_dict() for one in self.slices]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Slices:
        """Return the slices that `to_dict` described."""

        def build() -> Slices:
            slices = tuple(Slice.from_dict(one) for one in data["slices"])
            return replace(built_from({**data, "slices": []}, cls), slices=slices)

        return restored(build, cls, "saved slices")

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Write the slices as JSON; `varcal.load` reads them."""
        SLICES.write(path, self.to_dict())

    def plot(self, ax: Any = None) -> Any:
        """Draw each slice as a row: what the model says, what happens, and its rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_ranking import draw_slices  # noqa: PLC0415

        return draw_slices(self, ax)

    def _shown(self) -> tuple[str, dict[str, list[Any]], str]:
        notes = "\n".join(self.notes)
        if not self.slices:
            return self.sentence, {}, notes
        head = f"{count(len(self.slices), 'slice')}, {count(self.n, 'row')}, "
        head += f"{count(self.n_variables, 'variable')} ({p_equation(self.p_value)})"
        return head, _table(self.slices), notes


def _table(slices: tuple[Slice, ...]) -> dict[str, list[Any]]:
    """Return the columns of the table that is shown; what it is about only if there are several."""
    named = {one.claim for one in slices} != {RISK}
    return {
        "shrunk": [signed(one.shrunk) for one in slices],
        "interval": [interval(one.low, one.high) for one in slices],
        "rows": [one.rows for one in slices],
        "says": [percent(one.predicted) for one in slices],
        "happens": [percent(one.observed) for one in slices],
        **({"claim": [one.claim for one in slices]} if named else {}),
        "rule": [one.rule for one in slices],
    }


#: Saved slices.
SLICES = SavedKind("slices", "a file of saved slices", 1, Slices.from_dict)
