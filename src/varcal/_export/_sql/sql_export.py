"""SqlExport: a calibrator as a query, with its look-up tables and a check in the database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._export._sql._query.expressions import complete
from varcal._export._sql._query.query import Column, Query
from varcal._export._sql._query.write_query import write_query
from varcal._export._sql.dialects import DIALECTS, Dialect
from varcal._export._sql.engines import Engine, create_table, engine_of
from varcal._export.exported import Checked, Difference, Export, compare, heading
from varcal._export.program import Program
from varcal._export.random_rows import RandomRows
from varcal._files.atomic import write_whole
from varcal._input.frames import frame_of
from varcal._options import check_choice
from varcal._text.numbers import count
from varcal.calibrators._interface.rows import score_rows
from varcal.calibrators._neutral.steps import sorted_steps
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator


#: Digits of the numbers of an approximation, and how far rounding them may change a result.
APPROXIMATE_DIGITS, ROUNDED = 9, 1e-6
#: Random rows on which an approximation is measured if no rows are given.
MEASURED_ROWS = 10_000

#: Leaves of trees at most: each takes about 40 characters, and BigQuery and Snowflake read queries
#: of one million.
MOST_LEAVES = 16_000


@dataclass(frozen=True, eq=False, repr=False)
class SqlExport(Export):
    """A fitted calibrator as SQL.

    Attributes
    ----------
    query : str
        The query, which gives the calibrated probabilities of all rows of a table.
    columns : dict of str to dict
        The columns of each look-up table that it needs.
    dialect : str
        The database.
    difference : Difference or None
        How far it is from `predict_proba`, with `exact=False`.
    rows : RandomRows
        Rows to check it with.
    """

    query: str
    columns: dict[str, dict[str, AnyArray]]
    dialect: str
    difference: Difference | None
    _options: dict[str, Any]

    def _what(self) -> tuple[str, int, str]:
        tables = f" with {count(len(self.columns), 'look-up table')}" if self.columns else ""
        return f"SQL for {self.dialect}{tables}", len(self.script.encode()), "script"

    @property
    def script(self) -> str:
        """The statements that create the look-up tables, and the query."""
        return "\n".join([*self.statements(), f"{self.query};", ""])

    def statements(self) -> list[str]:
        """Return the statements that create and fill the look-up tables."""
        dialect = DIALECTS[self.dialect]
        return [
            f"{text};"
            for name, columns in self.columns.items()
            for text in create_table(dialect, dialect.identifier(name), columns)
        ]

    def tables(self, backend: str | None = None) -> dict[str, Any]:
        """Return the look-up tables as frames of the given library, by default pandas."""
        return {name: frame_of(columns, backend) for name, columns in self.columns.items()}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the script to a file, completely or not at all."""
        write_whole(path, self.script)

    def run(self, connection: Any, *, key: str | None = None) -> Floats:
        """Return the calibrated probabilities of the table, in the order of its rows.

        Look-up tables are created as temporary ones and removed afterwards. A row whose score is
        missing or outside [0, 1] gives NaN.

        Parameters
        ----------
        connection : DuckDB connection, Spark session, or a connection of PostgreSQL
            An open connection, such as that of psycopg.
        key : str, optional
            A column by which rows are ordered. Without it their order is that of a SELECT, which
            in PostgreSQL need not be that in which they were inserted.

        Returns
        -------
        ndarray of shape (n, K)
        """
        engine = engine_of(connection, self.dialect)
        with engine.temporary_tables(self.columns):
            return self._run(engine, self._options, key)

    def check(self, connection: Any) -> Checked:
        """Compare random rows, in a temporary table, with what `predict_proba` gives for them.

        Raises
        ------
        ExportError
            If a probability differs by more than 1e-8. With `exact=False` the result is compared
            with the approximation itself.
        """
        engine = engine_of(connection, self.dialect)
        name = f"{self._options['prefix']}_random_rows"
        table = DIALECTS[self.dialect].identifier(name)
        options = _apart(self._options) | {"table": table}
        columns = self._random_rows_columns(options)
        key = next(each for each in ("row", "row_", "row__") if each not in columns)
        columns[key] = np.arange(len(self.rows.p))
        with engine.temporary_tables({**self.columns, name: columns}):
            found = self._run(engine, options, key)
        if self.difference is None:
            return compare(found, self.rows.expected)
        steps = self._program.evaluate(self.rows.p, self.rows.variables)
        checked = compare(found, steps, allowed=ROUNDED)
        return replace(checked, wanted="the approximation, whose error is in the comment")

    @property
    def _words(self) -> Dialect:
        return _words(self.dialect, exact=self._program.exact)

    def _run(self, engine: Engine, options: dict[str, Any], key: str | None) -> Floats:
        number = DIALECTS[self.dialect].number_of_row(key)
        options = options | {"others": [], "row_number": number}
        query, _ = _query_text(self._program, self._words, options)
        found = engine.rows(query)
        found = found[np.argsort(found[:, 0], kind="stable"), 1:]
        if self._program.binary and found.shape[1] == 1:
            return np.column_stack([1.0 - found[:, 0], found[:, 0]])
        return found

    def _random_rows_columns(self, options: dict[str, Any]) -> dict[str, AnyArray]:
        columns: dict[str, AnyArray] = {}
        for k, column in enumerate(options["scores"]):
            columns[column.name] = self.rows.p[:, 1 if self._program.binary else k]
        for k, column in options["variables"].items():
            kind = self._program.schema.kinds[k]
            values = self.rows.values(k)
            if kind == "levels":
                columns[column.name] = np.array(values, dtype=object)
            elif kind == "datetime":
                seconds = np.array([np.nan if v is None else v for v in values])
                micros = np.where(np.isnan(seconds), np.iinfo(np.int64).min, seconds * 1e6)
                columns[column.name] = micros.astype("int64").view("datetime64[us]")
            else:
                columns[column.name] = np.array([np.nan if v is None else v for v in values])
        return columns


def _check_size(program: Program) -> None:
    """Refuse trees that would make a query too long."""
    leaves = sum(
        step.data.value.size for step in sorted_steps(program.outputs) if step.op == "trees"
    )
    if leaves > MOST_LEAVES:
        raise InputError(
            f"the second stage has trees with {leaves:,} leaves; a query with more than "
            f"{MOST_LEAVES:,} is too long for some databases",
            "fit with trees=False, or export it by to_onnx or to_python",
        )


def to_sql(
    calibrator: Calibrator,
    dialect: str,
    *,
    table: str | Sequence[str] = "scores",
    p: str | Sequence[str] | None = None,
    X: Mapping[str, str] | None = None,
    keep: str | Sequence[str] = (),
    column: str = "p_calibrated",
    prefix: str = "calibrator",
    exact: bool = True,
    rows: tuple[object, object] | None = None,
) -> SqlExport:
    """Export a calibrator as SQL; see `Calibrator.to_sql`."""
    check_choice("dialect", dialect, list(DIALECTS))
    if exact and rows is not None:
        raise InputError(
            "rows are for measuring an approximation, and an exact query is none",
            "leave out rows=, or use exact=False",
            argument="rows",
        )
    program = Program.of(calibrator, exact=exact)
    _check_size(program)
    random_rows = RandomRows.of(program)
    difference = None if exact else _difference(program, rows)
    words = _words(dialect, exact=exact)
    parts = table.split(".") if isinstance(table, str) else list(table)
    if not parts:
        raise InputError("table has no name", "give the parts of its name", argument="table")
    options: dict[str, Any] = {
        "table": ".".join(words.identifier(part) for part in parts),
        "scores": _score_columns(program, p),
        "variables": _variable_columns(program, X),
        "others": [Column(name, f"keep_{k + 1}") for k, name in enumerate(_listed(keep))],
        "row_number": "" if keep else words.number_of_row(None),
        "prefix": prefix,
        "column": column,
        "with_tables": exact,
    }
    words.identifier(prefix)
    _check_names(program, options)
    text, query = _query_text(program, words, options)
    comments = [*heading(program), *_how(program, options)]
    if difference is not None:
        comments += [f"An approximation without tables: {difference}."]
    if dialect == "postgres":
        comments += [
            "SET jit = off before it: compiling a long query takes far longer than running it."
        ]
    if query.tables:
        comments += [
            f"It reads look-up tables ({len(query.tables)}), whose names begin with "
            f"{_harmless(prefix)}."
        ]
    shown = "\n".join([*(f"-- {_harmless(line)}" for line in comments), text])
    return SqlExport(random_rows, program, shown, query.tables, dialect, difference, options)


def _check_names(program: Program, options: dict[str, Any]) -> None:
    """Refuse columns of scores, or of the result, that have the same name."""
    kept = [column.name for column in options["others"]]
    n = 1 if program.binary else len(program.outputs)
    given = [*kept, *_labels(program, options["column"], n)]
    read = [column.name for column in options["scores"]]
    for names, wrong, argument in (
        (kept, "keep names the column {!r} twice", "keep"),
        (given, "the result would have two columns {!r}", "column"),
        (read, "p names the column {!r} twice", "p"),
    ):
        twice = [name for k, name in enumerate(names) if name in names[:k]]
        if twice:
            raise InputError(
                wrong.format(twice[0]), "give each column its own name", argument=argument
            )


def _apart(options: dict[str, Any]) -> dict[str, Any]:
    """Let scores and variables be read from different columns, even if a table has but one."""
    taken: set[str] = set()

    def renamed(column: Column) -> Column:
        name = column.name
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        return replace(column, name=name)

    scores = [renamed(column) for column in options["scores"]]
    variables = {k: renamed(column) for k, column in options["variables"].items()}
    return options | {"scores": scores, "variables": variables}


def _words(dialect: str, *, exact: bool) -> Dialect:
    found = DIALECTS[dialect]
    return found if exact else replace(found, digits=APPROXIMATE_DIGITS)


def _how(program: Program, options: dict[str, Any]) -> list[str]:
    given = "the row number" if options["row_number"] else "the columns to keep"
    if program.binary:
        return [f"Gives {given} and the probability of class {program.classes[1]}."]
    return [f"Gives {given} and the probability of each class."]


def _query_text(program: Program, dialect: Dialect, options: dict[str, Any]) -> tuple[str, Query]:
    names = {"table", "scores", "variables", "others", "row_number", "prefix", "with_tables"}
    query = write_query(program, dialect, **{name: options[name] for name in names})
    selected = ["r.row_number"] if options["row_number"] else []
    selected += [f"r.{c.inside} AS {dialect.identifier(c.name)}" for c in options["others"]]
    labels = _labels(program, options["column"], len(query.outputs))
    selected += [
        f"{text} AS {dialect.identifier(name)}"
        for text, name in zip(query.outputs, labels, strict=True)
    ]
    body = ",\0  ".join(selected)
    layers = ",\0".join(query.layers)
    return complete(f"WITH\0{layers}\0SELECT\0  {body}\0FROM {query.last} AS r"), query


def _labels(program: Program, column: str, n: int) -> list[str]:
    if n == 1:
        return [column]
    return [f"{column}_{label}" for label in program.classes]


def _listed(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _score_columns(program: Program, p: str | Sequence[str] | None) -> list[Column]:
    n = 1 if program.binary else len(program.outputs)
    names = _listed(p) if p is not None else list(program.fitted.score_names_)
    if p is None and program.binary:
        names = names[-1:]
    if p is None and len(names) != n:
        names = ["p"] if n == 1 else [f"p_{label}" for label in program.classes]
    if len(names) != n:
        raise InputError(
            f"p names {len(names)} columns, but the calibrator needs {n}",
            "name the column of the second class"
            if n == 1
            else "name one column per class, in the order of the classes",
            argument="p",
        )
    inside = ["p"] if n == 1 else [f"p_{k + 1}" for k in range(n)]
    return [Column(*pair) for pair in zip(names, inside, strict=True)]


def _variable_columns(program: Program, X: Mapping[str, str] | None) -> dict[int, Column]:
    renamed = dict(X or {})
    for name in renamed:
        if name not in program.schema.names:
            raise InputError.no_column(name, program.schema.names, "X")
    found: dict[int, Column] = {}
    taken: set[str] = set()
    for k in program.used:
        name = program.schema.names[k]
        slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "variable"
        inside, j = f"v_{slug}", 2
        while inside in taken:
            inside, j = f"v_{slug}_{j}", j + 1
        taken.add(inside)
        found[k] = Column(renamed.get(name, name), inside)
    return found


def _difference(program: Program, rows: tuple[object, object] | None) -> Difference:
    """Measure how far an approximation is from `predict_proba`."""
    if rows is None:
        random_rows = RandomRows.of(program, MEASURED_ROWS, plausible=True)
        found = program.evaluate(random_rows.p, random_rows.variables)
        return Difference.of(found, random_rows.expected, random_rows=True)
    given = score_rows(rows[0], rows[1], len(program.outputs))
    variables = program.matched(given.variables)
    p = given.columns()
    wanted = program.expected(p, variables)
    return Difference.of(program.evaluate(p, variables), wanted, random_rows=False)


def _harmless(text: str) -> str:
    """Return a text for a comment, without what could end it."""
    return re.sub(r"[^\w .,:;()+=<>%\[\]/'-]", "?", text)
