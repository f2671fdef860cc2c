"""Score decomposition: a mean score as miscalibration − discrimination + uncertainty (CORP)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._input.frames import frame_of
from varcal._input.predictions import Predictions
from varcal._options import checked, one_of
from varcal._text import level_text, text_table
from varcal.exceptions import InputError

#: Folds of the second isotonic fit.
FOLDS = 5
PARTS = ("score", "miscalibration", "discrimination", "uncertainty")


@dataclass(frozen=True)
class ScorePart:
    """A part of a mean score: its value, the value without optimism, and its interval."""

    value: float
    debiased: float
    low: float
    high: float


@dataclass(frozen=True)
class Decomposition:
    """A mean score and its parts: score = miscalibration − discrimination + uncertainty.

    Attributes
    ----------
    rule : {"log", "brier"}
        The scoring rule.
    score : ScorePart
        The mean score; lower is better.
    miscalibration : ScorePart
        What recalibration by score would gain.
    discrimination : ScorePart
        How much better the recalibrated scores are than the event rate for all.
    uncertainty : ScorePart
        The mean score of the event rate.
    level : float
        Level of the intervals.
    n_rows : int
        Rows.
    """

    rule: str
    score: ScorePart
    miscalibration: ScorePart
    discrimination: ScorePart
    uncertainty: ScorePart
    level: float
    n_rows: int
    backend: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        parts = {name: vars(getattr(self, name)) for name in PARTS}
        return {"rule": self.rule, **parts, "level": self.level, "n_rows": self.n_rows}

    def to_frame(self) -> Any:
        """Return one row per part, in the input's library, pandas for arrays."""
        return frame_of({"part": list(PARTS), **self._columns()}, self.backend)

    def _columns(self) -> dict[str, list[float]]:
        names = [field.name for field in fields(ScorePart)]
        return {name: [getattr(getattr(self, part), name) for part in PARTS] for name in names}

    def __repr__(self) -> str:
        texts = {name: [f"{one:.4f}" for one in column] for name, column in self._columns().items()}
        rule = {"log": "Log-loss", "brier": "Brier score"}[self.rule]
        head = f"{rule} of {self.n_rows:,} rows, with {level_text(self.level)} intervals"
        return f"{head}\n{text_table({'': list(PARTS), **texts})}"


def _log_loss(p: Floats, y: Floats) -> Floats:
    from scipy.special import xlogy  # noqa: PLC0415

    with np.errstate(divide="ignore"):
        return -(xlogy(y, p) + xlogy(1 - y, 1 - p))


def _brier(p: Floats, y: Floats) -> Floats:
    return (p - y) ** 2


RULES: dict[str, Callable[[Floats, Floats], Floats]] = {"log": _log_loss, "brier": _brier}


@checked(rule=one_of(*RULES))
def decompose(
    y: object,
    p: object = None,
    *,
    data: object = None,
    rule: str = "log",
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    level: float = 0.95,
    sample_weight: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
) -> Decomposition:
    r"""Split log-loss or Brier score into miscalibration, discrimination and uncertainty.

    With the isotonic regression :math:`c_i` of y on p, the event rate :math:`r` and a scoring
    rule S,

    .. math:: \overline{S}(p, y) = \underbrace{\overline{S}(p, y) - \overline{S}(c, y)}_{MCB}
        - \underbrace{(\overline{S}(r, y) - \overline{S}(c, y))}_{DSC}
        + \underbrace{\overline{S}(r, y)}_{UNC}.

    Values are those of the isotonic fit to all rows. Such a fit follows its own rows too closely,
    which makes miscalibration and discrimination too large. A fit that has not seen the row
    makes them too small by about as much: `debiased` is the mean of both, with the interval
    around it.

    Parameters
    ----------
    y, p : array-like or column names
        Labels of two classes, and probabilities, as in `ece`.
    rule : {"log", "brier"}
        The scoring rule: log-loss or Brier score.
    data, pos_label, classes, sample_weight, from_logits, unlabelled
        As in `ece`.
    level : float
        Level of the intervals.

    Returns
    -------
    Decomposition

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers, PNAS 118.

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(2000, "tilt", vece=0.1)
    >>> found = vc.decompose(sim.y, sim.p, rule="brier")
    >>> parts = found.miscalibration.value - found.discrimination.value + found.uncertainty.value
    >>> round(parts - found.score.value, 12)
    0.0
    """
    rows = Predictions.of(
        y,
        p,
        data=data,
        classes=classes,
        pos_label=pos_label,
        sample_weight=sample_weight,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    if len(rows.classes) != 2:
        raise InputError(
            f"y has {len(rows.classes)} classes; scores of two are decomposed",
            "compare one class with the others: y == class, and its column of p",
            argument="y",
        )
    score = rows.p if rows.p.ndim == 1 else rows.p[:, 1]
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    event = (rows.y == 1).astype(np.float64)
    return _parts(event, score, weight, rule, level, rows.backend)


def _parts(
    y: Floats, p: Floats, weight: Floats, rule: str, level: float, backend: str | None
) -> Decomposition:
    from scipy.stats import norm  # noqa: PLC0415

    loss = RULES[rule]
    share = weight / weight.sum()
    rate = np.full(len(y), share @ y)
    fitted, unseen = _isotonic(p, y, weight), _cross_fitted(p, y, weight)
    own, base, inside, outside = (loss(one, y) for one in (p, rate, fitted, unseen))
    reach = norm.ppf((1 + level) / 2)
    differences = {
        "score": (own, own),
        "miscalibration": (own - inside, own - outside),
        "discrimination": (base - inside, base - outside),
    }
    found = {"uncertainty": _uncertainty(float(rate[0]), float(share @ share), loss, reach)}
    for name, (seen, held) in differences.items():
        if not np.isfinite(seen).all():  # a certain score that was wrong
            found[name] = ScorePart(math.inf, math.inf, math.inf, math.inf)
            continue
        value, other = float(share @ seen), float(share @ held)
        middle = (seen + held) / 2
        debiased = float(share @ middle)
        # A quarter of the distance of the two fits stands for what is not known about the optimism.
        spread = share**2 @ (middle - debiased) ** 2 + ((value - other) / 4) ** 2
        ends = debiased - reach * math.sqrt(spread), debiased + reach * math.sqrt(spread)
        least = 0.0 if name != "score" else -math.inf
        found[name] = ScorePart(
            value, max(debiased, least), max(ends[0], least), max(ends[1], least)
        )
    return Decomposition(rule, **found, level=level, n_rows=len(y), backend=backend)


def _uncertainty(
    rate: float, per_row: float, loss: Callable[[Floats, Floats], Floats], reach: float
) -> ScorePart:
    """Return the mean score of the event rate, with that of all rates in Wilson's interval."""
    square = reach**2 * per_row
    centre = (rate + square / 2) / (1 + square)
    half = math.sqrt(rate * (1 - rate) * square + square**2 / 4) / (1 + square)
    ends = np.array([rate, max(centre - half, 0), min(centre + half, 1)])
    value, *others = (ends * loss(ends, np.ones(3)) + (1 - ends) * loss(ends, np.zeros(3))).tolist()
    if ends[1] < 1 / 2 < ends[2]:  # where the score of a rate is largest
        half_rate = np.full(1, 0.5)
        others.append(float(loss(half_rate, half_rate * 2)[0]))
    return ScorePart(value, value, min(others), max(others))


def _isotonic(p: Floats, y: Floats, weight: Floats, at: Floats | None = None) -> Floats:
    """Return the isotonic regression at the rows, or at other scores."""
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

    fit = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, y, weight)
    return fit.predict(p if at is None else at)


def _cross_fitted(p: Floats, y: Floats, weight: Floats) -> Floats:
    """Return isotonic fits of the other folds, which never say 0 or 1."""
    # Rows of the same score and outcome take turns, whatever their order was.
    order = np.lexsort((y, p))
    fold = np.empty(len(y), np.intp)
    fold[order] = np.arange(len(y)) % FOLDS
    floor = 0.5 / len(y)
    found = np.empty(len(y))
    if len(y) == 1:
        return np.full(1, 0.5)
    for number in range(min(FOLDS, len(y))):
        held = fold == number
        found[held] = _isotonic(p[~held], y[~held], weight[~held], p[held])
    return np.clip(found, floor, 1 - floor)
