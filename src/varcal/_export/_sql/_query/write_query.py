"""The query of a calibrator: common table expressions that add columns to one another.

Each of them is a layer. `placement` decides in which layer an expression stands, `operations` and
`look_ups` write it, and `joins` has the tables with many rows: first a table of intervals gives the
place of a number, then the table itself what is there.
"""

from __future__ import annotations

import numpy as np

from varcal._export._sql._query.expressions import case
from varcal._export._sql._query.graph import Graph, joined_tables
from varcal._export._sql._query.joins import Joins
from varcal._export._sql._query.layers import Layers
from varcal._export._sql._query.look_ups import LookUps
from varcal._export._sql._query.operations import Operations
from varcal._export._sql._query.placement import Placement
from varcal._export._sql._query.query import Column, Query, Request
from varcal._export._sql._query.scalars import Scalars
from varcal._export._sql.dialects import Dialect
from varcal._export.program import Program

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
