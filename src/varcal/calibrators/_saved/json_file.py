"""Fitted calibrators as JSON files: versioned, bit-exact, and nothing in them is executed.

A file names a class of the closed registry (`registry.py`), the parameters of its constructor and
its fitted attributes; large arrays stand in a table of their own. Reading a file builds objects of
these classes and nothing else: it holds no import by name, no pickle and no expression.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._files.atomic import write_whole
from varcal._options import checked
from varcal._version import __version__
from varcal.calibrators._interface.calibrator import Calibrator
from varcal.calibrators._saved.array_texts import ArrayTexts, array_of
from varcal.calibrators._saved.registry import CALIBRATORS, PARTS, SHARED_STATE, saved_state
from varcal.exceptions import InputError

__all__ = ["load_calibrator", "save_calibrator"]

FORMAT = "varcal calibrator"
SCHEMA_VERSION = 1

_DTYPES = {"f": "float64", "i": "int64", "u": "int64", "b": "bool", "U": "str", "O": "object"}


class _BrokenError(Exception):
    """A problem of a file whose name is not known yet."""


def save_calibrator(calibrator: Calibrator, path: str | PathLike[str]) -> None:
    """Save a fitted calibrator; an old file is only replaced once the new one is complete."""
    write_whole(path, calibrator_text(calibrator))


def calibrator_text(calibrator: Calibrator) -> str:
    """Return the contents of a calibrator's file."""
    return saved_text(calibrator, FORMAT)


def saved_text(value: object, form: str) -> str:
    """Return the contents of a file of the given format that holds a value."""
    arrays = ArrayTexts()
    body = _pack(value, arrays)
    document = {
        "format": form,
        "schema_version": SCHEMA_VERSION,
        "varcal": __version__,
        "sha256": _digest(body, arrays.entries),
        "calibrator": body,
        "arrays": arrays.entries,
    }
    return _text(document)


@checked()
def load_calibrator(path: str | PathLike[str]) -> Calibrator:
    """Load a calibrator that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Calibrator
        The fitted calibrator; its predictions are the same to the last bit.

    Raises
    ------
    InputError
        If the file does not exist, is not a varcal calibrator file, is incomplete or changed, or is
        of a later version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from varcal.calibrators import BetaCalibrator
    >>> fitted = BetaCalibrator(parameters="am").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fitted.save(Path(folder, "beta.json"))
    ...     again = load_calibrator(Path(folder, "beta.json"))
    >>> bool((again.predict_proba([0.3]) == fitted.predict_proba([0.3])).all())
    True
    """
    return read_calibrator(text_of(path, FORMAT), repr(str(path)))


def text_of(path: str | PathLike[str], form: str) -> str:
    """Return the text of a file that should be of the given format."""
    shown = repr(str(path))
    try:
        return Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot read {shown}: {error.strerror}", "check the path") from None
    except UnicodeDecodeError:
        raise _refusal(shown, "it is not a text file", form) from None


def read_calibrator(text: str, shown: str) -> Calibrator:
    """Return the calibrator in a text; `shown` names the text in errors.

    Examples
    --------
    >>> from varcal.calibrators import BetaCalibrator
    >>> fitted = BetaCalibrator(parameters="am").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> again = read_calibrator(calibrator_text(fitted), "the text")
    >>> bool((again.predict_proba([0.3]) == fitted.predict_proba([0.3])).all())
    True
    """
    found = read_saved(text, shown, FORMAT, Calibrator)
    assert isinstance(found, Calibrator)
    return found


def read_saved(text: str, shown: str, form: str, kind: type[Any]) -> object:
    """Return the value in a text of the given format, which must be of the given type."""
    try:
        return _read(text, form, kind)
    except _BrokenError as error:
        raise _refusal(shown, str(error), form) from None


def _refusal(shown: str, problem: str, form: str) -> InputError:
    what = form.removeprefix("varcal ")
    return InputError(
        f"{shown} is not a {form} file: {problem}",
        f"save the fitted {what} again with .save(path)",
    )


def _read(text: str, form: str, kind: type[Any]) -> object:
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _BrokenError("it is not complete JSON") from None
    found = document.get("format") if isinstance(document, dict) else None
    if found != form:
        other = isinstance(found, str) and found.startswith("varcal ")
        raise _BrokenError(f"it holds a {found}" if other else "it was not written by varcal")
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise _BrokenError(
            f"its schema version is {version!r} (varcal {document.get('varcal')!r}), but this "
            f"varcal {__version__} reads version {SCHEMA_VERSION}"
        )
    body, entries = document.get("calibrator"), document.get("arrays")
    try:
        intact = document.get("sha256") == _digest(body, entries)
        if not intact:
            raise _BrokenError("its contents do not match its checksum")
        value = _unpack(body, [array_of(entry) for entry in entries or ()])
        if not isinstance(value, kind):
            raise _BrokenError(f"it does not hold a {form.removeprefix('varcal ')}")
        for calibrator in [value] if isinstance(value, Calibrator) else value.calibrators:
            _probe(calibrator)
    except _BrokenError:
        raise
    except Exception as error:
        raise _BrokenError(f"its contents are inconsistent ({type(error).__name__})") from None
    return value


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _text(value: object) -> str:
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
    )


def _digest(body: object, arrays: object) -> str:
    return hashlib.sha256(_text([body, arrays]).encode()).hexdigest()


def _pack(value: Any, arrays: ArrayTexts) -> Any:
    """Turn a fitted value into JSON; other than plain values become a dict with a ``$`` key."""
    if isinstance(value, Calibrator):
        name = type(value).__name__
        if CALIBRATORS.get(name) is not type(value):
            raise InputError(
                f"{name} cannot be saved: it is not one of varcal's own calibrators",
                f"those are {', '.join(CALIBRATORS)}",
            )
        state = None
        if value.__sklearn_is_fitted__():
            state = {key: _pack(getattr(value, key), arrays) for key in saved_state(type(value))}
        parameters = {
            key: _pack(each, arrays) for key, each in value.get_params(deep=False).items()
        }
        return {"$calibrator": name, "parameters": parameters, "state": state}
    if is_dataclass(value) and PARTS.get(type(value).__name__) is type(value):
        held = {field.name: _pack(getattr(value, field.name), arrays) for field in fields(value)}
        return {"$part": type(value).__name__, "fields": held}
    if isinstance(value, np.ndarray):
        return _pack_array(value, arrays)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [_pack(each, arrays) for each in value]}
    if isinstance(value, list):
        return [_pack(each, arrays) for each in value]
    raise InputError(
        f"a {type(value).__name__} cannot be saved: {value!r}",
        "labels, categories and parameters must be numbers, strings or booleans",
    )


def _pack_array(array: AnyArray, arrays: ArrayTexts) -> dict[str, Any]:
    if arrays.takes(array):
        return {"$large": arrays.number_of(array)}
    kind = array.dtype.kind
    if kind not in _DTYPES:
        raise InputError(f"an array of {array.dtype} cannot be saved", "use numbers or strings")
    return {
        "$array": _DTYPES[kind],
        "shape": list(array.shape),
        "data": [_pack(each, arrays) for each in array.ravel().tolist()],
    }


def _unpack(value: Any, arrays: list[AnyArray]) -> Any:
    """Turn JSON back into the value; only what `_pack` writes is accepted."""
    if isinstance(value, list):
        return [_unpack(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    keys = set(value)
    if keys == {"$calibrator", "parameters", "state"}:
        return _unpack_calibrator(value, arrays)
    if keys == {"$part", "fields"}:
        if value["$part"] not in PARTS:
            raise _BrokenError(f"it names an unknown part {value['$part']!r}")
        held = {key: _unpack(each, arrays) for key, each in value["fields"].items()}
        return PARTS[value["$part"]](**held)
    if keys == {"$array", "shape", "data"} and value["$array"] in _DTYPES.values():
        return _unpack_array(value, arrays)
    if keys == {"$large"} and value["$large"] in range(len(arrays)):
        return arrays[value["$large"]]
    if keys == {"$float"} and value["$float"] in ("nan", "inf", "-inf"):
        return float(value["$float"])
    if keys == {"$tuple"} and isinstance(value["$tuple"], list):
        return tuple(_unpack(each, arrays) for each in value["$tuple"])
    raise _BrokenError(f"it holds an unknown entry with the keys {sorted(keys)!r}")


def _unpack_calibrator(value: dict[str, Any], arrays: list[AnyArray]) -> Calibrator:
    name = value["$calibrator"]
    if name not in CALIBRATORS:
        raise _BrokenError(f"it names an unknown calibrator {name!r}")
    cls = CALIBRATORS[name]
    parameters = {key: _unpack(each, arrays) for key, each in value["parameters"].items()}
    if set(parameters) != set(vars(cls())):
        raise _BrokenError(f"the parameters of its {name} are not those of this version")
    calibrator = cls(**parameters)
    if value["state"] is None:
        return calibrator
    if set(value["state"]) != set(saved_state(cls)):
        raise _BrokenError(f"the fitted values of its {name} are not those of this version")
    for key, each in value["state"].items():
        setattr(calibrator, key, _unpack(each, arrays))
    return calibrator


def _unpack_array(value: dict[str, Any], arrays: list[AnyArray]) -> AnyArray:
    data = [_unpack(each, arrays) for each in value["data"]]
    if value["$array"] == "object":
        array = np.empty(len(data), dtype=object)
        array[:] = data
    else:
        array = np.array(data, dtype=value["$array"])
    return array.reshape(value["shape"])


def _probe(calibrator: Calibrator) -> None:
    """Predict one row, so that inconsistent contents are found when the file is loaded."""
    shared = {name: type(getattr(calibrator, name)) for name in SHARED_STATE}
    if shared != SHARED_STATE or calibrator.classes_.ndim != 1 or len(calibrator.classes_) < 2:
        raise _BrokenError("its contents are inconsistent")
    answer = calibrator._probe()
    if answer.shape != (1, len(calibrator.classes_)) or not np.isfinite(answer).all():
        raise _BrokenError("its contents are inconsistent")
