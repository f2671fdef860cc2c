"""Documents: JSON files with a checksum, an optional signature, and a budget for reading them.

Every kind of saved result (calibrators, classifiers, audits, slices, collected sums, monitors) is
one of these. The checksum finds damage by accident. A signature (HMAC-SHA256 with a key of the
user) finds changes on purpose: whoever can write a file can also write a matching checksum. The
size, the depth and the number of values of a file are limited before it is parsed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from varcal._files.atomic import write_whole
from varcal._version import __version__
from varcal.exceptions import InputError

__all__ = ["BrokenError", "Kind", "check_key"]

R = TypeVar("R")

#: The largest file that is read.
MOST_BYTES = 2**30
#: The deepest nesting. The deepest document is that of a tree, with two levels per split.
MOST_DEPTH = 150
#: The most values, counted by commas and brackets; in Python each takes some 60 bytes.
MOST_VALUES = 50_000_000
#: Shorter keys can be guessed.
LEAST_KEY_BYTES = 16

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)', re.DOTALL)
#: The entries that the checksum and the signature do not cover: they themselves.
_SEALS = ("sha256", "signature")


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
    hint : str
        How to come by a good file.
    format, oldest : int
        The version of the format that is written, and the oldest that can be read.
    version_entry, kind_entry : str
        The entries that hold the version and the name.
    sealed_since : int
        The oldest version with a checksum of the whole document.
    """

    name: str
    what: str
    hint: str
    format: int
    oldest: int
    version_entry: str = "format"
    kind_entry: str = "kind"
    sealed_since: int = 0

    def refusal(self, shown: str, problem: str) -> InputError:
        """Return the error for a file that is not of this kind, or is broken."""
        return InputError(f"{shown} is not {self.what}: {problem}", self.hint, argument="path")

    def text(self, body: Mapping[str, Any], key: str | bytes | None = None) -> str:
        """Return the document of a result, sealed by its checksum and with a key signed."""
        document: dict[str, Any] = {
            self.kind_entry: self.name,
            self.version_entry: self.format,
            "varcal": __version__,
            **body,
        }
        return canonical(document | self.seals(document, key))

    def seals(self, document: Mapping[str, Any], key: str | bytes | None) -> dict[str, str]:
        """Return the checksum of a document, and with a key its signature."""
        text = _sealed_text(document)
        found = {"sha256": hashlib.sha256(text).hexdigest()}
        if key is not None:
            found["signature"] = _signature(text, check_key("key", key))
        return found

    def write(
        self, path: str | PathLike[str], body: Mapping[str, Any], key: str | bytes | None = None
    ) -> None:
        """Write a document whole or not at all."""
        write_whole(path, self.text(body, key))

    def read(self, path: str | PathLike[str], key: str | bytes | None = None) -> dict[str, Any]:
        """Return the entries of a file, after its budget, version and seals were checked."""
        shown = repr(str(path))
        return self.parse(self.bytes_of(path), shown, key)

    def load(
        self,
        path: str | PathLike[str],
        key: str | bytes | None,
        restore: Callable[[dict[str, Any]], R],
    ) -> R:
        """Return the result that a file holds; `restore` makes it from the entries of the file."""
        data = self.read(path, key)
        try:
            return restore(data)
        except InputError as error:
            problem = error.message.partition(": ")[2]
            raise self.refusal(repr(str(path)), problem) from None

    def parse(self, data: bytes, shown: str, key: str | bytes | None = None) -> dict[str, Any]:
        """Return the entries of a document; `shown` names it in errors."""
        try:
            document = parsed(data)
            self.check_version(document, shown)
            self.check_seals(document, key)
        except BrokenError as error:
            raise self.refusal(shown, str(error)) from None
        return document

    def bytes_of(self, path: str | PathLike[str]) -> bytes:
        """Return the contents of a regular file of limited size."""
        shown = repr(str(path))
        try:
            found = Path(path).stat()
            if not stat.S_ISREG(found.st_mode):
                what = "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a file"
                raise InputError(f"cannot read {shown}: {what}", self.hint, argument="path")
            if found.st_size > MOST_BYTES:
                raise self.refusal(shown, f"it has more than {MOST_BYTES:,} bytes")
            return Path(path).read_bytes()
        except OSError as error:
            raise InputError(
                f"cannot read {shown}: {error.strerror or error}",
                f"check the path; {self.hint}",
                argument="path",
            ) from None

    def check_version(self, document: Mapping[str, Any], shown: str) -> None:
        """Refuse a document of another kind or of a version that cannot be read."""
        version = document.get(self.version_entry)
        if type(version) is not int or document.get(self.kind_entry, self.name) != self.name:
            kind = document.get("kind", document.get("format"))
            other = isinstance(kind, str) and re.fullmatch(r"[a-z ]{1,40}", kind)
            raise BrokenError(f"it holds a {kind}" if other else "it was not written by varcal")
        writer = document.get("varcal")
        writer = writer if isinstance(writer, str) and len(writer) < 40 else "?"
        if version > self.format:
            raise InputError(
                f"{shown} was written by a later varcal ({writer})",
                "update varcal",
                argument="path",
            )
        if version < self.oldest:
            raise InputError(
                f"{shown} was written by an earlier varcal ({writer}), in format {version}; this "
                f"varcal reads {self.oldest} to {self.format}",
                self.hint,
                argument="path",
            )

    def check_seals(self, document: dict[str, Any], key: str | bytes | None) -> None:
        """Refuse a document that does not match its checksum, or with a key its signature."""
        version: int = document[self.version_entry]
        sealed = version >= self.sealed_since
        if not sealed and key is None:
            return
        text = _sealed_text(document)
        digest = hashlib.sha256(text).hexdigest()
        if sealed and not _same(document.get("sha256"), digest):
            raise BrokenError("its contents do not match its checksum")
        if key is None:
            return
        if not document.get("signature"):
            raise BrokenError("it is not signed, and a key is given")
        if not _same(document["signature"], _signature(text, check_key("key", key))):
            raise BrokenError(
                "its signature does not match the key: it was changed, or signed with another key"
            )


def check_key(argument: str, key: object) -> bytes:
    """Return a key as bytes, after checking that it is long enough.

    >>> check_key("key", "correct horse battery staple")[:7]
    b'correct'
    """
    try:
        found = key.encode() if isinstance(key, str) else key
    except UnicodeEncodeError:
        found = None
    if not isinstance(found, bytes | bytearray) or len(found) < LEAST_KEY_BYTES:
        # The value is not shown: it is a secret.
        raise InputError(
            f"{argument} must be a string or bytes of at least {LEAST_KEY_BYTES} bytes",
            "for example secrets.token_bytes(32)",
            argument=argument,
        )
    return bytes(found)


def canonical(value: object, *, sort_keys: bool = False) -> str:
    """Return JSON that is the same for the same values; raise ValueError for NaN and infinity.

    The order of entries belongs to the value: the first claim of an audit is its main one.

    >>> canonical({"b": 1.5, "a": None})
    '{"b":1.5,"a":null}'
    """
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys
    )


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


def _sealed_text(document: Mapping[str, Any]) -> bytes:
    """Return what the seals are computed from: everything else in the document."""
    rest = {name: value for name, value in document.items() if name not in _SEALS}
    try:
        return canonical(rest).encode()
    except (ValueError, RecursionError):  # an infinite number, or half of a surrogate pair
        raise BrokenError("it holds a value that varcal does not write") from None


def _signature(text: bytes, key: bytes) -> str:
    return hmac.new(key, b"varcal document\n" + text, hashlib.sha256).hexdigest()


def _same(found: object, wanted: str) -> bool:
    """Compare in a time that does not depend on where the texts differ."""
    return isinstance(found, str) and hmac.compare_digest(
        found.encode(errors="replace"), wanted.encode()
    )
