"""The dialect of a text file, detected from its beginning."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from varcal._files._detection.separator import FirstRows, detected_separator
from varcal._files.dialect import Dialect, Stated, UncertainDialectError, encoding_name
from varcal.exceptions import InputError

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


#: How missing values are written, in lower case.
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "-nan", "#na"})
_PATTERNS = {
    "plain": r"[+-]?\d+([eE][+-]?\d+)?",
    "unclear comma": r"[+-]?[1-9]\d{0,2},\d{3}",
    "unclear dot": r"[+-]?[1-9]\d{0,2}\.\d{3}",
    "comma": r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?",
    "dot": r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?",
    "groups, dot": r"[+-]?[1-9]\d{0,2}((,\d{3})+\.\d*|(,\d{3}){2,})",
    "groups, comma": r"[+-]?[1-9]\d{0,2}((\.\d{3})+,\d*|(\.\d{3}){2,})",
    "spaced groups": "[+-]?[1-9]\\d{0,2}([ '\u00a0\u202f]\\d{3})+([.,]\\d*)?",
}
_KINDS = {kind: re.compile(pattern) for kind, pattern in _PATTERNS.items()}


@dataclass(frozen=True)
class NumberColumn:
    """One example of each way in which the numbers of a column are written."""

    name: str
    kinds: dict[str, str]

    def says(self, mark: str) -> bool:
        """Tell whether the numbers can only have this decimal mark."""
        name, other = ("comma", "dot") if mark == "," else ("dot", "comma")
        return any(f"{start}{name}" in self.kinds for start in ("", "groups, ")) and not any(
            f"{start}{other}" in self.kinds for start in ("", "groups, ")
        )


def number_columns(sample: FirstRows) -> list[NumberColumn]:
    """Return the columns of a sample whose values are all numbers, however they are written."""
    found = []
    for name, values in zip(sample.header, zip(*sample.regular(), strict=False), strict=False):
        kinds: dict[str, str] = {}
        for value in dict.fromkeys(value.strip() for value in values):
            if value.lower() in _MISSING:
                continue
            kind = next((kind for kind, one in _KINDS.items() if one.fullmatch(value)), None)
            if kind is None:
                break
            kinds.setdefault(kind, value)
        else:
            found.append(NumberColumn(name, kinds))
    return found


def detected_decimal(columns: Sequence[NumberColumn], shown: str) -> str:
    """Return the decimal mark that all columns of numbers can have."""
    commas = [column for column in columns if column.says(",")]
    dots = [column for column in columns if column.says(".")]
    unclear = [column for column in columns if "unclear comma" in column.kinds]
    if commas and dots:
        examples = [
            f"{_example(column, mark)!r} in column {column.name!r}"
            for column, mark in ((commas[0], ","), (dots[0], "."))
        ]
        problem = f"{shown} has {' and '.join(examples)}"
    elif commas:
        return ","
    elif unclear and not dots:
        value = unclear[0].kinds["unclear comma"]
        problem = (
            f"{value!r} in column {unclear[0].name!r} of {shown} may have a decimal comma or a "
            "thousands separator"
        )
    else:
        return "."
    raise UncertainDialectError(
        problem, "say which is the decimal mark with {decimal}", settings={"decimal": ...}
    )


def _example(column: NumberColumn, mark: str) -> str:
    name = "comma" if mark == "," else "dot"
    return column.kinds.get(name) or column.kinds[f"groups, {name}"]


def remarks_on(columns: Sequence[NumberColumn], decimal: str) -> Iterator[str]:
    """Name the columns of numbers that this decimal mark turns into text."""
    readable = {
        "plain",
        *(("comma", "unclear comma") if decimal == "," else ("dot", "unclear dot")),
    }
    for column in columns:
        other = [value for kind, value in column.kinds.items() if kind not in readable]
        if other:
            yield f"column {column.name!r} is read as text, because of values such as {other[0]!r}"


_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: Files that are not text, by their first bytes.
_OTHER_FILES = {
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"PK\x03\x04": "a zip archive or an Excel file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"SQLite format 3": "an SQLite database",
}
#: Bytes 0x80 to 0x9F that are not punctuation in cp1252 (€ ‚ „ … ‘ ’ “ ” • – —), or that are, but
#: stand between two letters, where only ’ – — are usual.
_RARE = re.compile(
    rb"[\x81\x83\x86-\x90\x98-\x9f]|(?<=[A-Za-z])[\x80\x82\x84\x85\x91\x93-\x95](?=[A-Za-z])"
)
#: Bytes that cp1252 does not define.
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
#: A letter of several bytes in UTF-8.
_UTF8_LETTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)


def detected_encoding(head: bytes, blocks: Iterator[bytes], stated: Stated, shown: str) -> str:
    """Return the encoding of a file; as few blocks as possible are read."""
    for start, what in _OTHER_FILES.items():
        if head.startswith(start):
            raise InputError(
                f"{shown} is {what}, not a text file",
                "save its rows as CSV or Parquet, or name the format with {format}",
                settings={"format": ...},
            )
    marked = next((name for mark, name in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), None)
    if stated.encoding == "utf-16" and marked is None:
        return _utf16_without_mark(head, shown)
    if stated.encoding is not None:
        return _stated_encoding(stated.encoding, marked, shown)
    if marked is not None:
        return marked
    if b"\0" in head:
        return _utf16_without_mark(head, shown)
    for block in chain([head], blocks):
        if not block.isascii():
            more = next(blocks, b"")[:3]  # completes a letter that the end of the block cuts
            return _encoding_of_letters(block + more, bool(more), shown)
    return "utf-8"


def _stated_encoding(encoding: str, marked: str | None, shown: str) -> str:
    """Return the encoding that the user states, unless the file begins with the mark of another."""
    if marked is None:
        return encoding
    # With a byte order mark, "utf-16-le" is the same as "utf-16".
    if encoding.startswith(marked.removesuffix("-sig")):
        return marked
    raise InputError(
        f"encoding is {encoding!r}, but {shown} begins with the mark of {encoding_name(marked)}",
        "leave out {encoding}",
        "encoding",
        {"encoding": None},
    )


def _utf16_without_mark(head: bytes, shown: str) -> str:
    """Return the byte order of UTF-16, whose header has a zero beside every ASCII letter."""
    for name, zeros in (("utf-16-le", 1), ("utf-16-be", 0)):
        line = head.partition("\n".encode(name))[0]
        # An ASCII header has a zero in every second byte, and in no other.
        if line and not any(line[zeros::2]) and all(line[1 - zeros :: 2]):
            return name
    problem = "contains zero bytes, so it is not text in UTF-8"
    if b"\0" not in head:
        problem = "is not in UTF-16: it contains no zero bytes"
    raise UncertainDialectError(
        f"{shown} {problem}",
        "if it is text, name its encoding with {encoding}",
        settings={"encoding": ...},
    )


def _encoding_of_letters(block: bytes, cut: bool, shown: str) -> str:
    """Return UTF-8 or cp1252, the superset of Latin-1, unless it could also be another encoding.

    Where cp1252 and Latin-1 have rare letters or nothing, encodings of DOS and the older Mac have
    the accented letters. The end of the block may be inside a letter, if the file goes on.
    """
    rest, letters = _UTF8_LETTER.subn(b"", block)
    if cut:
        rest = re.sub(rb"[\xc2-\xf4][\x80-\xbf]{0,2}\Z", b"", rest)
    if rest.isascii():
        return "utf-8"
    usual = sum(byte >= 0xA0 for byte in block)
    if letters:
        problem = f"{shown} is in UTF-8 in some places, but not everywhere"
    elif _UNDEFINED.search(block) or len(_RARE.findall(block)) > usual:
        problem = f"{shown} is not in UTF-8, and its encoding cannot be told"
    else:
        return "cp1252"
    raise UncertainDialectError(
        problem,
        "name it with {encoding}, for example cp1252, mac-roman, cp850 or shift-jis",
        settings={"encoding": ...},
    )


def decoded(head: bytes, encoding: str, shown: str) -> str:
    """Return the text at the beginning of a file."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError as error:
        reason = str(error)
        if isinstance(error, UnicodeDecodeError):
            reason = f"{error.reason} at byte {error.start:,}"
        raise InputError(
            f"{shown} is not in {encoding_name(encoding)}: {reason}",
            "name its encoding with {encoding}",
            settings={"encoding": ...},
        ) from None
