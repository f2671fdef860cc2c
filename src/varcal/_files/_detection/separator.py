"""The separator of a text file: the one that splits its first rows alike."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from varcal._files.dialect import SEPARATORS, UncertainDialectError


@dataclass
class FirstRows:
    """The first rows of a file under one separator.

    Attributes
    ----------
    header : list of str
        The first row that is not empty.
    rows : list of list of str
        Those after it.
    """

    header: list[str]
    rows: list[list[str]] = field(default_factory=list)

    @classmethod
    def of(cls, text: str, separator: str, *, whole: bool) -> FirstRows:
        """Split the first rows; the last one may be cut if the text is not the whole file."""
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        rows: list[list[str]] = []
        # A field that is longer than the reader allows ends the sample; the rows before it are
        # enough.
        with suppress(csv.Error):
            rows.extend(row for row in reader if row)
        if not whole and len(rows) > 1:
            rows.pop()
        return cls(rows[0] if rows else [], rows[1:])

    @property
    def consistent(self) -> bool:
        """Whether all rows have as many fields as the header."""
        return all(len(row) == len(self.header) for row in self.rows)

    def regular(self) -> Iterator[list[str]]:
        """Yield the rows that have as many fields as the header."""
        return (row for row in self.rows if len(row) == len(self.header))


def detected_separator(text: str, shown: str, default: str, *, whole: bool) -> str:
    """Return the separator; the default if the header is a single column."""
    splitting = {
        mark: FirstRows.of(text, mark, whole=whole)
        for mark in SEPARATORS.values()
        if _splits(_header(text, mark))
    }
    if not splitting:
        return _separator_of_one_column(FirstRows.of(text, default, whole=whole), shown, default)
    if len(splitting) == 1:
        return next(iter(splitting))
    fitting = [mark for mark, one in splitting.items() if one.rows and one.consistent]
    if len(fitting) == 1:
        return fitting[0]
    ways = " or ".join(f"{mark!r} ({len(splitting[mark].header)} columns)" for mark in splitting)
    line = text.lstrip("\r\n").splitlines()[0]
    raise UncertainDialectError(
        f"the columns of {shown} may be separated by {ways}: {cut(line)!r}",
        "say which with {sep}",
        settings={"sep": ...},
    )


def _separator_of_one_column(sample: FirstRows, shown: str, default: str) -> str:
    if sample.consistent:
        return default
    odd = next(row for row in sample.rows if len(row) != len(sample.header))
    header = cut(default.join(sample.header))
    raise UncertainDialectError(
        f"the header of {shown} has a single column, {header!r}, but a row is "
        f"{cut(default.join(odd))!r}",
        "say what separates columns with {sep}, and with {decimal} if that is a decimal comma",
        settings={"sep": ..., "decimal": ","},
    )


def _header(text: str, separator: str) -> list[str]:
    """Return the first row that is not empty."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    with suppress(csv.Error):
        return next((row for row in reader if row), [])
    return []


def _splits(header: list[str]) -> bool:
    """Tell whether a separator splits a header, and does so outside of quotes."""
    return len(header) > 1 and not any(name.count('"') % 2 for name in header)


def cut(text: str, most: int = 60) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= most else text[: most - 1] + "…"
