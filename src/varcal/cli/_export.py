"""`varcal export`: a fitted calibrator as SQL, ONNX or Python."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from varcal._files.atomic import refuse_input
from varcal.cli import _options as options
from varcal.exceptions import InputError, import_library

if TYPE_CHECKING:
    from varcal._export.sql_export import SqlExport

#: The extension of a file for each target.
EXTENSIONS = {"sql": ".sql", "onnx": ".onnx", "python": ".py"}
DIALECTS = click.Choice(["duckdb", "postgres", "spark", "bigquery", "snowflake"])
#: Options that only a query has a use for.
_OF_SQL = ("dialect", "table", "prob", "keep", "column")


@click.command(cls=options.EachOnce)
@options.calibrator
@click.option("--to", required=True, type=click.Choice([*EXTENSIONS]), help="What to write.")
@click.option("-o", "--output", required=True, metavar="OUT", help="The file to write.")
@click.option("--dialect", type=DIALECTS, default="duckdb", help="The database of a query.")
@click.option("--table", default="scores", help="The table with the rows.")
@options.fitted_prob
@options.several_names("--keep", help="Columns that the result repeats, such as a key.")
@click.option("--column", default="p_calibrated", help="Name of the new column.")
@click.option("--check", is_flag=True, help="Compare 200 random rows with predict_proba.")
@click.pass_context
def export(ctx: click.Context, /, **given: Any) -> None:
    """Write a calibrator as SQL, ONNX or Python, to run where predictions are made.

    The result gives what `varcal apply` gives, within 1e-8. With --check, ONNX, Python and the
    SQL of DuckDB are run on random rows; SQL for other databases is only parsed.

    \b
    Examples:
      varcal export cal.json --to sql --dialect duckdb --table predictions \\
        -o cal.sql --check
      varcal export cal.json --to onnx -o cal.onnx --check
      varcal export cal.json --to python -o cal.py --check
    """
    target, output = given["to"], given["output"]
    options.check_output(output, (EXTENSIONS[target],))
    refuse_input(output, "the file of the calibrator", given["calibrator"])
    for name in _OF_SQL:
        if target != "sql" and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(
                f"--{name} is for queries, and changes nothing with --to {target}",
                f"leave out --{name}, or use --to sql",
            )
    from varcal._files.document import load_kind  # noqa: PLC0415  slow, and not needed to refuse

    calibrator = load_kind(given["calibrator"], "calibrator")
    if target == "sql":
        exported = calibrator.to_sql(
            given["dialect"],
            table=given["table"],
            p=list(given["prob"]) or None,
            keep=given["keep"] or (),
            column=given["column"],
        )
        said = _checked(exported) if given["check"] else ""
    else:
        exported = calibrator.to_onnx() if target == "onnx" else calibrator.to_python()
        said = str(exported.check()) if given["check"] else ""
    exported.save(output)
    print(f"wrote {output}{': ' + said if said else ''}")


def _checked(exported: SqlExport) -> str:
    """Check a query: by running it in DuckDB, otherwise by parsing it."""
    if exported.dialect == "duckdb" and importlib.util.find_spec("duckdb") is not None:
        with import_library("duckdb", "checking a query").connect() as connection:
            return str(exported.check(connection))
    sqlglot = import_library("sqlglot", "parsing a query")
    try:
        sqlglot.parse(exported.query, dialect=exported.dialect)
    except sqlglot.errors.SqlglotError as error:
        raise InputError(f"the query cannot be parsed: {error}", "please report it") from None
    return (
        "the query was only parsed, not run: to compare it with predict_proba, call "
        ".check(connection) in Python"
    )
