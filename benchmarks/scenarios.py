"""Simulated scenarios with a known truth: scores, a variable, and a gap of known shape and size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

SCORES = ("beta(2,5)", "uniform", "rare", "concentrated")
VARIABLES = ("continuous", "tied", "categorical")
SHAPES = {
    "tilt": lambda u: 2 * u - 1,
    "hump": lambda u: np.exp(-(((u - 0.5) / 0.15) ** 2)),
    "step": lambda u: (u > 0.6) * 1.0,
    "tail": lambda u: (u > 0.93) * 1.0,
    "sine": lambda u: np.sin(6 * np.pi * u),
    "flat": lambda u: np.ones_like(u),
}
#: The shares of the values of the tied variable, and the coarse bin of each.
ATOMS = np.array([0.32, 0.02, 0.03, 0.15, 0.05, 0.08, 0.1, 0.03, 0.02, 0.12, 0.04, 0.03, 0.01])
TIED = np.array([0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5])
#: The shares of the levels of the categorical variable.
LEVELS = np.array([0.35, 0.25, 0.15, 0.1, 0.07, 0.05, 0.03])


def score_at(kind: str, q: np.ndarray) -> np.ndarray:
    """Return the quantile function of a family of scores."""
    if kind == "beta(2,5)":
        return special.betaincinv(2.0, 5.0, q)
    if kind == "uniform":
        return 0.2 + 0.6 * q
    if kind == "rare":
        return special.betaincinv(0.8, 39.2, q)
    if kind == "concentrated":
        return np.where(q < 0.4, 0.5 + 1.2 * q, 0.98 + 0.02 * np.clip((q - 0.4) / 0.4, 0, 1))
    raise ValueError(kind)


@dataclass(frozen=True)
class Scenario:
    """A joint distribution of score, hit, variable and weight.

    ``vece`` is the error of the population over the coarse bins, from which the size of the gap is
    computed. ``slope`` is the correlation of score and variable on the normal scale, and ``offset``
    a constant that is added to the gap.
    """

    score: str = "uniform"
    variable: str = "continuous"
    shape: str = "tilt"
    vece: float = 0.0
    slope: float = 0.0
    weighted: bool = False
    offset: float = 0.0
    n_bins: int = 10

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        u = (np.arange(2000) + 0.5) / 2000
        z = special.ndtri((np.arange(250) + 0.5) / 250)
        return u, self._scores(u[:, None], z[None, :])

    def _scores(self, u: np.ndarray, z: np.ndarray) -> np.ndarray:
        if self.slope:
            z = self.slope * special.ndtri(u) + np.sqrt(1 - self.slope**2) * z
        grid = np.linspace(0, 1, 4001)
        return np.interp(special.ndtr(z), grid, score_at(self.score, np.clip(grid, 1e-6, 1 - 1e-6)))

    def probability(self, u: np.ndarray, s: np.ndarray, size: float) -> np.ndarray:
        """Return the true probability of a hit."""
        sign = -1 if self.score == "rare" else 1
        return np.clip(s - sign * size * SHAPES[self.shape](u) - self.offset, 0, 1)

    def bins(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the fine and the coarse bin of each row."""
        if self.variable == "continuous":
            return (200 * u).astype(int), (self.n_bins * u).astype(int)
        shares = ATOMS if self.variable == "tied" else LEVELS
        fine = np.minimum(np.searchsorted(np.cumsum(shares), u, side="right"), len(shares) - 1)
        return fine, TIED[fine] if self.variable == "tied" else fine

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of fine and of coarse bins."""
        return {
            "continuous": (200, self.n_bins),
            "tied": (len(ATOMS), int(TIED[-1]) + 1),
            "categorical": (len(LEVELS), len(LEVELS)),
        }[self.variable]

    def truth(self, size: float, *, center: bool = False) -> tuple[float, np.ndarray, np.ndarray]:
        """Return VECE, gaps and shares of the population."""
        u, s = self._grid
        gap = (s - self.probability(u[:, None], s, size)).mean(1)
        index = self.bins(u)[1]
        share = np.bincount(index, minlength=self.sizes[1]) / len(u)
        gaps = np.bincount(index, gap, minlength=self.sizes[1]) / len(u) / share
        if center:
            gaps = gaps - share @ gaps
        return float(share @ np.abs(gaps)), gaps, share

    @cached_property
    def size(self) -> float:
        """The size of the gap that gives the chosen VECE (without the overall gap, if any)."""
        if not self.vece:
            return 0.0
        center = self.offset != 0
        low, high = 0.0, 1.0
        while self.truth(high, center=center)[0] < self.vece:
            high *= 2
            if high > 64:
                raise ValueError(f"{self} is impossible")
        for _ in range(40):
            middle = (low + high) / 2
            if self.truth(middle, center=center)[0] < self.vece:
                low = middle
            else:
                high = middle
        return high

    def draw(self, rng: np.random.Generator, replicates: int, n: int):
        """Return u, score, hit, weight, each of shape (replicates, n)."""
        u = rng.random((replicates, n))
        s = self._scores(u, rng.standard_normal((replicates, n)))
        h = rng.random((replicates, n)) < self.probability(u, s, self.size)
        w = rng.gamma(2.0, 0.5, (replicates, n)) if self.weighted else np.ones((replicates, n))
        return u, s, h.astype(float), w
