"""Fitted calibrators as JSON files: versioned, bit-exact, and nothing in them is executed.

A file names a class of the closed registry (`registry.py`), the parameters of its constructor and
its fitted attributes; large arrays stand in a table of their own. Reading a file builds objects of
these classes and nothing else: it holds no import by name, no pickle and no expression. What it
holds must have the types that the classes declare; the answers of a loaded calibrator are checked
when they are given (`_interface/rows.py`).
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._saved.array_texts import ArrayTexts, array_of
from varcal._saved.conform import conform
from varcal._saved.document import BrokenError, Kind
from varcal.calibrators._saved.registry import CALIBRATORS, PARTS, STATE, saved_state
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.saved_classifier import SavedClassifier
from varcal.exceptions import InputError

_DTYPES = {"f": "float64", "i": "int64", "u": "int64", "b": "bool", "U": "str", "O": "object"}
#: The most dimensions of an array in plain JSON.
_MOST_DIMENSIONS = 4


def saved_body(value: object) -> dict[str, Any]:
    """Return the entries of a file that holds a calibrator or a `SavedClassifier`."""
    arrays = ArrayTexts()
    body = _pack(value, arrays)
    return {"calibrator": body, "arrays": arrays.entries}


def _calibrator_of(document: dict[str, Any]) -> Calibrator:
    """Return the calibrator that the entries of a file describe."""
    found = _value_of(document)
    if not isinstance(found, Calibrator):
        raise BrokenError("it does not hold a calibrator")
    _conform_calibrator(found, "it")
    return found


def _classifier_of(document: dict[str, Any]) -> SavedClassifier:
    """Return all but the estimator of the classifier that the entries of a file describe."""
    found = _value_of(document)
    if not isinstance(found, SavedClassifier):
        raise BrokenError("it does not hold a calibrated classifier")
    conform(found, SavedClassifier, "it")
    for k, calibrator in enumerate(found.calibrators):
        _conform_calibrator(calibrator, f"calibrator {k}")
    return found


def _value_of(document: dict[str, Any]) -> object:
    entries = document["arrays"]
    if not isinstance(entries, list):
        raise BrokenError("it has no arrays")
    arrays = [array_of(entry) for entry in entries]
    if not all(ArrayTexts.takes(array) for array in arrays):
        raise BrokenError("it has a small array where only large ones stand")
    return _unpack(document["calibrator"], arrays)


def _conform_calibrator(calibrator: Calibrator, where: str) -> None:
    """Refuse fitted attributes that do not have their types, also of calibrators inside."""
    calibrator._check_parameters()
    if not calibrator.__sklearn_is_fitted__():
        raise BrokenError(f"{where} is not fitted")
    for name in saved_state(type(calibrator)):
        held = getattr(calibrator, name)
        conform(held, STATE.get(name, Any), f"{where}.{name}")
        for inner in held if isinstance(held, list | tuple) else ():
            if isinstance(inner, Calibrator):
                _conform_calibrator(inner, f"{where}.{name}")
            elif is_dataclass(inner):
                conform(inner, type(inner), f"{where}.{name}")
        if is_dataclass(held):
            conform(held, type(held), f"{where}.{name}")
    classes, k = calibrator.classes_, len(calibrator.classes_)
    if classes.ndim != 1 or k < 2 or len(set(classes.tolist())) < k:
        raise BrokenError(f"the classes of {where} are not two or more distinct labels")
    if calibrator.n_features_in_ != k and (calibrator.n_features_in_ != 1 or k > 2):
        raise BrokenError(f"{where} has a number of score columns that does not match its classes")
    calibrator.read_from_file = True


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
            raise BrokenError(f"it names an unknown part {value['$part']!r}")
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
    raise BrokenError(f"it holds an unknown entry with the keys {sorted(keys)!r}")


def _unpack_calibrator(value: dict[str, Any], arrays: list[AnyArray]) -> Calibrator:
    name = value["$calibrator"]
    if name not in CALIBRATORS:
        raise BrokenError(f"it names an unknown calibrator {name!r}")
    cls = CALIBRATORS[name]
    parameters = {key: _unpack(each, arrays) for key, each in value["parameters"].items()}
    if set(parameters) != set(vars(cls())):
        raise BrokenError(f"the parameters of its {name} are not those of this version")
    calibrator = cls(**parameters)
    if value["state"] is None:
        return calibrator
    if set(value["state"]) != set(saved_state(cls)):
        raise BrokenError(f"the fitted values of its {name} are not those of this version")
    for key, each in value["state"].items():
        setattr(calibrator, key, _unpack(each, arrays))
    return calibrator


def _unpack_array(value: dict[str, Any], arrays: list[AnyArray]) -> AnyArray:
    shape = value["shape"]
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise BrokenError("an array has an unknown shape")
    if any(type(size) is not int or size < 0 for size in shape):
        raise BrokenError("an array has an impossible size")
    data = [_unpack(each, arrays) for each in value["data"]]
    if any(isinstance(each, list | tuple | dict | np.ndarray) for each in data):
        raise BrokenError("an array holds something other than values")
    if value["$array"] == "object":
        array = np.empty(len(data), dtype=object)
        array[:] = data
    else:
        array = np.array(data, dtype=value["$array"])
    return array.reshape(shape)


#: Saved calibrators.
CALIBRATOR = Kind("calibrator", "a saved calibrator", 2, _calibrator_of)
#: Saved calibrated classifiers, without their estimators.
CLASSIFIER = Kind("calibrated classifier", "a saved calibrated classifier", 2, _classifier_of)
