"""`compare`: sets of probabilities for the same held-out rows, against the first of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from varcal._arrays import Floats, Ints, ratio_or_zero
from varcal._audit.audit import label_of
from varcal._audit.comparison import (
    ACCURACY,
    AUC,
    AVERAGE,
    BY_SCORE,
    HIGHER_IS_BETTER,
    LEAST_CHANGE,
    LOG_LOSS,
    POINTS,
    UNEVEN,
    Comparison,
    ComparisonRow,
)
from varcal._audit.decision import BASELINE, BETTER, FIXED, MADE_WORSE, UNCHANGED
from varcal._audit.judge import Judged, Settings, cell_sums, judge, target_of
from varcal._audit.record import Target
from varcal._inference.cell_law import law_of_sides
from varcal._inference.gap_law import GapLaw
from varcal._inference.measured import LawErrors, Measured
from varcal._inference.multiplicity import holm, p_of_interval
from varcal._inference.paired import (
    auc_parts,
    change_law,
    mean_interval,
    paired_interval,
    row_losses,
    sum_interval,
    unpaired_interval,
)
from varcal._input.calendar_parts import with_calendar
from varcal._input.events import CORRECT, audit_keys, claim_of, predicted
from varcal._input.frames import Table
from varcal._input.groups import buckets
from varcal._input.indexes import check_indexes
from varcal._input.left_out import must_read
from varcal._input.predictions import ALL, Predictions, other_columns
from varcal._input.variables import Variable
from varcal._options import checked
from varcal._sums.bins import NumericBins, joint_index
from varcal._sums.evidence import InMemory
from varcal._sums.plan import ATOMS, N_BINS, Question
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError, VarcalWarning

#: Without groups, the correlation of two errors comes from omitting each of this many parts once.
N_PARTS = 100


@checked()
@one_blas_thread()
def compare(
    y: object,
    methods: Mapping[str, object],
    X: object = ALL,
    *,
    data: object = None,
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_BINS,
    binning: str = ATOMS,
    bins: object = None,
    edges: str | None = None,
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    unlabelled: str = "raise",
    random_state: int = 0,
) -> Comparison:
    r"""Compare sets of probabilities for the same held-out rows with the first of them.

    The figures are log-loss, Brier score, accuracy, AUC (two classes), and those of `audit`: the
    average, the error by score and the uneven error along each variable, with the same values.
    Each comes with an interval, its difference from the first set on the same rows (with an
    interval and a p-value) and a verdict. Intervals of differences are DeLong's for AUC and
    sandwich intervals for losses and accuracy. Those of uneven errors use that outcomes are the
    same for both sets where these predict the same side of every row (`varcal._inference.paired`).
    A p-value is below 1 − level exactly where its interval excludes 0.

    Verdicts are adjusted for the number of comparisons (Holm): the family is all figures of all
    sets but the first, so that the probability of any wrong verdict of a change in the whole table
    is at most 1 − level. They also need a size: changes of less than a tenth of a point of
    accuracy or AUC, a fifth of a point of an error, 0.001 of log-loss or 0.0005 of the Brier
    score count as no clear change, however sure they are.

    Parameters
    ----------
    y : array-like or column name
        Labels.
    methods : dict
        Probabilities by name, as arrays or column names; the first is the baseline.
    X : frame, dict of columns, or column names, optional
        The variables. By default every column of `data` that has no other role; None for no
        variables.
    data, n_bins, binning, bins, edges, classes, pos_label, sample_weight, unlabelled
        As in `audit`, so that errors are the same. With more than two classes, the error along a
        variable is that of the target which is most off in the first set.
    level : float
        The level of all intervals.
    groups : array-like or column name, optional
        Units that rows belong to.
    random_state : int
        Seed of the split of the rows into parts, and of the random signs of groups.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(4000, "tilt", vece=0.1)
    >>> truth = sim.p - sim.gap(sim.v)
    >>> found = vc.compare(sim.y, {"raw": sim.p, "repaired": truth.clip(0, 1)}, {"v": sim.v})
    >>> found.row("repaired", "uneven", "v").verdict
    'fixed'
    """
    if not isinstance(methods, Mapping) or not methods:
        raise InputError(
            f"methods must be a dict of probabilities by name; got {type(methods).__name__}",
            'for example {"raw": p0, "beta": p1}',
            argument="methods",
        )
    if len({str(name) for name in methods}) < len(methods):
        raise InputError(
            f"methods has two of the same name: {list(methods)}", "rename one", argument="methods"
        )
    required = must_read(X, None)
    if X is ALL:
        X = None
        if data is not None:
            table = Table.of(data, "data")
            X = other_columns(table, y, *methods.values(), sample_weight, groups)
    arrays = {"y": y, "p": methods, "X": X, "sample_weight": sample_weight, "groups": groups}
    check_indexes(arrays if isinstance(data, Mapping) else arrays | {"data": data})
    given = {
        str(name): Predictions.of(
            y,
            p,
            X,
            data=data,
            classes=classes,
            pos_label=pos_label,
            sample_weight=sample_weight,
            groups=groups,
            unlabelled=unlabelled,
            must_read=required,
        )
        for name, p in methods.items()
    }
    variables = with_calendar(next(iter(given.values())).variables)
    given = {name: replace(one, variables=variables) for name, one in given.items()}
    first = next(iter(given.values()))
    if first.odd:
        shown = "; ".join(f"{name!r} {why}" for name, why in first.odd.items())
        warnings.warn(f"X has columns that are left out: {shown}", VarcalWarning, stacklevel=2)
    keys = tuple(audit_keys(first.classes, pos_label))
    settings = Settings(label_of(y, data), keys, level, random_state=random_state)
    question = Question.of_audit(n_bins, binning, bins, edges, pos_label)
    work = _Work(first, settings)
    sets = [_Set(name, one, InMemory(one, question), settings) for name, one in given.items()]
    rows = [row for one in sets for row in _loss_rows(work, one, sets[0])]
    if len(first.classes) == 2:
        rows += [_auc_row(work, one, sets[0]) for one in sets]
    for metric in (AVERAGE, BY_SCORE):
        rows += [_error_row(work, one, sets[0], metric, None) for one in sets]
    for variable in first.variables:
        rows += [_error_row(work, one, sets[0], UNEVEN, variable) for one in sets]
    order = {name: k for k, name in enumerate(given)}
    keyed = list(dict.fromkeys((row.metric, row.variable) for row in rows))
    rows.sort(key=lambda row: (keyed.index((row.metric, row.variable)), order[row.method]))
    targets = [sets[0].target, *(sets[0].judged.targets if first.variables else ())]
    return Comparison(
        rows=tuple(_judged(rows, sets[0].name, level, {one.name: one.limit for one in targets})),
        methods=tuple(given),
        label=settings.label,
        target=sets[0].target.name,
        level=level,
        n_rows=len(first),
        backend=first.backend,
        n_dropped=first.n_dropped,
        n_bins=n_bins,
        binning=binning,
        grouped=first.groups is not None,
        digits=sets[0].target.digits,
    )


@dataclass(frozen=True, eq=False)
class _Set:
    """One set of probabilities, judged as an audit does."""

    name: str
    predictions: Predictions
    evidence: InMemory
    settings: Settings

    @cached_property
    def judged(self) -> Judged:
        return judge(self.evidence, [one.name for one in self.predictions.variables], self.settings)

    @cached_property
    def target(self) -> Target:
        """The first target over all rows."""
        if self.predictions.variables:
            return self.judged.targets[0]
        constant = Variable("all", "numeric", np.zeros(len(self.predictions)))
        rows = replace(self.predictions, variables=(constant,))
        evidence = InMemory(rows, self.evidence.question)
        return target_of(evidence, self.settings.keys[0], "all", self.settings)

    def uneven(self, variable: str, target: str) -> Measured:
        row = next(row for row in self.judged.rows if row.variable == variable)
        own = next(one for one in row.figures if one.target == target)
        return replace(own.uneven, p_value=row.uneven.p_value)


@dataclass(frozen=True, eq=False)
class _Work:
    """The rows of a comparison, and how they belong together."""

    first: Predictions
    settings: Settings

    @cached_property
    def bucket(self) -> tuple[Ints | None, int]:
        """The bucket of groups of each row, and their number."""
        return buckets(self.first.unit)

    @cached_property
    def df(self) -> float:
        """Degrees of freedom of p-values."""
        groups = self.first.groups
        return math.inf if groups is None else len(np.unique(groups)) - 1.0

    @cached_property
    def parts(self) -> tuple[Ints, int]:
        """The parts of the rows that a jackknife omits, and their number."""
        bucket, n_buckets = self.bucket
        if bucket is not None:
            return bucket, n_buckets
        n = len(self.first)
        n_parts = min(N_PARTS, n)
        rng = np.random.default_rng(self.settings.random_state)
        return rng.permutation(np.arange(n) % n_parts), n_parts

    def row(
        self,
        one: _Set,
        base: _Set,
        metric: str,
        value: tuple[float, float, float],
        change: tuple[float, float, float],
    ) -> ComparisonRow:
        level, baseline = self.settings.level, one is base
        change = (0.0, 0.0, 0.0) if baseline else change
        return ComparisonRow(
            one.name,
            metric,
            "",
            *value,
            math.nan,
            *change,
            BASELINE if baseline else UNCHANGED,
            p_value=math.nan if baseline else p_of_interval(*change[1:], level, self.df),
        )


def _loss_rows(work: _Work, one: _Set, base: _Set) -> list[ComparisonRow]:
    y = np.asarray(work.first.y, np.intp)
    mine, theirs = (row_losses(each.predictions.p, y) for each in (one, base))

    def mean(values: Floats) -> tuple[float, float, float]:
        return mean_interval(values, work.first.weight, work.first.groups, work.settings.level)

    return [
        work.row(one, base, name, mean(mine[name]), mean(mine[name] - theirs[name]))
        for name in (LOG_LOSS, "Brier", ACCURACY)
    ]


def _auc_row(work: _Work, one: _Set, base: _Set) -> ComparisonRow:
    def positive(each: _Set) -> Floats:
        p = each.predictions.p
        return p if p.ndim == 1 else p[:, 1]

    rows, level = work.first, work.settings.level
    value, influence = auc_parts(positive(one), rows.y == 1, rows.weight)
    before, reference = auc_parts(positive(base), rows.y == 1, rows.weight)
    reach = sum_interval(influence, rows.groups, level)
    apart = sum_interval(influence - reference, rows.groups, level)
    change = value - before
    return work.row(
        one,
        base,
        AUC,
        (value, value - reach, value + reach),
        (change, change - apart, change + apart),
    )


def _error_row(
    work: _Work, one: _Set, base: _Set, metric: str, variable: Variable | None
) -> ComparisonRow:
    """Return the average, the error by score, or the uneven error along a variable."""
    level = work.settings.level
    if metric == AVERAGE:
        return _average_row(work, one, base)
    if variable is None:
        name, target = "", base.target.name
        figures = [each.target.by_score for each in (base, one)]
    else:
        name = variable.name
        target = next(row.target for row in base.judged.rows if row.variable == name)
        figures = [each.uneven(name, target) for each in (base, one)]
    change = figures[1].debiased - figures[0].debiased
    low = high = 0.0
    if one is not base:
        targets = base.judged.targets if base.predictions.variables else (base.target,)
        key = work.settings.keys[[each.name for each in targets].index(target)]
        low, high = _change_interval(work, base, one, key, variable)
    row = work.row(
        one,
        base,
        metric,
        (figures[1].debiased, figures[1].low, figures[1].high),
        (change, min(low, change), max(high, change)),
    )
    return replace(
        row,
        variable=name,
        noise_floor=figures[1].noise_high,
        target=target,
        within_noise=figures[1].p_value > 1 - level,
    )


def _average_row(work: _Work, one: _Set, base: _Set) -> ComparisonRow:
    """Return the absolute average gap, and its change.

    The change of the gap itself is known well, because outcomes cancel; how that changes its size
    depends on the gap of the first set, of which all values of its interval are tried.
    """
    key, level = work.settings.keys[0], work.settings.level
    old, new = base.target, one.target
    mine, theirs = (claim_of(each.predictions, key) for each in (one, base))
    moved = (mine.score - mine.hit) - (theirs.score - theirs.hit)
    _, low, high = mean_interval(moved, work.first.weight, work.first.groups, level)
    starts = [old.gap_low, old.gap_high]
    starts += [at for at in (0.0, -low, -high) if old.gap_low < at < old.gap_high]
    sizes = [abs(start + step) - abs(start) for start in starts for step in (low, high)]
    change = abs(new.gap) - abs(old.gap)
    ends = sorted((abs(new.gap_low), abs(new.gap_high)))
    least = 0.0 if new.gap_low <= 0 <= new.gap_high else ends[0]
    row = work.row(
        one,
        base,
        AVERAGE,
        (abs(new.gap), least, ends[1]),
        (change, min(*sizes, change), max(*sizes, change)),
    )
    return replace(row, target=new.name, within_noise=new.p_value > 1 - level)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cell of each row, and the errors of a set there."""

    index: Ints
    size: int
    sides: int
    gap: Floats
    law: GapLaw


def _cells(one: _Set, key: int, variable: Variable | None) -> _Cells:
    """Return the cells of a set: bins of its score, or bins of a variable by predicted side."""
    rows, claim = one.predictions, claim_of(one.predictions, key)
    if variable is None:
        along, found = Variable("score", "numeric", claim.score), one.evidence.profile(key, None)
        bins = found.coarse.bins
    else:
        along, bins = variable, one.judged.bins[variable.name]
    index = joint_index(bins, [along])
    side = None if key == CORRECT or variable is None else predicted(rows, key)
    parts = cell_sums(index, bins.size, side, claim, rows)
    if side is not None and len(parts) == 2:
        index = index + bins.size * side
    ordered = isinstance(bins, NumericBins)
    law = law_of_sides(parts, center=variable is not None, ordered=ordered)
    return _Cells(index, len(parts) * bins.size, len(parts), claim.score - claim.hit, law)


def _change_interval(
    work: _Work, base: _Set, one: _Set, key: int, variable: Variable | None
) -> tuple[float, float]:
    """Return the interval of a change: paired if both sets have the same rows in each cell."""
    level = work.settings.level
    old, new = (_cells(each, key, variable) for each in (base, one))
    if np.array_equal(old.index, new.index) and old.size == new.size:
        change = change_law(old.index, new.gap - old.gap, work.first.weight, old.size, *work.bucket)
        if variable is not None:
            change = change.center(old.sides)
        return paired_interval(old.law, new.law, change, level)
    strict = (1 + level) / 2
    first, second = (LawErrors.of([each.law]).measured(strict)[0] for each in (old, new))
    without = [_without_parts(work, each, center=variable is not None) for each in (old, new)]
    varied = all(values.std() > 0 for values in without)
    together = float(np.corrcoef(without[0], without[1])[0, 1]) if varied else 0.0
    return unpaired_interval(first, second, together)


def _without_parts(work: _Work, cells: _Cells, *, center: bool) -> Floats:
    """Return the plug-in errors with each part of the rows omitted in turn, for a jackknife."""
    part, n_parts = work.parts
    weight = np.ones(len(part)) if work.first.weight is None else work.first.weight
    where = cells.index + cells.size * part

    def rest(values: Floats) -> Floats:
        sums = np.bincount(where, values, cells.size * n_parts).reshape(n_parts, cells.sides, -1)
        return np.asarray(sums.sum(0) - sums)

    total, gaps = rest(weight), rest(weight * cells.gap)
    if center:
        mean = ratio_or_zero(gaps.sum(-1, keepdims=True), total.sum(-1, keepdims=True))
        gaps = gaps - mean * total
    return np.asarray(np.abs(gaps).sum((1, 2)) / total.sum((1, 2)))


def _judged(
    rows: list[ComparisonRow], base: str, level: float, limits: Mapping[str, float]
) -> list[ComparisonRow]:
    """Adjust the p-values for their number, and judge each row."""
    tested = [k for k, row in enumerate(rows) if row.method != base and row.p_value == row.p_value]
    adjusted = dict(zip(tested, holm([rows[k].p_value for k in tested]).tolist(), strict=True))
    words = {k: _verdict(rows[k], adjusted[k] < 1 - level, limits) for k in adjusted}
    return [
        replace(rows[k], p_holm=adjusted[k], verdict=words[k]) if k in adjusted else rows[k]
        for k in range(len(rows))
    ]


def _verdict(row: ComparisonRow, sure: bool, limits: Mapping[str, float]) -> str:
    change = -row.difference if row.metric in HIGHER_IS_BETTER else row.difference
    least = LEAST_CHANGE[row.metric]
    if row.metric in POINTS:
        least = min(least, limits[row.target] / 10)
    if not sure or abs(change) < least:
        return UNCHANGED
    if change > 0:
        return MADE_WORSE
    return FIXED if row.within_noise else BETTER
