"""The steps of the models of the variable calibrator, for two classes and for more."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats, Ints
from varcal.calibrators._variable._growth.cells import LevelCells, NumberCells
from varcal.calibrators._variable._growth.growth import Growth
from varcal.calibrators._variable._lookup.steps import additive_steps
from varcal.calibrators._variable.additive_model import AdditiveModel
from varcal.calibrators._variable.confusion import LOG_FLOOR, LOG_UNIT, TIE_MARGIN, Confusion
from varcal.calibrators._variable.many_classes import LARGEST_LOG_POWER, TemperatureModel
from varcal.calibrators._variable.two_classes import MODERATION, LogisticModel
from varcal.calibrators.steps import (
    Forest,
    Step,
    choose,
    clipped,
    code,
    constant,
    curve,
    dot,
    elementwise,
    equal,
    exp,
    find,
    join,
    largest,
    less,
    log,
    missing,
    number,
    softmax,
    sqrt,
    take,
    top,
    total,
    trees,
    where,
)
from varcal.calibrators.steps import logistic as logistic_steps

#: The least p and the least 1 − p before the logarithm, as in `log_odds`.
TINY, LEAST_REST = float(np.finfo(np.float64).tiny), 2.0**-54


def logistic_model_steps(
    model: LogisticModel, p: Step, *, with_variables: bool, exact: bool
) -> tuple[Step, Step]:
    """Return the steps of a `LogisticModel`, from P(second class) to both probabilities."""
    z = (log(clipped(p, TINY, np.inf)) - log(clipped(1.0 - p, LEAST_REST, np.inf))).named("logit")
    if model.growth is not None:
        blended = blended_steps(
            model.growth, z, _by_score(model, z, exact=exact), _mixture(model, z, exact=exact)
        ).named("blended")
        if model.growth.link is not None:
            added, _ = additive_steps(model.growth.link, blended, exact=exact)
            blended = blended + added
        return logistic_steps(_supported(model, z, blended + model.growth.shift))
    if not model.monotone:
        return logistic_steps(_supported(model, z, _mixture(model, z, exact=exact)))
    assert not with_variables
    grid, score = model._grid, model.score.design.score
    own = (1 - model.full_share) * (1 - model.score_share)
    trusted = model.score_share > 0 or model.full_share > 0
    bounded = clipped(z, score.least, score.most) if trusted else z
    beyond = bounded - clipped(z, float(grid[0]), float(grid[-1]))
    return logistic_steps(curve(z, grid, model._score_curve) + beyond * own + z * model.tilt)


def _supported(model: LogisticModel, z: Step, eta: Step) -> Step:
    """Return the step to logits that are not larger than the rows support or the score says."""
    if np.isinf(model.most):
        return eta
    own = _bounded(model, z)
    least, most = elementwise("minimum", own, -model.most), elementwise("maximum", own, model.most)
    return elementwise("minimum", elementwise("maximum", eta, least), most)


def _bounded(model: LogisticModel, z: Step) -> Step:
    """Return the step to the score's own logit, finite where it is mixed with others."""
    basis = model.score.design.score
    trusted = model.score_share > 0 or model.full_share > 0 or model.growth is not None
    return clipped(z, basis.least, basis.most).named("own") if trusted else z


def _mixture(model: LogisticModel, z: Step, *, exact: bool) -> Step:
    """Return the step to the calibrated logit."""
    eta = _bounded(model, z)
    if model.score_share > 0 and model.full_share < 1:
        own = _moderated(model.score, z, exact=exact)
        eta = (eta + (own - eta) * model.score_share).named("by_score")
    if model.full_share > 0:
        own = _moderated(model.full, z, exact=exact).named("by_variables")
        if model.link is not None:
            added, variance = additive_steps(model.link, own, exact=exact)
            own = (own + added) / sqrt(variance * MODERATION + 1.0)
        eta = own if model.full_share == 1 else eta + (own - eta) * model.full_share
    return eta + model.shift


def _by_score(model: LogisticModel, z: Step, *, exact: bool) -> Step:
    """Return the step to the predictor of the score alone."""
    basis = model.score.design.score
    eta = clipped(z, basis.least, basis.most)
    if model.score_share > 0:
        eta = eta + (_moderated(model.score, z, exact=exact) - eta) * model.score_share
    return eta.named("from_score")


def _moderated(model: AdditiveModel, z: Step, *, exact: bool) -> Step:
    eta, variance = additive_steps(model, z, exact=exact)
    basis = model.design.score
    moved = (eta + clipped(z, basis.low, basis.high)).named("unmoderated")
    return moved / sqrt(variance * MODERATION + 1.0)


def temperature_model_steps(
    model: TemperatureModel, scores: tuple[Step, ...], *, exact: bool
) -> tuple[Step, ...]:
    """Return the steps of a `TemperatureModel`."""
    p = join(scores)
    z = _certainty(p, scores)
    eta: Step = constant(0.0)
    if model.score_share > 0 and model.full_share < 1:
        eta = additive_steps(model.score, z, exact=exact)[0] * model.score_share
    if model.full_share > 0:
        full = additive_steps(model.full, z, exact=exact)[0]
        eta = eta + (full - eta) * model.full_share
    eta = clipped(eta + model.shift, -LARGEST_LOG_POWER, LARGEST_LOG_POWER)
    logs = log(clipped(p, model.floor, np.inf)).named("log_p")
    logs = (logs - largest(logs)).named("log_ratio")
    base = (logs * exp(eta)).named("logit")
    q = softmax(_corrected(model.confusion, base, logs, keep_argmax=model.keep_argmax))
    return tuple(q.item(k) for k in range(len(scores)))


def _certainty(p: Step, scores: tuple[Step, ...]) -> Step:
    """Return the step to the log-odds of the largest probability against all others."""
    first = top(p).named("top")
    others = [where(equal(first, k), 0.0, score) for k, score in enumerate(scores)]
    rest = clipped(total(join(others)), TINY, np.inf)
    return (log(clipped(largest(p), TINY, np.inf)) - log(rest)).named("certainty")


def _corrected(confusion: Confusion, base: Step, logs: Step, *, keep_argmax: bool) -> Step:
    """Return the steps of `Confusion.corrected`."""
    if not (confusion.share and (confusion.pull.any() or confusion.bias.any())):
        return base
    kept = clipped(logs, LOG_FLOOR, np.inf).named("kept")
    centred = ((kept - total(kept) / float(kept.width)) / LOG_UNIT).named("centred")
    added = (dot(centred, confusion.pull) + constant(confusion.bias)) * confusion.share
    added = added.named("added")
    if not keep_argmax:
        return (base + added).named("corrected")
    first = top(base).named("top")
    at_top = [
        choose(first, [vector.item(k) for k in range(vector.width)]) for vector in (base, added)
    ]
    lead, loss = at_top[0] - base, (added - at_top[1]).named("loss")
    positive = less(0.0, loss)
    # A limit of 2 is none: the share is at most 1.
    most = where(positive, lead / where(positive, loss, 1.0), 2.0)
    share = clipped(-largest(-most) * (1.0 - TIE_MARGIN), -np.inf, 1.0).named("share")
    return (base + added * share).named("corrected")


def limited(
    answer: tuple[Step, ...], scores: tuple[Step, ...], max_shift: float | None
) -> tuple[Step, ...]:
    """Return probabilities whose change is limited to `max_shift`."""
    if max_shift is None:
        return answer
    if len(scores) == 2:
        p = scores[1]
        kept = elementwise(
            "minimum", elementwise("maximum", answer[1], p - max_shift), p + max_shift
        )
        kept = kept.named("limited")
        return 1.0 - kept, kept
    before = join(scores)
    change = (join(answer) - before).named("change")
    most = clipped(largest(elementwise("abs", change)), 1e-300, np.inf).named("most")
    share = where(less(max_shift, most), constant(max_shift) / most, 1.0)
    found = before + change * share
    return tuple(found.item(k) for k in range(len(scores)))


def blended_steps(growth: Growth, z: Step, base: Step, first: Step) -> Step:
    """Return the step to the predictor before the last curve; see `Growth.blended`."""
    eta = first
    for table in growth.tables:
        positions = [_position(growth, k, z, coarse=True) for k in table.pair]
        held = [
            growth.cells[k].coarse()[cells]
            for k, (_, cells) in zip(table.pair, positions, strict=True)
        ]
        added = table.added[np.ix_(*held)]
        row = take(positions[0][0], added).named("table_row")
        options = [row.item(k) for k in range(added.shape[1])]
        eta = (eta + choose(positions[1][0], options).named("table")).named("tabled")
    if growth.trees is None:
        return eta
    numbers = []
    for k, place in enumerate(growth.trees.place):
        position, cells = _position(growth, k, z, coarse=False)
        numbers.append(take(position, place[cells].astype(np.float64)).named("tree_cell"))
    forest = Forest(growth.trees.variable, growth.trees.cut.astype(np.float64), growth.trees.value)
    grown = (base + trees(numbers, forest)).named("grown")
    return eta + (grown - eta) * growth.share


def _position(growth: Growth, k: int, z: Step, *, coarse: bool) -> tuple[Step, Ints]:
    """Return the step to a position of entry k of the cells, and the cell of each position."""
    cells, variable = growth.cells[k], growth.variables[k]
    if isinstance(cells, LevelCells):
        return code(variable), cells.cell
    assert isinstance(cells, NumberCells)
    cuts, held = _merged(cells) if coarse else (cells.cuts, np.arange(1, cells.size))
    # Beyond the cuts a value only has to be finite.
    room = 1.0 + float(np.abs(cuts).max())
    x = z if variable < 0 else number(variable)
    inside = clipped(x, float(cuts[0]) - room, float(cuts[-1]) + room)
    if variable < 0:
        return find(inside, cuts), held
    inside = where(missing(x), float(cuts[0]), inside)
    return where(missing(x), len(cuts) + 1, find(inside, cuts)), np.append(held, 0)


def _merged(cells: NumberCells) -> tuple[Floats, Ints]:
    """Return the cuts between coarse cells, and the first cell of each of these."""
    coarse = cells.coarse()[1:]
    begins = np.flatnonzero(np.diff(coarse)) + 1
    return cells.cuts[begins - 1], np.append(1, begins + 1)
