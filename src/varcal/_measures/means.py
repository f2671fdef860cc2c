"""Predictions of a mean: their evidence, tables of bins, and errors of amounts and counts."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._inference.debiased import Measured
from varcal._inference.mean_law import MeanSums, gap_limits, mean_error, mean_test, overall_limits
from varcal._input.dates import with_calendar
from varcal._input.frames import check_indexes
from varcal._input.groups import buckets
from varcal._input.predictions import ALL, Predictions
from varcal._input.variables import Variable, refuse_rows
from varcal._measures.bin_table import BinTable, bin_columns, table_of
from varcal._options import no_means
from varcal._sums.bins import Bins, JointBins, NumericBins, joint_index
from varcal._sums.choose_bins import BinOptions, check_cut_names, cut_points, fine_bins, level_bins
from varcal._sums.evidence import InMemory, refuse_sums
from varcal._sums.mean_stats import MeanStats, mean_sums, mean_terms, variance_power
from varcal._sums.plan import Question
from varcal._sums.profile import Profile
from varcal._sums.sources import fits_in_memory, lazy_rows
from varcal._text import Unit, level_text, p_equation, short, unit_of
from varcal.exceptions import InputError

#: Levels with less than this share of the rows are pooled: with 1 %, constant gaps were rejected in
#: 11 % of tables of 500 rows whose errors differ in size from level to level, with 2 % in 6.5 %.
RARE = 0.02
#: Cells of the test of trends, as in benchmarks/simulate_means.py.
N_CELLS = 100
#: The name of the predictions as a variable, and the key of the only claim.
PREDICTION, MEAN = "prediction", 0
#: What readers are told where a few rows carry the variance.
FEW_ERRORS_NOTE = (
    "The upper limit assumes that no larger amounts exist than those seen: audit frequency and "
    "severity apart."
)


def only_probabilities(outcome: str, **given: object) -> None:
    """Refuse options that belong to probabilities."""
    for name, value in given.items():
        if value is not None and value is not False:
            problem = f"{name} belongs to probabilities, and outcome is {outcome!r}"
            raise InputError(problem, "omit {" + name + "}", name, {name: None})


class MeanEvidence(InMemory):
    """Rows in memory with amounts and predicted means, and how their gap is measured.

    Parameters
    ----------
    rows : Predictions
        Amounts as `y`, predicted means as `p`.
    question : Question
        How variables and predictions are binned.
    exposure : ndarray or None
        The exposure of each row.
    relative : bool
        Whether the gap is 1 − A/E, or otherwise predicted − observed.
    """

    def __init__(
        self, rows: Predictions, question: Question, exposure: Floats | None, *, relative: bool
    ) -> None:
        super().__init__(rows, question)
        self.exposure, self.relative = exposure, relative
        self.scale = "relative" if relative else "difference"
        self.power = variance_power(rows.y, rows.p, exposure)

    @cached_property
    def _terms(self) -> dict[str, Floats]:
        rows = self.predictions
        how: dict[str, Any] = {"relative": self.relative, "power": self.power}
        return mean_terms(rows.y, rows.p, exposure=self.exposure, weight=rows.weight, **how)

    def profile(self, key: int, name: str | None) -> Profile:
        """Return the rows along a variable, or along the prediction, in cells and bins."""
        options = self.options if name is not None else self.question.score or self.options
        variable = self._variable(key, name)
        coarse, fine = _bins(variable, options, N_CELLS)
        return Profile(variable.name, variable.kind, self._stats(fine, [variable]), coarse)

    def table(self, key: int) -> MeanStats:
        """Return the rows over the bins of all variables jointly, or of the prediction."""
        variables = self.predictions.variables or (self._variable(key, None),)
        check_cut_names(self.options["bins"], variables)
        bins = [_bins(one, self.options, 0)[0] for one in variables]
        return self._stats(bins[0] if len(bins) == 1 else JointBins(tuple(bins)), variables)

    @property
    def weight(self) -> Floats:
        """The product of weight and exposure."""
        return self._terms["weight"]

    def of(self, rows: Predictions, part: Ints) -> MeanEvidence:
        """Return the evidence of some of the rows, perhaps with other predictions."""
        exposure = None if self.exposure is None else self.exposure[part]
        return MeanEvidence(rows.take(part), self.question, exposure, relative=self.relative)

    def stats_of(self, bins: Bins, name: str) -> MeanStats:
        """Return the rows over given bins of a variable."""
        return self._stats(bins, [self._variable(MEAN, name)])

    @cached_property
    def every(self) -> MeanSums:
        """The sums of all rows as one bin."""
        bucket = buckets(self.predictions.unit)[0]
        sums = mean_sums(self._terms, np.zeros(self.n_rows, np.intp), 1, bucket)
        return MeanSums.from_sums(sums, self.power, relative=self.relative)

    def keys(self, event: str, pos_label: Hashable = None) -> list[int]:
        """Return the key of the only claim."""
        return [MEAN]

    def audit_keys(self, pos_label: Hashable = None) -> list[int]:
        """Return the key of the only claim."""
        return [MEAN]

    def label(self, key: int) -> Hashable:
        """Return None: the claim is about no class."""
        return None

    def _stats(self, bins: Bins, variables: Sequence[Variable]) -> MeanStats:
        bucket, x = buckets(self.predictions.unit)[0], None
        if isinstance(bins, NumericBins):
            x = variables[0].values.astype(np.float64, copy=False)
            x = np.where(np.isfinite(x), x, 0.0)
        sums = mean_sums(self._terms, joint_index(bins, variables), bins.size, bucket, x)
        return MeanStats(bins, sums, self.relative, self.power)

    def _variable(self, key: int, name: str | None) -> Variable:
        for variable in self.predictions.variables:
            if variable.name == name:
                return variable
        return Variable(PREDICTION, "numeric", self.predictions.p)


def gather_means(
    y: object,
    mu: object,
    v: object,
    question: Question,
    *,
    data: object = None,
    gap: str | None = None,
    exposure: object = None,
    sample_weight: object = None,
    groups: object = None,
    unlabelled: str = "raise",
    must_read: Collection[str] | None = None,
) -> MeanEvidence:
    """Check rows in memory, or read them if they fit into it."""
    refuse_sums(y, 'outcome="mean"')
    given = {"y": y, "p": mu, "X": v, "exposure": exposure}
    given |= {"sample_weight": sample_weight, "groups": groups}
    data = _in_memory(data, given)
    check_indexes(given if isinstance(data, dict) else given | {"data": data})
    rows, known = Predictions.of_means(
        y,
        mu,
        v,
        data=data,
        exposure=exposure,
        sample_weight=sample_weight,
        groups=groups,
        unlabelled=unlabelled,
        must_read=must_read,
    )
    if gap != "difference":
        hint = "A/E needs positive predictions and no negative outcomes; pass {gap}"
        other = {"gap": "difference"}
        refuse_rows(rows.p <= 0, rows.p, "p", "is not positive", hint, other)
        refuse_rows(rows.y < 0, rows.y, "y", "is negative", hint, other)
    if not rows.y.any():  # without an amount nothing is known about how amounts vary
        problem = f"y is 0 in all {len(rows):,} rows: nothing can be said about its mean"
        raise InputError(problem, "give rows in which something happens", "y")
    if question.calendar:
        rows = replace(rows, variables=with_calendar(rows.variables))
    return MeanEvidence(rows, question, known, relative=gap != "difference")


def _in_memory(data: object, given: dict[str, object]) -> object:
    """Read lazy rows that fit into memory, and refuse others."""
    lazy = lazy_rows(data)
    if lazy is None:
        return data
    columns = list(lazy.columns)
    if given["X"] is not ALL:
        listed = [[x] if isinstance(x, str) else x for x in given.values() if x is not None]
        asked = {x for one in listed if isinstance(one, list | tuple) for x in one}
        columns = [name for name in columns if name in asked]
    if not fits_in_memory(lazy.count(), len(columns)):
        raise no_means("data that does not fit into memory")
    return lazy.read(columns)


def _bins(variable: Variable, options: BinOptions, n_fine: int) -> tuple[Any, Any]:
    """Choose the bins of a variable, and finer ones; levels with few rows are pooled."""
    kept = variable.name in options.get("whole", ())
    if variable.kind != "levels" or kept or cut_points(options["bins"], variable.name) is not None:
        return fine_bins(variable, n_fine=n_fine, **options)
    present = variable.values[variable.values >= 0]
    counts = np.bincount(present, minlength=len(variable.levels))
    bins = level_bins(variable, counts, len(variable) - len(present), rare=RARE)
    return bins, bins


@dataclass(frozen=True, eq=False)
class MeanAlong:
    """A profile of means with its sums over bins, and over cells if the variable has an order."""

    whole: Profile
    coarse: MeanStats
    sums: MeanSums
    cells: MeanSums | None

    @classmethod
    def of(cls, whole: Profile) -> MeanAlong:
        """Sum the bins of a profile, and its cells without missing values."""
        coarse, fine = whole.coarse, whole.fine
        assert isinstance(coarse, MeanStats) and isinstance(fine, MeanStats)
        placed, cells = slice(None, fine.bins.size - whole.missing), None
        if isinstance(fine.bins, NumericBins) and fine.total("n")[placed].any():
            cells = MeanSums.of(fine, placed)
        return cls(whole, coarse, MeanSums.of(coarse), cells)

    def measured(self, level: float, *, center: bool, seed: int = 0) -> Measured:
        """Return the error, or the uneven error, with its p-value."""
        p_value = mean_test(self.sums, self.cells, constant=center, seed=seed)
        return mean_error(self.sums, p_value, level=level, center=center)


def gap_columns(stats: MeanStats, level: float) -> dict[str, list[Any]]:
    """Return the columns of a table of bins with gaps, 1 − A/E or predicted − observed."""
    low, high = gap_limits(MeanSums.of(stats), level=level)
    held = stats.total("weight") > 0
    ends = {
        "gap_low": np.where(held, 0 - high, np.nan),
        "gap_high": np.where(held, 0 - low, np.nan),
    }
    columns = bin_columns(stats, np.zeros(stats.bins.size))
    return columns | {name: values.tolist() for name, values in ends.items()}


def mean_table(evidence: MeanEvidence, level: float) -> BinTable:
    """Return the table of `bin_table` for predictions of a mean, with A/E if it is relative."""
    stats = evidence.table(MEAN)
    columns = gap_columns(stats, level)
    if evidence.relative:
        names = {"a_e": "gap", "a_e_low": "gap_high", "a_e_high": "gap_low"}
        ratios = {new: [1 - x for x in columns[old]] for new, old in names.items()}
        columns = {name: x for name, x in columns.items() if name not in names.values()} | ratios
    made = table_of(stats, np.zeros(stats.bins.size), "mean", level, evidence)
    return replace(made, columns=columns)


@dataclass(frozen=True)
class MeanLevel:
    """What is predicted and observed over all rows.

    Attributes
    ----------
    predicted, observed : float
        The weighted means of predictions and outcomes.
    gap, low, high : float
        The gap with its interval: 1 − A/E, or predicted − observed.
    p_value : float
        The p-value of no gap.
    scale : {"relative", "difference"}
        How the gap is measured.
    """

    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    p_value: float
    scale: str

    @property
    def unit(self) -> Unit:
        """How the figures are written."""
        return unit_of(self.scale)

    def __str__(self) -> str:
        return mean_said(self.predicted, self.observed, self.unit)


def mean_said(predicted: float, observed: float, unit: Unit) -> str:
    """Say what is predicted and observed.

    >>> mean_said(412.0, 455.0, unit_of("relative")), mean_said(2.0, 1.5, unit_of("difference"))
    ('predicts 412, observed 455: A/E 1.10', 'predicts 2.00, observed 1.50: off by +0.500')
    """
    gap = unit.signed(unit.difference(predicted, observed))
    return f"predicts {unit.rate(predicted)}, observed {unit.rate(observed)}: {unit.off} {gap}"


def overall_level(evidence: MeanEvidence, level: float, seed: int = 0) -> MeanLevel:
    """Return what is predicted and observed over all rows."""
    terms, sums = evidence._terms, evidence.every
    weight = float(terms["weight"].sum())
    predicted, observed = (float(terms[name].sum()) / weight for name in ("score", "hit"))
    gap = (predicted - observed) / (predicted if evidence.relative else 1.0)
    low, high = overall_limits(sums, level=level)
    p_value = mean_test(sums, constant=False, seed=seed)
    return MeanLevel(predicted, observed, gap, 0 - high, 0 - low, p_value, evidence.scale)


@dataclass(frozen=True)
class MeanEstimate:
    """The error of predicted means along a variable.

    Attributes
    ----------
    variable : str
        The variable; "prediction" for the predictions themselves.
    overall : MeanLevel
        What is predicted and observed over all rows, with the interval of the gap.
    error, uneven : Measured
        The mean absolute gap over bins, and the same once the average gap is taken off; both
        debiased, with interval and p-value.
    level : float
        The level of the intervals.
    few_errors : bool
        Whether a few rows carry the variance, so that upper limits may be too low.
    n_rows, n_bins, n_dropped : int
        Rows, bins with rows, and rows dropped because their outcome is missing.
    """

    variable: str
    overall: MeanLevel
    error: Measured
    uneven: Measured
    level: float
    few_errors: bool
    n_rows: int
    n_bins: int
    n_dropped: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return asdict(self)

    def _figure(self, one: Measured) -> str:
        size = self.overall.unit.size
        return (
            f"{size(one.debiased)} ({size(one.low)} to {size(one.high)}), {p_equation(one.p_value)}"
        )

    def __repr__(self) -> str:
        ends = self.overall.unit.signed_ends(self.overall.low, self.overall.high)
        lines = [
            f"{short(self.variable, 40)}: {self.overall} ({ends} at {level_text(self.level)})",
            f"  error {self._figure(self.error)}",
            f"  uneven error {self._figure(self.uneven)}",
            f"  {self.n_rows:,} rows, {self.n_bins} bins",
        ]
        return "\n".join([*lines, *([f"  {FEW_ERRORS_NOTE}"] if self.few_errors else [])])


def mean_estimate(evidence: MeanEvidence, level: float, seed: int) -> MeanEstimate:
    """Return the estimate of `estimate` for predictions of a mean."""
    name = evidence.along[0].name if evidence.along else None
    along = MeanAlong.of(evidence.profile(MEAN, name))
    return MeanEstimate(
        variable=along.whole.name,
        overall=overall_level(evidence, level, seed),
        error=along.measured(level, center=False, seed=seed),
        uneven=along.measured(level, center=True, seed=seed),
        level=level,
        few_errors=along.sums.few_errors,
        n_rows=evidence.n_rows,
        n_bins=int((along.sums.cells.n > 0).sum()),
        n_dropped=evidence.n_dropped,
    )
