"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import click

from varcal._files.source import FORMATS
from varcal.exceptions import InputError

Command = Callable[..., Any]

#: The extensions of reports.
REPORTS = (".html", ".md", ".json")


class EachOnce(click.Command):
    """A command that refuses an option given twice, of which click would take the last value.

    Options that take a list may be repeated, and so may flags, whose repetition changes nothing.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, args)
        return super().parse_args(ctx, args)

    def _refuse_repeated(self, ctx: click.Context, args: list[str]) -> None:
        once: list[click.Option] = []
        keeping: list[click.Parameter] = []  # the same options, which keep every value
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                once.append(option)
                again = copy(option)
                again.multiple = True
                keeping.append(again)
            else:
                keeping.append(option)
        reader = click.Command(None, params=keeping, add_help_option=False)
        given, _, _ = reader.make_parser(ctx).parse_args(list(args))
        for option in once:
            values = given.get(option.name or "")
            if isinstance(values, list) and len(values) > 1:
                flag = max(option.opts, key=len)
                shown = ", ".join(map(repr, values[:-1]))
                count = "twice" if len(values) == 2 else f"{len(values)} times"
                raise InputError(
                    f"{flag} is given {count}: {shown} and {values[-1]!r}", f"give {flag} once"
                )


def names(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> list[str] | None:
    """Read names of columns, separated by commas; an option that is repeated adds names."""
    if not value:
        return None
    found = [name.strip() for text in value for name in text.split(",")]
    if not all(found):
        raise click.BadParameter(f"{','.join(value)!r} has an empty name", ctx, option)
    return list(dict.fromkeys(found))


def several_names(*flags: str, help: str, metavar: str = "A,B,...") -> Callable[[Command], Command]:
    """Make an option that takes names of columns, together or one by one."""
    return click.option(*flags, multiple=True, callback=names, metavar=metavar, help=help)


#: Numbers without a unit from here to 1 may be meant as points or as a share, and are refused.
#: Nobody allows a quarter of all probability as an error, and nobody a hundredth of a point.
_UNCLEAR = 0.25


def size(ctx: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Read a difference of probabilities: 2% and 2 are points, 0.02 is the same as a share."""
    if value is None:
        return None
    text = value.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise InputError(
            f"{option.opts[0]} {value} is not a size", "write it in points, such as 2% or 0.5%"
        )
    if text.endswith("%") or number > 1:
        return number / 100
    if number >= _UNCLEAR:
        raise InputError(
            f"{option.opts[0]} {value} may mean {number:g} or {100 * number:g} points",
            f"write {number:g}% or {100 * number:g}%",
        )
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
    help="Format of FILE, for unknown file extensions.",
)
dialect = together(
    click.option(
        "--sep",
        metavar="CHAR",
        help="What separates columns of text files: a character, or comma, semicolon, tab, pipe, "
        "space; detected by default.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal mark of text files; detected by default.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text files, such as cp1252 or utf-16; detected by default.",
    ),
)
label = click.option("--label", required=True, metavar="COLUMN", help="Column of true labels.")
prob = click.option(
    "--prob",
    required=True,
    multiple=True,
    metavar="COLUMN",
    help="Column of P(--pos-label); with more than two classes, one --prob per class.",
)
from_logits = click.option("--from-logits", is_flag=True, help="The --prob columns contain logits.")
weight = click.option("--weight", metavar="COLUMN", help="Column of sampling weights.")
group = click.option(
    "--group",
    metavar="COLUMN",
    help="Column of units, such as patients, whose rows belong together.",
)
classes = several_names(
    "--classes",
    help="Labels in the order of the --prob columns; sorted by default.",
)
variables = several_names(
    "--variables",
    help="Columns to look along; by default all that have no other role.",
)
exclude = several_names(
    "--exclude",
    help="Columns to ignore, such as ids.",
)
drop_unlabelled = click.option(
    "--drop-unlabelled", is_flag=True, help="Leave out rows that have no label."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output.")


#: What each event judges, in the order of the help.
_EVENTS = {
    "correct": "confidence in the predicted class",
    "positive": "probability of the positive class",
    "classwise": "probability of each class",
    "both": "all of these",
}


def event(*allowed: str) -> Callable[[Command], Command]:
    """Make the option that chooses what is judged; the first value is the default."""
    told = ", ".join(f"{_EVENTS[name]} ({name})" for name in _EVENTS if name in allowed)
    return click.option(
        "--event",
        type=click.Choice(list(allowed)),
        default=allowed[0],
        show_default=True,
        help=f"What is judged: {told}.",
    )


pos_label = click.option(
    "--pos-label",
    metavar="LABEL",
    help="The label that a single --prob column is the probability of; by default the second.",
)
claim = together(
    pos_label,
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
        raise InputError(f"unknown file extension: {path!r}", f"use {' or '.join(extensions)}")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(
            f"cannot write {path!r}: no folder {str(Path(path).parent)!r}", "make the folder first"
        )
