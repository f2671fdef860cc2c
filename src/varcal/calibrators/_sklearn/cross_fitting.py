"""Cross-fitting: scores of rows by estimators that were fitted on the other folds."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators._sklearn.estimator_scores import estimator_scores
from varcal.calibrators._sklearn.fit_arguments import FitArguments
from varcal.exceptions import InputError, shown

__all__ = ["OutOfFold", "cross_fit"]


class OutOfFold(NamedTuple):
    """One fold: the estimator of the other rows, and its scores of the fold's own rows."""

    model: Any
    scores: Floats
    rows: Ints


def cross_fit(
    estimator: Any,
    given: FitArguments,
    classes: AnyArray,
    cv: Any,
    routed: Bunch,
    *,
    n_jobs: int | None,
) -> list[OutOfFold]:
    """Fit the estimator without each fold, and score the rows of the fold.

    Parameters
    ----------
    estimator : classifier
        It is cloned.
    given : FitArguments
        The rows.
    classes : ndarray
        The labels, one per column of scores.
    cv : int, splitter, iterable or None
        How folds are made.
    routed : Bunch
        Which parameters go to the estimator and which to the splitter.
    n_jobs : int or None
        The number of folds that are fitted in parallel.
    """
    X, y = given.X, given.y
    splitter = _splitter(cv, classes, y, given.units)
    folds = list(splitter.split(X, y, **routed.splitter.split))
    if given.units is not None:
        _check_whole(given.units, folds)
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(_fit_fold)(clone(estimator), X, y, fold, classes, routed.estimator.fit)
        for fold in folds
    )
    return [
        OutOfFold(model, scores, np.arange(len(y))[test])
        for (model, scores), (_, test) in zip(fitted, folds, strict=True)
    ]


def _splitter(cv: Any, classes: AnyArray, y: Any, units: Ints | None) -> Any:
    """Return the splitter; every fold needs a row of every class."""
    labels = y if units is None else _one_each(y, units)
    counts = np.unique(labels, return_counts=True)[1]
    rarest = int(counts.min())
    wanted = min(5, max(rarest, 2)) if cv is None else cv
    if not isinstance(wanted, int):
        return _given_folds(wanted, y)
    if isinstance(wanted, bool) or wanted < 2:
        raise InputError(
            f"cv must be at least 2 folds; got {shown(wanted)}", "try cv=5", argument="cv"
        )
    if rarest < wanted:
        label = classes.tolist()[int(counts.argmin())]
        held = "rows" if units is None else "groups with rows"
        raise InputError(
            f"y has {rarest} {held} of the class {label!r}, fewer than the "
            f"{wanted} folds: each needs at least one class member",
            "use fewer folds, more rows, or a FrozenEstimator",
        )
    return check_cv(wanted, y, classifier=True) if units is None else StratifiedGroupKFold(wanted)


def _one_each(y: AnyArray, units: Ints) -> AnyArray:
    """Return each label once for every group that has rows of it."""
    labels, codes = np.unique(y, return_inverse=True)
    return np.asarray(labels[np.unique(np.column_stack([units, codes]), axis=0)[:, 1]])


def _given_folds(cv: Any, y: Any) -> Any:
    """Return the splitter of scikit-learn, or of pairs of rows to train and to test on."""
    try:
        splitter = check_cv(cv, y, classifier=True)
        if not hasattr(cv, "split") or isinstance(cv, bytes | bytearray):
            pairs = [
                (np.asarray(train), np.asarray(test))
                for train, test in islice(splitter.split(), len(y) + 1)
            ]
            if any(
                part.ndim != 1 or part.dtype.kind not in "iub" for pair in pairs for part in pair
            ):
                raise TypeError("not the numbers of rows")
            if not pairs or len(pairs) > len(y):
                raise ValueError("no folds, or more than rows")
            splitter = check_cv(pairs)
    except Exception as error:  # what it was given may raise anything
        raise InputError(
            f"cv is {shown(cv)}: {type(error).__name__}",
            "give a number of folds, a splitter, or pairs of rows to train and to test on",
            argument="cv",
        ) from None
    return splitter


def _check_whole(units: Ints, folds: list[tuple[Any, Any]]) -> None:
    """Refuse folds that split the rows of a group."""
    for train, test in folds:
        torn = np.intersect1d(units[train], units[test])
        if torn.size:
            row = int(np.flatnonzero(units == torn[0])[0])
            raise InputError(
                f"cv splits {torn.size:,} of the groups, among them that of row {row}: "
                "the calibrator would learn from scores of units that the estimator was trained on",
                "use cv=5, or a splitter such as GroupKFold()",
            )


def _fit_fold(
    model: Any, X: Any, y: Any, fold: Any, classes: AnyArray, fit_params: dict[str, Any]
) -> tuple[Any, Floats]:
    """Fit on one part of the rows, score the other."""
    train, test = fold
    passed = _check_method_params(X, params=fit_params, indices=train)
    model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **passed)
    return model, estimator_scores(model, _safe_indexing(X, test), classes)
