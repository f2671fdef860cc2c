"""`audit_estimator`: audit a fitted classifier of scikit-learn, along any variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._audit.audit import audit
from varcal._audit.result import Audit
from varcal._input.frames import columns_by_name
from varcal._input.left_out import WholeTable, explicit_names
from varcal.exceptions import InputError


def audit_estimator(
    model: Any, X: Any, y: object, *, variables: object = None, **options: Any
) -> Audit:
    """Audit a fitted classifier on rows that it was not trained on.

    Parameters
    ----------
    model : fitted classifier
        A classifier or pipeline with `classes_`, and with `predict_proba` or `decision_function`,
        as in scikit-learn. Margins are not probabilities: where the model has nothing else, they
        are turned into probabilities by a sigmoid (Platt; one per class, as in
        `CalibratedClassifierCV`) that is cross-fitted on these rows, and a note of the audit says
        so. What is audited is then the model with this sigmoid.
    X : frame or array
        The features. Every column is audited; columns of an array are called v0, v1, …, or with
        `variables` x0, x1, …
    y : array-like
        The labels.
    variables : frame, dict of columns or array, optional
        Variables that the model does not see, such as a protected attribute. They are audited
        beside the columns of X and must have other names.
    **options
        Passed on to `audit`.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import varcal as vc
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> seen = X.drop(columns="mean area")
    >>> model = GaussianNB().fit(seen[:300], y[:300])
    >>> found = vc.audit_estimator(model, seen[300:], y[300:], variables=X[["mean area"]][300:])
    >>> len(found), "mean area" in found
    (30, True)
    """
    if not hasattr(model, "classes_"):
        raise InputError(
            f"model has no classes_: {type(model).__name__}",
            "give a fitted classifier",
            argument="model",
        )
    classes = list(model.classes_)
    p, note = _probabilities(model, X, y, options)
    if variables is not None:
        own, others = columns_by_name(X, "X", "x"), columns_by_name(variables, "variables")
        _check_names(own, others)
        chosen = explicit_names(None, options.get("include"), [*own, *others])
        options["include"] = sorted(chosen | explicit_names(variables, None, list(others)))
        X = WholeTable(own | others)
    found = audit(y, p, X, classes=classes, **options)
    return replace(found, notes=(note, *found.notes)) if note else found


def _probabilities(model: Any, X: Any, y: object, options: Mapping[str, Any]) -> tuple[Floats, str]:
    """Return the model's probabilities, and a note where they had to be made from margins."""
    if hasattr(model, "predict_proba"):
        return _asked(model.predict_proba, X), ""
    name = type(model).__name__
    if not hasattr(model, "decision_function"):
        raise InputError(
            f"model has neither predict_proba nor decision_function: {name}",
            "give a fitted classifier that has one of them",
            argument="model",
        )
    from varcal.calibrators.margins import sigmoid_of_margins  # noqa: PLC0415

    p = sigmoid_of_margins(
        _asked(model.decision_function, X).astype(np.float64),
        y,
        list(model.classes_),
        sample_weight=options.get("sample_weight"),
        groups=options.get("groups"),
    )
    return p, (
        f"{name} has no predict_proba: the audit is of a sigmoid of its decision_function, "
        "cross-fitted on these rows."
    )


def _asked(method: Callable[[Any], Any], X: Any) -> Floats:
    """Return what a method of the model says about rows."""
    try:
        return np.asarray(method(X))
    except (AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"X is refused by the model: {error}",
            "give the features that the model was fitted on",
            argument="X",
        ) from error


def _check_names(own: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Refuse variables that have the name of a feature."""
    both = [name for name in others if name in own]
    if both:
        raise InputError(
            f"variables has columns that X has, too: {', '.join(map(repr, both[:5]))}",
            "rename them, or leave them out of variables: the columns of X are audited already",
            argument="variables",
        )
