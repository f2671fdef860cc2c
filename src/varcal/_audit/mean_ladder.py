"""The ladder of predicted means: one factor, a curve of the prediction, and variables.

The same rungs and the same rule as for probabilities (`ladder`). Each repair is learned from one
half of the rows for the other. Deviances are those of all rows, other figures those of one half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from varcal._arrays import Floats, Ints
from varcal._audit.ladder import (
    AS_IT_IS,
    AVERAGE,
    BY_SCORE,
    LEAST_ROWS,
    MOST_ROWS,
    MOST_VARIABLES,
    NOT_ASKED,
    RUNGS,
    SURELY,
    UNEVEN,
    Figures,
    Ladder,
    Left,
    first_figures,
    in_order,
    parts_of,
    rungs_of,
    with_after,
)
from varcal._audit.record import Target
from varcal._audit.result import Audit
from varcal._inference.mean_law import MeanSums, mean_error, mean_test
from varcal._inference.paired import mean_interval
from varcal._input.predictions import Predictions
from varcal._measures.means import MEAN, MeanAlong, MeanEvidence, overall_level
from varcal._sums.bins import Bins, joint_index
from varcal._sums.mean_stats import SHARES
from varcal._threads import one_blas_thread

#: An average below this part of the limit is the rounding of sums.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class _Way:
    """The rows of a ladder, and how their gaps are measured."""

    evidence: MeanEvidence
    bins: Mapping[str, Bins]
    target: Target
    level: float

    @property
    def rows(self) -> Predictions:
        return self.evidence.predictions

    @property
    def power(self) -> float:
        """The power of the deviance, that of the repairs; shares are judged as counts."""
        if not self.evidence.relative:
            return 0.0
        return 1.0 if self.evidence.power == SHARES else self.evidence.power

    def mean(self, values: Floats, level: float = 0.5) -> tuple[float, float, float]:
        return mean_interval(values, self.evidence.weight, self.rows.groups, level)


def judge_mean_ladder(
    audit: Audit,
    *,
    evidence: MeanEvidence,
    bins: Mapping[str, Bins],
    top: str | None,
    random_state: int,
) -> tuple[Ladder | None, str]:
    """Judge the ladder of an audit of means, or say why there is none; as `judge_ladder`."""
    if top is None:
        return None, NOT_ASKED
    if evidence.n_rows < LEAST_ROWS:
        return None, f"it needs {LEAST_ROWS} rows; there are {evidence.n_rows}"
    rows, rng = evidence.predictions, np.random.default_rng(random_state)
    rows = replace(rows, variables=tuple(one for one in rows.variables if one.name in bins))
    order = in_order(rows)
    if sampled := len(order) > MOST_ROWS:
        order = order[np.sort(rng.permutation(len(order))[:MOST_ROWS])]
    way = _Way(evidence.of(rows, order), bins, audit.target, audit.level)
    return _climb(way, audit, top, rng, sampled=sampled), ""


@one_blas_thread()
def _climb(way: _Way, audit: Audit, top: str, rng: np.random.Generator, *, sampled: bool) -> Ladder:
    halves, rows = parts_of(way.rows, 2, rng), way.rows
    judged = np.flatnonzero(halves == 1)
    known = {one.name for one in rows.variables if not one.source} - set(audit.protected)
    allowed = [row.variable for row in audit.rows if row.variable in known][:MOST_VARIABLES]
    made = {AS_IT_IS: np.asarray(rows.p, dtype=np.float64)}
    figures = {AS_IT_IS: first_figures(audit)}
    for k, name in enumerate(RUNGS[1 : RUNGS.index(top) + 1], 1):
        made[name] = _held_out(way, halves, allowed, k)
        half = _figures(way, made[name], judged)
        error = float(np.average(made[name] - rows.y, weights=way.evidence.weight))
        if way.evidence.relative:
            error /= float(np.average(made[name], weights=way.evidence.weight))
        error = error if abs(error) > ROUNDING * way.target.limit else 0.0
        figures[name] = half | {(AVERAGE, ""): [half[AVERAGE, ""][0].around(error)]}
    ladder = _ladder(way, made, figures, sampled=sampled)
    if ladder.suffices == AS_IT_IS:
        return ladder
    index = {one.name: joint_index(way.bins[one.name], [one]) for one in rows.variables}
    change = made[ladder.suffices] - rows.p
    return with_after(ladder, audit, index, way.evidence.weight, change)


def _held_out(way: _Way, halves: Ints, allowed: list[str], stages: int) -> Floats:
    """Return the predictions of each half after a repair that is learned from the other."""
    from varcal.calibrators.mean import repaired  # noqa: PLC0415  slow, seldom needed

    rows, made = way.rows, np.array(way.rows.p, dtype=np.float64)
    variables = tuple(one for one in rows.variables if one.name in allowed and stages > 2)
    kept = replace(rows, variables=variables)
    for half in (0, 1):
        learn, held = (np.flatnonzero(halves == one) for one in (1 - half, half))
        exposure = way.evidence.exposure
        exposure = None if exposure is None else exposure[learn]
        log = way.evidence.relative
        made[held] = repaired(kept.take(learn), kept.take(held), exposure, log=log, stages=stages)
    return made


def _figures(way: _Way, p: Floats, judged: Ints) -> Figures:
    """Return the figures of predictions for rows that did not fit them."""
    evidence = way.evidence.of(replace(way.rows, p=p), judged)
    of = way.target.name, way.target.limit
    overall = overall_level(evidence, way.level)
    score = MeanAlong.of(evidence.profile(MEAN, None)).measured(way.level, center=False)
    found: Figures = {
        (AVERAGE, ""): [Left(overall.gap, overall.low, overall.high, *of)],
        (BY_SCORE, ""): [Left(score.debiased, score.low, score.high, *of)],
    }
    strict = 1 - (1 - way.level) / len(way.bins)
    for name, bins in way.bins.items():
        sums = MeanSums.of(evidence.stats_of(bins, name))
        uneven = mean_error(sums, mean_test(sums), level=strict)
        found[UNEVEN, name] = [Left(uneven.debiased, uneven.low, uneven.high, *of)]
    return found


def deviances(y: Floats, mu: Floats, power: float) -> Floats:
    """Return the deviance of each row with the variance μᵖ.

    >>> deviances(np.array([0.0, 2.0]), np.array([1.0, 2.0]), 1.0).tolist()
    [2.0, 0.0]
    """
    if power == 0:
        return np.asarray((y - mu) ** 2)
    if power == 1:
        return np.asarray(2 * (xlogy(y, y / mu) - y + mu))
    if power == 2:
        return np.asarray(2 * (y / mu - 1 - np.log(y / mu)))
    own = y ** (2 - power) / ((1 - power) * (2 - power))
    return np.asarray(2 * (own - y * _slope(mu, power) + mu ** (2 - power) / (2 - power)))


def _slope(mu: Floats, power: float) -> Floats:
    """Return by what outcomes are multiplied in the log-likelihood."""
    if power == 1:
        return np.asarray(np.log(mu))
    return np.asarray(mu ** (1 - power) / (1 - power))


def _ladder(
    way: _Way, made: Mapping[str, Floats], figures: Mapping[str, Figures], *, sampled: bool
) -> Ladder:
    """Compare the rungs, each with all higher ones; as in the ladder of probabilities."""
    y, power = way.rows.y, way.power
    losses = {name: deviances(y, p, power) for name, p in made.items()}
    error = way.target.limit * (made[AS_IT_IS] if way.evidence.relative else 1.0)
    matters = way.mean(error**2 * made[AS_IT_IS] ** -power if power else error**2 + 0 * y)[0]

    def is_better(higher: str, lower: str) -> bool:
        """Whether a rung gains what matters where the lower one is surely wrong."""
        apart = 2 * (_slope(made[higher], power) - _slope(made[lower], power))
        wrong = way.mean((y - made[lower]) * apart, 2 * SURELY - 1)[1] > 0
        return wrong and way.mean(losses[lower] - losses[higher])[0] >= matters

    scores = {name: (way.mean(one)[0], 0.0) for name, one in losses.items()}
    rungs = rungs_of(figures, scores, is_better)
    return Ladder(rungs, matters, 1, len(y), sampled, scale=way.target.scale)
