"""Documents: JSON files with a checksum, and a budget for reading them.

Every kind of saved result (calibrators, classifiers, audits, slices, collected sums, monitors) is
one of these. The checksum finds damage by accident, not changes on purpose: whoever can write a
file can also write a matching checksum. The size, the depth and the number of values of a file are
limited before it is parsed.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._files.atomic import write_whole
from varcal._version import __version__
from varcal.exceptions import InputError

#: The largest file that is read.
MOST_BYTES = 2**30
#: The deepest nesting. The deepest document is that of a tree, with two levels per split.
MOST_DEPTH = 150
#: The most values, counted by commas and brackets; in Python each takes some 60 bytes.
MOST_VALUES = 50_000_000
#: How to come by a file that can be loaded.
HINT = "give a file that save() or a varcal command wrote"

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)', re.DOTALL)
#: What restoring a result from the wrong entries may raise.
ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class BrokenError(Exception):
    """What is wrong with a file whose name is not known here."""


@dataclass(frozen=True)
class Kind:
    """A kind of document.

    Attributes
    ----------
    name : str
        What it is called inside of files.
    what : str
        What its files are called in errors, such as "a saved audit".
    format : int
        The version of the format, the only one that is read.
    restore : callable
        Makes the result from the entries of a file, or raises an error.
    """

    name: str
    what: str
    format: int
    restore: Callable[[dict[str, Any]], Any]

    def text(self, body: Mapping[str, Any]) -> str:
        """Return the document of a result, with its checksum."""
        document = {"kind": self.name, "format": self.format, "varcal": __version__, **body}
        return canonical(document | {"sha256": checksum(document)})

    def write(self, path: str | PathLike[str], body: Mapping[str, Any]) -> None:
        """Write a document whole or not at all."""
        write_whole(path, self.text(body))

    def restored(self, document: dict[str, Any], shown: str) -> Any:
        """Return the result that a document of this kind holds; `shown` names it in errors."""
        try:
            self._check(document, shown)
            return self.restore(document)
        except BrokenError as error:
            raise self.refusal(shown, str(error)) from None
        except InputError as error:
            if error.argument == "path":
                raise
            # Those of from_dict() say first that data is not what it should be.
            problem = error.message.partition(": ")[2] if error.argument == "data" else ""
            raise self.refusal(shown, problem or error.message) from None
        except ERRORS as error:
            problem = f"its contents are inconsistent ({type(error).__name__})"
            raise self.refusal(shown, problem) from None

    def refusal(self, shown: str, problem: str) -> InputError:
        """Return the error for a file that is not of this kind, or is broken."""
        return InputError(f"{shown} is not {self.what}: {problem}", HINT, argument="path")

    def _check(self, document: dict[str, Any], shown: str) -> None:
        """Refuse a document of another format, or that does not match its checksum."""
        found, writer = document.get("format"), document.get("varcal")
        writer = writer if isinstance(writer, str) and len(writer) < 40 else "?"
        if type(found) is not int:
            raise BrokenError("it names no format")
        if found != self.format:
            later = found > self.format
            raise InputError(
                f"{shown} was written by {'a later' if later else 'an earlier'} varcal ({writer})",
                "update varcal" if later else "make it again and save it with this varcal",
                argument="path",
            )
        if document.get("sha256") != checksum(document):
            raise BrokenError("its contents do not match its checksum")


def file_bytes(path: str | PathLike[str]) -> bytes:
    """Return the contents of a regular file of limited size."""
    shown = repr(str(path))
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            what = "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a file"
            raise InputError(f"cannot read {shown}: {what}", HINT, argument="path")
        if found.st_size > MOST_BYTES:
            raise InputError(
                f"cannot load {shown}: it has more than {MOST_BYTES:,} bytes", HINT, argument="path"
            )
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read {shown}: {error.strerror or error}",
            f"check the path; {HINT}",
            argument="path",
        ) from None


def checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of everything else in a document."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    try:
        return hashlib.sha256(canonical(rest).encode()).hexdigest()
    except (ValueError, RecursionError):  # an infinite number, or half of a surrogate pair
        raise BrokenError("it holds a value that varcal does not write") from None


def canonical(value: object) -> str:
    """Return JSON that is the same for the same values; raise ValueError for NaN and infinity.

    The order of entries belongs to the value: the first claim of an audit is its main one.

    >>> canonical({"b": 1.5, "a": None})
    '{"b":1.5,"a":null}'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parsed(data: bytes) -> dict[str, Any]:
    """Return the entries of a JSON object, after checking its depth and its number of values."""
    _check_budget(data)
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BrokenError("it is not a text file") from None
    except (ValueError, RecursionError):
        raise BrokenError("it is not complete JSON") from None
    if not isinstance(document, dict):
        raise BrokenError("it was not written by varcal")
    return document


def _check_budget(data: bytes) -> None:
    """Refuse a text that is nested too deep or has too many values, before it is parsed."""
    marks = np.frombuffer(_STRING.sub(b"", data), dtype=np.uint8)
    opens = (marks == ord("[")) | (marks == ord("{"))
    closes = (marks == ord("]")) | (marks == ord("}"))
    if int(opens.sum() + (marks == ord(",")).sum()) > MOST_VALUES:
        raise BrokenError(f"it has more than {MOST_VALUES:,} values")
    depth = np.cumsum(opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int64)
    if depth.size and depth.max() > MOST_DEPTH:
        raise BrokenError(f"it is nested deeper than {MOST_DEPTH} levels")


def _no_constant(name: str) -> float:
    raise ValueError(name)
