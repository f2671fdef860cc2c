"""Saved results: JSON files with a checksum, limits for reading them, and `load`, which reads any.

Every kind of saved result (calibrators, audits, slices, collected sums, monitors) is
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
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._files.atomic import write_whole
from varcal._files.schema import ERRORS, BrokenError, NotRestoredError
from varcal._options import checked
from varcal._version import __version__
from varcal.exceptions import InputError

#: The largest file that is read.
MOST_BYTES = 2**30
#: The deepest nesting. The deepest document is that of a tree, with two levels per split.
MOST_DEPTH = 150
#: The most values, counted by commas and brackets; in Python each takes some 60 bytes.
MOST_VALUES = 50_000_000
#: How to come by a file that can be loaded.
FOREIGN = "it was not written by varcal"
HINT = "give a file that save() or a varcal command wrote"

#: Where each kind of document is defined, by its name in files; loaded when it is first needed.
KINDS = {
    "audit": "_audit.result.AUDIT",
    "calibrator": "calibrators.saved.CALIBRATOR",
    "collected statistics": "_sums.collect.COLLECTED",
    "mean calibrator": "calibrators.mean.MEAN_CALIBRATOR",
    "monitor": "_monitor.monitor_file.MONITOR",
    "slices": "_search.slices_result.SLICES",
}
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)', re.DOTALL)


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
        try:
            return canonical(document | {"sha256": checksum(document)})
        except UnicodeEncodeError as error:
            where = error.object[max(error.start - 20, 0) : error.end + 20]
            raise InputError(
                f"a text cannot be saved, because it is not valid Unicode: {where!r}",
                "correct the label, the category or the name",
            ) from None

    def write(self, path: str | PathLike[str], body: Mapping[str, Any]) -> None:
        """Write a document whole or not at all."""
        write_whole(path, self.text(body))

    def restored(self, document: dict[str, Any], shown: str) -> Any:
        """Return the result that a document of this kind holds; `shown` names it in errors."""
        try:
            self._check(document, shown)
            return self.restore(document)
        except NotRestoredError as error:
            problem = error.problem
        except InputError as error:
            if error.argument == "path":
                raise
            problem = error.message
        except BrokenError as error:
            problem = str(error)
        except ERRORS as error:
            problem = f"its contents are inconsistent ({type(error).__name__})"
        raise _refusal(f"{shown} is not {self.what}: {problem}")

    def _check(self, document: dict[str, Any], shown: str) -> None:
        """Refuse a document of another format, or that does not match its checksum."""
        found, writer = document.get("format"), document.get("varcal")
        writer = writer if isinstance(writer, str) and len(writer) < 40 else "?"
        if type(found) is not int:
            raise BrokenError("it names no format")
        if found != self.format:
            later = found > self.format
            raise _refusal(
                f"{shown} was written by {'a later' if later else 'an earlier'} varcal ({writer})",
                "update varcal" if later else "make it again and save it with this varcal",
            )
        try:
            expected = checksum(document)
        except (ValueError, RecursionError):  # an infinite number, or half of a surrogate pair
            raise BrokenError("it holds a value that varcal does not write") from None
        if document.get("sha256") != expected:
            raise BrokenError("its contents do not match its checksum")


def _refusal(problem: str, hint: str = HINT) -> InputError:
    return InputError(problem, hint, argument="path")


def file_bytes(path: str | PathLike[str]) -> bytes:
    """Return the contents of a regular file of limited size."""
    shown = repr(str(path))
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            what = "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a file"
            raise _refusal(f"cannot read {shown}: {what}")
        if found.st_size > MOST_BYTES:
            raise _refusal(f"cannot load {shown}: it has more than {MOST_BYTES:,} bytes")
        return Path(path).read_bytes()
    except OSError as error:
        problem = f"cannot read {shown}: {error.strerror or error}"
        raise _refusal(problem, f"check the path; {HINT}") from None


def checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of everything else in a document."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()


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
        raise BrokenError(FOREIGN)
    return document


def _check_budget(data: bytes) -> None:
    """Refuse a text that is nested too deep or has too many values, before it is parsed."""
    depth, count = nesting(data)
    if count > MOST_VALUES:
        raise BrokenError(f"it has more than {MOST_VALUES:,} values")
    if depth > MOST_DEPTH:
        raise BrokenError(f"it is nested deeper than {MOST_DEPTH} levels")


def nesting(data: bytes) -> tuple[int, int]:
    """Return how deep JSON is nested, and about how many values it has, without parsing it.

    >>> nesting(b'{"a": [1, [2]], "b": "[["}')
    (3, 5)
    """
    marks = np.frombuffer(_STRING.sub(b"", data), dtype=np.uint8)
    opens = (marks == ord("[")) | (marks == ord("{"))
    closes = (marks == ord("]")) | (marks == ord("}"))
    depth = np.cumsum(opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int64)
    return int(depth.max(initial=0)), int(opens.sum() + (marks == ord(",")).sum())


def _no_constant(name: str) -> float:
    raise ValueError(name)


@checked()
def load(path: str | PathLike[str]) -> Any:
    """Load anything that a `save` of varcal wrote.

    Parameters
    ----------
    path : str or path
        The file: a calibrator, an audit, slices, collected statistics or a monitor. Nothing in it
        is executed.

    Returns
    -------
    Calibrator, MeanCalibrator, Audit, Slices, Collected or Monitor
        The same as what was saved; predictions are equal to the last bit.

    Raises
    ------
    InputError
        If the file cannot be read, was not written by this version of varcal, or is incomplete or
        changed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import varcal as vc
    >>> fitted = vc.calibrators.PlattCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibrator.json"
    >>> fitted.save(path)
    >>> vc.load(path)
    PlattCalibrator()
    """
    kind, document = _opened(path)
    return kind.restored(document, repr(str(path)))


def load_kind(path: str | PathLike[str], name: str) -> Any:
    """Load a file that must be of one kind, one of `KINDS`."""
    kind, document = _opened(path, name)
    return kind.restored(document, repr(str(path)))


def _opened(path: str | PathLike[str], wanted: str | None = None) -> tuple[Kind, dict[str, Any]]:
    """Return the kind of a file and its entries."""
    data, shown = file_bytes(path), repr(str(path))
    what = "a saved varcal result" if wanted is None else _kind(wanted).what
    try:
        document = parsed(data)
        name = document.get("kind")
        if not isinstance(name, str) or name not in KINDS:
            report = "varcal" in document and "verdict" in document
            raise BrokenError("it is a report, not what save() writes" if report else FOREIGN)
        if (wanted, name) == ("calibrator", "mean calibrator"):
            problem = f"{shown} is a saved calibrator of means, not of probabilities"
            raise _refusal(problem, "for means use load(path).predict(mu, X)")
        if wanted not in (None, name):
            raise BrokenError(f"it is {_kind(name).what}")
    except BrokenError as error:
        raise _refusal(f"{shown} is not {what}: {error}") from None
    return _kind(name), document


def _kind(name: str) -> Kind:
    module, _, constant = KINDS[name].rpartition(".")
    found: Kind = getattr(import_module(f"varcal.{module}"), constant)
    return found
