"""Calibrators: maps from uncalibrated to calibrated probabilities, as scikit-learn estimators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in the table below, for type checkers and editors
    from varcal.calibrators._by_score.beta import BetaCalibrator as BetaCalibrator
    from varcal.calibrators._by_score.dirichlet import DirichletCalibrator as DirichletCalibrator
    from varcal.calibrators._by_score.histogram_binning import (
        HistogramCalibrator as HistogramCalibrator,
    )
    from varcal.calibrators._by_score.isotonic import IsotonicCalibrator as IsotonicCalibrator
    from varcal.calibrators._by_score.platt import PlattCalibrator as PlattCalibrator
    from varcal.calibrators._by_score.scaling_binning import (
        ScalingBinningCalibrator as ScalingBinningCalibrator,
    )
    from varcal.calibrators._by_score.shift import ShiftCalibrator as ShiftCalibrator
    from varcal.calibrators._by_score.temperature import (
        TemperatureCalibrator as TemperatureCalibrator,
    )
    from varcal.calibrators._by_score.vector_scaling import (
        VectorScalingCalibrator as VectorScalingCalibrator,
    )
    from varcal.calibrators._by_variable.augmented import AugmentedCalibrator as AugmentedCalibrator
    from varcal.calibrators._by_variable.tree import TreeCalibrator as TreeCalibrator
    from varcal.calibrators._interface.calibrator import Calibrator as Calibrator
    from varcal.calibrators._sklearn.classifier import (
        VariableCalibratedClassifier as VariableCalibratedClassifier,
    )
    from varcal.calibrators.variable.variable_calibrator import (
        VariableCalibrator as VariableCalibrator,
    )

#: Every public name and the module that defines it, which is loaded when the name is first used.
_HOME = {
    "AugmentedCalibrator": "_by_variable.augmented",
    "BetaCalibrator": "_by_score.beta",
    "Calibrator": "_interface.calibrator",
    "DirichletCalibrator": "_by_score.dirichlet",
    "HistogramCalibrator": "_by_score.histogram_binning",
    "IsotonicCalibrator": "_by_score.isotonic",
    "PlattCalibrator": "_by_score.platt",
    "ScalingBinningCalibrator": "_by_score.scaling_binning",
    "ShiftCalibrator": "_by_score.shift",
    "TemperatureCalibrator": "_by_score.temperature",
    "TreeCalibrator": "_by_variable.tree",
    "VariableCalibratedClassifier": "_sklearn.classifier",
    "VariableCalibrator": "variable.variable_calibrator",
    "VectorScalingCalibrator": "_by_score.vector_scaling",
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
