"""Estimate: a debiased calibration error with its interval, noise floor and test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np

from varcal._inference.calibration_test import Tested, calibration_test, minimum_detectable
from varcal._inference.debiased import (
    LawErrors,
    Measured,
    measure_classes,
    over_bins,
    with_p,
    with_p_of_classes,
)
from varcal._inference.error_sums import error_sums
from varcal._inference.gap_law import GapLaw, checked_groups, finer_law, gap_law
from varcal._inference.multiplicity import two_sided_quantile
from varcal._measures import means
from varcal._options import checked, only_means
from varcal._sums.choose_bins import N_BINS, QUANTILE, BinOptions
from varcal._sums.evidence import Evidence, gather
from varcal._sums.plan import Question
from varcal._sums.profile import Profile
from varcal._sums.stats import BinnedStats
from varcal._sums.stream import SCORE
from varcal._text import html_table, level_text, p_text, short
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: Smaller p-values are not shown with their digits.
SMALL_P = 0.001


@dataclass(frozen=True)
class Estimate:
    """A calibration error with its uncertainty.

    Attributes
    ----------
    metric : {"ECE", "VECE"}
        The metric.
    variable, event : str
        The binned variable, and what the probabilities claim.
    value, debiased : float
        The plug-in value, which is biased upwards, and the value without this bias.
    low, high, level : float
        The interval and its level.
    p_value : float
        The p-value of the hypothesis "calibrated with respect to the variable".
    noise_floor, noise_high : float
        Mean and 95 % quantile of the plug-in value of a perfect model with the same number of
        rows.
    detectable : float
        The smallest error that the test detects with 80 % power, whatever its shape.
    n_rows, n_bins, n_dropped : int
        Rows, bins with rows, and rows dropped because their outcome is missing.
    engine, edges : str
        What summed the rows, and whether bins were chosen from all of them ("exact") or from a
        sample ("sampled").
    """

    metric: str
    variable: str
    event: str
    value: float
    debiased: float
    low: float
    high: float
    level: float
    p_value: float
    noise_floor: float
    noise_high: float
    detectable: float
    n_rows: int
    n_bins: int
    n_dropped: int = 0
    engine: str = "numpy"
    edges: str = "exact"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def plot(self, ax: Any = None) -> Any:
        """Draw the estimate with its interval and the range of a perfect model by chance.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_ranking import draw_estimate  # noqa: PLC0415

        return draw_estimate(self, ax)

    def __repr__(self) -> str:
        along = "" if self.metric == "ECE" else f" along {short(self.variable, 40)}"
        p = "p < 0.001" if self.p_value < SMALL_P else f"p = {self.p_value:.3f}"
        return (
            f"{self.metric}{along}: {self.debiased:.4f} ({self.low:.4f} to {self.high:.4f} at "
            f"{level_text(self.level)}), {p}\n"
            f"  plug-in {self.value:.4f}, noise floor {self.noise_floor:.4f}; "
            f"{self.n_rows:,} rows, {self.n_bins} bins"
        )

    def _repr_html_(self) -> str:
        head = repr(self).split(": ")[0]
        facts: dict[str, list[Any]] = {
            "debiased": [self.debiased],
            "low": [self.low],
            "high": [self.high],
            "p-value": [p_text(self.p_value)],
            "plug-in": [self.value],
            "noise floor": [self.noise_floor],
            "rows": [self.n_rows],
            "bins": [self.n_bins],
        }
        return html_table(facts, f"{head}, {level_text(self.level)} interval, event {self.event}")


@checked()
@one_blas_thread()
def estimate(
    y: object,
    p: object = None,
    v: object = None,
    *,
    data: object = None,
    event: str = "correct",
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_BINS,
    binning: str = QUANTILE,
    bins: object = None,
    edges: str | None = None,
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    random_state: int = 0,
    outcome: str | None = None,
    gap: str | None = None,
    exposure: object = None,
) -> Estimate:
    r"""Estimate VECE, or ECE without a variable, with its uncertainty.

    The plug-in value :math:`T = \sum_b \pi_b |g_b|` is biased upwards, because noise adds to
    absolute values. Its sampling distribution is known in closed form for gaps of the observed
    shape. It is inverted to get the debiased value and the interval, without resampling. These
    are about the integral of the absolute gap: where the gap changes within bins, they are over
    finer cells. The p-value is a Cauchy combination of chi-square tests over bins and over finer
    cells, a score test on smooth trends and a test of the overall gap.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `vece`.
    v : array-like or column name, optional
        One variable. By default the score itself is binned, for ECE.
    data, event, n_bins, binning, bins, edges : optional
        As in `vece`.
    classes, pos_label, sample_weight, from_logits, unlabelled
        As in `vece`. With ``event="classwise"`` values are means over classes.
    level : float
        Level of the interval.
    groups : array-like or column name, optional
        Units that rows belong to, such as patients or customers. The interval and the test
        then allow for dependence within a unit.
    random_state : int
        Seed of the random signs of groups, used by the test with fewer than 100 groups.
    outcome, gap, exposure : optional
        As in `bin_table`. With ``outcome="mean"`` and the gap :math:`G_b` of bin b, A/E − 1 or
        predicted − observed, the result has the error :math:`\sum_b \pi_b |G_b|` and the uneven
        error :math:`\sum_b \pi_b |G_b - \bar G|`; :math:`\pi_b` is the bin's share of all that is
        predicted, or for a difference of the weight. Intervals and tests take the variance from
        the rows, and allow for skewed outcomes.

    Returns
    -------
    Estimate, or with ``outcome="mean"`` MeanEstimate

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(2000, "tilt", vece=0.1)
    >>> found = vc.estimate(sim.y, sim.p, sim.v, event="positive")
    >>> found.low < 0.1 < found.high, found.p_value < 0.001
    (True, True)

    Counts that grow faster with v than predicted:

    >>> rng = np.random.default_rng(0)
    >>> v = rng.uniform(size=5000)
    >>> counts = rng.poisson(2 * (1 + 0.5 * (v > 0.7)))
    >>> vc.estimate(counts, np.full(5000, 2.0), v, outcome="mean")
    v: predicts 2.00, observed 2.33: A/E 1.17 (1.14 to 1.19 at 95%)
      error 15.9% (14.0% to 18.6%), p<0.001
      uneven error 22.8% (20.6% to 25.0%), p<0.001
      5,000 rows, 10 bins
    """
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    if outcome == "mean":
        means.only_probabilities(
            outcome,
            event=None if event == "correct" else event,
            classes=classes,
            pos_label=pos_label,
            from_logits=from_logits,
        )
        how: dict[str, Any] = {"data": data, "sample_weight": sample_weight, "groups": groups}
        how |= {"gap": gap, "exposure": exposure, "unlabelled": unlabelled}
        rows = means.gather_means(y, p, v, Question(options), **how)
        _check_one(len(rows.along))
        # With this option the result is of another type; all other calls keep theirs.
        return cast(Any, means.mean_estimate(rows, level, random_state))
    only_means(gap=gap, exposure=exposure)
    evidence = gather(
        y,
        p,
        v,
        Question(options, event, pos_label),
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    _check_one(len(evidence.along))
    return estimate_of(evidence, event, level=level, pos_label=pos_label, random_state=random_state)


def _check_one(n_variables: int) -> None:
    if n_variables > 1:
        raise InputError(
            f"v has {n_variables} variables; an estimate is along one",
            "give one column; audit() accepts several and tests each of them",
            argument="v",
        )


def estimate_of(
    evidence: Evidence,
    event: str,
    *,
    level: float = 0.95,
    pos_label: Hashable = None,
    random_state: int = 0,
) -> Estimate:
    """Return the estimate from evidence, for `estimate` and `reliability`."""
    tables, bins, cells, tests = [], [], [], []
    name = evidence.along[0].name if evidence.along else None
    for key in evidence.keys(event, pos_label):
        found = evidence.profile(key, name)
        tested = profile_test(found, random_state=random_state)
        tables.append(found.coarse)
        bins.append(gap_law(found.coarse))
        cells.append(bins[-1] if tested.finer is None else finer_law([found.fine], tested.finer))
        tests.append(tested)
    same_bins = all(stats.bins == tables[0].bins for stats in tables)
    mean = measure_classes(bins, level, same_bins=same_bins)
    clear = [cells[k] if one.changes else bins[k] for k, one in enumerate(tests)]
    for laws, changes in ((clear, True), (cells, False)):
        if any(finer is not law for finer, law in zip(laws, bins, strict=True)):
            finer = measure_classes(laws, level, same_bins=False)
            mean = over_bins(finer, mean, changes=changes)
    classes = LawErrors.of(clear).measured(1 - (1 - level) / len(tables))
    mean = with_p_of_classes(mean, classes, [one.p_value for one in tests], level)
    return Estimate(
        metric="VECE" if evidence.along else "ECE",
        variable=SCORE if name is None else name,
        event=event,
        value=mean.value,
        debiased=mean.debiased,
        low=mean.low,
        high=mean.high,
        level=level,
        p_value=mean.p_value,
        noise_floor=mean.noise_floor,
        noise_high=mean.noise_high,
        detectable=float(np.mean([detectable_of(stats, level) for stats in tables])),
        n_rows=evidence.n_rows,
        n_bins=max(int((stats.total("weight") > 0).sum()) for stats in tables),
        n_dropped=evidence.n_dropped,
        engine=evidence.engine,
        edges="sampled" if any(stats.edges == "sampled" for stats in tables) else "exact",
    )


def measure_and_test(found: Profile, *, level: float, random_state: int = 0) -> Measured:
    """Return the error of a profile with its p-value and an interval that agrees with it."""
    tested = profile_test(found, random_state=random_state)
    (measured,) = LawErrors.of([gap_law(found.coarse)]).measured(level)
    if tested.finer is not None:
        (finer,) = LawErrors.of([finer_law([found.fine], tested.finer)]).measured(level)
        measured = over_bins(finer, measured, changes=tested.changes)
    return with_p(measured, tested.p_value, level)


def detectable_of(stats: BinnedStats, level: float) -> float:
    """Return the smallest error that the test detects with 80 % power, whatever its shape."""
    return float(minimum_detectable(gap_law(stats), level=1 - level))


def profile_test(found: Profile, *, random_state: int = 0) -> Tested:
    """Test that the gap is 0 along a variable."""
    return calibration_test([found.coarse], [found.fine], found.placed, seed=random_state)


@dataclass(frozen=True)
class OverallGap:
    """Mean confidence − accuracy over all rows, with its interval."""

    gap: float
    low: float
    high: float
    confidence: float
    accuracy: float


def overall_gap(stats: BinnedStats, level: float) -> OverallGap:
    r"""Return the gap over all rows of a table.

    With a gap of g the hits are approximately Bernoulli(s − g), and the variance of the overall
    gap is :math:`a + b g - c g^2` with :math:`a = \sum w^2 s(1 - s) / W^2`,
    :math:`b = \sum w^2 (2s - 1) / W^2` and :math:`c = \sum w^2 / W^2`. The interval has all g
    for which :math:`(|\hat g - g| - c / 2)^2 \le z^2 (a + d + b g - c g^2)`. The continuity
    correction is half a row. The excess d of the observed variance over that of the model at
    :math:`\hat g`, if positive, is for hits that are not Bernoulli(s − g). An interval with only
    the observed variance would have no width where no error is seen. With groups the observed
    variance is that of the groups' sums, and at least that of independent rows.
    """
    cells = error_sums(stats)
    law = GapLaw.from_cells(cells)
    gap, weight = float(cells.overall), float(cells.weight.sum())
    observed, z = float(law.share @ law.cov @ law.share), law.quantile(level)
    by_group = stats.field("weight").sum(axis=1)
    if len(by_group) > 1:
        many = checked_groups(by_group)
        residual = (stats.field("score") - stats.field("hit")).sum(axis=1) - gap * by_group
        scatter = many / (many - 1) * float(residual @ residual) / weight**2
        observed, z = max(observed, scatter), two_sided_quantile(level, many - 1)
    a, c = (float(sums.sum()) / weight**2 for sums in (cells.null2, cells.weight2))
    b = 2 * float(cells.score2.sum()) / weight**2 - c
    a += max(observed - max(a + b * gap - c * gap**2, 0.0), 0.0)

    def end(side: int) -> float:
        start = gap + side * c / 2
        square, slope = 1 + z * z * c, 2 * start + z * z * b
        root = math.sqrt(max(slope**2 - 4 * square * (start**2 - z * z * a), 0.0))
        return side * min(max(side * start, side * slope / (2 * square) + root / (2 * square)), 1.0)

    return OverallGap(
        gap,
        end(-1),
        end(1),
        float(stats.total("score").sum() / weight),
        float(stats.total("hit").sum() / weight),
    )
