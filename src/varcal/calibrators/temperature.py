"""Temperature scaling: one number for all classes."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from varcal._arrays import Floats
from varcal._options import EPS, check_eps
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.softmax import blocks, softmax
from varcal.calibrators.steps import Step, clipped, join, log
from varcal.calibrators.steps import softmax as softmax_steps
from varcal.exceptions import VarcalWarning

#: The range of 1/T that is searched.
LOWEST, HIGHEST = 1e-6, 1e6
# The search ends where the slope, or the relative step, is below these; a curvature below the last
# one means that the loss is flat.
_SLOPE_TOLERANCE, _STEP_TOLERANCE, _FLAT = 1e-13, 1e-15, 1e-10
_MOST_STEPS = 200


class TemperatureCalibrator(Calibrator):
    r"""Temperature scaling: all log-probabilities divided by one number.

    .. math:: q_k \propto p_k^{1/T}

    T minimizes the log-loss; above 1 it lowers confidence. The order of the classes within a row
    never changes, so accuracy stays exactly the same. Any number of classes.

    Parameters
    ----------
    eps : float
        The least p before taking the logarithm.

    Attributes
    ----------
    temperature_ : float
        T.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), On calibration of modern neural networks,
    ICML.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
    >>> fit = TemperatureCalibrator().fit(p, [0, 1, 1, 2])
    >>> round(fit.temperature_, 4)
    0.8548
    """

    _state = ("temperature_",)
    _parameters: ClassVar = {"eps": check_eps}

    def __init__(self, *, eps: float = EPS) -> None:
        self.eps = eps

    def _learn(self, rows: CalibrationRows) -> None:
        logits = _logits(rows, self.eps)
        sharpness, bounded = _fit_sharpness(logits, rows.y, rows.weight)
        self.separated_ = bounded and sharpness > 1
        if bounded and sharpness <= 1:
            warnings.warn(
                "the scores are no better than chance: the best temperature is infinite, "
                "and all classes get equal probability",
                VarcalWarning,
                stacklevel=4,
            )
        self.temperature_ = 1.0 / sharpness

    def _answer(self, rows: CalibrationRows) -> Floats:
        answer = np.empty((len(rows), rows.n_classes))
        for part in blocks(len(rows), rows.n_classes):
            answer[part] = softmax(_logits(rows.block(part), self.eps) / self.temperature_)
        return answer

    def _steps(self, scores: tuple[Step, ...], *, exact: bool = True) -> tuple[Step, ...]:
        logits = log(clipped(join(scores), self.eps, np.inf)) / self.temperature_
        q = softmax_steps(logits.named("logit"))
        return tuple(q.item(k) for k in range(q.width))

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        effect = "lowers confidence" if self.temperature_ > 1 else "raises confidence"
        words = f"All logits are divided by T = {self.temperature_:.6g}, which {effect}."
        return words, [{"temperature": self.temperature_}]


def _logits(rows: CalibrationRows, eps: float) -> Floats:
    cells = np.maximum(rows.columns(), eps)
    return np.log(cells, out=cells)


def _fit_sharpness(logits: Floats, y: Any, weight: Floats | None) -> tuple[float, bool]:
    """Return the 1/T that minimizes the convex loss, and whether it lies at a bound."""
    n, n_classes = logits.shape
    shares = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    truth = float(shares @ logits[np.arange(n), y])

    def slope_and_curve(sharpness: float) -> tuple[float, float]:
        slope, curve = -truth, 0.0
        for part in blocks(n, n_classes):
            cells = softmax(sharpness * logits[part])
            mean = np.einsum("ij,ij->i", cells, logits[part])
            square = np.einsum("ij,ij,ij->i", cells, logits[part], logits[part])
            slope += float(shares[part] @ mean)
            curve += float(shares[part] @ (square - mean**2))
        return slope, curve

    low, high, at = LOWEST, HIGHEST, 1.0
    if slope_and_curve(low)[0] >= 0:
        return low, True
    for _ in range(_MOST_STEPS):
        slope, curve = slope_and_curve(at)
        if abs(slope) <= _SLOPE_TOLERANCE * max(1.0, abs(truth)):
            # Where the loss became flat as 1/T grew, there is no minimum.
            return at, bool(slope < 0 and curve < _FLAT and at > 1)
        low, high = (at, high) if slope < 0 else (low, at)
        step = at - slope / curve if curve > 0 else np.inf
        middle = min(2.0 * at, HIGHEST) if high == HIGHEST else 0.5 * (low + high)
        moved = step if low < step < high and step < 4.0 * at else middle
        if abs(moved - at) <= _STEP_TOLERANCE * at:
            return at, False
        at = moved
        if at >= HIGHEST:
            return HIGHEST, True
    return at, False
