"""Cross-fitting: scores of rows by estimators that were fitted on the other folds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.groups import check_units, group_numbers
from varcal._input.variables import Variable
from varcal.calibrators.held_together import instants_of
from varcal.calibrators.softmax import softmax
from varcal.exceptions import InputError, shown


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
        if hasattr(cv, "split") and not isinstance(cv, bytes | bytearray):
            return splitter
        pairs = [tuple(map(np.asarray, pair)) for pair in islice(splitter.split(), len(y) + 1)]
        fine = all(part.ndim == 1 and part.dtype.kind in "iub" for pair in pairs for part in pair)
        if not fine or not 0 < len(pairs) <= len(y) or {len(pair) for pair in pairs} != {2}:
            raise ValueError("not pairs of rows")
        return check_cv(pairs)
    except Exception as error:  # what it was given may raise anything
        raise InputError(
            f"cv is {shown(cv)}: {type(error).__name__}",
            "give a number of folds, a splitter, or pairs of rows to train and to test on",
            argument="cv",
        ) from None


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


class FitArguments(NamedTuple):
    """The arguments of `fit`, with groups, times and blocks as numbers."""

    X: Any
    y: Any
    v: Any
    sample_weight: Any
    units: Ints | None
    instants: Floats | None
    blocks: Any

    @classmethod
    def of(
        cls, X: Any, y: Any, v: Any, sample_weight: Any, groups: Any, time: Any, blocks: Any
    ) -> FitArguments:
        """Check that variables, groups, times and blocks have one value per row of X."""
        if v is not None:
            _check_length(v, len(y))
        units = None if groups is None else _units(groups, len(y))
        instants = None if time is None else _instants(time, len(y))
        if not isinstance(blocks, str | bool):
            blocks = _units(blocks, len(y), "blocks")
        return cls(X, y, v, sample_weight, units, instants, blocks)


def _check_length(v: Any, n: int) -> None:
    """Refuse variables whose number of rows differs from that of X."""
    columns = v.values() if isinstance(v, Mapping) else [v]
    for column in columns:
        shape = getattr(column, "shape", None)
        single = shape == () or isinstance(column, str | bytes)
        if single or (shape is None and not hasattr(column, "__len__")):
            raise InputError(
                f"variables is {shown(v)}, not columns of values",
                "give an array, a frame or a dict of columns",
                argument="variables",
            )
        held = shape[0] if shape else len(column)
        if held != n:
            raise InputError(
                f"lengths differ: X {n:,}, variables {held:,}", "give one value per row in each"
            )


def _units(groups: Any, n: int, argument: str = "groups") -> Ints:
    """Return groups, or blocks, as numbers."""
    unit = Variable.of(groups, argument, argument)
    if len(unit) != n:
        raise InputError(
            f"lengths differ: X {n:,}, {argument} {len(unit):,}", "give one value per row in each"
        )
    return group_numbers(check_units(unit))


def _instants(time: Any, n: int) -> Floats:
    """Return times as numbers."""
    if isinstance(time, str):
        raise InputError(
            f"time is the string {time!r}", "give one date or number per row", argument="time"
        )
    return instants_of(time, None, n)
