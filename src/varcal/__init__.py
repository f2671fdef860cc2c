"""varcal: where along a variable a classifier's confidence is wrong, and how sure we are.

The usual import is ``import varcal as vc``. Every name loads its room when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from varcal._version import __version__

if TYPE_CHECKING:
    from varcal import calibrators, datasets, exceptions, experiments, plotting
    from varcal._apply import Applied, apply
    from varcal._audit import audit, audit_estimator
    from varcal._audit_result import Audit, load_audit
    from varcal._bin_table import BinTable, bin_table
    from varcal._collect import collect, make_bins
    from varcal._collected import Collected
    from varcal._collected_file import load_collected
    from varcal._compare import compare
    from varcal._comparison import Comparison
    from varcal._curves import Curve, curve
    from varcal._estimates import Estimate, estimate
    from varcal._inference import rows_needed
    from varcal._metrics import ece, vece
    from varcal._plan import BinPlan
    from varcal._predictions import Predictions
    from varcal._reliability import Reliability, reliability
    from varcal._scorers import ece_scorer, vece_scorer
    from varcal.calibrators import (
        AugmentedCalibrator,
        BetaCalibrator,
        DirichletCalibrator,
        HistogramCalibrator,
        IsotonicCalibrator,
        PlattCalibrator,
        ScalingBinningCalibrator,
        TemperatureCalibrator,
        TreeCalibrator,
        VariableCalibratedClassifier,
        VariableCalibrator,
        VectorScalingCalibrator,
        load_calibrator,
    )

__all__ = [
    "Applied",
    "Audit",
    "AugmentedCalibrator",
    "BetaCalibrator",
    "BinPlan",
    "BinTable",
    "Collected",
    "Comparison",
    "Curve",
    "DirichletCalibrator",
    "Estimate",
    "HistogramCalibrator",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "Predictions",
    "Reliability",
    "ScalingBinningCalibrator",
    "TemperatureCalibrator",
    "TreeCalibrator",
    "VariableCalibratedClassifier",
    "VariableCalibrator",
    "VectorScalingCalibrator",
    "__version__",
    "apply",
    "audit",
    "audit_estimator",
    "bin_table",
    "calibrators",
    "collect",
    "compare",
    "curve",
    "datasets",
    "ece",
    "ece_scorer",
    "estimate",
    "exceptions",
    "experiments",
    "load_audit",
    "load_calibrator",
    "load_collected",
    "make_bins",
    "plotting",
    "reliability",
    "rows_needed",
    "vece",
    "vece_scorer",
]

_ROOMS = {
    "_apply": ("Applied", "apply"),
    "_audit": ("audit", "audit_estimator"),
    "_audit_result": ("Audit", "load_audit"),
    "_bin_table": ("BinTable", "bin_table"),
    "_collect": ("collect", "make_bins"),
    "_collected": ("Collected",),
    "_collected_file": ("load_collected",),
    "_compare": ("compare",),
    "_comparison": ("Comparison",),
    "_curves": ("Curve", "curve"),
    "_estimates": ("Estimate", "estimate"),
    "_inference": ("rows_needed",),
    "_metrics": ("ece", "vece"),
    "_plan": ("BinPlan",),
    "_predictions": ("Predictions",),
    "_reliability": ("Reliability", "reliability"),
    "_scorers": ("ece_scorer", "vece_scorer"),
}
_ROOMS["calibrators"] = (
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
    "load_calibrator",
)
_MODULES = ("calibrators", "datasets", "exceptions", "experiments", "plotting")
_HOME = {name: room for room, names in _ROOMS.items() for name in names}


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
