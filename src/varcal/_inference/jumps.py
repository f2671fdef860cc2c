"""Jumps of a curve: where it may break, and smoothers that allow for a break."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from varcal._arrays import Floats, Ints

#: The most jumps of a curve.
MOST_JUMPS = 3
#: A jump has at least this many cells on each side.
LEAST_BESIDE = 4
#: A sharp change within this many cells on each side of its middle is a ramp; 0 is a jump.
RAMPS = (0, 2, 5)
#: How much better a curve with a jump must fit, in units of chi-square less twice the parameters:
#: for the jump to be considered, to be as likely as none, and for curves without it to be dropped.
CONSIDERED, LIKELY, CERTAIN = 4.0, 8.0, 20.0
#: Places that fit worse than the best by at most this, and by at most this part of what a jump
#: improves, are considered as well; so many of them for each ramp.
AS_GOOD, AS_GOOD_PART, MOST_PLACES = 8.0, 0.45, 8


class Jump(NamedTuple):
    """A jump before a cell, or a ramp around it that starts and ends `reach` cells away."""

    cell: int
    reach: int = 0

    def regressor(self, k: int) -> Floats:
        """Return 0 before the jump and 1 after it."""
        passed = np.arange(k) - self.cell + self.reach + 1
        out: Floats = np.clip(passed / (2 * self.reach + 1), 0.0, 1.0)
        return out


class Jumps(NamedTuple):
    """One possibility: some jumps, the span beside them, and how far the possibility is trusted.

    Of a band with a trust below 1, only that part of its half-width counts.
    """

    jumps: tuple[Jump, ...]
    span: int
    trust: float = 1.0


def possible_jumps(y: Floats, variance: Floats, hats: Sequence[Floats]) -> list[Jumps]:
    r"""Return the jumps that a curve may have; the first are those that are drawn.

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
    rests = [np.eye(len(y)) - hat for hat in hats]
    trace = np.array([np.trace(hat) for hat in hats])
    certain: tuple[Jump, ...] = ()
    span, now = 0, np.inf
    others: list[Jumps] = []
    for _ in range(MOST_JUMPS):
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
        better = float((now - least) / unit)
        if not better > CONSIDERED:
            break
        within = least + min(AS_GOOD, AS_GOOD_PART * better) * unit
        found = [
            Jumps((*certain, Jump(int(j), reach)), int(of_cell[j]), min(better / LIKELY, 1.0))
            for reach, score, of_cell in zip(RAMPS, lowest, spans, strict=True)
            for j in _places(score, within, best.cell)
        ]
        # A ramp may be the steep part of a smooth curve.
        if better <= CERTAIN or best.reach:
            return [Jumps(certain, span), *others, *found]
        others = [Jumps((*one.jumps, best), best_span) for one in others]
        others += [one for one in found if one.jumps[-1] != best]
        certain, span, now = (*certain, best), best_span, float(least)
        step = best.regressor(len(y))
        for k, rest in enumerate(rests):
            left = rest @ step
            rests[k] = rest - np.outer(left, (weight * left) @ rest) / (weight @ left**2)
        trace = trace + 1
    return [Jumps(certain, span), *others]


def _places(score: Floats, within: float, best: int) -> Ints:
    """Return some of the places that fit well, the first and the last among them.

    A jump may lie inside a cell, so that the next cells are possible however well they fit.
    """
    places = np.flatnonzero(score <= within)
    if len(places) > MOST_PLACES:
        places = places[np.linspace(0, len(places) - 1, MOST_PLACES).astype(int)]
    beside = best + np.arange(-1, 2)
    return np.union1d(places, beside[score[beside] < score.max()]) if len(places) else places


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
    steps = np.column_stack([jump.regressor(len(hat)) for jump in jumps])
    left = (steps - by @ steps) / np.sqrt(variance)[:, None]
    scaled = left.T / np.sqrt(variance)
    sizes = np.linalg.pinv(left.T @ left) @ (scaled - scaled @ by)
    out: Floats = hat + (steps - hat @ steps) @ sizes
    return out
