"""Options that several commands take, and the rows of the files that they name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import click

from varcal._files.atomic import refuse_input
from varcal._files.dialect import UNSTATED, Stated
from varcal._files.formats import FORMATS, Source, no_column, opened, source_of, sources_of
from varcal._files.formats import how_read as reading_notes
from varcal.cli._program import option_names, option_text, say
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
        params = [copy(option) for option in self.params]
        once = [o for o in params if isinstance(o, click.Option) and not (o.is_flag or o.multiple)]
        for option in once:
            option.multiple = True
        reader = click.Command(None, params=params)
        try:
            given = reader.make_parser(ctx).parse_args(list(args))[0]
        except click.UsageError as error:
            error.ctx = ctx  # so that the hint names the command
            raise
        for option in once:
            values: list[str] = given.get(option.name) or []
            if len(values) > 1 and not ctx.resilient_parsing:
                flag, shown = max(option.opts, key=len), " and ".join(map(repr, values))
                raise InputError(f"{flag} is given more than once: {shown}", f"give {flag} once")
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
    if ctx.params.get("gap") == "difference":
        return amount(ctx, option, value)
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


def amount(ctx: click.Context, option: click.Parameter, value: str) -> float:
    """Read a difference in the unit of the outcome."""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        hint = "write a number in the unit of the outcome, such as 0.5"
        raise InputError(f"{option.opts[0]} {value} is not a difference", hint)
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
    if Path(path).is_dir():
        example = Path(path, f"result{extensions[0]}")
        raise InputError(f"{path!r} is a folder", f"name a file in it, such as {example}")
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
_PROB = "Column of probabilities of --pos-label; with more than two classes, one --prob for each."
prob = click.option("--prob", required=True, multiple=True, metavar="COLUMN", help=_PROB)
_FITTED_PROB = "Column of probabilities, one --prob per class; by default those of the fit."
fitted_prob = click.option("--prob", multiple=True, metavar="COLUMN", help=_FITTED_PROB)
from_logits = click.option("--from-logits", is_flag=True, help="The --prob columns contain logits.")
weight = click.option("--weight", metavar="COLUMN", help="Column of sampling weights.")
_GROUP = "Column of units, such as patients, whose rows belong together."
group = click.option("--group", metavar="COLUMN", help=_GROUP)
classes = several_names("--classes", help="Labels in the order of --prob; sorted by default.")
variables = several_names("--variables", help="Variables to check; by default all other columns.")
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


#: Files that have more bytes than this in all are not read at once but in batches.
LARGE = 200_000_000
#: The names of standard input.
STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0")
#: The formats that are recognized by the first bytes of a pipe, with a name for people.
_MARKS = {
    b"PAR1": ("parquet", "Parquet"),
    b"ARROW1": ("arrow", "Arrow"),
    b"\xff\xff\xff\xff": ("arrow", "Arrow"),  # the stream format
    b"{": ("jsonl", "JSON lines"),
}
#: The options that name one column with a role.
_ROLES = ("label", "weight", "group", "time", "blocks", "exposure")


@dataclass(frozen=True)
class Files:
    """The files that a command reads, as they are named on the command line.

    Attributes
    ----------
    names : tuple of str
        Paths, globs, or - for standard input.
    format : str or None
        Their format, if the user names it.
    stated : Stated
        What the user says about text files.
    output : str or None
        A file that the command writes, which must not be one of its inputs.
    """

    names: tuple[str, ...]
    format: str | None = None
    stated: Stated = UNSTATED
    output: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], output: str | None = None) -> Files:
        """Read the options of a command."""
        stated = Stated(given["sep"], given["decimal"], given["encoding"])
        return cls(tuple(given["files"]), given["format"], stated, output)

    @contextmanager
    def opened(self) -> Iterator[tuple[Source, ...]]:
        """List the files, and say how they are read; pipes become temporary files."""
        if len(self.names) > 1 and set(STANDARD_INPUT) & set(self.names):
            raise InputError(
                "- (standard input) is given together with other files", "give it alone"
            )
        with ExitStack() as stack:
            sources: list[Source] = []
            for name in self.names:
                if name in STANDARD_INPUT or _is_pipe(name):
                    sources.append(self._kept(name, stack))
                elif sources and not Path(name).suffix and not glob(name):
                    raise InputError(
                        f"no file {name!r}",
                        f"if it is a column, separate columns by commas, as in age,{name}",
                    )
                else:
                    sources.extend(sources_of(name, self.format, self.stated))
            if self.output is not None:
                refuse_input(self.output, "an input file", *(source.path for source in sources))
            for line in reading_notes(sources):
                say("note", line)
            yield tuple(sources)

    def _kept(self, name: str, stack: ExitStack) -> Source:
        """Copy a pipe, which can be read only once, into a temporary file."""
        standard = name in STANDARD_INPUT
        if standard and sys.stdin.isatty():
            raise InputError("standard input is a terminal", "pipe rows into it: … | varcal …")
        import shutil  # noqa: PLC0415  only pipes need them
        import tempfile  # noqa: PLC0415

        shown = "standard input" if standard else repr(name)
        path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "rows")
        with path.open("wb") as file, ExitStack() as pipe:
            given = sys.stdin.buffer if standard else pipe.enter_context(Path(name).open("rb"))
            shutil.copyfileobj(given, file)
        format, what = (self.format, "") if self.format else _format_of_content(path)
        source = source_of(path, format, shown, self.stated)
        if what and source.plain:
            say("note", f"{shown} read as {what}")
        return source


def _is_pipe(name: str) -> bool:
    return os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)


def _format_of_content(path: Path) -> tuple[str, str]:
    """Return the format of rows without a name, and how to call it."""
    try:
        with opened(path) as (file, _):
            head = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, EOFError):
        head = b""  # reading it as text will say what is wrong
    known = (found for mark, found in _MARKS.items() if head.startswith(mark))
    return next(known, ("csv", "comma-separated"))


@contextmanager
def rows_in_place(
    files: Files,
    roles: Mapping[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None = None,
    named: Mapping[str, Sequence[str]] | None = None,
    *,
    whole: bool = False,
) -> Iterator[tuple[Any, Any]]:
    """Give rows with the columns that are needed, and some labels; read large files in batches.

    Parameters
    ----------
    files : Files
        The files.
    roles : mapping
        The columns that each option names.
    variables, exclude : sequence of str or None
        The variables, by default every column without a role; the columns to ignore.
    named : mapping, optional
        Columns that other options name, which must exist.
    whole : bool
        Whether large files are read at once as well.
    """
    with files.opened() as sources:
        known = sources[0].schema.names
        asked = {**roles, "--variables": variables or (), "--exclude": exclude or ()}
        for option, names in {**asked, **(named or {})}.items():
            for name in names:
                if name not in known:
                    error = no_column(name, sources[0])
                    raise error.reworded(f"{error.message} ({option})")
                if option == "--exclude" and name in (variables or ()):
                    raise InputError(
                        f"{name!r} is in --variables and in --exclude", "name it in one of them"
                    )
        needed = dict.fromkeys(name for names in roles.values() for name in names)
        if variables is None:
            variables = [name for name in known if name not in {*needed, *(exclude or ())}]
        needed |= dict.fromkeys(variables)
        if whole or sum(source.path.stat().st_size for source in sources) <= LARGE:
            from varcal._files.read_rows import read_table  # noqa: PLC0415  loads pyarrow

            data: Any = read_table(sources, list(needed))
            labels = data.column(roles["--label"][0])
        else:
            from varcal._sums.sources import rows_of_files  # noqa: PLC0415  slow to load

            data = rows_of_files(sources).select(list(needed))
            frames: Any = data.map(roles["--label"], lambda frame, start: frame)
            labels = next((frame.column(0) for frame in frames), ())
            frames.close()
        if not len(labels):
            raise InputError("the file has no rows", "at least one row is needed")
        yield data, labels


@contextmanager
def judged_rows(
    given: Mapping[str, Any], output: str | None = None, *named: str
) -> Iterator[dict[str, Any]]:
    """Give the arguments of the library for the rows that a command names.

    Errors of the library name the options and their columns.

    Parameters
    ----------
    given : mapping
        The options.
    output : str or None
        A file that the command writes.
    *named : str
        Other options that name columns.
    """
    others = {f"--{option}": given[option] or () for option in named}
    files, roles = Files.of(given, output), roles_of(given)
    rows = rows_in_place(files, roles, given["variables"], given["exclude"], others)
    with rows as (data, labels), naming_columns(given):
        variables = {"X": given["variables"]} if given["variables"] else {}
        yield {"p": list(given["prob"]), **variables, **settings_of(given, data, labels)}


def read_rows(
    files: Files,
    roles: Mapping[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None = None,
) -> tuple[Any, list[str]]:
    """Read a table of any size at once; also return the names of its variables."""
    ignored = list(exclude or ())  # which the table still has
    rows = rows_in_place(files, roles, variables, named={"--exclude": ignored}, whole=True)
    with rows as (table, _):
        taken = {*ignored, *(name for names in roles.values() for name in names)}
        return table, [name for name in variables or table.column_names if name not in taken]


def roles_of(given: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the columns of each role by the option that names them."""
    single = {f"--{role}": [given[role]] for role in _ROLES if given.get(role)}
    return {**single, "--prob": given["prob"]}


def settings_of(given: Mapping[str, Any], data: Any, labels: Any) -> dict[str, Any]:
    """Return the arguments of the library that tell what is judged in which rows."""
    more = ("level", "from_logits", "include")
    return {
        "y": given["label"],
        "data": data,
        **labels_of(given, labels),
        "sample_weight": given["weight"],
        "groups": given["group"],
        "unlabelled": "drop" if given["drop_unlabelled"] else "raise",
        **{name: given[name] for name in more if name in given},
    }


def labels_of(given: Mapping[str, Any], column: Any) -> dict[str, Any]:
    """Return the arguments that name labels, which have the type of a column's labels."""
    classes, positive = given["classes"], given["pos_label"]
    return {
        "classes": None if classes is None else _as_labels(classes, column),
        "pos_label": None if positive is None else _as_labels([positive], column)[0],
    }


def _as_labels(texts: Sequence[str], column: Any) -> list[Hashable]:
    import pyarrow as pa  # noqa: PLC0415

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    try:
        cast: list[Hashable] = pa.array(list(texts)).cast(kind).to_pylist()
    except (pa.ArrowException, UnicodeEncodeError):  # half of a surrogate pair is no text
        shown = ", ".join(map(repr, column.unique().to_pylist()[:8]))
        raise InputError(
            f"labels {', '.join(map(repr, texts))} are not of the type of the label column, {kind}",
            f"the file has {shown}",
        ) from None
    return cast


@contextmanager
def naming_columns(given: Mapping[str, Any], prob: Sequence[str] | None = None) -> Iterator[None]:
    """Add to the options in messages the columns that they name.

    Parameters
    ----------
    given : mapping
        The options.
    prob : sequence of str, optional
        The names of sets of probabilities, if --prob does not give columns alone.
    """
    try:
        yield
    except InputError as error:
        names = option_names() | {"y": f"the label column {given['label']!r}"}
        if not error.message.startswith(("p '", 'p "')):  # which already names a column
            names["p"] = f"--prob {', '.join(map(repr, prob or given['prob']))}"
        for role in ("weight", "group", "time", "blocks", "exposure"):
            argument = {"weight": "sample_weight", "group": "groups"}.get(role, role)
            names[argument] = f"--{role} {given.get(role)!r}"
        message, hint = error.spelled(names, option_text)
        raise InputError(message, hint, settings=error.settings) from None
