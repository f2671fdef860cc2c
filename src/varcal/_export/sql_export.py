"""SqlExport: a calibrator as a query, and how it is written, run and checked.

A query is a chain of common table expressions that add columns to one another; `tables` has the
knots and heights of the calibrator as arrays. Expressions are text, as all databases read them
alike; sqlglot writes the clauses around them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varcal._arrays import Floats
from varcal._export.dialects import DIALECTS, Dialect
from varcal._export.exported import Checked, Export, RandomRows, compare, heading
from varcal._export.program import Program
from varcal._export.scalars import ARITHMETIC, Scalars, Tree
from varcal._files.atomic import write_whole
from varcal._options import check_choice
from varcal.calibrators.schema import Column
from varcal.calibrators.steps import Step, sorted_steps
from varcal.exceptions import InputError, import_library

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator

#: The exponents beyond which results are 0 or infinite for all purposes, and PostgreSQL refuses to
#: compute them.
LARGEST_EXPONENT = 600.0
#: A fraction of the shortest distance of knots, below which PostgreSQL could refuse to divide.
NOTHING = 1e-15
#: Branches of a CASE before its cuts are nested, and nested operations before they get a column.
BRANCHES, DEEPEST = 8, 12
#: The unit of the leaves of trees, and the digits of heights: a thousand of either are off by less
#: than 1e-9.
LEAF_UNIT, DIGITS = 1e-12, 13

#: The way of writing dates that databases read.
ISO = "year-month-day"

_TEMPLATES = ARITHMETIC | {
    "minimum": "LEAST({}, {})", "maximum": "GREATEST({}, {})", "equal": "({} = {})",
    "log": "LN({})", "sqrt": "SQRT({})", "abs": "ABS({})", "floor": "FLOOR({})",
    "missing": "({} IS NULL)",
    "where": "CASE WHEN {} THEN {} ELSE {} END",
}  # fmt: skip
#: Operations that name an argument more than once.
_REPEATING = {"find", "top", "choose", "tree", "fraction", "between"}


@dataclass(frozen=True)
class Source:
    """What a query reads.

    Attributes
    ----------
    table : str
        The table, quoted; its alias is ``t``.
    scores : list of str
        The columns of scores.
    variables : dict of int to str
        The columns of the variables that are used.
    others : dict of str to str
        Further columns of the result, with what they are: columns of ``t``.
    """

    table: str
    scores: list[str]
    variables: dict[int, str]
    others: dict[str, str]


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
    _source: Source

    @property
    def _size(self) -> int:
        return len(self.query.encode())

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
        return self._run(connection, self._source, key)

    def check(self, connection: Any) -> Checked:
        """Compare random rows, which the query holds, with what `predict_proba` gives for them.

        Raises
        ------
        ExportError
            If a probability differs by more than 1e-8.
        """
        words, schema = DIALECTS[self.dialect], self._program.schema
        p = self.rows.p[:, 1:] if self._program.binary else self.rows.p
        variables = {k: f"v{k}" for k in self._source.variables}
        columns = {
            "row": [*map(str, range(len(p)))],
            **{
                f"p{k}": [_literal(words, value) for value in column]
                for k, column in enumerate(p.T.tolist())
            },
            **{
                name: [_literal(words, value, schema.variables[k]) for value in self.rows.values(k)]
                for k, name in variables.items()
            },
        }
        rows = ", ".join(f"({', '.join(row)})" for row in zip(*columns.values(), strict=True))
        table = f"(VALUES {rows}) AS t({', '.join(map(words.identifier, columns))})"
        source = Source(table, [f"p{k}" for k in range(p.shape[1])], variables, {})
        return compare(self._run(connection, source, "row"), self.rows.expected)

    def _run(self, connection: Any, source: Source, key: str | None) -> Floats:
        words, program = DIALECTS[self.dialect], self._program
        number = f"ROW_NUMBER() OVER (ORDER BY t.{words.identifier(key)})" if key else ""
        source = replace(source, others={"row": number or words.row_number})
        query = _Query(program, words, source).text(_labels(program, "q"))
        if self.dialect not in _RUN:
            raise InputError(f"varcal cannot run queries in {words.title}", "run .query there")
        found = _RUN[self.dialect](connection, query)
        found = found[np.argsort(found[:, 0], kind="stable"), 1:]
        if program.binary and found.shape[1] == 1:
            return np.column_stack([1.0 - found[:, 0], found[:, 0]])
        return found


def to_sql(calibrator: Calibrator, dialect: str, options: Mapping[str, Any]) -> SqlExport:
    """Export a calibrator as SQL; `Calibrator.to_sql` has the options."""
    check_choice("dialect", dialect, list(DIALECTS))
    program, words = Program.of(calibrator), DIALECTS[dialect]
    table, keep = options["table"], options["keep"]
    parts = table.split(".") if isinstance(table, str) else list(table)
    if not parts:
        raise InputError("table has no name", "give the parts of its name", argument="table")
    scores, variables = _score_columns(program, options["p"]), _variables(program, options["X"])
    kept, labels = _listed(keep), _labels(program, options["column"])
    for names, wrong, argument in (
        (kept, "keep names the column {!r} twice", "keep"),
        ([*kept, *labels], "the result would have two columns {!r}", "column"),
        (scores, "p names the column {!r} twice", "p"),
    ):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise InputError(
                wrong.format(twice[0]), "give each column its own name", argument=argument
            )
    others = {name: f"t.{words.identifier(name)}" for name in kept}
    source = Source(
        f"{'.'.join(map(words.identifier, parts))} AS t",
        scores,
        variables,
        others or {"row_number": words.row_number},
    )
    comments = "".join(f"-- {_harmless(line)}\n" for line in _comments(program, words, kept))
    query = comments + _Query(program, words, source).text(labels)
    if len(query) > words.most_characters:
        raise InputError(
            f"the query has {len(query):,} characters, and {words.title} reads at most "
            f"{words.most_characters:,.0f}",
            "export it by to_onnx or to_python",
            argument="dialect",
        )
    return SqlExport(RandomRows.of(program), program, query, dialect, source)


def _comments(program: Program, dialect: Dialect, kept: list[str]) -> list[str]:
    what = f"class {program.classes[1]}" if program.binary else "each class"
    given = "the columns to keep" if kept else "the row number"
    found = [*heading(program), f"Gives {given} and the probability of {what}."]
    if dialect.name == "postgres":
        found.append(
            "SET jit = off before it: compiling a long query takes longer than running it."
        )
    return found


def _harmless(text: str) -> str:
    """Return a text for a comment, without what could end it."""
    return re.sub(r"[^\w .,:;()+=<>%\[\]/'-]", "?", text)


def _literal(dialect: Dialect, value: Any, column: Column | None = None) -> str:
    """Write a value of a random row."""
    kind = column and column.kind
    if value is None:
        return "NULL"
    if kind == "levels":
        return dialect.truth_value(value) if isinstance(value, bool) else dialect.text(str(value))
    if kind == "datetime":
        instant = str(np.datetime64(round(value * 1e6), "us")).replace("T", " ")
        if column and column.date_format:
            return dialect.text(instant + "+00:00" * column.zoned)
        return f"TIMESTAMP '{instant}{'Z' * (dialect.name == 'spark')}'"
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


def _variables(program: Program, X: Mapping[str, str] | None) -> dict[int, str]:
    renamed, names = dict(X or {}), program.schema.columns
    for name in renamed:
        if name not in names:
            raise InputError.no_column(name, names, "X")
    return {k: renamed.get(names[k], names[k]) for k in program.used}


class _Value(NamedTuple):
    """An expression, the first layer that can compute it, how deep it is, and what it reads."""

    sql: str
    layer: int = 0
    depth: int = 0
    reads: frozenset[str] = frozenset()


class _Query:
    """Writes the query of a program: layers of columns, each of which reads the one before."""

    def __init__(self, program: Program, dialect: Dialect, source: Source) -> None:
        self.program, self.dialect, self.source = program, dialect, source
        self._layers: list[dict[str, _Value]] = []
        self._arrays: dict[bytes, tuple[str, Floats]] = {}
        self._values: dict[int, _Value] = {}
        self._uses: Counter[int] = Counter()

    def text(self, labels: list[str]) -> str:
        """Return the query, whose results have the given names."""
        outputs = self.program.outputs
        if self.program.binary and self.program.fitted._normalized:
            outputs = outputs[1:]  # the probability of the first class is what is left
        self._read_table()
        wanted = Scalars().of(outputs)
        steps = [*sorted_steps(wanted)]
        self._uses.update(id(arg) for step in steps for arg in step.args)
        for step in steps:
            self._values[id(step)] = self._value(step)
        answers = [self._column(step) for step in wanted]
        results = {name: _Value(f"o{k}") for k, name in enumerate(self.source.others)}
        for label, value in zip(labels, answers, strict=True):
            results[label] = value._replace(sql=f"CASE WHEN valid THEN {value.sql} END")
        return self._statement(results)

    def _defined(self, layer: int, name: str, sql: str, *reads: str) -> _Value:
        while len(self._layers) <= layer:
            self._layers.append({})
        self._layers[layer][name] = _Value(sql, reads=frozenset(reads))
        return _Value(name, layer + 1, reads=frozenset((name,)))

    def _column(self, step: Step) -> _Value:
        """Make the result of a step a column, unless it is one or a constant."""
        value = self._values[id(step)]
        if value.depth:
            stem = re.sub(r"\W+", "_", step.name.lower())
            name = f"{stem}_c{sum(map(len, self._layers))}".removeprefix("_")
            value = self._values[id(step)] = self._defined(
                value.layer, name, value.sql, *value.reads
            )
        return value

    def _read_table(self) -> None:
        """Write the first layers: columns of the table, and whether scores are probabilities."""
        dialect, source = self.dialect, self.source
        for k, text in enumerate(source.others.values()):
            self._defined(0, f"o{k}", text)
        scores = [f"p{k}" for k in range(len(source.scores))]
        for name, column in zip(scores, source.scores, strict=True):
            self._defined(0, name, f"CAST(t.{dialect.identifier(column)} AS {dialect.double})")
        valid = " AND ".join(f"{name} >= 0 AND {name} <= 1" for name in scores)
        if len(scores) > 1:
            near = dialect.cut(self.program.sum_tolerance)
            valid += f" AND ABS({' + '.join(scores)} - 1) <= {near}"
        self._defined(1, "valid", f"COALESCE({valid}, FALSE)", *scores)
        # So that nothing after it is NULL, or fails.
        other = dialect.cut(1 / max(len(scores), 2))
        for name in scores:
            safe = f"CASE WHEN valid THEN {name} ELSE {other} END"
            self._defined(2, f"{name}_s", safe, name, "valid")
        for k, column in source.variables.items():
            kind, name = self.program.schema.kinds[k], f"t.{dialect.identifier(column)}"
            if kind == "levels":
                self._defined(0, f"v{k}_s", f"CAST({name} AS {dialect.text_type})")
                continue
            text = f"CAST({name} AS {dialect.double})"
            if kind == "datetime":
                text = dialect.seconds.format(self._instant(k, name))
            self._defined(0, f"v{k}", text)
            gone = dialect.is_nan.format(f"v{k}")
            self._defined(1, f"v{k}_s", f"CASE WHEN {gone} THEN NULL ELSE v{k} END", f"v{k}")

    def _instant(self, k: int, name: str) -> str:
        """Return a column of dates, or of text that the fit read as dates."""
        own = self.program.schema.variables[k]
        if own.date_format not in ("", ISO):
            raise InputError(
                f"variable {own.name!r} was text in fit, with dates written as {own.date_format}, "
                "which databases do not read",
                "convert the column to dates before fit, or use to_python",
            )
        kind = self.dialect.zoned_type if own.zoned else "TIMESTAMP"
        return f"CAST({name} AS {kind})" if own.date_format else name

    def _statement(self, results: dict[str, _Value]) -> str:
        """Return the text, in which each layer has the columns that later ones read."""
        exp = import_library("sqlglot", "writing a query").exp

        def raw(text: str) -> Any:
            # Line breaks, in names, are not indented.
            return exp.Literal(this=text.replace("\n", "\0"), is_string=False)

        def select(columns: dict[str, str], source: str) -> Any:
            named = [
                raw(name) if name == sql else exp.Alias(this=raw(sql), alias=raw(name))
                for name, sql in columns.items()
            ]
            found = exp.Select(expressions=named)
            return found.from_(exp.Table(this=raw(source))) if source else found

        arrays = {
            name: self.dialect.numbers(values.tolist()) for name, values in self._arrays.values()
        }
        selects, needed = [], {"valid", *(f"o{k}" for k in range(len(self.source.others)))}
        needed = needed.union(*(value.reads for value in results.values()))
        for k, layer in reversed([*enumerate(self._layers)]):
            own = {name: value for name, value in layer.items() if name in needed}
            reads = frozenset().union(*(value.reads for value in own.values()))
            carried = sorted(needed - own.keys())
            columns = {name: name for name in carried} | {n: v.sql for n, v in own.items()}
            source = f"step_{k}" if k else self.source.table
            source += " CROSS JOIN tables" if reads & arrays.keys() else ""
            selects.append((f"step_{k + 1}", select(columns, source)))
            needed = {*carried, *(reads - arrays.keys())}
        if arrays:
            selects.append(("tables", select(arrays, "")))
        shown = {self.dialect.identifier(name): value.sql for name, value in results.items()}
        query = select(shown, f"step_{len(self._layers)}")
        kept = self.dialect.name == "postgres" or None
        for name, each in reversed(selects):
            query = query.with_(name, as_=each, materialized=kept, copy=False)
        return str(query.sql(dialect=self.dialect.name, pretty=True)).replace("\0", "\n")

    # Operations.

    def _number(self, value: float) -> str:
        found = self.dialect.cut(value)
        return f"({found})" if value < 0 else found

    def _value(self, step: Step) -> _Value:
        """Write a step, whose arguments are written already."""
        match step.op:
            case "constant":
                whole = isinstance(step.data, int)
                return _Value(str(step.data) if whole else self._number(step.data))
            case "score":
                name = f"p{0 if self.program.binary else step.data}_s"
                return _Value(name, 3, reads=frozenset((name,)))
            case "number":
                name = f"v{step.data}_s"
                return _Value(name, 2, reads=frozenset((name,)))
            case "code":
                return self._code(step.data)
        args = [self._values[id(arg)] for arg in step.args]
        for k, arg in enumerate(step.args):
            if self._uses[id(arg)] > 1 or step.op in _REPEATING or args[k].depth > DEEPEST:
                args[k] = self._column(arg)
        reads = {name for value in args for name in value.reads}
        sqls = [value.sql for value in args]
        if step.op in ("element", "fraction", "between"):
            table = step.data if step.op == "fraction" else _rounded(step.data)
            key = table.tobytes()
            array = self._arrays.setdefault(key, (f"table_{len(self._arrays)}", table))[0]
            sqls, reads = [array, *sqls], reads | {array}
        layer, depth = max(value.layer for value in args), max(value.depth for value in args)
        return _Value(self._expression(step, sqls), layer, depth + 1, frozenset(reads))

    def _expression(self, step: Step, args: list[str]) -> str:
        element = self.dialect.element
        match step.op:
            case "sum":
                return _sum(args)
            case "largest":
                return f"GREATEST({', '.join(args)})"
            case "exp":
                return self._exp(args[0])
            case "sigmoid":
                one = self._number(1.0)
                return f"({one} / ({one} + {self._exp(f'(-{args[0]})')}))"
            case "among":
                return f"({args[0]} IN ({', '.join(map(str, step.data))}))"
            case "find":
                array, begin, end = step.data
                cuts = [self.dialect.cut(cut) for cut in array[begin:end].tolist()]
                return _cut_case(args[0], cuts, [*map(str, range(len(cuts) + 1))])
            case "choose":
                positions = [*map(str, range(len(args) - 2))]
                return _cut_case(args[0], positions, args[1:])
            case "element":
                return element(args[0], args[1])
            case "fraction":
                return self._fraction(args[0], args[1], args[2], step.data)
            case "between":
                array, at, way = args
                low, high = element(array, at), element(array, at, 1)
                return f"({low} + {way} * ({high} - {low}))"
            case "tree":
                return f"({self._tree(step.data, args)} * {self._number(LEAF_UNIT)})"
            case "clock":
                return self.dialect.clock.format(args[0], self.dialect.text(step.data))
            case "top":
                return _top(args)
        return _TEMPLATES[step.op].format(*args)

    def _exp(self, x: str) -> str:
        """Write an exponential, whose exponent is limited where large ones are refused."""
        if self.dialect.range_errors:
            low, high = (self._number(sign * LARGEST_EXPONENT) for sign in (-1, 1))
            x = f"LEAST(GREATEST({x}, {low}), {high})"
        return f"EXP({x})"

    def _fraction(self, array: str, at: str, x: str, knots: Floats) -> str:
        low, high = (self.dialect.element(array, at, k) for k in (0, 1))
        found = f"(({x} - {low}) / ({high} - {low}))"
        if not self.dialect.range_errors:
            return found
        least = self._number(NOTHING * float(np.diff(knots).min()))
        return f"CASE WHEN {x} - {low} < {least} THEN {self._number(0.0)} ELSE {found} END"

    def _tree(self, tree: Tree, args: list[str]) -> str:
        """Write a tree whose leaves are whole numbers, which take half as many characters."""
        whens = ""
        while isinstance(tree, tuple):
            j, cut, left, right = tree
            # A missing number goes left.
            whole = cut.is_integer() and abs(cut) < 1e9
            shown = f"{cut:.0f}" if whole else self.dialect.cut(cut)
            whens += f"WHEN {args[j]} > {shown} THEN {self._tree(right, args)} "
            tree = left
        leaf = f"{tree / LEAF_UNIT:.0f}"
        return f"CASE {whens}ELSE {leaf} END" if whens else leaf

    def _code(self, k: int) -> _Value:
        """Write the position of a level."""
        name, texts = f"v{k}_s", self.program.level_texts(k)
        whens = "".join(
            f" WHEN {name} = {self.dialect.text(text)} THEN {j}"
            for j, text in enumerate(texts)
            if not (self.dialect.name == "postgres" and "\0" in text)  # which it cannot hold
        )
        sql = f"CASE WHEN {name} IS NULL THEN {len(texts) + 1}{whens} ELSE {len(texts)} END"
        return _Value(sql, 1, 1, frozenset((name,)))


def _rounded(values: Floats) -> Floats:
    return np.array([float(f"{value:.{DIGITS}g}") for value in values.tolist()])


def _sum(terms: Sequence[str]) -> str:
    """Add terms in halves, so that thousands of them are not nested."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_sum(terms[:half])} + {_sum(terms[half:])})"


def _cut_case(x: str, cuts: Sequence[str], results: Sequence[str]) -> str:
    """Return the result of the interval that x lies in, by nested comparisons."""
    if not cuts:
        return results[0]
    if len(cuts) < BRANCHES:
        whens = [f"WHEN {x} <= {cut} THEN {r}" for cut, r in zip(cuts, results, strict=False)]
        return f"CASE {' '.join(whens)} ELSE {results[-1]} END"
    size = -(-len(results) // BRANCHES)
    begins = range(0, len(results), size)
    parts = [results[begin : begin + size] for begin in begins]
    inner = [
        _cut_case(x, cuts[begin : begin + len(part) - 1], part)
        for begin, part in zip(begins, parts, strict=True)
    ]
    return _cut_case(x, [cuts[begin - 1] for begin in begins[1:]], inner)


def _top(args: list[str]) -> str:
    """Return the position of the first largest number."""
    whens = [
        f"WHEN {' AND '.join(f'{arg} >= {other}' for other in args[k + 1 :])} THEN {k}"
        for k, arg in enumerate(args[:-1])
    ]
    return f"CASE {' '.join(whens)} ELSE {len(args) - 1} END"


def _duckdb(connection: Any, query: str) -> Floats:
    found = connection.execute(query).fetchnumpy()
    return np.column_stack([np.ma.filled(c.astype(np.float64), np.nan) for c in found.values()])


def _postgres(connection: Any, query: str) -> Floats:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('jit')")
        before = cursor.fetchone()[0]
        # Compiling a long query takes far longer than running it.
        cursor.execute("SET jit = off")
        try:
            cursor.execute(query)
            width, found = len(cursor.description), cursor.fetchall()
        except BaseException:
            with suppress(Exception):
                cursor.execute(f"SET jit = {before}")
            raise
        cursor.execute(f"SET jit = {before}")
        return np.array(found, dtype=np.float64).reshape(len(found), width)


def _spark(connection: Any, query: str) -> Floats:
    table = connection.sql(query).toArrow()
    return np.column_stack([column.to_numpy().astype(np.float64) for column in table.columns])


#: How varcal runs a query, and gets its rows with NaN for NULL.
_RUN = {"duckdb": _duckdb, "postgres": _postgres, "spark": _spark}
