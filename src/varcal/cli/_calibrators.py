"""`varcal calibrate`, `apply` and `export`: a calibrator is fitted, used and handed on."""

from __future__ import annotations

import textwrap
import time
from itertools import chain
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from varcal._export.dialects import DIALECTS
from varcal._files.atomic import refuse_input
from varcal._files.formats import FORMATS
from varcal._text import count, waiting
from varcal.cli import _options as options
from varcal.cli._program import WIDTH, say
from varcal.exceptions import InputError, import_library

if TYPE_CHECKING:
    import pyarrow as pa

    from varcal.calibrators import Calibrator


#: Repairs, from the one that reads least, and single calibrators.
REPAIRS = ["shift", "score-curve", "variables"]
SINGLE = ["tree", "augmented", "platt", "beta", "isotonic", "histogram", "scaling-binning"]
SINGLE += ["temperature", "vector-scaling", "dirichlet"]
#: The arguments of `fit` that hold a column, by the option that names it.
_HELD = {"weight": "sample_weight", "group": "groups", "time": "time", "blocks": "blocks"}

_METHOD = (
    "shift: one number; score-curve: a curve of the score (beta, with more than two classes "
    f"dirichlet); variables: the score and columns. Or {', '.join(SINGLE)}, of which tree and "
    "augmented also read columns."
)
_JSON = {"True": "true", "False": "false", "None": "null"}
_METHODS = click.Choice(REPAIRS + SINGLE)


@click.command(cls=options.EachOnce)
@options.rows
@click.option("--method", type=_METHODS, default="variables", metavar="NAME", help=_METHOD)
@options.several_names("--variables", help="Columns to read; by default all but ids and constants.")
@options.exclude
@click.option(
    "--param", multiple=True, metavar="NAME=VALUE", help="A parameter, such as monotone=true."
)
@options.weight
@options.group
@click.option("--time", metavar="COLUMN", help="Column of times; repairs are judged on later rows.")
@click.option(
    "--blocks", metavar="COLUMN", help="Column of days or stores whose rows are correlated."
)
@click.option("--same-blocks", is_flag=True, help="New rows will come from the same blocks.")
@options.labels
@options.how_read
@click.option("-o", "--output", required=True, metavar="CAL.json", help="The file to write.")
def calibrate(**given: Any) -> None:
    """Learn to repair probabilities from rows with known labels.

    Use rows that the model was not trained on, and judge the result on yet other rows. Columns that
    a repair may not read are named in --exclude, or left out of --variables.

    \b
    Examples:
      varcal calibrate cal.csv --label y --prob p -o cal.json
      varcal calibrate cal.csv --label y --prob p --variables age,sex -o cal.json
      varcal calibrate cal.csv --label y --prob p --method score-curve -o cal.json
      varcal calibrate cal.csv --label y --prob p --variables age,sex \\
          --param monotone=true -o cal.json
      varcal calibrate visits.csv --label y --prob p --group patient -o cal.json
      varcal calibrate cal.csv --label y --prob p --time admitted -o cal.json
      varcal calibrate cal.parquet --label kind --prob p_cat --prob p_dog \\
          --prob p_owl --method dirichlet -o cal.json
    """
    output, method = given["output"], given["method"]
    options.check_output(output, (".json",))
    calibrator = _built(method, len(given["prob"]), given["param"])
    reads = calibrator._uses_variables
    for role in ("group", "time", "blocks"):
        if given[role] and not calibrator._uses_groups:
            raise InputError(
                f"--method {method} holds no rows out, so it cannot use --{role} {given[role]}",
                f"leave --{role} out, or use --method variables",
            )
    if given["blocks"] and given["same_blocks"]:
        raise InputError(
            f"--blocks {given['blocks']} and --same-blocks are both given",
            "blocks are either held out together, or new rows come from the same ones",
        )
    if given["variables"] and not reads:
        say("warning", f"--method {method} reads only the score, and not --variables")
    files, named = options.Files.of(given, output), given["variables"] if reads else []
    table, columns = options.read_rows(files, options.roles_of(given), named, given["exclude"])
    if given["drop_unlabelled"]:
        table = table.filter(table.column(given["label"]).is_valid())
    if named is None:
        columns = _worth_reading(table, columns)
    if calibrator._needs_variables and not columns:
        raise InputError(
            f"--method {method} needs a column beside the score, and there is none",
            "name one in --variables, or use --method score-curve",
        )
    labels, rows = table.column(given["label"]), count(table.num_rows, "row")
    fitting = waiting(f"Fitting {type(calibrator).__name__} on {rows}")
    with options.naming_columns(given), fitting:
        more = {_HELD[role]: table.column(given[role]) for role in _HELD if given[role]}
        more |= {"blocks": False} if given["same_blocks"] else {}
        p, X = table.select(list(given["prob"])), table.select(columns) if columns else None
        calibrator.fit(p, labels, X, **options.labels_of(given, labels), **more)
    calibrator.save(output)
    words, newline, rest = str(calibrator.describe()).partition("\n")
    print(textwrap.fill(words, WIDTH, break_long_words=False) + newline + rest)
    print(f"\nfitted on {rows} → {output}")
    print(f"next: varcal apply {output} NEW.csv -o calibrated.csv")


def _worth_reading(table: pa.Table, names: list[str]) -> list[str]:
    """Say which columns are read, and which an audit would leave out as well."""
    from varcal._input.dates import with_dates  # noqa: PLC0415  slow to load
    from varcal._input.left_out import reason_to_leave_out  # noqa: PLC0415
    from varcal._input.variables import read_columns  # noqa: PLC0415

    found, reasons = read_columns({name: table.column(name) for name in names}, ())
    for variable in found:
        reason = reason_to_leave_out(with_dates(variable))
        reasons |= {variable.name: reason} if reason else {}
    kept = [name for name in names if name not in reasons]
    say("note", f"columns read: {', '.join(kept) or 'none but the score'}")
    if reasons:
        shown = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
        say("note", f"columns left out: {shown}. To read them, name them in --variables")
    return kept


def _built(method: str, n_columns: int, parameters: tuple[str, ...]) -> Calibrator:
    """Return the calibrator of a method, with its parameters."""
    import json  # noqa: PLC0415  slow to load

    from varcal import calibrators  # noqa: PLC0415

    curve = "dirichlet" if n_columns > 2 else "beta"
    kind = {"score-curve": curve, "variables": "variable"}.get(method, method)
    calibrator = getattr(calibrators, f"{kind.title().replace('-', '')}Calibrator")()
    known = [name for name in calibrator.get_params(deep=False) if name != "calibrator"]
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(
                f"--param {text!r} is not NAME=VALUE", "for example --param max_depth=4"
            )
        if name not in known:
            if not known:
                raise InputError(f"--method {method} has no parameters", "leave --param out")
            raise InputError.choice(f"a parameter of --method {method}", name, known)
        try:
            calibrator.set_params(**{name: json.loads(_JSON.get(value, value))})
        except ValueError:
            calibrator.set_params(**{name: value})
    found: Calibrator = calibrator
    try:
        found._check_parameters()
    except InputError as error:
        raise InputError(f"--param {error.message}", error.hint) from None
    return found


_VARIABLES = "Columns of variables, in the order of the fit; by default those with the same names."
_COLUMN = "Name of the new column; with more than two classes, the prefix of the names."


@click.command(cls=options.EachOnce)
@options.calibrator
@options.files
@click.option("-o", "--output", required=True, metavar="OUT", help="The file to write all rows to.")
@options.fitted_prob
@options.several_names("--variables", help=_VARIABLES)
@click.option("--column", default="p_calibrated", help=_COLUMN)
@options.how_read
def apply(**given: Any) -> None:
    """Add calibrated probabilities to files of any size.

    FILE and OUT are CSV, TSV, JSON lines (each also .gz), Parquet, Arrow or Feather. All other
    columns stay as they are, and a text file keeps its separator, decimal mark and encoding. OUT
    is written whole or not at all. It may be FILE, but not CAL.json.

    \b
    Examples:
      varcal apply cal.json new.csv -o calibrated.csv
      varcal apply cal.json 'parts/*.parquet' -o calibrated.parquet
      varcal apply cal.json new.csv --prob score --column score_new -o out.parquet
    """
    start = time.perf_counter()
    extensions = tuple(chain.from_iterable(FORMATS.values()))
    options.check_output(given["output"].removesuffix(".gz"), extensions)  # before anything slow
    with options.Files.of(given).opened() as sources:
        from varcal.calibrators.apply import apply_to  # noqa: PLC0415  slow, and not needed to refuse

        done = apply_to(
            given["calibrator"],
            sources,
            given["output"],
            p=list(given["prob"]) or None,
            X=given["variables"],
            column=given["column"],
        )
    took, added = time.perf_counter() - start, ", ".join(done.columns)
    print(f"added {added} to {done.n_rows:,} rows in {took:.1f}s → {done.out}")


#: The extension of a file for each target.
EXTENSIONS = {"sql": ".sql", "onnx": ".onnx", "python": ".py"}
#: Options that only a query has a use for.
_OF_SQL = ("dialect", "table", "prob", "keep", "column")


@click.command(cls=options.EachOnce, short_help="Write a calibrator as SQL, ONNX or Python.")
@options.calibrator
@click.option("--to", required=True, type=click.Choice([*EXTENSIONS]), help="What to write.")
@click.option("-o", "--output", required=True, metavar="OUT", help="The file to write.")
@click.option(
    "--dialect", type=click.Choice([*DIALECTS]), default="duckdb", help="The SQL dialect."
)
@click.option("--table", default="scores", help="The table with the rows.")
@options.fitted_prob
@options.several_names("--keep", help="Columns to copy to the result, such as a key.")
@click.option("--column", default="p_calibrated", help="Name of the new column.")
@click.option("--check", is_flag=True, help="Compare 200 random rows with predict_proba.")
@click.pass_context
def export(ctx: click.Context, /, **given: Any) -> None:
    """Write a calibrator as SQL, ONNX or Python, to run where predictions are made.

    The result gives what `varcal apply` gives, within 1e-8. --check runs it on random rows: ONNX,
    Python and the SQL of DuckDB.

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
    if given["check"] and given["dialect"] != "duckdb":
        raise InputError(
            f"--check cannot run a query for {given['dialect']}",
            "omit --check; in Python, .check(connection) runs it on your database",
        )
    from varcal._files.saved import load_kind  # noqa: PLC0415  slow, and not needed to refuse

    calibrator, said = load_kind(given["calibrator"], "calibrator"), ""
    if target == "sql":
        exported = calibrator.to_sql(
            given["dialect"],
            table=given["table"],
            p=list(given["prob"]) or None,
            keep=given["keep"] or (),
            column=given["column"],
        )
        if given["check"]:
            with import_library("duckdb", "checking a query").connect() as connection:
                said = f": {exported.check(connection)}"
    else:
        exported = calibrator.to_onnx() if target == "onnx" else calibrator.to_python()
        said = f": {exported.check()}" if given["check"] else ""
    exported.save(output)
    print(f"wrote {output}{said}")
