"""Calibrators: maps from uncalibrated to calibrated predictions, as scikit-learn estimators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in the table below, for type checkers and editors
    from varcal.calibrators.augmented import AugmentedCalibrator as AugmentedCalibrator
    from varcal.calibrators.calibrator import Calibrator as Calibrator
    from varcal.calibrators.classifier import (
        VariableCalibratedClassifier as VariableCalibratedClassifier,
    )
    from varcal.calibrators.log_linear import DirichletCalibrator as DirichletCalibrator
    from varcal.calibrators.log_linear import ShiftCalibrator as ShiftCalibrator
    from varcal.calibrators.log_linear import TemperatureCalibrator as TemperatureCalibrator
    from varcal.calibrators.log_linear import VectorScalingCalibrator as VectorScalingCalibrator
    from varcal.calibrators.mean import MeanCalibrator as MeanCalibrator
    from varcal.calibrators.score_maps import BetaCalibrator as BetaCalibrator
    from varcal.calibrators.score_maps import HistogramCalibrator as HistogramCalibrator
    from varcal.calibrators.score_maps import IsotonicCalibrator as IsotonicCalibrator
    from varcal.calibrators.score_maps import PlattCalibrator as PlattCalibrator
    from varcal.calibrators.score_maps import ScalingBinningCalibrator as ScalingBinningCalibrator
    from varcal.calibrators.tree import TreeCalibrator as TreeCalibrator
    from varcal.calibrators.variable.variable_calibrator import (
        VariableCalibrator as VariableCalibrator,
    )

#: Every public name and the module that defines it, which is loaded when the name is first used.
_HOME = {
    "AugmentedCalibrator": "augmented",
    "BetaCalibrator": "score_maps",
    "Calibrator": "calibrator",
    "DirichletCalibrator": "log_linear",
    "HistogramCalibrator": "score_maps",
    "IsotonicCalibrator": "score_maps",
    "MeanCalibrator": "mean",
    "PlattCalibrator": "score_maps",
    "ScalingBinningCalibrator": "score_maps",
    "ShiftCalibrator": "log_linear",
    "TemperatureCalibrator": "log_linear",
    "TreeCalibrator": "tree",
    "VariableCalibratedClassifier": "classifier",
    "VariableCalibrator": "variable.variable_calibrator",
    "VectorScalingCalibrator": "log_linear",
}

__all__ = [*_HOME]  # noqa: PLE0604, RUF100


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'varcal.calibrators' has no attribute {name!r}")
    value = getattr(import_module(f"varcal.calibrators.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
