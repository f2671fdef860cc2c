"""Simulated classifiers that attain the bounds of the paper's three theorems."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal.datasets import Simulation

__all__ = ["make_consistent", "make_ece_bound", "make_vece_bound"]

Floats = NDArray[np.float64]


def make_vece_bound(
    n: int,
    n_classes: int = 2,
    *,
    alpha: float = 0.05,
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    r"""Simulate a classifier that is nearly calibrated by its score but not along V (theorem 1).

    With :math:`\gamma = 1/2 + 1/(2K)`, scores :math:`s \sim U(\gamma - \alpha, \gamma + \alpha)`
    are independent of :math:`v \sim U(0, 1)`. The accuracy is :math:`1 - \alpha` below
    :math:`s = \gamma` and 1 above where :math:`v \le 1/2`; it is :math:`1/K` below and
    :math:`1/K + \alpha` above where :math:`v > 1/2`. Then

    .. math:: \mathrm{ECE} = \alpha/4, \qquad
              \mathrm{VECE} = \tfrac12 - \tfrac1{2K} - \tfrac{\alpha}{2}.

    Over ten bins of equal support the ECE is :math:`0.24\,\alpha`, since the score crosses the
    accuracy inside two of them (``Simulation.ece_in_bins``).

    Parameters
    ----------
    n : int
        The number of rows.
    n_classes : int, default 2
        K, at least 2.
    alpha : float, default 0.05
        The half-width of the scores, from 0 to (K − 1)/(2K).
    random_state : int, Generator or None, default 0
        The seed.

    Returns
    -------
    Simulation
        Rows and truth, for ``event="correct"``.

    References
    ----------
    Kelly & Smyth (2023), Theorem "VECE bound".

    Examples
    --------
    >>> sim = make_vece_bound(20_000, n_classes=10, alpha=0.1)
    >>> round(sim.ece, 4), round(sim.vece, 4)
    (0.025, 0.4)
    >>> hit = sim.p.argmax(axis=1) == sim.y
    >>> bool(abs(hit[sim.v <= 0.5].mean() - 0.95) < 0.01)
    True
    """
    k = n_classes
    rng = np.random.default_rng(random_state)
    middle = 0.5 + 0.5 / k
    score_quantile = partial(_line, start=middle - alpha, end=middle + alpha)
    score, v = score_quantile(_ranks(n, rng)), rng.random(n)
    rate = np.where(v <= 0.5, 1 - alpha, 1 / k) + alpha * (score > middle)
    height = 0.5 - 0.5 / k - alpha / 2
    return _classifier(
        f"make_vece_bound(n_classes={k}, alpha={alpha:g})",
        *(score, v, rate, k, rng),
        ece=alpha / 4,
        vece=height,
        gap=partial(_step, at=0.5, below=-height, above=height),
        score_gap=partial(_gap_to_steps, at=middle, below=middle - alpha / 2, rise=alpha),
        score_quantile=score_quantile,
    )


def make_ece_bound(
    n: int,
    n_classes: int = 2,
    *,
    alpha: float = 0.05,
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    r"""Simulate a classifier that is calibrated along V but not by its score (theorem 2).

    Half of the scores are from :math:`U(1/K, 1/K + \alpha)`, half from :math:`U(1 - \alpha, 1)`;
    the accuracy is :math:`\gamma = 1/2 + 1/(2K)` whatever the score and :math:`v \sim U(0, 1)`.
    Then

    .. math:: \mathrm{VECE} = 0, \qquad
              \mathrm{ECE} = \tfrac12 - \tfrac1{2K} - \tfrac{\alpha}{2}.

    Parameters
    ----------
    n : int
        The number of rows.
    n_classes : int, default 2
        K, at least 2.
    alpha : float, default 0.05
        The width of either half, above 0 (at 0, low scores would be ties of all classes) and up to
        (K − 1)/(2K).
    random_state : int, Generator or None, default 0
        The seed.

    Returns
    -------
    Simulation
        Rows and truth, for ``event="correct"``.

    References
    ----------
    Kelly & Smyth (2023), Theorem "ECE bound".

    Examples
    --------
    >>> sim = make_ece_bound(1000, n_classes=4, alpha=0.1)
    >>> round(sim.ece, 4), sim.vece
    (0.325, 0.0)
    """
    k = n_classes
    rng = np.random.default_rng(random_state)
    middle = 0.5 + 0.5 / k
    score_quantile = partial(_two_ends, low=1 / k, width=alpha)
    score, v = score_quantile(_ranks(n, rng)), rng.random(n)
    return _classifier(
        f"make_ece_bound(n_classes={k}, alpha={alpha:g})",
        *(score, v, np.full(n, middle), k, rng),
        ece=0.5 - 0.5 / k - alpha / 2,
        vece=0.0,
        gap=partial(_line, start=0.0, end=0.0),
        score_gap=partial(_gap_to_steps, at=middle, below=middle, rise=0.0),
        score_quantile=score_quantile,
    )


def make_consistent(
    n: int,
    n_classes: int = 2,
    *,
    alpha: float = 0.1,
    direction: str = "over",
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    r"""Simulate a consistently over- or underconfident classifier, whose ECE equals its VECE.

    With :math:`v \sim U(0, 1)` and :math:`g(v) = \alpha\,(1/2 + v)`, overconfident scores are
    :math:`s \sim U(\gamma, 1)` with accuracy :math:`s - g(v)`; underconfident ones are
    :math:`s \sim U(1/K, \gamma)` with accuracy :math:`s + g(v)`, where
    :math:`\gamma = 1/2 + 1/(2K)`. The gap has one sign for every score and every v, hence
    (theorem 3)

    .. math:: \mathrm{ECE} = \mathrm{VECE} = \bigl|E[s] - P(y = \hat y)\bigr| = \alpha.

    Parameters
    ----------
    n : int
        The number of rows.
    n_classes : int, default 2
        K, at least 2.
    alpha : float, default 0.1
        The mean gap, above 0 and up to (K − 1)/(3K): the accuracy then stays between chance and 1.
    direction : {"over", "under"}, default "over"
        The sign of the gap.
    random_state : int, Generator or None, default 0
        The seed.

    Returns
    -------
    Simulation
        Rows and truth, for ``event="correct"``.

    References
    ----------
    Kelly & Smyth (2023), Theorem "Equality conditions of ECE and VECE".

    Examples
    --------
    >>> sim = make_consistent(1000, alpha=0.1, direction="under")
    >>> sim.ece, sim.vece
    (0.1, 0.1)
    >>> sim.gap([0.0, 1.0]).round(3)
    array([-0.05, -0.15])
    """
    k = n_classes
    rng = np.random.default_rng(random_state)
    middle = 0.5 + 0.5 / k
    low, high, mean_gap = (middle, 1.0, alpha) if direction == "over" else (1 / k, middle, -alpha)
    score_quantile = partial(_line, start=low, end=high)
    gap = partial(_line, start=0.5 * mean_gap, end=1.5 * mean_gap)
    score, v = score_quantile(_ranks(n, rng)), rng.random(n)
    return _classifier(
        f"make_consistent(n_classes={k}, alpha={alpha:g}, direction={direction!r})",
        *(score, v, np.clip(score - gap(v), 0.0, 1.0), k, rng),
        ece=float(alpha),
        vece=float(alpha),
        gap=gap,
        score_gap=partial(_step, at=middle, below=mean_gap, above=mean_gap),
        score_quantile=score_quantile,
    )


def _classifier(
    name: str,
    score: Floats,
    v: Floats,
    rate: Floats,
    k: int,
    rng: np.random.Generator,
    **truth: Any,
) -> Simulation:
    """Predict a random class with the given score, which is right with the given probability."""
    n = len(score)
    predicted = rng.integers(k, size=n)
    other = (predicted + rng.integers(1, k, size=n)) % k
    y = np.where(rng.random(n) < rate, predicted, other)
    p = np.repeat(((1 - score) / (k - 1))[:, None], k, axis=1)
    p[np.arange(n), predicted] = score
    return Simulation(name=name, event="correct", y=y, p=p, v=v, rate=rate, **truth)


def _ranks(n: int, rng: np.random.Generator) -> Floats:
    """Draw from U(0, 1], so that no score is exactly 1/K, which would be a tie of all classes."""
    return 1.0 - rng.random(n)


def _line(x: ArrayLike, start: float, end: float) -> Floats:
    return start + (end - start) * np.asarray(x, dtype=float)


def _step(x: ArrayLike, at: float, below: float, above: float) -> Floats:
    return np.where(np.asarray(x, dtype=float) <= at, below, above)


def _gap_to_steps(score: ArrayLike, at: float, below: float, rise: float) -> Floats:
    """Return score minus an accuracy that rises once."""
    return np.asarray(score, dtype=float) - _step(score, at, below, below + rise)


def _two_ends(rank: ArrayLike, low: float, width: float) -> Floats:
    """Return the quantiles of an even mixture of U(low, low + width) and U(1 − width, 1)."""
    rank = np.asarray(rank, dtype=float)
    return np.where(rank <= 0.5, low + 2 * width * rank, 1 - 2 * width * (1 - rank))
