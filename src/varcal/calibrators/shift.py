"""Shift: one number added to the logit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._options import EPS
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.newton import minimize_convex, solve_dense
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.softmax import softmax
from varcal.calibrators.steps import (
    Step,
    clipped,
    constant,
    equal,
    exp,
    items,
    join,
    largest,
    less,
    log,
    logistic,
    total,
    where,
)

#: The smallest probability and the ends of the logit that scores inside (0, 1) are moved to.
LEAST, LOWEST_LOGIT, HIGHEST_LOGIT = 1e-300, -690.0, 36.0


class ShiftCalibrator(Calibrator):
    r"""A shift of the logit: Platt scaling with the slope fixed to 1.

    .. math:: \mathrm{logit}\, q = \mathrm{logit}\, p + b

    by maximum likelihood, so that the mean of q is the rate of the outcome. It corrects a model
    that is too high or too low everywhere. With more than two classes each has its own shift,

    .. math:: q_k \propto p_k \exp(b_k), \qquad \textstyle\sum_k b_k = 0

    Scores of exactly 0 and 1 stay as they are and do not enter the fit; no other score becomes 0
    or 1. Where the likelihood has no maximum, because rows of a class are lacking, half an event
    is added to each class. The mean of q is then (events + ½) / (rows + K/2).

    Attributes
    ----------
    shift_ : float or ndarray of shape (K,)
        b; a number with two classes.

    References
    ----------
    E. W. Steyerberg (2019), Clinical Prediction Models, chapter 20: recalibration in the large.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.1, 0.2, 0.4, 0.5])
    >>> fit = ShiftCalibrator().fit(p, [0, 1, 0, 1])
    >>> round(fit.shift_, 4)
    0.9857
    >>> fit.predict_proba([0.1, 0.5])[:, 1].round(3)
    array([0.229, 0.728])
    """

    _state = ("shift_",)
    shift_: float | Floats
    _fits_one_class: ClassVar[bool] = True
    _without_rows: ClassVar[str] = "half an event is added to each class"

    def _learn(self, rows: CalibrationRows) -> None:
        p = rows.columns()
        if p.shape[1] == 2:  # the complement of a small score may be rounded to 1
            enters = (p[:, 1] > 0) & (p[:, 1] < 1)
        else:
            enters = (p.max(axis=1) < 1) & (p[np.arange(len(p)), rows.y] > 0)
        weight = None if rows.weight is None else rows.weight[enters]
        shifts = _fit_shifts(p[enters], rows.y[enters], weight)
        self.shift_ = shifts - shifts.mean()
        if len(shifts) == 2:
            self.shift_ = float(shifts[1] - shifts[0])

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        if isinstance(self.shift_, float):
            return _two_steps(scores[1], self.shift_)
        p = join(scores)
        positive = less(0.0, p)
        logits = (log(clipped(p, LEAST, np.inf)) + constant(self.shift_)).named("logit")
        powers = where(positive, exp(logits - largest(logits)), 0.0).named("power")
        inside = clipped(powers / total(powers), LEAST, 1.0 - EPS)
        q = where(less(largest(p), 1.0), where(positive, inside, 0.0), p)
        return items(q)

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        if isinstance(self.shift_, float):
            label, factor = self.classes_[1], np.exp(self.shift_)
            words = f"logit(q) = logit(p) + shift: the odds of {label} are multiplied by"
            return f"{words} {factor:.4g}.", [{"class": str(label), "shift": self.shift_}]
        table = [
            {"class": str(label), "shift": float(shift)}
            for label, shift in zip(self.classes_, self.shift_, strict=True)
        ]
        return "The logit of every class is ln(p) + shift.", table


def _two_steps(p: Step, shift: float) -> tuple[Step, Step]:
    """Return the steps to the probabilities of "no" and "yes"."""
    inside = clipped(p, LEAST, 1.0 - EPS / 2).named("inside")
    logit = log(inside / (1.0 - inside)) + shift
    no, yes = logistic(clipped(logit, LOWEST_LOGIT, HIGHEST_LOGIT))
    low, high = equal(p, 0.0), equal(p, 1.0)
    return where(low, 1.0, where(high, 0.0, no)), where(low, 0.0, where(high, 1.0, yes))


def _fit_shifts(p: Floats, y: Ints, weight: Floats | None) -> Floats:
    """Maximize the likelihood; the shift of the most frequent class is 0.

    The gradient is the mean of q minus the rate of each class.
    """
    n, k = p.shape
    weight = np.ones(n) if weight is None else weight
    shares = weight / max(weight.sum(), LEAST)
    rates: Floats = np.asarray(np.bincount(y, shares, minlength=k), dtype=np.float64)
    free = np.arange(k) != rates.argmax()
    if not _has_maximum(p > 0, y):
        rates = _with_half_events(p > 0, y, weight)
    with np.errstate(divide="ignore"):  # a score of 0 stays 0
        logs = np.log(p)

    def whole(values: Floats) -> Floats:
        shifts = np.zeros(k)
        shifts[free] = values
        return shifts

    def evaluate_at(values: Floats) -> tuple[Floats, Callable[[], Floats]]:
        q = softmax(logs + whole(values))
        weighted = q * shares[:, None]
        means = weighted.sum(axis=0)
        gradient = (means - rates)[free]
        hessian = (np.diag(means) - weighted.T @ q)[np.ix_(free, free)]
        return gradient, lambda: solve_dense(hessian, gradient)

    def loss(values: Floats) -> float:
        logits = logs + whole(values)
        top = logits.max(axis=1)
        sums = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        return float(shares @ sums - rates @ whole(values))

    start = np.zeros(k - 1)
    if not n:
        return whole(start)
    return whole(minimize_convex(evaluate_at, loss, start, tol=1e-13, max_iter=200)[0])


def _has_maximum(available: Bools, y: Ints) -> bool:
    """Tell whether no group of classes can be shifted for ever without a surprise.

    That is so if any class can be reached from any other by steps from one that was possible in
    a row to the one that happened (Ford 1957).
    """
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  only a fit needs it

    beaten = np.array([available[y == k].any(axis=0) for k in range(available.shape[1])])
    known = available.any(axis=0)
    return bool(connected_components(beaten[np.ix_(known, known)], connection="strong")[0] == 1)


def _with_half_events(available: Bools, y: Ints, weight: Floats) -> Floats:
    """Return the rates of the classes, after half an event of each has been shared by all rows."""
    n_rows = weight.sum()
    targets = 0.5 * available
    targets[np.arange(len(y)), y] += n_rows
    targets /= targets.sum(axis=1, keepdims=True)
    return np.asarray(weight @ targets / max(n_rows, LEAST))
