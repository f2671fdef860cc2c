"""One file of rows: where it is, its format, and how it is read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from varcal._files.atomic import refuse_input
from varcal._files.dialect import PLAIN, Dialect
from varcal._files.formats import DELIMITERS
from varcal.exceptions import VarcalWarning


@dataclass(frozen=True)
class Source:
    """One file of rows.

    Attributes
    ----------
    path : Path
        The path of the file.
    format : str
        One of the keys of `FORMATS`.
    gzipped : bool
        Whether the whole file is compressed.
    shown : str
        The name of the file in messages.
    dialect : Dialect
        How a text file is written.
    remarks : tuple of str
        What a user should know about the file.
    """

    path: Path
    format: str
    gzipped: bool
    shown: str
    dialect: Dialect = PLAIN
    remarks: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether a text file is written in the usual way of its format."""
        usual = self.dialect.separator == DELIMITERS.get(self.format, self.dialect.separator)
        utf8 = self.dialect.encoding.startswith("utf-8")
        return usual and utf8 and self.dialect.decimal == "."


def how_read(sources: Sequence[Source]) -> list[str]:
    """Say how text files are read if that is not the usual way of their format.

    Returns
    -------
    list of str
        One line per dialect, and one per remark.
    """
    by_dialect: dict[str, list[Source]] = {}
    for source in sources:
        if not source.plain:
            what = source.dialect.describe()
            if source.format not in DELIMITERS:
                what = source.dialect.encoding
            by_dialect.setdefault(what, []).append(source)
    lines = []
    for what, alike in by_dialect.items():
        more = f" and {len(alike) - 1:,} more" if len(alike) > 1 else ""
        lines.append(f"{alike[0].shown}{more} read as {what}")
    remarks = dict.fromkeys(
        f"{remark} ({source.shown})" for source in sources for remark in source.remarks
    )
    return [*lines, *remarks]


def warn_how_read(sources: Sequence[Source]) -> None:
    """Warn a user of Python about text files that are not written in the usual way."""
    for line in how_read(sources):
        warnings.warn(line, VarcalWarning, stacklevel=3)


def check_not_input(out: str | PathLike[str], sources: Sequence[Source]) -> None:
    """Refuse an output that would replace one of the files that are read."""
    refuse_input(out, "an input file", *(source.path for source in sources))
