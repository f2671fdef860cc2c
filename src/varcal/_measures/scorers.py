"""scikit-learn scorers: calibration error in `cross_val_score` and `GridSearchCV`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from varcal._input.frames import Table, is_frame
from varcal._measures.metrics import ece, vece
from varcal.exceptions import InputError, nearest

# Parameters that the scorer passes to the metric, or that do not apply to an estimator.
_OWN = {"y", "p", "v", "data", "classes", "sample_weight", "from_logits"}


@dataclass(frozen=True)
class Scorer:
    """A scikit-learn scorer: minus the calibration error, so that greater is better."""

    metric: Callable[..., float]
    variables: tuple[str | int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [name for name in inspect.signature(self.metric).parameters if name not in _OWN]
        for name in self.options:
            if name not in known:
                near = nearest(name, known)
                raise InputError(
                    f"a scorer has no option {name!r}",
                    f"did you mean {near!r}?" if near else f"the options are {', '.join(known)}",
                )

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted classifier on rows."""
        p = np.asarray(estimator.predict_proba(X))
        v = {str(name): column_of_features(X, name) for name in self.variables}
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
    several = isinstance(variables, Iterable) and not isinstance(variables, str)
    given: tuple[Any, ...] = tuple(variables) if several else (variables,)  # type: ignore[arg-type]
    names = tuple(int(name) if isinstance(name, Integral) else name for name in given)
    if not names:
        raise InputError(
            "variables is empty", "name at least one column of X", argument="variables"
        )
    if any(not isinstance(name, str | int) for name in names):
        raise InputError(
            f"variables is {variables!r}",
            "give names or positions of columns of X",
            argument="variables",
        )
    if len({str(name) for name in names}) < len(names):
        raise InputError(
            f"variables names a column twice: {list(names)}",
            "name each column once",
            argument="variables",
        )
    return Scorer(vece, names, options)


def column_of_features(X: Any, name: str | int) -> Any:
    """Return a column of X by name or position."""
    frame = Table.of(X, "X") if is_frame(X) else None
    if isinstance(name, str):
        if frame is None:
            raise InputError(
                f"variables names column {name!r}, but X is a {type(X).__name__} without names",
                "give its position, or pass X as a frame",
                argument="variables",
            )
        return frame.column(name, "variables")
    width = len(frame.columns) if frame is not None else np.shape(X)[1]
    if not -width <= name < width:
        raise InputError(
            f"variables gives position {name}, but X has {width} columns",
            f"positions go from 0 to {width - 1}",
            argument="variables",
        )
    if frame is not None:
        return frame.column(frame.columns[name], "variables")
    if hasattr(X, "tocsc"):
        return X.tocsc()[:, [name]].toarray()[:, 0]
    return np.asarray(X)[:, name]
