"""varcal: where along a variable a classifier's probabilities are wrong, and how sure we are.

The usual import is ``import varcal as vc``. Every public name is loaded when it is first used,
so that the import itself stays light.
"""

from __future__ import annotations

from varcal._version import __version__ as __version__

TYPE_CHECKING = False  # as in typing, which would take as long to load as all of this file
if TYPE_CHECKING:  # the same names as in the table below, for type checkers and editors
    from typing import Any

    from varcal import calibrators as calibrators
    from varcal import datasets as datasets
    from varcal import exceptions as exceptions
    from varcal import results as results
    from varcal import testing as testing
    from varcal._audit.audit import audit as audit
    from varcal._audit.audit import audit_estimator as audit_estimator
    from varcal._audit.compare import compare as compare
    from varcal._files.saved import load as load
    from varcal._inference.calibration_test import rows_needed as rows_needed
    from varcal._measures.bin_table import bin_table as bin_table
    from varcal._measures.clinical import measures as measures
    from varcal._measures.curve import curve as curve
    from varcal._measures.decomposition import decompose as decompose
    from varcal._measures.display import (
        VariableCalibrationDisplay as VariableCalibrationDisplay,
    )
    from varcal._measures.estimate import estimate as estimate
    from varcal._measures.metrics import ece as ece
    from varcal._measures.metrics import ece_scorer as ece_scorer
    from varcal._measures.metrics import vece as vece
    from varcal._measures.metrics import vece_scorer as vece_scorer
    from varcal._measures.reliability import reliability as reliability
    from varcal._monitor.monitor import Monitor as Monitor
    from varcal._search.predictable_gap import predictable_gap as predictable_gap
    from varcal._search.slices import slices as slices
    from varcal._search.surface import surface as surface
    from varcal._sums.collect import collect as collect
    from varcal._sums.collect import make_bins as make_bins
    from varcal.calibrators import MeanCalibrator as MeanCalibrator
    from varcal.calibrators import VariableCalibratedClassifier as VariableCalibratedClassifier
    from varcal.calibrators import VariableCalibrator as VariableCalibrator
    from varcal.calibrators.apply import apply as apply

#: The module that defines each public name.
_HOME = {
    "apply": "calibrators.apply",
    "audit": "_audit.audit",
    "audit_estimator": "_audit.audit",
    "bin_table": "_measures.bin_table",
    "collect": "_sums.collect",
    "compare": "_audit.compare",
    "curve": "_measures.curve",
    "decompose": "_measures.decomposition",
    "ece": "_measures.metrics",
    "ece_scorer": "_measures.metrics",
    "estimate": "_measures.estimate",
    "measures": "_measures.clinical",
    "load": "_files.saved",
    "make_bins": "_sums.collect",
    "predictable_gap": "_search.predictable_gap",
    "reliability": "_measures.reliability",
    "rows_needed": "_inference.calibration_test",
    "slices": "_search.slices",
    "surface": "_search.surface",
    "vece": "_measures.metrics",
    "vece_scorer": "_measures.metrics",
    "MeanCalibrator": "calibrators",
    "Monitor": "_monitor.monitor",
    "VariableCalibratedClassifier": "calibrators",
    "VariableCalibrationDisplay": "_measures.display",
    "VariableCalibrator": "calibrators",
}
_MODULES = ("calibrators", "datasets", "exceptions", "results", "testing")

__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604, RUF100


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415  keeps the import light

    if name in _MODULES:
        return import_module(f"varcal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'varcal' has no attribute {name!r}")
    value = getattr(import_module(f"varcal.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
