"""How text files are written: separator, decimal mark, encoding and line ends."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from varcal.exceptions import InputError

#: The separators that are detected, by their names.
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
#: Bytes at the beginning of a file from which separator and decimal mark are detected: some
#: thousand rows, in a hundredth of a second.
HEAD_BYTES = 1 << 18

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
#: How missing values are written, in lower case.
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "-nan", "#na"})


@dataclass(frozen=True)
class Dialect:
    """How a text file is written.

    Attributes
    ----------
    separator : str
        The character between columns; not used by JSON lines.
    decimal : {".", ","}
        The decimal mark.
    encoding : str
        The name of a codec; "utf-8-sig" is UTF-8 with a byte order mark.
    newline : str
        The end of a line.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    newline: str = "\n"

    def describe(self) -> str:
        """Say how the file is written.

        >>> Dialect(";", ",", "cp1252").describe()
        'semicolon-separated, decimal comma, cp1252'
        """
        names = {mark: f"{name}-separated" for name, mark in SEPARATORS.items()}
        parts = [names.get(self.separator, f"separated by {self.separator!r}")]
        if self.decimal == ",":
            parts.append("decimal comma")
        if not self.encoding.startswith("utf-8"):
            parts.append(encoding_name(self.encoding))
        return ", ".join(parts)


def encoding_name(encoding: str) -> str:
    """Write the name of an encoding as people know it.

    >>> encoding_name("utf-16"), encoding_name("cp1252"), encoding_name("iso8859-1")
    ('UTF-16', 'cp1252', 'Latin-1')
    """
    if encoding == "iso8859-1":
        return "Latin-1"
    return encoding.upper() if encoding.startswith("utf") else encoding


#: Comma-separated UTF-8 with decimal points.
PLAIN = Dialect()


@dataclass(frozen=True)
class Stated:
    """What the user says about text files; what is None is detected.

    Attributes
    ----------
    sep : str or None
        The separator: a character, or one of the names in `SEPARATORS`.
    decimal : str or None
        The decimal mark.
    encoding : str or None
        The encoding.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None:
            object.__setattr__(self, "sep", _separator(self.sep))
        if self.decimal not in (None, ".", ","):
            raise InputError(
                f"decimal must be '.' or ','; got {self.decimal!r}",
                "numbers with another decimal mark have to be converted first",
                "decimal",
            )
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _codec(self.encoding))


def _separator(text: str) -> str:
    named = SEPARATORS | {"space": " ", r"\t": "\t"}
    mark = named.get(text.lower(), text)
    if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
        raise InputError(
            f"sep must be one character or one of {', '.join(SEPARATORS)}, space; got {text!r}",
            "for example {sep}",
            "sep",
            {"sep": "semicolon"},
        )
    return mark


def _codec(name: str) -> str:
    try:
        found = codecs.lookup(name)
        found.incrementaldecoder().decode(b"")  # which codecs such as base64 cannot do to text
        if not isinstance("".encode(found.name), bytes):
            raise LookupError
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"encoding {name!r} is not known",
            "common ones are utf-8, utf-16, cp1252, latin-1 and mac-roman",
            "encoding",
        ) from None
    return found.name


#: Nothing is stated, so everything is detected.
UNSTATED = Stated()


class UncertainDialectError(InputError):
    """A text file whose separator, decimal mark or encoding can be read in several ways."""


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


@dataclass
class _Sample:
    """The first rows of a file under one separator."""

    header: list[str]
    rows: list[list[str]] = field(default_factory=list)

    @property
    def consistent(self) -> bool:
        return all(len(row) == len(self.header) for row in self.rows)


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
    >>> detect(iter([b"y;p\n1;0,83\n"]), UNSTATED, "'a.csv'").dialect.describe()
    'semicolon-separated, decimal comma'
    """
    head = next(blocks, b"")
    encoding = _encoding(head, blocks, stated, shown)
    text = _decoded(head, encoding, shown)
    if not rows or not text.strip():
        return Detected(Dialect(stated.sep or default, stated.decimal or ".", encoding))
    whole = len(head) < HEAD_BYTES
    separator = stated.sep or _detected_separator(text, whole, shown, default)
    columns = _columns(_sample(text, whole, separator))
    decimal = stated.decimal or _detected_decimal(columns, shown)
    newline = "\r\n" if "\r\n" in text else "\n"
    return Detected(
        Dialect(separator, decimal, encoding, newline), tuple(_remarks(columns, decimal))
    )


# ------------------------------------------------------------------ encoding


def _encoding(head: bytes, blocks: Iterator[bytes], stated: Stated, shown: str) -> str:
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
    for block in _from(head, blocks):
        if not block.isascii():
            more = next(blocks, b"")[:3]  # completes a letter that the end of the block cuts
            return _encoding_of_letters(block + more, bool(more), shown)
    return "utf-8"


def _stated_encoding(encoding: str, marked: str | None, shown: str) -> str:
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


def _from(head: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from blocks


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


def _decoded(head: bytes, encoding: str, shown: str) -> str:
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


# ------------------------------------------------------------------ separator


def _sample(text: str, whole: bool, separator: str) -> _Sample:
    """Split the first rows; the last one may be cut if the text is not the whole file."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    # A field that is longer than the reader allows ends the sample; the rows before it are enough.
    with suppress(csv.Error):
        rows.extend(row for row in reader if row)
    if not whole and len(rows) > 1:
        rows.pop()
    return _Sample(rows[0] if rows else [], rows[1:])


def _header(text: str, separator: str) -> list[str]:
    """Return the first row that is not empty."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    with suppress(csv.Error):
        return next((row for row in reader if row), [])
    return []


def _splits(header: list[str]) -> bool:
    """Tell whether a separator splits a header, and does so outside of quotes."""
    return len(header) > 1 and not any(name.count('"') % 2 for name in header)


def _detected_separator(text: str, whole: bool, shown: str, default: str) -> str:
    splitting = {
        mark: _sample(text, whole, mark)
        for mark in SEPARATORS.values()
        if _splits(_header(text, mark))
    }
    if not splitting:
        return _separator_of_one_column(_sample(text, whole, default), shown, default)
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


def _separator_of_one_column(sample: _Sample, shown: str, default: str) -> str:
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


def cut(text: str, most: int = 60) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= most else text[: most - 1] + "…"


# ------------------------------------------------------------------ decimal mark

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
class _Column:
    """One example of each way in which the numbers of a column are written."""

    name: str
    kinds: dict[str, str]

    def says(self, mark: str) -> bool:
        """Tell whether the numbers can only have this decimal mark."""
        name, other = ("comma", "dot") if mark == "," else ("dot", "comma")
        return any(f"{start}{name}" in self.kinds for start in ("", "groups, ")) and not any(
            f"{start}{other}" in self.kinds for start in ("", "groups, ")
        )


def _columns(sample: _Sample) -> list[_Column]:
    """Return the columns of a sample whose values are all numbers, however they are written."""
    found = []
    for name, values in zip(sample.header, zip(*_regular(sample), strict=False), strict=False):
        kinds: dict[str, str] = {}
        for value in dict.fromkeys(value.strip() for value in values):
            if value.lower() in _MISSING:
                continue
            kind = next((kind for kind, one in _KINDS.items() if one.fullmatch(value)), None)
            if kind is None:
                break
            kinds.setdefault(kind, value)
        else:
            found.append(_Column(name, kinds))
    return found


def _regular(sample: _Sample) -> Iterator[Sequence[str]]:
    return (row for row in sample.rows if len(row) == len(sample.header))


def _detected_decimal(columns: Sequence[_Column], shown: str) -> str:
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


def _example(column: _Column, mark: str) -> str:
    name = "comma" if mark == "," else "dot"
    return column.kinds.get(name) or column.kinds[f"groups, {name}"]


def _remarks(columns: Sequence[_Column], decimal: str) -> Iterator[str]:
    """Name the columns of numbers that this decimal mark turns into text."""
    readable = {
        "plain",
        *(("comma", "unclear comma") if decimal == "," else ("dot", "unclear dot")),
    }
    for column in columns:
        other = [value for kind, value in column.kinds.items() if kind not in readable]
        if other:
            yield f"column {column.name!r} is read as text, because of values such as {other[0]!r}"
