"""Measures of clinical prediction models: intercept, slope, O/E, ICI, E50, E90, Emax."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._input.frames import frame_of
from varcal._input.predictions import Predictions
from varcal._options import checked
from varcal._sums.bins import joint_index
from varcal._sums.choose_bins import choose_bins
from varcal._text import count, decimals, level_text, short, text_table
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

NAMES = ("intercept", "slope", "observed/expected", "ICI", "E50", "E90", "Emax")
#: Bins of a number; levels are groups as they are.
N_GROUPS = 4
#: Share of the rows that each point of the smooth curve is fitted to, as in R's `lowess`.
SPAN = 2 / 3
#: The same for intervals: a curve that follows more closely, so that less is smoothed away. Of 2/3,
#: .3 and .2, chosen by coverage in the worlds of `benchmarks/simulate_measures.py`.
CLOSE_SPAN = 0.3
#: Points closer than this share of the range are interpolated, as in R's `lowess`.
STEP = 0.01
#: A probability this far from its logit is 0 or 1 in floating point.
FAR = 40.0
#: The smooth curve needs some rows of both outcomes.
LEAST_EVENTS = 5


@dataclass(frozen=True)
class Measure:
    """A measure of some rows.

    Attributes
    ----------
    variable, group : str
        The variable and its level or range; both empty for all rows.
    measure : str
        "intercept", "slope", "observed/expected", "ICI", "E50", "E90" or "Emax".
    value, low, high : float
        The measure and its interval; NaN where too few rows or events determine it.
    rows, events : int
        Rows, and those of the class that the probabilities are about.
    """

    variable: str
    group: str
    measure: str
    value: float
    low: float
    high: float
    rows: int
    events: int


@dataclass(frozen=True)
class Measures:
    """The measures of all rows and of groups; ``found["slope"]`` is that of all rows.

    Attributes
    ----------
    measures : tuple of Measure
        All measures, those of all rows first.
    pos_label : label
        The class that the probabilities are about.
    level : float
        Level of the intervals.
    notes : tuple of str
        What the measures leave out.
    """

    measures: tuple[Measure, ...]
    pos_label: Hashable
    level: float
    notes: tuple[str, ...] = ()
    backend: str | None = None

    def __getitem__(self, name: str) -> Measure:
        for one in self.measures[: len(NAMES)]:
            if one.measure == name:
                return one
        raise KeyError(f"{name!r}; the measures are {', '.join(NAMES)}")

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.measures)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON; None where undetermined."""
        rows = [asdict(one) for one in self.measures]
        for row in rows:
            row |= {key: row[key] if math.isfinite(row[key]) else None for key in _ENDS}
        label = self.pos_label.item() if isinstance(self.pos_label, np.generic) else self.pos_label
        notes = list(self.notes)
        return {"pos_label": label, "level": self.level, "notes": notes, "measures": rows}

    def to_frame(self) -> Any:
        """Return one row per group and measure, in the input's library, pandas for arrays."""
        columns: dict[str, Any] = {
            name: [getattr(one, name) for one in self.measures]
            for name in Measure.__dataclass_fields__
        }
        return frame_of(columns, self.backend)

    def __repr__(self) -> str:
        groups = [
            self.measures[start : start + len(NAMES)]
            for start in range(0, len(self.measures), len(NAMES))
        ]
        tables = []
        for start in range(0, len(groups), _SIDE_BY_SIDE):
            columns: dict[str, list[str]] = {"": [*NAMES, "events of rows"]}
            for some in groups[start : start + _SIDE_BY_SIDE]:
                one = some[0]
                head = f"{short(one.variable)} {short(one.group)}" if one.variable else "all rows"
                texts = [_text_of(measure) for measure in some]
                columns[head] = [*texts, f"{one.events:,} of {one.rows:,}"]
            tables.append(text_table(columns))
        head = f"Measures of P({self.pos_label}), with {level_text(self.level)} intervals"
        return "\n".join([head, "\n\n".join(tables), *self.notes])


#: Groups beside one another in a table.
_SIDE_BY_SIDE = 3
_ENDS = ("value", "low", "high")


def _text_of(one: Measure) -> str:
    if not math.isfinite(one.value):
        return "–"
    value, low, high = (decimals(number, 2) for number in (one.value, one.low, one.high))
    return f"{value} ({low}, {high})"


@checked()
@one_blas_thread()
def measures(
    y: object,
    p: object = None,
    X: object = None,
    *,
    data: object = None,
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_GROUPS,
    level: float = 0.95,
    sample_weight: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
) -> Measures:
    r"""Measure calibration as papers on clinical prediction models report it.

    With :math:`z = \text{logit}\, p` and logistic regressions of y:

    - *intercept* (calibration in the large): :math:`a` in :math:`\text{logit}\, P(y) = a + z`,
      0 if the average is right;
    - *slope*: :math:`b` in :math:`\text{logit}\, P(y) = a + b z`, below 1 if the probabilities
      are too extreme, as those of an overfitted model;
    - *observed/expected*: events over the sum of the probabilities;
    - *ICI*, *E50*, *E90*, *Emax*: mean, median, 90 % quantile and maximum of
      :math:`|p - \hat c(p)|`, where :math:`\hat c` is a lowess curve (as in `val.prob` of R's
      rms, whose Eavg is the ICI).

    Intervals of intercept and slope are Wald's, that of observed/expected is exact (Clopper and
    Pearson). ICI, E50, E90 and Emax are never 0, not even for a perfect model, because noise adds
    to absolute values. Their intervals allow for it: they hold the values of all curves
    :math:`\\theta (p - \\hat c(p))` for which a summary as large, and as small, as the one seen is
    not surprising. They reach 0 where a perfect model is possible, and the value itself may lie
    above them. What lowess smooths away is not part of them.

    Parameters
    ----------
    y, p : array-like or column names
        Labels of two classes, and probabilities, as in `ece`.
    X : frame, dict of columns, array or column names, optional
        Variables. The measures are also computed for each of their levels, and for ranges of
        numbers with equally many rows.
    data, pos_label, classes, from_logits, unlabelled
        As in `ece`.
    n_bins : int
        Ranges of a number.
    level : float
        Level of the intervals.
    sample_weight : array-like or column name, optional
        The number of rows that each row stands for. Divide sampling weights by their mean;
        weights that are all below 1 are scaled to their effective number of rows.

    Returns
    -------
    Measures

    References
    ----------
    Van Calster et al. (2019), Calibration: the Achilles heel of predictive analytics, BMC
    Medicine 17. Austin and Steyerberg (2019), The Integrated Calibration Index, Statistics in
    Medicine 38.

    Examples
    --------
    >>> import varcal as vc
    >>> adult = vc.datasets.load_adult()
    >>> found = vc.measures(adult.y, adult.p, {"sex": adult["sex"]})
    >>> found["slope"].high < 0.2  # far too extreme
    True
    >>> found.to_frame().query("measure == 'observed/expected'")["group"].tolist()
    ['', 'Female', 'Male']
    """
    rows = Predictions.of(
        y,
        p,
        X,
        data=data,
        classes=classes,
        pos_label=pos_label,
        sample_weight=sample_weight,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    weight = np.ones(len(rows))
    if rows.weight is not None:
        from varcal.calibrators.rows import row_counts  # noqa: PLC0415

        rows = rows.take(rows.weight > 0)
        weight = row_counts(np.asarray(rows.weight))
    if len(rows.classes) != 2:
        raise InputError(
            f"y has {len(rows.classes)} classes; these measures are of two",
            "compare one class with the others: y == class, and its column of p",
            argument="y",
        )
    label = rows.classes[1] if pos_label is None else pos_label
    second = rows.p if rows.p.ndim == 1 else rows.p[:, 1]
    is_second = label == rows.classes[1]
    event = (rows.y == 1) == is_second
    score = second if is_second else 1 - second
    found = _all_of("", "", event, score, weight, level)
    for variable in rows.variables:
        bins = choose_bins([variable], n_bins=n_bins)
        index = joint_index(bins, [variable])
        for number, name in enumerate(bins.labels()):
            if (here := index == number).any():
                part = event[here], score[here], weight[here]
                found += _all_of(variable.name, name, *part, level)
    weighted = rows.weight is not None
    return Measures(tuple(found), label, level, _notes(score, weighted=weighted), rows.backend)


def _notes(score: Floats, *, weighted: bool) -> tuple[str, ...]:
    ends = int(((score == 0) | (score == 1)).sum())
    rows = f"{count(ends, 'row')} whose probability is 0 or 1 (infinite logits)"
    notes = [f"Intercept and slope leave out {rows}."] if ends else []
    return (*notes, *["Rows are weighted; counts of rows and events are not."] * weighted)


def _all_of(
    variable: str, group: str, event: Bools, p: Floats, weight: Floats, level: float
) -> list[Measure]:
    """Return the measures of some rows."""
    n, events, rows = len(p), int(event.sum()), (event, p, weight, level)
    ends = {
        "intercept": _regression(*rows, slope=False),
        "slope": _regression(*rows, slope=True),
        "observed/expected": _observed_over_expected(*rows),
        **_errors(*rows),
    }
    return [Measure(variable, group, name, *ends[name], n, events) for name in NAMES]


Ends = tuple[float, float, float]
_UNKNOWN = (math.nan, math.nan, math.nan)


def _regression(event: Bools, p: Floats, weight: Floats, level: float, *, slope: bool) -> Ends:
    """Return the last coefficient of a logistic regression on the logit, or with it as offset."""
    from scipy.optimize import brentq  # noqa: PLC0415
    from scipy.special import expit, logit  # noqa: PLC0415
    from scipy.stats import norm  # noqa: PLC0415

    from varcal.calibrators.regression import fit_logistic  # noqa: PLC0415

    inside = (p > 0) & (p < 1)
    y, z, w = event[inside].astype(np.float64), logit(p[inside]), weight[inside]
    if not len(y) or y.min() == y.max() or (slope and _separated(y, z)):
        return _UNKNOWN
    if slope:
        fit = fit_logistic(z[None], y, w)
        found, rate = float(fit.coef[0]), expit(fit.intercept + fit.coef[0] * z)
    else:
        ends = -float(z.max()) - FAR, FAR - float(z.min())
        found = brentq(lambda a: float(w @ (expit(a + z) - y)), *ends, xtol=1e-12)
        rate = expit(found + z)
    design = np.column_stack([np.ones(len(z)), z])[:, : 2 if slope else 1]
    information = (design * (w * rate * (1 - rate))[:, None]).T @ design
    error = math.sqrt(np.linalg.pinv(information)[-1, -1])
    reach = norm.ppf((1 + level) / 2) * error
    return found, float(found - reach), float(found + reach)


def _separated(y: Floats, z: Floats) -> bool:
    """Whether one score divides the outcomes, or all scores are the same."""
    ones, zeros = z[y == 1], z[y == 0]
    return bool(z.min() == z.max() or ones.min() >= zeros.max() or zeros.min() >= ones.max())


def _observed_over_expected(event: Bools, p: Floats, weight: Floats, level: float) -> Ends:
    from scipy.stats import beta  # noqa: PLC0415

    n, k, expected = float(weight.sum()), float(weight @ event), float(weight @ p)
    if expected <= 0:
        return _UNKNOWN
    tail = (1 - level) / 2
    low = beta.ppf(tail, k, n - k + 1) if k else 0.0
    high = beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0
    return k / expected, float(low * n / expected), float(high * n / expected)


def _errors(event: Bools, p: Floats, weight: Floats, level: float) -> dict[str, Ends]:
    """Return ICI, E50, E90 and Emax."""
    events = float(weight @ event)
    if min(events, float(weight.sum()) - events) < LEAST_EVENTS or p.min() == p.max():
        return dict.fromkeys(NAMES[3:], _UNKNOWN)
    y = event.astype(np.float64)
    smooth, close = Lowess.of(p, y, weight), Lowess.of(p, y, weight, CLOSE_SPAN)
    exact = abs(p - np.interp(p, smooth.x, smooth.fitted))
    gap, noise = close.x - close.fitted, close.noise(_DRAWS)
    shape = close.x - np.interp(close.x, smooth.x, smooth.fitted)
    # Rows between two points of the curve count for both, by their distance.
    share = close.interpolation(p, weight)
    return {
        name: (of_rows(exact, weight), *_interval(gap, shape, noise, of_points, share, level))
        for name, of_rows, of_points in _SUMMARIES
    }


#: Draws of the noise of a curve. With twice as many, ends of 12 samples moved by .7 % of the width
#: of their interval (median), at most by 8 %.
_DRAWS = 1000
#: How often a scale of the gap is halved to find the end of an interval.
_HALVINGS = 30


def _mean(off: Floats, share: Floats) -> Floats:
    return off @ share


def _quantile(q: float) -> Any:
    def quantile(off: Floats, share: Floats) -> Floats:
        order = np.argsort(off, axis=-1)
        below = np.cumsum(share[order], axis=-1)
        first = (below >= q * below[..., -1:]).argmax(axis=-1)
        return np.take_along_axis(off, np.take_along_axis(order, first[..., None], -1), -1)[..., 0]

    return quantile


def _largest(off: Floats, share: Floats) -> Floats:
    return off.max(axis=-1)


def _of_rows(q: float) -> Any:
    """Return the quantile of rows that count as often as their weights say, as numpy's."""

    def quantile(off: Floats, weight: Floats) -> float:
        order = np.argsort(off)
        below = np.cumsum(weight[order])
        place = q * (below[-1] - 1)
        ends = np.searchsorted(below, [math.floor(place), math.ceil(place)], side="right")
        low, high = off[order][np.minimum(ends, len(off) - 1)]
        return float(low + (place - math.floor(place)) * (high - low))

    return quantile


_SUMMARIES: tuple[tuple[str, Any, Any], ...] = (
    ("ICI", lambda off, weight: float(np.average(off, weights=weight)), _mean),
    ("E50", _of_rows(0.5), _quantile(0.5)),
    ("E90", _of_rows(0.9), _quantile(0.9)),
    ("Emax", lambda off, weight: float(off.max()), _largest),
)


def _interval(
    gap: Floats, shape: Floats, noise: Floats, summary: Any, share: Floats, level: float
) -> tuple[float, float]:
    """Return the summaries of |scale · gap| at which the summary seen is not surprising.

    The summary of |scale · gap + noise| grows with the scale. The lower end has the scale at which
    the summary seen is the upper quantile, the upper end that at which it is the lower quantile.
    """
    seen = float(summary(abs(gap), share))

    def exceeds(scale: float) -> float:
        return float((summary(abs(scale * shape + noise), share) >= seen).mean())

    ends = []
    for wanted in ((1 - level) / 2, (1 + level) / 2):
        low, high = 0.0, 1.0
        while exceeds(high) < wanted and high < 2**10:
            low, high = high, 2 * high
        for _ in range(_HALVINGS if exceeds(0.0) < wanted else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if exceeds(middle) < wanted else (low, middle)
        ends.append(0.0 if exceeds(0.0) >= wanted else high * float(summary(abs(shape), share)))
    return ends[0], ends[1]


@dataclass(frozen=True, eq=False)
class Lowess:
    """A local linear fit, as R's ``lowess(x, y, iter=0)``.

    Cleveland (1979): tricube weights over the nearest two thirds of the points. Between points
    that are closer than 1 % of the range, the fit is interpolated.

    Attributes
    ----------
    x, fitted : ndarray
        Where the line was fitted, and its values.
    weights : ndarray, shape (points, cells)
        How much each cell of neighbouring rows counts at each point.
    counts : ndarray
        Weights of the cells.
    rate : ndarray
        The fit at the cells.

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)
    >>> fit = Lowess.of(x, 3 * x, np.ones(50))
    >>> bool(np.allclose(fit.fitted, 3 * fit.x))
    True
    """

    x: Floats
    fitted: Floats
    weights: Floats
    counts: Floats
    rate: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats, row_weight: Floats, span: float = SPAN) -> Lowess:
        """Fit the curve to outcomes y, each point to a share of the weighted rows."""
        order = np.argsort(x, kind="stable")
        xs, ys, ws = x[order], y[order], row_weight[order]
        total = float(ws.sum())
        near = min(max(int(span * total + 1e-7), 2), total)
        starts = np.unique(np.linspace(0, len(xs), _CELLS + 1)[:-1].astype(np.intp))
        counts = np.add.reduceat(ws, starts)
        at, fitted, weights = [], [], []
        point = 0
        while True:
            weight = _line_weights(xs, ws, float(xs[point]), near)
            at.append(float(xs[point]))
            fitted.append(float(weight @ ys))
            weights.append(np.add.reduceat(weight, starts))
            last = int(np.searchsorted(xs, xs[point], side="right")) - 1
            if last >= len(xs) - 1:
                break
            # The last value within reach, or the next one.
            reach = xs[point] + STEP * (xs[-1] - xs[0])
            point = max(last + 1, int(np.searchsorted(xs, reach, side="right")) - 1)
        centres = np.add.reduceat(ws * xs, starts) / counts
        rate = np.clip(np.interp(centres, at, fitted), 0, 1)
        return cls(np.array(at), np.array(fitted), np.array(weights), counts, rate)

    def noise(self, draws: int) -> Floats:
        """Return random errors of the fit at its points, one row per draw."""
        scale = np.sqrt(self.rate * (1 - self.rate) / self.counts)
        normal = np.random.default_rng(0).standard_normal((draws, len(scale)))
        return (normal * scale) @ self.weights.T

    def interpolation(self, x: Floats, weight: Floats) -> Floats:
        """Return the share of each point in the mean of an interpolated function over x."""
        right = np.clip(np.searchsorted(self.x, x), 1, max(len(self.x) - 1, 1))
        width = self.x[right] - self.x[right - 1]
        part = (x - self.x[right - 1]) / width
        size = len(self.x)
        sums = np.bincount(right - 1, weight * (1 - part), size)
        return (np.bincount(right, weight * part, size) + sums) / weight.sum()


#: Cells of rows for the noise of a curve.
_CELLS = 500


def _line_weights(xs: Floats, ws: Floats, at: float, near: float) -> Floats:
    """Return the weight of each of the sorted points in a line fitted around `at`."""
    away = abs(xs - at)
    width = _reach(xs, ws, away, at, near)
    far = away > 0.999 * width
    away = np.where(away <= 0.001 * width, 0.0, np.minimum(away / max(width, 1e-300), 1.0))
    weight = ws * np.where(far, 0.0, (1 - away**3) ** 3)
    weight /= weight.sum()
    centre = weight @ xs
    spread = weight @ (xs - centre) ** 2
    if math.sqrt(spread) > 0.001 * (xs[-1] - xs[0]):
        weight *= 1 + (at - centre) / spread * (xs - centre)
    return weight


def _reach(xs: Floats, ws: Floats, away: Floats, at: float, near: float) -> float:
    """Return how far the nearest points reach whose weights sum to `near`."""
    if ws.max() > 1 or ws.min() < 1:
        order = np.argsort(away)
        held = int(np.searchsorted(np.cumsum(ws[order]), near))
        return float(away[order[min(held, len(order) - 1)]])
    low, high, many = 0, len(xs) - int(near), int(near)
    while low < high:  # where the nearest of sorted points begin
        middle = (low + high) // 2
        if at - xs[middle] > xs[middle + many] - at:
            low = middle + 1
        else:
            high = middle
    return float(max(at - xs[low], xs[low + many - 1] - at))
