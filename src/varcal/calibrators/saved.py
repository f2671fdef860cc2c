"""Fitted calibrators as files: their method, its parameters and the fields of the fit.

A new calibrator is added to `METHODS`; its class annotates the fitted attributes that `_state`
names, whose types are the schema of the file.
"""

from __future__ import annotations

import typing
from functools import cache
from typing import Any

from varcal import calibrators
from varcal._files.saved import Kind
from varcal._files.schema import BrokenError, built, plain
from varcal.calibrators.calibrator import Calibrator
from varcal.exceptions import InputError

#: The class of each method that a file may name.
METHODS = {
    "augmented": "AugmentedCalibrator",
    "beta": "BetaCalibrator",
    "dirichlet": "DirichletCalibrator",
    "histogram": "HistogramCalibrator",
    "isotonic": "IsotonicCalibrator",
    "platt": "PlattCalibrator",
    "scaling binning": "ScalingBinningCalibrator",
    "shift": "ShiftCalibrator",
    "temperature": "TemperatureCalibrator",
    "tree": "TreeCalibrator",
    "variable": "VariableCalibrator",
    "vector scaling": "VectorScalingCalibrator",
}


@cache
def _state(cls: type[Calibrator]) -> dict[str, Any]:
    """Return the types of the fitted attributes that a file holds, by their names in it."""
    hints = typing.get_type_hints(cls)
    return {name.removesuffix("_"): hints[name] for name in cls._fitted_names()}


def fields_of(calibrator: Calibrator) -> dict[str, Any]:
    """Return what a file holds of a calibrator, which need not be fitted."""
    cls = type(calibrator)
    method = next((name for name, own in METHODS.items() if own == cls.__name__), None)
    if method is None or getattr(calibrators, METHODS[method]) is not cls:
        raise InputError(
            f"{cls.__name__} cannot be saved: it is not one of varcal's own calibrators",
            f"those are {', '.join(METHODS.values())}",
        )
    parameters = calibrator.get_params(deep=False)
    fitted = None
    if calibrator.__sklearn_is_fitted__():
        fitted = {name: plain_fields(getattr(calibrator, f"{name}_")) for name in _state(cls)}
    return {
        "method": method,
        "parameters": {name: plain_fields(each) for name, each in parameters.items()},
        "fitted": fitted,
    }


def _built(data: Any, where: str = "it") -> Calibrator:
    """Return the calibrator that the fields of a file describe; `where` is its place in it."""
    special = (Calibrator, _built)
    if not isinstance(data, dict) or set(data) != {"method", "parameters", "fitted"}:
        raise BrokenError("it does not hold a calibrator")
    if data["method"] not in METHODS:
        raise BrokenError(f"it names an unknown method {data['method']!r:.60}")
    cls: type[Calibrator] = getattr(calibrators, METHODS[data["method"]])
    if not isinstance(data["parameters"], dict) or set(data["parameters"]) != set(vars(cls())):
        raise BrokenError(f"the parameters of {data['method']} are not those of this version")
    parameters = {
        name: built(each, Calibrator | None if name == "calibrator" else Any, special)
        for name, each in data["parameters"].items()
    }
    calibrator, state = cls(**parameters), _state(cls)
    if data["fitted"] is None:
        return calibrator
    if not isinstance(data["fitted"], dict) or set(data["fitted"]) != set(state):
        raise BrokenError(f"the fitted values of {data['method']} are not those of this version")
    for name, each in data["fitted"].items():
        setattr(calibrator, f"{name}_", built(each, state[name], special, f"{where}.{name}"))
    return calibrator


def _checked(calibrator: Calibrator, where: str = "it") -> Calibrator:
    """Refuse a calibrator that is not fitted or has impossible classes, also inside of others."""
    calibrator._check_parameters()
    if not calibrator.__sklearn_is_fitted__():
        raise BrokenError(f"{where} is not fitted")
    for name in _state(type(calibrator)):
        held = getattr(calibrator, f"{name}_")
        for inner in held if isinstance(held, list) else ():
            if isinstance(inner, Calibrator):
                _checked(inner, f"{where}.{name}")
    classes, k = calibrator.classes_, len(calibrator.classes_)
    if classes.ndim != 1 or k < 2 or len(set(classes.tolist())) < k:
        raise BrokenError(f"the classes of {where} are not two or more distinct labels")
    if calibrator.n_features_in_ != k and (calibrator.n_features_in_ != 1 or k > 2):
        raise BrokenError(f"{where} has a number of score columns that does not match its classes")
    calibrator.read_from_file = True
    return calibrator


def plain_fields(value: Any) -> Any:
    """Return what a file holds of a record, or of calibrators in it."""
    return plain(value, (Calibrator, fields_of))


#: Saved calibrators.
CALIBRATOR = Kind(
    "calibrator",
    "a saved calibrator",
    1,
    lambda document: _checked(_built(document["calibrator"])),
)
