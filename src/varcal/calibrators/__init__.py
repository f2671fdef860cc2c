"""Calibrators: maps from uncalibrated to calibrated probabilities, as scikit-learn estimators."""

from varcal.calibrators._augmented import AugmentedCalibrator
from varcal.calibrators._beta import BetaCalibrator
from varcal.calibrators._calibrator import Calibrator
from varcal.calibrators._classifier import VariableCalibratedClassifier
from varcal.calibrators._dirichlet import DirichletCalibrator
from varcal.calibrators._histogram import HistogramCalibrator
from varcal.calibrators._isotonic import IsotonicCalibrator
from varcal.calibrators._persistence import load_calibrator
from varcal.calibrators._platt import PlattCalibrator
from varcal.calibrators._scaling_binning import ScalingBinningCalibrator
from varcal.calibrators._temperature import TemperatureCalibrator
from varcal.calibrators._tree import TreeCalibrator
from varcal.calibrators._variable import VariableCalibrator
from varcal.calibrators._vector_scaling import VectorScalingCalibrator

__all__ = [
    "AugmentedCalibrator",
    "BetaCalibrator",
    "Calibrator",
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
]
