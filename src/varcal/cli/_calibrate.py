"""`varcal calibrate`: fit a calibrator and save it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from varcal._text import count, waiting
from varcal.cli import _input_files as input_files
from varcal.cli import _options as options
from varcal.cli._program import WIDTH, say
from varcal.exceptions import InputError

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
@click.option("--time", metavar="COLUMN", help="When each row was made; judges on later rows.")
@click.option("--blocks", metavar="COLUMN", help="Column of days or stores with correlated rows.")
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
    files, named = input_files.Files.of(given, output), given["variables"] if reads else []
    table, columns = input_files.read_rows(
        files, input_files.roles_of(given), named, given["exclude"]
    )
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
    with input_files.naming_columns(given), fitting:
        held = {role: table.column(given[role]) for role in _HELD if given[role]}
        calibrator.fit(
            table.select(list(given["prob"])),
            labels,
            table.select(columns) if columns else None,
            classes=input_files.as_labels(given["classes"], labels),
            pos_label=input_files.one_label(given["pos_label"], labels),
            **{_HELD[role]: column for role, column in held.items()},
            **({"blocks": False} if given["same_blocks"] else {}),
        )
    calibrator.save(output)
    words, newline, rest = str(calibrator.describe()).partition("\n")
    print(textwrap.fill(words, WIDTH, break_long_words=False) + newline + rest)
    print(f"\nfitted on {rows} → {output}")
    print(f"next: varcal apply {output} NEW.csv -o calibrated.csv")


def _worth_reading(table: pa.Table, names: list[str]) -> list[str]:
    """Say which columns are read, and which an audit would leave out as well."""
    from varcal._input.dates import with_dates  # noqa: PLC0415  slow to load
    from varcal._input.left_out import ColumnFacts, reason_to_leave_out  # noqa: PLC0415
    from varcal._input.variables import read_columns  # noqa: PLC0415

    found, reasons = read_columns({name: table.column(name) for name in names}, ())
    for variable in found:
        reason = reason_to_leave_out(variable.name, ColumnFacts.of(with_dates(variable)))
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
    found._check_parameters()
    return found
