"""The first stage's predictor of each row, by a fit that has not seen the row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from varcal._arrays import Bools, Floats
from varcal.calibrators._variable._columns.design import Design
from varcal.calibrators._variable.additive_model import (
    AdditiveModel,
    Sample,
    chunks_of,
    fit_additive,
)
from varcal.calibrators._variable.last_curve import left_out
from varcal.calibrators._variable.reml import LogisticLoss, Loss, refine
from varcal.calibrators._variable.trust import Trusted

__all__ = ["held_out_predictors"]


def held_out_predictors(
    design: Design,
    rows: Sample,
    fitted: Trusted,
    whole: tuple[Floats, Floats],
    *,
    sampled: bool,
) -> Iterator[tuple[Floats, Floats]]:
    """Yield, for each fold, the predictor and its variance of all rows by a model without the fold.

    Where the model was learned on all rows, penalties and pairs are learned again without each
    fold. Where they were learned on a sample, most rows had no part in them, and each row is left
    out of the coefficients by the approximation of the last curve; rows of groups and rows of
    later times by one Newton step without the fold.

    Parameters
    ----------
    design : Design
        The terms.
    rows : Sample
        All rows.
    fitted : Trusted
        The fit.
    whole : tuple of ndarray
        The predictor and its variance by the model of all rows.
    sampled : bool
        Whether penalties were learned on a sample of the rows.
    """
    assert isinstance(rows.loss, LogisticLoss)
    alone = rows.units is None and not rows.folds.forward
    if sampled and alone:
        offset = rows.loss.offset
        eta, variance = left_out(whole[0] + offset, whole[1], rows.loss.y)
        whole = eta - offset, variance
    for train, held in rows.folds.splits():
        if sampled and alone:
            yield whole
        elif sampled:
            model = _without(fitted.full.model, rows, train)
            found = model.predictor(rows.z[held], [column[held] for column in rows.columns])
            eta, variance = (each.copy() for each in whole)
            eta[held], variance[held] = found
            yield eta, variance
        else:
            model = fit_additive(design, rows.take(train), pairs=True, like=fitted.full).model
            yield model.of_sample(rows)


def _without(model: AdditiveModel, rows: Sample, train: Bools) -> AdditiveModel:
    """Return the model after one Newton step on some of the rows."""
    some = np.flatnonzero(train)

    def parts() -> Iterator[tuple[Floats, Loss]]:
        for chunk in chunks_of(len(some)):
            at = some[chunk]
            X = model.design.matrix(rows.z[at], [column[at] for column in rows.columns])
            yield X, rows.loss.take(at)

    beta, covariance, mass = refine(model.beta, model.ridge, parts)
    return AdditiveModel(model.design, beta, covariance, model.ridge, mass)
