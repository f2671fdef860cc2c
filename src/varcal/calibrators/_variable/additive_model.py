"""The additive model and its fit: first the terms of single variables, then pairs that help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators._variable._columns.design import Block, Design, Ingredients, group_numbers
from varcal.calibrators._variable._lookup.lookup import Lookup
from varcal.calibrators._variable._reml.curvature import quadratic_form
from varcal.calibrators._variable._reml.fit_gam import fit_gam
from varcal.calibrators._variable._reml.losses import Loss
from varcal.calibrators._variable._reml.penalties import FIRST_PENALTY
from varcal.calibrators._variable._reml.without_each import refine
from varcal.calibrators._variable.folds import Folds
from varcal.calibrators._variable.pairs import held_out_gain, pair_scores

# Tuned constants; README.md shows what changes at half and at twice each value.

#: Rows below which no pairs are looked for.
PAIR_ROWS = 300.0
#: How many pairs, those with the largest scores, are given terms under shared penalties.
SHARED_PAIRS = 15
#: What these must add to the log marginal likelihood to stay in the model.
SHARED_PAIRS_GAIN = 1.0
#: How many pairs, at most, are tried with a term of their own on held-out rows.
OWN_PAIRS = 4
#: The score, standard normal where there is no interaction, from which a pair is tried.
OWN_PAIR_SCORE = 4.0
#: The held-out gain, in standard errors, from which a pair gets a term of its own.
OWN_PAIR_RATIO = 1.5
#: Newton steps of a fit without one fold, which starts from the fit of all rows.
WARM_STEPS = 2
#: Effective degrees of freedom up to which a block is left out of a model of many rows.
NEGLIGIBLE_EDF = 0.25

#: Rows that are turned into columns at a time, to bound memory.
CHUNK = 16_384


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """A fitted model: coefficients and the columns that they belong to.

    Attributes
    ----------
    design : Design
        The blocks in the model.
    beta : ndarray of shape (p,)
        Coefficients.
    covariance : ndarray of shape (p, p)
        Their posterior covariance.
    ridge : ndarray of shape (p,)
        Their penalties.
    mass : float
        The sum of the working weights of the calibration rows.
    """

    design: Design
    beta: Floats
    covariance: Floats
    ridge: Floats
    mass: float

    def _check_saved(self) -> None:
        """Raise ValueError unless every coefficient has its penalty and its covariances."""
        size = self.beta.size
        if self.beta.shape != (size,) or self.ridge.shape != (size,):
            raise ValueError("coefficients and penalties do not match")
        if self.covariance.shape != (size, size):
            raise ValueError("coefficients and covariances do not match")

    def restricted(self, blocks: tuple[Block, ...]) -> AdditiveModel:
        """Return the model with only some of its blocks."""
        own = np.concatenate([np.full(n, b in blocks) for b, n in self.design.layout()])
        return AdditiveModel(
            self.design.restricted(blocks),
            self.beta[own],
            self.covariance[np.ix_(own, own)],
            self.ridge[own],
            self.mass,
        )

    @cached_property
    def lookup(self) -> Lookup:
        """Return the model as look-up tables, which are fast for many rows."""
        return Lookup.of(self.design, self.beta, self.covariance, self.ridge, self.mass)

    def of_sample(self, rows: Sample) -> tuple[Floats, Floats]:
        """Return η and its posterior variance for rows of a fit."""
        X = rows.matrix(self.design)
        return X @ self.beta, quadratic_form(X, self.covariance)

    def predictor(self, z: Floats, columns: list[AnyArray]) -> tuple[Floats, Floats]:
        """Return η and its posterior variance for new rows, without tables."""
        eta, variance = np.empty(len(z)), np.empty(len(z))
        for rows in chunks_of(len(z)):
            X = self.design.matrix(z[rows], [column[rows] for column in columns])
            eta[rows] = X @ self.beta
            variance[rows] = quadratic_form(X, self.covariance)
        return eta, variance


@dataclass(frozen=True)
class PairTrial:
    """The result of looking for an interaction of two variables.

    Attributes
    ----------
    pair : tuple of (int, int)
        The variables, −1 for the score.
    score : float
        The standardized score statistic; large where the additive model misses an interaction.
    gain, error : float
        How much the pair lowers the held-out log-loss, and the standard error of that; NaN where
        it was not tried.
    admitted : bool
        Whether the pair has a term of its own.
    """

    pair: tuple[int, int]
    score: float
    gain: float = float("nan")
    error: float = float("nan")
    admitted: bool = False


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model and the record of its fit.

    Attributes
    ----------
    model : AdditiveModel
        The model.
    edf : dict of Block to float
        The effective degrees of freedom of every block that was fitted, 0 where it was dropped.
    penalties : dict of Block to float
        λ of the blocks in the model.
    evidence : float
        The log marginal likelihood, of the sample if there was one.
    trials : tuple of PairTrial
        The candidate pairs.
    """

    model: AdditiveModel
    edf: dict[Block, float]
    penalties: dict[Block, float]
    evidence: float
    trials: tuple[PairTrial, ...] = ()


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to fit on.

    Attributes
    ----------
    z : ndarray
        The logits of the scores.
    columns : list of ndarray
        The variables.
    loss : Loss
        The loss to minimize.
    folds : Folds
        Which rows are held out together.
    start : tuple of (float, float)
        The intercept and the slope along z̃ that cancel the offset of the loss.
    units : ndarray of int, optional
        The group of each row, if rows are not independent.
    ingredients : Ingredients, optional
        The columns of all designs, if they were computed in advance.
    """

    z: Floats
    columns: list[AnyArray]
    loss: Loss
    folds: Folds
    start: tuple[float, float] = (0.0, 0.0)
    units: AnyArray | None = None
    ingredients: Ingredients | None = None

    def prepared(self, design: Design) -> Sample:
        """Return the rows with the columns of a design, and of parts of it, computed in advance."""
        # Pairs may be added later, also with a score whose own curve was left out.
        whole = replace(design, only=None)
        return replace(self, ingredients=whole.ingredients(self.z, self.columns))

    def blocks(self, design: Design) -> list[tuple[Block, Floats]]:
        """Return the blocks of a design."""
        return design.blocks_of(self.ingredients_of(design))

    def matrix(self, design: Design) -> Floats:
        """Return the matrix of a design."""
        return np.hstack([block for _, block in self.blocks(design)])

    def ingredients_of(self, design: Design) -> Ingredients:
        """Return the ingredients of a design."""
        return self.ingredients or design.ingredients(self.z, self.columns)

    def __len__(self) -> int:
        return len(self.z)

    def take(self, rows: Ints | Bools | slice) -> Sample:
        """Return some of the rows."""
        return Sample(
            self.z[rows],
            [column[rows] for column in self.columns],
            self.loss.take(rows),
            self.folds.take(rows),
            self.start,
            None if self.units is None else self.units[rows],
            None if self.ingredients is None else self.ingredients.take(rows),
        )


def chunks_of(n: int) -> Iterator[slice]:
    """Yield slices that cover n rows."""
    return (slice(begin, min(begin + CHUNK, n)) for begin in range(0, n, CHUNK))


def fit_additive(
    design: Design, rows: Sample, *, pairs: bool, like: Fitted | None = None
) -> Fitted:
    """Fit a design, look for pairs, and fit again with those that help.

    Parameters
    ----------
    design : Design
        The terms.
    rows : Sample
        The rows.
    pairs : bool
        Whether to look for pairs.
    like : Fitted, optional
        A fit of these and other rows, from which this one starts. Pairs are looked for anew, but
        only of the kinds (shared, own) that it has.
    """
    steps = None if like is None else WARM_STEPS
    first = _fit_design(design, rows, like, max_steps=steps)
    pairs = pairs and (like is None or bool(like.model.design.paired()))
    enough = float(rows.loss.mass().sum()) >= PAIR_ROWS
    candidates = design.candidate_pairs() if pairs and enough else []
    if not candidates:
        return first
    most = OWN_PAIRS if like is None or like.model.design.own else 0
    trials = _tried_pairs(design, rows, first, candidates, most)
    own = tuple(trial.pair for trial in trials if trial.admitted)
    # The evidence for shared pairs assumes independent rows.
    shared = tuple(trial.pair for trial in trials[:SHARED_PAIRS]) if rows.units is None else ()
    if not (shared or own):
        return replace(first, trials=trials)
    again = _fit_design(
        first.model.design.with_pairs(shared, own), rows, first, like, max_steps=steps
    )
    if again.evidence - first.evidence < SHARED_PAIRS_GAIN and not own:
        return replace(first, trials=trials)
    return replace(again, edf=first.edf | again.edf, trials=trials)


def refit(fitted: Fitted, rows: Sample) -> Fitted:
    """Return the model with its coefficients fitted on more rows than its penalties.

    Blocks with negligible effective degrees of freedom are left out.
    """
    kept = [
        block for block, _ in fitted.model.design.layout() if fitted.edf[block] > NEGLIGIBLE_EDF
    ]
    model = fitted.model.restricted(tuple(kept))
    names, sizes = zip(*model.design.layout(), strict=True)

    def parts() -> Iterator[tuple[Floats, Loss]]:
        for chunk in chunks_of(len(rows)):
            some = rows.take(chunk)
            yield model.design.matrix(some.z, some.columns), some.loss

    beta, V, mass = refine(model.beta, model.ridge, parts)
    share = 1.0 - model.ridge * np.diag(V)
    ends = np.cumsum(sizes)
    edf = {
        block: float(share[end - size : end].sum())
        for block, size, end in zip(names, sizes, ends, strict=True)
    }
    again = AdditiveModel(model.design, beta, V, model.ridge, mass)
    return replace(fitted, model=again, edf=dict.fromkeys(fitted.edf, 0.0) | edf)


def _fit_design(
    design: Design,
    rows: Sample,
    before: Fitted | None,
    like: Fitted | None = None,
    *,
    max_steps: int | None,
) -> Fitted:
    """Fit one design, starting from an earlier fit of its first blocks.

    The penalties of other blocks start at those of a fit `like` this one, if given.
    """
    blocks = rows.blocks(design)
    X, groups = np.hstack([block for _, block in blocks]), group_numbers(blocks)
    start, penalties = np.zeros(X.shape[1]), None
    penalized = [block for block, _ in blocks if not block.free]
    if before is None:
        # The first two columns are the intercept and, unless it was left out, the slope.
        width = min(2, X.shape[1])
        first, free = np.array(rows.start)[:width], np.full(width, -1)
        start[:width] = fit_gam(X[:, :width], rows.loss, free, start=first).beta
    else:
        known = min(len(start), len(before.model.beta))
        start[:known] = before.model.beta[:known]
        known_penalties = (
            {} if like is None else {_kind(b): lam for b, lam in like.penalties.items()}
        )
        penalties = np.array(
            [
                before.penalties.get(b, known_penalties.get(_kind(b), FIRST_PENALTY))
                for b in penalized
            ]
        )
    fit = fit_gam(X, rows.loss, groups, start=start, penalties=penalties, max_steps=max_steps)
    edf = {block: float(each) for block, each in zip(penalized, fit.edf, strict=True)}
    edf |= {block: float(columns.shape[1]) for block, columns in blocks if block.free}
    names = tuple(block for block, _ in blocks)
    model = AdditiveModel(design.restricted(names), fit.beta, fit.covariance, fit.ridge, fit.mass)
    learned = {block: float(each) for block, each in zip(penalized, fit.penalties, strict=True)}
    return Fitted(model, edf, learned, fit.evidence)


def _kind(block: Block) -> Block:
    """Return a block without the variables that share its penalty: these differ between fits."""
    return replace(block, variables=()) if block.shared else block


def _tried_pairs(
    design: Design, rows: Sample, first: Fitted, candidates: list[tuple[int, int]], most: int
) -> tuple[PairTrial, ...]:
    """Return the candidates by falling score; the first ones are tried on held-out rows."""
    factors = design.factors_of(
        rows.ingredients_of(design), {k for pair in candidates for k in pair}
    )
    X = rows.matrix(first.model.design)
    eta, V = X @ first.model.beta, first.model.covariance
    scores = pair_scores(design, factors, X, eta, V, rows.loss, candidates)
    trials = [
        PairTrial(candidates[k], float(scores[k])) for k in np.argsort(-scores, kind="stable")
    ]
    for k, trial in enumerate(trials[:most]):
        if trial.score > OWN_PAIR_SCORE:
            columns = design.pair_columns(factors, trial.pair, fine=True)
            gain = held_out_gain(
                [(Block("surface", trial.pair), columns)], rows.loss, eta, rows.folds, rows.units
            )
            trials[k] = PairTrial(
                trial.pair, trial.score, gain.value, gain.error, gain.ratio > OWN_PAIR_RATIO
            )
    return tuple(trials)
