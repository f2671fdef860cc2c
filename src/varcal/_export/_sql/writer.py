"""The query of a calibrator: common table expressions that add columns to one another.

Each of them is a layer. An expression belongs to the first layer in which all columns that it
reads are known; it becomes a column if it is used twice, in a later layer, or has a name that
helps to read the query. Tables with many rows are joined: first a table of intervals gives the
place of a number, then the table itself what is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._export._sql.comments import comment_on
from varcal._export._sql.cut_cells import CutCells
from varcal._export._sql.dialects import Dialect
from varcal._export._sql.expressions import (
    ATOM,
    CONDITION,
    PRODUCT,
    SUM,
    Expression,
    case,
    cut_case,
    indent,
    joined,
    summed,
    wrapped,
)
from varcal._export._sql.scalars import Scalar, Scalars
from varcal._export.level_texts import level_texts
from varcal._export.program import Program

__all__ = ["Column", "Query", "write_query"]

#: Numbers in a table up to which it is written as a CASE instead of being joined, pieces of a
#: curve, and levels of a category.
_CASE_CELLS, _CASE_PIECES, _CASE_LEVELS = 96, 256, 200
#: Characters of an expression from which its name makes it a column.
_NAMED_FROM = 40
#: The exponents beyond which results are 0 or infinite for all purposes, and PostgreSQL refuses to
#: compute them.
_LARGEST_EXPONENT = 600.0

_DEFAULT_NAMES = {"list": "products", "log": "ln", "where": "choice", "sum": "total"}
_FUNCTIONS = {"log": "LN", "exp": "EXP", "sqrt": "SQRT", "abs": "ABS"}


@dataclass(frozen=True)
class Column:
    """A column that the query reads or gives: its name in the table, and inside the query."""

    name: str
    inside: str


@dataclass(frozen=True, eq=False)
class Query:
    """A query and the look-up tables that it needs.

    Attributes
    ----------
    layers : list of str
        The common table expressions.
    last : str
        The name of the last one.
    outputs : list of str
        The expressions of the calibrated probabilities.
    tables : dict of str to dict
        The columns of each table.
    """

    layers: list[str]
    last: str
    outputs: list[str]
    tables: dict[str, dict[str, AnyArray]]


@dataclass
class _Layer:
    columns: dict[str, str] = field(default_factory=dict)
    reads: set[str] = field(default_factory=set)
    joins: list[str] = field(default_factory=list)
    comment: str = ""


@dataclass
class _Joined:
    """A table that is joined.

    Attributes
    ----------
    name : str
        Its alias, and the end of its name.
    columns : dict of str to ndarray
        Its columns.
    labels : dict of int to str
        The column of each operation that reads it.
    depth : int
        How many tables are joined before its place is known.
    """

    name: str
    columns: dict[str, AnyArray]
    labels: dict[int, str]
    depth: int


def write_query(
    program: Program,
    dialect: Dialect,
    *,
    table: str,
    scores: list[Column],
    variables: dict[int, Column],
    others: list[Column],
    row_number: str,
    prefix: str,
    with_tables: bool,
) -> Query:
    """Write the query of a calibrator.

    Parameters
    ----------
    program, dialect
        The calibrator and the database.
    table : str
        The table, quoted.
    scores, variables, others : Column
        The columns of scores and variables, and those that the result repeats.
    row_number : str
        The number of a row; empty if rows are not numbered.
    prefix : str
        The beginning of the names of look-up tables.
    with_tables : bool
        Whether there may be any.
    """
    most = _CASE_PIECES if with_tables else np.inf
    scalars = Scalars(most, lists=bool(dialect.inner_product))
    wanted = program.outputs
    if program.binary and not _apart(program):
        wanted = wanted[1:]
    outputs = scalars.of(wanted)
    writer = _Writer(program, dialect, scores, variables, prefix, with_tables=with_tables)
    return writer.write(outputs, table, others, row_number=row_number)


def _apart(program: Program) -> bool:
    """Tell whether the probabilities of two classes need not sum to 1."""
    inner = [program.fitted, *getattr(program.fitted, "leaves_", [])]
    return any(getattr(each, "normalize", True) is False for each in inner)


class _Writer:
    def __init__(
        self,
        program: Program,
        dialect: Dialect,
        scores: list[Column],
        variables: dict[int, Column],
        prefix: str,
        *,
        with_tables: bool,
    ) -> None:
        self.program, self.dialect = program, dialect
        self.scores, self.variables = scores, variables
        self.prefix, self.with_tables = prefix, with_tables
        self.layers = [_Layer(comment="The columns that are read."), _Layer()]
        self.defined: dict[str, int] = {}
        self.found: dict[int, Expression] = {}
        self.uses: Counter[int] = Counter()
        self.reads: dict[int, frozenset[str]] = {}
        self.depths: dict[int, int] = {}
        self.joined: dict[int, _Joined] = {}
        self.joined_at: dict[int, int] = {}
        self.tables: dict[str, dict[str, AnyArray]] = {}
        self.nodes: list[Scalar] = []

    def write(
        self, outputs: list[Scalar], table: str, others: list[Column], *, row_number: str
    ) -> Query:
        self._read_columns(others, row_number=row_number)
        self.nodes = _ordered(outputs)
        self.uses = Counter(id(arg) for node in self.nodes for arg in node.args)
        for node in self.nodes:
            self.reads[id(node)] = self._inputs_of(node)
        if self.with_tables:
            self._choose_joins()
        for node in self.nodes:
            self._depth(node)
        self._emit_all(outputs)
        answers = [self._as_column(node, "calibrated") for node in outputs]
        results = [case([("r.valid", each.text)], None) for each in answers]
        needed = {"valid", *(name for each in answers for name in each.columns)}
        needed |= {column.inside for column in others} | ({"row_number"} if row_number else set())
        return self._query(table, results, needed)

    # Reading the table.

    def _read_columns(self, others: list[Column], *, row_number: str) -> None:
        given, checked = self.layers
        double, quoted = self.dialect.double, self.dialect.identifier
        if row_number:
            given.columns["row_number"] = row_number
            self._carry_from_given("row_number")
        for column in others:
            given.columns[column.inside] = f"t.{quoted(column.name)}"
            self._carry_from_given(column.inside)
        for column in self.scores:
            given.columns[column.inside] = f"CAST(t.{quoted(column.name)} AS {double})"
        valid = " AND ".join(f"r.{c.inside} >= 0 AND r.{c.inside} <= 1" for c in self.scores)
        if len(self.scores) > 1:
            total = " + ".join(f"r.{c.inside}" for c in self.scores)
            valid += f" AND ABS({total} - 1) <= {self.dialect.number(self.program.sum_tolerance)}"
        self._define(1, "valid", f"COALESCE({valid}, FALSE)")
        # So that nothing after it is NULL, or fails.
        other = self.dialect.number(1 / max(len(self.scores), 2))
        for column in self.scores:
            self._define(1, column.inside, case([(valid, f"r.{column.inside}")], other))
        checked.reads |= {column.inside for column in [*self.scores, *self.variables.values()]}
        kinds = self.program.schema.kinds
        for k, column in self.variables.items():
            name = f"t.{quoted(column.name)}"
            if kinds[k] == "levels":
                given.columns[column.inside] = f"CAST({name} AS {self.dialect.text_type})"
                self._define(1, column.inside, f"r.{column.inside}")
            else:
                date = kinds[k] == "datetime"
                text = self.dialect.seconds.format(name) if date else f"CAST({name} AS {double})"
                given.columns[column.inside] = text
                gone = self.dialect.is_nan.format(f"r.{column.inside}")
                self._define(1, column.inside, case([(gone, "NULL")], f"r.{column.inside}"))
        checked.comment = "Scores that predict_proba refuses are not valid; their results are NULL."
        if self.variables:
            checked.comment += " NaN is a missing value."

    def _carry_from_given(self, name: str) -> None:
        self.defined[name] = 0

    def _define(self, layer: int, name: str, text: str) -> None:
        self.layers[layer].columns[name] = text
        self.defined[name] = layer

    def _inputs_of(self, node: Scalar) -> frozenset[str]:
        if node.op == "score":
            return frozenset(["p"])
        if node.op in ("number", "code"):
            return frozenset([self.variables[node.data].inside])
        return frozenset().union(*(self.reads[id(arg)] for arg in node.args))

    # Tables.

    def _choose_joins(self) -> None:
        """Decide which positions are found by joining a table."""
        elements: dict[int, list[Scalar]] = {}
        for node in self.nodes:
            if node.op == "element":
                elements.setdefault(id(node.args[0]), []).append(node)
        for node in self.nodes:
            used = elements.get(id(node), [])
            size = len(used) * len(used[0].data) if used else 0
            if size > _CASE_CELLS:
                name = self._free_name(
                    self._subject(node), {each.name for each in self.joined.values()}
                )
                columns: dict[str, AnyArray] = {}
                labels: dict[int, str] = {}
                for element in used:
                    label = self._free_name(element.names[0], columns)
                    columns[label] = element.data
                    labels[id(element)] = label
                self.joined[id(node)] = _Joined(name, columns, labels, 0)

    def _subject(self, node: Scalar) -> str:
        """Return what a table is about: a variable, the score, or another number."""
        inputs = self.reads[id(node)]
        if len(inputs) != 1:
            return "last_curve"
        name = "score" if inputs == {"p"} else next(iter(inputs)).removeprefix("v_")
        # The table of a variable "age_intervals" must not be that of the intervals of "age".
        return f"{name}_variable" if name.endswith(("_intervals", "_levels")) else name

    def _depth(self, node: Scalar) -> None:
        """Count the tables that are joined one after another before a number is known."""
        depth = max((self.depths[id(arg)] for arg in node.args), default=0)
        if node.op == "element" and id(node.args[0]) in self.joined:
            self.joined[id(node.args[0])].depth = depth
            depth += 1
        self.depths[id(node)] = depth

    def _join_all(self, depth: int) -> int:
        """Join the tables of one depth, and return the layer in which their columns are known."""
        if depth in self.joined_at:
            return self.joined_at[depth]
        positions = [
            node
            for node in self.nodes
            if id(node) in self.joined and self.joined[id(node)].depth == depth
        ]
        finds = [each for node in positions if (each := _find_in(node)) is not None]
        cells = [(each, self._cell(each, self._find_name(each, positions))) for each in finds]
        at = max((cell.layer for _, cell in cells), default=0)
        at = max([at, *(self._emitted(node.args[0]).layer for node in finds)])
        for node, cell in cells:
            self._join_intervals(node, cell, at, self._find_name(node, positions))
        places = [self._as_column(node, "place") for node in positions]
        known = max(place.layer for place in places)
        for node, place in zip(positions, places, strict=True):
            self._join_table(self.joined[id(node)], place, known)
        self.joined_at[depth] = known
        return known

    def _find_name(self, find: Scalar, positions: list[Scalar]) -> str:
        return next(self.joined[id(each)].name for each in positions if _find_in(each) is find)

    def _cell(self, find: Scalar, name: str) -> Expression:
        """Define the cell of a number."""
        x = self._as_column(find.args[0], "inside")
        grid = CutCells.of(find.data)
        number = self.dialect.number
        inside = f"LEAST(GREATEST({x.text}, {number(grid.low)}), {number(grid.high)})"
        apart = f"({inside} {_signed(number, -grid.low)})"
        if grid.bend:
            apart = f"LN(1 + {apart} * {number(grid.bend)})"
        text = f"CAST(FLOOR({apart} * {number(grid.scale)}) AS {self.dialect.whole})"
        self.tables[f"{self.prefix}_{name}_intervals"] = {
            "cell": grid.cell,
            "above": grid.above,
            "up_to": grid.up_to,
            "place": grid.place,
        }
        return self._column(Expression(text, ATOM, x.layer, False, x.columns), f"{name}_cell")

    def _join_intervals(self, find: Scalar, cell: Expression, at: int, name: str) -> None:
        x = self._emitted(find.args[0])
        alias = f"i_{name}"
        table = self.dialect.identifier(f"{self.prefix}_{name}_intervals")
        layer = self._layer(at)
        layer.joins.append(
            f"LEFT JOIN {table} AS {alias}\0  ON {alias}.cell = {cell.text} "
            f"AND {x.text} > {alias}.above AND {x.text} <= {alias}.up_to"
        )
        self._use(layer, cell.columns | x.columns)
        self.found[id(find)] = Expression(f"{alias}.place", ATOM, at, False)

    def _join_table(self, joined: _Joined, place: Expression, at: int) -> None:
        layer = self._layer(at)
        table = self.dialect.identifier(f"{self.prefix}_{joined.name}")
        layer.joins.append(
            f"LEFT JOIN {table} AS t_{joined.name} ON t_{joined.name}.place = {place.text}"
        )
        self._use(layer, place.columns)
        size = len(next(iter(joined.columns.values())))
        self.tables[f"{self.prefix}_{joined.name}"] = {"place": np.arange(size), **joined.columns}

    # Layers and columns.

    def _layer(self, number: int) -> _Layer:
        while len(self.layers) <= number:
            self.layers.append(_Layer())
        return self.layers[number]

    def _use(self, layer: _Layer, columns: Iterable[str]) -> None:
        layer.reads.update(columns)

    def _free_name(self, name: str, taken: Iterable[str]) -> str:
        known, k = set(taken), 2
        found = name
        while found in known:
            found, k = f"{name}_{k}", k + 1
        return found

    def _column(self, expression: Expression, name: str) -> Expression:
        """Make an expression a column, which later layers can read."""
        if expression.portable:
            return expression
        name = self._free_name(name, self.defined)
        self._layer(expression.layer)
        self._define(expression.layer, name, expression.text)
        self._use(self.layers[expression.layer], expression.columns)
        columns = frozenset([name])
        return Expression(f"r.{name}", ATOM, expression.layer + 1, True, columns)

    def _name_of(self, node: Scalar, name: str = "value") -> str:
        name = node.names[0] if node.names else name
        inputs = self.reads[id(node)]
        if len(inputs) == 1 and inputs != {"p"} and not name.startswith("v_"):
            return f"{next(iter(inputs)).removeprefix('v_')}_{name}"
        return name

    def _as_column(self, node: Scalar, name: str) -> Expression:
        """Return the expression of an operation, made a column unless it can be read anywhere."""
        found = self._column(self._emitted(node), self._name_of(node, name))
        self.found[id(node)] = found
        return found

    def _aligned(self, nodes: Iterable[Scalar]) -> list[Expression]:
        """Return expressions that can stand in one layer."""
        nodes = list(nodes)
        layer = max((self._emitted(node).layer for node in nodes), default=0)
        return [
            found
            if (found := self._emitted(node)).portable or found.layer == layer
            else self._as_column(node, "value")
            for node in nodes
        ]

    def _emitted(self, node: Scalar) -> Expression:
        if id(node) not in self.found:
            self._emit_all([node])
        return self.found[id(node)]

    def _emit_all(self, nodes: Iterable[Scalar]) -> None:
        """Write operations after those that they depend on."""
        pending = list(reversed(list(nodes)))
        while pending:
            node = pending[-1]
            if id(node) in self.found:
                pending.pop()
                continue
            if node.op == "element" and id(node.args[0]) in self.joined:
                needed: list[Scalar] = []
            else:
                needed = [arg for arg in node.args if id(arg) not in self.found]
            if needed:
                pending += reversed(needed)
                continue
            pending.pop()
            self._emit(node)

    def _emit(self, node: Scalar) -> None:
        found = self._expression(node)
        self.found[id(node)] = found
        if found.portable:
            return
        if found.rank == CONDITION:
            return
        shared = self.uses[id(node)] > 1
        readable = bool(node.names) and len(found.text) > _NAMED_FROM and node.op != "element"
        if shared or readable:
            self._as_column(node, _DEFAULT_NAMES.get(node.op, "value"))

    # Operations.

    def _combined(
        self, nodes: Iterable[Scalar], text: Callable[..., str], rank: int = ATOM
    ) -> Expression:
        """Write an operation on others; `text` takes their expressions."""
        args = self._aligned(nodes)
        layer = max((arg.layer for arg in args), default=0)
        columns = frozenset().union(*(arg.columns for arg in args))
        # What depends on constants alone has been computed; only CASE has constant results.
        return Expression(text(*args), rank, max(layer, 2), False, columns)

    def _expression(self, node: Scalar) -> Expression:
        op, number = node.op, self.dialect.number
        match op:
            case "score":
                name = self.scores[0 if self.program.binary else node.data].inside
                return Expression(f"r.{name}", ATOM, 2, True, frozenset([name]))
            case "number":
                name = self.variables[node.data].inside
                return Expression(f"r.{name}", ATOM, 2, True, frozenset([name]))
            case "constant":
                if isinstance(node.data, int):
                    return Expression(str(node.data))
                shown = number(abs(node.data))
                return Expression(f"(-{shown})" if node.data < 0 else shown)
            case "code":
                return self._code(node)
            case "element":
                return self._element(node)
            case "find":
                cuts = [self.dialect.cut(cut) for cut in node.data.tolist()]
                places = [str(k) for k in range(len(cuts) + 1)]
                return self._combined(node.args, lambda x: cut_case(x.text, cuts, places))
            case "curve":
                return self._curve(node)
            case "choose":
                self._as_column(node.args[0], "position")
                return self._combined(
                    node.args,
                    lambda position, *options: _by_number(
                        position.text, [option.text for option in options]
                    ),
                )
            case "tree":
                for arg in node.args:
                    self._as_column(arg, "tree_cell")
                return self._combined(
                    node.args, lambda *args: _tree([arg.text for arg in args], number, *node.data)
                )
            case "top":
                return self._combined(node.args, _top)
            case "greatest":
                return self._combined(
                    node.args, lambda *args: f"GREATEST({', '.join(arg.text for arg in args)})"
                )
            case "sum":
                return self._combined(node.args, self._sum, SUM)
            case "less" | "at_most" | "equal":
                sign = {"less": "<", "at_most": "<=", "equal": "="}[op]
                return self._combined(
                    node.args, lambda a, b: f"{a.bound(SUM)} {sign} {b.bound(SUM)}", CONDITION
                )
            case "missing":
                return self._combined(node.args, lambda x: f"{x.bound(ATOM)} IS NULL", CONDITION)
            case "among":
                return self._among(node)
            case "negative":
                return self._combined(node.args, _minus, PRODUCT)
            case "where":
                return self._combined(node.args, lambda c, a, b: case([(c.text, a.text)], b.text))
            case "minimum" | "maximum":
                name = "LEAST" if op == "minimum" else "GREATEST"
                return self._combined(node.args, lambda a, b: f"{name}({a.text}, {b.text})")
            case "sigmoid":
                return self._combined(
                    node.args, lambda x: f"1 / (1 + EXP({self._exponent(_minus(x))}))", PRODUCT
                )
            case "exp":
                return self._combined(node.args, lambda x: f"EXP({self._exponent(x.text)})")
            case "list":
                return self._combined(
                    node.args, lambda *args: self._listed(arg.text for arg in args)
                )
            case "inner":
                weights = self._listed(number(weight) for weight in node.data.tolist())
                return self._combined(
                    node.args, lambda x: self.dialect.inner_product.format(x.text, weights)
                )
            case "log" | "sqrt" | "abs":
                return self._combined(node.args, lambda x: f"{_FUNCTIONS[op]}({x.text})")
        return self._arithmetic(node)

    def _arithmetic(self, node: Scalar) -> Expression:
        op = node.op
        a, b = node.args
        if op in ("add", "subtract"):
            if b.constant is not None:
                value = b.constant if op == "add" else -b.constant
                return self._combined(
                    [a],
                    lambda x: joined_signed(x.bound(SUM), _signed(self.dialect.number, value)),
                    SUM,
                )
            if op == "subtract":
                if a.constant == 0:
                    return self._combined([b], _minus, PRODUCT)
                return self._combined(
                    node.args, lambda x, y: joined([x.bound(SUM), y.bound(PRODUCT)], "-"), SUM
                )
            return self._combined(node.args, self._sum, SUM)
        if op == "multiply":
            return self._combined(
                node.args, lambda x, y: joined([x.bound(PRODUCT), y.bound(PRODUCT)], "*"), PRODUCT
            )
        return self._combined(
            node.args, lambda x, y: joined([x.bound(PRODUCT), y.bound(ATOM)], "/"), PRODUCT
        )

    def _exponent(self, text: str) -> str:
        """Limit an exponent, where the database refuses large ones."""
        if not self.dialect.exp_fails:
            return text
        far = self.dialect.number(_LARGEST_EXPONENT)
        return f"LEAST(GREATEST({text}, -{far}), {far})"

    def _listed(self, texts: Iterable[str]) -> str:
        return self.dialect.list_of.format(", ".join(texts))

    def _sum(self, *terms: Expression) -> str:
        return summed([term.bound(SUM) for term in terms])

    def _curve(self, node: Scalar) -> Expression:
        shape, number = node.data, self.dialect.number
        knots, heights, slopes = (
            each.tolist() for each in (shape.knots, shape.heights, shape.slopes)
        )
        self._as_column(node.args[0], "inside")

        def text(x: Expression) -> str:
            cuts = [self.dialect.cut(knot) for knot in knots]
            lines = [
                number(height)
                if slope == 0
                else f"{number(height)} {_signed(number, slope)} "
                f"* ({x.text} {_signed(self.dialect.cut, -knot)})"
                for knot, height, slope in zip(knots, heights, slopes, strict=True)
            ]
            return cut_case(x.text, cuts, [number(heights[0]), *lines])

        return self._combined(node.args, text)

    # Levels.

    def _writable(self, k: int) -> dict[int, str]:
        """Return the levels that a database can hold: PostgreSQL has no text with a NUL in it."""
        return {
            j: text
            for j, text in enumerate(level_texts(self.program, k))
            if not (self.dialect.name == "postgres" and "\0" in text)
        }

    def _code(self, node: Scalar) -> Expression:
        """Write the position of a level."""
        k = node.data
        column = self.variables[k].inside
        n, texts = len(self.program.schema.levels[k]), self._writable(k)
        x, columns = f"r.{column}", frozenset([column])
        if len(texts) <= _CASE_LEVELS or not self.with_tables:
            branches = [(f"{x} IS NULL", str(n + 1))]
            branches += [(f"{x} = {self.dialect.text(text)}", str(j)) for j, text in texts.items()]
            return Expression(case(branches, str(n)), ATOM, 2, False, columns)
        name = column.removeprefix("v_")
        alias, table = f"l_{name}", f"{self.prefix}_{name}_levels"
        self.tables[table] = {
            "level": np.array(list(texts.values()), dtype=object),
            "place": np.array(list(texts)),
        }
        layer = self._layer(2)
        quoted = self.dialect.identifier(table)
        layer.joins.append(f"LEFT JOIN {quoted} AS {alias} ON {alias}.level = {x}")
        self._use(layer, columns)
        unseen = case([(f"{x} IS NULL", str(n + 1))], str(n))
        return Expression(f"COALESCE({alias}.place, {unseen})", ATOM, 2, False, columns)

    def _among(self, node: Scalar) -> Expression:
        position = node.args[0]
        if position.op == "code":
            texts = self._writable(position.data)
            column = self.variables[position.data].inside
            held = [self.dialect.text(texts[j]) for j in node.data if j in texts]
            # A missing level is not among any: the condition is NULL, and CASE goes on.
            text = f"r.{column} IN ({wrapped(held)})" if held else "FALSE"
            return Expression(text, CONDITION, 2, False, frozenset([column]))
        places = ", ".join(map(str, node.data))
        return self._combined(node.args, lambda x: f"{x.bound(ATOM)} IN ({places})", CONDITION)

    def _element(self, node: Scalar) -> Expression:
        """Write a column of a table at a position."""
        position = node.args[0]
        if id(position) in self.joined:
            joined_table = self.joined[id(position)]
            layer = self._join_all(joined_table.depth)
            label = joined_table.labels[id(node)]
            return Expression(f"t_{joined_table.name}.{label}", ATOM, layer, False)
        values = [self.dialect.number(value) for value in node.data.tolist()]
        return self._selected(position, values)

    def _selected(self, position: Scalar, values: list[str]) -> Expression:
        """Write the value at a position as a CASE."""
        if position.op == "constant":
            return Expression(values[position.data])
        if position.op == "code":
            return self._by_level(position.data, values)
        if position.op == "find":
            cuts = [self.dialect.cut(cut) for cut in position.data.tolist()]
            self._as_column(position.args[0], "inside")
            # The table of a number that may be missing has one more row.
            inner = values[: len(cuts) + 1]
            return self._combined(position.args, lambda x: cut_case(x.text, cuts, inner))
        if position.op == "where" and position.args[0].op == "missing":
            condition, yes, no = position.args
            found = self._selected(no, values)
            gone = self._emitted(condition)
            text = case([(gone.text, values[yes.data])], found.text)
            layer = max(gone.layer, found.layer)
            return Expression(text, ATOM, layer, False, gone.columns | found.columns)
        self._as_column(position, "position")
        return self._combined([position], lambda x: _by_number(x.text, values))

    def _by_level(self, k: int, values: list[str]) -> Expression:
        column = self.variables[k].inside
        n, x = len(self.program.schema.levels[k]), f"r.{column}"
        groups: dict[str, list[str]] = {}
        for j, text in self._writable(k).items():
            if values[j] != values[n]:
                groups.setdefault(values[j], []).append(self.dialect.text(text))
        branches = [(f"{x} IS NULL", values[n + 1])]
        for value, texts in groups.items():
            same = f"{x} = {texts[0]}" if len(texts) == 1 else f"{x} IN ({wrapped(texts)})"
            branches.append((same, value))
        return Expression(case(branches, values[n]), ATOM, 2, False, frozenset([column]))

    # The text.

    def _query(self, table: str, outputs: list[str], needed: set[str]) -> Query:
        """Put the layers together, each with the columns that later ones read."""
        texts: list[str] = []
        carried: list[list[str]] = []
        for layer in reversed(self.layers):
            layer.columns = {k: text for k, text in layer.columns.items() if k in needed}
            carried.append([k for k in self.defined if k in needed and k not in layer.columns])
            needed = (needed - set(layer.columns)) | layer.reads
        names = ["given", "checked", *(f"step_{k + 1}" for k in range(len(self.layers) - 2))]
        for k, (layer, through) in enumerate(zip(self.layers, reversed(carried), strict=True)):
            source = f"FROM {table} AS t" if k == 0 else f"FROM {names[k - 1]} AS r"
            columns = [] if k == 0 else [f"r.{name}" for name in through]
            columns += [
                text if text == f"r.{name}" else f"{text} AS {name}"
                for name, text in layer.columns.items()
            ]
            comment = layer.comment or comment_on(layer.columns, layer.joins)
            body = "SELECT\0" + indent(",\0".join(columns), "  ")
            body = "\0".join([body, source, *layer.joins])
            texts.append(
                f"-- {comment}\0{names[k]} AS {self.dialect.materialized}(\0{indent(body, '  ')}\0)"
            )
        return Query(texts, names[len(self.layers) - 1], outputs, self.tables)


def _find_in(position: Scalar) -> Scalar | None:
    """Return the search that a position depends on, None for positions of levels."""
    if position.op == "find":
        return position
    if position.op == "where" and position.args[2].op == "find":
        return position.args[2]
    return None


def _ordered(outputs: Iterable[Scalar]) -> list[Scalar]:
    """Return all operations, each once and after its arguments."""
    found, seen = [], set()
    pending = [(node, False) for node in reversed(list(outputs))]
    while pending:
        node, ready = pending.pop()
        if ready:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            pending += [(arg, False) for arg in reversed(node.args) if id(arg) not in seen]
    return found


def _by_number(x: str, results: list[str]) -> str:
    if len(results) == 1:
        return results[0]
    branches = [(f"{x} = {k}", text) for k, text in enumerate(results[:-1])]
    return case(branches, results[-1])


def _tree(
    names: list[str], number: Callable[[float], str], variable: Ints, cut: Floats, value: Floats
) -> str:
    """Write a complete tree as nested conditions; splits that send all rows left are left out."""

    def node(k: int) -> str:
        if k >= len(cut):
            return number(float(value[k - len(cut)]))
        left, right = node(2 * k + 1), node(2 * k + 2)
        if left == right:
            return left
        return f"CASE WHEN {names[variable[k]]} <= {cut[k]:.0f} THEN {left} ELSE {right} END"

    return node(0)


def _top(*args: Expression) -> str:
    """Write the position of the first largest number."""
    branches = []
    for k, arg in enumerate(args[:-1]):
        larger = " AND ".join(f"{arg.text} >= {other.text}" for other in args[k + 1 :])
        branches.append((larger, str(k)))
    return case(branches, str(len(args) - 1))


def _signed(number: Callable[[float], str], value: float) -> str:
    return f"{'-' if value < 0 else '+'} {number(abs(value))}"


def _minus(x: Expression) -> str:
    """Write the negative of a number; two minuses would begin a comment."""
    return f"-{x.bound(ATOM if x.text.startswith('-') else PRODUCT)}"


def joined_signed(left: str, right: str) -> str:
    """Add a constant with its sign."""
    return f"{left}\0{right}" if "\0" in left else f"{left} {right}"
