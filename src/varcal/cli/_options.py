"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from varcal._files.sources import FORMATS
from varcal.exceptions import InputError

Command = Callable[..., Any]


def names(ctx: click.Context, option: click.Parameter, value: str | None) -> list[str] | None:
    """Read names of columns, separated by commas."""
    if value is None:
        return None
    found = [name.strip() for name in value.split(",")]
    if not all(found):
        raise click.BadParameter(f"{value!r} has an empty name", ctx, option)
    return found


def fraction(ctx: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Read a share such as 0.05 or 5%."""
    if value is None:
        return None
    text = value.strip()
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise click.BadParameter(f"{value!r} is not a share such as 0.05 or 5%", ctx, option)
    return number


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Join options into one decorator, shown in the order given."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


files = click.argument("files", nargs=-1, required=True, metavar="FILE...")
format_option = click.option(
    "--format",
    type=click.Choice(list(FORMATS)),
    help="Format of FILE, for standard input (-) and unknown file extensions.",
)
label = click.option("--label", required=True, metavar="COLUMN", help="Column of true labels.")
weight = click.option("--weight", metavar="COLUMN", help="Column of sampling weights.")
group = click.option(
    "--group",
    metavar="COLUMN",
    help="Column of units, such as patients, whose rows belong together.",
)
classes = click.option(
    "--classes",
    callback=names,
    metavar="A,B,...",
    help="Labels in the order of the --prob columns; sorted by default.",
)
variables = click.option(
    "--variables",
    callback=names,
    metavar="A,B,...",
    help="Columns to look along; by default all that have no other role.",
)
exclude = click.option(
    "--exclude",
    callback=names,
    metavar="A,B,...",
    help="Columns to ignore, such as ids.",
)
drop_unlabelled = click.option(
    "--drop-unlabelled", is_flag=True, help="Leave out rows that have no label."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output.")
claim = together(
    click.option(
        "--event",
        type=click.Choice(["correct", "positive"]),
        default="correct",
        show_default=True,
        help="What is judged: confidence in the predicted class, or the probability of the "
        "positive class.",
    ),
    click.option("--pos-label", metavar="LABEL", help="The positive label; by default the second."),
    group,
    click.option(
        "--level",
        type=float,
        default=0.95,
        show_default=True,
        help="Level of intervals and tests.",
    ),
)


def check_output(path: str, extensions: tuple[str, ...]) -> None:
    """Refuse an output that cannot be written, before anything is computed."""
    if not path.lower().endswith(extensions):
        raise InputError(f"unknown file extension: {path!r}", f"use one of {', '.join(extensions)}")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(
            f"cannot write {path!r}: no folder {str(Path(path).parent)!r}", "make the folder first"
        )
