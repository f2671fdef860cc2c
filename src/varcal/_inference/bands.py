"""Bands for the curves along a variable, and the points where the gap may be largest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtr

from varcal._arrays import Bools, Floats
from varcal._inference.multiplicity import student_quantile
from varcal._inference.smoothers import (
    Jump,
    JumpSearch,
    Places,
    find_jumps,
    regressors,
    smoother_weights,
    with_jumps,
)
from varcal._sums.profile import EVEN_COUNTS, Cells

#: The largest number of cells that a curve is fitted to.
MOST_CELLS = 300
#: The half-spans from which generalized cross-validation chooses.
HALF_SPANS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.4, 0.7)
#: The widest half-span: a quartic over more than two fifths of the rows smooths too much.
WIDEST = 0.2
#: A half-span holds at least this many cells.
LEAST_CELLS = 4
#: The half-window of the variance is that of the curve, clipped to these limits.
NARROWEST_WINDOW, WIDEST_WINDOW = 0.06, 0.13
#: With at most this many distinct values, and at least the given number of rows per value on
#: average, each value is estimated separately, as a level is.
FEW_LEVELS, ROWS_PER_LEVEL = 20, 10
#: Cross-validation ignores spans with a smaller share of residual degrees of freedom than this, and
#: at least this share of a row's variance is left in its residual.
LEAST_FREEDOM = 0.1
#: Degree of the local polynomials that choose the span and are drawn, and of those of the band.
SPAN_DEGREE, BAND_DEGREE = 2, 4
#: Steps of `HALF_SPANS` by which the band's span is narrower than the chosen one. With 1, the band
#: covered a steep end at a million rows in 80 % of samples; with 2 in 95 %, 15 % wider.
NARROWER_BY = 2
#: The share of the rows at each end in which the worst place is not searched for. The outermost
#: places are too uncertain: searching all rows makes the interval of the largest gap up to twice
#: as wide. With 5 % a fault in the outer rows was missed.
TRIM = 0.01
#: Bisections of the tube formula: more than enough for the last bit of a double.
BISECTIONS = 60
ERROR, PREDICTED_ERROR, GAP = range(3)
#: Rows, half of them hits, that are added to the observed ones (Agresti and Coull).
PRIOR_ROWS = 4.0
#: The least variance under the fitted gap, as part of the variance of calibrated scores.
LEAST_MODEL = 0.1
#: The least variance of a row whose score is 0 or 1. Only its ratio to other variances counts; the
#: product with the square of the smallest weight (1e-241) is still a number.
LEAST_NULL = 1e-30
#: The least sum of fourth powers, to avoid division by 0.
TINY = 1e-300


@dataclass(frozen=True)
class Bands:
    """Error, predicted error and gap along a variable, with bands.

    Attributes
    ----------
    cells : Cells
        The cells that the curves are fitted on.
    x : ndarray of shape (k,)
        Mean of the variable in each cell; all other arrays have one value per cell, too.
    error, predicted_error, gap : ndarray
        Estimates at the centre of the bands; those of error and predicted error are smoothed again.
    error_se, predicted_error_se, gap_se : ndarray
        Standard errors.
    pointwise_critical, critical : float
        Half-widths, in standard errors, of the pointwise bands and of the simultaneous band.
    low, high : ndarray
        The simultaneous band, which contains the whole true gap curve in `level` of all samples.
    smooth_error, smooth_predicted_error : ndarray
        Smoother curves to draw, with the cross-validated span.
    worst : int
        The cell with the largest absolute gap, v*; of a smooth curve, with the largest lower limit
        of its absolute gap.
    searched, candidates : ndarray of bool
        The cells in which the worst is searched for, and those that could be the worst.
    worst_low, worst_high : float
        Interval for the largest absolute gap. The lower limit comes from the simultaneous band, the
        upper one from the pointwise band, which suffices: it holds at the true worst place.
    half_span : float
        Half of the share of rows in each neighbourhood; 0 if levels are estimated separately.
    level : float
        Confidence level.
    dof : float
        Degrees of freedom of the standard errors: infinite for independent rows; with groups,
        one less than their effective number at a typical point.
    breaks : tuple of int
        The first cell after each jump of the curve that is certain.
    """

    cells: Cells
    x: Floats
    error: Floats
    predicted_error: Floats
    gap: Floats
    error_se: Floats
    predicted_error_se: Floats
    gap_se: Floats
    pointwise_critical: float
    critical: float
    low: Floats
    high: Floats
    smooth_error: Floats
    smooth_predicted_error: Floats
    worst: int
    searched: Bools
    candidates: Bools
    worst_low: float
    worst_high: float
    half_span: float
    level: float
    dof: float
    breaks: tuple[int, ...] = ()

    def pointwise(self, name: str) -> tuple[Floats, Floats]:
        """Return the pointwise band of ``"error"``, ``"predicted_error"`` or ``"gap"``."""
        middle, reach = getattr(self, name), self.pointwise_critical * getattr(self, f"{name}_se")
        if name == "gap":  # that of other possible jumps is wider on one side only
            return np.maximum(middle - reach, self.low), np.minimum(middle + reach, self.high)
        return np.clip(middle - reach, 0.0, 1.0), np.clip(middle + reach, 0.0, 1.0)


def curve_bands(cells: Cells, *, level: float = 0.95, trim: float = TRIM) -> Bands:
    r"""Compute bands along a numeric variable.

    The rows are merged into at most 300 cells of equal counts, and the variable is replaced by
    its ranks. The span is chosen by generalized cross-validation of local quadratics. Local
    *quartics* with a narrower span give the bands: their bias is small compared with their
    standard error, so that coverage does not fall as the number of rows grows. They are quartics
    in the normal scores of the ranks: towards the ends of a variable with tails, a gap that is
    smooth in v bends sharply along its ranks. The variance is a kernel average of the rows'
    squared residuals, and at least that of the fitted curve and of calibrated scores,
    :math:`s(1 - s)`. The critical value comes from the tube formula.

    Parameters
    ----------
    cells : Cells
        Sums along the variable, in about a thousand cells; with groups, by bucket of groups.
    level : float
        Confidence level.
    trim : float
        Share of the rows at each end in which v* is not searched for.

    References
    ----------
    Sun, J. and Loader, C. R. (1994). Simultaneous confidence bands for linear regression and
    smoothing. Annals of Statistics 22, 1328-1345.
    Calonico, S., Cattaneo, M. D. and Farrell, M. H. (2018). On the effect of bias estimation on
    coverage accuracy in nonparametric inference. JASA 113, 767-779.
    """
    cells = cells.filled().coarsen(MOST_CELLS)
    if len(cells) <= FEW_LEVELS and cells.n.sum() >= ROWS_PER_LEVEL * len(cells):
        return level_bands(cells, level=level)
    design = _Design(cells.n)
    responses = _responses(cells)
    inside = (design.x >= trim) & (design.x <= 1 - trim)
    inside |= not inside.any()
    margin = student_quantile(0.5 + level / 2)
    variance, search = design.find_jumps(cells)
    jumps, best = search.certain, search.span
    by = design.hat(HALF_SPANS[best], SPAN_DEGREE)
    half_span = design.band_half_span(best)
    hat = with_jumps(design.hat(half_span, BAND_DEGREE), jumps, variance, by)
    window = design.hat(float(np.clip(half_span, NARROWEST_WINDOW, WIDEST_WINDOW)), 0)
    smooth = with_jumps(by, jumps, variance, by) @ responses
    found = _bands(cells, responses, hat, window, smooth, half_span, inside, None, level, margin)
    even = with_jumps(design.hat(half_span, SPAN_DEGREE), jumps, variance, by)
    first = replace(_evened(found, even, design.hat(half_span, 0)), breaks=_breaks(jumps))
    spread = [cell_variance(cells, hat @ responses[:, i], hat, window, i) for i in range(3)]
    # With groups, the curves of other jumps vary more in the same proportion.
    more = first.gap_se / np.sqrt(np.square(hat) @ spread[GAP])
    for places in search.possible:
        smoothers = _smoothers(design, places, variance)
        curves = [
            (fits, more[:, None] * se if i == GAP else se)
            for i in range(3)
            for fits, se in [_curves(*smoothers, responses[:, i], spread[i])]
        ]
        first = _widened(first, curves, places.trust, moved=len(places.given) < len(jumps))
    return first


def _smoothers(design: _Design, places: Places, variance: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the smoother without a jump, what each jump adds per unit, and weights of its size."""
    by = design.hat(HALF_SPANS[places.span], SPAN_DEGREE)
    hat = design.hat(design.band_half_span(places.span), BAND_DEGREE)
    hat, by = (with_jumps(each, places.given, variance, by) for each in (hat, by))
    steps = regressors(places.jumps, len(by))
    left = steps - by @ steps
    scaled = left / variance[:, None]
    sizes = (scaled - by.T @ scaled) / (scaled * left).sum(axis=0)
    return hat, steps - hat @ steps, sizes


def _curves(
    hat: Floats, steps: Floats, sizes: Floats, y: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Return the curves with each of the jumps and their standard errors, as columns."""
    spread = variance[:, None] * sizes
    fits = (hat @ y)[:, None] + steps * (y @ sizes)
    square = (np.square(hat) @ variance)[:, None] + 2 * steps * (hat @ spread)
    square = square + steps**2 * (sizes * spread).sum(axis=0)
    return fits, np.sqrt(np.maximum(square, 0.0))


def _widened(
    bands: Bands, curves: list[tuple[Floats, Floats]], trust: Floats, *, moved: bool
) -> Bands:
    """Return bands that contain those of other possible jumps, as far as each is trusted.

    A jump that is not certain widens the simultaneous band alone: most places are far from it.
    """
    gap, se = curves[GAP]
    reach, z, inside = trust * se, bands.pointwise_critical, bands.searched
    low = np.minimum(bands.low, (gap - bands.critical * reach).min(axis=1))
    high = np.maximum(bands.high, (gap + bands.critical * reach).max(axis=1))
    low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
    size, sure = np.abs(gap), (np.abs(gap) - z * se)[inside]
    worst = np.flatnonzero(inside)[sure.argmax(axis=0)], np.arange(len(trust))
    near = size[worst] - size <= bands.critical * np.hypot(se, se[worst])
    names = ("error_se", "predicted_error_se", "gap_se")
    changed: dict[str, Any] = {}
    for name, (fits, its_se) in zip(names, curves, strict=True):
        if moved:
            apart = np.abs(fits - getattr(bands, name.removesuffix("_se"))[:, None]) / z
            changed[name] = np.maximum(getattr(bands, name), (apart + its_se).max(axis=1))
    return replace(
        bands,
        **changed,
        low=low,
        high=high,
        candidates=bands.candidates | (inside & near[:, trust == 1].any(axis=1)),
        worst_low=max(0.0, float(np.maximum(low, -high)[inside].max())),
        worst_high=min(1.0, max(bands.worst_high, float((size + z * reach)[inside].max()))),
    )


def _evened(bands: Bands, even: Floats, mean: Floats) -> Bands:
    """Smooth what the pointwise bands of error and predicted error follow: noise is no shape."""
    names = ("error", "predicted_error")
    changed = {name: even @ getattr(bands, name) for name in names}
    changed |= {f"{name}_se": mean @ getattr(bands, f"{name}_se") for name in names}
    return replace(bands, **changed)


def _breaks(jumps: tuple[Jump, ...]) -> tuple[int, ...]:
    return tuple(sorted(one.cell for one in jumps if not one.reach))


def span_bands(
    cells: Cells,
    *,
    span: float,
    degree: int = 2,
    level: float = 0.95,
    trim: float = TRIM,
) -> Bands:
    """Compute bands around a local polynomial with a given span.

    As in the paper (span 0.9, degree 2). The bands are for the *smoothed* truth: they do not
    include the bias of a wide span.

    Parameters
    ----------
    cells : Cells
        Sums along the variable.
    span : float
        Share of the rows in each neighbourhood.
    degree : int
        Degree of the local polynomial.
    level, trim : float
        As in :func:`curve_bands`.
    """
    hat, window = (
        smoother_weights(cells.x, cells.x, span=span, degree=d, weight=cells.weight, counts=cells.n)
        for d in (degree, 0)
    )
    responses = _responses(cells)
    rank = (np.cumsum(cells.weight) - cells.weight / 2) / cells.weight.sum()
    inside = (rank >= trim) & (rank <= 1 - trim)
    return _bands(cells, responses, hat, window, hat @ responses, span / 2, inside, None, level)


def level_bands(cells: Cells, *, level: float = 0.95) -> Bands:
    """Compute bands for the levels of a categorical variable, or for few distinct values.

    Each level is estimated separately; the critical value is for the maximum over the levels.

    Parameters
    ----------
    cells : Cells
        Sums of each level that has rows.
    level : float
        Confidence level.
    """
    responses = _responses(cells)
    hat = np.eye(len(cells))
    inside = np.ones(len(cells), bool)
    return _bands(cells, responses, hat, hat, responses, 0.0, inside, len(cells) - 1.0, level)


def lines(
    cells: Cells,
    *,
    span: float | None = None,
    degree: int = 2,
    trim: float = TRIM,
) -> Bands:
    """Return the smooth lines alone: all bands are NaN, and the worst place has no rivals.

    Parameters
    ----------
    cells, span, degree, trim
        As in :func:`span_bands`; without a span the lines of :func:`curve_bands`.
    """
    cells = cells.filled()
    at = cells.coarsen(MOST_CELLS)
    rank = (np.cumsum(at.weight) - at.weight / 2) / at.weight.sum()
    breaks: tuple[int, ...] = ()
    if span is not None:
        weights = smoother_weights(
            cells.x, at.x, span=span, degree=degree, weight=cells.weight, counts=cells.n
        )
        fit, half_span = weights @ _responses(cells), span / 2
    elif len(at) <= FEW_LEVELS and at.n.sum() >= ROWS_PER_LEVEL * len(at):
        fit, half_span, trim = _responses(at), 0.0, 0.0
    else:
        design = _Design(at.n)
        rank = design.x
        variance, search = design.find_jumps(at)
        half_span, breaks = HALF_SPANS[search.span], _breaks(search.certain)
        hat = design.hat(half_span, SPAN_DEGREE)
        fit = with_jumps(hat, search.certain, variance, hat) @ _responses(at)
    inside = (rank >= trim) & (rank <= 1 - trim)
    inside |= not inside.any()
    worst = int(np.argmax(np.where(inside, np.abs(fit[:, 2]), -1.0)))
    none = ("error_se", "predicted_error_se", "gap_se", "low", "high")
    unknown = ("pointwise_critical", "critical", "worst_low", "worst_high", "level", "dof")
    missing: dict[str, Any] = dict.fromkeys(none, np.full(len(at), np.nan))
    missing |= dict.fromkeys(unknown, np.nan)
    return Bands(
        cells=at,
        x=at.x,
        error=fit[:, 0],
        predicted_error=fit[:, 1],
        gap=fit[:, 2],
        smooth_error=fit[:, 0],
        smooth_predicted_error=fit[:, 1],
        worst=worst,
        searched=inside,
        candidates=np.arange(len(at)) == worst,
        half_span=half_span,
        breaks=breaks,
        **missing,
    )


def _responses(cells: Cells) -> Floats:
    """Error, predicted error and gap of the cells, as columns."""
    return np.column_stack([1 - cells.hit_rate, 1 - cells.mean_score, cells.gap])


def _bands(
    cells: Cells,
    responses: Floats,
    hat: Floats,
    window: Floats,
    smooth: Floats,
    half_span: float,
    inside: Bools,
    independent_points: float | None,
    level: float,
    margin: float = 0.0,
) -> Bands:
    """Compute bands from a linear smoother and the variances of the cells."""
    fit = hat @ responses
    variance = [cell_variance(cells, fit[:, i], hat, window, i) for i in range(3)]
    factor, dof = hat * np.sqrt(variance[GAP]), np.inf
    if cells.group_weight is None:
        se = [np.sqrt(np.square(hat) @ variance[i]) for i in (ERROR, PREDICTED_ERROR)]
        se.append(np.sqrt(np.einsum("ij,ij->i", factor, factor)))
    else:
        dof = max(effective_groups(cells.group_weight, cells.weight, hat) - 1, 1.0)
        factors = [
            group_factor(cells, fit[:, i], hat, i, hat * np.sqrt(variance[i])) for i in range(3)
        ]
        se = [np.sqrt(np.einsum("ij,ij->i", one, one)) for one in factors]
        factor = factors[GAP]
    gap, gap_se = fit[:, GAP], se[GAP]
    length = None
    if independent_points is None and (gap_se > 0).all():
        # One path for the whole curve and for the part that is searched, which is a run of cells.
        angles = path_angles(factor)
        length = float(angles.sum())
        independent_points = float(angles[inside[:-1] & inside[1:]].sum()) / np.pi
    critical = simultaneous_critical(factor, length=length, level=level, dof=dof)
    reach = critical * gap_se
    worst, candidates = worst_candidates(
        gap,
        factor,
        inside,
        independent_points=independent_points,
        margin=margin,
        level=level,
        dof=dof,
    )
    pointwise = student_quantile(0.5 + level / 2, dof)
    size = np.abs(gap)
    return Bands(
        cells=cells,
        x=cells.x,
        error=fit[:, 0],
        predicted_error=fit[:, 1],
        gap=gap,
        error_se=se[0],
        predicted_error_se=se[1],
        gap_se=gap_se,
        pointwise_critical=pointwise,
        critical=critical,
        low=np.maximum(gap - reach, -1.0),
        high=np.minimum(gap + reach, 1.0),
        smooth_error=smooth[:, 0],
        smooth_predicted_error=smooth[:, 1],
        worst=worst,
        searched=inside,
        candidates=candidates,
        worst_low=float(max(0.0, np.max((size - reach)[inside]))),
        worst_high=float(min(1.0, np.max((size + pointwise * gap_se)[inside]))),
        half_span=half_span,
        level=level,
        dof=dof,
    )


class _Design:
    """Smoothers over cells along the ranks; those of even cells are cached for other variables."""

    def __init__(self, counts: Floats) -> None:
        self.even = bool(counts.max() <= EVEN_COUNTS * counts.min())
        self.counts = counts
        ends = np.cumsum(counts)
        self.x = _even_ranks(len(counts)) if self.even else (ends - counts / 2) / ends[-1]

    def hat(self, half_span: float, degree: int) -> Floats:
        """Return the smoother weights at the cells."""
        if self.even:
            return _even_hat(len(self.x), half_span, degree)
        return _rank_hat(self.x, half_span, degree, self.counts)

    def band_half_span(self, span: int) -> float:
        """Return the half-span of the band of a curve, narrower than that of the curve."""
        narrow = HALF_SPANS[max(span - NARROWER_BY, 0)]
        return min(max(narrow, LEAST_CELLS / len(self.x)), WIDEST)

    def find_jumps(self, cells: Cells) -> tuple[Floats, JumpSearch]:
        """Return the variances of the cells, and the jumps that the gap may have."""
        best = self.best_half_span(cells.gap)
        hats = [self.hat(half_span, SPAN_DEGREE) for half_span in HALF_SPANS[best:]]
        window = self.hat(WIDEST_WINDOW, 0)
        variance = cell_variance(cells, hats[0] @ cells.gap, hats[0], window, GAP)
        found = find_jumps(cells.gap, variance, hats)
        possible = [one._replace(span=best + one.span) for one in found.possible]
        return variance, JumpSearch(found.certain, best + found.span, possible)

    def best_half_span(self, y: Floats) -> int:
        """Return the index of the half-span with the lowest cross-validation score."""
        if self.even:
            stack, trace = _even_stack(len(y))
            residuals = y - stack @ y
        else:
            hats = [self.hat(half_span, SPAN_DEGREE) for half_span in HALF_SPANS]
            trace = np.array([np.trace(hat) for hat in hats])
            residuals = np.array([y - hat @ y for hat in hats])
        free = 1 - trace / len(y)
        squares = residuals**2 @ self.counts
        score = np.where(
            free > LEAST_FREEDOM, squares / np.maximum(free, LEAST_FREEDOM) ** 2, np.inf
        )
        return int(np.argmin(score)) if np.isfinite(score).any() else len(HALF_SPANS) - 1


def _rank_hat(x: Floats, half_span: float, degree: int, counts: Floats | None) -> Floats:
    """Return the smoother over the nearest rows, all on one side at the ends of the ranks."""
    reach = np.maximum(half_span, 2 * half_span - np.minimum(x, 1 - x))
    # Where v has a tail, the gap bends sharply along the ranks, but not along their normal scores.
    scores = ndtri if degree == BAND_DEGREE else None
    return smoother_weights(x, x, bandwidth=reach, degree=degree, counts=counts, transform=scores)


def _even_ranks(k: int) -> Floats:
    return (np.arange(k) + 0.5) / k


@lru_cache(maxsize=64)
def _even_hat(k: int, half_span: float, degree: int) -> Floats:
    hat = _rank_hat(_even_ranks(k), half_span, degree, None)
    hat.flags.writeable = False
    return hat


@lru_cache(maxsize=4)
def _even_stack(k: int) -> tuple[Floats, Floats]:
    stack = np.stack([_even_hat(k, half_span, SPAN_DEGREE) for half_span in HALF_SPANS])
    return stack, np.trace(stack, axis1=1, axis2=2)


def _two_tails(c: float, dof: float) -> float:
    return 2 * float(ndtr(-c) if math.isinf(dof) else stdtr(dof, -c))


def path_length(factor: Floats) -> float:
    r"""Length of the curve's path on the unit sphere, :math:`\kappa_0`.

    With :math:`T(x)` the row of the factor at x divided by its length,
    :math:`\kappa_0 = \int \|T'(x)\| dx`, here the sum of the angles between neighbours. The angle
    between independent points is :math:`\pi / 2`.

    Examples
    --------
    >>> round(path_length(np.eye(3)) / np.pi, 6)
    1.0
    """
    norm = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    return float(path_angles(factor[norm > 0]).sum())


def path_angles(factor: Floats) -> Floats:
    """Return the angles between neighbouring points, none of which may have variance 0."""
    norm = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    # For small angles the chord is more accurate than the cosine.
    step = np.diff(factor / norm[:, None], axis=0)
    chord = np.sqrt(np.einsum("ij,ij->i", step, step))
    angles: Floats = 2 * np.arcsin(np.minimum(chord / 2, 1.0))
    return angles


def simultaneous_critical(
    factor: Floats, *, length: float | None = None, level: float = 0.95, dof: float = math.inf
) -> float:
    r"""Critical value c with :math:`P(\sup_x |\hat g(x) - g(x)| / se(x) \le c) \ge level`.

    The smaller of two bounds. The tube formula solves

    .. math:: \frac{\kappa_0}{\pi}\left(1 + \frac{c^2}{\nu}\right)^{-\nu/2}
              + P(|t_\nu| > c) = 1 - level;

    Šidák's inequality treats the points as independent, which suits levels of a category.

    Parameters
    ----------
    factor : ndarray of shape (k, r)
        Factor of the covariance along the curve.
    length : float, optional
        Its :func:`path_length`, where that is known.
    level : float
        Confidence level.
    dof : float
        Degrees of freedom of the standard errors.

    References
    ----------
    Sun, J. and Loader, C. R. (1994). Simultaneous confidence bands for linear regression and
    smoothing. Annals of Statistics 22, 1328-1345.
    Šidák, Z. (1967). Rectangular confidence regions for the means of multivariate normal
    distributions. JASA 62, 626-633.

    Examples
    --------
    >>> round(simultaneous_critical(np.eye(1)), 4), round(simultaneous_critical(np.eye(10)), 4)
    (1.96, 2.7996)
    """
    points = max(1, int(np.count_nonzero(np.einsum("ij,ij->i", factor, factor))))
    sidak = student_quantile(0.5 + level ** (1 / points) / 2, dof)
    share = (path_length(factor) if length is None else length) / math.pi
    alpha = 1 - level
    low, high = student_quantile(0.5 + level / 2, dof), sidak
    for _ in range(BISECTIONS):
        c = (low + high) / 2
        tail = math.exp(-c * c / 2) if math.isinf(dof) else (1 + c * c / dof) ** (-dof / 2)
        if share * tail + _two_tails(c, dof) > alpha:
            low = c
        else:
            high = c
    return high


def worst_candidates(
    gap: Floats,
    factor: Floats,
    inside: Bools | None = None,
    *,
    independent_points: float | None = None,
    margin: float = 0.0,
    level: float = 0.95,
    dof: float = math.inf,
) -> tuple[int, Bools]:
    r"""Find the point with the largest absolute gap, and all points that could be it.

    Every v with :math:`|\hat g(\hat v^*)| - |\hat g(v)| \le z \cdot sd` of that difference is
    kept. The largest of `independent_points` independent differences exceeds z in 1 − level of
    all samples.

    Parameters
    ----------
    gap : ndarray of shape (k,)
        Estimates.
    factor : ndarray of shape (k, r)
        Factor of their covariance.
    inside : ndarray of bool, shape (k,), optional
        The points to search.
    independent_points : float, optional
        The number of points that vary independently, by default :math:`\kappa_0 / \pi`, which
        suits a smooth curve.
    margin : float
        Standard errors that are subtracted from the absolute gaps before the largest is taken, so
        that a noisy end of a curve is not the worst point for its noise.
    level, dof
        As in :func:`simultaneous_critical`.

    Returns
    -------
    int, ndarray of bool
        The worst point, and a confidence set for the true one.

    Examples
    --------
    >>> worst, kept = worst_candidates(np.array([0.1, -0.5, 0.45]), 0.05 * np.eye(3))
    >>> worst, kept.tolist()
    (1, [False, True, True])
    """
    if inside is None or not inside.any():
        inside = np.ones(len(gap), bool)
    size = np.abs(gap)
    sure = size - margin * np.sqrt(np.einsum("ij,ij->i", factor, factor))
    worst = int(np.argmax(np.where(inside, sure, -np.inf)))
    signed = np.where(gap < 0, -1.0, 1.0)[:, None] * factor
    apart = signed[worst] - signed
    sd = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    most = max(np.count_nonzero(inside) - 1.0, 1.0)
    if independent_points is None:
        independent_points = path_length(factor[inside]) / math.pi
    z = student_quantile(level ** (1 / min(max(independent_points, 1.0), most)), dof)
    return worst, inside & (size[worst] - size <= z * sd)


def _squares(cells: Cells, fit: Floats, response: int) -> Floats:
    """Return Σw²(response − fit)² over the rows of each cell."""
    if response == GAP:
        first, second = cells.score2 - cells.hit2, cells.square2
    elif response == ERROR:
        first = second = cells.weight2 - cells.hit2
    else:
        first = cells.weight2 - cells.score2
        second = first - cells.null2
    out: Floats = np.maximum(second - 2 * fit * first + fit**2 * cells.weight2, 0.0)
    return out


def _freedom(hat: Floats, n: Floats) -> Floats:
    """Return the share of a row's variance that is left in its residual."""
    used = (2 * np.diag(hat) - np.einsum("ij,ij->i", hat, hat)) / n
    out: Floats = np.maximum(1 - used, LEAST_FREEDOM)
    return out


def _fitted_variance(cells: Cells, fit: Floats, response: int) -> Floats:
    """Return the variance of a row's outcome if the fit is right: of a hit, or of the gap."""
    null = np.maximum(cells.null2 / cells.weight2, LEAST_NULL)
    if response == ERROR:
        return np.maximum(fit * (1 - fit), LEAST_MODEL * null)
    middle = cells.score2 / cells.weight2
    return np.maximum(null + fit * (2 * middle - 1) - fit**2, LEAST_MODEL * null)


def cell_variance(cells: Cells, fit: Floats, hat: Floats, window: Floats, response: int) -> Floats:
    r"""Return the variance of the cell means of a response for independent rows.

    The squared residuals of the rows are averaged over a window of cells. Where the gap changes
    within a window, so does the variance of hits: scores of .99 with hit rates of .85 at the end
    of a variable vary thirteen times as much as the calibrated scores beside them. The variances
    of error and gap are therefore at least those of the fitted curve, scaled to the squared
    residuals of the window. They are also at least those of calibrated scores,
    :math:`s(1 - s)`, and four rows, half of them hits, are added; otherwise the variance would be
    0 in a window that contains only hits.

    Parameters
    ----------
    cells : Cells
        The sums.
    fit : ndarray of shape (k,)
        Fitted response at the cells.
    hat : ndarray of shape (k, k)
        The weights of its smoother.
    window : ndarray of shape (k, k)
        Weights of the average, rows summing to one; the identity for levels.
    response : int
        ``ERROR``, ``PREDICTED_ERROR`` or ``GAP``.

    References
    ----------
    Agresti, A. and Coull, B. A. (1998). Approximate is better than "exact" for interval
    estimation of binomial proportions. American Statistician 52, 119-126.
    """
    outcome = response != PREDICTED_ERROR
    squares = _squares(cells, fit, response)
    scale = window @ cells.weight2
    around = window @ (squares / _freedom(hat, cells.n))
    unit = around / scale
    if outcome:
        model = _fitted_variance(cells, fit, response)
        unit = np.maximum(unit, model * around / (window @ (model * cells.weight2)))
        unit = np.maximum(unit, window @ cells.null2 / scale)
        rows = (window @ cells.n) / np.einsum("ij,ij->i", window, window)
        unit = (rows * unit + PRIOR_ROWS / 4) / (rows + PRIOR_ROWS)
    return unit * cells.weight2 / cells.weight**2


def group_factor(
    cells: Cells, fit: Floats, hat: Floats, response: int, independent: Floats
) -> Floats:
    r"""Return a factor of the covariance of the fit if rows of a group depend on each other.

    It has one column per bucket of groups, :math:`u_b(x) = \sum_j l_j(x) R_{jb} / W_j`, where
    :math:`R_{jb}` is the sum of the bucket's weighted residuals in cell j. If the resulting
    variance is below that of independent rows, further columns add the difference.

    Parameters
    ----------
    cells, fit, hat, response
        As in :func:`cell_variance`; the cells must have sums by bucket.
    independent : ndarray of shape (k, k)
        Factor under independent rows.
    """
    w, hit, score = cells.group_weight, cells.group_hit, cells.group_score
    assert w is not None and hit is not None and score is not None
    total = {ERROR: lambda: w - hit, PREDICTED_ERROR: lambda: w - score, GAP: lambda: score - hit}
    residual = total[response]() - fit[:, None] * w
    residual /= (cells.weight * np.sqrt(_freedom(hat, cells.n)))[:, None]
    filled = w.sum(0) > 0
    n_groups = int(np.count_nonzero(filled))
    factor = hat @ residual[:, filled] * np.sqrt(n_groups / max(n_groups - 1, 1))
    least = np.einsum("ij,ij->i", independent, independent)
    variance = np.einsum("ij,ij->i", factor, factor)
    shortfall = np.sqrt(np.maximum(1 - variance / np.where(least > 0, least, 1.0), 0.0))
    return np.hstack([factor, shortfall[:, None] * independent])


def effective_groups(group_w: Floats, w: Floats, hat: Floats) -> float:
    r"""Return the effective number of groups in the fit at a typical point.

    With :math:`a_b(x) = \sum_j l_j(x) W_{jb} / W_j` the share of bucket b,
    the median over x of :math:`(\sum_b a_b^2)^2 / \sum_b a_b^4`.

    Examples
    --------
    >>> effective_groups(np.ones((2, 5)), np.full(2, 5.0), np.eye(2))
    5.0
    """
    share = (hat @ (group_w / w[:, None])) ** 2
    return float(np.median(share.sum(1) ** 2 / np.maximum((share**2).sum(1), TINY)))
