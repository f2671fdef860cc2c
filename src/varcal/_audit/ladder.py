"""The ladder: what is left of a model's errors after each repair, and which repair suffices.

Four rungs: as it is, a shift of the logit, a curve of the score, and a model of the variables. Each
is judged on rows that did not fit it. Shift and curve are cross-fitted in five folds and pooled.
Pooling hides what was learned: the average of pooled rows is always 0, and their error by score
too small. Both get the variance of learning back (`_learning`). Variables are learned from each
half of the rows for the other. Their log-loss is that of all rows; their figures are those of one
half, because pooled halves hide uneven error, too. With more than two classes, so it is with shift
and curve. `benchmarks/simulate_ladder.py` measures all of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._audit.judge import cell_sums
from varcal._audit.record import MOST_DIGITS, Place, Target, largest, read, saved
from varcal._audit.verdict import state_of
from varcal._files.schema import restored
from varcal._inference.debiased import LEAST_PART, LawErrors, debiased, lower_limit, upper_limit
from varcal._inference.gap_law import GapLaw, law_of_sides, plug_in_mean
from varcal._inference.multiplicity import two_sided_quantile
from varcal._inference.paired import LEAST, mean_interval, row_losses
from varcal._input.frames import frame_of
from varcal._input.labels import CORRECT, Claim, claim_of, predicted
from varcal._input.predictions import Predictions
from varcal._input.variables import sort_levels
from varcal._sums.bins import Bins, NumericBins, joint_index
from varcal._text import ABOVE, Shown, Unit, percent, unit_of
from varcal._threads import one_blas_thread

if TYPE_CHECKING:
    from varcal._audit.result import Audit

AS_IT_IS, SHIFT, CURVE, VARIABLES = "as it is", "shift", "score curve", "variables"
RETRAIN, TRY_VARIABLES = "retrain", "try variables"
#: Why there is no ladder, where that was chosen.
NOT_ASKED = "it was not asked for"
RUNGS = (AS_IT_IS, SHIFT, CURVE, VARIABLES)
#: The kinds of figures.
AVERAGE, BY_SCORE, UNEVEN = "average", "by_score", "uneven"
#: Folds of the rungs that are pooled.
N_FOLDS = 5
#: Bins of the score.
SCORE_BINS = 10
#: Rows that the ladder is judged on, a random sample of more.
MOST_ROWS = 40_000
#: Rows that variables are learned from, or more until there are so many events. With 1 % events,
#: 5,000 rows teach nothing; with common ones, more of them take time and change no conclusion.
LEARN_ROWS, LEARN_EVENTS = 5_000, 250
#: The variables rung reads at most this many, those with the largest uneven error.
MOST_VARIABLES = 30
#: Below this number of rows, groups or events there is no ladder.
LEAST_ROWS, LEAST_GROUPS, LEAST_EVENTS = 50, 12, 4
#: The one-sided level at which a lower rung must be wrong for a higher one to be preferred.
SURELY = 0.95
#: The least probability after a repair, in outcomes among all rows that it was learned from.
FLOOR = 0.1
#: The largest part of the variance of a bin's gap that learning may explain.
MOST_LEARNED = 0.95
#: A shift or curve that leaves this part of an uneven error leaves the evidence for it, too.
SAME_ERROR = 0.5


@dataclass(frozen=True)
class Left:
    """A figure that is left after a repair: of the target that is worst beside its limit.

    Attributes
    ----------
    value, low, high : float
        The figure with its interval.
    target : str
        What the probabilities are of.
    limit : float
        The error of this target that matters.
    """

    value: float
    low: float
    high: float
    target: str
    limit: float

    @property
    def is_surely_above(self) -> bool:
        """Whether the whole interval is above the limit, on either side of 0."""
        return self.state == ABOVE

    @property
    def state(self) -> str:
        """Where the interval lies: above the limit, below it or on both sides."""
        return state_of(self.low, self.high, self.limit)

    @property
    def size(self) -> tuple[bool, float]:
        """What the most important of several targets has most of."""
        return self.is_surely_above, abs(self.value) / max(self.limit, 1e-9)

    def around(self, value: float) -> Left:
        """Return another value with an interval as wide as this one."""
        reach = (self.high - self.low) / 2
        return replace(self, value=value, low=value - reach, high=value + reach)


@dataclass(frozen=True)
class Rung:
    """What one repair leaves, on rows that did not fit it.

    Attributes
    ----------
    name : str
        "as it is", "shift", "score curve" or "variables".
    average : Left
        Mean probability − rate. After a repair it is 0 up to what was learned from a limited
        number of rows.
    by_score : Left
        The error by score.
    uneven : dict of Left
        The uneven error along each variable, with intervals for all variables at once.
    log_loss, accuracy : float
        Over all rows; of means the deviance, and 0.
    above : bool
        Whether the average or the error by score is surely above the limit, or an uneven error is
        surely not 0 and above the limit as estimated.
    better : str
        A higher rung that predicts better by what matters, where this one is surely wrong; or
        empty.
    """

    name: str
    average: Left
    by_score: Left
    uneven: dict[str, Left]
    log_loss: float
    accuracy: float
    above: bool
    better: str

    @property
    def suffices(self) -> bool:
        """Whether nothing is shown above the limit, and no higher rung is surely better."""
        return not self.above and not self.better

    @property
    def worst(self) -> tuple[str, Left]:
        """The variable with the largest uneven error, and that error."""
        name = max(self.uneven, key=lambda one: self.uneven[one].value)
        return name, self.uneven[name]


@dataclass(frozen=True, eq=False, repr=False)
class Ladder(Shown):
    """What is left after each repair, and which one suffices.

    Attributes
    ----------
    rungs : tuple of Rung
        The repairs, each with more parameters than the one before.
    matters : float
        The gain of log-loss that matters: what an error of the limit everywhere costs.
    digits : int
        The decimals of points.
    n_rows : int
        The rows that the ladder is judged on; the figures of variables are those of one half.
    sampled : bool
        Whether these are a random sample of the audited rows.
    observed : float
        The rate with two classes, else 0.
    scale : {"points", "relative", "difference"}
        How gaps are measured (`Target`); of means the log-loss is the deviance.
    steps : dict of float
        For "shift" with two classes: the number that is added to the logit.
    after : dict of list
        What the model says after the repair that suffices, for each row of each variable's table
        (0 without rows); empty with more than two classes.
    places_after : list of float
        By how much that repair changes what the model says, over all rows and at each place.
    """

    rungs: tuple[Rung, ...]
    matters: float
    digits: int
    n_rows: int
    sampled: bool
    observed: float = 0.0
    scale: str = "points"
    steps: dict[str, float] = field(default_factory=dict)
    after: dict[str, list[float]] = field(default_factory=dict)
    places_after: list[float] = field(default_factory=list)

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
        """The repair to use; if none gains what matters "retrain", or "try variables" first."""
        best = self.rung(self.suffices)
        if not best.suffices and self.rungs[0].log_loss - best.log_loss < self.matters:
            return RETRAIN if self.tried_variables else TRY_VARIABLES
        return best.name

    @property
    def tried_variables(self) -> bool:
        """Whether the highest rung was judged."""
        return self.rungs[-1].name == VARIABLES

    def shown_average(self, rung: Rung) -> float:
        """Return the average as texts show it: the difference of the percentages beside it."""
        if self.scale != "points":
            return rung.average.value
        return self.unit.difference(self.observed + rung.average.value, self.observed)

    @property
    def loss(self) -> str:
        """What `Rung.log_loss` is called."""
        return "log-loss" if self.scale == "points" else "deviance"

    def loss_text(self, rung: Rung) -> str:
        """Write `Rung.log_loss`; deviances of amounts may be of any size."""
        plain = self.scale == "points" or 0.1 <= rung.log_loss < 1e4
        return f"{rung.log_loss:.4f}" if plain else f"{rung.log_loss:.5g}"

    @property
    def unit(self) -> Unit:
        """How errors are written."""
        return unit_of(self.scale, self.digits)

    def rung(self, name: str) -> Rung:
        """Return one rung."""
        return next(rung for rung in self.rungs if rung.name == name)

    def to_frame(self) -> Any:
        """Return one row per rung, as a pandas frame."""
        columns: dict[str, list[Any]] = {"rung": [rung.name for rung in self.rungs]}
        columns["along"] = [rung.worst[0] for rung in self.rungs]
        for name in (AVERAGE, BY_SCORE, UNEVEN):
            lefts = [r.worst[1] if name == UNEVEN else getattr(r, name) for r in self.rungs]
            columns[name] = [left.value for left in lefts]
            columns |= {f"{name}_{end}": [vars(x)[end] for x in lefts] for end in ("low", "high")}
            columns[f"{name}_target"] = [left.target for left in lefts]
        plain = ("log_loss", "accuracy", "above", "better", "suffices")
        columns |= {name: [getattr(rung, name) for rung in self.rungs] for name in plain}
        return frame_of(columns, None)

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        columns: dict[str, list[str]] = {}
        unit = self.unit
        for rung in self.rungs:
            along, left = rung.worst
            ends = unit.ends(left.low, left.high)
            shown = {
                "repair": rung.name,
                "average": unit.signed(self.shown_average(rung)),
                "by score": unit.error(rung.by_score.value),
                "largest uneven error": f"{unit.error(left.value)} ({ends})",
                "along": along,
                self.loss: self.loss_text(rung),
            }
            if self.scale == "points":
                shown["right"] = percent(rung.accuracy)
            shown["suffices"] = "yes" if rung.suffices else ""
            columns = {name: [*columns.get(name, []), text] for name, text in shown.items()}
        needed = self.advice != AS_IT_IS
        head = f"Repair it needs: {self.advice}" if needed else "No repair is needed"
        judged = f"judged on {self.n_rows:,} rows that did not fit each repair"
        return head, columns, f"{unit.word.capitalize()}, {judged}."

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        found: dict[str, Any] = saved(self)
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ladder:
        """Return the ladder that `to_dict` described."""
        return restored(lambda: read(data, cls), cls, "a ladder")

    def _check_saved(self) -> None:
        """Raise ValueError unless the rungs are the known ones, all with the same variables."""
        names = [rung.name for rung in self.rungs]
        if names != list(RUNGS[: len(names)]) or not names:
            raise ValueError("the rungs are not the known ones")
        if not {rung.better for rung in self.rungs} <= {"", *names}:
            raise ValueError("the rung that is better is not one of them")
        variables = set(self.rungs[0].uneven)
        if not variables or any(set(rung.uneven) != variables for rung in self.rungs):
            raise ValueError("the rungs do not have the same variables")
        numbers = [one for rung in self.rungs for one in (rung.log_loss, rung.accuracy)]
        lefts = [x for r in self.rungs for x in (r.average, r.by_score, *r.uneven.values())]
        numbers += [end for one in lefts for end in (one.value, one.low, one.high, one.limit)]
        numbers += [self.matters, *self.steps.values(), *self.places_after]
        numbers += [one for says in self.after.values() for one in says]
        if not all(abs(one) <= largest(self.scale) for one in numbers):
            raise ValueError("a figure of a rung is missing or too large")
        if not 0 <= self.digits <= MOST_DIGITS or self.n_rows < 1:
            raise ValueError("the digits or the rows are not counts")


@dataclass(frozen=True, eq=False)
class _Way:
    """The rows of a ladder, what is judged, and the bin of each row along every variable."""

    rows: Predictions
    keys: Sequence[int]
    targets: tuple[Target, ...]
    bins: Mapping[str, Bins]
    index: Mapping[str, Ints]
    level: float

    @property
    def two(self) -> bool:
        """Whether there are two classes; shift and curve are then pooled."""
        return len(self.rows.classes) == 2

    def take(self, part: Ints) -> _Way:
        index = {name: where[part] for name, where in self.index.items()}
        return replace(self, rows=self.rows.take(part), index=index)

    def claims(self, p: Floats) -> list[Claim]:
        """Return what is judged of other probabilities for the rows."""
        rows = replace(self.rows, p=p)
        return [claim_of(rows, key) for key in self.keys]

    def mean(self, values: Floats, level: float = 0.5) -> tuple[float, float, float]:
        """Return the mean of values of the rows, with its interval."""
        return mean_interval(values, self.rows.weight, self.rows.groups, level)


def judge_ladder(
    audit: Audit,
    *,
    rows: Callable[[], Predictions | None],
    keys: Sequence[int],
    bins: Mapping[str, Bins],
    top: str | None,
    n_all: int,
    random_state: int,
) -> tuple[Ladder | None, str]:
    """Judge the ladder of an audit, or say why there is none.

    Parameters
    ----------
    audit : Audit
        The audit.
    rows : callable
        Finds its rows, or a sample of them, with the variables that it judged.
    keys : sequence of int
        The keys of the targets.
    bins : mapping of Bins
        The bins of each variable.
    top : str or None
        The highest rung; None for no ladder.
    n_all : int
        The number of rows of the audit.
    random_state : int
        Seed of folds and halves.
    """
    if top is None:
        return None, NOT_ASKED
    given = rows()
    if given is None:
        return None, "it needs the rows, and only their sums are in memory"
    if given.soft:
        return None, "repairs are learned from classes, and labels are shares between 0 and 1"
    sampled = min(len(given), MOST_ROWS) < n_all
    if len(given.classes) == 2 and given.p.ndim == 2:
        given = replace(given, p=given.p[:, 1])
    given, rng = given.take(in_order(given)), np.random.default_rng(random_state)
    if len(given) > MOST_ROWS:
        given = given.take(np.sort(rng.permutation(len(given))[:MOST_ROWS]))
    if given.weight is not None:
        given = given.take(given.weight > 0)
    if reason := _obstacle(given):
        return None, reason
    index = {one.name: joint_index(bins[one.name], [one]) for one in given.variables}
    way = _Way(given, keys, tuple(audit.targets.values()), bins, index, audit.level)
    return _climb(way, audit, top, sampled, rng), ""


@one_blas_thread()
def _climb(way: _Way, audit: Audit, top: str, sampled: bool, rng: np.random.Generator) -> Ladder:
    """Judge every rung up to the highest one."""
    rows = way.rows
    folds, halves = parts_of(rows, N_FOLDS, rng), parts_of(rows, 2, rng)
    judged = np.flatnonzero(halves == 1)
    # A repair reads columns; parts of dates are the audit's own.
    known = {one.name for one in rows.variables if not one.source} - set(audit.protected)
    allowed = [row.variable for row in audit.rows if row.variable in known]
    made = {AS_IT_IS: np.asarray(rows.p, dtype=np.float64)}
    figures: dict[str, Figures] = {AS_IT_IS: first_figures(audit)}
    for name in RUNGS[1 : RUNGS.index(top) + 1]:
        read = allowed[:MOST_VARIABLES] if name == VARIABLES else []
        if way.two and name != VARIABLES:
            made[name] = _held_out(name, rows, folds, read, rng)
            figures[name] = _figures(way, made[name], name, figures[AS_IT_IS])
        else:
            made[name] = _held_out(name, rows, halves, read, rng)
            half = _figures(way.take(judged), made[name][judged])
            # The average of all rows, as wide as that of one half: the halves' errors cancel.
            means = [way.mean(claim.score - claim.hit)[0] for claim in way.claims(made[name])]
            averages = zip(half[AVERAGE, ""], means, strict=True)
            figures[name] = half | {(AVERAGE, ""): [one.around(mean) for one, mean in averages]}
    return _with_after(_ladder(way, made, figures, sampled), audit, way, made)


def _obstacle(rows: Predictions) -> str:
    """Return why no repair can be judged, or an empty text."""
    if len(rows) < LEAST_ROWS:
        return f"it needs {LEAST_ROWS} rows; there are {len(rows)}"
    events = _events(rows)
    if events < LEAST_EVENTS:
        return f"it needs {LEAST_EVENTS} rows of a second class; there are {events}"
    n_groups = LEAST_GROUPS if rows.groups is None else len(np.unique(rows.groups))
    if n_groups < LEAST_GROUPS:
        return f"it needs {LEAST_GROUPS} groups; there are {n_groups}"
    return ""


def _events(rows: Predictions) -> int:
    """Return the number of rows that are not of the most frequent class."""
    return len(rows) - int(np.bincount(rows.y).max())


def in_order(rows: Predictions) -> Ints:
    """Return rows sorted by their contents, so that parts do not depend on the order given."""
    from varcal.calibrators.variable.shrinkage import hashed  # noqa: PLC0415  slow, seldom needed

    columns = [
        sort_levels(one.values, one.levels)[0] if one.kind == "levels" else one.values
        for one in rows.variables
    ]
    columns += [] if rows.weight is None else [rows.weight]
    key = hashed([*rows.p.reshape(len(rows), -1).T, rows.y, *columns])
    if rows.groups is None:
        return np.argsort(key)
    of_group = np.zeros(int(rows.groups.max()) + 1, np.uint64)
    np.add.at(of_group, rows.groups, key)
    return np.lexsort([key, of_group[rows.groups]])


def parts_of(rows: Predictions, many: int, rng: np.random.Generator) -> Ints:
    """Return the part of each row, at random and of equal size; groups are kept whole.

    Parts are not stratified by outcome: the gain of a shift would then be biased.
    """
    if rows.groups is None:
        return rng.permutation(len(rows)) % many
    _, first, of_row = np.unique(rows.groups, return_index=True, return_inverse=True)
    return (rng.permutation(len(first)) % many)[np.argsort(np.argsort(first))[of_row]]


def _held_out(
    name: str, rows: Predictions, parts: Ints, read: Sequence[str], rng: np.random.Generator
) -> Floats:
    """Return the probabilities of each part after a repair that is learned from the others.

    With two classes none is nearer to 0 or 1 than `FLOOR` outcomes in all rows that were learned
    from, unless it was before: a curve of few events may say exactly 0.
    """
    from varcal.calibrators.calibrator import calibrate_held_out  # noqa: PLC0415

    kept = replace(rows, variables=tuple(one for one in rows.variables if one.name in read))
    made = np.array(rows.p, dtype=np.float64)
    for part in np.unique(parts):
        held, learn = parts == part, np.flatnonzero(parts != part)
        if name == VARIABLES:
            learn = np.sort(rng.permutation(learn)[: _most_learned(rows)])
        if len(np.unique(rows.y[learn])) < 2:
            continue
        calibrator = _calibrator(name, len(rows.classes))
        answer = calibrate_held_out(calibrator, kept.take(learn), kept.take(held))
        if answer.ndim == 1:
            floor, before = FLOOR / len(learn), made[held]
            answer = np.clip(answer, np.minimum(floor, before), np.maximum(1 - floor, before))
        made[held] = answer
    return made


def _most_learned(rows: Predictions) -> int:
    """Return how many rows variables are learned from, at most."""
    return max(LEARN_ROWS, LEARN_EVENTS * len(rows) // _events(rows))


def _calibrator(name: str, n_classes: int) -> Any:
    from varcal import calibrators as known  # noqa: PLC0415  loads scikit-learn

    if name == CURVE:
        return known.BetaCalibrator() if n_classes == 2 else known.DirichletCalibrator()
    return known.ShiftCalibrator() if name == SHIFT else known.VariableCalibrator()


# ------------------------------------------------------------------ figures


#: Figures of every target, by kind and, for uneven errors, by variable.
Figures = dict[tuple[str, str], list[Left]]


def is_above(kind: str, left: Left) -> bool:
    """Whether a figure is shown above its limit.

    An average or an error by score has to be surely above it: a smaller one that matters shows as
    a gain of the repair. An uneven error may need more rows to be learned than to be seen: it has
    to be surely not 0, and above the limit as estimated.
    """
    if kind == UNEVEN:
        return left.low > 0 and left.value > left.limit
    return left.is_surely_above


def first_figures(audit: Audit) -> Figures:
    """Return the figures of the first rung, which are those of the audit."""
    found: dict[tuple[str, str], list[Left]] = {}
    for one in audit.targets.values():
        score, of = one.by_score, (one.name, one.limit)
        found.setdefault((AVERAGE, ""), []).append(Left(one.gap, one.gap_low, one.gap_high, *of))
        by_score = Left(score.debiased, score.low, score.high, *of)
        found.setdefault((BY_SCORE, ""), []).append(by_score)
    for row in audit.rows:
        found[UNEVEN, row.variable] = [
            Left(x.uneven.debiased, x.low, x.high, x.target, audit.targets[x.target].limit)
            for x in row.figures
        ]
    return found


def _figures(way: _Way, p: Floats, pooled: str = "", first: Figures | None = None) -> Figures:
    """Return the figures of probabilities for rows that did not fit them.

    `pooled` names a rung whose fits have learned from all of these rows, each from other folds.
    Where it leaves an uneven error of the `first` rung that is surely not 0, so is what is left:
    the audit's test of it is finer than the interval.
    """
    rows = replace(way.rows, p=p)
    found: dict[tuple[str, str], list[Left]] = {}
    for k, (key, target) in enumerate(zip(way.keys, way.targets, strict=True)):
        claim, of = claim_of(rows, key), (target.name, target.limit)
        bins = _score_bins(claim.score)
        law = law_of_sides(cell_sums(bins, SCORE_BINS, None, claim, rows))
        average = Left(*way.mean(claim.score - claim.hit, way.level), *of)
        if pooled:
            learned = _learning(pooled, claim_of(way.rows, key).score, claim, bins, rows)
            # A fit that is judged has learned from all folds but one.
            reach = law.quantile(way.level) * math.sqrt(learned[-1] * N_FOLDS / (N_FOLDS - 1))
            average = replace(average, low=average.value - reach, high=average.value + reach)
            by_score = _pooled_by_score(law, learned[:-1], way.level)
        else:
            (one,) = LawErrors.of([law]).measured(way.level)
            by_score = one.debiased, one.low, one.high
        found.setdefault((AVERAGE, ""), []).append(average)
        found.setdefault((BY_SCORE, ""), []).append(Left(*by_score, *of))
        side = None if key == CORRECT else predicted(rows, key)
        laws = [
            law_of_sides(
                cell_sums(where, way.bins[name].size, side, claim, rows),
                center=True,
                ordered=isinstance(way.bins[name], NumericBins),
            )
            for name, where in way.index.items()
        ]
        errors, alpha = LawErrors.of(laws), (1 - way.level) / len(laws)
        measured = errors.measured(1 - alpha)
        # Only lower limits pay for the choice of the target, as in an audit.
        several = len(way.keys) > 1
        lows = errors.low(1 - alpha / len(way.keys)) if several else [one.low for one in measured]
        for name, one, low in zip(way.index, measured, lows, strict=True):
            before = first[UNEVEN, name][k] if first else None
            if before and before.low > 0 and one.debiased > SAME_ERROR * before.value:
                low = max(low, LEAST_PART * one.debiased)
            left = Left(one.debiased, low, one.high, *of)
            found.setdefault((UNEVEN, name), []).append(left)
    return found


def _score_bins(score: Floats) -> Ints:
    """Return the bin of each row, of about equal size, over the score."""
    cuts = np.unique(np.quantile(score, np.linspace(0, 1, SCORE_BINS + 1)[1:-1]))
    return np.searchsorted(cuts, score, side="left")


def _sums(index: Ints, values: Floats, size: int = 0) -> Floats:
    """Return the sums of values, or of the columns of a matrix, by index."""
    if values.ndim == 1:
        return np.asarray(np.bincount(index, values, size), dtype=np.float64)
    return np.stack([_sums(index, column, size) for column in values.T], axis=1)


def _learning(name: str, before: Floats, claim: Claim, bins: Ints, rows: Predictions) -> Floats:
    r"""Return how much the gap of each score bin, and last the average, varies by learning.

    A fit with features :math:`\phi` (1 for a shift; 1, ln p and ln(1 − p) for a curve) has
    coefficients with the covariance :math:`C = A^{-1} (\sum u u^\top) A^{-1}`, where
    :math:`A = \sum w q (1 - q) \phi \phi^\top` and u is the sum of :math:`w (y - q) \phi` in a
    group, or of a row. A bin's gap varies by :math:`J_b C J_b^\top`, where :math:`J_b` is its
    mean of :math:`q (1 - q) \phi`.
    """
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    features = np.ones((len(rows), 1))
    if name == CURVE:
        p = np.clip(before, 1e-12, 1 - 1e-12)
        features = np.stack([features[:, 0], np.log(p), np.log1p(-p)], axis=1)
    slope = claim.score * (1 - claim.score)
    spread = (weight * slope)[:, None] * features
    # Scores of exactly 0 and 1 do not enter a fit.
    scatter = (weight * (claim.hit - claim.score) * (slope > 0))[:, None] * features
    if rows.groups is not None:
        scatter = _sums(rows.groups, scatter)
    inverse = np.linalg.pinv(features.T @ spread)
    learned = inverse @ (scatter.T @ scatter) @ inverse
    by_bin = ratio_or_zero(
        _sums(bins, spread, SCORE_BINS), _sums(bins, weight, SCORE_BINS)[:, None]
    )
    means = np.vstack([by_bin, spread.sum(0) / weight.sum()])
    return np.maximum(((means @ learned) * means).sum(axis=1), 0.0)


def _pooled_by_score(law: GapLaw, learned: Floats, level: float) -> tuple[float, float, float]:
    r"""Return the error by score of a repair whose fits have seen all rows.

    Gaps of pooled rows vary by less than independent ones, :math:`\Sigma - JCJ^\top`, because
    the fits have followed the outcomes. What they show is debiased with that. Each fit is off by
    more, by the variance :math:`JCJ^\top` of what it learned.
    """
    size = np.diagonal(law.cov)
    learned = np.minimum(learned, MOST_LEARNED * size)
    scale = np.sqrt(ratio_or_zero(size - learned, size))
    shrink = np.outer(scale, scale)
    shown = replace(law, cov=law.cov * shrink, null_cov=law.null_cov * shrink)
    middle = debiased(shown)
    ends = lower_limit(shown, level, middle), upper_limit(shown, level, middle)
    shape = np.sign(law.gap) * np.maximum(np.abs(law.gap), 0.5 * law.standard_error)
    shape = ratio_or_zero(shape, (law.share * np.abs(shape)).sum())
    of_fit = replace(law, cov=np.diag(learned))
    value, low, high = plug_in_mean(of_fit, shape, np.array([middle, *ends]))
    # The absolute values of independent normal errors vary by 1 − 2/π of their variance.
    spread = math.sqrt((1 - 2 / math.pi) * float((law.share**2 * learned).sum()))
    reach = two_sided_quantile(level, law.df) * spread
    least = max(float(low) - reach, 0.0) if ends[0] > 0 else 0.0
    return float(value), least, float(high) + reach


# ------------------------------------------------------------------ the rule


def _ladder(
    way: _Way, made: Mapping[str, Floats], figures: Mapping[str, Figures], sampled: bool
) -> Ladder:
    """Compare the rungs, each with all higher ones."""
    rows = way.rows
    losses = {name: row_losses(p, rows.y) for name, p in made.items()}
    shares = [way.mean((rows.y == k) * 1.0)[0] for k in range(len(rows.classes))]
    matters = way.targets[0].limit ** 2 / (2 * max(share * (1 - share) for share in shares))

    def is_better(higher: str, lower: str) -> bool:
        """Whether a rung gains what matters where the lower one is surely wrong.

        The gain in log-loss plus the divergence of the higher from the lower rung has the mean 0
        if the lower one is right. That is a score test in the direction of the higher rung, and
        about twice as many standard errors from 0 as the gain alone.
        """
        gain = losses[lower]["log-loss"] - losses[higher]["log-loss"]
        wrong = gain + _divergence(made[lower], made[higher])
        return way.mean(wrong, 2 * SURELY - 1)[1] > 0 and way.mean(gain)[0] >= matters

    scores = {
        name: (way.mean(one["log-loss"])[0], way.mean(one["accuracy"])[0])
        for name, one in losses.items()
    }
    rungs = rungs_of(figures, scores, is_better)
    digits = max(one.unit.digits for one in way.targets)
    rate = way.targets[0].observed if way.two else 0.0
    return Ladder(rungs, matters, digits, len(rows), sampled, rate)


def rungs_of(
    figures: Mapping[str, Figures],
    scores: Mapping[str, tuple[float, float]],
    is_better: Callable[[str, str], bool],
) -> tuple[Rung, ...]:
    """Return the rungs, with the figures of the worst target and the rung that is better.

    Parameters
    ----------
    figures : mapping
        The figures of each rung.
    scores : mapping
        The loss and the accuracy of each rung, in order.
    is_better : callable
        Whether a rung, named first, predicts better than a lower one.
    """
    names, rungs = list(scores), []
    for k, name in enumerate(names):
        every = figures[name].items()
        left = {key: max(several, key=lambda one: one.size) for key, several in every}
        rungs.append(
            Rung(
                name=name,
                average=left[AVERAGE, ""],
                by_score=left[BY_SCORE, ""],
                uneven={along: one for (kind, along), one in left.items() if kind == UNEVEN},
                log_loss=scores[name][0],
                accuracy=scores[name][1],
                above=any(is_above(kind, x) for (kind, _), several in every for x in several),
                better=next((other for other in names[k + 1 :] if is_better(other, name)), ""),
            )
        )
    return tuple(rungs)


def _divergence(p: Floats, q: Floats) -> Floats:
    """Return the divergence of q from p: the log-loss that q adds to each row if p is right."""
    if p.ndim == 1:
        p, q = (np.stack([1 - one, one], axis=1) for one in (p, q))
    return np.asarray((p * np.log(np.maximum(p, LEAST) / np.maximum(q, LEAST))).sum(axis=1))


def _with_after(ladder: Ladder, audit: Audit, way: _Way, made: Mapping[str, Floats]) -> Ladder:
    """Add what the model says after the advised repair, along each variable and at each place."""
    rows, key = way.rows, way.keys[0]
    if not way.two:
        return ladder
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    fitted = _calibrator(SHIFT, 2).fit(rows.p, rows.y, sample_weight=weight / weight.mean())
    ladder = replace(ladder, steps={SHIFT: float(fitted.shift_) * (1 if key == 1 else -1)})
    if ladder.suffices == AS_IT_IS:
        return ladder
    now, then = (claim_of(replace(rows, p=p), key).score for p in (rows.p, made[ladder.suffices]))
    return with_after(ladder, audit, way.index, weight, then - now, predicted(rows, key))


def with_after(
    ladder: Ladder,
    audit: Audit,
    index: Mapping[str, Ints],
    weight: Floats,
    change: Floats,
    side: Bools | None = None,
) -> Ladder:
    """Add what the model says after a repair that changes each row by so much.

    Parameters
    ----------
    ladder, audit : Ladder, Audit
        What to add to, and the variables and places.
    index : mapping
        The bin of each row along each variable.
    weight, change : ndarray
        The weight of each row, and by how much the repair changes what the model says.
    side : ndarray, optional
        Whether each row is predicted to be of the named class.
    """
    every = np.ones(len(weight), dtype=bool)
    parts = [every] if side is None else [every, ~side, side]

    def moved(cell: Ints, size: int, part: Bools) -> Floats:
        sums = (_sums(cell[part], one[part], size) for one in (weight * change, weight))
        return ratio_or_zero(*sums)

    def rows_at(place: Place) -> Bools:
        where = index[place.variable]
        inside = (where >= place.first_bin) & (where <= place.last_bin)
        return inside & parts[1 + audit.target.sides.index(place.side)] if place.side else inside

    after = {}
    for row in audit.rows:
        says = np.nan_to_num(np.array(row.table.columns["predicted"], dtype=np.float64))
        size = len(row.bins["all"])
        steps = [moved(index[row.variable], size, part) for part in parts[: len(row.bins)]]
        after[row.variable] = (says + np.concatenate(steps)).tolist()
    masks = [every, *(rows_at(place) for place in audit.places)]
    nowhere = np.zeros(len(weight), dtype=np.intp)
    places = [float(moved(nowhere, 1, mask)[0]) for mask in masks]
    return replace(ladder, after=after, places_after=places)
