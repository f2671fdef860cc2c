"""The steps of the look-up tables of an additive model, exact or with fewer knots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal.calibrators._variable._columns.design import SCORE
from varcal.calibrators._variable._lookup.lookup import Lookup, of_one_variable
from varcal.calibrators._variable._lookup.tables import Track
from varcal.calibrators._variable.additive_model import AdditiveModel
from varcal.calibrators.steps import (
    Step,
    arrange,
    clipped,
    code,
    constant,
    curve,
    dot,
    find,
    join,
    missing,
    number,
    take,
    total,
    where,
)

#: How far the effects and variances of `exact=False` may be from the tables between knots. At
#: 0.002 logits 1,036 knots became 93, and probabilities change by 0.05 points at most; what the
#: variance between variables adds is larger.
THIN_ERROR = 0.002


@dataclass(frozen=True, eq=False)
class _Placed:
    """What one table adds to a row.

    Attributes
    ----------
    level : Step
        The effect.
    slope : Step or None
        The effect times z̃; None where it is 0.
    factors : Step or None
        The columns that enter products of pairs.
    spread : Step or None
        The variances, and what is added to the rays; None without a table of variances.
    """

    level: Step
    slope: Step | None
    factors: Step | None
    spread: Step | None


def additive_steps(model: AdditiveModel, z: Step, *, exact: bool = True) -> tuple[Step, Step]:
    """Return the steps to η and its variance.

    With `exact=False` tables have fewer knots, and the variance between variables, which the rays
    give, is replaced by its mean.
    """
    lookup = model.lookup
    score = lookup.design.score
    kept = clipped(z, score.low, score.high).named("score")
    unit = ((kept - score.mean) / score.scale).named("unit")
    n_rays = len(lookup.sign)
    placed = {
        k: _placed(track, _value(k, track, kept), None if exact else n_rays)
        for k, track in lookup.tracks.items()
    }
    eta = _sum([each.level for each in placed.values()]).named("effects")
    slopes = [each.slope for each in placed.values() if each.slope is not None]
    if slopes:
        eta = eta + unit * _sum(slopes).named("slope")
    pairs = _paired(lookup, placed, exact=exact)
    if pairs is not None:
        eta = eta + pairs.item(0)
    eta = eta.named("eta")
    spreads = [each.spread for each in placed.values() if each.spread is not None]
    rest = lookup.rest if exact else _mean_between(model)
    if not spreads:
        return eta, constant(max(lookup.rest, 0.0))
    spread = _sum(spreads).named("spread")
    variance = spread.item(0) + unit * (spread.item(1) + unit * spread.item(2)) + rest
    variance = variance.named("own_variance")
    if exact and n_rays:
        rays = spread.part(3, 3 + n_rays) + unit * spread.part(3 + n_rays, 3 + 2 * n_rays)
        if pairs is not None:
            rays = rays + pairs.part(1, 1 + n_rays)
        rays = rays.named("ray")
        variance = variance + total(rays * rays * constant(lookup.sign))
    return eta, clipped(variance, 0.0, np.inf).named("variance")


def _value(k: int, track: Track, kept: Step) -> Step:
    """Return the step to the number or the level that a table is read at."""
    if k == SCORE:
        return kept
    if track.knots is None:
        return code(k)
    return number(k)


def _placed(track: Track, x: Step, thin_rays: int | None) -> _Placed:
    """Return the steps of one table; `thin_rays` is None for all knots and all rays."""
    has_slope = bool(track.effect[1].any())
    if track.knots is None:
        row = take(x, track.effect.T, _effect_labels(track, ""))
        if not track.spread.shape[1]:
            spread = None
        else:
            table = track.spread.astype(np.float64)
            table = table if thin_rays is None else table[:, :3]
            spread = take(x, table, _spread_labels(table.shape[1]))
        factors = row.part(2, row.width) if row.width > 2 else None
        return _Placed(row.item(0), row.item(1) if has_slope else None, factors, spread)
    if thin_rays is not None:
        return _thinned(track, x, has_slope=has_slope)
    cuts, places, nearest = _half_cells(track)
    lows, gaps = _pieces(track.knots, places)
    inside = x
    if x.op == "number":
        # Beyond its ends a table is constant; infinite numbers could not be interpolated. The last
        # row is that of missing values.
        inside = clipped(x, float(track.knots[0]), float(track.knots[-1]))
        inside = where(missing(x), float(lows[-1]), inside).named("inside")
        at = where(missing(x), len(cuts) + 1, find(inside, cuts)).named("place")
    else:
        at = find(inside, cuts).named("place")
    effect, step = track.effect[:, places].T, track.step[:, places].T  # type: ignore[index]
    flat = ~np.isfinite(gaps)
    gaps[flat], step[flat] = 1.0, 0.0
    width = effect.shape[1]
    labels = ("from_value", "width", *_effect_labels(track, ""), *_effect_labels(track, "_step"))
    row = take(at, np.column_stack([lows, gaps, effect, step]), labels)
    share = ((inside - row.item(0)) / row.item(1)).named("share")
    values = row.part(2, 2 + width) + row.part(2 + width, 2 + 2 * width) * share
    width_of_spread = track.spread.shape[1]
    spread = (
        take(at, track.spread[nearest].astype(np.float64), _spread_labels(width_of_spread))
        if width_of_spread
        else None
    )
    return _Placed(
        values.item(0),
        values.item(1) if has_slope else None,
        values.part(2, width) if width > 2 else None,
        spread,
    )


def _effect_labels(track: Track, ending: str) -> tuple[str, ...]:
    """Return the names of the columns of a table of effects."""
    names = ["effect", "slope", *(f"factor_{k + 1}" for k in range(len(track.effect) - 2))]
    return tuple(name + ending for name in names)


def _spread_labels(width: int) -> tuple[str, ...]:
    """Return the names of the columns of a table of variances and rays."""
    n_rays = (width - 3) // 2
    rays = [f"ray_{k + 1}" for k in range(n_rays)]
    return ("variance", "variance_1", "variance_2", *rays, *(f"{ray}_slope" for ray in rays))


def _half_cells(track: Track) -> tuple[Floats, Ints, Ints]:
    """Return cuts at knots and midway between them, and the knot and the nearest knot of cells.

    Cuts midway are the last numbers whose share of the way to the next knot is at most ½. The last
    cell is that of missing values.
    """
    knots = track.knots
    assert knots is not None
    n, gone = len(knots) - 1, len(knots)
    if not track.spread.shape[1]:
        return knots[1:-1], np.append(np.arange(n), gone), np.append(np.arange(n), gone)
    low, high = knots[:-1], knots[1:]
    with np.errstate(over="ignore", invalid="ignore"):

        def first_half(x: Floats) -> Bools:
            share = (x - low) / (high - low)
            return np.asarray(~(share > 0.5))

        middle = np.clip(low + (high - low) / 2, low, high)
        middle = np.where(np.isfinite(middle), middle, high)
        while (wrong := ~first_half(middle)).any():
            middle[wrong] = np.nextafter(middle[wrong], -np.inf)
        while True:
            later = np.minimum(np.nextafter(middle, np.inf), high)
            more = first_half(later) & (later > middle)
            # Where shares cannot be computed all of a cell is its first half.
            overflow = more & ~np.isfinite(high - low)
            middle[overflow] = high[overflow]
            more &= ~overflow
            if not more.any():
                break
            middle[more] = later[more]
    cuts = np.column_stack([middle, high]).ravel()[:-1]
    places = np.append(np.repeat(np.arange(n), 2), gone)
    nearest = places.copy()
    nearest[1:-1:2] += 1
    return cuts, places, nearest


def _pieces(knots: Floats, places: Ints) -> tuple[Floats, Floats]:
    """Return the knot at which each piece begins, and its length."""
    with np.errstate(over="ignore"):
        gaps = np.append(np.diff(knots), [1.0, 1.0])
    return np.append(knots, knots[0])[places], gaps[places]


def _thinned(track: Track, x: Step, *, has_slope: bool) -> _Placed:
    """Return a table as curves with fewer knots, without rays."""
    assert track.knots is not None
    knots = track.knots
    own = track.spread[:, :3].astype(np.float64).T if track.spread.shape[1] else None

    def curve_of(heights: Floats) -> Step:
        kept = _needed(knots, heights[:-1])
        found = curve(x, knots[kept], heights[:-1][kept])
        return where(missing(x), float(heights[-1]), found) if x.op == "number" else found

    return _Placed(
        curve_of(track.effect[0]),
        curve_of(track.effect[1]) if has_slope else None,
        join([curve_of(row) for row in track.effect[2:]]) if len(track.effect) > 2 else None,
        None if own is None else join([curve_of(row) for row in own]),
    )


def _needed(knots: Floats, heights: Floats) -> Ints:
    """Return the knots that cannot be interpolated from others (Ramer, Douglas and Peucker)."""
    kept, pending = {0, len(knots) - 1}, [(0, len(knots) - 1)]
    while pending:
        first, last = pending.pop()
        if last - first < 2:
            continue
        line = np.interp(knots[first : last + 1], knots[[first, last]], heights[[first, last]])
        apart = np.abs(line - heights[first : last + 1])
        worst = int(apart.argmax())
        if apart[worst] > THIN_ERROR:
            kept.add(first + worst)
            pending += [(first, first + worst), (first + worst, last)]
    if len(kept) == 2 and heights[0] == heights[-1]:
        kept.remove(len(knots) - 1)
    return np.array(sorted(kept))


def _paired(lookup: Lookup, placed: dict[int, _Placed], *, exact: bool) -> Step | None:
    """Return the step to what pairs add to η and to the rays."""
    if not lookup.pairs:
        return None
    factors = join([each.factors for each in placed.values() if each.factors is not None])
    factors, places = factors.named("factor"), lookup.factor_places
    products = arrange(factors, places.left) * arrange(factors, places.right)
    weight = lookup.weight if exact else lookup.weight[:1]
    return dot(products.named("product"), weight.T).named("pairs")


def _sum(steps: list[Step]) -> Step:
    found = steps[0]
    for step in steps[1:]:
        found = found + step
    return found


def _mean_between(model: AdditiveModel) -> float:
    """Return the mean variance of η beyond the tables of single variables."""
    V = model.covariance
    between = np.where(of_one_variable(model.design.layout()), 0.0, V)
    H = np.linalg.inv(V)
    H.flat[:: len(H) + 1] -= model.ridge
    return float(np.einsum("ij,ji->", between, H)) / model.mass
