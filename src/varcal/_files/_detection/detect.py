"""The dialect of a text file, detected from its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from varcal._files._detection.decimal_mark import detected_decimal, number_columns, remarks_on
from varcal._files._detection.encoding import decoded, detected_encoding
from varcal._files._detection.separator import FirstRows, detected_separator
from varcal._files.dialect import Dialect, Stated

#: Bytes at the beginning of a file from which separator and decimal mark are detected: some
#: thousand rows, in a hundredth of a second.
HEAD_BYTES = 1 << 18


@dataclass(frozen=True)
class Detected:
    """The dialect of a file, and what a user should know about it.

    Attributes
    ----------
    dialect : Dialect
        How the file is written.
    remarks : tuple of str
        One sentence per surprise, such as a column of numbers that are read as text.
    """

    dialect: Dialect
    remarks: tuple[str, ...] = ()


def detect(
    blocks: Iterator[bytes], stated: Stated, shown: str, default: str = ",", *, rows: bool = True
) -> Detected:
    r"""Find out how a text file is written.

    Parameters
    ----------
    blocks : iterator of bytes
        The decompressed file in blocks of at least `HEAD_BYTES`, of which as few as possible are
        read.
    stated : Stated
        What the user says.
    shown : str
        The name of the file in messages.
    default : str
        The separator of a file whose header has a single column.
    rows : bool
        Whether the file has columns between separators; if not, only its encoding is detected.

    Raises
    ------
    UncertainDialectError
        If the file can be read in several ways.

    Examples
    --------
    >>> from varcal._files.dialect import UNSTATED
    >>> detect(iter([b"y;p\n1;0,83\n"]), UNSTATED, "'a.csv'").dialect.describe()
    'semicolon-separated, decimal comma'
    """
    head = next(blocks, b"")
    encoding = detected_encoding(head, blocks, stated, shown)
    text = decoded(head, encoding, shown)
    if not rows or not text.strip():
        return Detected(Dialect(stated.sep or default, stated.decimal or ".", encoding))
    whole = len(head) < HEAD_BYTES
    separator = stated.sep or detected_separator(text, shown, default, whole=whole)
    columns = number_columns(FirstRows.of(text, separator, whole=whole))
    decimal = stated.decimal or detected_decimal(columns, shown)
    newline = "\r\n" if "\r\n" in text else "\n"
    return Detected(
        Dialect(separator, decimal, encoding, newline), tuple(remarks_on(columns, decimal))
    )
