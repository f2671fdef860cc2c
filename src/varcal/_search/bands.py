"""The gap over the cells of two variables, with a simultaneous band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._inference.bands import GAP, cell_variance, effective_groups, group_factor
from varcal._search.axis import Axis
from varcal._sums.profile import cells_of
from varcal._sums.stats import BinnedStats

#: Half-widths, as shares of the rows, from which cross-validation chooses.
HALF_WIDTHS = (0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4)
#: Degree of the polynomials that choose the half-width, and of those of the surface. The bias of
#: the latter is small beside its standard error, so that coverage does not fall with more rows.
CHOICE_DEGREE, DEGREE = 1, 2
#: The surface's half-width as part of the chosen one. With 4/5, a jump along a diagonal was covered
#: in 8 of 10 samples of 50,000 rows, with 2/3 in all, at a band that is up to an eighth wider.
NARROWER = 0.67
#: It is not made narrower than this, which is little more than two cells.
NARROW = 0.1
#: The widest half-width of the surface. Without it, cross-validation smooths away a narrow bump
#: that few rows cannot show: 3 of 12 samples of 5,000 rows were covered, with it all of them.
WIDEST = 0.27
#: Cross-validation ignores half-widths with a smaller share of residual degrees of freedom.
LEAST_FREEDOM = 0.1
#: Smaller eigenvalues of a local fit, as part of the largest, count as 0: fewer distinct places
#: than coefficients.
_SINGULAR = 1e-8


def hat_matrix(first: Axis, second: Axis, weight: Floats, half_width: float, degree: int) -> Floats:
    """Return the weights of all cells in the fit at each cell, both in row-major order.

    Parameters
    ----------
    first, second : Axis
        The variables.
    weight : ndarray of shape (m1, m2)
        Weight of each cell.
    half_width : float
        Share of the rows to either side along each variable.
    degree : int
        Degree of the local polynomial.

    Examples
    --------
    >>> place = (np.arange(4) + 0.5) / 4
    >>> one = Axis("a", "numeric", ("",) * 4, np.arange(5.0), place, np.full(4, 4))
    >>> hat = hat_matrix(one, one, np.ones((4, 4)), 0.8, 1)
    >>> plane = np.add.outer(2 * place, -3 * place).ravel()
    >>> bool(np.allclose(hat @ plane, plane))
    True
    """
    across = [_kernel(axis, half_width) for axis in (first, second)]
    powers = [
        [kernel * distance**power for power in range(2 * degree + 1)] for kernel, distance in across
    ]
    terms = [(a, b) for a in range(degree + 1) for b in range(degree + 1 - a)]
    moments = {
        (a, b): powers[0][a] @ weight @ powers[1][b].T
        for a in range(2 * degree + 1)
        for b in range(2 * degree + 1 - a)
    }
    rows = [[moments[a + c, b + d] for c, d in terms] for a, b in terms]
    gram = np.moveaxis(np.array(rows), (0, 1), (2, 3))
    value, vector = np.linalg.eigh(gram)
    usable = value > _SINGULAR * value[..., -1:]
    inverse = np.where(usable, 1 / np.where(usable, value, 1.0), 0.0)
    # The fitted value is the constant term, the first coefficient.
    coefficient = np.einsum("ijk,ijtk,ijk->ijt", vector[:, :, 0], vector, inverse)
    shape = (*weight.shape, *weight.shape)
    hat = np.zeros(shape)
    for k, (a, b) in enumerate(terms):
        hat += (
            coefficient[:, :, k, None, None]
            * powers[0][a][:, None, :, None]
            * powers[1][b][None, :, None, :]
        )
    hat *= weight
    return hat.reshape(weight.size, weight.size)


def best_half_width(first: Axis, second: Axis, weight: Floats, response: Floats) -> float:
    """Choose the half-width of a surface by generalized cross-validation of local lines.

    Parameters
    ----------
    first, second, weight
        As in `hat_matrix`.
    response : ndarray of shape (m1 m2,)
        The mean of each cell; any number where the weight is 0.
    """
    mass = weight.ravel()
    filled = int((mass > 0).sum())
    scores = []
    for half_width in HALF_WIDTHS:
        hat = hat_matrix(first, second, weight, half_width, CHOICE_DEGREE)
        free = 1 - float(np.diag(hat).sum()) / filled
        loss = float((mass * (response - hat @ response) ** 2).sum())
        scores.append(loss / free**2 if free >= LEAST_FREEDOM else np.inf)
    best = HALF_WIDTHS[int(np.argmin(scores))]
    return min(max(NARROWER * best, min(best, NARROW)), WIDEST)


def _kernel(axis: Axis, half_width: float) -> tuple[Floats, Floats]:
    """Return tricube weights between cells, and distances in half-widths."""
    alone = axis.alone
    place = np.where(alone, 0.0, axis.position)
    distance = (place[None, :] - place[:, None]) / half_width
    kernel = np.clip(1 - np.abs(distance) ** 3, 0.0, None) ** 3
    apart = alone[:, None] | alone[None, :]
    kernel[apart] = distance[apart] = 0.0
    np.fill_diagonal(kernel, 1.0)
    return kernel, distance


#: Draws of the largest deviation anywhere; its 95 % point is then known to about 0.02.
DRAWS = 1000
#: A cell is judged if its estimate rests on at least this many rows.
LEAST_ROWS = 20
#: The band is wider by this where cells are smoothed, for the bias that is left: without it a wave
#: was covered in 85 % of 60 samples of 50,000 rows, and a jump along a diagonal in 82 %; with 1.08
#: the jump was covered in 93 %, with this in 97 %.
WIDER = 1.12
#: The half-width of the window over which squared residuals are averaged is at least this.
LEAST_WINDOW = 0.2


@dataclass(frozen=True, eq=False)
class SurfaceBand:
    """The smoothed gap of each cell; arrays have the shape (m1, m2).

    Attributes
    ----------
    gap, se : ndarray
        Smoothed gap and its standard error, NaN where there are no rows.
    judged : ndarray of bool
        Cells whose estimate rests on enough rows.
    critical : float
        Half-width of the simultaneous band over the judged cells, in standard errors.
    p_value : float
        How likely a deviation as large would be anywhere if the gap were zero everywhere.
    half_width : float
        Half-width of the smoother.
    """

    gap: Floats
    se: Floats
    judged: Bools
    critical: float
    p_value: float
    half_width: float


def surface_band(
    stats: BinnedStats, first: Axis, second: Axis, *, level: float, random_state: int
) -> SurfaceBand:
    """Smooth the gaps of cells and find the band that holds for all of them at once."""
    shape = len(first), len(second)
    filled = stats.total("weight") > 0
    weight = stats.total("weight").reshape(shape)
    raw = np.where(filled, np.nan_to_num(stats.gap), 0.0)
    half_width = best_half_width(first, second, weight, raw)
    hat = hat_matrix(first, second, weight, half_width, DEGREE)[np.ix_(filled, filled)]
    window = hat_matrix(first, second, weight, max(half_width, LEAST_WINDOW), 0)
    window = window[np.ix_(filled, filled)]
    cells = cells_of(stats, filled, np.flatnonzero(filled).astype(float))
    fit = hat @ cells.gap
    # `cell_variance` takes a window over sums; that of `hat_matrix` is over means.
    over_sums = window / cells.weight
    over_sums /= over_sums.sum(1, keepdims=True)
    factor = hat * np.sqrt(cell_variance(cells, fit, hat, over_sums, GAP))
    dof = np.inf
    if cells.group_weight is not None:
        dof = max(effective_groups(cells.group_weight, cells.weight, hat) - 1, 1.0)
        factor = group_factor(cells, fit, hat, GAP, factor)
    se = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    rows = cells.weight**2 / cells.weight2
    judged = (1 / np.maximum((hat**2 / rows).sum(1), 1e-300) >= LEAST_ROWS) & (se > 0)
    largest = _largest_deviations(factor[judged], se[judged], dof, random_state)
    wider = 1.0 if first.alone.all() and second.alone.all() else WIDER
    critical = wider * float(np.quantile(largest, level)) if judged.any() else np.nan
    observed = float(np.max(np.abs(fit[judged]) / se[judged])) / wider if judged.any() else 0.0
    p_value = (1 + int((largest >= observed).sum())) / (1 + len(largest))

    def spread(values: Floats, empty: float = np.nan) -> Floats:
        whole = np.full(len(filled), empty)
        whole[filled] = values
        return whole.reshape(shape)

    return SurfaceBand(
        gap=spread(np.clip(fit, -1.0, 1.0)),
        se=spread(se),
        judged=spread(judged.astype(float), 0.0) > 0,
        critical=critical,
        p_value=p_value if judged.any() else 1.0,
        half_width=half_width,
    )


def _largest_deviations(factor: Floats, se: Floats, dof: float, random_state: int) -> Floats:
    """Draw the largest standardized deviation over all cells."""
    rng = np.random.default_rng(random_state)
    drawn = np.abs((factor / se[:, None]) @ rng.standard_normal((factor.shape[1], DRAWS)))
    largest = drawn.max(axis=0, initial=0.0)
    if np.isfinite(dof):
        largest = largest * np.sqrt(dof / rng.chisquare(dof, DRAWS))
    found: Floats = largest
    return found
