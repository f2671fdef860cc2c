"""The query of a calibrator: common table expressions that add columns to one another.

Each of them is a layer. `placement` decides in which layer an expression stands, this module and
`look_ups` write it, and `joins` has the tables with many rows: first a table of intervals gives the
place of a number, then the table itself what is there.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from varcal._export._sql._query.expressions import (
    ATOM,
    CONDITION,
    PRODUCT,
    SUM,
    Expression,
    by_number,
    case,
    cut_case,
    joined,
    joined_signed,
    minus,
    signed,
    summed,
    top_case,
    tree_case,
)
from varcal._export._sql._query.graph import Graph, joined_tables
from varcal._export._sql._query.joins import Joins
from varcal._export._sql._query.layers import Layers
from varcal._export._sql._query.look_ups import LookUps
from varcal._export._sql._query.placement import Placement
from varcal._export._sql._query.query import Column, Query, Request
from varcal._export._sql._query.scalars import Scalar, Scalars
from varcal._export.dialects import Dialect
from varcal._export.program import Program

#: The exponents beyond which results are 0 or infinite for all purposes, and PostgreSQL refuses to
#: compute them.
_LARGEST_EXPONENT = 600.0


_FUNCTIONS = {"log": "LN", "exp": "EXP", "sqrt": "SQRT", "abs": "ABS"}


class Operations:
    """Writes every kind of operation.

    Parameters
    ----------
    request : Request
        What the query is written for.
    placement : Placement
        Where expressions stand.
    look_ups : LookUps
        Writes operations on levels and positions.
    """

    def __init__(self, request: Request, placement: Placement, look_ups: LookUps) -> None:
        self._request, self._dialect = request, request.dialect
        self._placement, self._look_ups = placement, look_ups

    def expression(self, node: Scalar) -> Expression:
        """Write an operation, whose arguments are written already."""
        op, number = node.op, self._dialect.number
        match op:
            case "score":
                name = self._request.scores[0 if self._request.program.binary else node.data].inside
                return Expression(f"r.{name}", ATOM, 2, True, frozenset([name]))
            case "number":
                name = self._request.variables[node.data].inside
                return Expression(f"r.{name}", ATOM, 2, True, frozenset([name]))
            case "constant":
                if isinstance(node.data, int):
                    return Expression(str(node.data))
                shown = number(abs(node.data))
                return Expression(f"(-{shown})" if node.data < 0 else shown)
            case "code":
                return self._look_ups.code(node)
            case "element":
                return self._look_ups.element(node)
            case "find":
                cuts = [self._dialect.cut(cut) for cut in node.data.tolist()]
                places = [str(k) for k in range(len(cuts) + 1)]
                return self._placement.combined(node.args, lambda x: cut_case(x.text, cuts, places))
            case "curve":
                return self._curve(node)
            case "choose":
                self._placement.as_column(node.args[0], "position")
                return self._placement.combined(
                    node.args,
                    lambda position, *options: by_number(
                        position.text, [option.text for option in options]
                    ),
                )
            case "tree":
                for arg in node.args:
                    self._placement.as_column(arg, "tree_cell")
                return self._placement.combined(
                    node.args,
                    lambda *args: tree_case([arg.text for arg in args], number, *node.data),
                )
            case "top":
                return self._placement.combined(node.args, top_case)
            case "greatest":
                return self._placement.combined(
                    node.args, lambda *args: f"GREATEST({', '.join(arg.text for arg in args)})"
                )
            case "sum":
                return self._placement.combined(node.args, _sum, SUM)
            case "less" | "at_most" | "equal":
                sign = {"less": "<", "at_most": "<=", "equal": "="}[op]
                return self._placement.combined(
                    node.args, lambda a, b: f"{a.bound(SUM)} {sign} {b.bound(SUM)}", CONDITION
                )
            case "missing":
                return self._placement.combined(
                    node.args, lambda x: f"{x.bound(ATOM)} IS NULL", CONDITION
                )
            case "among":
                return self._look_ups.among(node)
            case "negative":
                return self._placement.combined(node.args, minus, PRODUCT)
            case "where":
                return self._placement.combined(
                    node.args, lambda c, a, b: case([(c.text, a.text)], b.text)
                )
            case "minimum" | "maximum":
                name = "LEAST" if op == "minimum" else "GREATEST"
                return self._placement.combined(
                    node.args, lambda a, b: f"{name}({a.text}, {b.text})"
                )
            case "sigmoid":
                return self._placement.combined(
                    node.args, lambda x: f"1 / (1 + EXP({self._exponent(minus(x))}))", PRODUCT
                )
            case "exp":
                return self._placement.combined(
                    node.args, lambda x: f"EXP({self._exponent(x.text)})"
                )
            case "list":
                return self._placement.combined(
                    node.args, lambda *args: self._listed(arg.text for arg in args)
                )
            case "inner":
                weights = self._listed(number(weight) for weight in node.data.tolist())
                return self._placement.combined(
                    node.args, lambda x: self._dialect.inner_product.format(x.text, weights)
                )
            case "log" | "sqrt" | "abs":
                return self._placement.combined(node.args, lambda x: f"{_FUNCTIONS[op]}({x.text})")
        return self._arithmetic(node)

    def _arithmetic(self, node: Scalar) -> Expression:
        """Write an operation on two numbers."""
        op = node.op
        a, b = node.args
        if op in ("add", "subtract"):
            if b.constant is not None:
                value = b.constant if op == "add" else -b.constant
                return self._placement.combined(
                    [a],
                    lambda x: joined_signed(x.bound(SUM), signed(self._dialect.number, value)),
                    SUM,
                )
            if op == "subtract":
                if a.constant == 0:
                    return self._placement.combined([b], minus, PRODUCT)
                return self._placement.combined(
                    node.args, lambda x, y: joined([x.bound(SUM), y.bound(PRODUCT)], "-"), SUM
                )
            return self._placement.combined(node.args, _sum, SUM)
        if op == "multiply":
            return self._placement.combined(
                node.args, lambda x, y: joined([x.bound(PRODUCT), y.bound(PRODUCT)], "*"), PRODUCT
            )
        return self._placement.combined(
            node.args, lambda x, y: joined([x.bound(PRODUCT), y.bound(ATOM)], "/"), PRODUCT
        )

    def _exponent(self, text: str) -> str:
        """Limit an exponent, where the database refuses large ones."""
        if not self._dialect.exp_fails:
            return text
        far = self._dialect.number(_LARGEST_EXPONENT)
        return f"LEAST(GREATEST({text}, -{far}), {far})"

    def _listed(self, texts: Iterable[str]) -> str:
        """Write a list."""
        return self._dialect.list_of.format(", ".join(texts))

    def _curve(self, node: Scalar) -> Expression:
        """Write a curve of straight lines between knots."""
        shape, number = node.data, self._dialect.number
        knots, heights, slopes = (
            each.tolist() for each in (shape.knots, shape.heights, shape.slopes)
        )
        self._placement.as_column(node.args[0], "inside")

        def text(x: Expression) -> str:
            cuts = [self._dialect.cut(knot) for knot in knots]
            lines = [
                number(height)
                if slope == 0
                else f"{number(height)} {signed(number, slope)} "
                f"* ({x.text} {signed(self._dialect.cut, -knot)})"
                for knot, height, slope in zip(knots, heights, slopes, strict=True)
            ]
            return cut_case(x.text, cuts, [number(heights[0]), *lines])

        return self._placement.combined(node.args, text)


def _sum(*terms: Expression) -> str:
    return summed([term.bound(SUM) for term in terms])


#: Pieces of a curve up to which it is written as a CASE instead of being joined.
_CASE_PIECES = 256


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
    if program.binary and program.fitted._normalized:
        wanted = wanted[1:]  # the probability of the first class is what is left
    outputs = scalars.of(wanted)
    request = Request(program, dialect, scores, variables, prefix, with_tables)
    layers = first_layers(request, others, row_number=row_number)
    graph = Graph(outputs, variables)
    joined = joined_tables(graph) if with_tables else {}
    placement = Placement(graph, layers, joined, lambda node: operations.expression(node))
    joins = Joins(request, placement, joined)
    operations = Operations(request, placement, LookUps(request, placement, joins))
    placement.emit_all(outputs)
    answers = [placement.as_column(node, "calibrated") for node in outputs]
    results = [case([("r.valid", each.text)], None) for each in answers]
    needed = {"valid", *(name for each in answers for name in each.columns)}
    needed |= {column.inside for column in others} | ({"row_number"} if row_number else set())
    texts, last = layers.texts(table, dialect, needed)
    return Query(texts, last, results, joins.tables)


def first_layers(request: Request, others: list[Column], *, row_number: str) -> Layers:
    """Return layers that read scores, variables and the columns that the result repeats.

    Parameters
    ----------
    request : Request
        What the query is written for.
    others : list of Column
        The columns that the result repeats.
    row_number : str
        The number of a row; empty if rows are not numbered.
    """
    layers = Layers()
    quoted = request.dialect.identifier
    if row_number:
        layers.given.columns["row_number"] = row_number
        layers.carry_from_given("row_number")
    for column in others:
        layers.given.columns[column.inside] = f"t.{quoted(column.name)}"
        layers.carry_from_given(column.inside)
    _read_scores(request, layers)
    _read_variables(request, layers)
    layers.given.comment = "The columns that are read."
    layers.checked.comment = (
        "Scores that predict_proba refuses are not valid; their results are NULL."
    )
    if request.variables:
        layers.checked.comment += " NaN is a missing value."
    return layers


def _read_scores(request: Request, layers: Layers) -> None:
    dialect, scores = request.dialect, request.scores
    for column in scores:
        text = f"CAST(t.{dialect.identifier(column.name)} AS {dialect.double})"
        layers.given.columns[column.inside] = text
    valid = " AND ".join(f"r.{c.inside} >= 0 AND r.{c.inside} <= 1" for c in scores)
    if len(scores) > 1:
        total = " + ".join(f"r.{c.inside}" for c in scores)
        valid += f" AND ABS({total} - 1) <= {dialect.number(request.program.sum_tolerance)}"
    layers.define(1, "valid", f"COALESCE({valid}, FALSE)")
    # So that nothing after it is NULL, or fails.
    other = dialect.number(1 / max(len(scores), 2))
    for column in scores:
        layers.define(1, column.inside, case([(valid, f"r.{column.inside}")], other))
    layers.checked.reads |= {column.inside for column in scores}


def _read_variables(request: Request, layers: Layers) -> None:
    dialect, kinds = request.dialect, request.program.schema.kinds
    for k, column in request.variables.items():
        name = f"t.{dialect.identifier(column.name)}"
        if kinds[k] == "levels":
            layers.given.columns[column.inside] = f"CAST({name} AS {dialect.text_type})"
            layers.define(1, column.inside, f"r.{column.inside}")
        else:
            date = kinds[k] == "datetime"
            text = dialect.seconds.format(name) if date else f"CAST({name} AS {dialect.double})"
            layers.given.columns[column.inside] = text
            gone = dialect.is_nan.format(f"r.{column.inside}")
            layers.define(1, column.inside, case([(gone, "NULL")], f"r.{column.inside}"))
    layers.checked.reads |= {column.inside for column in request.variables.values()}
