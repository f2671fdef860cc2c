"""How text files are written: separator, decimal mark, encoding and line ends."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from varcal.exceptions import InputError

#: The separators that are detected, by their names.
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


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
    if len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0':
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
