"""The closed list of classes that a saved calibrator may consist of.

A new calibrator is added to `CALIBRATORS`, every new dataclass in its fitted attributes to `PARTS`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal.calibrators._by_score.beta import BetaCalibrator, BetaMap
from varcal.calibrators._by_score.dirichlet import DirichletCalibrator
from varcal.calibrators._by_score.histogram_binning import HistogramCalibrator, StepMap
from varcal.calibrators._by_score.isotonic import IsotonicCalibrator, IsotonicMap
from varcal.calibrators._by_score.platt import PlattCalibrator, PlattMap
from varcal.calibrators._by_score.scaling_binning import ScalingBinningCalibrator, ScalingBinningMap
from varcal.calibrators._by_score.shift import ShiftCalibrator
from varcal.calibrators._by_score.temperature import TemperatureCalibrator
from varcal.calibrators._by_score.vector_scaling import VectorScalingCalibrator
from varcal.calibrators._by_variable.augmented import AugmentedCalibrator, LinearMap
from varcal.calibrators._by_variable.augmented_terms import LevelTerms, NumberTerms
from varcal.calibrators._by_variable.partition import Leaf, Node, Split
from varcal.calibrators._by_variable.tree import TreeCalibrator
from varcal.calibrators._interface.calibrator import Calibrator
from varcal.calibrators._interface.fitted_variables import Schema
from varcal.calibrators._interface.one_vs_rest import IdentityMap
from varcal.calibrators._sklearn.columns_of_x import ColumnChoice
from varcal.calibrators._sklearn.saved_classifier import SavedClassifier
from varcal.calibrators.variable.additive import Product, Table, Tables
from varcal.calibrators.variable.dependence import Judgement
from varcal.calibrators.variable.explain import Stage, Term
from varcal.calibrators.variable.intervals import Errors
from varcal.calibrators.variable.many_classes import ClassesModel, ClassMap
from varcal.calibrators.variable.trees import Cells, Trees
from varcal.calibrators.variable.two_classes import LogisticModel
from varcal.calibrators.variable.variable_calibrator import VariableCalibrator

#: The calibrators that a file may hold, by the name of their class.
CALIBRATORS: dict[str, type[Calibrator]] = {
    cls.__name__: cls
    for cls in (
        AugmentedCalibrator,
        BetaCalibrator,
        DirichletCalibrator,
        HistogramCalibrator,
        IsotonicCalibrator,
        PlattCalibrator,
        ScalingBinningCalibrator,
        ShiftCalibrator,
        TemperatureCalibrator,
        TreeCalibrator,
        VariableCalibrator,
        VectorScalingCalibrator,
    )
}
#: The dataclasses that the fitted attributes of calibrators may consist of. The names of the
#: classes and of their fields are part of the file format.
PARTS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        BetaMap,
        Cells,
        ClassMap,
        ClassesModel,
        ColumnChoice,
        Errors,
        IdentityMap,
        IsotonicMap,
        Judgement,
        Leaf,
        LevelTerms,
        LinearMap,
        LogisticModel,
        NumberTerms,
        PlattMap,
        Product,
        SavedClassifier,
        ScalingBinningMap,
        Schema,
        Split,
        Stage,
        StepMap,
        Table,
        Tables,
        Term,
        Trees,
    )
}
#: The types of fitted attributes, wherever they are; those of every calibrator come first. Where a
#: name is not listed, the dataclasses inside are checked by their own fields.
STATE: dict[str, Any] = {
    "classes_": np.ndarray,
    "n_features_in_": int,
    "score_names_": tuple[str, ...],
    "separated_": bool,
    "schema_": Schema,
    "temperature_": float,
    "coef_": Floats,
    "intercept_": Floats,
    "factors_": Floats,
    "shift_": float | Floats,
    "shifts_": Floats,
    "tree_": Node,
    "leaves_": list[Calibrator],
    "terms_": tuple[Term | NumberTerms | LevelTerms, ...] | list[Term | NumberTerms | LevelTerms],
    "stages_": tuple[Stage, ...] | list[Stage],
    "model_": LogisticModel | ClassesModel,
}
_SHARED = ("classes_", "n_features_in_", "score_names_", "separated_")


def saved_state(cls: type[Calibrator]) -> tuple[str, ...]:
    """Return the names of the fitted attributes that a file holds."""
    return (*_SHARED, *cls._state)
