"""`compare`: sets of probabilities for the same held-out rows, against the first of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from varcal._arrays import Floats, Ints, ratio_or_zero
from varcal._audit.audit import label_of
from varcal._audit.judge import Judged, Settings, cell_sums, judge, target_of
from varcal._audit.record import Target, read, saved
from varcal._files.schema import restored
from varcal._inference.debiased import LawErrors, Measured
from varcal._inference.gap_law import GapLaw, law_of_sides
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
from varcal._input.dates import with_calendar
from varcal._input.frames import Table, check_indexes, frame_of
from varcal._input.groups import buckets
from varcal._input.labels import CORRECT, audit_keys, claim_of, predicted
from varcal._input.left_out import must_read
from varcal._input.predictions import ALL, Predictions, other_columns
from varcal._input.variables import Variable
from varcal._options import check_choice, check_text, checked
from varcal._sums.bins import NumericBins, joint_index
from varcal._sums.choose_bins import ATOMS, N_BINS
from varcal._sums.evidence import InMemory
from varcal._sums.plan import Question
from varcal._text import (
    BASELINE,
    BETTER,
    CHANGED,
    COMPARED,
    FIXED,
    MADE_WORSE,
    UNCHANGED,
    Unit,
    html_table,
    text_table,
)
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError, VarcalWarning

LOG_LOSS, BRIER, ACCURACY, AUC = "log-loss", "Brier", "accuracy", "AUC"
AVERAGE, BY_SCORE, UNEVEN = "average", "by score", "uneven"
#: Figures that are better when larger.
HIGHER_IS_BETTER = (ACCURACY, AUC)
#: The least size of a change that counts as better or worse. Sizes that nobody would act on: a
#: tenth of a point of accuracy and AUC, a fifth of a point of calibration error or a tenth of its
#: limit; a log-loss of 0.001 is what a change of all probabilities by about two points costs.
LEAST_CHANGE = {
    LOG_LOSS: 0.001,
    BRIER: 0.0005,
    ACCURACY: 0.001,
    AUC: 0.001,
    AVERAGE: 0.002,
    BY_SCORE: 0.002,
    UNEVEN: 0.002,
}
#: Figures whose values are in points; with accuracy, those whose differences are.
POINTS = (AVERAGE, BY_SCORE, UNEVEN)


@dataclass(frozen=True)
class ComparisonRow:
    """One figure of one set of probabilities.

    Attributes
    ----------
    method, metric, variable : str
        The set of probabilities, the figure, and for the uneven error the variable.
    value, low, high : float
        The figure with its interval. The average is the absolute difference of mean probability
        and rate; errors by score and along variables are debiased, as in `audit`.
    noise_floor : float
        For errors by score and along variables, the 95 % quantile of the plug-in value of a
        perfect model.
    difference, difference_low, difference_high : float
        The difference from the first set on the same rows, with its interval.
    verdict : str
        "baseline" for the first set; "fixed" (better, and now within noise), "better",
        "no clear change" (none of a size that matters can be shown) or "made worse".
    target : str
        What the probabilities are of, for errors.
    p_value, p_holm : float
        The p-value of no difference, and the same adjusted for the number of comparisons, from
        which the verdict follows; NaN for the first set.
    within_noise : bool
        For errors, whether a perfect model could have this value by chance.
    """

    method: str
    metric: str
    variable: str
    value: float
    low: float
    high: float
    noise_floor: float
    difference: float
    difference_low: float
    difference_high: float
    verdict: str
    target: str = ""
    p_value: float = math.nan
    p_holm: float = math.nan
    within_noise: bool = False


@dataclass(frozen=True, eq=False)
class Comparison:
    """Sets of probabilities for the same rows, compared with the first of them.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        One per method and figure.
    methods : tuple of str
        The sets, the baseline first.
    label : str
        The name of the outcome.
    target : str
        What average and error by score are about: P(label = class), or the top class.
    level : float
        The level of all intervals.
    n_rows, n_dropped : int
        The rows compared, and the rows dropped because their outcome is missing.
    n_bins, binning
        How variables were binned.
    grouped : bool
        Whether dependence within groups was allowed for.
    digits : int
        The decimals of points: two where events are rare.
    """

    rows: tuple[ComparisonRow, ...]
    methods: tuple[str, ...]
    label: str
    target: str
    level: float
    n_rows: int
    backend: str | None = None
    n_dropped: int = 0
    n_bins: int = 10
    binning: str = "quantile"
    grouped: bool = False
    digits: int = 1

    @checked(method=check_text, metric=check_text, variable=check_text)
    def row(self, method: str, metric: str, variable: str = "") -> ComparisonRow:
        """Return one figure."""
        for row in self.rows:
            if (row.method, row.metric, row.variable) == (method, metric, variable):
                return row
        check_choice("method", method, self.methods)
        check_choice("metric", metric, list(dict.fromkeys(name for name, _ in self.figures)))
        check_choice("variable", variable, [one for name, one in self.figures if name == metric])
        raise InputError("there is no such figure", "to_frame() lists all of them")

    @property
    def figures(self) -> tuple[tuple[str, str], ...]:
        """The figures as (metric, variable), in order."""
        return tuple(dict.fromkeys((row.metric, row.variable) for row in self.rows))

    @property
    def by_figure(self) -> dict[tuple[str, str], list[ComparisonRow]]:
        """The rows of each figure, in the order of the methods."""
        rows = sorted(self.rows, key=lambda row: self.methods.index(row.method))
        return {
            one: [row for row in rows if (row.metric, row.variable) == one] for one in self.figures
        }

    @property
    def figure_names(self) -> list[str]:
        """The figures as text."""
        return [f"uneven along {one}" if one else metric for metric, one in self.figures]

    def _unit(self, metric: str) -> Unit:
        """Return how a figure is written: in points, in percent, or with four decimals."""
        if metric in POINTS:
            return Unit(self.digits, sign="")
        return Unit(self.digits) if metric == ACCURACY else Unit(4, 1.0, "", "")

    def _change_text(self, row: ComparisonRow) -> str:
        """Write the change from the first set: the difference of the two figures as written."""
        figure = self.methods[0], row.metric, row.variable
        first = next(x for x in self.rows if (x.method, x.metric, x.variable) == figure)
        unit = self._unit(row.metric)
        return unit.signed(unit.difference(row.value, first.value))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN as None)."""
        found: dict[str, Any] = saved(self)
        del found["backend"]
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Comparison:
        """Return the comparison that `to_dict` described."""

        def build() -> Any:
            return read({name: data[name] for name in data if name != "title"}, cls)

        return restored(build, cls, "a comparison")

    def _check_saved(self) -> None:
        """Raise ValueError unless every figure has a row for every method."""
        if not self.methods or not 0 < self.level < 1 or self.n_rows < 0:
            raise ValueError("there are no methods, or the level is not a share")
        if self.digits not in (1, 2):
            raise ValueError("the digits are not 1 or 2")
        figures = {(row.metric, row.variable) for row in self.rows}
        found = [(row.metric, row.variable, row.method) for row in self.rows]
        if len(set(found)) < len(found) or len(found) != len(figures) * len(self.methods):
            raise ValueError("a figure is given twice, or not for every method")
        if not {row.method for row in self.rows} <= set(self.methods):
            raise ValueError("a row has an unknown method")
        if any(row.verdict not in COMPARED or row.metric not in LEAST_CHANGE for row in self.rows):
            raise ValueError("a row has an unknown verdict or metric")

    def to_frame(self) -> Any:
        """Return the long table as a frame of the input's library."""
        names = [one.name for one in fields(ComparisonRow)]
        return frame_of(
            {name: [getattr(row, name) for row in self.rows] for name in names}, self.backend
        )

    @checked()
    def plot(self, ax: Any = None, *, metric: str = UNEVEN, top: int = 8) -> Any:
        """Draw one figure of every set: dots with intervals, grouped by variable.

        The dot of the baseline is hollow. Beside each other set stand its verdict and its
        difference from the baseline. Grey bars show how large the value of a perfect model could
        be by chance.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        metric : {"uneven", "by score", "average", "accuracy", "log-loss", "Brier", "AUC"}
            The figure to draw.
        top : int
            The largest number of variables to draw, those with the largest uneven error of the
            baseline first.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_ranking import draw_comparison  # noqa: PLC0415

        return draw_comparison(self, ax, metric, top)

    @checked()
    def report(self, path: str | PathLike[str], *, title: str = "Before and after") -> None:
        """Write a report: a self-contained HTML page, Markdown, or JSON.

        Parameters
        ----------
        path : path
            The file; its extension sets the format: ``.html``, ``.md`` or ``.json``.
        title : str
            The heading.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import varcal as vc
        >>> sim = vc.datasets.make_gap(500)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "compare.md"
        >>> found = vc.compare(sim.y, {"raw": sim.p, "truth": sim.rate}, {"v": sim.v})
        >>> found.report(path)
        >>> path.read_text(encoding="utf-8")[:18]
        '# Before and after'
        """
        from varcal._report.comparison import report_comparison  # noqa: PLC0415  loads when first used

        report_comparison(self, path, title=title)

    def _shown(self) -> dict[str, list[str]]:
        """Return the columns of the printed table: the figures, then one column per method."""
        columns = {"figure": self.figure_names}
        for method, rows in zip(
            self.methods, zip(*self.by_figure.values(), strict=True), strict=True
        ):
            columns[f"{method} " if method == "figure" else method] = [
                self._unit(row.metric).rate(row.value)
                + (f" {row.verdict}" if row.verdict in CHANGED else "")
                for row in rows
            ]
        return columns

    @property
    def _head(self) -> str:
        rows = f"{self.target}: {self.n_rows:,} rows"
        return f"{rows}, compared with {self.methods[0]}; average and errors in points"

    def __repr__(self) -> str:
        return f"{self._head}\n{text_table(self._shown())}"

    def _repr_html_(self) -> str:
        return html_table(self._shown(), self._head)


#: A figure and the ends of its interval.
_Three = tuple[float, float, float]
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
    sets = [_Set(name, one, InMemory(one, question), settings) for name, one in given.items()]
    work = _Work(sets[0], settings)
    rows = [row for one in sets for row in work.losses(one)]
    if len(first.classes) == 2:
        rows += [work.auc(one) for one in sets]
    rows += [work.average(one) for one in sets]
    for variable in (None, *first.variables):
        rows += [work.error(one, variable) for one in sets]
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
        digits=sets[0].target.unit.digits,
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
    """Compares sets with the first of them, row by row of the table."""

    base: _Set
    settings: Settings

    @property
    def rows(self) -> Predictions:
        """The rows that all sets are about."""
        return self.base.predictions

    @cached_property
    def bucket(self) -> tuple[Ints | None, int]:
        """The bucket of groups of each row, and their number."""
        return buckets(self.rows.unit)

    @cached_property
    def df(self) -> float:
        """Degrees of freedom of p-values."""
        groups = self.rows.groups
        return math.inf if groups is None else len(np.unique(groups)) - 1.0

    @cached_property
    def parts(self) -> tuple[Ints, int]:
        """The parts of the rows that a jackknife omits, and their number."""
        bucket, n_buckets = self.bucket
        if bucket is not None:
            return bucket, n_buckets
        n_parts = min(N_PARTS, len(self.rows))
        rng = np.random.default_rng(self.settings.random_state)
        return rng.permutation(np.arange(len(self.rows)) % n_parts), n_parts

    def mean(self, values: Floats) -> _Three:
        """Return the mean of values of the rows, with its interval."""
        return mean_interval(values, self.rows.weight, self.rows.groups, self.settings.level)

    def row(
        self,
        one: _Set,
        metric: str,
        value: _Three,
        change: _Three,
        variable: str = "",
        noise_floor: float = math.nan,
        **more: Any,
    ) -> ComparisonRow:
        verdict, p_value = BASELINE, math.nan
        if one is self.base:
            change = (0.0, 0.0, 0.0)
        else:
            verdict, p_value = UNCHANGED, p_of_interval(*change[1:], self.settings.level, self.df)
        figures = (*value, noise_floor, *change)
        return ComparisonRow(one.name, metric, variable, *figures, verdict, p_value=p_value, **more)

    def losses(self, one: _Set) -> list[ComparisonRow]:
        y = np.asarray(self.rows.y, np.intp)
        mine, theirs = (row_losses(each.predictions.p, y) for each in (one, self.base))
        return [
            self.row(one, name, self.mean(mine[name]), self.mean(mine[name] - theirs[name]))
            for name in (LOG_LOSS, BRIER, ACCURACY)
        ]

    def auc(self, one: _Set) -> ComparisonRow:
        rows, level = self.rows, self.settings.level
        scores = (each.predictions.p for each in (one, self.base))
        (value, influence), (before, reference) = (
            auc_parts(p if p.ndim == 1 else p[:, 1], rows.y == 1, rows.weight) for p in scores
        )
        reach = sum_interval(influence, rows.groups, level)
        apart = sum_interval(influence - reference, rows.groups, level)
        change = value - before
        ends = (change, change - apart, change + apart)
        return self.row(one, AUC, (value, value - reach, value + reach), ends)

    def error(self, one: _Set, variable: Variable | None) -> ComparisonRow:
        """Return the error by score, or the uneven error along a variable."""
        base = self.base
        if variable is None:
            metric, name, target = BY_SCORE, "", base.target.name
            old, new = (each.target.by_score for each in (base, one))
        else:
            metric, name = UNEVEN, variable.name
            target = next(row.target for row in base.judged.rows if row.variable == name)
            old, new = (each.uneven(name, target) for each in (base, one))
        change = new.debiased - old.debiased
        low = high = 0.0
        if one is not base:
            targets = base.judged.targets if base.predictions.variables else (base.target,)
            key = self.settings.keys[[each.name for each in targets].index(target)]
            low, high = _change_interval(self, base, one, key, variable)
        return self.row(
            one,
            metric,
            (new.debiased, new.low, new.high),
            (change, min(low, change), max(high, change)),
            variable=name,
            noise_floor=new.noise_high,
            target=target,
            within_noise=new.p_value > 1 - self.settings.level,
        )

    def average(self, one: _Set) -> ComparisonRow:
        """Return the absolute average gap, and its change.

        The change of the gap itself is known well, because outcomes cancel; how that changes its
        size depends on the gap of the first set, of which all values of its interval are tried.
        """
        old, new, key = self.base.target, one.target, self.settings.keys[0]
        mine, theirs = (claim_of(each.predictions, key) for each in (one, self.base))
        _, low, high = self.mean((mine.score - mine.hit) - (theirs.score - theirs.hit))
        starts = [old.gap_low, old.gap_high]
        starts += [at for at in (0.0, -low, -high) if old.gap_low < at < old.gap_high]
        sizes = [abs(start + step) - abs(start) for start in starts for step in (low, high)]
        change = abs(new.gap) - abs(old.gap)
        least, most = sorted((abs(new.gap_low), abs(new.gap_high)))
        least = 0.0 if new.gap_low <= 0 <= new.gap_high else least
        ends = (change, min(*sizes, change), max(*sizes, change))
        noise = new.p_value > 1 - self.settings.level
        value = (abs(new.gap), least, most)
        return self.row(one, AVERAGE, value, ends, target=new.name, within_noise=noise)


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
        change = change_law(old.index, new.gap - old.gap, work.rows.weight, old.size, *work.bucket)
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
    weight = np.ones(len(part)) if work.rows.weight is None else work.rows.weight
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
