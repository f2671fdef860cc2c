"""Rows whose days are correlated: a model that learns days is wrong about other days."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit


@dataclass(frozen=True)
class Lucky:
    """Calibrated scores but for the luck of days.

    Attributes
    ----------
    p, y, v
        Scores, outcomes, and the variables month (0–11), day (0–27) and x.
    """

    p: np.ndarray
    y: np.ndarray
    v: dict[str, np.ndarray]


def lucky_days(n: int, seed: int, luck: float) -> Lucky:
    """Return rows of 336 days, whose logits differ by normal luck; seeds have other luck."""
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 336, n)
    p = expit(rng.normal(-0.5, 1.2, n))
    y = rng.random(n) < expit(logit(p) + luck * rng.normal(size=336)[number])
    v = {"month": number // 28, "day": number % 28, "x": rng.normal(size=n)}
    return Lucky(p, y.astype(int), v)


def log_loss(y: np.ndarray, q: np.ndarray) -> float:
    """Return the mean log-loss."""
    return float(-np.log(np.where(y == 1, q, 1 - q)).mean())
