"""`varcal calibrate`: fit a calibrator and save it."""

from __future__ import annotations

import re
import shlex
import textwrap
from typing import TYPE_CHECKING, Any

import click

from varcal._text.numbers import count
from varcal._text.progress import waiting
from varcal.cli import _options as options
from varcal.cli._input_files import Files, as_labels, one_label, read_roles, read_rows, roles_of
from varcal.cli._program import WIDTH, say
from varcal.cli._spelling import naming_columns
from varcal.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from varcal.calibrators import Calibrator

#: Columns that a note names at most.
_MOST_OFFERED = 8


def methods() -> dict[str, type[Calibrator]]:
    """Return every calibrator that can be saved, by the name that the command line uses."""
    from varcal.calibrators._saved.registry import CALIBRATORS  # noqa: PLC0415  sklearn is slow

    named = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.removesuffix("Calibrator")).lower(): cls
        for name, cls in CALIBRATORS.items()
    }
    return {"auto": named.pop("variable"), **named}


def _method(ctx: click.Context, option: click.Parameter, value: str) -> type[Calibrator]:
    known = methods()
    if value not in known:
        raise InputError.choice("--method", value, known)
    return known[value]


def _complete(ctx: click.Context, option: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in methods() if name.startswith(incomplete)]


@click.command(cls=options.EachOnce)
@options.files
@options.label
@options.prob
@options.several_names(
    "--variables",
    help="Columns along which to calibrate (auto, tree, augmented).",
)
@click.option(
    "--method",
    callback=_method,
    shell_complete=_complete,
    default="auto",
    show_default=True,
    help="auto, tree, augmented (these use variables), beta, platt, isotonic, histogram, "
    "scaling-binning, temperature, vector-scaling, dirichlet.",
)
@click.option(
    "--param",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the method, such as monotone=true.",
)
@options.weight
@options.group
@click.option(
    "--time",
    metavar="COLUMN",
    help="Column of dates or numbers: when each row was made. Judges on later rows.",
)
@click.option(
    "--blocks",
    metavar="COLUMN",
    help="Column of days, stores and the like whose rows are correlated.",
)
@click.option(
    "--same-blocks",
    is_flag=True,
    help="New rows will come from the same days, stores and the like.",
)
@options.classes
@options.pos_label
@options.drop_unlabelled
@options.format_option
@options.dialect
@click.option(
    "-o", "--output", required=True, metavar="CAL.json", help="The file to write the calibrator to."
)
def calibrate(**given: Any) -> None:
    """Learn to repair probabilities from rows with known labels.

    Use rows that the model was not trained on, and judge the result on yet other rows.

    \b
    Examples:
      varcal calibrate cal.csv --label y --prob p --variables age -o cal.json
      varcal calibrate cal.csv --label y --prob p --method beta -o beta.json
      varcal calibrate cal.csv --label y --prob p --variables age,sex \\
          --param monotone=true -o cal.json
      varcal calibrate visits.csv --label y --prob p --variables age \\
          --group patient -o cal.json
      varcal calibrate cal.csv --label y --prob p --variables age \\
          --time admitted -o cal.json
      varcal calibrate cal.parquet --label kind --prob p_cat --prob p_dog \\
          --prob p_owl --method dirichlet -o cal.json
    """
    options.check_output(given["output"], (".json",))
    calibrator = _built(given["method"], given["param"])
    name = type(calibrator).__name__
    if calibrator._needs_variables and not given["variables"]:
        raise InputError(
            f"{name} needs variables, but none is given",
            "name them, as in --variables age,income, or use --method beta",
        )
    for role in ("group", "time", "blocks"):
        if given[role] and not calibrator._uses_groups:
            raise InputError(
                f"{name} holds no rows out, so it cannot use --{role} {given[role]}",
                f"leave --{role} out, or use --method auto",
            )
    if given["blocks"] and given["same_blocks"]:
        raise InputError(
            f"--blocks {given['blocks']} and --same-blocks are both given",
            "blocks are either held out together, or new rows come from the same ones",
        )
    files, roles = Files.of(given, given["output"]), roles_of(given)
    if given["variables"]:
        table, variables = read_rows(files, roles, given["variables"])
    else:
        table, others = read_roles(files, roles)
        variables = []
        if calibrator._uses_variables:
            say("note", f"without --variables only the score is used; {_offered(others)}")
    if given["variables"] and not calibrator._uses_variables:
        say("warning", f"{name} does not use --variables")
    labels = table.column(given["label"])
    if given["drop_unlabelled"]:
        table = table.filter(labels.is_valid())
        labels = table.column(given["label"])
    what = f"Fitting {name} on {count(table.num_rows, 'row')}"
    with naming_columns(given), waiting(what):
        calibrator.fit(
            table.select(list(given["prob"])),
            labels,
            table.select(variables) if variables and calibrator._uses_variables else None,
            sample_weight=table.column(given["weight"]) if given["weight"] else None,
            classes=as_labels(given["classes"], labels),
            pos_label=one_label(given["pos_label"], labels),
            groups=table.column(given["group"]) if given["group"] else None,
            time=table.column(given["time"]) if given["time"] else None,
            blocks=_blocks(table, given["blocks"], same=given["same_blocks"]),
        )
    calibrator.save(given["output"])
    print("\n".join(_wrapped(str(calibrator.describe()))) + "\n")
    print(f"fitted on {table.num_rows:,} rows → {given['output']}")
    print(f"next: varcal apply {given['output']} NEW.csv -o calibrated.csv")


def _offered(columns: list[str]) -> str:
    """Say which columns --variables could name, as it is written.

    >>> _offered(["age", "home town"])
    "columns that could be given: --variables 'age,home town'"
    >>> _offered([])
    'the file has no other columns'
    """
    # Names are separated by commas, and blanks around them are dropped.
    fit = [name for name in columns if name and name == name.strip() and "," not in name]
    if not fit:
        return "the file has no other columns" + " that it could name" * bool(columns)
    more = f" and {len(fit) - _MOST_OFFERED} more" if len(fit) > _MOST_OFFERED else ""
    shown = shlex.quote(",".join(fit[:_MOST_OFFERED]))
    return f"columns that could be given: --variables {shown}{more}"


def _blocks(table: pa.Table, column: str | None, *, same: bool) -> object:
    """Return the argument `blocks` of fit."""
    if same:
        return False
    return "auto" if column is None else table.column(column)


def _wrapped(text: str) -> list[str]:
    """Break the first paragraph of a text, its words, into lines; a table follows it."""
    words, newline, rest = text.partition("\n")
    return [*textwrap.wrap(words, WIDTH, break_long_words=False), *([rest] if newline else [])]


def _built(method: type[Calibrator], parameters: tuple[str, ...]) -> Calibrator:
    import json  # noqa: PLC0415  slow to load

    calibrator = method()
    known = calibrator.get_params(deep=False)
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(
                f"--param {text!r} is not NAME=VALUE", "for example --param max_depth=4"
            )
        if name not in known or name == "calibrator":
            shown = [one for one in known if one != "calibrator"]
            raise InputError.choice(f"the parameter of {method.__name__}", name, shown)
        try:
            calibrator.set_params(**{name: json.loads(value)})
        except ValueError:
            calibrator.set_params(**{name: value})
    return calibrator
