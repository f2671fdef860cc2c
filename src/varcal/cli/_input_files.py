"""From file arguments and column names to a table."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from varcal._engines.open import rows_of_sources
from varcal._files.sources import Source, column_names, read_table, sources_of
from varcal.exceptions import InputError, nearest

#: Files of more bytes than this in all are worked on in batches instead of being read.
LARGE = 200_000_000


@contextmanager
def opened(files: Sequence[str], format: str | None) -> Iterator[tuple[Source, ...]]:
    """List the files that are meant; standard input (-) becomes a file as long as it is read."""
    if "-" not in files:
        yield sources_of(files, format)
        return
    if list(files) != ["-"]:
        raise InputError("- (standard input) comes with other files", "give it alone")
    if format is None:
        raise InputError("the format of standard input is not known", "say it: --format csv")
    if sys.stdin.isatty():
        raise InputError("standard input is a terminal", "pipe the rows in: … | varcal …")
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
        By option, the columns that it names.
    variables, exclude : sequence of str or None
        None for every column without a role.
    """
    with opened(files, format) as sources:
        taken = _checked_roles(sources[0], roles, variables, exclude)
        if variables is not None:
            table = read_table(sources, [*taken, *variables])
            return table, list(dict.fromkeys(variables))
        table = read_table(sources)
    return table, _fit_columns(table.schema, {*taken, *(exclude or ())})


@contextmanager
def rows_in_place(
    files: Sequence[str],
    format: str | None,
    roles: dict[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None = None,
) -> Iterator[tuple[Any, list[str], Any]]:
    """Give rows, the names of their variables and some labels; large files are not read at once.

    Parameters
    ----------
    files, format, roles, variables, exclude
        As in `read_rows`.
    """
    with opened(files, format) as sources:
        taken = _checked_roles(sources[0], roles, variables, exclude)
        if sum(source.path.stat().st_size for source in sources) <= LARGE:
            table = read_table(sources, None if variables is None else [*taken, *variables])
            schema, data, labels = table.schema, table, table.column(roles["--label"][0])
        else:
            schema, data = rows_of_sources(sources)
            frames: Any = data.map(roles["--label"], lambda frame, start: frame)
            head = next(frames, None)
            if head is None:
                raise InputError("the file has no rows", "at least one row is needed")
            labels = head.column(0)
            frames.close()
        names = variables
        if names is None:
            names = _fit_columns(schema, {*taken, *(exclude or ())})
        yield data, list(dict.fromkeys(names)), labels


def _checked_roles(
    source: Source,
    roles: dict[str, Sequence[str]],
    variables: Sequence[str] | None,
    exclude: Sequence[str] | None,
) -> dict[str, None]:
    """Refuse columns that are not there; return those that have a role."""
    known = column_names(source)
    asked = roles | {"--variables": variables or (), "--exclude": exclude or ()}
    for option, names in asked.items():
        _check_named(option, names, known, source)
    return dict.fromkeys(name for names in roles.values() for name in names)


def _fit_columns(schema: Any, taken: set[str]) -> list[str]:
    """Return the columns that can be variables, and say which cannot."""
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
        print(f"warning: left out, as they are no variables: {shown}", file=sys.stderr)
    return [name for name in others if name not in unfit]


@contextmanager
def naming(given: Mapping[str, Any], prob: Sequence[str] | None = None) -> Iterator[None]:
    """Call y, p, weights and groups in messages by the columns that they came from.

    Parameters
    ----------
    given : mapping
        The options.
    prob : sequence of str, optional
        The names of sets of probabilities, where they are not the columns of --prob.
    """
    label, prob = given["label"], given["prob"] if prob is None else prob
    try:
        yield
    except InputError as error:
        spoken = {"y and p are empty": "the file has no rows"}.get(error.message, error.message)
        shown = ", ".join(map(repr, prob))
        for name, option in (("sample_weight", "weight"), ("groups", "group")):
            spoken = re.sub(rf"^{name}\b", f"--{option} {given[option]!r}", spoken)
        spoken = re.sub(r"^y\b", f"the label column {label!r}", spoken)
        spoken = re.sub(r"^p\b( '.*?')?", lambda m: f"--prob{m[1] or ' ' + shown}", spoken)
        spoken = re.sub(r"\bp is for\b", f"--prob {shown} is for", spoken)
        raise InputError(spoken, error.hint) from None


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
            f"labels {', '.join(map(repr, texts))} are not of the type {kind} of the label column",
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
            near = nearest(name, known)
            shown = ", ".join(known[:12]) + (" …" if len(known) > 12 else "")
            raise InputError(
                f"no column {name!r} in {source.shown} ({option})",
                f"did you mean {near!r}?" if near else f"its columns are {shown}",
            )
