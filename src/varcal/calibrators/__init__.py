"""Calibrators: maps from uncalibrated to calibrated probabilities, as scikit-learn estimators."""

from varcal.calibrators._by_score.beta import BetaCalibrator
from varcal.calibrators._by_score.dirichlet import DirichletCalibrator
from varcal.calibrators._by_score.histogram_binning import HistogramCalibrator
from varcal.calibrators._by_score.isotonic import IsotonicCalibrator
from varcal.calibrators._by_score.platt import PlattCalibrator
from varcal.calibrators._by_score.scaling_binning import ScalingBinningCalibrator
from varcal.calibrators._by_score.temperature import TemperatureCalibrator
from varcal.calibrators._by_score.vector_scaling import VectorScalingCalibrator
from varcal.calibrators._by_variable.augmented import AugmentedCalibrator
from varcal.calibrators._by_variable.tree import TreeCalibrator
from varcal.calibrators._interface.calibrator import Calibrator
from varcal.calibrators._saved.json_file import load_calibrator
from varcal.calibrators._sklearn.classifier import VariableCalibratedClassifier
from varcal.calibrators._variable.variable_calibrator import VariableCalibrator

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
