r"""Repair of predicted means: :math:`\mu \exp\{f_0(\log \mu) + \sum_j f_j(v_j)\}`.

One factor, a curve of μ, then variables: each is fitted by quasi-likelihood with the columns and
the penalties of the variable calibrator, and applied as far as held-out deviance supports it. Where
amounts may be negative the link is the identity, :math:`\mu + f_0(\mu) + \sum_j f_j(v_j)`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._sums.variance_model import variance_power
from varcal.calibrators.variable.additive import Design
from varcal.calibrators.variable.reml import Fit, fit_blocks, held_out
from varcal.calibrators.variable.shrinkage import (
    FEW_SAVINGS,
    RAMPS,
    Folds,
    Stage,
    hashed,
    make_folds,
)

#: Shares of a correction that are tried on held-out rows.
SHARES = np.linspace(0.0, 1.0, 41)
#: The largest change of log μ on the way to a fit.
LARGEST_LOG = 30.0
#: The largest part of a row in the sum of squared savings, so that one absurd prediction does not
#: decide, and the steps to find the largest saving that has it.
MOST_PART, CLIPS = 0.05, 20
#: The ramp, in standard errors, of each correction.
STAGES = {"factor": RAMPS["variables"], "curve": RAMPS["score"], "variables": RAMPS["variables"]}


@dataclass(frozen=True, eq=False)
class MeanLoss:
    r"""Quasi-deviance with the variance μᵖ, of the mean :math:`\mu e^\eta` or :math:`\mu + \eta`.

    Attributes
    ----------
    y, weight, offset : ndarray
        Outcomes, weights over dispersion, and log μ (or μ, with the identity link).
    power : float
        p: 0 for the identity link, else 1 to 2.
    """

    y: Floats
    weight: Floats
    offset: Floats
    power: float

    def mean(self, eta: Floats) -> Floats:
        """Return the mean."""
        total = self.offset + eta
        return np.asarray(np.exp(np.clip(total, -700, 700)) if self.power else total)

    def rows(self, eta: Floats) -> Floats:
        """Return half of the weighted deviance of each row, up to a constant."""
        mean, p = self.mean(eta), self.power
        if p == 0:
            loss = (self.y - mean) ** 2 / 2
        elif p == 1:
            loss = mean - self.y * np.log(mean)
        elif p == 2:
            loss = self.y / mean + np.log(mean)
        else:
            loss = mean ** (2 - p) / (2 - p) - self.y * mean ** (1 - p) / (1 - p)
        return np.asarray(self.weight * loss)

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return minus the first derivative and the expected second one."""
        mean, p = self.mean(eta), self.power
        if p == 0:
            return self.weight * (self.y - mean), self.weight
        return self.weight * (self.y - mean) * mean ** (1 - p), self.weight * mean ** (2 - p)

    def take(self, rows: AnyArray | slice) -> MeanLoss:
        """Return the loss of some of the rows."""
        return replace(self, y=self.y[rows], weight=self.weight[rows], offset=self.offset[rows])


@dataclass(frozen=True, eq=False)
class MeanModel:
    """A repaired mean.

    Attributes
    ----------
    design : Design
        The columns of the prediction and of variables.
    beta : ndarray
        Coefficients, already shrunk.
    power, unit : float
        The power of the variance, and what amounts are divided by.
    stages : tuple of Stage
        How much of each correction is applied.
    """

    design: Design
    beta: Floats
    power: float
    unit: float
    stages: tuple[Stage, ...]

    def predict(self, mu: Floats, columns: list[AnyArray]) -> Floats:
        """Return repaired means of rows."""
        if not self.beta.any():
            return np.asarray(mu, dtype=np.float64)
        z = np.log(mu) if self.power else mu / self.unit
        eta = self.design.matrix(z, columns) @ self.beta
        return np.asarray(mu * np.exp(eta) if self.power else mu + self.unit * eta)


def fit_mean(
    mu: Floats,
    y: Floats,
    columns: list[AnyArray],
    n_levels: list[int],
    *,
    exposure: Floats | None = None,
    groups: Ints | None = None,
) -> MeanModel:
    """Fit the repair; categories are codes of levels, numbers have 0 levels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> v = rng.random(4000)
    >>> y = rng.poisson(np.exp(v)) * 1.0
    >>> model = fit_mean(np.full(4000, 1.7), y, [v], [0])
    >>> ratio = model.predict(np.full(2, 1.7), [np.array([0.1, 0.9])]) / np.exp([0.1, 0.9])
    >>> bool(np.abs(ratio - 1).max() < 0.1)
    True
    """
    power = max(variance_power(y, mu, exposure), 0.0)
    w = np.ones(len(y)) if exposure is None else exposure
    unit = 1.0 if power else float(np.std(y - mu)) or 1.0
    z = np.log(mu) if power else mu / unit
    design = Design.of(z, columns, n_levels, np.ones(len(y)), (float(z.min()), float(z.max())))
    X, blocks = design.matrix(z, columns), design.groups()
    loss = MeanLoss(y / unit, w, z, power)
    loss = replace(loss, weight=w / dispersion(loss))
    folds = make_folds(hashed([mu, *columns]), y, np.ones(len(y)), groups, None)
    widths = {"factor": 1, "curve": design.score.table.shape[1], "variables": X.shape[1]}
    beta, out = np.zeros(X.shape[1]), np.zeros(len(y))
    stages: list[Stage] = []
    for name, width in widths.items():
        if width == np.count_nonzero(beta) and stages:
            continue
        part, own = np.ascontiguousarray(X[:, :width]), blocks[:width]
        fit: Fit = fit_blocks(part, loss, own)  # type: ignore[arg-type]
        judged = held_out(part, loss, own, fit, folds.splits())  # type: ignore[arg-type]
        stage = share_of(name, loss, out, judged, folds)
        goal = np.zeros(X.shape[1])
        goal[:width] = fit.beta
        beta, out = beta + stage.share * (goal - beta), out + stage.share * (judged - out)
        stages.append(stage)
    return MeanModel(design, beta, power, unit, tuple(stages))


def dispersion(loss: MeanLoss) -> float:
    """Return Pearson's estimate of the dispersion with one factor."""
    mean = loss.mean(np.zeros(1))
    if loss.power:
        mean = mean * (loss.weight @ loss.y) / (loss.weight @ mean)
    return float(np.mean(loss.weight * (loss.y - mean) ** 2 / mean**loss.power)) or 1.0


def _limited(saved: Floats) -> Floats:
    """Return savings none of which has more than `MOST_PART` of their sum of squares."""
    most = float(np.abs(saved).max(initial=0.0))
    for _ in range(CLIPS):
        most = min(most, float(np.sqrt(MOST_PART * (np.minimum(np.abs(saved), most) ** 2).sum())))
    return np.clip(saved, -most, most)


def share_of(name: str, loss: MeanLoss, before: Floats, after: Floats, folds: Folds) -> Stage:
    """Return how much of the way between two predictors held-out rows support.

    As `Judge.share`. A gain that few rows carry counts as one of as many rows.
    """
    judged: Bools = np.zeros(len(before), dtype=bool)
    for _, out in folds.splits():
        judged |= out
    if not judged.any():
        return Stage(name)
    own, start, move = loss.take(judged), before[judged], (after - before)[judged]
    move = np.clip(move, -LARGEST_LOG, LARGEST_LOG)
    first = own.rows(start)
    losses = [float(own.rows(start + w * move).sum()) for w in SHARES]
    best = float(SHARES[int(np.argmin(losses))])
    saved = first - own.rows(start + best * move)
    slope = best * own.slopes(start)[0] * move
    if folds.units is not None:
        unit = np.unique(folds.units[judged], return_inverse=True)[1]
        saved, slope = (np.bincount(unit, x).astype(np.float64) for x in (saved, slope))
    plain = float(saved.sum())
    saved = _limited(saved)
    gain = min(float(saved.sum()), plain) if plain > 0 else 0.0
    spread, slope = saved - saved.mean(), _limited(slope)
    error = max(float(np.sqrt(spread @ spread)), float(np.sqrt(slope @ slope)), 1e-300)
    count = min(3 * float((spread @ spread) ** 2 / max((spread**4).sum(), 1e-300)), len(saved))
    low, high = STAGES[name]
    part = (gain / error - FEW_SAVINGS / max(count, 1.0) - low) / (high - low)
    rows = float(np.count_nonzero(judged))
    share = best * float(np.clip(part, 0.0, 1.0))
    moved = float(np.abs(share * move).mean())
    return Stage(name, share, gain / rows, error / rows, moved)
