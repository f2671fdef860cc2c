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
#: Numbers without a unit from here to 1 may be meant as points or as a share, and are refused.
#: Nobody allows a quarter of all probability as an error, and nobody a hundredth of a point.
_UNCLEAR = 0.25


class EachOnce(click.Command):
    """A command that refuses an option given twice, of which click would take the last value.

    Options that take a list may be repeated, and so may flags, whose repetition changes nothing.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        once = [o for o in self.params if isinstance(o, click.Option) and not o.is_flag]
        keeping = {option: copy(option) for option in once if not option.multiple}
        for option in keeping.values():
            option.multiple = True
        reader = click.Command(None, params=[keeping.get(o, o) for o in self.params])  # type: ignore[call-overload]
        given = {} if ctx.resilient_parsing else reader.make_parser(ctx).parse_args(list(args))[0]
        for option in keeping:
            values: list[str] = given.get(option.name) or []
            if len(values) > 1:
                flag, n = max(option.opts, key=len), len(values)
                shown = f"{', '.join(map(repr, values[:-1]))} and {values[-1]!r}"
                times = "twice" if n == 2 else f"{n} times"
                raise InputError(f"{flag} is given {times}: {shown}", f"give {flag} once")
        return super().parse_args(ctx, args)


def names(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> list[str] | None:
    """Read names of columns, separated by commas; an option that is repeated adds names."""
    found = [name.strip() for text in value for name in text.split(",")]
    if not all(found):
        raise click.BadParameter(f"{','.join(value)!r} has an empty name", ctx, option)
    return list(dict.fromkeys(found)) or None


def several_names(*flags: str, help: str, metavar: str = "A,B,...") -> Callable[[Command], Command]:
    """Make an option that takes names of columns, together or one by one."""
    return click.option(*flags, multiple=True, callback=names, metavar=metavar, help=help)


def size(ctx: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Read a difference of probabilities: 2% and 2 are points, 0.02 is the same as a share."""
    if value is None:
        return None
    given, text = f"{option.opts[0]} {value}", value.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise InputError(f"{given} is not a size", "write it in points, such as 2% or 0.5%")
    if text.endswith("%") or number > 1:
        return number / 100
    if number >= _UNCLEAR:
        points, share = f"{number:g}", f"{100 * number:g}"
        raise InputError(
            f"{given} may mean {points} or {share} points", f"write {points}% or {share}%"
        )
    return number


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Join options into one decorator, shown in the order given."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def check_output(path: str, extensions: tuple[str, ...]) -> None:
    """Refuse an output that cannot be written, before anything is computed."""
    if not path.lower().endswith(extensions):
        raise InputError(f"unknown file extension: {path!r}", f"use {' or '.join(extensions)}")
    folder = Path(path).parent
    if not folder.absolute().is_dir():
        raise InputError(
            f"cannot write {path!r}: no folder {str(folder)!r}", "make the folder first"
        )


calibrator = click.argument("calibrator", metavar="CAL.json")
files = click.argument("files", nargs=-1, required=True, metavar="FILE...")
format_option = click.option(
    "--format", type=click.Choice([*FORMATS]), help="Format of FILE, for unknown file extensions."
)
_SEP = "What separates columns of text files: a character, or comma, semicolon, tab, pipe, space; "
_ENCODING = "Encoding of text files, such as cp1252 or utf-16; detected by default."
_DECIMAL = "Decimal mark of text files; detected by default."
dialect = together(
    click.option("--sep", metavar="CHAR", help=f"{_SEP}detected by default."),
    click.option("--decimal", type=click.Choice([".", ","]), help=_DECIMAL),
    click.option("--encoding", metavar="NAME", help=_ENCODING),
)
label = click.option("--label", required=True, metavar="COLUMN", help="Column of true labels.")
_PROB = "Column of P(--pos-label); with more than two classes, one --prob per class."
prob = click.option("--prob", required=True, multiple=True, metavar="COLUMN", help=_PROB)
_FITTED_PROB = "Column of probabilities, one --prob per class; by default as at the fit."
fitted_prob = click.option("--prob", multiple=True, metavar="COLUMN", help=_FITTED_PROB)
from_logits = click.option("--from-logits", is_flag=True, help="The --prob columns contain logits.")
weight = click.option("--weight", metavar="COLUMN", help="Column of sampling weights.")
_GROUP = "Column of units, such as patients, whose rows belong together."
group = click.option("--group", metavar="COLUMN", help=_GROUP)
classes = several_names("--classes", help="Labels in the order of --prob; sorted by default.")
variables = several_names("--variables", help="Columns to look along; by default all others.")
exclude = several_names("--exclude", help="Columns to ignore, such as ids.")
drop_unlabelled = click.option("--drop-unlabelled", is_flag=True, help="Skip rows without a label.")
as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output.")
report = click.option("-o", "--output", metavar="REPORT", help="A report: .html, .md or .json.")
_POS_LABEL = "The label that a single --prob column is the probability of; by default the second."
pos_label = click.option("--pos-label", metavar="LABEL", help=_POS_LABEL)
level = click.option("--level", type=float, default=0.95, help="Level of intervals and tests.")
#: What nearly every command takes: rows with their roles, how labels and how files are read.
rows = together(files, label, prob)
labels = together(classes, pos_label, drop_unlabelled)
how_read = together(format_option, dialect)
