"""Predictions of a mean: bins, actual over expected, and errors of amounts and counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._inference.debiased import Measured
from varcal._inference.mean_law import (
    MeanSums,
    gap_limits,
    mean_error,
    mean_test,
    overall_limits,
)
from varcal._input.frames import check_indexes
from varcal._input.groups import buckets
from varcal._input.predictions import ALL, Predictions
from varcal._input.variables import Variable, refuse_rows
from varcal._measures.bin_table import BinTable, edge_columns
from varcal._options import no_means
from varcal._sums.bins import Bins, JointBins, NumericBins, joint_index
from varcal._sums.choose_bins import BinOptions, check_cut_names, fine_bins, level_bins
from varcal._sums.evidence import refuse_sums
from varcal._sums.sources import fits_in_memory, lazy_rows
from varcal._sums.variance_model import variance_power
from varcal._text import MINUS, Unit, decimals, level_text, p_equation, short
from varcal.exceptions import InputError

#: Levels with less than this share of the rows are pooled: with 1 %, constant gaps were rejected in
#: 11 % of tables of 500 rows whose errors differ in size from level to level, with 2 % in 6.5 %.
RARE = 0.02
#: Cells of the test of trends, as in benchmarks/simulate_means.py.
N_CELLS = 100
#: The name of the predictions as a variable.
PREDICTION = "prediction"
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


@dataclass(frozen=True, eq=False)
class MeanRows:
    """Checked rows with amounts and predicted means, and how their gap is measured.

    Attributes
    ----------
    rows : Predictions
        Amounts as `y`, predicted means as `p`.
    exposure : ndarray or None
        The exposure of each row.
    relative : bool
        Whether the gap is A/E − 1, or otherwise predicted − observed.
    """

    rows: Predictions
    exposure: Floats | None
    relative: bool

    @classmethod
    def of(
        cls,
        y: object,
        mu: object,
        v: object,
        *,
        data: object = None,
        gap: str | None = None,
        exposure: object = None,
        sample_weight: object = None,
        groups: object = None,
        unlabelled: str = "raise",
        must_read: Collection[str] | None = None,
    ) -> MeanRows:
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
        return cls(rows, known, gap != "difference")

    @property
    def gap(self) -> str:
        """How the gap is measured."""
        return "relative" if self.relative else "difference"

    @cached_property
    def power(self) -> float:
        """The power of the model of the variance."""
        return variance_power(self.rows.y, self.rows.p, self.exposure)

    @cached_property
    def weight(self) -> Floats:
        """The product of weight and exposure."""
        weight = np.ones(len(self.rows)) if self.rows.weight is None else self.rows.weight
        return weight if self.exposure is None else weight * self.exposure

    @property
    def looks_like_probabilities(self) -> bool:
        """Whether outcomes are only 0 and 1."""
        return bool(np.isin(self.rows.y, (0.0, 1.0)).all())

    def bins(
        self, variables: Sequence[Variable], options: BinOptions, n_fine: int = 0
    ) -> tuple[Bins, Bins]:
        """Choose the bins of variables, and finer ones; levels with few rows are pooled."""
        check_cut_names(options["bins"], variables)
        chosen = [_bins(variable, options, n_fine) for variable in variables]
        if len(chosen) > 1:
            joint = JointBins(tuple(coarse for coarse, _ in chosen))
            return joint, joint
        return chosen[0]

    def sums(self, index: Ints, n_bins: int, held: Bools | None = None) -> MeanSums:
        """Sum the rows of each bin, by bucket of groups if there are any."""
        rows, at = self.rows, slice(None) if held is None else held
        bucket = buckets(rows.unit)[0]
        return MeanSums.from_rows(
            index[at],
            rows.y[at],
            rows.p[at],
            n_bins=n_bins,
            exposure=None if self.exposure is None else self.exposure[at],
            weight=None if rows.weight is None else rows.weight[at],
            bucket=None if bucket is None else bucket[at],
            relative=self.relative,
            power=self.power,
        )

    @cached_property
    def all_sums(self) -> MeanSums:
        """The sums of all rows as one bin."""
        return self.sums(np.zeros(len(self.rows), np.intp), 1)

    def prediction(self) -> Variable:
        """Return the predictions as a variable."""
        return Variable(PREDICTION, "numeric", self.rows.p)


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
    if variable.kind != "levels" or options["bins"] is not None:
        return fine_bins(variable, n_fine=n_fine, **options)
    present = variable.values[variable.values >= 0]
    counts = np.bincount(present, minlength=len(variable.levels))
    bins = level_bins(variable, counts, len(variable) - len(present), rare=RARE)
    return bins, bins


@dataclass(frozen=True, eq=False)
class MeanAlong:
    """Rows along a variable: their bins, and sums over bins and over the cells of the test.

    Attributes
    ----------
    bins : Bins
        The bins.
    index : ndarray of int
        The bin of each row.
    sums : MeanSums
        The sums of the bins.
    cells : MeanSums or None
        The sums of finer cells, without missing values, if the variable has an order.
    weight, predicted, observed : ndarray
        Σw, and the weighted means of predictions and outcomes, of each bin.
    """

    bins: Bins
    index: Ints
    sums: MeanSums
    cells: MeanSums | None
    weight: Floats
    predicted: Floats
    observed: Floats

    @classmethod
    def of(
        cls, rows: MeanRows, variables: Sequence[Variable], options: BinOptions, *, fine: bool
    ) -> MeanAlong:
        """Sum rows along one variable, or over joint bins of several."""
        coarse, cells = rows.bins(variables, options, N_CELLS if fine else 0)
        index = joint_index(coarse, variables)
        found = None
        if fine and isinstance(cells, NumericBins):
            at = cells.index(variables[0])
            present = at < cells.size - cells.missing
            if present.any():
                found = rows.sums(at, cells.size - cells.missing, present)
        weight, expected, actual = (
            np.asarray(np.bincount(index, rows.weight * x, coarse.size), np.float64)
            for x in (np.ones(len(index)), rows.rows.p, rows.rows.y)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            means = expected / weight, actual / weight
        return cls(coarse, index, rows.sums(index, coarse.size), found, weight, *means)

    def p_value(self, *, constant: bool, seed: int = 0) -> float:
        """Test that the gap is constant, or that it is 0."""
        return mean_test(self.sums, self.cells, constant=constant, seed=seed)

    def measured(self, level: float, *, center: bool, seed: int = 0) -> Measured:
        """Return the (uneven) error."""
        p_value = self.p_value(constant=center, seed=seed)
        return mean_error(self.sums, p_value, level=level, center=center)

    def columns(self, level: float) -> dict[str, list[Any]]:
        """Return the columns of a table: A/E, or the gap predicted − observed, with limits."""
        n = np.bincount(self.index, minlength=self.bins.size)
        share = ratio_or_zero(self.weight, self.weight.sum())
        low, high = gap_limits(self.sums, level=level)
        more = np.where(self.weight > 0, -self.sums.cells.gap, np.nan)
        columns: dict[str, list[Any]] = edge_columns(self.bins) | {
            "n": n.tolist(),
            "share": share.tolist(),
            "predicted": self.predicted.tolist(),
            "observed": self.observed.tolist(),
        }
        ends = [np.where(self.weight > 0, x, np.nan) for x in (more, low, high)]
        if self.sums.relative:
            named = zip(("a_e", "a_e_low", "a_e_high"), (1 + x for x in ends), strict=True)
        else:
            gap, low, high = (0.0 - x for x in ends)
            named = zip(("gap", "gap_low", "gap_high"), (gap, high, low), strict=True)
        return columns | {name: values.tolist() for name, values in named}

    def table(self, rows: MeanRows, level: float) -> BinTable:
        """Return the table of the bins."""
        return BinTable(
            variable=self.bins.name,
            event="mean",
            columns=self.columns(level),
            level=level,
            n_rows=len(rows.rows),
            n_dropped=rows.rows.n_dropped,
            backend=rows.rows.backend,
            edges="sampled" if self.bins.sampled else "exact",
        )


def mean_table(rows: MeanRows, options: BinOptions, level: float) -> BinTable:
    """Return the table of `bin_table` for predictions of a mean."""
    variables = rows.rows.variables or (rows.prediction(),)
    return MeanAlong.of(rows, variables, options, fine=False).table(rows, level)


@dataclass(frozen=True)
class MeanLevel:
    """What is predicted and observed over some rows.

    Attributes
    ----------
    predicted, observed : float
        The weighted means of predictions and outcomes.
    gap : {"relative", "difference"}
        How the gap is measured.
    ratio : float
        A/E, observed over predicted.
    value, low, high : float
        The gap with its interval: A/E − 1, or predicted − observed.
    """

    predicted: float
    observed: float
    gap: str
    value: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """A/E, observed over predicted."""
        return self.observed / self.predicted if self.predicted else np.nan

    @property
    def figure(self) -> str:
        """A/E or the difference, without its interval.

        >>> MeanLevel(412.0, 455.0, "relative", 0.104, 0.05, 0.15).figure
        'A/E 1.10'
        """
        if self.gap == "relative":
            return f"A/E {decimals(1 + self.value, 2)}"
        return f"difference {amount(self.value)}"

    @property
    def ends(self) -> str:
        """The interval of A/E or of the difference."""
        if self.gap == "relative":
            return f"{decimals(1 + self.low, 2)} to {decimals(1 + self.high, 2)}"
        return f"{amount(self.low)} to {amount(self.high)}"

    def __str__(self) -> str:
        figures = f"predicts {amount(self.predicted)}, observed {amount(self.observed)}"
        return f"{figures}: {self.figure}"


def mean_level(
    weight: Floats, mu: Floats, y: Floats, limits: tuple[float, float], gap: str
) -> MeanLevel:
    """Return the means of rows; `limits` are those of A/E − 1 or of observed − predicted."""
    predicted, observed = (
        float(np.average(mu, weights=weight)),
        float(np.average(y, weights=weight)),
    )
    if gap == "relative":
        return MeanLevel(predicted, observed, gap, observed / predicted - 1, *limits)
    low, high = limits
    return MeanLevel(predicted, observed, gap, predicted - observed, -high, -low)


def amount(value: float) -> str:
    """Write an amount with three digits, or as a whole number from 100 on.

    >>> amount(3.014), amount(412.3), amount(12345.6), amount(-0.0213)
    ('3.01', '412', '12,346', '−0.0213')
    """
    if not np.isfinite(value):
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
    return text.replace("-", MINUS)


def error_text(value: float, gap: str) -> str:
    """Write an error: in percent of the predicted mean, or in the unit of the outcome.

    >>> error_text(0.234, "relative"), error_text(0.234, "difference")
    ('23.4%', '0.234')
    """
    return Unit().rate(value) if gap == "relative" else amount(value)


@dataclass(frozen=True)
class MeanEstimate:
    """The error of predicted means along a variable.

    Attributes
    ----------
    variable : str
        The variable; "prediction" for the predictions themselves.
    gap : {"relative", "difference"}
        How gaps are measured.
    overall : MeanLevel
        What is predicted and observed over all rows, with the interval of A/E or the difference.
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
    gap: str
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
        low, high = error_text(one.low, self.gap), error_text(one.high, self.gap)
        return f"{error_text(one.debiased, self.gap)} ({low} to {high}), {p_equation(one.p_value)}"

    def __repr__(self) -> str:
        overall = self.overall
        lines = [
            f"{short(self.variable, 40)}: {overall} ({overall.ends} at {level_text(self.level)})",
            f"  error {self._figure(self.error)}",
            f"  uneven error {self._figure(self.uneven)}",
            f"  {self.n_rows:,} rows, {self.n_bins} bins",
        ]
        return "\n".join([*lines, *([f"  {FEW_ERRORS_NOTE}"] if self.few_errors else [])])


def mean_estimate(
    rows: MeanRows, options: BinOptions, level: float, random_state: int
) -> MeanEstimate:
    """Return the estimate of `estimate` for predictions of a mean."""
    variables = rows.rows.variables or (rows.prediction(),)
    along = MeanAlong.of(rows, variables, options, fine=True)
    return MeanEstimate(
        variable=along.bins.name,
        gap=rows.gap,
        overall=overall_level(rows, level),
        error=along.measured(level, center=False, seed=random_state),
        uneven=along.measured(level, center=True, seed=random_state),
        level=level,
        few_errors=along.sums.few_errors,
        n_rows=len(rows.rows),
        n_bins=int((along.weight > 0).sum()),
        n_dropped=rows.rows.n_dropped,
    )


def overall_level(rows: MeanRows, level: float) -> MeanLevel:
    """Return what is predicted and observed over all rows."""
    limits = overall_limits(rows.all_sums, level=level)
    return mean_level(rows.weight, rows.rows.p, rows.rows.y, limits, rows.gap)
