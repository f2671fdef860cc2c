"""The first two layers: the columns that are read, and scores and numbers that are checked."""

from __future__ import annotations

from varcal._export._sql._query.expressions import case
from varcal._export._sql._query.layers import Layers
from varcal._export._sql._query.query import Column, Request

__all__ = ["first_layers"]


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
