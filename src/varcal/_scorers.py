"""scikit-learn scorers: calibration error in `cross_val_score` and `GridSearchCV`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varcal._metrics import ece, vece
from varcal._tables import Table, is_frame
from varcal.exceptions import InputError


@dataclass(frozen=True)
class Scorer:
    """A scikit-learn scorer: minus the calibration error, so that greater is better."""

    metric: Callable[..., float]
    variables: tuple[str | int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted classifier on rows."""
        p = np.asarray(estimator.predict_proba(X))
        v = {str(name): _column(X, name) for name in self.variables}
        args = (y, p, v) if self.variables else (y, p)
        classes = list(estimator.classes_)
        return -self.metric(*args, classes=classes, sample_weight=sample_weight, **self.options)


def ece_scorer(**options: Any) -> Scorer:
    """Return a scorer of minus the ECE.

    Parameters
    ----------
    **options
        Passed on to `ece`: event, n_bins, binning, norm, side, …

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import varcal as vc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bool((cross_val_score(GaussianNB(), X, y, scoring=vc.ece_scorer()) < 0).all())
    True
    """
    return Scorer(ece, (), options)


def vece_scorer(variables: str | int | Sequence[str | int], **options: Any) -> Scorer:
    """Return a scorer of minus the VECE over columns of X.

    Parameters
    ----------
    variables : str, int or a sequence of them
        Names of columns of X, or their positions. Several are binned jointly.
    **options
        Passed on to `vece`: event, n_bins, binning, norm, side, …

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import varcal as vc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> score = vc.vece_scorer(0)(GaussianNB().fit(X, y), X, y)
    >>> -1 <= score <= 0
    True
    """
    names = (variables,) if isinstance(variables, str | int) else tuple(variables)
    if not names:
        raise InputError("variables is empty", "name at least one column of X")
    return Scorer(vece, names, options)


def _column(X: Any, name: str | int) -> Any:
    if is_frame(X):
        table = Table.of(X, "X")
        return table.column(table.columns[name] if isinstance(name, int) else name, "variables")
    if isinstance(name, str):
        raise InputError(
            f"variables names column {name!r}, but X is a {type(X).__name__} without names",
            "give its position, or pass X as a frame",
        )
    return np.asarray(X)[:, name]
