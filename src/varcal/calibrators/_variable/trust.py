"""How far a larger model is trusted over a smaller one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators._variable._blocks.correlated_rows import (
    Luck,
    Residuals,
    Search,
    blockings_of,
    correlated_rows,
    luck_of_order,
)
from varcal.calibrators._variable._columns.design import SCORE, Block, Design
from varcal.calibrators._variable.additive_model import Fitted, Sample, fit_additive, refit
from varcal.calibrators._variable.folds import RowKeys, make_folds
from varcal.calibrators._variable.gain import Gain, cautious_gain, gain_of
from varcal.exceptions import VarcalWarning

# Tuned constants; README.md shows what changes at half and at twice each value.

#: With fewer rows the marginal likelihood, an approximation for many rows, decides nothing. In four
#: worlds with 300 rows (8 draws each) trust by it alone raised the log-loss of scores that needed
#: little repair by up to .11; at 1,000 rows it did no harm.
EVIDENCE_ROWS = 1_000
#: Held-out gains, in standard errors, between which the trust in a correction of confusions rises
#: from 0 to 1.
GAIN_RAMP = (0.0, 1.0)
#: The same for the score's curve. Scores are often calibrated already: at (0, 1) this curve cost
#: more than 0.002 of log-loss in 3 % of draws of 1,000 rows with calibrated scores, and starting
#: later cost nothing on real tables of 1,000 rows.
SCORE_RAMP = (0.4, 1.4)
#: The same for the model of all variables, which its penalties have shrunk already; and how much
#: later it starts where the score's curve is not trusted. Scores that need no correction themselves
#: rarely need one by variables that shows in so few rows that the evidence does not decide.
VARIABLES_RAMP = (-0.5, 0.5)
CALIBRATED_SCORES = 1.0
#: Both ramps start later by this number of standard errors divided by the number of independent
#: savings: the standard error of a few savings is itself uncertain.
FEW_SAVINGS = 50.0
#: The gain in log marginal likelihood of one learned penalty where there is nothing to learn, and
#: its standard deviation.
NULL_GAIN = 0.25
NULL_GAIN_SD = 1.25
#: Gains beyond that, in standard deviations, between which the trust in the model of all variables
#: rises from 0 to 1 without comparing on held-out rows.
EVIDENCE_RAMP = (0.5, 1.0)
#: Gains in log marginal likelihood between which the score's curve is trusted whatever the loss of
#: held-out rows.
BEYOND_DOUBT = (10.0, 20.0)
#: Shares by random rows and by blocks that differ by less say the same.
SAME_SHARE = 0.1
#: The gain on held-out units, in standard errors, from which variables that hardly vary within
#: units stay.
CLEAR_GAIN = 1.0
#: Rows, and groups, below which the scores stay as they are.
LEAST_ROWS = 20.0
LEAST_UNITS = 5
#: Below this number of rows, plus so many for each variable, only a line of the score is fitted.
FEW_ROWS = 50.0
FEW_ROWS_PER_VARIABLE = 5.0


def evidence_share(gain: float, n_blocks: int) -> float:
    """Return the share of the larger model by its gain in log marginal likelihood alone.

    Where there is nothing to learn, every learned penalty still gains about ¼, with a standard
    deviation of about 1; only gains well beyond that count.

    >>> evidence_share(9.0, 16), evidence_share(7.75, 16), evidence_share(5.0, 16)
    (1.0, 0.5, 0.0)
    """
    beyond = (gain - NULL_GAIN * n_blocks) / (NULL_GAIN_SD * np.sqrt(max(n_blocks, 1)))
    return _ramp(float(beyond), EVIDENCE_RAMP)


def share_of(gain: Gain, ramp: tuple[float, float] | None = None) -> float:
    """Return how far the larger model is trusted: 0 without evidence, 1 with enough of it.

    >>> share_of(Gain(0.0, 1.0)), share_of(Gain(0.5, 1.0)), share_of(Gain(2.0, 1.0))
    (0.0, 0.5, 1.0)

    Of few savings, more evidence is required:

    >>> share_of(Gain(2.0, 1.0, 25.0)), share_of(Gain(2.5, 1.0, 25.0))
    (0.0, 0.5)
    """
    return _ramp(gain.ratio - FEW_SAVINGS / gain.count, GAIN_RAMP if ramp is None else ramp)


def _ramp(value: float, ends: tuple[float, float]) -> float:
    """Return 0 below the first end, 1 above the second, and the share of the way between."""
    low, high = ends
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Trusted:
    """A model of the score alone, one of score and V, and how far each is trusted.

    Attributes
    ----------
    score, full : Fitted
        The models.
    score_share : float
        How far the first is trusted over the scores as they are, between 0 and 1.
    full_share : float
        How far the second is trusted over the result of that.
    independent : bool
        Whether the models were fitted and judged as if rows were independent of one another.
    luck : Luck or None
        The luck that rows of the same block share, if that was looked for and found.
    lucky_order : bool
        Whether rows that stand near one another are correlated, if that was looked for.
    held_out : ndarray or None
        The loss of each row by models that it did not fit; None where none were held out.
    """

    score: Fitted
    full: Fitted
    score_share: float
    full_share: float
    independent: bool = True
    luck: Luck | None = None
    lucky_order: bool = False
    held_out: Floats | None = None


@dataclass(frozen=True, eq=False)
class Surviving:
    """The models that survive held-out blocks, and what later stages need to go on.

    Attributes
    ----------
    fitted : Trusted
        The models, and how far each is trusted.
    design : Design
        The terms, perhaps without some variables.
    rows : Sample
        All rows, with the folds and units by which trust was judged.
    sample : Sample
        Those on which penalties, pairs and trust were learned.
    picked : ndarray of int
        Which rows these are.
    """

    fitted: Trusted
    design: Design
    rows: Sample
    sample: Sample
    picked: Ints


def fit_surviving(
    design: Design,
    rows: Sample,
    keys: RowKeys,
    base: Callable[[Sample], Floats],
    moderate: Callable[[Floats, Floats, Sample], Floats],
    *,
    pairs: bool,
    search: Search | None,
) -> Surviving:
    """Fit both models; where rows of the same block are correlated, trust what survives blocks.

    If held-out blocks support the models as far as random rows do, these stay as they are, and only
    later stages are judged on blocks. Where rows are held out by groups, blocks or time, variables
    that hardly vary within these are left out unless they clearly help on held-out rows.

    Parameters
    ----------
    design, moderate, pairs
        As for `fit_trusted`.
    rows : Sample
        All rows.
    keys : RowKeys
        Their hashes.
    base : callable
        Returns the predictor that leaves the scores of rows as they are.
    search : Search or None
        Where to look for blocks; None if it is known which rows belong together.
    """
    picked = keys.fitting_rows()
    some = (rows.take(picked) if len(picked) < len(rows) else rows).prepared(design)
    fitted = fit_trusted(design, some, rows, base(some), moderate, pairs=pairs)
    if rows.units is not None:
        fitted, design, some = _fit_within(fitted, design, rows, some, base, moderate, pairs=pairs)
        return Surviving(replace(fitted, independent=False), design, rows, some, picked)
    if search is None:
        return Surviving(fitted, design, rows, some, picked)
    eta = fitted.full.model.of_sample(some)[0]
    residuals = Residuals.of(some.loss, eta, keys.row[picked], picked)
    luck = correlated_rows(blockings_of(search.variables, picked), residuals)
    if luck is None:
        nearby = luck_of_order(search.position, residuals, keys.y)
        return Surviving(replace(fitted, lucky_order=nearby), design, rows, some, picked)
    units = luck.blocking.numbers()
    rows = replace(rows, units=units, folds=make_folds(keys, groups=units))
    some = replace(some, units=units[picked], folds=rows.folds.take(picked))
    again = fit_trusted(design, some, rows, base(some), moderate, pairs=pairs)
    again, kept, other = _fit_within(again, design, rows, some, base, moderate, pairs=pairs)
    fallen = max(
        fitted.full_share - again.full_share,
        0.0 if fitted.full_share else fitted.score_share - again.score_share,
    )
    if fallen < SAME_SHARE and kept is design:
        return Surviving(replace(fitted, luck=luck), design, rows, some, picked)
    return Surviving(replace(again, independent=False, luck=luck), kept, rows, other, picked)


def _fit_within(
    fitted: Trusted,
    design: Design,
    rows: Sample,
    some: Sample,
    base: Callable[[Sample], Floats],
    moderate: Callable[[Floats, Floats, Sample], Floats],
    *,
    pairs: bool,
) -> tuple[Trusted, Design, Sample]:
    """Return the fit, or one without variables that hardly vary within units.

    The luck of units looks like an effect of such variables, so that they must clearly help in
    units that the fit has not seen.
    """
    assert some.units is not None
    constant = set(design.live()) & constant_within(some.columns, some.units)
    if not constant or fitted.held_out is None:
        return fitted, design, some
    within = design.without(constant)
    other = replace(some, ingredients=None).prepared(within)
    again = fit_trusted(within, other, rows, base(other), moderate, pairs=pairs)
    assert again.held_out is not None
    judged = some.folds.judged()
    saved = (again.held_out - fitted.held_out)[judged]
    gain = gain_of(saved, some.loss.mass()[judged], some.units[judged])
    if gain.value > CLEAR_GAIN * gain.error:
        return fitted, design, some
    return again, within, other


def fit_trusted(
    design: Design,
    rows: Sample,
    whole: Sample,
    base: Floats,
    moderate: Callable[[Floats, Floats, Sample], Floats],
    *,
    pairs: bool,
) -> Trusted:
    """Fit both models and decide how far each is trusted.

    Where the marginal likelihood leaves no doubt, the larger model is trusted completely. Elsewhere
    both models are fitted again without each fold, including penalties and pairs, starting from
    the fits of all rows, and are compared on the held-out rows. The marginal likelihood assumes
    many independent rows, so it is not used with groups or below `EVIDENCE_ROWS`. With few rows
    the only model is a line of the score, and with very few rows it is not trusted.

    Parameters
    ----------
    design : Design
        The terms.
    rows, whole : Sample
        The rows on which penalties and trust are learned, and all rows, on which coefficients are
        fitted in the end.
    base : ndarray
        The predictor that leaves the scores of `rows` as they are.
    moderate : callable
        Turns a model's predictor, its variance and its rows into the predictor that is used.
    pairs : bool
        Whether to look for pairs.
    """
    alone, bare = design.score_only(), replace(rows, columns=[])

    def small_of(terms: Design, like: Fitted) -> Floats:
        return held_out(
            bare, lambda part: fit_additive(terms, part, pairs=False, like=like), moderate
        )

    if float(rows.loss.mass().sum()) < FEW_ROWS + FEW_ROWS_PER_VARIABLE * len(design.live()):
        alone = alone.restricted((Block("level", (SCORE,)), Block("slope", (SCORE,))))
        score = fit_additive(alone, bare, pairs=False)
        share = 0.0 if too_few(rows) else _score_share(bare, base, small_of(alone, score), score)
        return Trusted(score, score, share, 0.0)
    score = fit_additive(alone, bare, pairs=False)
    full = fit_additive(design, rows, pairs=pairs)
    if too_few(rows):
        return Trusted(score, full, 0.0, 0.0)
    score_share, full_share, losses = 1.0, 0.0, None
    if rows.units is None and float(rows.loss.mass().sum()) >= EVIDENCE_ROWS:
        gained = full.evidence - score.evidence
        full_share = evidence_share(gained, len(full.edf) - len(score.edf))
    if full_share < 1:
        small = small_of(alone, score)
        score_share = _score_share(rows, base, small, score)
        small = base + score_share * (small - base)
        large = held_out(
            rows, lambda part: fit_additive(design, part, pairs=pairs, like=full), moderate
        )
        later = CALIBRATED_SCORES * (1.0 - score_share)
        low, high = VARIABLES_RAMP
        gain = gain_over(rows, small, large)
        full_share = max(full_share, share_of(gain, (low + later, high + later)))
        losses = rows.loss.rows(small + full_share * (large - small))
    if len(rows) < len(whole):
        score, full = refit(score, replace(whole, columns=[])), refit(full, whole)
    return Trusted(score, full, score_share, full_share, held_out=losses)


def _score_share(rows: Sample, base: Floats, held_out: Floats, score: Fitted) -> float:
    """Return how far the curve of the score is trusted over the scores as they are.

    A few extremely wrong scores make the standard error of held-out savings as large as the
    savings; there the marginal likelihood decides, if it leaves no doubt.
    """
    share = share_of(gain_over(rows, base, held_out), SCORE_RAMP)
    if rows.units is not None:
        return share
    gained = score.evidence + rows.loss.value(base)
    return max(share, _ramp(gained, BEYOND_DOUBT))


def too_few(rows: Sample) -> bool:
    """Return whether there are too few rows, or groups of rows, to learn anything."""
    if float(rows.loss.mass().sum()) < LEAST_ROWS:
        return True
    return rows.units is not None and len(np.unique(rows.units)) < LEAST_UNITS


def warn_of_few(n_units: int, argument: str, noun: str) -> None:
    """Warn if there are too few groups, or times, to learn from."""
    if n_units < LEAST_UNITS:
        held = f"{n_units} {noun}{'s' * (n_units > 1)}"
        warnings.warn(
            f"{argument} holds {held}; at least {LEAST_UNITS} are needed to learn anything "
            "about others, so the scores stay as they are",
            VarcalWarning,
            stacklevel=5,
        )


def held_out(
    rows: Sample,
    fit: Callable[[Sample], Fitted],
    moderate: Callable[[Floats, Floats, Sample], Floats] = lambda eta, variance, rows: eta,
) -> Floats:
    """Return the predictor of each row from a model of rows that may fit it; 0 without one."""
    eta = np.zeros(len(rows))
    for train, out in rows.folds.splits():
        held = rows.take(out)
        model = fit(rows.take(train)).model
        eta[out] = moderate(*model.of_sample(held), held)
    return eta


def gain_over(rows: Sample, small: Floats, large: Floats) -> Gain:
    """Return by how much the larger model lowers the mean loss of held-out rows."""
    judged = rows.folds.judged()
    if not judged.all():
        rows, small, large = rows.take(judged), small[judged], large[judged]
    saved = rows.loss.rows(small) - rows.loss.rows(large)
    curvature = rows.loss.slopes(small)[1]
    return cautious_gain(saved, rows.loss.mass(), rows.units, curvature, large - small)


#: The share of the variance between units from which a variable tells units apart. It is
#: about 0 for a variable that has nothing to do with the units, and 1 for one that is constant
#: within each.
BETWEEN_UNITS = 0.8


def constant_within(columns: list[AnyArray], units: Ints) -> set[int]:
    """Return the columns that hardly vary within units.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(50), 10)
    >>> constant_within([day // 5, rng.normal(size=500)], day)
    {0}
    """
    return {k for k, column in enumerate(columns) if _between(column, units) >= BETWEEN_UNITS}


def _between(column: AnyArray, units: Ints) -> float:
    """Return the share of variance between units, corrected for the number of units."""
    # Missing values are equal to one another and come last.
    rank = np.unique(column, return_inverse=True)[1].astype(np.float64)
    _, place = np.unique(units, return_inverse=True)
    count = np.bincount(place)
    mean = np.bincount(place, rank) / count
    left, total = len(rank) - len(count), float(rank.var()) * len(rank)
    if left <= 0 or total <= 0:
        return 0.0
    within = float(((rank - mean[place]) ** 2).sum()) / left
    return 1.0 - within / (total / (len(rank) - 1))
