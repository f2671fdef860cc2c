"""Rows and labels from the files and columns that are named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from varcal._files.sources import Source, column_names, read_table, sources_of
from varcal.exceptions import InputError

#: Files that have more bytes than this in all are not read at once but in batches.
LARGE = 200_000_000


@contextmanager
def opened(files: Sequence[str], format: str | None) -> Iterator[tuple[Source, ...]]:
    """List the files; standard input (-) becomes a temporary file."""
    if "-" not in files:
        yield sources_of(files, format)
        return
    if list(files) != ["-"]:
        raise InputError("- (standard input) is given together with other files", "give it alone")
    if format is None:
        raise InputError("the format of standard input is not known", "add --format csv")
    if sys.stdin.isatty():
        raise InputError("standard input is a terminal", "pipe rows into it: … | varcal …")
    import shutil  # noqa: PLC0415  only standard input needs them
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"stdin.{format}")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield (Source(path, format, False, "standard input"),)


def read_rows(
    files: Sequence[str],
    format: str | None,
    roles: dict[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None = None,
) -> tuple[Any, list[str]]:
    """Read a table and the names of its variables.

    Parameters
    ----------
    files, format
        As on the command line.
    roles : dict
        The columns that each option names.
    variables, exclude : sequence of str or None
        The variables, by default every column without a role; the columns to ignore.
    """
    with opened(files, format) as sources:
        taken = _checked_roles(sources[0], roles, variables, exclude)
        if variables is not None:
            table = _read(sources, [*taken, *variables])
            return table, list(dict.fromkeys(variables))
        table = _read(sources)
    return table, _usable_columns(table.schema, {*taken, *(exclude or ())})


@contextmanager
def rows_in_place(
    files: Sequence[str],
    format: str | None,
    roles: dict[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None = None,
) -> Iterator[tuple[Any, list[str], Any]]:
    """Give rows, the names of their variables and some labels; read large files in batches.

    Parameters
    ----------
    files, format, roles, variables, exclude
        As in `read_rows`.
    """
    with opened(files, format) as sources:
        taken = _checked_roles(sources[0], roles, variables, exclude)
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
        names = variables
        if names is None:
            names = _usable_columns(schema, {*taken, *(exclude or ())})
        yield data, list(dict.fromkeys(names)), labels


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
) -> dict[str, None]:
    """Refuse columns that do not exist; return those that have a role."""
    known = column_names(source)
    asked = roles | {"--variables": variables or (), "--exclude": exclude or ()}
    for option, names in asked.items():
        _check_named(option, names, known, source)
    return dict.fromkeys(name for names in roles.values() for name in names)


def _usable_columns(schema: Any, taken: set[str]) -> list[str]:
    """Return the columns that can be variables, and warn about those that cannot."""
    import pyarrow as pa  # noqa: PLC0415  pyarrow loads when a file is read

    others = [name for name in schema.names if name not in taken]
    unfit = [
        name
        for name in others
        if pa.types.is_nested(schema.field(name).type)
        or pa.types.is_binary(schema.field(name).type)
    ]
    if unfit:
        shown = ", ".join(f"{name} ({schema.field(name).type})" for name in unfit)
        print(
            f"warning: columns of these types cannot be variables and are ignored: {shown}",
            file=sys.stderr,
        )
    return [name for name in others if name not in unfit]


def as_labels(texts: Sequence[str] | None, column: Any) -> list[Hashable] | None:
    """Give labels from the command line the type of a column's labels."""
    import pyarrow as pa  # noqa: PLC0415

    if texts is None:
        return None
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    try:
        cast: list[Hashable] = pa.array(list(texts)).cast(kind).to_pylist()
    except pa.ArrowException:
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
            error = InputError.no_column(name, known, where=source.shown)
            raise error.reworded(f"{error.message} ({option})")
