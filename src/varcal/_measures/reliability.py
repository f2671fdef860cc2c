"""Reliability: the hit rate along the score, with the range of a calibrated model by chance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import Floats
from varcal._inference.gap_law import gap_ends, gap_law
from varcal._input.frames import frame_of
from varcal._measures.curve import curve_of
from varcal._measures.curve_result import Curve, Histogram, histogram_of
from varcal._measures.estimate import Estimate, estimate_of
from varcal._measures.isotonic import IsotonicFit, isotonic_fit
from varcal._options import checked, one_of
from varcal._sums.choose_bins import N_BINS, QUANTILE, BinOptions
from varcal._sums.evidence import gather
from varcal._sums.plan import Question
from varcal._sums.stats import BinnedStats
from varcal._text import wrapped
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: The arrays of a reliability diagram, with one value per bin.
BINS = (
    "predicted",
    "observed",
    "observed_low",
    "observed_high",
    "consistent_low",
    "consistent_high",
)
#: Bars of the histogram of scores.
BARS = 40


@dataclass(frozen=True, eq=False)
class Reliability:
    """The hit rate along the score: a reliability diagram.

    Attributes
    ----------
    event : str
        What the probabilities claim.
    predicted, observed : ndarray
        Mean score and hit rate of each bin with rows.
    observed_low, observed_high : ndarray
        The interval of each hit rate.
    consistent_low, consistent_high : ndarray
        The range of the hit rate of a calibrated model by chance, for each bin.
    counts : ndarray of int
        Rows of each bin.
    curve : Curve
        The smooth curve along the score; `smooth` is its hit rate.
    histogram : Histogram
        The distribution of the scores.
    ece : Estimate
        ECE over these bins, with its uncertainty.
    level : float
        Level of all intervals and bands.
    n_rows, n_dropped : int
        Rows used, and rows dropped because their outcome is missing.
    isotonic : IsotonicFit, optional
        With ``method="isotonic"``: `score`, `rate`, and the simultaneous band `low`, `high`.
    """

    event: str
    predicted: Floats
    observed: Floats
    observed_low: Floats
    observed_high: Floats
    consistent_low: Floats
    consistent_high: Floats
    counts: NDArray[np.int64]
    curve: Curve
    histogram: Histogram
    ece: Estimate
    level: float
    n_rows: int
    n_dropped: int
    backend: str | None = None
    isotonic: IsotonicFit | None = None

    @property
    def score(self) -> Floats:
        """The scores at which `smooth` is given."""
        return self.curve.x

    @property
    def smooth(self) -> Floats:
        """The hit rate as a smooth function of the score."""
        return self.curve.observed

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {
            "event": self.event,
            **{name: getattr(self, name).tolist() for name in (*BINS, "counts")},
            "curve": self.curve.to_dict(),
            "histogram": self.histogram.to_dict(),
            "ece": self.ece.to_dict(),
            "level": self.level,
            "n_rows": self.n_rows,
            "n_dropped": self.n_dropped,
            "isotonic": None if self.isotonic is None else self.isotonic.to_dict(),
        }

    def to_frame(self) -> Any:
        """Return the bins as a frame of the input's library, pandas for arrays."""
        columns = {name: getattr(self, name) for name in (*BINS, "counts")}
        return frame_of(columns, self.backend)

    def plot(self, ax: Any = None) -> Any:
        """Draw the reliability diagram.

        Bins are dots with intervals, and the smooth hit rate is a line with its band. The band
        around the diagonal is the range of a calibrated model by chance. Below is the histogram
        of the scores.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_variables import draw_reliability  # noqa: PLC0415

        return draw_reliability(self, ax)

    def __repr__(self) -> str:
        outside = (self.observed < self.consistent_low) | (self.observed > self.consistent_high)
        return wrapped(
            f"Reliability (event {self.event}, {self.n_rows:,} rows): {outside.sum()} of "
            f"{len(outside)} bins are outside the range of a calibrated model by chance\n"
            f"{self.ece!r}"
        )


@checked(method=one_of("smooth", "isotonic"))
@one_blas_thread()
def reliability(
    y: object,
    p: object = None,
    *,
    data: object = None,
    event: str = "correct",
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_BINS,
    binning: str = QUANTILE,
    bins: object = None,
    edges: str | None = None,
    method: str = "smooth",
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    random_state: int = 0,
) -> Reliability:
    r"""Compare predicted with observed frequencies along the score: the reliability diagram.

    In bin b with mean score :math:`\bar s_b`, the hit rate of a calibrated model has this mean
    and the variance :math:`\sum_b w^2 s(1-s) / W_b^2`. The consistency band is the central range
    of a binomial share with this mean, and as many trials as give this variance.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `ece`.
    data, event, n_bins, binning, bins, edges : optional
        As in `vece`.
    classes, pos_label, sample_weight, from_logits, unlabelled
        As in `ece`; `event` is "correct" or "positive".
    method : {"smooth", "isotonic"}
        What is drawn besides the bins: the smooth curve with its pointwise band, or an isotonic
        regression (CORP) over fine cells. Its band holds for all scores at once and assumes only
        that the hit rate does not decrease with the score.
    level : float
        Level of intervals and bands.
    groups : array-like or column name, optional
        Units that rows belong to, such as patients or customers. Intervals and bands then allow
        for dependence within a unit.
    random_state : int
        Seed of the random signs of groups, used by the test of ECE with fewer than 100 groups.

    Returns
    -------
    Reliability

    References
    ----------
    Bröcker and Smith (2007), Increasing the Reliability of Reliability Diagrams, Weather and
    Forecasting 22. Dimitriadis et al. (2023), Honest calibration assessment for binary outcome
    predictions, Biometrika 110.

    Examples
    --------
    >>> import varcal as vc
    >>> adult = vc.datasets.load_adult()
    >>> found = vc.reliability(adult.y, adult.p)
    >>> bool((found.observed < found.consistent_low).all())
    True
    """
    if event == "classwise":
        raise InputError(
            "event is 'classwise', which makes one claim per class; a diagram shows one claim",
            'use event="correct", or for one class p against y == class with event="positive"',
            argument="event",
        )
    if method == "isotonic" and groups is not None:
        raise InputError(
            "groups is given with method='isotonic', whose band is for independent rows",
            'use method="smooth", which allows for groups',
            argument="groups",
        )
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    evidence = gather(
        y,
        p,
        None,
        Question(options, event, pos_label),
        soft=False,  # the range of a perfect model is that of classes
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    (key,) = evidence.keys(event, pos_label)
    found = evidence.profile(key, None)
    ece = estimate_of(evidence, event, level=level, pos_label=pos_label, random_state=random_state)
    return Reliability(
        event=event,
        **_bins(found.coarse, level),
        curve=curve_of(
            found, event, level=level, vece=ece, backend=evidence.backend, engine=evidence.engine
        ),
        histogram=histogram_of(found, np.linspace(0, 1, BARS + 1)),
        ece=ece,
        level=level,
        n_rows=evidence.n_rows,
        n_dropped=evidence.n_dropped,
        backend=evidence.backend,
        isotonic=isotonic_fit(found.fine, level) if method == "isotonic" else None,
    )


def _bins(stats: BinnedStats, level: float) -> dict[str, Any]:
    """Return the arrays of the bins with rows."""
    filled = stats.total("weight") > 0
    law = gap_law(stats)
    predicted, observed = stats.confidence[filled], stats.accuracy[filled]
    reach = law.quantile(level) * law.standard_error
    gap_low, gap_high = (end[filled] for end in gap_ends(stats, reach, level))
    low, high = _central(predicted, np.diag(law.null_cov)[filled], level)
    return {
        "predicted": predicted,
        "observed": observed,
        "observed_low": np.clip(predicted - gap_high, 0.0, 1.0),
        "observed_high": np.clip(predicted - gap_low, 0.0, 1.0),
        "consistent_low": low,
        "consistent_high": high,
        "counts": stats.n[filled],
    }


def _central(mean: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the central range of a binomial share with this mean and roughly this variance."""
    from scipy.stats import binom  # noqa: PLC0415

    most = mean * (1 - mean)
    spread = (variance > 0) & (most > 0)
    trials = np.divide(most, variance, out=np.ones_like(mean), where=spread)
    trials = np.maximum(np.round(trials), 1.0)
    ends = [
        np.where(spread, binom.ppf(tail, trials, mean) / trials, mean)
        for tail in ((1 - level) / 2, (1 + level) / 2)
    ]
    return ends[0], ends[1]
