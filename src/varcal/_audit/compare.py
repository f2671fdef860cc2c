"""`compare`: sets of probabilities for the same held-out rows, against the first of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._audit.comparison import HIGHER_IS_BETTER, LEAST_CHANGE, Comparison, ComparisonRow
from varcal._audit.findings import look
from varcal._audit.decision import BASELINE, BETTER, FIXED, MADE_WORSE, UNCHANGED
from varcal._binning.bins import joint_index
from varcal._engines.kernel_numpy import bin_rows
from varcal._evidence.in_memory import InMemory
from varcal._evidence.profile import Profile, profile, rows_behind
from varcal._evidence.question import ATOMS, N_BINS, QUANTILE, BinOptions, Question
from varcal._inference.measured import Measured, gap_law, measure, plug_in_without, with_p
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
from varcal._input.events import CORRECT, Claim, audit_keys, claim_names, claim_of
from varcal._input.frames import Table
from varcal._input.groups import buckets
from varcal._input.indexes import check_indexes
from varcal._input.left_out import must_read
from varcal._input.predictions import ALL, Predictions, other_columns
from varcal._input.variables import Variable
from varcal._measures.curve import curve_of
from varcal._measures.curve_result import Curve
from varcal._measures.estimate import profile_test
from varcal._options import checked, one_of
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError, VarcalWarning

HITS = ("recomputed", "first")
#: Without groups, the correlation of two ECEs comes from omitting each of this many parts once.
N_PARTS = 100


@checked(hits=one_of(*HITS))
@one_blas_thread()
def compare(
    y: object,
    methods: Mapping[str, object],
    X: object = ALL,
    *,
    data: object = None,
    event: str = "both",
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    hits: str = "recomputed",
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

    The figures are accuracy, log-loss, Brier score, AUC (two classes), ECE, and the VECE of each
    variable. Each comes with an interval, its paired difference from the first set (with an
    interval and a p-value) and a verdict. Intervals of differences are DeLong's for AUC and
    sandwich intervals for accuracy, log-loss and Brier score. Those of VECE use that outcomes are
    the same for both sets: only changes of scores count (see `varcal._inference.paired`). A
    p-value is below 1 − level exactly where its interval excludes 0.

    Verdicts are adjusted for the number of comparisons (Holm): the family is all figures of all
    sets but the first, so that the probability of any wrong verdict of a change in the whole table
    is at most 1 − level. They also need a size: changes of less than a tenth of a point of
    accuracy or AUC, a fifth of a point of ECE or VECE, 0.001 of log-loss or 0.0005 of the Brier
    score count as "unchanged", however sure they are.

    With ``event="both"``, VECE along a variable is that of the claim with the larger uneven error
    in the first set, as in `audit`; all sets are compared by this claim, which `claim` names. ECE
    is that of the claim with the larger ECE in the first set (of confidence, with more than two
    classes).

    Parameters
    ----------
    y : array-like or column name
        Labels.
    methods : dict
        Probabilities by name, as arrays or column names; the first is the baseline.
    X : frame, dict of columns, or column names, optional
        The variables. By default every column of `data` that has no other role; None for no
        variables.
    data, event, n_bins, binning, bins, edges, classes, pos_label, sample_weight, unlabelled
        As in `audit`, so that VECE is the same; `event` is "both", "correct" or "positive".
    hits : {"recomputed", "first"}
        Which prediction counts for the confidence: each set's own most likely class, or that of
        the first set. The second is the rule of the paper; it does not show that a
        calibrator changes predictions.
    level : float
        The level of all intervals.
    groups : array-like or column name, optional
        Units that rows belong to.
    random_state : int
        Seed of the split of the rows into parts, and of simulated null distributions.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(4000, "tilt", vece=0.1)
    >>> truth = sim.p - sim.gap(sim.v)
    >>> found = vc.compare(sim.y, {"raw": sim.p, "repaired": truth.clip(0, 1)}, {"v": sim.v},
    ...                    event="positive")
    >>> found.row("repaired", "VECE", "v").verdict
    'fixed'
    """
    if event == "classwise":
        raise InputError(
            "event is 'classwise', which makes one claim per class; a comparison judges one claim",
            'use event="both", "correct" or "positive"',
            argument="event",
        )
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
    checked = {
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
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    first = next(iter(checked.values()))
    if first.odd:
        shown = "; ".join(f"{name!r} {why}" for name, why in first.odd.items())
        warnings.warn(f"X has columns that are left out: {shown}", VarcalWarning, stacklevel=2)
    keys = audit_keys(first.classes, event, pos_label)
    names = claim_names(first.classes, keys)
    work = _Work(tuple(checked.items()), names, options, hits, level, random_state)
    rows = [row for side in work.sides for row in _loss_rows(work, side)]
    if len(first.classes) == 2:
        rows += [_auc_row(work, side) for side in work.sides]
    curves: dict[str, dict[str, Curve]] = {}
    main = _main_claims(work, keys)
    for variable in (None, *first.variables):
        name = "" if variable is None else variable.name
        figures = (
            _score_figures(work, keys)
            if variable is None
            else [_figure(work, side, variable, main[name]) for side in work.sides]
        )
        rows += [_error_row(work, figure, figures[0], name) for figure in figures]
        # A variable without a single value has figures but no curve.
        if name and len(figures[0].profile.cells()):
            curves[name] = {
                figure.side.name: curve_of(
                    figure.profile,
                    "correct" if figure.key == CORRECT else "positive",
                    level=level,
                    vece=figure.measured,
                    backend=first.backend,
                )
                for figure in figures
            }
    order = {name: k for k, name in enumerate(checked)}
    keyed = list(dict.fromkeys((row.metric, row.variable) for row in rows))
    rows.sort(key=lambda row: (keyed.index((row.metric, row.variable)), order[row.method]))
    rows = _judged(rows, next(iter(checked)), level)
    return Comparison(
        rows=tuple(rows),
        methods=tuple(checked),
        event=event,
        hits=hits,
        level=level,
        n_rows=len(first),
        backend=first.backend,
        curves=curves,
        n_dropped=first.n_dropped,
        n_bins=n_bins,
        binning=binning,
        grouped=first.groups is not None,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """One set of probabilities."""

    name: str
    predictions: Predictions
    first: Predictions | None  # whose predictions count as correct or wrong, if not its own

    def claim(self, key: int) -> Claim:
        """Return one of the claims that the set makes."""
        claim = claim_of(self.predictions, key)
        if key != CORRECT or self.first is None:
            return claim
        return Claim(claim.score, claim_of(self.first, key).hit, claim.label)


@dataclass(frozen=True, eq=False)
class _Work:
    """The sets, the names of their claims by key, and the options of a comparison."""

    checked: tuple[tuple[str, Predictions], ...]
    names: Mapping[int, str]
    options: BinOptions
    hits: str
    level: float
    seed: int

    @cached_property
    def sides(self) -> tuple[_Side, ...]:
        """The sets, the first one first."""
        first = self.first if self.hits == "first" else None
        return tuple(_Side(name, one, first) for name, one in self.checked)

    @property
    def first(self) -> Predictions:
        """The first set."""
        return self.checked[0][1]

    @property
    def weight(self) -> Floats | None:
        """Weights of rows."""
        return self.first.weight

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
        return np.random.default_rng(self.seed).permutation(np.arange(n) % n_parts), n_parts


@dataclass(frozen=True, eq=False)
class _Figure:
    """ECE or VECE of one claim of one set."""

    side: _Side
    key: int
    along: Variable
    claim: Claim
    profile: Profile
    measured: Measured

    @cached_property
    def index(self) -> Ints:
        """The bin of each row."""
        return joint_index(self.profile.coarse.bins, [self.along])


def _main_claims(work: _Work, keys: Sequence[int]) -> dict[str, int]:
    """Return the claim by which each variable is compared."""
    names = [variable.name for variable in work.first.variables]
    main = dict.fromkeys(names, keys[0])
    if len(keys) == 1:
        return main
    evidence = InMemory(work.first, Question(work.options))
    present = [name for name in names if name not in evidence.absent()]
    found = look(
        evidence,
        keys,
        present,
        sided=True,
        level=work.level,
        n_variables=max(len(present), 1),
        random_state=work.seed,
    )
    return main | {finding.name: finding.main.key for finding in found}


def _score_figures(work: _Work, keys: Sequence[int]) -> list[_Figure]:
    """Return ECE of every set, of the claim with the larger one in the first set."""
    if len(work.first.classes) > 2 and CORRECT in keys:
        keys = [CORRECT]
    base, *others = work.sides
    first = max(
        (_figure(work, base, None, key) for key in keys), key=lambda one: one.measured.debiased
    )
    return [first, *(_figure(work, side, None, first.key) for side in others)]


def _figure(work: _Work, side: _Side, variable: Variable | None, key: int) -> _Figure:
    claim = side.claim(key)
    along = variable or Variable("confidence", "numeric", claim.score)
    options = work.options
    if variable is None:
        options = {**options, "bins": None, "binning": QUANTILE}
    found = profile(side.predictions, claim, along, options)
    p_value = profile_test(
        found,
        rows_behind(side.predictions, claim, along, found),
        grouped=side.predictions.unit is not None,
        random_state=work.seed,
    )
    measured = with_p(measure(found.coarse, work.level), p_value, work.level)
    return _Figure(side, key, along, claim, found, measured)


def _loss_rows(work: _Work, side: _Side) -> list[ComparisonRow]:
    mine, theirs = (
        row_losses(one.predictions.p, np.asarray(one.predictions.y, np.intp))
        for one in (side, work.sides[0])
    )
    settings = (work.weight, side.predictions.groups, work.level)
    return [
        _row(
            work,
            side,
            metric,
            mean_interval(values, *settings),
            mean_interval(values - theirs[metric], *settings),
        )
        for metric, values in mine.items()
    ]


def _auc_row(work: _Work, side: _Side) -> ComparisonRow:
    def positive(one: _Side) -> Floats:
        p = one.predictions.p
        return p if p.ndim == 1 else p[:, 1]

    hit, groups = work.first.y == 1, side.predictions.groups
    value, influence = auc_parts(positive(side), hit, work.weight)
    before, reference = auc_parts(positive(work.sides[0]), hit, work.weight)
    reach = sum_interval(influence, groups, work.level)
    apart = sum_interval(influence - reference, groups, work.level)
    change = value - before
    return _row(
        work,
        side,
        "AUC",
        (value, value - reach, value + reach),
        (change, change - apart, change + apart),
    )


def _error_row(work: _Work, figure: _Figure, base: _Figure, variable: str) -> ComparisonRow:
    measured = figure.measured
    change = measured.debiased - base.measured.debiased
    low, high = (0.0, 0.0) if figure is base else _change_interval(work, base, figure)
    row = _row(
        work,
        figure.side,
        "VECE" if variable else "ECE",
        (measured.debiased, measured.low, measured.high),
        (change, min(low, change), max(high, change)),
    )
    return replace(
        row,
        variable=variable,
        noise_floor=measured.noise_high,
        claim=work.names[figure.key],
        within_noise=measured.p_value > 1 - work.level,
    )


def _change_interval(work: _Work, base: _Figure, figure: _Figure) -> tuple[float, float]:
    """Return the interval of a change: paired if both figures have the same rows in each bin."""
    tables = base.profile.coarse, figure.profile.coarse
    if np.array_equal(base.index, figure.index):
        mine, theirs = (one.claim.score - one.claim.hit for one in (figure, base))
        changes = change_law(
            base.index, mine - theirs, work.weight, tables[0].bins.size, *work.bucket
        )
        return paired_interval(gap_law(tables[0]), gap_law(tables[1]), changes, work.level)
    first, second = (measure(one, (1 + work.level) / 2) for one in tables)
    part, n_parts = work.parts
    without = [
        plug_in_without(
            bin_rows(
                one.profile.coarse.bins,
                [one.along],
                one.claim.score,
                one.claim.hit,
                work.weight,
                part,
                n_parts,
            )
        )
        for one in (base, figure)
    ]
    varied = all(one.std() > 0 for one in without)
    together = float(np.corrcoef(without[0], without[1])[0, 1]) if varied else 0.0
    return unpaired_interval(first, second, together)


def _row(
    work: _Work,
    side: _Side,
    metric: str,
    value: tuple[float, float, float],
    change: tuple[float, float, float],
) -> ComparisonRow:
    baseline = side is work.sides[0]
    if baseline:
        change = (0.0, 0.0, 0.0)
    return ComparisonRow(
        side.name,
        metric,
        "",
        *value,
        math.nan,
        *change,
        BASELINE if baseline else UNCHANGED,
        p_value=math.nan if baseline else p_of_interval(*change[1:], work.level, work.df),
    )


def _judged(rows: list[ComparisonRow], base: str, level: float) -> list[ComparisonRow]:
    """Adjust the p-values for their number, and judge each row."""
    tested = [k for k, row in enumerate(rows) if row.method != base and row.p_value == row.p_value]
    adjusted = dict(zip(tested, holm([rows[k].p_value for k in tested]).tolist(), strict=True))
    return [
        replace(rows[k], p_holm=adjusted[k], verdict=_verdict(rows[k], adjusted[k] < 1 - level))
        if k in adjusted
        else rows[k]
        for k in range(len(rows))
    ]


def _verdict(row: ComparisonRow, sure: bool) -> str:
    change = -row.difference if row.metric in HIGHER_IS_BETTER else row.difference
    if not sure or abs(change) < LEAST_CHANGE[row.metric]:
        return UNCHANGED
    if change > 0:
        return MADE_WORSE
    return FIXED if row.within_noise else BETTER
