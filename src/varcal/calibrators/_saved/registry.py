"""The closed list of classes that a saved calibrator may consist of.

A new calibrator is added to `CALIBRATORS`, every new dataclass in its fitted attributes to `PARTS`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal.calibrators._variable._blocks.judgement import Judgement
from varcal.calibrators._variable._columns.design import Block, Design
from varcal.calibrators._variable._columns.score_basis import ScoreBasis
from varcal.calibrators._variable._columns.spline_basis import LevelBasis, NumberBasis
from varcal.calibrators._variable._growth.boosted_trees import Trees
from varcal.calibrators._variable._growth.cells import LevelCells, NumberCells
from varcal.calibrators._variable._growth.growth import Growth
from varcal.calibrators._variable._growth.pair_tables import PairTable
from varcal.calibrators._variable.additive_model import AdditiveModel, PairTrial
from varcal.calibrators._variable.confusion import Confusion
from varcal.calibrators._variable.effects import Term
from varcal.calibrators._variable.many_classes import TemperatureModel
from varcal.calibrators._variable.roughness import Roughness
from varcal.calibrators._variable.two_classes import LogisticModel
from varcal.calibrators._variable.variable_calibrator import VariableCalibrator
from varcal.calibrators.augmented import AugmentedCalibrator, LinearMap
from varcal.calibrators.augmented_terms import LevelTerms, NumberTerms
from varcal.calibrators.beta import BetaCalibrator, BetaMap
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.columns_of_x import ColumnChoice
from varcal.calibrators.dirichlet import DirichletCalibrator
from varcal.calibrators.histogram_binning import HistogramCalibrator, StepMap
from varcal.calibrators.isotonic import IsotonicCalibrator, IsotonicMap
from varcal.calibrators.one_vs_rest import IdentityMap
from varcal.calibrators.partition import Leaf, Node, Split
from varcal.calibrators.platt import PlattCalibrator, PlattMap
from varcal.calibrators.saved_classifier import SavedClassifier
from varcal.calibrators.scaling_binning import ScalingBinningCalibrator, ScalingBinningMap
from varcal.calibrators.schema import Schema
from varcal.calibrators.shift import ShiftCalibrator
from varcal.calibrators.temperature import TemperatureCalibrator
from varcal.calibrators.tree import TreeCalibrator
from varcal.calibrators.vector_scaling import VectorScalingCalibrator

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
        AdditiveModel,
        BetaMap,
        Block,
        ColumnChoice,
        Confusion,
        Design,
        Growth,
        IdentityMap,
        IsotonicMap,
        Judgement,
        Leaf,
        LevelBasis,
        LevelCells,
        LevelTerms,
        LinearMap,
        LogisticModel,
        NumberBasis,
        NumberCells,
        NumberTerms,
        PairTable,
        PairTrial,
        PlattMap,
        Roughness,
        SavedClassifier,
        ScalingBinningMap,
        Schema,
        ScoreBasis,
        Split,
        StepMap,
        TemperatureModel,
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
    "score_trust_": float,
    "variables_trust_": float,
    "edf_": float,
    "terms_": tuple[Term | NumberTerms | LevelTerms, ...] | list[Term | NumberTerms | LevelTerms],
    "pairs_": tuple[PairTrial, ...] | list[PairTrial],
    "model_": LogisticModel | TemperatureModel,
}
_SHARED = ("classes_", "n_features_in_", "score_names_", "separated_")


def saved_state(cls: type[Calibrator]) -> tuple[str, ...]:
    """Return the names of the fitted attributes that a file holds."""
    return (*_SHARED, *cls._state)
