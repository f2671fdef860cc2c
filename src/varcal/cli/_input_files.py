"""Rows and labels from the files and columns that are named on the command line."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from varcal._files.column_names import column_names, no_column
from varcal._files.dialect import UNSTATED, Stated
from varcal._files.find_sources import is_gzipped, source_of, sources_of
from varcal._files.open_files import json_blocks, read_json
from varcal._files.read_table import read_table
from varcal._files.source import DELIMITERS, Source, check_not_input, how_read, reading
from varcal.cli._program import say
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
                else:
                    sources.extend(sources_of(name, self.format, self.stated))
            if self.output is not None:
                check_not_input(self.output, sources)
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
        format, what = self.format, ""
        if format is None:
            format, what = _format_of_content(path)
        source = source_of(path, format, shown, self.stated)
        if what and source.plain:
            say("note", f"{shown} read as {what}")
        return source


def _is_pipe(name: str) -> bool:
    path = Path(name)
    try:
        return path.is_fifo() or path.is_socket() or path.is_char_device()
    except OSError:  # such as a name that is too long; looking for the file will say so
        return False


def _format_of_content(path: Path) -> tuple[str, str]:
    """Return the format of rows without a name, and how to call it."""
    try:
        with gzip.open(path) if is_gzipped(path) else path.open("rb") as file:
            head = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, EOFError):
        head = b""  # reading it as text will say what is wrong
    known = (found for mark, found in _MARKS.items() if head.startswith(mark))
    return next(known, ("csv", "comma-separated"))


def read_rows(
    files: Files,
    roles: dict[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None = None,
) -> tuple[Any, list[str]]:
    """Read a table and the names of its variables.

    Parameters
    ----------
    files : Files
        The files.
    roles : dict
        The columns that each option names.
    variables, exclude : sequence of str or None
        The variables, by default every column without a role; the columns to ignore.
    """
    with files.opened() as sources:
        taken = _checked_roles(sources[0], roles, variables, exclude)
        if variables is not None:
            table = _read(sources, [*taken, *variables])
            return table, list(dict.fromkeys(variables))
        table = _read(sources)
    return table, _others(table.column_names, [*taken, *(exclude or ())])


def read_roles(files: Files, roles: dict[str, Sequence[str]]) -> tuple[Any, list[str]]:
    """Read the columns that have a role, and return the names of those that could be variables."""
    with files.opened() as sources:
        taken = _checked_roles(sources[0], roles, None, None)
        others = _others(column_names(sources[0]), taken)
        unfit = _unfit(_known_types(sources[0]), others)
        return _read(sources, list(taken)), _others(others, unfit)


@contextmanager
def rows_in_place(
    files: Files,
    roles: dict[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None = None,
    named: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Give rows with the columns that are needed, and some labels; read large files in batches.

    Parameters
    ----------
    files, roles, variables, exclude
        As in `read_rows`.
    named : mapping, optional
        Columns that other options name, which must exist.
    """
    with files.opened() as sources:
        taken = _checked_roles(sources[0], roles, variables, exclude, named)
        if sum(source.path.stat().st_size for source in sources) <= LARGE:
            table = _read(sources, None if variables is None else [*taken, *variables])
            schema, data, labels = table.schema, table, table.column(roles["--label"][0])
        else:
            from varcal._engines.open import rows_of_sources  # noqa: PLC0415  slow to load

            schema, data = rows_of_sources(sources)
            frames: Any = data.map(roles["--label"], lambda frame, start: frame)
            head = next(frames, None)
            if head is None:
                raise _no_rows()
            labels = head.column(0)
            frames.close()
        if variables is None:
            others = _others(schema.names, [*taken, *(exclude or ())])
            data = data.select([*taken, *others])
        yield data, labels


def roles_of(given: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the columns of each role by the option that names them."""
    roles = ("label", "weight", "group", "time", "blocks")
    single = {f"--{role}": [given[role]] for role in roles if given.get(role)}
    return {**single, "--prob": given["prob"]}


def settings_of(given: Mapping[str, Any], data: Any, labels: Any) -> dict[str, Any]:
    """Return the arguments of `audit` and `slices` that tell what is judged in which rows."""
    return {
        "data": data,
        "level": given["level"],
        "classes": as_labels(given["classes"], labels),
        "pos_label": one_label(given["pos_label"], labels),
        "sample_weight": given["weight"],
        "groups": given["group"],
        "from_logits": given["from_logits"],
        "unlabelled": "drop" if given["drop_unlabelled"] else "raise",
        "include": given["include"],
    }


def _read(sources: Sequence[Source], columns: list[str] | None = None) -> Any:
    table = read_table(sources, columns)
    if not table.num_rows:
        raise _no_rows()
    return table


def _no_rows() -> InputError:
    return InputError("the file has no rows", "at least one row is needed")


def _checked_roles(
    source: Source,
    roles: dict[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None,
    others: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, None]:
    """Refuse columns that do not exist; return those that have a role."""
    known = column_names(source)
    asked = {**roles, "--variables": variables or (), "--exclude": exclude or (), **(others or {})}
    for option, names in asked.items():
        _check_named(option, names, known, source)
    return dict.fromkeys(name for names in roles.values() for name in names)


def _others(names: Sequence[str], taken: Collection[str]) -> list[str]:
    """Return the columns that have no role."""
    return [name for name in names if name not in taken]


def _unfit(schema: Any, names: Sequence[str]) -> list[str]:
    """Return the columns whose type a variable cannot have; a schema may lack some."""
    import pyarrow as pa  # noqa: PLC0415  pyarrow loads when a file is read

    types = {field.name: field.type for field in schema}
    return [
        name
        for name in names
        if name in types and (pa.types.is_nested(types[name]) or pa.types.is_binary(types[name]))
    ]


def _known_types(source: Source) -> Any:
    """Return the types that are known before a file is read: of text none, of JSON a few."""
    from varcal._files.streams import common_types  # noqa: PLC0415  pyarrow is slow to load

    if source.format in DELIMITERS:
        return ()
    if source.format == "jsonl":
        with reading(source):
            return read_json(next(json_blocks(source), b"")).schema
    return common_types([source], column_names(source))


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


def _check_named(option: str, names: Sequence[str], known: Sequence[str], source: Source) -> None:
    for name in names:
        if name not in known:
            error = no_column(name, known, source)
            raise error.reworded(f"{error.message} ({option})")
