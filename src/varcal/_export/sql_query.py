"""The query of a calibrator: common table expressions that add columns to one another.

Expressions are those of sqlglot, which knows where parentheses are needed and what clauses look
like in each database. Long tables are joined as VALUES, in Spark they are arrays; short ones, and
trees, are a CASE.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from varcal._arrays import Floats, Ints
from varcal._export.dialects import Dialect
from varcal._export.program import Program, level_texts
from varcal._export.scalars import Scalar, Scalars
from varcal.exceptions import import_library

#: The exponents beyond which results are 0 or infinite for all purposes, and PostgreSQL refuses to
#: compute them.
LARGEST_EXPONENT = 600.0
#: Numbers in a table, and levels, up to which they are written as a CASE instead of being joined.
CASE_CELLS, CASE_LEVELS = 64, 100
#: Branches of a CASE before its cuts are nested, and nested operations before they get a column.
BRANCHES, DEEPEST = 8, 12

_SIGNS = {"less": "LT", "at_most": "LTE", "equal": "EQ"}
_ARITHMETIC = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div"}
_FUNCTIONS = {
    "log": "LN", "sqrt": "SQRT", "abs": "ABS", "minimum": "LEAST", "maximum": "GREATEST",
    "largest": "GREATEST",
}  # fmt: skip
#: How tightly operations bind their arguments; what is not listed needs no parentheses.
_RANKS = {
    "Is": 0, "In": 0, "And": 0, "LT": 0, "LTE": 0, "EQ": 0, "GT": 0, "GTE": 0,
    "Add": 1, "Sub": 1, "Mul": 2, "Div": 2, "Neg": 3,
}  # fmt: skip
ATOM = 4
#: Operations that name an argument more than once.
_REPEATING = {"find", "top", "choose", "tree", "element"}


class Value(NamedTuple):
    """An expression, the layer in which it can be computed, and how deep it is."""

    sql: Any
    layer: int = 0
    depth: int = 0


class Join(NamedTuple):
    """A table in the query, the condition by which its rows are found, and its columns."""

    table: Any
    on: Any
    columns: set[str]


@dataclass
class Layer:
    """One common table expression: the columns that it adds, and the tables that it joins."""

    columns: dict[str, Any] = field(default_factory=dict)
    joins: list[Join] = field(default_factory=list)


@dataclass
class QueryWriter:
    """Writes the query of a program.

    Attributes
    ----------
    program, dialect
        The calibrator and the database.
    table : str
        The table, quoted, and its alias ``t``.
    scores : list of str
        The columns of scores.
    variables : dict of int to str
        The columns of the variables that are used.
    others : dict of str to str
        Further columns of the result, with what they are: columns of ``t``, the table.
    """

    program: Program
    dialect: Dialect
    table: str
    scores: list[str]
    variables: dict[int, str]
    others: dict[str, str]
    _layers: list[Layer] = field(default_factory=lambda: [Layer(), Layer()])
    _values: dict[int, Value] = field(default_factory=dict)
    _uses: Counter[int] = field(default_factory=Counter)
    _elements: dict[int, list[Scalar]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sqlglot = import_library("sqlglot", "writing a query")
        self._exp = self._sqlglot.exp

    def text(self, labels: list[str]) -> str:
        """Return the query, whose results have the given names."""
        outputs = self.program.outputs
        if self.program.binary and self.program.fitted._normalized:
            outputs = outputs[1:]  # the probability of the first class is what is left
        self._read()
        scalars = Scalars()
        wanted = scalars.of(outputs)
        needed = _reachable(scalars.made.values(), wanted)
        self._uses.update(id(arg) for node in needed for arg in node.args)
        for node in needed:
            if node.op == "element":
                self._elements.setdefault(id(node.args[0]), []).append(node)
        for node in needed:
            if id(node) not in self._values:
                self._values[id(node)] = self._value(node)
        answers = [self._as_column(node) for node in wanted]
        names = [*self.others, *labels]
        found = [self._column(f"o{k}") for k in range(len(self.others))]
        found += [self._case([(self._column("valid"), each.sql)], None) for each in answers]
        shown = [self._raw(self.dialect.identifier(name)) for name in names]
        results = [
            self._exp.Alias(this=sql, alias=name) for sql, name in zip(found, shown, strict=True)
        ]
        return self._query(results)

    # Pieces of expressions.

    def _raw(self, text: str) -> Any:
        """Return text that is written as it is; its line breaks, in names, are not indented."""
        return self._exp.Literal(this=text.replace("\n", "\0"), is_string=False)

    def _number(self, value: float) -> Any:
        found = self._raw(self.dialect.cut(value))
        return self._exp.Paren(this=found) if value < 0 else found

    def _named(self, text: str) -> Any:
        """Return a name that needs no quotes."""
        return self._exp.Identifier(this=text, quoted=False)

    def _column(self, name: str) -> Any:
        return self._exp.Column(this=self._named(name))

    def _parsed(self, text: str) -> Any:
        return self._sqlglot.parse_one(text, dialect=self.dialect.name)

    def _function(self, name: str, *args: Any) -> Any:
        return self._exp.Anonymous(this=name, expressions=list(args))

    def _bound(self, sql: Any, rank: int) -> Any:
        """Put an operation in parentheses that binds its arguments less tightly."""
        own = _RANKS.get(type(sql).__name__, ATOM)
        return sql if own >= rank else self._exp.Paren(this=sql)

    def _binary(self, name: str, a: Any, b: Any) -> Any:
        rank, extra = _RANKS[name], {"typed": True} if name == "Div" else {}
        left, right = self._bound(a, rank), self._bound(b, rank + 1)
        return getattr(self._exp, name)(this=left, expression=right, **extra)

    def _minus(self, x: Any) -> Any:
        return self._exp.Neg(this=self._bound(x, ATOM))

    def _case(self, branches: Iterable[tuple[Any, Any]], otherwise: Any) -> Any:
        ifs = [self._exp.If(this=condition, true=result) for condition, result in branches]
        return self._exp.Case(ifs=ifs, default=otherwise) if ifs else otherwise

    def _sum(self, terms: Sequence[Any]) -> Any:
        """Add terms in halves, so that thousands of them are not nested."""
        if len(terms) == 1:
            return terms[0]
        half = len(terms) // 2
        return self._binary("Add", self._sum(terms[:half]), self._sum(terms[half:]))

    def _cut_case(self, x: Any, cuts: Sequence[Any], results: Sequence[Any]) -> Any:
        """Return the result of the interval that x lies in, by nested comparisons."""
        if len(cuts) < BRANCHES:
            pairs = zip(cuts, results, strict=False)
            return self._case(
                [(self._binary("LTE", x.copy(), cut), result) for cut, result in pairs], results[-1]
            )
        size = -(-len(results) // BRANCHES)
        begins = range(0, len(results), size)
        inner = [
            self._cut_case(
                x, cuts[begin : min(begin + size, len(results)) - 1], results[begin : begin + size]
            )
            for begin in begins
        ]
        return self._cut_case(x, [cuts[begin - 1] for begin in begins[1:]], inner)

    # Layers.

    def _defined(self, layer: int, name: str, sql: Any) -> Value:
        while len(self._layers) <= layer:
            self._layers.append(Layer())
        self._layers[layer].columns[name] = sql
        return Value(self._column(name), layer + 1)

    def _as_column(self, node: Scalar) -> Value:
        """Make the result of an operation a column, unless it is one or a constant."""
        value = self._values[id(node)]
        if value.depth:
            stem = re.sub(r"\W+", "_", node.name.lower()) or node.op
            count = sum(len(layer.columns) for layer in self._layers)
            value = self._defined(value.layer, f"{stem}_c{count}", value.sql)
            self._values[id(node)] = value
        return value

    def _read(self) -> None:
        """Write the first layers: columns of the table, and whether scores are probabilities."""
        dialect, kinds = self.dialect, self.program.schema.kinds
        names = [f"p{k}" for k in range(len(self.scores))]
        for k, text in enumerate(self.others.values()):
            self._defined(0, f"o{k}", self._raw(text))
        for name, column in zip(names, self.scores, strict=True):
            text = f"CAST(t.{dialect.identifier(column)} AS {dialect.double})"
            self._defined(0, name, self._raw(text))
        valid = " AND ".join(f"{name} >= 0 AND {name} <= 1" for name in names)
        if len(names) > 1:
            near = dialect.cut(self.program.sum_tolerance)
            valid += f" AND ABS({' + '.join(names)} - 1) <= {near}"
        self._defined(1, "valid", self._parsed(f"COALESCE({valid}, FALSE)"))
        # So that nothing after it is NULL, or fails.
        other = self._number(1 / max(len(names), 2))
        for name in names:
            safe = self._case([(self._parsed(valid), self._column(name))], other)
            self._defined(1, f"{name}_s", safe)
        for k, column in self.variables.items():
            quoted = f"t.{dialect.identifier(column)}"
            if kinds[k] == "levels":
                self._defined(0, f"v{k}_s", self._raw(f"CAST({quoted} AS {dialect.text_type})"))
                continue
            date = kinds[k] == "datetime"
            text = dialect.seconds.format(quoted) if date else f"CAST({quoted} AS {dialect.double})"
            self._defined(0, f"v{k}", self._raw(text))
            gone = self._parsed(dialect.is_nan.format(f"v{k}"))
            known = self._case([(gone, self._exp.null())], self._column(f"v{k}"))
            self._defined(1, f"v{k}_s", known)

    def _query(self, results: list[Any]) -> str:
        """Return the text, in which each layer has the columns that later ones read."""
        exp = self._exp

        def read(expressions: Iterable[Any]) -> set[str]:
            return {each.name for sql in expressions for each in sql.find_all(exp.Column)}

        needed, selects = read(results), []
        for k, layer in reversed([*enumerate(self._layers)]):
            own = {name: sql for name, sql in layer.columns.items() if name in needed}
            carried = sorted(needed - own.keys())
            needed = needed.difference(own) | read(own.values())
            selected = [self._column(name) for name in carried]
            selected += [sql.as_(self._named(name)) for name, sql in own.items()]
            source = self._raw(self.table if k == 0 else f"step_{k}")
            select = exp.Select(expressions=selected).from_(exp.Table(this=source))
            for join in layer.joins:
                if join.columns & needed:
                    needed = needed - join.columns | (read([join.on]) - join.columns)
                    select = select.join(join.table, on=join.on, join_type="left", copy=False)
            selects.append((f"step_{k + 1}", select))
        query = exp.Select(expressions=results).from_(exp.Table(this=self._raw(selects[0][0])))
        for name, select in reversed(selects):
            query = query.with_(
                name, as_=select, materialized=self.dialect.name == "postgres" or None, copy=False
            )
        return str(query.sql(dialect=self.dialect.name, pretty=True)).replace("\0", "\n")

    # Operations.

    def _value(self, node: Scalar) -> Value:
        """Write an operation, whose arguments are written already."""
        op = node.op
        if op == "constant":
            whole = isinstance(node.data, int)
            return Value(self._raw(str(node.data)) if whole else self._number(node.data))
        if op in ("score", "number"):
            k = 0 if self.program.binary and op == "score" else node.data
            return Value(self._column(f"{'p' if op == 'score' else 'v'}{k}_s"), 2)
        if op == "code":
            return self._code(node.data)
        if op == "among" and node.args[0].op == "code":
            return self._among_levels(node.args[0].data, node.data)
        args = []
        for arg in node.args:
            value = self._values[id(arg)]
            if self._uses[id(arg)] > 1 or op in _REPEATING or value.depth > DEEPEST:
                value = self._as_column(arg)
            args.append(value)
        if op == "element":
            cells = len(node.data) * len(self._elements[id(node.args[0])])
            is_column = isinstance(args[0].sql, self._exp.Column)
            if cells > CASE_CELLS and is_column and self.dialect.name != "spark":
                return self._joined(node, args[0])
        sqls = [value.sql.copy() for value in args]
        layer = max((value.layer for value in args), default=0)
        return Value(self._expression(node, sqls), layer, 1 + max(value.depth for value in args))

    def _expression(self, node: Scalar, args: list[Any]) -> Any:
        op = node.op
        if op in _FUNCTIONS:
            return self._function(_FUNCTIONS[op], *args)
        if op == "subtract" and node.args[0].constant == 0:
            return self._minus(args[1])
        if op in _SIGNS or op in _ARITHMETIC:
            return self._binary((_SIGNS | _ARITHMETIC)[op], *args)
        match op:
            case "sum":
                return self._sum(args)
            case "exp":
                return self._function("EXP", self._exponent(args[0]))
            case "sigmoid":
                power = self._function("EXP", self._exponent(self._minus(args[0])))
                one = self._number(1.0)
                return self._binary("Div", one, self._binary("Add", one.copy(), power))
            case "missing":
                return self._exp.Is(this=args[0], expression=self._exp.null())
            case "among":
                return self._exp.In(
                    this=args[0], expressions=[self._raw(str(k)) for k in node.data]
                )
            case "where":
                return self._case([(args[0], args[1])], args[2])
            case "find":
                cuts = [self._number(cut) for cut in node.data.tolist()]
                places = [self._raw(str(k)) for k in range(len(cuts) + 1)]
                return self._cut_case(args[0], cuts, places)
            case "element":
                numbers = [self._number(value) for value in node.data.tolist()]
                if self.dialect.name == "spark" and len(numbers) > BRANCHES:
                    # Spark follows the key of a join through all layers, which takes for ever.
                    place = self._binary("Add", args[0], self._raw("1"))
                    return self._function("ELEMENT_AT", self._function("ARRAY", *numbers), place)
                return self._at(args[0], numbers)
            case "choose":
                return self._at(args[0], args[1:])
            case "tree":
                return self._tree(args, *node.data)
            case "top":
                return self._top(args)
        raise NotImplementedError(op)

    def _exponent(self, x: Any) -> Any:
        """Limit an exponent, where the database refuses large ones."""
        if not self.dialect.exp_fails:
            return x
        low, high = self._number(-LARGEST_EXPONENT), self._number(LARGEST_EXPONENT)
        return self._function("LEAST", self._function("GREATEST", x, low), high)

    def _at(self, position: Any, results: Sequence[Any]) -> Any:
        """Return the result at a position."""
        return self._cut_case(
            position, [self._raw(str(k)) for k in range(len(results) - 1)], results
        )

    def _top(self, args: list[Any]) -> Any:
        """Return the position of the first largest number."""
        branches = []
        for k, arg in enumerate(args[:-1]):
            larger = [self._binary("GTE", arg.copy(), other.copy()) for other in args[k + 1 :]]
            branches.append((self._exp.and_(*larger), self._raw(str(k))))
        return self._case(branches, self._raw(str(len(args) - 1)))

    def _tree(self, args: list[Any], variable: Ints, cut: Floats, value: Floats) -> Any:
        """Return the leaf of a complete tree; a missing number goes left."""

        def node(k: int) -> Any:
            if k >= len(cut):
                return self._number(float(value[k - len(cut)]))
            left, right = node(2 * k + 1), node(2 * k + 2)
            if left == right:
                return left
            beyond = self._binary("GT", args[variable[k]].copy(), self._number(float(cut[k])))
            return self._case([(beyond, right)], left)

        return node(0)

    # Tables and levels.

    def _join(self, layer: int, rows: Iterable[Sequence[Any]], width: int, key: Any) -> list[Any]:
        """Join rows whose first entry is the key; return the columns of the others."""
        exp, name = self._exp, f"t{sum(len(each.joins) for each in self._layers)}"
        names = [f"{name}_{k}" for k in range(width)]
        while len(self._layers) <= layer:
            self._layers.append(Layer())
        table = exp.Values(
            expressions=[exp.Tuple(expressions=list(row)) for row in rows],
            alias=exp.TableAlias(this=self._named(name), columns=[*map(self._named, names)]),
        )
        on = self._binary("EQ", self._column(names[0]), key)
        self._layers[layer].joins.append(Join(table, on, set(names)))
        return [self._column(each) for each in names[1:]]

    def _joined(self, node: Scalar, position: Value) -> Value:
        """Join the table of a position, with a column for each operation that reads it."""
        group = self._elements[id(node.args[0])]
        if id(node) not in self._values:
            cells = zip(*(each.data.tolist() for each in group), strict=True)
            rows = [
                [self._raw(str(k)), *map(self._number, values)] for k, values in enumerate(cells)
            ]
            columns = self._join(position.layer, rows, 1 + len(group), position.sql.copy())
            for each, column in zip(group, columns, strict=True):
                self._values[id(each)] = Value(column, position.layer, 1)
                self._as_column(each)
        return self._values[id(node)]

    def _texts(self, k: int) -> dict[int, Any]:
        """Return the levels that a database can hold: PostgreSQL has no text with a NUL in it."""
        return {
            j: self._raw(self.dialect.text(text))
            for j, text in enumerate(level_texts(self.program, k))
            if not (self.dialect.name == "postgres" and "\0" in text)
        }

    def _code(self, k: int) -> Value:
        """Write the position of a level."""
        n, texts, x = len(self.program.schema.levels[k]), self._texts(k), self._column(f"v{k}_s")
        missing = self._exp.Is(this=x.copy(), expression=self._exp.null())
        unseen = self._case([(missing, self._raw(str(n + 1)))], self._raw(str(n)))
        if len(texts) > CASE_LEVELS:
            rows = [[text, self._raw(str(j))] for j, text in texts.items()]
            (place,) = self._join(1, rows, 2, x)
            found = self._function("COALESCE", place, unseen)
            return self._defined(1, f"v{k}_code", found)
        for j, text in texts.items():
            same = self._binary("EQ", x.copy(), text)
            unseen.append("ifs", self._exp.If(this=same, true=self._raw(str(j))))
        return Value(unseen, 1, 1)

    def _among_levels(self, k: int, positions: Sequence[int]) -> Value:
        """Write whether a level is one of several; a missing one is not."""
        texts = self._texts(k)
        held = [texts[j] for j in positions if j in texts]
        found = self._exp.In(this=self._column(f"v{k}_s"), expressions=held)
        return Value(found if held else self._exp.false(), 1, 1)


def _reachable(nodes: Iterable[Scalar], outputs: list[Scalar]) -> list[Scalar]:
    """Return the operations that outputs depend on, each after its arguments."""
    needed = {id(node) for node in outputs}
    found = []
    for node in reversed([*nodes]):
        if id(node) in needed:
            found.append(node)
            needed.update(id(arg) for arg in node.args)
    return found[::-1]
