"""What a query is written for, and the query itself."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._arrays import AnyArray
from varcal._export.dialects import Dialect
from varcal._export.program import Program


@dataclass(frozen=True)
class Column:
    """A column that the query reads or gives: its name in the table, and inside the query."""

    name: str
    inside: str


@dataclass(frozen=True, eq=False)
class Request:
    """What a query is written for.

    Attributes
    ----------
    program : Program
        The calibrator.
    dialect : Dialect
        The database.
    scores : list of Column
        The columns of scores.
    variables : dict of int to Column
        Those of variables.
    prefix : str
        The beginning of the names of look-up tables.
    with_tables : bool
        Whether there may be any.
    """

    program: Program
    dialect: Dialect
    scores: list[Column]
    variables: dict[int, Column]
    prefix: str
    with_tables: bool


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
