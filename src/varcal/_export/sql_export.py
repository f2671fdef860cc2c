"""SqlExport: a calibrator as a query, and how it is run and checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import Floats
from varcal._export.dialects import DIALECTS, Dialect
from varcal._export.engines import rows_of
from varcal._export.exported import Checked, Export, compare, heading
from varcal._export.program import Program
from varcal._export.random_rows import RandomRows
from varcal._export.sql_query import QueryWriter
from varcal._files.atomic import write_whole
from varcal._options import check_choice
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator


@dataclass(frozen=True, eq=False, repr=False)
class SqlExport(Export):
    """A fitted calibrator as SQL.

    Attributes
    ----------
    query : str
        The query, which gives the calibrated probabilities of all rows of a table.
    dialect : str
        The database.
    rows : RandomRows
        Rows to check it with.
    """

    query: str
    dialect: str
    _table: str
    _scores: list[str]
    _variables: dict[int, str]

    def _what(self) -> tuple[str, int, str]:
        return f"SQL for {self.dialect}", len(self.query.encode()), "query"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the query to a file, completely or not at all."""
        write_whole(path, f"{self.query};\n")

    def run(self, connection: Any, *, key: str | None = None) -> Floats:
        """Return the calibrated probabilities of the table, in the order of its rows.

        A row whose score is missing or outside [0, 1] gives NaN.

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
        return self._run(connection, f"{self._table} AS t", self._scores, self._variables, key)

    def check(self, connection: Any) -> Checked:
        """Compare random rows, which the query holds, with what `predict_proba` gives for them.

        Raises
        ------
        ExportError
            If a probability differs by more than 1e-8.
        """
        words, schema = DIALECTS[self.dialect], self._program.schema
        p = self.rows.p[:, 1:] if self._program.binary else self.rows.p
        scores = [f"p{k}" for k in range(p.shape[1])]
        variables = {k: f"v{k}" for k in self._variables}
        columns = [
            [*map(str, range(len(p)))],
            *([_literal(words, value, "numeric") for value in column] for column in p.T.tolist()),
            *(
                [_literal(words, value, schema.kinds[k]) for value in self.rows.values(k)]
                for k in variables
            ),
        ]
        rows = ", ".join(f"({', '.join(row)})" for row in zip(*columns, strict=True))
        names = ", ".join(map(words.identifier, ["row", *scores, *variables.values()]))
        table = f"(VALUES {rows}) AS t({names})"
        return compare(self._run(connection, table, scores, variables, "row"), self.rows.expected)

    def _run(
        self,
        connection: Any,
        table: str,
        scores: list[str],
        variables: dict[int, str],
        key: str | None,
    ) -> Floats:
        words = DIALECTS[self.dialect]
        others = {"row": _row_number(words, key)}
        writer = QueryWriter(self._program, words, table, scores, variables, others)
        found = rows_of(connection, words, writer.text(_labels(self._program, "q")))
        found = found[np.argsort(found[:, 0], kind="stable"), 1:]
        if self._program.binary and found.shape[1] == 1:
            return np.column_stack([1.0 - found[:, 0], found[:, 0]])
        return found


def to_sql(
    calibrator: Calibrator,
    dialect: str,
    *,
    table: str | Sequence[str] = "scores",
    p: str | Sequence[str] | None = None,
    X: Mapping[str, str] | None = None,
    keep: str | Sequence[str] = (),
    column: str = "p_calibrated",
) -> SqlExport:
    """Export a calibrator as SQL; see `Calibrator.to_sql`."""
    check_choice("dialect", dialect, list(DIALECTS))
    program, words = Program.of(calibrator), DIALECTS[dialect]
    parts = table.split(".") if isinstance(table, str) else list(table)
    if not parts:
        raise InputError("table has no name", "give the parts of its name", argument="table")
    quoted = ".".join(map(words.identifier, parts))
    scores, variables = _score_columns(program, p), _variable_columns(program, X)
    kept, labels = _listed(keep), _labels(program, column)
    for names, wrong, argument in (
        (kept, "keep names the column {!r} twice", "keep"),
        ([*kept, *labels], "the result would have two columns {!r}", "column"),
        (scores, "p names the column {!r} twice", "p"),
    ):
        twice = [name for k, name in enumerate(names) if name in names[:k]]
        if twice:
            raise InputError(
                wrong.format(twice[0]), "give each column its own name", argument=argument
            )
    others = {name: f"t.{words.identifier(name)}" for name in kept}
    writer = QueryWriter(
        program,
        words,
        f"{quoted} AS t",
        scores,
        variables,
        others or {"row_number": _row_number(words, None)},
    )
    comments = "\n".join(f"-- {_harmless(line)}" for line in _comments(program, words, kept))
    query = f"{comments}\n{writer.text(labels)}"
    if len(query) > words.most_characters:
        raise InputError(
            f"the query has {len(query):,} characters, and {words.title} reads at most "
            f"{words.most_characters:,.0f}",
            "export it by to_onnx or to_python",
            argument="dialect",
        )
    return SqlExport(RandomRows.of(program), program, query, dialect, quoted, scores, variables)


def _comments(program: Program, dialect: Dialect, kept: list[str]) -> list[str]:
    what = f"class {program.classes[1]}" if program.binary else "each class"
    given = "the columns to keep" if kept else "the row number"
    found = [*heading(program), f"Gives {given} and the probability of {what}."]
    if dialect.name == "postgres":
        found.append(
            "SET jit = off before it: compiling a long query takes longer than running it."
        )
    return found


def _row_number(dialect: Dialect, key: str | None) -> str:
    if key is None:
        return dialect.row_number
    return f"ROW_NUMBER() OVER (ORDER BY t.{dialect.identifier(key)})"


def _literal(dialect: Dialect, value: Any, kind: str) -> str:
    """Write a value of a random row."""
    if value is None:
        return "NULL"
    if kind == "levels":
        return dialect.truth_value(value) if isinstance(value, bool) else dialect.text(str(value))
    if kind == "datetime":
        instant = np.datetime64(round(value * 1e6), "us")
        return f"TIMESTAMP '{str(instant).replace('T', ' ')}{'Z' * (dialect.name == 'spark')}'"
    if math.isfinite(value):
        return dialect.cut(value)
    name = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return f"CAST('{name}' AS {dialect.double})"


def _labels(program: Program, column: str) -> list[str]:
    """Return the names of the results."""
    if program.binary and program.fitted._normalized:
        return [column]
    return [f"{column}_{label}" for label in program.classes]


def _listed(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _score_columns(program: Program, p: str | Sequence[str] | None) -> list[str]:
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
    return names


def _variable_columns(program: Program, X: Mapping[str, str] | None) -> dict[int, str]:
    renamed = dict(X or {})
    for name in renamed:
        if name not in program.schema.names:
            raise InputError.no_column(name, program.schema.names, "X")
    names = program.schema.names
    return {k: renamed.get(names[k], names[k]) for k in program.used}


def _harmless(text: str) -> str:
    """Return a text for a comment, without what could end it."""
    return re.sub(r"[^\w .,:;()+=<>%\[\]/'-]", "?", text)
