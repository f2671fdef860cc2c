"""varcal: where along a variable a classifier's confidence is wrong, and how sure we are.

The usual import is ``import varcal as vc``. Every public name is loaded when it is first used,
so that the import itself stays light.
"""

from __future__ import annotations

from importlib import import_module

from varcal._version import __version__ as __version__

TYPE_CHECKING = False  # as in typing, which would take as long to load as all of this file
if TYPE_CHECKING:  # the same names as in the table below, for type checkers and editors
    from typing import Any

    from varcal import calibrators as calibrators
    from varcal import datasets as datasets
    from varcal import exceptions as exceptions
    from varcal import report as report
    from varcal._apply.apply import Applied as Applied
    from varcal._apply.apply import apply as apply
    from varcal._audit.audit import audit as audit
    from varcal._audit.audit_estimator import audit_estimator as audit_estimator
    from varcal._audit.audit_result import Audit as Audit
    from varcal._audit.compare import compare as compare
    from varcal._audit.comparison import Comparison as Comparison
    from varcal._evidence.collect import collect as collect
    from varcal._evidence.collect import make_bins as make_bins
    from varcal._evidence.collected import Collected as Collected
    from varcal._evidence.plan import BinPlan as BinPlan
    from varcal._inference.power import rows_needed as rows_needed
    from varcal._input.predictions import Predictions as Predictions
    from varcal._measures.bin_table import BinTable as BinTable
    from varcal._measures.bin_table import bin_table as bin_table
    from varcal._measures.curve import curve as curve
    from varcal._measures.curve_result import Curve as Curve
    from varcal._measures.estimate import Estimate as Estimate
    from varcal._measures.estimate import estimate as estimate
    from varcal._measures.metrics import ece as ece
    from varcal._measures.metrics import vece as vece
    from varcal._measures.reliability import Reliability as Reliability
    from varcal._measures.reliability import reliability as reliability
    from varcal._measures.scorers import ece_scorer as ece_scorer
    from varcal._measures.scorers import vece_scorer as vece_scorer
    from varcal._monitor.monitor import Monitor as Monitor
    from varcal._saved.load import load as load
    from varcal._slices.slices import slices as slices
    from varcal._slices.slices_result import Slice as Slice
    from varcal._slices.slices_result import Slices as Slices
    from varcal._surfaces.predictable import predictable_gap as predictable_gap
    from varcal._surfaces.predictable_result import PredictableGap as PredictableGap
    from varcal._surfaces.surface import surface as surface
    from varcal._surfaces.surface_result import Surface as Surface
    from varcal.calibrators import AugmentedCalibrator as AugmentedCalibrator
    from varcal.calibrators import BetaCalibrator as BetaCalibrator
    from varcal.calibrators import DirichletCalibrator as DirichletCalibrator
    from varcal.calibrators import HistogramCalibrator as HistogramCalibrator
    from varcal.calibrators import IsotonicCalibrator as IsotonicCalibrator
    from varcal.calibrators import PlattCalibrator as PlattCalibrator
    from varcal.calibrators import ScalingBinningCalibrator as ScalingBinningCalibrator
    from varcal.calibrators import TemperatureCalibrator as TemperatureCalibrator
    from varcal.calibrators import TreeCalibrator as TreeCalibrator
    from varcal.calibrators import VariableCalibratedClassifier as VariableCalibratedClassifier
    from varcal.calibrators import VariableCalibrator as VariableCalibrator
    from varcal.calibrators import VectorScalingCalibrator as VectorScalingCalibrator

#: Every public name, by the module that defines it.
_PUBLIC = {
    "_apply.apply": (
        "Applied",
        "apply",
    ),
    "_audit.audit": ("audit",),
    "_audit.audit_estimator": ("audit_estimator",),
    "_audit.audit_result": ("Audit",),
    "_audit.compare": ("compare",),
    "_audit.comparison": ("Comparison",),
    "_evidence.collect": (
        "collect",
        "make_bins",
    ),
    "_evidence.collected": ("Collected",),
    "_evidence.plan": ("BinPlan",),
    "_inference.power": ("rows_needed",),
    "_input.predictions": ("Predictions",),
    "_measures.bin_table": (
        "BinTable",
        "bin_table",
    ),
    "_measures.curve": ("curve",),
    "_measures.curve_result": ("Curve",),
    "_measures.estimate": (
        "Estimate",
        "estimate",
    ),
    "_measures.metrics": (
        "ece",
        "vece",
    ),
    "_measures.reliability": (
        "Reliability",
        "reliability",
    ),
    "_measures.scorers": (
        "ece_scorer",
        "vece_scorer",
    ),
    "_monitor.monitor": ("Monitor",),
    "_saved.load": ("load",),
    "_slices.slices": ("slices",),
    "_slices.slices_result": (
        "Slice",
        "Slices",
    ),
    "_surfaces.predictable": ("predictable_gap",),
    "_surfaces.predictable_result": ("PredictableGap",),
    "_surfaces.surface": ("surface",),
    "_surfaces.surface_result": ("Surface",),
    "calibrators": (
        "AugmentedCalibrator",
        "BetaCalibrator",
        "DirichletCalibrator",
        "HistogramCalibrator",
        "IsotonicCalibrator",
        "PlattCalibrator",
        "ScalingBinningCalibrator",
        "TemperatureCalibrator",
        "TreeCalibrator",
        "VariableCalibratedClassifier",
        "VariableCalibrator",
        "VectorScalingCalibrator",
    ),
}
_MODULES = ("calibrators", "datasets", "exceptions", "report")
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604, RUF100


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"varcal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'varcal' has no attribute {name!r}")
    value = getattr(import_module(f"varcal.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
