"""How text files are written: separator, decimal mark, encoding and line ends.

PyArrow reads any dialect but detects none. What the first rows leave open is never guessed: an
error asks for it.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from varcal.exceptions import InputError

#: The separators that are detected, by their names.
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
#: Bytes at the beginning of a file from which separator and decimal mark are detected: some
#: thousand rows, in a few hundredths of a second.
HEAD_BYTES = 1 << 18
#: The settings of text files that hints may name.
SETTINGS = {"sep": ..., "decimal": ..., "encoding": ..., "format": ...}


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
        parts += ["decimal comma"] if self.decimal == "," else []
        parts += [] if self.encoding.startswith("utf-8") else [encoding_name(self.encoding)]
        return ", ".join(parts)


def encoding_name(encoding: str) -> str:
    """Write the name of an encoding as people know it.

    >>> encoding_name("utf-16"), encoding_name("cp1252"), encoding_name("iso8859-1")
    ('UTF-16', 'cp1252', 'Latin-1')
    """
    if encoding == "iso8859-1":
        return "Latin-1"
    return encoding.upper() if encoding.startswith("utf") else encoding


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
            object.__setattr__(self, "sep", _known_separator(self.sep))
        if self.decimal not in (None, ".", ","):
            hint = "numbers with another decimal mark have to be converted first"
            raise InputError(f"decimal must be '.' or ','; got {self.decimal!r}", hint, "decimal")
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _known_encoding(self.encoding))


def _known_separator(text: str) -> str:
    mark = (SEPARATORS | {"space": " ", r"\t": "\t"}).get(text.lower(), text)
    if len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0':
        names = ", ".join(SEPARATORS)
        problem = f"sep must be one character or one of {names}, space; got {text!r}"
        raise InputError(problem, "for example {sep}", "sep", {"sep": "semicolon"})
    return mark


def _known_encoding(name: str) -> str:
    try:
        found = codecs.lookup(name)
        found.incrementaldecoder().decode(b"")  # which codecs such as base64 cannot do to text
        "".encode(found.name)
    except (LookupError, TypeError, ValueError, AttributeError):
        hint = "common ones are utf-8, utf-16, cp1252, latin-1 and mac-roman"
        raise InputError(f"encoding {name!r} is not known", hint, "encoding") from None
    return found.name.removesuffix("-sig")  # a byte order mark is detected


#: Comma-separated UTF-8 with decimal points.
PLAIN = Dialect()
#: Nothing is stated, so everything is detected.
UNSTATED = Stated()


class UncertainDialectError(InputError):
    """A text file whose separator, decimal mark or encoding can be read in several ways."""


def _uncertain(problem: str, hint: str) -> UncertainDialectError:
    return UncertainDialectError(problem, hint, settings=SETTINGS)


def detect(
    blocks: Iterator[bytes], stated: Stated, shown: str, default: str = ","
) -> tuple[Dialect, list[str]]:
    r"""Find out how a file with columns between separators is written.

    Parameters
    ----------
    blocks : iterator of bytes
        The decompressed file in blocks of `HEAD_BYTES`, of which as few as possible are read.
    stated : Stated
        What the user says.
    shown : str
        The name of the file in messages.
    default : str
        The separator of a file whose header has a single column.

    Returns
    -------
    Dialect
        How the file is written.
    list of str
        One sentence per surprise, such as a column of numbers that are read as text.

    Raises
    ------
    UncertainDialectError
        If the file can be read in several ways.

    Examples
    --------
    >>> detect(iter([b"y;p\n1;0,83\n"]), Stated(), "'a.csv'")[0].describe()
    'semicolon-separated, decimal comma'
    """
    head = next(blocks, b"")
    encoding = detect_encoding(chain([head], blocks), stated, shown)
    text = codecs.getincrementaldecoder(encoding)().decode(head)
    whole = len(head) < HEAD_BYTES
    separator = stated.sep or _separator(text, whole, default, shown)
    columns = _number_columns(_rows(text, separator, whole))
    decimal = stated.decimal or _decimal(columns, shown)
    newline = "\r\n" if "\r\n" in text else "\n"
    return Dialect(separator, decimal, encoding, newline), list(_remarks(columns, decimal))


def _rows(text: str, separator: str, whole: bool) -> list[list[str]]:
    """Split the first rows; the last one may be cut if the text is not the whole file."""
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a field that is too long; the rows before it are enough
        rows.extend(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=separator)))
    return rows if whole or len(rows) < 2 else rows[:-1]


def _separator(text: str, whole: bool, default: str, shown: str) -> str:
    """Return the separator that splits the first rows alike."""
    splitting: dict[str, list[list[str]]] = {}
    for mark in SEPARATORS.values():
        rows = _rows(text, mark, whole)
        # A separator inside of quotes leaves half of them in a name.
        if rows and len(rows[0]) > 1 and not any(name.count('"') % 2 for name in rows[0]):
            splitting[mark] = rows
    fitting = [
        mark for mark, rows in splitting.items() if len(rows) > 1 and len({*map(len, rows)}) == 1
    ]
    if len(splitting) < 2 or len(fitting) == 1:
        return [*fitting, *splitting, default][0]
    ways = " or ".join(f"{mark!r} ({len(rows[0])} columns)" for mark, rows in splitting.items())
    line = shortened(text.lstrip("\r\n").splitlines()[0])
    problem = f"the columns of {shown} may be separated by {ways}: {line!r}"
    raise _uncertain(problem, "say which with {sep}")


def shortened(text: str, most: int = 60) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= most else text[: most - 1] + "…"


#: How missing values are written, in lower case.
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "-nan", "#na"})
_NUMBER = r"[+-]?(?=\W?\d)(\d*|[1-9]\d{0,2}([GROUP]\d{3})+)(\MARK\d*)?([eE][+-]?\d+)?"
_SPACES = " '\u00a0\u202f"


def _number(mark: str, group: str) -> re.Pattern[str]:
    return re.compile(_NUMBER.replace("MARK", mark).replace("GROUP", group))


#: Numbers by their decimal mark, with any thousands separators, and those that PyArrow reads.
_ANY_NUMBER = {",": _number(",", "." + _SPACES), ".": _number(".", "," + _SPACES)}
_READABLE = {mark: _number(mark, "\0") for mark in ",."}


def _number_columns(rows: Sequence[Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return the columns that hold only numbers: each value with the decimal marks it can have."""
    regular = [row for row in rows if len(row) == len(rows[0])]
    found = {}
    for name, *values in zip(*regular, strict=True):
        marks = {}
        for value in dict.fromkeys(map(str.strip, values)):
            if value.lower() not in _MISSING:
                marks[value] = "".join(m for m, way in _ANY_NUMBER.items() if way.fullmatch(value))
                if not marks[value]:
                    break
        else:
            found[name] = marks
    return found


def _decimal(columns: Mapping[str, Mapping[str, str]], shown: str) -> str:
    """Return the decimal mark that all columns of numbers can have."""
    certain: dict[str, str] = {}
    unclear = ""
    for name, marks in columns.items():
        examples: dict[str, str] = {}
        for value, possible in marks.items():
            if possible != ",.":
                examples.setdefault(possible, f"{value!r} in column {name!r}")
            elif "," in value:
                unclear = unclear or f"{value!r} in column {name!r}"
        if len(examples) == 1:
            certain = examples | certain
    if len(certain) == 2:
        problem = f"{shown} has {certain[',']} and {certain['.']}"
    elif unclear and not certain:
        problem = f"{unclear} of {shown} may have a decimal comma or a thousands separator"
    else:
        return next(iter(certain), ".")
    raise _uncertain(problem, "say which is the decimal mark with {decimal}")


def _remarks(columns: Mapping[str, Mapping[str, str]], decimal: str) -> Iterator[str]:
    """Name the columns of numbers that this decimal mark turns into text."""
    for name, values in columns.items():
        other = next((one for one in values if not _READABLE[decimal].fullmatch(one)), None)
        if other is not None:
            yield f"column {name!r} is read as text, because of values such as {other!r}"


_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UTF8_LETTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)


def detect_encoding(blocks: Iterator[bytes], stated: Stated, shown: str) -> str:
    """Return the encoding of a text file; as few blocks as possible are read.

    Without a byte order mark it is UTF-8 or cp1252, the superset of Latin-1.
    """
    head = next(blocks, b"")
    for mark, name in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            # With a mark, "utf-16-le" is the same as "utf-16".
            if (stated.encoding or name).startswith(name.removesuffix("-sig")):
                return name
            begins = f"{shown} begins with the mark of {encoding_name(name)}"
            problem = f"encoding is {stated.encoding!r}, but {begins}"
            raise InputError(problem, "leave out {encoding}", "encoding", {"encoding": None})
    if stated.encoding == "utf-16":
        problem = (
            f"encoding is 'utf-16', but {shown} begins with no mark that tells the order of bytes"
        )
        raise InputError(problem, "name 'utf-16-le' or 'utf-16-be'", "encoding")
    if stated.encoding is not None:
        return stated.encoding
    if b"\0" in head:
        problem = "contains zero bytes, so it is not text in UTF-8"
        hint = "if it is text, name its encoding with {encoding}; if not, name its format with "
        raise _uncertain(f"{shown} {problem}", hint + "{format}, or save its rows as CSV")
    block = next((block for block in chain([head], blocks) if not block.isascii()), b"")
    with suppress(UnicodeDecodeError):  # the end of a block may be inside a letter
        ends = len(block) < HEAD_BYTES
        codecs.getincrementaldecoder("utf-8")().decode(block, ends)
        return "utf-8"
    problem = "is in UTF-8 in some places, but not everywhere"
    if not _UTF8_LETTER.search(block):
        with suppress(UnicodeDecodeError):
            block.decode("cp1252")
            return "cp1252"
        problem = "is neither in UTF-8 nor in cp1252"
    hint = "name its encoding with {encoding}, for example mac-roman, cp850 or shift-jis"
    raise _uncertain(f"{shown} {problem}", hint)
