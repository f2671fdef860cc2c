"""Rows and labels from the files and columns that are named on the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from varcal._files.atomic import refuse_input
from varcal._files.dialect import UNSTATED, Stated
from varcal._files.source import Source, how_read, no_column, opened, source_of, sources_of
from varcal.cli._program import option_names, option_text, say
from varcal.exceptions import InputError

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
_ROLES = ("label", "weight", "group", "time", "blocks")


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
            for line in how_read(sources):
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
            from varcal._sums.files import rows_of_files  # noqa: PLC0415  slow to load

            data = rows_of_files(sources).select(list(needed))
            frames: Any = data.map(roles["--label"], lambda frame, start: frame)
            labels = next((frame.column(0) for frame in frames), ())
            frames.close()
        if not len(labels):
            raise InputError("the file has no rows", "at least one row is needed")
        yield data, labels


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
        "data": data,
        "classes": as_labels(given["classes"], labels),
        "pos_label": one_label(given["pos_label"], labels),
        "sample_weight": given["weight"],
        "groups": given["group"],
        "unlabelled": "drop" if given["drop_unlabelled"] else "raise",
        **{name: given[name] for name in more if name in given},
    }


def as_labels(texts: Sequence[str] | None, column: Any) -> list[Hashable] | None:
    """Give labels from the command line the type of a column's labels."""
    import pyarrow as pa  # noqa: PLC0415

    if texts is None:
        return None
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


def one_label(text: str | None, column: Any) -> Hashable:
    """Give one label from the command line the type of a column's labels."""
    labels = as_labels(None if text is None else [text], column)
    return None if labels is None else labels[0]


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
        options = {"sample_weight": "weight", "groups": "group", "time": "time", "blocks": "blocks"}
        for argument, option in options.items():
            names[argument] = f"--{option} {given.get(option)!r}"
        raise InputError(*error.spelled(names, option_text)) from None
