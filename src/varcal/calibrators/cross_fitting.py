"""Cross-fitting: scores of rows by estimators, or sigmoids, fitted on the other folds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.frames import numbers_of
from varcal._input.groups import check_units, group_numbers
from varcal._input.labels import Labels
from varcal._input.variables import Variable
from varcal.calibrators.regression import fit_logistic, softmax
from varcal.calibrators.score_maps import platt_targets
from varcal.exceptions import InputError, shown

#: Each row's sigmoid is fitted on the rows of the other folds.
N_FOLDS = 5
#: The seed of the folds.
_SEED = 2_917_403_551


def cross_fit(
    estimator: Any,
    X: Any,
    y: AnyArray,
    classes: AnyArray,
    cv: Any,
    units: Ints | None,
    routed: Bunch,
    n_jobs: int | None,
) -> tuple[Floats, Ints]:
    """Fit the estimator without each fold, and score the rows of the fold.

    Parameters
    ----------
    estimator : classifier
        It is cloned.
    X, y : array-like
        The rows.
    classes : ndarray
        The labels, one per column of scores.
    cv : int, splitter, iterable or None
        How folds are made.
    units : ndarray of int or None
        The group of each row, which folds do not split.
    routed : Bunch
        Which parameters go to the estimator and which to the splitter.
    n_jobs : int or None
        The number of folds that are fitted in parallel.

    Returns
    -------
    scores, rows : tuple
        The scores of rows by estimators that were fitted on others, and which rows these are, in
        their order.
    """
    n = len(y)
    try:
        splits = _splitter(cv, classes, y, units).split(X, y, **routed.splitter.split)
        folds = [(np.arange(n)[train], np.arange(n)[test]) for train, test in splits]
        rows = np.concatenate([test for _, test in folds])
    except InputError:
        raise
    except Exception as error:  # a splitter may raise anything
        raise InputError(
            f"cv is {shown(cv)}: {type(error).__name__}: {error}",
            "give a number of folds, a splitter, or pairs of rows to train and to test on",
            argument="cv",
        ) from None
    for k, (_, test) in enumerate(folds, 1):
        if not test.size:
            raise InputError(f"cv: fold {k} has no rows to test on", "leave it out", argument="cv")
    if units is not None:
        _check_whole(units, folds)
    scores = Parallel(n_jobs=n_jobs)(
        delayed(_fit_fold)(clone(estimator), X, y, fold, classes, routed.estimator.fit)
        for fold in folds
    )
    order = np.argsort(rows, kind="stable")
    return np.concatenate(scores)[order], rows[order]


def _splitter(cv: Any, classes: AnyArray, y: Any, units: Ints | None) -> Any:
    """Return the splitter; every fold needs a row of every class."""
    labels = y if units is None else _one_each(y, units)
    counts = np.unique(labels, return_counts=True)[1]
    rarest = int(counts.min())
    wanted = min(5, max(rarest, 2)) if cv is None else cv
    if not isinstance(wanted, int):
        return check_cv(wanted, y, classifier=True)
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
) -> Floats:
    """Fit on one part of the rows, score the other."""
    train, test = fold
    passed = _check_method_params(X, params=fit_params, indices=train)
    model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **passed)
    return estimator_scores(model, _safe_indexing(X, test), classes)


def estimator_scores(model: Any, X: Any, classes: AnyArray) -> Floats:
    """Return the estimator's probabilities in the columns of the given classes."""
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
    elif hasattr(model, "decision_function"):
        margin = np.asarray(model.decision_function(X), dtype=np.float64)
        two = margin.ndim == 1
        found = np.column_stack([expit(-margin), expit(margin)]) if two else softmax(margin)
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


def take_rows(values: Any, rows: Any) -> Any:
    """Return some rows of an argument of `fit`; what has none stays as it is."""
    if values is None or isinstance(values, str | bool):
        return values
    if isinstance(values, dict):
        return {name: _safe_indexing(column, rows) for name, column in values.items()}
    return _safe_indexing(values, rows)


def check_lengths(n: int, columns: Mapping[str, Any]) -> None:
    """Refuse variables whose number of rows differs from that of X."""
    for column in columns.values():
        held = len(column) if np.shape(column) else 0
        if held != n:
            raise InputError(
                f"lengths differ: X {n:,}, variables {held:,}", "give one value per row in each"
            )


def units_of(groups: Any, n: int, argument: str = "groups") -> Ints:
    """Return groups, or blocks, as numbers."""
    unit = Variable.of(groups, argument, argument)
    if len(unit) != n:
        raise InputError(
            f"lengths differ: X {n:,}, {argument} {len(unit):,}", "give one value per row in each"
        )
    return group_numbers(check_units(unit))


def sigmoid_of_margins(
    margins: Floats,
    y: object,
    classes: Sequence[Hashable],
    *,
    sample_weight: object = None,
    groups: object = None,
) -> Floats:
    """Return probabilities from margins: a sigmoid of each class's margin, normalized.

    Parameters
    ----------
    margins : ndarray
        Two classes: shape (n,), larger for the second class. More: one column per class.
    y : array-like
        The labels; rows without one get the probability of a sigmoid fitted on all others.
    classes : sequence
        The labels in the order of the columns.
    sample_weight : array-like, optional
        Weights of the rows.
    groups : array-like, optional
        Units whose rows share a fold.

    Returns
    -------
    ndarray of shape (n, K)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> margin = rng.normal(size=4000)
    >>> y = (rng.random(4000) < expit(2 * margin - 1)).astype(int)
    >>> p = sigmoid_of_margins(margin, y, [0, 1])[:, 1]
    >>> bool(np.abs(p - expit(2 * margin - 1)).max() < 0.05)
    True
    """
    if margins.ndim == 2 and margins.shape[1] != len(classes):
        raise InputError(
            f"model returns {margins.shape[1]} margins per row for {len(classes)} classes",
            'use a model with one margin per class, such as SVC(decision_function_shape="ovr")',
            argument="model",
        )
    labels = Labels.of(y)
    if len(labels) != len(margins):
        raise InputError(
            f"lengths differ: X {len(margins):,}, y {len(labels):,}",
            "give one value per row in each",
        )
    known = ~labels.missing()
    codes = np.full(len(margins), -1, dtype=np.intp)
    codes[known] = labels.take(known).encode(len(classes), classes)[0]
    weight = None if sample_weight is None else numbers_of(sample_weight, "sample_weight")
    fold = _folds(codes, groups)
    columns = margins.reshape(len(margins), -1)
    hits = codes[:, None] == (np.arange(len(classes)) if margins.ndim == 2 else np.array([1]))
    p = np.empty(columns.shape)
    for number in np.unique(fold):
        held = fold == number
        train = known & ~held
        own = None if weight is None else weight[train]
        for k, margin in enumerate(columns.T):
            targets = platt_targets(hits[train, k].astype(np.float64), own)
            fit = fit_logistic(margin[None, train], targets, own)
            p[held, k] = expit(fit.coef[0] * margin[held] + fit.intercept)
    p = p if margins.ndim == 2 else np.column_stack([1.0 - p, p])
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _folds(codes: Ints, groups: object) -> Ints:
    """Return the fold of each row: classes are spread evenly, and groups are not split."""
    rng = np.random.default_rng(_SEED)
    if groups is not None:
        unit = units_of(groups, len(codes))
        fold = rng.permutation(unit.max() + 1) % N_FOLDS
        return np.asarray(fold[unit])
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = np.arange(len(codes)) % N_FOLDS
    return fold
