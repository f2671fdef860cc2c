"""The two-class model of the variable calibrator: logit q is additive in the score and V."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators._variable._blocks.correlated_rows import Search
from varcal.calibrators._variable._columns.design import SCORE, Design
from varcal.calibrators._variable._columns.score_basis import log_odds
from varcal.calibrators._variable._growth import growth as second_stage
from varcal.calibrators._variable._growth.explain_growth import mean_effects
from varcal.calibrators._variable._growth.growth import Growth, GrowthRows, fewer_folds, fit_growth
from varcal.calibrators._variable._growth.held_out_first import held_out_predictors
from varcal.calibrators._variable._lookup.lookup import equal_blocks
from varcal.calibrators._variable._reml.losses import LogisticLoss
from varcal.calibrators._variable.additive_model import CHUNK, AdditiveModel, Sample
from varcal.calibrators._variable.folds import RowKeys, folds_and_units
from varcal.calibrators._variable.last_curve import fit_link, left_out
from varcal.calibrators._variable.roughness import Roughness, fit_roughness
from varcal.calibrators._variable.trust import Trusted, fit_surviving

# Tuned constants; README.md shows what changes at half and at twice each value.

#: How strongly logits are moderated by their variance: twice the usual π/8, because the penalties
#: are uncertain, too.
MODERATION = np.pi / 4
#: What the variance of η is multiplied by in intervals, which take the penalties as known. Chosen
#: by `intervals` in the benchmark: with 1.1, smooth worlds of 4,000 rows are covered at 92 %.
PENALTY_DOUBT = 1.2
#: The mean number of equal rows from which there is no last curve: leaving out one of them leaves
#: the others in.
MOST_REPEATS = 2.0
#: No probability of either class is below this part of one outcome in all calibration rows, unless
#: the score itself is. Sums over these rows change by less than this part of an outcome, while one
#: surprise costs no more than the logarithm of ten times the rows. On the bundled incomes, as in
#: docs/start.md, the log-loss is 0.3013 without it, 0.2994 at 0.1 and 0.2990 at 1.
LEAST_OUTCOME = 0.1
#: Scores at which a monotone model is evaluated; half as many again are spread evenly.
MONOTONE_GRID = 65

#: Rows over which the effects of the second stage are averaged.
EFFECT_ROWS = 40
#: Newton steps of the mean shift at most, the longest one, and the one that ends the search.
_SHIFT_STEPS, _LONGEST_SHIFT, _SHIFT_TOLERANCE = 100, 2.0, 1e-12


def moderated(eta: Floats, variance: Floats) -> Floats:
    """Return about the logit of the mean probability, if the logit is normal around η."""
    return np.asarray(eta / np.sqrt(1.0 + MODERATION * variance))


@dataclass(frozen=True, eq=False)
class LogisticModel:
    r"""A mixture of three logits: the score's own, one of the score alone, one of score and V.

    .. math:: \eta = z + a (\eta_s - z) + b (\eta_v - z - a (\eta_s - z)) + c

    Attributes
    ----------
    score, full : AdditiveModel
        :math:`\eta_s` and :math:`\eta_v`.
    score_share, full_share : float
        a and b, between 0 and 1; both are 0 where there is no evidence that scores are wrong.
    link : AdditiveModel or None
        The last curve, a function of :math:`\eta_v` that is added to it; None if it did not help.
    shift : float
        c, which makes the mean probability of calibration rows equal to the mean outcome.
    monotone : bool
        Whether η never falls when the score rises and V is fixed.
    tilt : float
        The least slope of η along the score's logit if it is monotone.
    roughness : Roughness
        The variance of what smooth curves leave out.
    growth : Growth or None
        The second stage, which takes the place of `link` and `shift`; None where there is none.
    most : float
        The largest η and −η that the calibration rows support; only scores that are beyond it
        themselves are followed further.
    """

    score: AdditiveModel
    full: AdditiveModel
    score_share: float
    full_share: float
    link: AdditiveModel | None
    shift: float
    monotone: bool = False
    tilt: float = 0.0
    roughness: Roughness = field(default_factory=Roughness.none)
    growth: Growth | None = None
    most: float = np.inf

    def _check_saved(self) -> None:
        """Raise ValueError unless the second stage is about variables of the first."""
        if not self.most > 0:
            raise ValueError("the largest logit is not positive")
        if self.growth is None:
            return
        bases = self.full.design.bases
        if not all(SCORE <= k < len(bases) for k in self.growth.variables):
            raise ValueError("tables and trees are of unknown variables")

    def log_odds(self, p: Floats, columns: list[AnyArray]) -> Floats:
        """Return the calibrated logit."""
        z = log_odds(p)
        if self.growth is not None:
            return self._supported(z, self._grown(z, columns, self.growth))
        if not self.monotone:
            return self._supported(z, self._mixture(z, columns))
        eta = np.empty(len(z))
        for rows in equal_blocks(len(z), CHUNK):
            eta[rows] = self._monotone_log_odds(z[rows], [column[rows] for column in columns])
        return eta

    def _supported(self, z: Floats, eta: Floats) -> Floats:
        """Return logits that are not larger than the rows support or the score says."""
        if np.isinf(self.most):
            return eta
        own = self._bounded(z)
        return np.clip(eta, np.minimum(own, -self.most), np.maximum(own, self.most), out=eta)

    def error(self, p: Floats, columns: list[AnyArray], eta: Floats) -> Floats:
        """Return the standard error of calibrated logits.

        It is that of the model with all variables, however little that is trusted: few data cannot
        rule out the effects that the prediction leaves out. What smooth curves leave out is added.
        With a second stage it is at least the error that held-out rows show.
        """
        z = log_odds(p)
        own, variance = self.full.predictor(z, columns)
        own = moderated(own + self.full.design.score.clipped(z), variance)
        variance, rough = PENALTY_DOUBT * variance, self.roughness.variance(z, columns)
        if self.growth is not None:
            # Trees also learn what curves leave out; what they leave out themselves is measured.
            left = 1 - self.growth.share if self.growth.variance > 0 else 1.0
            return np.asarray(np.sqrt(np.maximum(variance + left * rough, self.growth.variance)))
        error = np.sqrt(variance + rough)
        middle, of_link = self._linked(own)
        ends = [self._linked(own + side * error)[0] for side in (-1.0, 1.0)]
        spread = np.maximum(np.abs(ends[1] - ends[0]) / 2, error) ** 2 + of_link
        apart = self.shift + middle - eta
        return np.asarray(np.sqrt(spread + (1 - self.full_share) * apart**2))

    def _grown(self, z: Floats, columns: list[AnyArray], growth: Growth) -> Floats:
        """Return the logit of the second stage."""
        eta = np.empty(len(z))
        for rows in equal_blocks(len(z), CHUNK):
            here = [column[rows] for column in columns]
            first = self.first_stage(z[rows], here)
            base = first if growth.trees is None else self.by_score(z[rows])
            blended = growth.blended(growth.codes(z[rows], here), base, first)
            eta[rows] = growth.linked(blended)[0]
        return eta

    def by_score(self, z: Floats) -> Floats:
        """Return the predictor of the score alone, from which the second stage starts."""
        eta = self.score.design.score.bounded(z)
        if self.score_share > 0:
            own, spread = self.score.lookup.predictor(z, [])
            own += self.score.design.score.clipped(z)
            eta = eta + self.score_share * (moderated(own, spread) - eta)
        return eta

    def first_stage(self, z: Floats, columns: list[AnyArray]) -> Floats:
        """Return the logit of the first stage, finite also where it trusts nothing."""
        trusted = self.score_share > 0 or self.full_share > 0
        return self._mixture(z, columns) if trusted else self.by_score(z)

    def first_stage_of(self, base: Floats, eta: Floats, variance: Floats) -> Floats:
        """Return the same from the predictor of the score and one of score and variables."""
        own = self._linked(moderated(eta, variance))[0]
        return np.asarray(base + self.full_share * (own - base) + self.shift)

    def _linked(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return η_v after the last curve, and the variance that the curve adds."""
        if self.link is None:
            return eta, np.zeros(len(eta))
        added, variance = self.link.lookup.predictor(eta, [])
        return moderated(eta + added, variance), variance

    def _monotone_log_odds(self, z: Floats, columns: list[AnyArray]) -> Floats:
        """Return the logit, made monotone along the score by a running maximum on a grid.

        The grid ends where scores are winsorized; beyond it only the score's own logit changes.
        """
        grid = self._grid
        if columns:
            curve = np.column_stack([self._mixture(np.full(len(z), at), columns) for at in grid])
            curve = np.maximum.accumulate(curve - self.tilt * grid, axis=1)
        else:
            curve = np.broadcast_to(self._score_curve, (len(z), len(grid)))
        inner = np.clip(z, grid[0], grid[-1])
        right = np.clip(np.searchsorted(grid, inner), 1, len(grid) - 1)
        rows = np.arange(len(z))
        share = (inner - grid[right - 1]) / (grid[right] - grid[right - 1])
        low, high = curve[rows, right - 1], curve[rows, right]
        own = (1 - self.full_share) * (1 - self.score_share)
        beyond = self._bounded(z) - inner
        # Rounding must not exceed the next point of the grid.
        inside = np.minimum(low + share * (high - low), high)
        return np.asarray(inside + own * beyond + self.tilt * z)

    @cached_property
    def _grid(self) -> Floats:
        """The scores at which a monotone model is evaluated."""
        return self.full.design.score.grid(MONOTONE_GRID)

    @cached_property
    def _score_curve(self) -> Floats:
        """The monotone logit on the grid without variables: the same for all rows."""
        return np.maximum.accumulate(self._mixture(self._grid, []) - self.tilt * self._grid)

    def _bounded(self, z: Floats) -> Floats:
        """Return the score's own logit, finite where it is mixed with others."""
        trusted = self.score_share > 0 or self.full_share > 0 or self.growth is not None
        return self.score.design.score.bounded(z) if trusted else z

    def _mixture(self, z: Floats, columns: list[AnyArray]) -> Floats:
        """Return the logit before it is made monotone."""
        eta = self._bounded(z)
        if self.score_share > 0 and self.full_share < 1:
            own, spread = self.score.lookup.predictor(z, [])
            own += self.score.design.score.clipped(z)
            eta = eta + self.score_share * (moderated(own, spread) - eta)
        if self.full_share > 0:
            own, spread = self.full.lookup.predictor(z, columns)
            own += self.full.design.score.clipped(z)
            eta = eta + self.full_share * (self._linked(moderated(own, spread))[0] - eta)
        return np.asarray(eta + self.shift)


def fit_logistic_model(
    p: Floats,
    y: Floats,
    columns: list[AnyArray],
    n_levels: list[int],
    weight: Floats | None = None,
    *,
    groups: Ints | None = None,
    time: Floats | None = None,
    search: Search | None = None,
    interactions: bool = True,
    monotone: bool = False,
    tilt: float = 0.0,
    growth: bool = True,
) -> tuple[LogisticModel, Trusted]:
    """Fit the model.

    Parameters
    ----------
    p, y : ndarray of shape (n,)
        Probabilities and outcomes, 0 or 1.
    columns : list of ndarray
        The variables: numbers with NaN, or codes with −1, where values are missing.
    n_levels : list of int
        The number of levels of each variable, 0 for numbers.
    weight : ndarray, optional
        Weights.
    groups : ndarray of int, optional
        The group of each row; rows of a group share a fold.
    time : ndarray of float, optional
        When each row was made; trust is judged forward.
    search : Search, optional
        Where to look for blocks of rows that are correlated.
    interactions : bool
        Whether to look for pairs.
    monotone : bool
        Whether the calibrated probability must not fall when the score rises.
    tilt : float
        The least slope along the score's logit if it is monotone.
    growth : bool
        Whether to look for a second stage where there are enough rows.
    """
    z, mass = log_odds(p), np.ones(len(p)) if weight is None else weight
    design = Design.of(z, columns, n_levels, weight)
    keys = RowKeys.of(p, y, weight, z, [columns[k] for k in design.live()])
    # With the score as offset, penalties shrink towards leaving it unchanged.
    loss = LogisticLoss(y, mass, design.score.clipped(z))
    start = (-design.score.mean, -design.score.scale)
    folds, units = folds_and_units(keys, groups, time)
    surviving = fit_surviving(
        design,
        Sample(z, columns, loss, folds, start, units),
        keys,
        lambda some: some.z - some.loss.offset,
        _moderated_predictor,
        pairs=interactions,
        search=search,
    )
    fitted, some = surviving.fitted, surviving.sample
    model = LogisticModel(
        fitted.score.model,
        fitted.full.model,
        fitted.score_share,
        fitted.full_share,
        # Leaving out one of several equal rows, or one of a group, leaves the others in.
        _link(fitted.full.model, some, loss.take(surviving.picked))
        if fitted.independent and keys.repeats(surviving.picked) < MOST_REPEATS
        else None,
        0.0,
        monotone,
        tilt,
    )
    first = max(fitted.score_share, fitted.full_share)
    shift = first * mean_shift(model.log_odds(p, columns), y, mass)
    numbers = [k for k in surviving.design.live() if not n_levels[k]]
    model = replace(model, shift=shift, roughness=_roughness(model.full, some, numbers))
    enough = mass.sum() >= second_stage.LEAST_ROWS
    if growth and interactions and not monotone and columns and enough:
        sampled = len(some) < len(surviving.rows)
        # The columns of the first stage are known where it used all rows.
        rows = surviving.rows if sampled else some
        rows = replace(rows, folds=fewer_folds(surviving.rows.folds))
        part = keys.sample(second_stage.MOST_ROWS)
        rows = rows.take(part) if len(part) < len(rows) else rows
        known = _growth_rows(model, fitted, rows, n_levels, surviving.design, sampled=sampled)
        model = replace(model, growth=fit_growth(known))
        if model.growth is not None:
            trust = 1.0 if model.growth.tables else max(first, model.growth.share)
            shift = trust * mean_shift(model.log_odds(p, columns), y, mass)
            grown = replace(model.growth, shift=shift)
            model = _with_effects(replace(model, growth=grown), grown, z, columns, keys)
    # Monotone models keep the ranking of scores, also where all of them are sure.
    most = np.inf if monotone else float(np.log(max(len(p), mass.sum()) / LEAST_OUTCOME))
    return replace(model, most=most), fitted


def _with_effects(
    model: LogisticModel, growth: Growth, z: Floats, columns: list[AnyArray], keys: RowKeys
) -> LogisticModel:
    """Return the model with the mean effects of its second stage."""

    def added(z: Floats, columns: list[AnyArray]) -> Floats:
        return model._grown(z, columns, growth) - model.first_stage(z, columns)

    effects = mean_effects(growth, z, columns, added, keys.sample(EFFECT_ROWS))
    return replace(model, growth=replace(growth, effects=effects))


def _roughness(model: AdditiveModel, rows: Sample, numbers: list[int]) -> Roughness:
    """Return the variance of what the curves of the score and of numbers leave out."""
    X = rows.matrix(model.design)
    residual, weight = rows.loss.slopes(X @ model.beta)
    values = {SCORE: rows.z, **{k: rows.columns[k] for k in numbers}}
    return fit_roughness(values, X, model.covariance, residual, weight)


def _growth_rows(
    model: LogisticModel,
    fitted: Trusted,
    rows: Sample,
    n_levels: list[int],
    design: Design,
    *,
    sampled: bool,
) -> GrowthRows:
    """Return rows for the second stage, with the first stage's predictor of held-out rows."""
    assert isinstance(rows.loss, LogisticLoss)
    base = model.by_score(rows.z)
    folds = list(rows.folds.splits())
    first = model.first_stage(rows.z, rows.columns)
    firsts = np.broadcast_to(first, (len(folds), len(base)))
    if model.full_share > 0:
        whole = model.full.lookup.predictor(rows.z, rows.columns)
        held_out = held_out_predictors(design, rows, fitted, whole, sampled=sampled)
        firsts = np.array(
            [
                model.first_stage_of(base, eta + rows.loss.offset, variance)
                for eta, variance in held_out
            ]
        )
    return GrowthRows(
        rows.z,
        rows.columns,
        n_levels,
        rows.loss.y,
        rows.loss.mass(),
        rows.folds,
        rows.units,
        base,
        firsts,
        first,
    )


def _link(model: AdditiveModel, rows: Sample, loss: LogisticLoss) -> AdditiveModel | None:
    """Return the last curve."""
    eta, variance = model.of_sample(rows)
    without = moderated(*left_out(loss.offset + eta, variance, loss.y))
    return fit_link(without, LogisticLoss(loss.y, loss.weight, without))


def _moderated_predictor(eta: Floats, variance: Floats, rows: Sample) -> Floats:
    """Return the predictor that, added to the offset, gives the moderated logit."""
    offset = rows.loss.offset
    return moderated(offset + eta, variance) - offset


def mean_shift(eta: Floats, y: Floats, mass: Floats) -> float:
    """Return the shift of logits that makes the mean probability the mean outcome."""
    goal, total = float(mass @ y), 0.0
    for _ in range(_SHIFT_STEPS):
        mean = expit(eta + total)
        missing = goal - float(mass @ mean)
        step = missing / max(float(mass @ (mean * (1.0 - mean))), 1e-12)
        total += float(np.clip(step, -_LONGEST_SHIFT, _LONGEST_SHIFT))
        if abs(step) < _SHIFT_TOLERANCE:
            break
    return total
