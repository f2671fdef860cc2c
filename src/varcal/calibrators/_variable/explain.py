"""The terms of a fitted additive model, the curves of their effects, and how far it is applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats
from varcal._text.edges import edge_texts
from varcal.calibrators._variable._columns.design import SCORE, Block
from varcal.calibrators._variable._columns.spline_basis import LevelBasis, NumberBasis
from varcal.calibrators._variable._growth.explain_growth import moved_by
from varcal.calibrators._variable._growth.growth import Growth
from varcal.calibrators._variable._reml.curvature import quadratic_form
from varcal.calibrators._variable.additive_model import AdditiveModel, Fitted
from varcal.calibrators._variable.effects import Effect, Term
from varcal.calibrators.schema import Schema

#: The log Bayes factor from which a term counts as active: odds of about 7 to 1.
ACTIVE_EVIDENCE = 2.0
#: Quantiles of the calibration scores at which effects are shown.
SHOWN_SCORES = (0.1, 0.5, 0.9)
#: Points of a curve.
CURVE_POINTS = 41
#: Quantiles between which a curve is drawn.
INNER_RANKS = (0.01, 0.99)
_NORMAL_95 = 1.959963984540054


def term_name(block: Block, names: tuple[str, ...]) -> str:
    """Return the name of a block's term: a variable, the score, a pair, or "other pairs".

    >>> term_name(Block("surface", (-1, 0)), ("age",))
    'score × age'
    """
    if block.shared:
        return "other pairs"
    return pair_name(block.variables, names)


def pair_name(variables: tuple[int, ...], names: tuple[str, ...]) -> str:
    """Return the names of variables, −1 for the score."""
    return " × ".join("score" if k == SCORE else names[k] for k in variables)


def terms_of_fit(
    fitted: Fitted,
    z: Floats,
    columns: list[AnyArray],
    names: tuple[str, ...],
    share: float,
    moved: Callable[[Floats], float],
    unapplied: Mapping[str, float] | None = None,
) -> tuple[Term, ...]:
    """Return the terms of a model, the one that changed probabilities most first.

    Parameters
    ----------
    fitted : Fitted
        The model.
    z, columns
        The rows on which changes are measured.
    names : tuple of str
        The variables.
    share : float
        How far the model is trusted.
    moved : callable
        Returns the mean absolute change of probabilities when something is subtracted from η.
    unapplied : mapping of str to float, optional
        The evidence for variables that are in a larger model only, which is not applied.
    """
    model, blocks = fitted.model, fitted.model.design.blocks(z, columns)
    sizes = [values.shape[1] for _, values in blocks]
    term_names = np.repeat([term_name(block, names) for block, _ in blocks], sizes)
    ridge = np.repeat([fitted.penalties.get(block, 0.0) for block, _ in blocks], sizes)
    edf: dict[str, float] = {}
    added: dict[str, Floats] = {}
    for (block, values), end in zip(blocks, np.cumsum(sizes), strict=True):
        name = term_name(block, names)
        edf[name] = edf.get(name, 0.0) + fitted.edf[block]
        own_eta = values @ model.beta[end - values.shape[1] : end]
        added[name] = added.get(name, 0.0) + own_eta
    terms = []
    for name in edf:
        own = term_names == name
        evidence = _evidence(model, ridge, own & (ridge > 0))
        size = moved(share * added[name])
        used = edf[name] if share > 0 else 0.0
        terms.append(
            Term(name, used, size, evidence, bool(evidence > ACTIVE_EVIDENCE and share > 0))
        )
    elsewhere = unapplied or {}
    terms += [
        Term(name, 0.0, 0.0, elsewhere.get(name, 0.0), False) for name in names if name not in edf
    ]
    return tuple(sorted(terms, key=lambda term: -term.moved))


def _evidence(model: AdditiveModel, ridge: Floats, own: Bools) -> float:
    """Return the log Bayes factor for coefficients: prior over posterior density at 0."""
    if not own.any():
        return 0.0
    V, beta = model.covariance[np.ix_(own, own)], model.beta[own]
    spread = float(np.linalg.slogdet(V)[1] + np.log(ridge[own]).sum())
    return 0.5 * (spread + float(beta @ np.linalg.solve(V, beta)))


def curves_of(
    model: AdditiveModel,
    schema: Schema,
    share: float,
    level_of: Callable[[Floats], Floats],
    growth: Growth | None = None,
) -> tuple[Effect, ...]:
    """Return the effect of every variable in a model, at three scores each.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    schema : Schema
        The variables.
    share : float
        How far the model is trusted.
    level_of : callable
        Turns a score's logit into the score that is shown.
    growth : Growth, optional
        A second stage, whose mean effects are added.
    """
    basis = model.design.score
    scores = np.array([basis.low])
    if basis.rank is not None:
        ends = basis.rank.rank[[0, -1]]
        scores = np.interp(np.interp(SHOWN_SCORES, (0, 1), ends), basis.rank.rank, basis.rank.at)
    return tuple(
        _curve(model, schema, k, each, float(score), share, level_of, growth)
        for k, each in enumerate(model.design.bases)
        if each is not None
        for score in (scores if model.design.varying else scores[len(scores) // 2 :][:1])
    )


def _curve(
    model: AdditiveModel,
    schema: Schema,
    k: int,
    basis: NumberBasis | LevelBasis,
    score: float,
    share: float,
    level_of: Callable[[Floats], Floats],
    growth: Growth | None,
) -> Effect:
    values, at, inner = _values(basis, schema, k)
    values, gone = _with_missing(basis, values)
    z = np.full(len(values), score)
    # Unseen and missing values have columns of 0.
    columns = [
        values
        if j == k
        else np.full(len(z), -2, dtype=np.intp)
        if isinstance(other, LevelBasis)
        else np.full(len(z), np.nan)
        for j, other in enumerate(model.design.bases)
    ]
    blocks = model.design.blocks(z, columns)
    own = np.repeat(
        [block.variables == (k,) and not block.is_pair for block, _ in blocks],
        [columns.shape[1] for _, columns in blocks],
    )
    X = np.hstack([columns for _, columns in blocks])[:, own]
    whole = X @ model.beta[own]
    value = share * whole
    # As in the error of predictions, the part that is not trusted is not ruled out.
    variance = quadratic_form(X, model.covariance[np.ix_(own, own)])
    reach = _NORMAL_95 * np.sqrt(variance + (1.0 - share) * (whole - value) ** 2)
    if growth is not None:
        value = value + moved_by(growth, k, values)
        reach = np.maximum(reach, _NORMAL_95 * np.sqrt(growth.variance))
    table = np.column_stack([value, value - reach, value + reach])
    shown = table[:-1] if gone else table
    return Effect(
        name=schema.names[k],
        kind=schema.kinds[k],
        at=at,
        score=float(level_of(np.array([score]))[0]),
        value=shown[:, 0],
        low=shown[:, 1],
        high=shown[:, 2],
        inner=inner,
        missing=table[-1] if gone else None,
    )


def _with_missing(basis: NumberBasis | LevelBasis, values: AnyArray) -> tuple[AnyArray, bool]:
    """Append a missing value if there were any in the fit; also return whether there were."""
    if isinstance(basis, LevelBasis):
        gone = bool(basis.rows[-1].any())
        return (np.append(values, -1), True) if gone else (values, False)
    return (np.append(values, np.nan), True) if basis.missing_mean > 0 else (values, False)


def _values(
    basis: NumberBasis | LevelBasis, schema: Schema, k: int
) -> tuple[AnyArray, tuple[Any, ...], tuple[float, float]]:
    """Return the values at which an effect is shown, their labels, and the inner range."""
    if isinstance(basis, LevelBasis):
        levels = schema.shown_levels(k)
        return np.arange(len(levels)), levels, (0.0, len(levels) - 1.0)
    values = basis.at
    if len(values) > CURVE_POINTS:
        even = np.linspace(basis.rank[0], basis.rank[-1], CURVE_POINTS)
        values = np.interp(even, basis.rank, basis.at)
        values = np.unique(np.concatenate([values, basis.atoms]))
    low, high = np.interp(INNER_RANKS, basis.rank, basis.at).tolist()
    if schema.kinds[k] == "datetime":
        return values, tuple(edge_texts(values.tolist(), datetime=True)), (low, high)
    return values, tuple(values.tolist()), (low, high)


def applied(share: float) -> str:
    """Describe how far a model is trusted.

    >>> applied(1.0), applied(0.25), applied(0.0)
    ('applied in full', 'applied at 25%', 'not applied')
    """
    if share == 1:
        return "applied in full"
    return f"applied at {share:.0%}" if share else "not applied"
