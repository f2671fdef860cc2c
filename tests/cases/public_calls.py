"""Every public function, estimator and method with a valid call, found from `varcal.__all__`.

A required parameter gets its value from `VALID` by its name; the results of functions are the
objects whose methods are called. So a new public name is picked up without a word here, unless it
has a required parameter of a new name: then `calls` says so.
"""

import inspect
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import varcal as vc

N = 240
_RNG = np.random.default_rng(5)
V = _RNG.normal(size=N).round(2)
JOB = np.array(["a", "b", "c"])[_RNG.integers(0, 3, N)]
P = _RNG.uniform(0.05, 0.95, N).round(3)
Y = (_RNG.random(N) < P).astype(int)
X = np.column_stack([P, V])
FRAME = {"y": Y, "p": P, "age": V, "job": JOB}


def _model():
    return LogisticRegression().fit(X, Y)


@dataclass(frozen=True)
class Call:
    """A valid call: `function(**given)`, and the names of all parameters that it has."""

    name: str
    function: Any
    given: dict[str, Any]
    parameters: tuple[str, ...]

    def with_value(self, parameter, value):
        """Call with one parameter replaced."""
        return self.function(**self.given | {parameter: value})


def valid_values(folder: Path) -> dict[str, Any]:
    """Return a valid value for every parameter that is required somewhere, by its name."""
    calibrator = vc.calibrators.PlattCalibrator().fit(P, Y)
    bins = vc.make_bins("y", "p", data=FRAME, monitor=0.02)
    monitor = vc.Monitor(bins)
    calibrator.save(folder / "calibrator.json")
    rows = folder / "rows.csv"
    rows.write_text("p\n" + "\n".join(map(str, P)) + "\n")
    return {
        "y": Y, "p": P, "mu": P, "v": V, "row": 0, "column": 0,
        "X": {"age": V, "job": JOB}, "model": _model(),
        "methods": {"a": P, "b": P**2}, "batch": FRAME, "bins": bins, "gap": 0.05,
        "variables": 0, "calibrator": calibrator, "source": str(rows), "dialect": "duckdb",
        "estimator": _model(), "monitor": monitor, "variable": "v", "id": "1", "n": 100,
        "method": "a", "metric": "log-loss", "name": "reproduce",
    }  # fmt: skip


#: Values of single calls that differ from those above.
SPECIAL = {
    "make_bins": {"y": "y", "p": "p", "data": FRAME},
    "audit_estimator": {"X": X, "y": Y},
    "load": {"path": "calibrator.json"},
    "slices": {"draws": 19, "max_depth": 1},
    "apply": {"out": "calibrated.csv", "p": "p"},
    "Audit.report": {"path": "report.html"},
    "Comparison.report": {"path": "report.html"},
    "Monitor.report": {"path": "report.html"},
    "Collected.save": {"path": "saved.json"},
    "VariableCalibratedClassifier.fit": {"X": X, "y": Y},
    "VariableCalibratedClassifier.predict_proba": {"X": X},
    "VariableCalibratedClassifier.predict": {"X": X},
    "VariableCalibratedClassifier.score": {"X": X, "y": Y},
    "VariableCalibratedClassifier.scorer": {},
}
#: Modules whose functions are walked.
MODULES = ("datasets",)
#: Methods of scikit-learn that varcal inherits, and parts of the protocol between packages.
FOREIGN = {"get_metadata_routing", "set_params", "get_params"}
INTERNAL = {
    "Collected": {"save"},
    "Simulation": {"ece_in_bins", "to_frame", "vece_in_bins"},
    "BinPlan": set(),
    "Monitor": {"acknowledge", "plot", "report", "reset", "save", "to_frame", "update"},
}  # for these classes only the methods named here are for users


def calls(folder: Path) -> list[Call]:
    """Return every public call; relative paths in them are inside the folder."""
    os.chdir(folder)
    values = valid_values(folder)
    found: list[Call] = []
    instances: dict[str, Any] = {}
    for name, function in _functions():
        call = _call(name, function, values)
        found.append(call)
        result = function(**call.given)
        if type(result).__module__.startswith("varcal"):
            instances.setdefault(type(result).__name__, result)
    classes = {name: getattr(vc.calibrators, name) for name in vc.calibrators.__all__}
    classes = {name: cls for name, cls in classes.items() if not inspect.isabstract(cls)}
    for name, cls in (classes | {"Monitor": vc.Monitor}).items():
        if hasattr(cls, "fit"):
            found.append(_fit_with_parameters(name, cls, values))
            instances[name] = _fitted(cls)
        elif name == "Monitor":
            found.append(_call(name, cls, values))
            instances[name] = values["monitor"]
    for name, thing in instances.items():
        allowed = INTERNAL.get(name)
        for method, function in inspect.getmembers(thing, inspect.isroutine):
            if method.startswith(("_", "set_")) or method in FOREIGN:
                continue
            if allowed is not None and method not in allowed:
                continue
            special = {"data": thing.to_dict()} if method == "from_dict" else {}
            if method == "save":
                special["path"] = f"{name}-saved.json"
            if method == "since":
                special["previous"] = thing
            call = _call(f"{name}.{method}", function, values, special)
            if name == "Monitor" and method == "update":
                call = _update(values["bins"])
            found.append(call)
    return [call for call in found if call.parameters]


def _functions():
    for name in vc.__all__:
        thing = getattr(vc, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.ismodule(thing) and name in MODULES:
            for each in thing.__all__:
                if inspect.isfunction(getattr(thing, each)):
                    yield f"{name}.{each}", getattr(thing, each)


def _call(name, function, values, special=()):
    parameters = inspect.signature(function).parameters.values()
    named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    given = dict(SPECIAL.get(name, {})) | dict(special)
    for one in named:
        data = one.name in ("p", "v", "X") and "data" not in given
        wanted = one.default is one.empty or data
        if one.name in given or not wanted or (name.endswith(".to_sql") and one.name in "pX"):
            continue
        if one.default is not one.empty and (one.name not in values or name == "apply"):
            continue
        assert one.name in values, f"add a valid value of {one.name}, which {name} requires"
        given[one.name] = values[one.name]
    return Call(name, function, given, tuple(one.name for one in named))


def _fitted(cls):
    if "estimator" in inspect.signature(cls).parameters:
        return cls(_model(), cv=2, calibrator=vc.calibrators.PlattCalibrator()).fit(X, Y)
    return cls().fit(P, Y, V)


def _fit_with_parameters(name, cls, values):
    """Constructors check nothing, as scikit-learn asks; `fit` does."""

    def fit(**parameters):
        if "estimator" in parameters:
            return cls(**{"cv": 2} | parameters).fit(X, Y).predict_proba(X)
        fitted = cls(**parameters).fit(P, Y, V)
        return (fitted.predict_proba if hasattr(fitted, "predict_proba") else fitted.predict)(P, V)

    parameters = tuple(inspect.signature(cls).parameters)
    given = {"estimator": values["estimator"]} if "estimator" in parameters else {}
    return Call(name, fit, given, parameters)


def _update(bins):
    def update(**given):
        return vc.Monitor(bins).update(**given)

    return Call("Monitor.update", update, {"batch": FRAME, "id": "1"}, ("batch", "id"))
