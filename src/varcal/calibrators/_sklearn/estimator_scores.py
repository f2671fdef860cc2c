"""The probabilities of an estimator, in the columns of given classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators._solvers.softmax import softmax
from varcal.exceptions import InputError

__all__ = ["estimator_scores", "positions"]


def estimator_scores(model: Any, X: Any, classes: AnyArray) -> Floats:
    """Return the estimator's probabilities in the columns of the given classes."""
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
    elif hasattr(model, "decision_function"):
        margin = np.asarray(model.decision_function(X), dtype=np.float64)
        found = (
            np.column_stack([expit(-margin), expit(margin)])
            if margin.ndim == 1
            else softmax(margin)
        )
    else:
        raise InputError(
            f"{type(model).__name__} has neither predict_proba nor decision_function",
            "use a classifier with one of them",
        )
    scores = np.zeros((len(found), len(classes)))
    scores[:, positions(classes, np.asarray(model.classes_))] = found
    # Rows of single-precision models may not sum to 1 closely enough for the checks of p.
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def positions(classes: AnyArray, labels: AnyArray) -> Ints:
    """Return the position of each label among the classes, −1 if it is not among them."""
    order = np.argsort(classes, kind="stable")
    found = np.minimum(np.searchsorted(classes[order], labels), len(classes) - 1)
    return np.where(classes[order][found] == labels, order[found], -1)
