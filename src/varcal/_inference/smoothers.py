"""Smoothers of cells, as matrices of weights: local polynomials, and breaks of a curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal._arrays import Floats

#: Numbers in one working array, which then stays in the processor's cache.
_BLOCK = 1 << 15
#: A polynomial with a smaller norm depends on rows with almost no weight, and is dropped.
_RANK = 1e-4
#: Added before the number of nearest rows is rounded down, as in the LOESS programs.
_ROUNDING = 1e-5
#: If a kernel reaches no cell, it is widened to this many times the distance to the nearest.
_BEYOND_NEAREST = 1.01
#: The least half-width of a kernel, to avoid division by 0.
_LEAST_REACH = 1e-300
#: The most jumps of a curve.
MOST_JUMPS = 3
#: A jump has at least this many cells on each side.
LEAST_BESIDE = 4
#: A sharp change within this many cells on each side of its middle is a ramp; 0 is a jump.
RAMPS = (0, 2, 5)
#: A curve with a jump fits better, in units of chi-square less twice the parameters: for curves
#: without it to be dropped, and for the whole band with the jump to count.
CERTAIN, LIKELY = 20.0, 10.0
#: Where nothing shows a jump, the part of the half-width of its band that counts. Of jumps that
#: the rows hardly show, a smooth band misses a third.
POSSIBLE = 0.7
#: Places that fit worse than the best by at most this are possible as well.
AS_GOOD = 8.0


def nearest_bandwidth(
    x: ArrayLike, at: ArrayLike, span: float, *, counts: ArrayLike | None = None
) -> Floats:
    r"""Distance from each point to its :math:`\lfloor n\,span + 10^{-5}\rfloor`-th nearest row.

    For a span above 1 it is the distance to the farthest row times :math:`\sqrt{span}`, as in the
    LOESS programs.

    Parameters
    ----------
    x : array-like of shape (k,)
        Positions of the cells, ascending.
    at : array-like of shape (m,)
        Points.
    span : float
        Share of the rows in a neighbourhood.
    counts : array-like of int, shape (k,), optional
        Rows in each cell, 1 by default.

    Examples
    --------
    >>> nearest_bandwidth([0.0, 1.0, 2.0, 10.0], [0.0, 9.0], 0.5)
    array([1., 7.])
    """
    x = np.asarray(x, float)
    at = np.asarray(at, float)
    rows = np.ones(len(x), np.int64) if counts is None else np.asarray(counts).astype(np.int64)
    ends = np.cumsum(rows)
    n = int(ends[-1])
    near = min(n, max(1, int(np.floor(n * span + _ROUNDING))))
    flat = np.repeat(x, rows) if n <= _BLOCK else None

    def row(index: NDArray[np.int64]) -> Floats:
        if flat is not None:
            return flat[index]
        return x[np.searchsorted(ends, index, side="right")]

    # The nearest rows are consecutive: find the first of them by bisection.
    start = np.zeros(len(at), np.int64)
    left = n - near
    while left > 0:
        half = (left + 1) // 2
        probe = start + half - 1
        beyond = row(probe) + row(probe + near) < 2 * at
        start = np.where(beyond, start + half, start)
        left -= half
    reach = np.maximum(at - row(start), row(start + near - 1) - at)
    out: Floats = reach * np.sqrt(max(1.0, span))
    return out


def smoother_weights(
    x: ArrayLike,
    at: ArrayLike,
    *,
    span: float | None = None,
    bandwidth: ArrayLike | None = None,
    degree: int = 2,
    weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    transform: Callable[[Floats], Floats] | None = None,
) -> Floats:
    r"""Return the weights of the local polynomial: the fit at ``at[i]`` is ``weights[i] @ y``.

    In :math:`u = (x - x_0)/h` with tricube weights :math:`k = w (1 - |u|^3)^3`, and polynomials
    :math:`p_0, p_1, \dots` orthonormal under k, :math:`l_j = k_j \sum_d p_d(0)\,p_d(u_j)`. The
    polynomials come from their three-term recurrence, which is more stable than normal
    equations. If a neighbourhood has too few distinct values, the degree is lowered there.

    Parameters
    ----------
    x : array-like of shape (k,)
        Positions of the cells, ascending.
    at : array-like of shape (m,)
        Where to fit.
    span : float, optional
        Share of the rows in a neighbourhood. Give either this or `bandwidth`.
    bandwidth : float or array-like of shape (m,), optional
        Half-width of the kernel.
    degree : int
        Degree of the polynomial.
    weight : array-like of shape (k,), optional
        Sum of weights in each cell, `counts` by default.
    counts : array-like of int, shape (k,), optional
        Rows in each cell, 1 by default.
    transform : function, optional
        Increasing function of the positions in which the polynomial is taken. Neighbourhoods and
        kernel weights stay those of `x`.

    References
    ----------
    Cleveland, W. S. (1979). Robust locally weighted regression and smoothing scatterplots.
    JASA 74, 829-836.
    Forsythe, G. E. (1957). Generation and use of orthogonal polynomials for data-fitting.
    Fan, J. and Gijbels, I. (1996). Local Polynomial Modelling and Its Applications.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(9.0)
    >>> weights = smoother_weights(x, [2.0, 3.5], span=0.9)
    >>> np.round(weights @ x**2, 10)
    array([ 4.  , 12.25])
    """
    x = np.asarray(x, float)
    at = np.atleast_1d(np.asarray(at, float))
    reach = _bandwidth(x, at, span, bandwidth, counts)
    if weight is None:
        weight = counts
    root = None if weight is None else np.sqrt(np.asarray(weight, float))
    axis, here_on_axis = (x, at) if transform is None else (transform(x), transform(at))
    out = np.zeros((len(at), len(x)))
    step = max(1, min(max(32, _BLOCK // 4 // len(x)), _BLOCK // len(x)))
    for start in range(0, len(at), step):
        rows = slice(start, start + step)
        here, wide = at[rows], reach[rows]
        cells = slice(
            np.searchsorted(x, (here - wide).min()),
            np.searchsorted(x, (here + wide).max(), side="right"),
        )
        share = None if root is None else root[cells]
        with np.errstate(over="ignore"):
            u = np.clip((x[cells] - here[:, None]) / wide[:, None], -1.0, 1.0)
        t = u
        if transform is not None:
            apart = axis[cells] - here_on_axis[rows, None]
            unit = np.max(np.abs(apart), axis=1, where=np.abs(u) < 1, initial=0.0)[:, None]
            t = apart / np.where(unit > 0, unit, 1.0)
        out[rows, cells] = _block(u, t, share, degree)
    return out


def _bandwidth(
    x: Floats,
    at: Floats,
    span: float | None,
    bandwidth: ArrayLike | None,
    counts: ArrayLike | None,
) -> Floats:
    """Return half-widths that are positive and reach at least one cell each."""
    if span is not None:
        reach = nearest_bandwidth(x, at, span, counts=counts)
    else:
        reach = np.broadcast_to(np.asarray(bandwidth, float), at.shape).copy()
    right = np.searchsorted(x, at)
    before, after = x[np.maximum(right - 1, 0)], x[np.minimum(right, len(x) - 1)]
    nearest = np.minimum(np.abs(at - before), np.abs(at - after))
    alone = reach <= nearest
    if np.any(alone):
        # At a tied value only that value counts; between tied values, the nearest cells do.
        reach[alone] = _BEYOND_NEAREST * nearest[alone]
        for i in np.flatnonzero(alone & (nearest == 0)):
            distance = np.abs(x - at[i])
            reach[i] = np.min(distance[distance > 0], initial=1.0)
    out: Floats = np.maximum(reach, _LEAST_REACH)
    return out


def _block(u: Floats, t: Floats, root: Floats | None, degree: int) -> Floats:
    """Return the smoother weights of a few points, one row per point.

    The kernel is a function of u, the polynomial one of t.
    """
    size = np.abs(u)
    kernel = 1.0 - size * size * size
    root_kernel = kernel * np.sqrt(kernel)
    if root is not None:
        root_kernel *= root
    # `now` and `before` are polynomials on the cells times the root of the kernel;
    # `value` and `value_before` are the same polynomials at t = 0.
    norm = np.sqrt(np.einsum("ij,ij->i", root_kernel, root_kernel))[:, None]
    now, before = root_kernel / norm, np.zeros_like(u)
    value, value_before = 1.0 / norm, np.zeros_like(norm)
    total: Floats = value * now
    back = np.zeros_like(norm)
    for _ in range(degree):
        ahead = t * now
        mean = np.einsum("ij,ij->i", ahead, now)[:, None]
        ahead -= mean * now
        ahead -= back * before
        norm = np.sqrt(np.einsum("ij,ij->i", ahead, ahead))[:, None]
        inverse = np.where(norm > _RANK, 1.0 / np.maximum(norm, _RANK), 0.0)
        if not np.any(inverse):
            break
        ahead *= inverse
        value_ahead = (-mean * value - back * value_before) * inverse
        total += value_ahead * ahead
        before, now, back = now, ahead, norm
        value_before, value = value, value_ahead
    total *= root_kernel
    return total


class Jump(NamedTuple):
    """A jump before a cell, or a ramp around it that starts and ends `reach` cells away."""

    cell: int
    reach: int = 0

    def regressor(self, k: int) -> Floats:
        """Return 0 before the jump and 1 after it."""
        passed = np.arange(k) - self.cell + self.reach + 1
        out: Floats = np.clip(passed / (2 * self.reach + 1), 0.0, 1.0)
        return out


def regressors(jumps: Sequence[Jump], k: int) -> Floats:
    """Return the regressors of jumps as columns."""
    return np.column_stack([jump.regressor(k) for jump in jumps])


class Places(NamedTuple):
    """Jumps of which a curve may have one, beside those that are taken as given."""

    given: tuple[Jump, ...]
    jumps: list[Jump]
    span: int
    trust: Floats

    def beside(self, given: tuple[Jump, ...], span: int) -> Places:
        """Return the places beside other given jumps, none of which is a place any more."""
        free = [k for k, jump in enumerate(self.jumps) if jump not in given]
        return Places(given, [self.jumps[k] for k in free], span, self.trust[free])


class JumpSearch(NamedTuple):
    """The jumps that are certain, the span of a curve with them, and what else is possible."""

    certain: tuple[Jump, ...]
    span: int
    possible: list[Places]


def find_jumps(y: Floats, variance: Floats, hats: Sequence[Floats]) -> JumpSearch:
    r"""Find the jumps that a curve has, other places of each, and places of one more jump.

    A jump adds a regressor :math:`z_j = 1(i \ge j)` to a smoother S. With R = I − S and the weights
    W of the cells, it lowers :math:`|Ry|^2_W` by :math:`(z_j' R'WRy)^2 / |Rz_j|^2_W`: one sum for
    all j. Spans and jumps are compared by :math:`|Ry|^2_W + 2\,\mathrm{tr}(S)` (Mallows).

    Parameters
    ----------
    y, variance : ndarray of shape (k,)
        Means of the cells and their variances.
    hats : sequence of ndarray of shape (k, k)
        Smoothers, from the narrowest span to the widest.

    References
    ----------
    Speckman, P. (1988). Kernel smoothing in partial linear models. JRSS B 50, 413-436.
    """
    weight = 1 / variance
    trace = np.array([np.trace(hat) for hat in hats])
    certain: tuple[Jump, ...] = ()
    rounds: list[Places] = []
    span, now = 0, np.inf
    while True:
        rests = [np.eye(len(y)) - with_jumps(hat, certain, variance, hat) for hat in hats]
        plain = np.array([weight @ (rest @ y) ** 2 for rest in rests]) + 2 * trace
        now = min(now, float(plain.min()))
        gains = np.array([_gains(rest, y, weight) for rest in rests])
        scores = plain[:, None, None] - gains  # by span, ramp and cell
        lowest, spans = scores.min(axis=0), scores.argmin(axis=0)
        ramp, cell = (int(k) for k in np.unravel_index(np.argmin(lowest), lowest.shape))
        best, best_span, least = Jump(cell, RAMPS[ramp]), int(spans[ramp, cell]), lowest.min()
        # Where cells vary more than their rows do, as groups may, differences count for less.
        free = max(len(y) - trace[best_span], 1.0)
        unit = max((least - 2 * trace[best_span]) / free, 1.0)
        better = (now - lowest) / unit
        possible = (gains.max(axis=0) > 0) & (better >= better.max() - AS_GOOD)
        if possible[ramp, cell]:  # a jump may lie inside a cell, so that the next cells are, too
            possible[0, cell - 1 : cell + 2] |= gains[:, 0, cell - 1 : cell + 2].max(axis=0) > 0
        jumps = [Jump(int(j), RAMPS[r]) for r, j in np.argwhere(possible)]
        trust = np.clip(POSSIBLE + (1 - POSSIBLE) * better[possible] / LIKELY, POSSIBLE, 1.0)
        rounds.append(Places(certain, jumps, best_span, trust))
        # A ramp may be the steep part of a smooth curve.
        if not better.max() > CERTAIN or best.reach or len(certain) == MOST_JUMPS:
            break
        certain, span, now = (*certain, best), best_span, float(least)
        trace = trace + 1
    moved = [one.beside(certain[:k] + certain[k + 1 :], span) for k, one in enumerate(rounds[:-1])]
    return JumpSearch(certain, span, [one for one in (*moved, rounds[-1]) if one.jumps])


def _gains(rest: Floats, y: Floats, weight: Floats) -> Floats:
    """Return by how much jumps and ramps at each cell improve the fit; one row per ramp."""
    k = len(y)
    residual = weight * (rest @ y)
    steps = np.cumsum(rest[:, ::-1], axis=1)[:, ::-1]
    sums = np.cumsum(np.column_stack([np.zeros(k), steps]), axis=1)
    gains = np.zeros((len(RAMPS), k))
    for row, reach in zip(gains, RAMPS, strict=True):
        ends = np.arange(reach + LEAST_BESIDE, k - reach - LEAST_BESIDE + 1)
        if len(ends):
            left = (sums[:, ends + reach + 1] - sums[:, ends - reach]) / (2 * reach + 1)
            size = weight @ left**2
            seen = size > weight.sum() / k / 100  # otherwise the smoother itself follows the jump
            row[ends[seen]] = ((residual @ left) ** 2)[seen] / size[seen]
    return gains


def with_jumps(hat: Floats, jumps: Sequence[Jump], variance: Floats, by: Floats) -> Floats:
    """Return a smoother that allows for jumps, whose sizes are estimated by a second smoother."""
    if not jumps:
        return hat
    steps = regressors(jumps, len(hat))
    left = (steps - by @ steps) / np.sqrt(variance)[:, None]
    scaled = left.T / np.sqrt(variance)
    sizes = np.linalg.pinv(left.T @ left) @ (scaled - scaled @ by)
    out: Floats = hat + (steps - hat @ steps) @ sizes
    return out
