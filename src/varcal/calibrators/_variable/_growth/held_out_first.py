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
from varcal.calibrators._variable.reml import Loss, refine
from varcal.calibrators._variable.trust import Trusted

__all__ = ["held_out_predictors"]


def held_out_predictors(
    design: Design,
    rows: Sample,
    fitted: Trusted,
    whole: tuple[Floats, Floats],
    *,
    pairs: bool,
    sampled: bool,
) -> Iterator[tuple[Floats, Floats]]:
    """Yield, for each fold, the predictor and its variance of all rows by a model without the fold.

    Where the model was learned on all rows, penalties and pairs are learned again without each
    fold. Where they were learned on a sample, most rows had no part in them, and coefficients alone
    are fitted again, by one Newton step; other rows than those of the fold keep the predictor of
    the whole model, which they hardly influence.

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
    pairs : bool
        Whether to look for pairs.
    sampled : bool
        Whether penalties were learned on a sample of the rows.
    """
    for train, held in rows.folds.splits():
        if sampled:
            model = _without(fitted.full.model, rows, train)
            found = model.predictor(rows.z[held], [column[held] for column in rows.columns])
            eta, variance = (each.copy() for each in whole)
            eta[held], variance[held] = found
            yield eta, variance
        else:
            model = fit_additive(design, rows.take(train), pairs=pairs, like=fitted.full).model
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
