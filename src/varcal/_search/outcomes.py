"""Outcomes: residuals of the data and of simulated outcomes, for every claim of a model.

A residual is w·(hit − score). Residuals, variances and weights are whole multiples of a power of
two, small enough that sums of them are exact; the search then has the same result in any order of
rows. Outcomes are drawn from the model's own probabilities (or those that `after` explains), so
that the whole null holds in them. With groups they are drawn from a Gaussian copula: each row keeps
its probability, and rows of a group are as dependent as the residuals of the data are
(`Dependence`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import factorial

import numpy as np
from scipy.special import ndtr, ndtri

from varcal._arrays import Bools, Floats, Ints, Singles
from varcal._input.events import CORRECT
from varcal._input.predictions import Predictions
from varcal._search.known_gaps import Explained

#: Terms of the series; more change ρ by less than a percent for ρ up to 0.8.
TERMS = 16
#: Standard errors that are added to the sum of products. With the estimate itself, 8 % of 136
#: searches of calibrated data in 200 groups showed a slice at 5 %: half of the estimates are below
#: the truth, and slices then look clearer than they are.
CAUTION = 1.0
#: The largest dependence.
MOST = 0.95
#: Distance from 0 and 1 at which the quantile of a probability is taken.
_EPS = 1e-6


@dataclass(frozen=True, eq=False)
class Dependence:
    """How rows of a group depend on each other.

    Attributes
    ----------
    group : ndarray of int
        The group of each row.
    rho : float
        The correlation of the normal variables of two rows of a group.
    """

    group: Ints
    rho: float

    @classmethod
    def of(cls, group: Ints, score: Floats, hit: Bools) -> Dependence:
        """Estimate the dependence from residuals.

        >>> rng = np.random.default_rng(0)
        >>> group = np.repeat(np.arange(500), 10)
        >>> u = Dependence(group, 0.3).uniform(rng, 1)[:, 0]
        >>> found = Dependence.of(group, np.full(5000, 0.3), u < 0.3)
        >>> bool(0.28 < found.rho < 0.36)
        True
        """
        x = ndtri(np.clip(score, _EPS, 1 - _EPS))
        density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        error = np.sqrt(max(_pair_sum(group, score * (1 - score)), 0.0))
        products = _pair_sum(group, hit - score) + CAUTION * error
        before, now = np.zeros_like(x), np.ones_like(x)
        terms = []
        for k in range(1, TERMS + 1):
            terms.append(_pair_sum(group, density * now) / factorial(k))
            before, now = now, x * now - (k - 1) * before

        def excess(rho: float) -> float:
            return float(sum(term * rho**k for k, term in enumerate(terms, 1)) - products)

        if excess(0.0) >= 0:
            return cls(group, 0.0)
        from scipy.optimize import brentq  # noqa: PLC0415  only a search needs it

        rho = MOST if excess(MOST) <= 0 else float(brentq(excess, 0.0, MOST))
        return cls(group, rho)

    def uniform(self, rng: np.random.Generator, columns: int) -> Singles:
        """Draw uniform numbers for every row that depend on each other within groups."""
        n_groups = int(self.group.max()) + 1
        shared = rng.standard_normal((n_groups, columns), dtype=np.float32)
        own = rng.standard_normal((len(self.group), columns), dtype=np.float32)
        own *= np.float32(np.sqrt(1 - self.rho))
        own += np.float32(np.sqrt(self.rho)) * shared[self.group]
        found: Singles = ndtr(own)
        return found


def _pair_sum(group: Ints, values: Floats) -> float:
    """Sum the products of all pairs of rows of the same group."""
    total = np.bincount(group, values)
    return float(((total * total).sum() - (values * values).sum()) / 2)


#: Binary digits of the largest residual, and of the largest variance and weight.
_RESIDUAL_DIGITS, _WEIGHT_DIGITS = 21, 28
#: Distance from 0 and 1 at which log-odds are taken.
_EPS = 1e-12


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Probabilities and outcomes of the rows to search.

    Attributes
    ----------
    p : ndarray
        The probabilities that outcomes are compared with: (n,) for two classes, else (n, K).
    y : ndarray of int
        Positions of the observed classes.
    predicted : ndarray of int
        Positions of the predicted classes, by the model's own probabilities.
    weight : ndarray
        Weights, scaled so that their sum is that of their squares.
    seed : int
        Seed of the simulated outcomes.
    dependence : Dependence, optional
        How rows of a group depend on each other.
    explained : dict
        What lies within `after`, by the key of a claim; with two classes by key 1 only.
    """

    p: Floats
    y: Ints
    predicted: Ints
    weight: Floats
    seed: int
    dependence: Dependence | None = None
    explained: dict[int, Explained] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Predictions, seed: int) -> Outcomes:
        """Return the outcomes of checked predictions."""
        p = rows.p
        if p.ndim == 2 and p.shape[1] == 2:
            predicted = (p[:, 1] > p[:, 0]).astype(np.intp)
            p = p[:, 1] / p.sum(axis=1)
        elif p.ndim == 1:
            predicted = (p > 0.5).astype(np.intp)
        else:
            predicted = p.argmax(axis=1)
            p = p / p.sum(axis=1, keepdims=True)
        w = np.ones(len(p)) if rows.weight is None else rows.weight.astype(np.float64)
        w = w * (w.sum() / (w * w).sum())
        found = cls(p, rows.y.astype(np.intp), predicted, w, seed)
        if rows.groups is None:
            return found
        key = 1 if found.two else CORRECT
        s, hit = found.score(key), found.hit(key)
        return replace(found, dependence=Dependence.of(rows.groups, s, hit))

    @property
    def two(self) -> bool:
        """Whether there are two classes."""
        return self.p.ndim == 1

    def score(self, key: int) -> Floats:
        """Return the probability that a claim is about."""
        if key != CORRECT and key in self.explained and not self.two:
            return self.explained[key].score
        if self.two:
            place = self.predicted if key == CORRECT else np.full(len(self.y), key)
            return np.where(place == 1, self.p, 1.0 - self.p)
        if key == CORRECT:
            if key in self.explained:
                return self.explained[key].score
            return np.take_along_axis(self.p, self.predicted[:, None], axis=1)[:, 0]
        return self.p[:, key]

    def hit(self, key: int, y: Ints | None = None) -> Bools:
        """Return whether the claim is true, for the observed or for other outcomes."""
        y = self.y if y is None else y
        if key != CORRECT:
            return y == key
        predicted = self.predicted if y.ndim == 1 else self.predicted[:, None]
        return y == predicted

    def weights(self, key: int) -> Floats:
        """Return the variance and the weight of each row for a claim."""
        s, w = self.score(key), self.weight
        return np.column_stack(
            [_on_grid(w * w * s * (1 - s), _WEIGHT_DIGITS), _on_grid(w, _WEIGHT_DIGITS)]
        )

    def observed(self, key: int) -> Singles:
        """Return the residuals of the data, of shape (n, 1)."""
        e = self.weight * (self.hit(key) - self.score(key))
        return self.on_grid(e[:, None])

    def simulated(self, key: int, columns: slice) -> Singles:
        """Return the residuals of some columns of simulated outcomes."""
        if self.two:
            e = self._columns(1, columns)
            if key == CORRECT:
                e *= np.where(self.predicted == 1, 1, -1).astype(np.float32)[:, None]
            elif key == 0:
                np.negative(e, out=e)
            return self.on_grid(e)
        return self.on_grid(self._columns(key, columns))

    def columns(self, key: int, columns: slice) -> Singles:
        """Return the residuals of columns: the data is column 0, simulated outcomes follow."""
        later = slice(max(columns.start, 1), columns.stop)
        parts = [self.observed(key)] if columns.start == 0 else []
        if later.stop > later.start:
            parts.append(self.simulated(key, later))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def shifted(self, key: int, inside: Bools, gap: float | None = None) -> Outcomes:
        """Return the outcomes with other probabilities within a slice.

        The log-odds of the claim are moved by one number, so that the gap of the slice vanishes,
        or changes by `gap` in units of the residual's mean.
        """
        s = np.clip(self.score(key)[inside], _EPS, 1 - _EPS)
        w = self.weight[inside]
        target = (w * self.hit(key)[inside]).sum() if gap is None else (w * (s + gap)).sum()
        new = _with_total(s, w, float(np.clip(target, 1e-9 * w.sum(), (1 - 1e-9) * w.sum())))
        if self.two:
            flip = (self.predicted[inside] == 0) if key == CORRECT else np.full(len(s), key == 0)
            p = self.p.copy()
            p[inside] = np.where(flip, 1 - new, new)
            return replace(self, p=p)
        if key in self.explained:
            changed = self.explained[key].score.copy()
            changed[inside] = new
            explained = self.explained | {key: replace(self.explained[key], score=changed)}
            return replace(self, explained=explained)
        place = self.predicted[inside] if key == CORRECT else np.full(len(s), key)
        part = self.p[inside]
        own = np.arange(len(part)), place
        rest = 1 - part[own]
        part *= ((1 - new) / np.maximum(rest, _EPS))[:, None]
        part[own] = new
        p = self.p.copy()
        p[inside] = part / part.sum(axis=1, keepdims=True)
        return replace(self, p=p)

    def _columns(self, key: int, columns: slice) -> Singles:
        """Simulate residuals of the claim about the second of two classes, or of another claim."""
        n, size = len(self.y), columns.stop - columns.start
        rng = np.random.default_rng([self.seed, columns.start])
        if self.dependence is None:
            u = rng.random((n, size), dtype=np.float32)
        else:
            u = self.dependence.uniform(rng, size)
        if self.two or key in self.explained:
            s = self.score(key)
            hit = u < s.astype(np.float32)[:, None]
        else:
            upper = np.cumsum(self.p, axis=1).astype(np.float32)
            drawn = np.zeros((n, size), dtype=np.intp)
            for k in range(self.p.shape[1] - 1):
                drawn += u >= upper[:, k, None]
            s, hit = self.score(key), self.hit(key, drawn)
        e = np.subtract(hit, s.astype(np.float32)[:, None], dtype=np.float32)
        e *= self.weight.astype(np.float32)[:, None]
        if key in self.explained:
            e = self.explained[key].removed_from(e)
        return e

    def on_grid(self, e: Floats | Singles) -> Singles:
        """Round residuals to multiples of a power of two that is the same in every column."""
        largest = float(self.weight.max()) * 2
        digits = _RESIDUAL_DIGITS - np.ceil(np.log2(largest))
        wide = e * np.float32(2.0**digits)
        found: Singles = np.rint(wide, out=wide).astype(np.float32, copy=False)
        found *= np.float32(2.0**-digits)
        return found


def _on_grid(values: Floats, digits: int) -> Floats:
    """Round numbers to multiples of a power of two, so that sums of them are exact."""
    largest = float(values.max(initial=0.0))
    if largest == 0:
        return values
    unit = 2.0 ** (np.ceil(np.log2(largest)) - digits)
    found: Floats = np.rint(values / unit) * unit
    return found


def _with_total(s: Floats, w: Floats, total: float) -> Floats:
    """Move log-odds by one number so that Σ w·s has the given value."""
    odds = np.log(s / (1 - s))
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        if (w / (1 + np.exp(-(odds + middle)))).sum() < total:
            low = middle
        else:
            high = middle
    found: Floats = 1 / (1 + np.exp(-(odds + (low + high) / 2)))
    return found
