"""Margins of a classifier as probabilities: a sigmoid, cross-fitted on the same rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from scipy.special import expit

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._input.frames import numbers_of
from varcal._input.groups import check_units, group_numbers
from varcal._input.labels import Labels
from varcal._input.variables import Variable
from varcal.calibrators.platt import PlattCalibrator
from varcal.exceptions import InputError

#: Each row's sigmoid is fitted on the rows of the other folds.
N_FOLDS = 5
#: Margins are scaled to at most this size, so that their logistic function is not exactly 1.
MOST_LOGIT = 30.0
#: The seed of the folds.
_SEED = 2_917_403_551


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
    if margins.ndim == 1:
        p = _cross_fitted(margins, codes == 1, known, fold, weight)
        return np.column_stack([1.0 - p, p])
    each = [
        _cross_fitted(margins[:, k], codes == k, known, fold, weight) for k in range(len(classes))
    ]
    columns = np.column_stack(each)
    return np.asarray(columns / columns.sum(axis=1, keepdims=True))


def _cross_fitted(
    margin: Floats, hit: Bools, known: Bools, fold: Ints, weight: AnyArray | None
) -> Floats:
    """Return the sigmoid of a margin; that of a row is fitted on the other folds."""
    size = float(np.abs(margin).max(initial=0.0))
    score = expit(margin if size <= MOST_LOGIT else margin * (MOST_LOGIT / size))
    p = np.empty(len(margin))
    for number in np.unique(fold):
        held = fold == number
        train = known & ~held
        n_hits = int(hit[train].sum())
        if n_hits in (0, int(train.sum())):
            p[held] = (n_hits + 1) / (int(train.sum()) + 2)  # Platt's target of a single class
            continue
        fitted = PlattCalibrator().fit(
            score[train],
            hit[train].astype(np.intp),
            sample_weight=None if weight is None else weight[train],
        )
        p[held] = fitted.predict_proba(score[held])[:, 1]
    return p


def _folds(codes: Ints, groups: object) -> Ints:
    """Return the fold of each row: classes are spread evenly, and groups are not split."""
    rng = np.random.default_rng(_SEED)
    if groups is not None:
        unit = group_numbers(check_units(Variable.of(groups, "groups", "groups")))
        fold = rng.permutation(unit.max() + 1) % N_FOLDS
        return np.asarray(fold[unit])
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = np.arange(len(codes)) % N_FOLDS
    return fold
