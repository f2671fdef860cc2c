"""`make_gap`: a binary model whose gap along a variable has a chosen shape and size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import AnyArray, Floats
from varcal._options import check_finite, checked, one_of
from varcal.datasets._simulation import SIMULATOR, Simulation
from varcal.exceptions import InputError


@dataclass(frozen=True)
class Shape:
    """A curve on [0, 1].

    Attributes
    ----------
    curve : callable
        The curve.
    top, bottom : float
        Its maximum and minimum.
    over, under : float
        The areas of its positive and negative part.
    """

    curve: Callable[[Floats], Floats]
    top: float
    bottom: float
    over: float
    under: float


SHAPES = {
    "tilt": Shape(lambda x: 2 * x - 1, 1, -1, 0.25, 0.25),
    "hump": Shape(lambda x: np.sin(np.pi * x) ** 2, 1, 0, 0.5, 0),
    "step": Shape(lambda x: np.where(x < 0.45, -0.55, 0.45), 0.45, -0.55, 0.2475, 0.2475),
    "tail": Shape(lambda x: np.maximum(x - 0.7, 0) / 0.3, 1, 0, 0.15, 0),
    "sine": Shape(lambda x: np.sin(6 * np.pi * x), 1, -1, 1 / np.pi, 1 / np.pi),
    "none": Shape(np.zeros_like, 0, 0, 0, 0),
}


@dataclass(frozen=True)
class Scores:
    """Beta(a, b) stretched over (low, high)."""

    a: float
    b: float
    low: float = 0.0
    high: float = 1.0

    @property
    def mean(self) -> float:
        """The expected score."""
        return self.low + (self.high - self.low) * self.a / (self.a + self.b)

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n scores."""
        return self.low + (self.high - self.low) * rng.beta(self.a, self.b, n)

    def quantile(self, rank: ArrayLike) -> Floats:
        """Return the scores at the given ranks."""
        from scipy.special import betaincinv  # noqa: PLC0415

        spread = betaincinv(self.a, self.b, np.asarray(rank, dtype=float))
        return np.asarray(self.low + (self.high - self.low) * spread)

    def distance(self, point: float) -> float:
        """Return E|s − point|, from the beta distribution's partial mean."""
        from scipy.special import betainc  # noqa: PLC0415

        width = self.high - self.low
        t = float(np.clip((point - self.low) / width, 0, 1))
        mean = self.a / (self.a + self.b)
        below = betainc(self.a, self.b, t), mean * betainc(self.a + 1, self.b, t)
        inside = 2 * (t * below[0] - below[1]) + mean - t
        outside = abs(point - (self.low + width * t))
        return float(width * inside + outside)


SCORES = {
    "beta": Scores(2, 5),
    "uniform": Scores(1, 1, 0.2, 0.8),
    "rare": Scores(2, 98),
    "confident": Scores(5, 0.5),
}

#: The tied variable: integers 0 … `TIED_LAST`, of which one is very frequent. Quantile bins of such
#: columns, which are common in real data, do not have equal counts.
TIED_LAST, TIED_FREQUENT, TIED_SHARE = 20, 16, 0.3
#: The categorical variable: levels and their unequal shares.
LEVELS = np.array(list("abcdefgh"))
LEVEL_SHARES = np.array([0.02, 0.08, 0.15, 0.20, 0.15, 0.10, 0.15, 0.15])
#: Relative rounding error allowed in checks of the size of a gap.
_ROUNDING = 1e-12
#: The kinds of variables.
VARIABLES = ("continuous", "tied", "categorical")


@dataclass(frozen=True)
class Gap:
    """The true gap as a function of v: a scaled shape at the position of v in [0, 1]."""

    shape: str
    variable: str
    scale: float = 1.0

    def __call__(self, v: ArrayLike) -> Floats:
        return self.scale * SHAPES[self.shape].curve(_position(np.asarray(v), self.variable))


@checked(
    shape=one_of(*SHAPES),
    vece=check_finite,
    scores=one_of(*SCORES),
    variable=one_of(*VARIABLES),
    **SIMULATOR,
)
def make_gap(
    n: int,
    shape: str = "tilt",
    *,
    vece: float = 0.04,
    scores: str = "beta",
    variable: str = "continuous",
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    r"""Simulate a binary model whose gap along v has a known shape and a given VECE.

    Scores s with mean :math:`\mu` are independent of v. If the gap :math:`g(v)` is positive, the
    event is rarer than the score predicts; if it is negative, more frequent:

    .. math:: P(y = 1 \mid s, v) = s\,\bigl(1 - g^+(v)/\mu\bigr) +
              (1 - s)\,g^-(v)/(1 - \mu),

    so that :math:`E[s \mid v] - P(y = 1 \mid v) = g(v)` exactly, and every gap between
    :math:`\mu - 1` and :math:`\mu` is possible without clipping. g is the shape scaled to
    :math:`E|g(v)| =` ``vece``.

    Parameters
    ----------
    n : int
        The number of rows.
    shape : {"tilt", "hump", "step", "tail", "sine", "none"}, default "tilt"
        With x in [0, 1] the position of v: 2x − 1; sin² πx; −0.55 below x = 0.45 and 0.45 above; a
        ramp from x = 0.7 on; sin 6πx; zero.
    vece : float, default 0.04
        The population's VECE; ignored for ``"none"``.
    scores : {"beta", "uniform", "rare", "confident"}, default "beta"
        Beta(2, 5); U(0.2, 0.8); Beta(2, 98), with 2 % positives; Beta(5, 1/2), concentrated at 1.
    variable : {"continuous", "tied", "categorical"}, default "continuous"
        U(0, 1); integers 0 … 20, with an additional 30 % of the rows at 16; strings "a" … "h" with
        unequal shares, the smallest 2 %.
    random_state : int, Generator or None, default 0
        The seed.

    Returns
    -------
    Simulation
        Rows and truth, for ``event="positive"``: p is P(y = 1), shape (n,).

    Raises
    ------
    InputError
        If the gap is too large for the scores; the message names the largest possible ``vece``.

    References
    ----------
    Kelly & Smyth (2023), the definition of VECE.

    Examples
    --------
    >>> sim = make_gap(1000, "tilt", vece=0.05)
    >>> sim.vece, sim.gap([0.0, 0.5, 1.0])
    (0.05, array([-0.1,  0. ,  0.1]))
    >>> make_gap(1000, "hump", variable="categorical").v[:3]
    array(['f', 'd', 'b'], dtype='<U1')
    """
    vece = 0.0 if shape == "none" else _checked_vece(vece)
    score = SCORES[scores]
    top, bottom, over, under = _extent(shape, variable)
    scale = vece / (over + under) if vece else 0.0
    _check_size(scale * top, scale * bottom, vece, score.mean, shape, scores)
    gap = Gap(shape, variable, scale)

    rng = np.random.default_rng(random_state)
    v, s = _draw_variable(n, variable, rng), score.draw(n, rng)
    # Clipping removes only rounding errors, because the size of the gap has been checked.
    rate = np.clip(s - _spread(s, gap(v), score.mean), 0.0, 1.0)
    # The gap at a score s is slope·(s − crossing), as the two parts of the formula are linear in s.
    slope = scale * (over / score.mean + under / (1 - score.mean))
    crossing = scale * under / (1 - score.mean) / slope if slope else 0.0
    return Simulation(
        name=f"make_gap({shape!r}, vece={vece:g}, scores={scores!r}, variable={variable!r})",
        event="positive",
        y=(rng.random(n) < rate).astype(np.int64),
        p=s,
        v=v,
        rate=rate,
        ece=slope * score.distance(crossing),
        vece=vece,
        gap=gap,
        score_gap=partial(_sloped, slope=slope, crossing=crossing),
        score_quantile=score.quantile,
    )


def _spread(s: Floats, gap: Floats, mean: float) -> Floats:
    """Distribute a gap over the scores such that the probability of the event stays in [0, 1]."""
    return np.where(gap > 0, gap * s / mean, gap * (1 - s) / (1 - mean))


def _sloped(score: ArrayLike, slope: float, crossing: float) -> Floats:
    return slope * (np.asarray(score, dtype=float) - crossing)


def _position(v: AnyArray, variable: str) -> Floats:
    """Return the positions of the values of a variable in [0, 1]."""
    if variable == "categorical":
        unknown = ~np.isin(v, LEVELS)
        if unknown.any():
            raise InputError(
                f"v has no level {str(v[unknown][0])!r}",
                f"the levels are {', '.join(LEVELS)}",
                argument="v",
            )
        return (np.searchsorted(LEVELS, v.astype(LEVELS.dtype)) + 0.5) / len(LEVELS)
    return v / TIED_LAST if variable == "tied" else v.astype(float)


def _draw_variable(n: int, variable: str, rng: np.random.Generator) -> AnyArray:
    if variable == "categorical":
        return rng.choice(LEVELS, size=n, p=LEVEL_SHARES)
    if variable == "tied":
        values = rng.integers(TIED_LAST + 1, size=n)
        return np.where(rng.random(n) < TIED_SHARE, TIED_FREQUENT, values)
    return rng.random(n)


def _extent(shape: str, variable: str) -> tuple[float, float, float, float]:
    """Return the maximum, minimum, and mean positive and negative part of an unscaled gap."""
    if variable == "continuous":
        known = SHAPES[shape]
        return known.top, known.bottom, known.over, known.under
    if variable == "tied":
        values: AnyArray = np.arange(TIED_LAST + 1)
        shares = np.full(len(values), (1 - TIED_SHARE) / len(values))
        shares[TIED_FREQUENT] += TIED_SHARE
    else:
        values, shares = LEVELS, LEVEL_SHARES
    gap = Gap(shape, variable)(values)
    over, under = shares @ np.maximum(gap, 0), shares @ np.maximum(-gap, 0)
    return float(gap.max()), float(gap.min()), float(over), float(under)


def _checked_vece(vece: float) -> float:
    if not 0 <= vece < 1:
        raise InputError(f"vece must be from 0 to below 1; got {vece!r}", "for example vece=0.04")
    return float(vece)


def _check_size(
    top: float, bottom: float, vece: float, mean: float, shape: str, scores: str
) -> None:
    """Raise an error if the gap is not between mean − 1 and mean, the range for these scores."""
    excess = max(top / mean, -bottom / (1 - mean))
    if excess > 1 + _ROUNDING:
        raise InputError(
            f"vece={vece:g} is too large for shape={shape!r} with scores={scores!r}: the gap would "
            f"reach {top if top / mean == excess else bottom:.4g}, but scores with mean {mean:.3g} "
            f"allow only {mean - 1:.3g} to {mean:.3g}",
            f"use a vece of at most {np.floor(vece / excess * 1e6) / 1e6:g}, or other scores",
        )
