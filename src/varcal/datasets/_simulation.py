"""`make_gap` simulates a model whose gap along a variable has a known shape and size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal._arrays import AnyArray, Floats
from varcal._input.frames import frame_of
from varcal._options import check_finite, check_seed, checked, one_of, whole
from varcal.exceptions import InputError, shown

#: Cells per bin in numerical integrals over bins. It is even, so that a jump in the middle of a bin
#: falls between two cells.
CELLS_PER_BIN = 1000
#: The most rows of a simulation, some four gigabytes.
MOST_ROWS = 100_000_000
#: Every bin of the truth is a mean over many cells.
MOST_TRUE_BINS = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    r"""Rows of a simulated classifier whose calibration errors are known.

    The gap is mean score minus hit rate: positive is overconfident. With the score :math:`s`, the
    hit :math:`h` and the variable :math:`v`,

    .. math:: \mathrm{ECE} = E\,\bigl|\,s - P(h \mid s)\bigr|, \qquad
              \mathrm{VECE} = E\,\bigl|E[s \mid v] - P(h \mid v)\bigr|.

    Attributes
    ----------
    name : str
        The function that simulated the rows, with its parameters.
    event : {"correct", "positive"}
        What the score is the probability of: that the argmax is right, or that y = 1.
    y : ndarray of int, shape (n,)
        Labels 0 … K − 1.
    p : ndarray of float, shape (n, K) or (n,)
        Class probabilities; only P(y = 1) if the event is ``"positive"``.
    v : ndarray, shape (n,)
        The variable.
    rate : ndarray of float, shape (n,)
        The true probability of a hit in each row, which a perfect model would predict.
    ece, vece : float
        The population values (integrals, not binned).
    gap : callable
        The true gap as a function of v.
    score_gap : callable
        The true gap as a function of the score.
    score_quantile : callable
        The score as a function of its rank in (0, 1).

    References
    ----------
    Kelly & Smyth (2023), Variable-Based Calibration for Machine Learning Classifiers, AAAI.

    Examples
    --------
    >>> from varcal.datasets import make_gap
    >>> sim = make_gap(1000, "tilt", vece=0.04)
    >>> sim.p.shape, round(sim.vece, 3)
    ((1000,), 0.04)
    >>> sim.gap([0.1, 0.9]).round(3)
    array([-0.064,  0.064])
    """

    name: str
    event: str
    y: NDArray[np.int64]
    p: Floats
    v: AnyArray
    rate: Floats
    ece: float
    vece: float
    gap: Callable[[Any], Floats]
    score_gap: Callable[[Any], Floats]
    score_quantile: Callable[[Any], Floats]

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return (
            f"Simulation({self.name}: {len(self):,} rows, ece={self.ece:.4g}, vece={self.vece:.4g})"
        )

    @checked(n_bins=whole(1, MOST_TRUE_BINS))
    def ece_in_bins(self, n_bins: int = 10) -> float:
        """Return the population's ECE over bins of equal support.

        An estimate over ``n_bins`` quantile bins converges to this value. It is at most ``ece``,
        because gaps of opposite sign cancel inside a bin.

        Parameters
        ----------
        n_bins : int, default 10
            The number of bins over the score.

        Returns
        -------
        float
            The limit of the binned estimate.

        Examples
        --------
        >>> from varcal.datasets import make_gap
        >>> sim = make_gap(100, "tilt", vece=0.04)
        >>> round(sim.ece, 4), round(sim.ece_in_bins(10), 4)
        (0.0127, 0.0126)
        """
        return _in_bins(self.score_gap(self.score_quantile(_cell_ranks(n_bins))), n_bins)

    @checked(n_bins=whole(1, MOST_TRUE_BINS))
    def vece_in_bins(self, n_bins: int = 10) -> float:
        """Return the population's VECE over bins of equal support; v must be continuous.

        Parameters
        ----------
        n_bins : int, default 10
            The number of bins over the variable.

        Returns
        -------
        float
            The limit of the binned estimate.

        Raises
        ------
        InputError
            If v is tied or categorical, because bins of equal support then do not exist.

        Examples
        --------
        >>> from varcal.datasets import make_gap
        >>> round(make_gap(100, "tilt", vece=0.04).vece_in_bins(5), 6)
        0.0384
        """
        if self.v.dtype.kind != "f":
            raise InputError(
                f"vece_in_bins: v of {self.name} has ties, so its bins cannot have equal support",
                "compare with .vece, or average .gap(v) over your own bins",
            )
        # A continuous v is always from U(0, 1), so that a value is its own rank.
        return _in_bins(self.gap(_cell_ranks(n_bins)), n_bins)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one frame with the columns y, p (or p_0 … p_{K−1}) and v.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow", "modin", "cudf"}, default "pandas"
            The library of the frame.

        Returns
        -------
        frame
            A frame (or table) of that library.

        Examples
        --------
        >>> from varcal.datasets import make_gap
        >>> list(make_gap(5).to_frame("pandas").columns)
        ['y', 'p', 'v']
        """
        probabilities = (
            {"p": self.p}
            if self.p.ndim == 1
            else {f"p_{k}": self.p[:, k] for k in range(self.p.shape[1])}
        )
        v = self.v.astype(object) if self.v.dtype.kind == "U" else self.v
        return frame_of({"y": self.y, **probabilities, "v": v}, backend)


def _cell_ranks(n_bins: int) -> Floats:
    cells = n_bins * CELLS_PER_BIN
    return (np.arange(cells) + 0.5) / cells


def _in_bins(gap: Floats, n_bins: int) -> float:
    return float(np.abs(gap.reshape(n_bins, -1).mean(axis=1)).mean())


def check_rows(argument: str, n: object) -> int:
    """Return the number of rows, after checking that it is a positive integer."""
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise InputError(
            f"{argument} must be a positive integer; got {shown(n)}",
            "for example n=10_000",
            argument=argument,
        )
    if n > MOST_ROWS:
        raise InputError(
            f"{argument} is at most {MOST_ROWS:,}; got {shown(n)}",
            "simulate several parts with different seeds",
            argument=argument,
        )
    return int(n)


def check_random_state(argument: str, value: object) -> int | np.random.Generator | None:
    """Return a seed, a generator or None, after checking that it is one."""
    if value is None or isinstance(value, np.random.Generator):
        return value
    return check_seed(argument, value)


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
    n=check_rows,
    random_state=check_random_state,
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
    if shape != "none" and not 0 <= vece < 1:
        raise InputError(f"vece must be from 0 to below 1; got {vece!r}", "for example vece=0.04")
    vece = 0.0 if shape == "none" else vece
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
