"""What a file of a calibrated classifier holds: everything but the estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.columns_of_x import ColumnChoice
from varcal.exceptions import InputError


@dataclass(frozen=True, eq=False)
class SavedClassifier:
    """The fitted state of a `VariableCalibratedClassifier` without its estimators.

    Attributes
    ----------
    calibrators : tuple of Calibrator
        One per pair of estimator and calibrator.
    classes : ndarray
        The labels.
    choice : ColumnChoice or None
        The columns of X that are variables; None if variables are passed as ``variables=``.
    variables, calibrator, ensemble
        Parameters of the classifier.
    estimators : tuple of str
        The names of the estimators' classes.
    n_features_in : int or None
        The number of features of the estimators.
    feature_names_in : tuple of str or None
        Their names.
    """

    calibrators: tuple[Calibrator, ...]
    classes: AnyArray
    choice: ColumnChoice | None
    variables: Any
    calibrator: Calibrator | None
    ensemble: bool
    estimators: tuple[str, ...]
    n_features_in: int | None
    feature_names_in: tuple[str, ...] | None

    def _check_saved(self) -> None:
        """Raise ValueError unless every calibrator has an estimator and these classes."""
        if not self.calibrators or len(self.calibrators) != len(self.estimators):
            raise ValueError("calibrators and estimators do not match")
        if self.classes.ndim != 1:
            raise ValueError("classes are not a list of labels")
        for calibrator in self.calibrators:
            if calibrator.classes_.tolist() != self.classes.tolist():
                raise ValueError("a calibrator has other classes")

    def with_estimator(self, estimator: Any, shown: str) -> Any:
        """Return the fitted classifier; `shown` names its file in errors."""
        from varcal.calibrators.classifier import (  # noqa: PLC0415  it imports this file
            VariableCalibratedClassifier,
        )

        if estimator is None:
            raise InputError(
                f"{shown} is a calibrated classifier, which is saved without its estimator",
                f"give the fitted {self.estimators[0]} that was calibrated: "
                "varcal.load(path, estimator=…)",
                argument="estimator",
            )
        return VariableCalibratedClassifier._of(self, self.pairs(estimator, shown))

    def pairs(self, estimator: Any, shown: str) -> list[tuple[Any, Calibrator]]:
        """Return the estimators with their calibrators, after checking that they fit."""
        several = isinstance(estimator, list | tuple)
        n_saved = len(self.calibrators)
        given = list(estimator) if several else [estimator]
        if len(given) != n_saved:
            raise InputError(
                f"estimator: {len(given)} given, but {shown} was saved with {n_saved}",
                "give a list of those in pairs_, in their order"
                if n_saved > 1
                else "give the fitted estimator, estimator_",
                argument="estimator",
            )
        for k, (model, name) in enumerate(zip(given, self.estimators, strict=True)):
            problem = self._problem(model)
            if problem:
                raise InputError(
                    f"estimator {k} {problem}" if several else f"estimator {problem}",
                    f"give the fitted {name} that was calibrated",
                    argument="estimator",
                )
        return list(zip(given, self.calibrators, strict=True))

    def _problem(self, model: Any) -> str:
        """Return why an estimator cannot be the one that was saved; empty if it can."""
        if not hasattr(model, "classes_"):
            return f"is not a fitted classifier: {estimator_name(model)}"
        labels, own = np.asarray(model.classes_).tolist(), self.classes.tolist()
        if len(labels) > len(own) or not set(labels) <= set(own):
            return f"has the classes {labels!r}, but the saved classifier has {own!r}"
        names, wanted = getattr(model, "feature_names_in_", None), self.feature_names_in
        for one, other in zip([] if names is None else names, wanted or (), strict=False):
            if str(one) != other:
                return f"has other features: {str(one)!r} where the saved classifier has {other!r}"
        n_features = getattr(model, "n_features_in_", None)
        if None not in (n_features, self.n_features_in) and n_features != self.n_features_in:
            return f"has {n_features} features, but the saved classifier has {self.n_features_in}"
        return ""


def estimator_name(model: Any) -> str:
    """Return the name of an estimator's class, without a freeze around it."""
    from sklearn.frozen import FrozenEstimator  # noqa: PLC0415  calibrators load without it

    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    return type(inner).__name__
