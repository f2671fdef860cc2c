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

__all__ = ["held_out_predictor"]


def held_out_predictor(
    design: Design, rows: Sample, fitted: Trusted, *, pairs: bool, sampled: bool
) -> tuple[Floats, Floats]:
    """Return the predictor of the model of all variables and its variance for held-out rows.

    Where the model was learned on all rows, penalties and pairs are learned again without each
    fold. Where they were learned on a sample, most rows had no part in them, and coefficients alone
    are fitted again, by one Newton step. Rows that are never held out get the model itself.

    Parameters
    ----------
    design : Design
        The terms.
    rows : Sample
        All rows.
    fitted : Trusted
        The fit.
    pairs : bool
        Whether to look for pairs.
    sampled : bool
        Whether penalties were learned on a sample of the rows.
    """
    eta, variance = np.zeros(len(rows)), np.zeros(len(rows))
    whole, rest = fitted.full.model, ~rows.folds.judged()
    if rest.any():
        eta[rest], variance[rest] = _predicted(whole, rows, rest)
    for train, held in rows.folds.splits():
        if sampled:
            model = _without(whole, rows, train)
        else:
            part = rows.take(train)
            model = fit_additive(design, part, pairs=pairs, like=fitted.full).model
        eta[held], variance[held] = _predicted(model, rows, held)
    return eta, variance


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


def _predicted(model: AdditiveModel, rows: Sample, some: Bools) -> tuple[Floats, Floats]:
    return model.predictor(rows.z[some], [column[some] for column in rows.columns])
