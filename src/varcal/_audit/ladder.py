"""The ladder: what is left of a model's errors after each repair, and which repair suffices.

Four rungs: as it is, a shift of the logit, a curve of the score, and a model of the variables. Each
is judged on rows that did not fit it. Shift and curve are cross-fitted in five folds and pooled.
Pooling hides what was learned: the average of pooled rows is always 0, and their error by score
too small. Both get the variance of learning back (`_pooled_by_score`). Variables are learned from
one half of the rows and judged by the other, because pooled rows would hide their uneven error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._audit.decision import ABOVE, state_of
from varcal._audit.record import RARE, AuditRow, Place, Target
from varcal._binning.bins import Bins, joint_index
from varcal._inference.cell_law import law_of_sides
from varcal._inference.debias import debiased, lower_limit, upper_limit
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw, plug_in_mean
from varcal._inference.measured import LawErrors
from varcal._inference.multiplicity import two_sided_quantile
from varcal._inference.paired import mean_interval, row_losses
from varcal._input.events import CORRECT, claim_of, predicted
from varcal._input.frames import frame_of
from varcal._input.groups import buckets
from varcal._input.predictions import Predictions
from varcal._text.html_tables import Shown
from varcal._text.numbers import interval, percent, points, signed
from varcal._threads import one_blas_thread

if TYPE_CHECKING:
    from varcal._audit.result import Audit

AS_IT_IS, SHIFT, CURVE, VARIABLES = "as it is", "shift", "score curve", "variables"
RETRAIN = "retrain"
RUNGS = (AS_IT_IS, SHIFT, CURVE, VARIABLES)
#: Folds of the rungs that are pooled.
N_FOLDS = 5
#: Bins of the score.
SCORE_BINS = 10
#: Rows that the ladder is judged on, a random sample of more; and rows that variables are learned
#: from. More would take time and change no conclusion.
MOST_ROWS, LEARN_ROWS = 40_000, 5_000
#: The variables rung reads at most this many, those with the largest uneven error.
MOST_VARIABLES = 30
#: Below this number of rows, groups or events there is no ladder.
LEAST_ROWS, LEAST_GROUPS, LEAST_EVENTS = 50, 12, 4
#: The one-sided level at which a higher rung must predict better to be preferred.
SURELY = 0.95


@dataclass(frozen=True)
class Left:
    """The uneven error along one variable that is left after a repair."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Rung:
    """What one repair leaves, on rows that did not fit it.

    Attributes
    ----------
    name : str
        "as it is", "shift", "score curve" or "variables".
    average, average_low, average_high : float
        Mean probability − rate. After a shift or a curve it is 0 up to what was learned from a
        limited number of rows.
    by_score, by_score_low, by_score_high : float
        The error by score.
    uneven : dict of Left
        The uneven error along each variable, with intervals for all variables at once.
    log_loss, accuracy : float
        On the rows that all rungs are compared on.
    above : bool
        Whether a figure is shown above the limit: its interval excludes 0 and its estimate is
        above the limit.
    better : str
        A higher rung that predicts surely better, by an amount that matters; or empty.
    n_learned : int
        The rows that it was learned from.
    """

    name: str
    average: float
    average_low: float
    average_high: float
    by_score: float
    by_score_low: float
    by_score_high: float
    uneven: dict[str, Left]
    log_loss: float
    accuracy: float
    above: bool
    better: str
    n_learned: int

    @property
    def suffices(self) -> bool:
        """Whether nothing is shown above the limit, and no higher rung is surely better."""
        return not self.above and not self.better

    @property
    def worst(self) -> tuple[str, Left]:
        """The variable with the largest uneven error, with an interval of the largest one."""
        name = max(self.uneven, key=lambda one: self.uneven[one].value)
        every = self.uneven.values()
        low, high = max(one.low for one in every), max(one.high for one in every)
        return name, Left(self.uneven[name].value, low, high)


@dataclass(frozen=True, eq=False, repr=False)
class Ladder(Shown):
    """What is left after each repair, and which one suffices.

    Attributes
    ----------
    rungs : tuple of Rung
        The repairs, each with more parameters than the one before.
    limit : float
        The error that matters.
    matters : float
        The gain of log-loss that matters: what an error of `limit` everywhere costs.
    digits : int
        The decimals of points.
    n_rows : int
        The rows that shift and curve are judged on; variables are on half of them.
    sampled : bool
        Whether these are a random sample of the audited rows.
    steps : dict of float
        For "shift" with two classes: the number that is added to the logit.
    after : dict of list
        What the model says after the repair that suffices, for each row of each variable's table.
    places_after : list of float
        The same for the places of the audit; "all rows" first.
    """

    rungs: tuple[Rung, ...]
    limit: float
    matters: float
    digits: int
    n_rows: int
    sampled: bool
    steps: dict[str, float]
    after: dict[str, list[float]]
    places_after: list[float]

    @property
    def suffices(self) -> str:
        """The lowest rung that suffices; if none does, the one with the lowest log-loss."""
        for rung in self.rungs:
            if rung.suffices:
                return rung.name
        return min(self.rungs, key=lambda rung: rung.log_loss).name

    @property
    def is_enough(self) -> bool:
        """Whether some rung suffices."""
        return any(rung.suffices for rung in self.rungs)

    @property
    def advice(self) -> str:
        """The repair to use, or "retrain" if none gains what matters."""
        best = self.rung(self.suffices)
        if not best.suffices and self.rungs[0].log_loss - best.log_loss < self.matters:
            return RETRAIN
        return best.name

    def rung(self, name: str) -> Rung:
        """Return one rung."""
        return next(rung for rung in self.rungs if rung.name == name)

    def to_frame(self) -> Any:
        """Return one row per rung, as a pandas frame."""
        return frame_of(self._columns(), None)

    def _columns(self) -> dict[str, list[Any]]:
        worst = [rung.worst for rung in self.rungs]
        names = ("average", "average_low", "average_high", "by_score", "by_score_low")
        more = ("by_score_high", "log_loss", "accuracy", "above", "better", "n_learned")
        return {
            "rung": [rung.name for rung in self.rungs],
            **{name: [getattr(rung, name) for rung in self.rungs] for name in (*names, *more)},
            "uneven": [left.value for _, left in worst],
            "uneven_low": [left.low for _, left in worst],
            "uneven_high": [left.high for _, left in worst],
            "along": [name for name, _ in worst],
            "suffices": [rung.suffices for rung in self.rungs],
        }

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        worst = [rung.worst for rung in self.rungs]
        digits = self.digits
        columns = {
            "repair": [rung.name for rung in self.rungs],
            "average": [signed(rung.average, digits) for rung in self.rungs],
            "by score": [points(rung.by_score, digits) for rung in self.rungs],
            "largest uneven error": [
                f"{points(left.value, digits)} ({interval(left.low, left.high, digits)})"
                for _, left in worst
            ],
            "along": [name for name, _ in worst],
            "log-loss": [f"{rung.log_loss:.4f}" for rung in self.rungs],
            "right": [percent(rung.accuracy) for rung in self.rungs],
            "suffices": ["yes" if rung.suffices else "" for rung in self.rungs],
        }
        head = f"Repair it needs: {self.advice}" if self.rungs[0].above else "No repair is needed"
        return (
            head,
            columns,
            f"Points, judged on {self.n_rows:,} rows that did not fit each repair.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        rungs = [
            vars(rung) | {"uneven": {name: vars(left) for name, left in rung.uneven.items()}}
            for rung in self.rungs
        ]
        after = {name: [_none(one) for one in values] for name, values in self.after.items()}
        places = [_none(one) for one in self.places_after]
        return vars(self) | {"rungs": rungs, "after": after, "places_after": places}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ladder:
        """Return the ladder that `to_dict` described."""
        rungs = tuple(
            Rung(**one | {"uneven": {name: Left(**left) for name, left in one["uneven"].items()}})
            for one in data["rungs"]
        )
        after = {name: [_number(one) for one in values] for name, values in data["after"].items()}
        places = [_number(one) for one in data["places_after"]]
        return cls(**{**data, "rungs": rungs, "after": after, "places_after": places})

    def _check_saved(self) -> None:
        """Raise ValueError unless the rungs are the known ones, with variables."""
        names = [rung.name for rung in self.rungs]
        if names != list(RUNGS[: len(names)]) or not names:
            raise ValueError("the rungs are not the known ones")
        if any(not rung.uneven or not math.isfinite(rung.log_loss) for rung in self.rungs):
            raise ValueError("a rung has no variables or no log-loss")


def _none(value: float) -> float | None:
    return None if value != value else value


def _number(value: float | None) -> float:
    return math.nan if value is None else value


@dataclass(frozen=True, eq=False)
class _Way:
    """The rows of a ladder, and where each is along every variable."""

    rows: Predictions
    keys: tuple[int, ...]
    targets: tuple[Target, ...]
    bins: Mapping[str, Bins]
    index: Mapping[str, Ints]
    level: float

    def take(self, part: Ints) -> _Way:
        index = {name: where[part] for name, where in self.index.items()}
        return replace(self, rows=self.rows.take(part), index=index)

    def with_p(self, p: Floats) -> Predictions:
        return replace(self.rows, p=p)


@one_blas_thread()
def climb(
    rows: Predictions,
    audit: Audit,
    keys: Sequence[int],
    bins: Mapping[str, Bins],
    *,
    top: str = VARIABLES,
    n_all: int | None = None,
    random_state: int = 0,
) -> tuple[Ladder | None, str]:
    """Judge every rung.

    Parameters
    ----------
    rows : Predictions
        The rows of the audit, or a sample of them, with the variables that it judged.
    audit : Audit
        The audit: its figures are those of the first rung.
    keys : sequence of int
        The keys of the targets.
    bins : mapping of Bins
        The bins of each variable.
    top : str
        The highest rung.
    n_all : int, optional
        The number of rows of the audit, if these are a sample of them.
    random_state : int
        Seed of folds and halves.

    Returns
    -------
    Ladder or None, and if None the reason
    """
    rng = np.random.default_rng(random_state)
    if len(rows) > MOST_ROWS:
        rows = rows.take(np.sort(rng.permutation(len(rows))[:MOST_ROWS]))
    rows = replace(rows, n_dropped=0)
    reason = _obstacle(rows)
    if reason:
        return None, reason
    index = {one.name: joint_index(bins[one.name], [one]) for one in rows.variables}
    targets = tuple(audit.targets.values())
    way = _Way(rows, tuple(keys), targets, bins, index, audit.level)
    folds = _parts(rows, N_FOLDS, rng)
    halves = _parts(rows, 2, rng)
    learn = np.sort(rng.permutation(np.flatnonzero(halves == 0))[:LEARN_ROWS])
    judged = np.flatnonzero(halves == 1)
    wanted = RUNGS[: RUNGS.index(top) + 1]
    made = {AS_IT_IS: rows.p}
    figures = {AS_IT_IS: _first(audit)}
    two = len(rows.classes) == 2
    for name in wanted[1:3]:
        if two:
            made[name] = _pooled(name, rows, folds)
            figures[name] = _pooled_figures(name, way, made[name])
        else:
            made[name] = _halved(name, rows, learn, judged, ())
            figures[name] = _figures(way.take(judged), made[name][judged])
    if VARIABLES in wanted:
        read = _read(audit, rows)
        made[VARIABLES] = _halved(VARIABLES, rows, learn, judged, read)
        figures[VARIABLES] = _figures(way.take(judged), made[VARIABLES][judged])
    common = judged if VARIABLES in wanted or not two else np.arange(len(rows))
    ladder = _ladder(way, made, figures, common, len(learn), n_all or len(rows))
    return _with_after(ladder, audit, way, made, common), ""


def _obstacle(rows: Predictions) -> str:
    """Return why no repair can be judged, or an empty text."""
    if len(rows) < LEAST_ROWS:
        return f"it needs {LEAST_ROWS} rows; there are {len(rows)}"
    counted = rows.y if rows.weight is None else rows.y[rows.weight > 0]
    events = len(counted) - int(np.bincount(counted).max())
    if events < LEAST_EVENTS:
        return f"it needs {LEAST_EVENTS} rows of a second class; there are {events}"
    if rows.groups is not None:
        n_groups = len(np.unique(rows.groups))
        if n_groups < LEAST_GROUPS:
            return f"it needs {LEAST_GROUPS} groups; there are {n_groups}"
    return ""


def _parts(rows: Predictions, many: int, rng: np.random.Generator) -> Ints:
    """Return the part of each row, at random and of equal size; groups are kept whole.

    Parts are not stratified by outcome: the gain of a shift would then be biased.
    """
    if rows.groups is None:
        return rng.permutation(len(rows)) % many
    units, of_row = np.unique(rows.groups, return_inverse=True)
    return (rng.permutation(len(units)) % many)[of_row]


def _calibrator(name: str, two: bool) -> Any:
    from varcal.calibrators import (  # noqa: PLC0415  loads scikit-learn
        BetaCalibrator,
        DirichletCalibrator,
        ShiftCalibrator,
        VariableCalibrator,
    )

    if name == VARIABLES:
        return VariableCalibrator()
    return (
        ShiftCalibrator() if name == SHIFT else BetaCalibrator() if two else DirichletCalibrator()
    )


def _held_out(name: str, learn: Predictions, held: Predictions) -> Floats:
    """Return probabilities of some rows after a repair learned from others.

    None is nearer to 0 or 1 than a tenth of one outcome in all rows that were learned from,
    unless it was before: a curve of few events may say exactly 0.
    """
    from varcal.calibrators._interface.held_out import calibrate_held_out  # noqa: PLC0415

    if len(np.unique(learn.y)) < 2:
        return held.p
    made = calibrate_held_out(_calibrator(name, len(learn.classes) == 2), learn, held)
    if held.p.ndim > 1:
        return made
    floor = 0.1 / (len(learn) + 1)
    return np.clip(made, np.minimum(floor, held.p), np.maximum(1 - floor, held.p))


def _without_variables(rows: Predictions, read: Sequence[str] = ()) -> Predictions:
    return replace(rows, variables=tuple(one for one in rows.variables if one.name in read))


def _pooled(name: str, rows: Predictions, folds: Ints) -> Floats:
    """Return every row's probability after a repair learned from the other folds."""
    plain = _without_variables(rows)
    made = np.array(rows.p, dtype=np.float64)
    for fold in range(N_FOLDS):
        held = folds == fold
        if held.any():
            made[held] = _held_out(name, plain.take(~held), plain.take(held))
    return made


def _halved(name: str, rows: Predictions, learn: Ints, judged: Ints, read: Sequence[str]) -> Floats:
    """Return the probabilities of the judged half; those of other rows stay."""
    kept = _without_variables(rows, read)
    made = np.array(rows.p, dtype=np.float64)
    made[judged] = _held_out(name, kept.take(learn), kept.take(judged))
    return made


def _read(audit: Audit, rows: Predictions) -> list[str]:
    """Return the columns that the variables rung may read."""
    known = {one.name for one in rows.variables}
    ranked = [row.variable for row in audit.rows if row.variable in known]
    return [name for name in ranked if name not in audit.protected][:MOST_VARIABLES]


# ------------------------------------------------------------------ figures

Figures = dict[str, Any]


def _first(audit: Audit) -> Figures:
    """Return the figures of the first rung, which are those of the audit."""
    average = max(audit.targets.values(), key=lambda one: abs(one.gap) / max(one.limit, 1e-9))
    score = max(
        audit.targets.values(), key=lambda one: one.by_score.debiased / max(one.limit, 1e-9)
    )
    return {
        "average": (average.gap, average.gap_low, average.gap_high),
        "by_score": (score.by_score.debiased, score.by_score.low, score.by_score.high),
        "uneven": {
            row.variable: Left(row.uneven.debiased, row.low, row.high) for row in audit.rows
        },
    }


def _figures(way: _Way, p: Floats) -> Figures:
    """Return the figures of probabilities for rows that did not fit them."""
    rows, level = way.with_p(p), way.level
    average, by_score = [], []
    for key, target in zip(way.keys, way.targets, strict=True):
        claim = claim_of(rows, key)
        gap = claim.score - claim.hit
        middle, low, high = mean_interval(gap, rows.weight, rows.groups, level)
        average.append((middle, low, high, target.limit))
        law = law_of_sides([_score_sums(claim.score, claim.hit, rows)])
        (one,) = LawErrors.of([law]).measured(level)
        by_score.append((one.debiased, one.low, one.high, target.limit))
    return {
        "average": max(average, key=lambda one: abs(one[0]) / max(one[3], 1e-9))[:3],
        "by_score": max(by_score, key=lambda one: one[0] / max(one[3], 1e-9))[:3],
        "uneven": _uneven(way, rows),
    }


def _uneven(way: _Way, rows: Predictions) -> dict[str, Left]:
    """Return the uneven error along every variable, with intervals for all at once."""
    n = len(way.index)
    best: dict[str, tuple[float, Left]] = {}
    for key, target in zip(way.keys, way.targets, strict=True):
        claim = claim_of(rows, key)
        side = None if key == CORRECT else predicted(rows, key)
        laws = [
            law_of_sides(
                _cell_sums(where, way.bins[name].size, side, claim.score, claim.hit, rows),
                center=True,
            )
            for name, where in way.index.items()
        ]
        errors = LawErrors.of(laws)
        strict = 1 - (1 - way.level) / n
        values = [one.debiased for one in errors.measured(way.level)]
        lows = errors.low(1 - (1 - way.level) / (n * len(way.keys)))
        for name, value, low, high in zip(
            way.index, values, lows, errors.high(strict), strict=True
        ):
            size = value / max(target.limit, 1e-9)
            if name not in best or size > best[name][0]:
                best[name] = size, Left(value, min(low, value), high)
    return {name: left for name, (_, left) in best.items()}


def _cell_sums(
    index: Ints, size: int, side: Bools | None, score: Floats, hit: Bools, rows: Predictions
) -> list[ErrorSums]:
    """Return the sums of the cells of each predicted side; a side with few rows joins the other."""
    sides = 1
    if side is not None and min(side.mean(), 1 - side.mean()) >= LEAST_SIDE:
        index, sides = index + size * side, 2
    bucket, n_buckets = buckets(rows.unit)
    cell = index if bucket is None else index + sides * size * bucket
    sums = ErrorSums.from_rows(cell, score, hit, rows.weight, n_bins=sides * size * n_buckets)
    shape = (sides, size) if bucket is None else (n_buckets, sides, size)
    fields = {name: value.reshape(shape) for name, value in vars(sums).items()}
    return [
        ErrorSums(**{name: value[..., k, :] for name, value in fields.items()})
        for k in range(sides)
    ]


#: A predicted side with a smaller share of the rows joins the other, as in an audit.
LEAST_SIDE = 0.01


def _score_bins(score: Floats) -> Ints:
    """Return the bin of each row, of about equal size, over the score."""
    cuts = np.unique(np.quantile(score, np.linspace(0, 1, SCORE_BINS + 1)[1:-1]))
    return np.searchsorted(cuts, score, side="left")


def _score_sums(score: Floats, hit: Bools, rows: Predictions) -> ErrorSums:
    return _cell_sums(_score_bins(score), SCORE_BINS, None, score, hit, rows)[0]


def _pooled_figures(name: str, way: _Way, p: Floats) -> Figures:
    """Return the figures of pooled probabilities, with the variance of learning added."""
    rows = way.with_p(p)
    (key,) = way.keys
    claim = claim_of(rows, key)
    features = _features(name, claim_of(way.rows, key).score)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    spread = (weight * claim.score * (1 - claim.score))[:, None] * features
    learned = np.linalg.pinv(features.T @ spread)
    inflate = _design_effect(claim.score - claim.hit, rows)
    loading = spread.sum(0) / weight.sum()
    reach = two_sided_quantile(way.level) * math.sqrt(
        max(float(loading @ learned @ loading) * inflate, 0.0)
    )
    index = _score_bins(claim.score)
    share = np.bincount(index, weight, SCORE_BINS)
    by_bin = np.stack([np.bincount(index, column, SCORE_BINS) for column in spread.T], axis=1)
    by_bin = ratio_or_zero(by_bin, share[:, None])
    return {
        "average": (0.0, -reach, reach),
        "by_score": _pooled_by_score(
            law_of_sides([_score_sums(claim.score, claim.hit, rows)]),
            by_bin @ learned @ by_bin.T * inflate,
            way.level,
        ),
        "uneven": _uneven(way, rows),
    }


def _features(name: str, score: Floats) -> Floats:
    """Return the columns of the logit whose coefficients a rung learns."""
    ones = np.ones_like(score)
    if name == SHIFT:
        return ones[:, None]
    p = np.clip(score, 1e-12, 1 - 1e-12)
    return np.stack([ones, np.log(p), np.log1p(-p)], axis=1)


def _design_effect(gap: Floats, rows: Predictions) -> float:
    """Return by how much the variance of a mean grows because rows are in groups."""
    if rows.groups is None:
        return 1.0
    by_row = mean_interval(gap, rows.weight, None, 0.95)
    by_group = mean_interval(gap, rows.weight, rows.groups, 0.95)
    return max(((by_group[2] - by_group[0]) / max(by_row[2] - by_row[0], 1e-12)) ** 2, 1.0)


def _pooled_by_score(law: GapLaw, learning: Floats, level: float) -> tuple[float, float, float]:
    r"""Return the error by score of a repair that was learned from as many rows.

    Gaps of pooled rows vary by :math:`\Sigma - JCJ^\top`, because the fit has followed the
    outcomes. What they show is debiased with that. The repair as it is learned from all rows is
    off by more: by the variance :math:`JCJ^\top` of what it learned.
    """
    size = np.diagonal(law.cov)
    left = np.clip(np.diagonal(learning), 0.0, 0.95 * size)
    scale = np.sqrt(ratio_or_zero(size - left, size))
    pooled = replace(law, cov=law.cov * np.outer(scale, scale))
    pooled = replace(pooled, null_cov=law.null_cov * np.outer(scale, scale))
    middle = debiased(pooled)
    ends = lower_limit(pooled, level, middle), upper_limit(pooled, level, middle)
    sd = np.sqrt(left)
    learner = replace(law, cov=np.diag(left))
    shape = np.sign(law.gap) * np.maximum(np.abs(law.gap), 0.5 * law.standard_error)
    shape = ratio_or_zero(shape, (law.share * np.abs(shape)).sum())

    def total(theta: Floats) -> float:
        return float(plug_in_mean(learner, shape, np.atleast_1d(theta))[0])

    spread = math.sqrt(max(1 - 2 / math.pi, 0.0)) * float(np.sqrt((law.share**2 * sd**2).sum()))
    z = two_sided_quantile(level)
    low = max(total(ends[0]) - z * spread, 0.0) if ends[0] > 0 else 0.0
    return total(middle), low, total(ends[1]) + z * spread


# ------------------------------------------------------------------ the rule


def _ladder(
    way: _Way,
    made: Mapping[str, Floats],
    figures: Mapping[str, Figures],
    common: Ints,
    n_learned: int,
    n_all: int,
) -> Ladder:
    rows, target = way.rows, way.targets[0]
    limit = min(one.limit for one in way.targets)
    y = np.asarray(rows.y, dtype=np.intp)
    losses = {name: row_losses(p, y) for name, p in made.items()}
    share = np.bincount(y, rows.weight, len(rows.classes))
    share = share / share.sum()
    spread = float((share * (1 - share)).max())
    matters = target.limit**2 / (2 * spread) if spread else 0.0
    two = len(rows.classes) == 2
    every = np.arange(len(rows))

    def gain(lower: str, higher: str) -> tuple[float, float]:
        """Return the mean gain in log-loss, and its one-sided lower limit."""
        on = common if higher == VARIABLES or not two else every
        change = (losses[lower]["log-loss"] - losses[higher]["log-loss"])[on]
        weight = None if rows.weight is None else rows.weight[on]
        groups = None if rows.groups is None else rows.groups[on]
        mean, low, _ = mean_interval(change, weight, groups, 2 * SURELY - 1)
        return mean, low

    rungs = []
    names = list(made)
    for k, name in enumerate(names):
        one = figures[name]
        better = ""
        for higher in names[k + 1 :]:
            mean, low = gain(name, higher)
            if low > 0 and mean >= matters:
                better = higher
                break
        mean = {
            metric: mean_interval(
                losses[name][metric][common],
                None if rows.weight is None else rows.weight[common],
                None,
                way.level,
            )[0]
            for metric in ("log-loss", "accuracy")
        }
        shown = [one["average"], one["by_score"]]
        shown += [(left.value, left.low, left.high) for left in one["uneven"].values()]
        above = any(
            abs(value) > limit and (low > 0 or high < 0) for value, low, high in shown
        ) or any(state_of(low, high, limit) == ABOVE for _, low, high in shown)
        rungs.append(
            Rung(
                name,
                *one["average"],
                *one["by_score"],
                one["uneven"],
                mean["log-loss"],
                mean["accuracy"],
                above,
                better,
                0 if k == 0 else n_learned if name == VARIABLES or not two else len(rows),
            )
        )
    rare = any(min(one.observed, 1 - one.observed) < RARE for one in way.targets)
    return Ladder(
        rungs=tuple(rungs),
        limit=limit,
        matters=matters,
        digits=max(target.digits, 2 if rare and two else 1),
        n_rows=len(rows),
        sampled=len(rows) < n_all,
        steps={},
        after={},
        places_after=[],
    )


def _with_after(
    ladder: Ladder, audit: Audit, way: _Way, made: Mapping[str, Floats], common: Ints
) -> Ladder:
    """Add what the model says after the advised repair, along each variable and at each place."""
    steps: dict[str, float] = {}
    rows = way.rows
    two = len(rows.classes) == 2
    if two and SHIFT in made:
        fitted = _calibrator(SHIFT, two)
        from varcal.calibrators._interface.held_out import calibrate_held_out  # noqa: PLC0415

        plain = _without_variables(rows)
        calibrate_held_out(fitted, plain, plain.take(np.arange(1)))
        sign = 1.0 if way.keys[0] == 1 else -1.0
        steps[SHIFT] = sign * float(np.ravel(fitted.shift_)[0])
    name = ladder.advice if ladder.advice != RETRAIN else ladder.suffices
    if not two or name == AS_IT_IS:
        return replace(ladder, steps=steps)
    (key,) = way.keys
    on = common if name == VARIABLES else np.arange(len(rows))
    before, after = (claim_of(way.with_p(p), key).score[on] for p in (rows.p, made[name]))
    weight = np.ones(len(on)) if rows.weight is None else rows.weight[on]
    side = predicted(rows, key)[on]
    change = weight * (after - before)

    def moved(mask: Bools) -> float:
        total = float(weight[mask].sum())
        return float(change[mask].sum()) / total if total else math.nan

    by_row = {
        row.variable: _moved_along(row, audit.target.sides, way, on, side, change, weight)
        for row in audit.rows
        if row.variable in way.index
    }
    return replace(
        ladder,
        steps=steps,
        after=by_row,
        places_after=[
            moved(np.ones(len(on), dtype=bool)),
            *(moved(_mask(place, audit.target.sides, way, on, side)) for place in audit.places),
        ],
    )


def _mask(place: Place, sides: Sequence[str], way: _Way, on: Ints, side: Bools) -> Bools:
    index = way.index[place.variable][on]
    inside = (index >= place.first_bin) & (index <= place.last_bin)
    return inside if not place.side else inside & (side == (place.side == sides[1]))


def _moved_along(
    row: AuditRow,
    sides: Sequence[str],
    way: _Way,
    on: Ints,
    side: Bools,
    change: Floats,
    weight: Floats,
) -> list[float]:
    """Return what the model says after the repair, for each row of the variable's table."""
    index, size = way.index[row.variable][on], way.bins[row.variable].size
    moved: list[float] = []
    parts: list[Bools | slice] = [slice(None)]
    if len(row.table) > size:
        parts += [~side, side]
    for part in parts:
        total = np.bincount(index[part], weight[part], size)
        moved += ratio_or_zero(np.bincount(index[part], change[part], size), total).tolist()
    says = row.table.columns["predicted"]
    return [float(a + b) for a, b in zip(says, moved, strict=True)]


def climber(
    rows: Callable[[], Predictions | None],
    keys: Sequence[int],
    bins: Mapping[str, Bins],
    *,
    top: str | None,
    n_all: int,
    random_state: int,
) -> Callable[[Audit], tuple[Ladder | None, str]]:
    """Return what judges the ladder of an audit when it is first asked for."""

    def find(audit: Audit) -> tuple[Ladder | None, str]:
        if top is None:
            return None, "it was not asked for"
        given = rows()
        if given is None:
            return None, "it needs the rows, and only their sums are in memory"
        return climb(given, audit, keys, bins, top=top, n_all=n_all, random_state=random_state)

    return find
