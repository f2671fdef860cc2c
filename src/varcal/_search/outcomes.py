"""Outcomes: residuals of the data and of simulated outcomes, for every claim of a model.

A residual is w·(hit − score). Residuals, variances and weights are whole multiples of a power of
two, small enough that sums of them are exact; the search then has the same result in any order of
rows. Outcomes are drawn from the model's own probabilities (or those without an average gap), so
that the whole null holds in them. With groups they are drawn from a Gaussian copula: each row keeps
its probability, and rows of a group are as dependent as the residuals of the data are.

The average gap is taken off before the search: log-odds are moved by one number. That fit takes the
sum of the residuals; simulated ones must lose it as well. Each column of them is reduced by its own
first step of the fit, v·Σe / Σv, and all are scaled to the sum of squares of the data, because a
fit also takes some of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import factorial

import numpy as np
from scipy.special import ndtr, ndtri

from varcal._arrays import Bools, Floats, Ints, Singles
from varcal._input.labels import CORRECT
from varcal._input.predictions import Predictions

#: Terms of the series of the dependence; more change ρ by less than a percent for ρ up to 0.8.
TERMS = 16
#: Standard errors that are added to the sum of products. With the estimate itself, 8 % of 136
#: searches of calibrated data in 200 groups showed a slice at 5 %: half of the estimates are below
#: the truth, and slices then look clearer than they are.
CAUTION = 1.0
#: The largest dependence.
MOST_DEPENDENT = 0.95
#: Ridge of the average, in rows; it keeps log-odds finite if no row is a hit.
RIDGE = 0.5
#: Columns of simulated outcomes that the scale is estimated from.
_TRIED = 8
#: Binary digits of the largest residual, and of the largest variance and weight.
_RESIDUAL_DIGITS, _WEIGHT_DIGITS = 21, 28
#: Distance from 0 and 1 at which log-odds are taken.
_EPS = 1e-12


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
        x = ndtri(np.clip(score, 1e-6, 1 - 1e-6))
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

        if excess(MOST_DEPENDENT) <= 0:
            return cls(group, MOST_DEPENDENT)
        return cls(group, float(brentq(excess, 0.0, MOST_DEPENDENT)))

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


@dataclass(frozen=True, eq=False)
class Average:
    """The average gap of a claim, as it is taken off simulated residuals.

    Attributes
    ----------
    variance : ndarray
        w·s(1 − s) of each row, with the scores that have no average gap.
    scale : float
        The factor of simulated residuals.
    """

    variance: Floats
    scale: float = 1.0

    @classmethod
    def of(cls, score: Floats, hit: Bools, weight: Floats) -> Average:
        """Return the average for scores that have no average gap any more."""
        found = cls(weight * score * (1 - score))
        drawn = np.random.default_rng(0).random((len(score), _TRIED)) < score[:, None]
        e = (weight[:, None] * (drawn - score[:, None])).astype(np.float32)
        simulated = float((found.removed_from(e).astype(np.float64) ** 2).sum()) / _TRIED
        observed = float(((weight * (hit - score)) ** 2).sum())
        return replace(found, scale=float(np.sqrt(observed / simulated)) if simulated > 0 else 1.0)

    def removed_from(self, e: Singles) -> Singles:
        """Take the average off columns of residuals, and scale them."""
        step = e.sum(axis=0, dtype=np.float64) / (self.variance.sum() + RIDGE)
        return (self.scale * (e - step * self.variance[:, None])).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Probabilities and outcomes of the rows to search.

    Attributes
    ----------
    scores, hits : dict
        By claim, the probability that it is about, and whether it is true.
    weight : ndarray
        Weights, scaled so that their sum is that of their squares.
    seed : int
        Seed of the simulated outcomes.
    dependence : Dependence, optional
        How rows of a group depend on each other.
    averages : dict
        The average that was taken off, by claim.
    joint : tuple, optional
        With more than two classes and no average taken off, the probabilities of all classes, of
        shape (rows, classes), and the positions of the predicted ones.
    """

    scores: dict[int, Floats]
    hits: dict[int, Bools]
    weight: Floats
    seed: int
    dependence: Dependence | None = None
    averages: dict[int, Average] = field(default_factory=dict)
    joint: tuple[Floats, Ints] | None = None

    @classmethod
    def of(cls, rows: Predictions, keys: Sequence[int], seed: int) -> Outcomes:
        """Return the outcomes of checked predictions for some claims."""
        p, joint = rows.p, None
        w = np.ones(len(p)) if rows.weight is None else rows.weight.astype(np.float64)
        w = w * (w.sum() / (w * w).sum())
        if len(rows.classes) == 2:
            p = p if p.ndim == 1 else p[:, 1] / p.sum(axis=1)
            scores = {key: p if key == 1 else 1.0 - p for key in keys}
            hits = {key: rows.y == key for key in keys}
        else:
            joint = p / p.sum(axis=1, keepdims=True), p.argmax(axis=1)
            scores = _scores_of(*joint, keys)
            hits = {key: rows.y == (joint[1] if key == CORRECT else key) for key in keys}
        found = cls(scores, hits, w, seed, joint=joint)
        if rows.groups is None:
            return found
        first = keys[0]
        return replace(found, dependence=Dependence.of(rows.groups, scores[first], hits[first]))

    def without_average(self) -> Outcomes:
        """Take the average gap off: move log-odds by one number."""
        scores, averages = {}, {}
        for key, s in self.scores.items():
            hit, w = self.hits[key], self.weight
            scores[key] = _with_total(np.clip(s, _EPS, 1 - _EPS), w, float(w @ hit), RIDGE)
            averages[key] = Average.of(scores[key], hit, w)
        return replace(self, scores=scores, averages=averages, joint=None)

    def weights(self, key: int) -> Floats:
        """Return the variance and the weight of each row for a claim."""
        s, w = self.scores[key], self.weight
        return np.column_stack(
            [_on_grid(w * w * s * (1 - s), _WEIGHT_DIGITS), _on_grid(w, _WEIGHT_DIGITS)]
        )

    def observed(self, key: int) -> Singles:
        """Return the residuals of the data, of shape (n, 1)."""
        e = self.weight * (self.hits[key] - self.scores[key])
        return self.on_grid(e[:, None])

    def columns(self, key: int, columns: slice) -> Singles:
        """Return the residuals of columns: the data is column 0, simulated outcomes follow."""
        later = slice(max(columns.start, 1), columns.stop)
        parts = [self.observed(key)] if columns.start == 0 else []
        if later.stop > later.start:
            parts.append(self.centred(key, self.drawn(key, later)))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def drawn(self, key: int, columns: slice) -> Singles:
        """Return the residuals of some columns of simulated outcomes."""
        s = self.scores[key]
        n, size = len(s), columns.stop - columns.start
        rng = np.random.default_rng([self.seed, columns.start])
        if self.dependence is None:
            u = rng.random((n, size), dtype=np.float32)
        else:
            u = self.dependence.uniform(rng, size)
        if self.joint is not None:
            p, predicted = self.joint
            upper = np.cumsum(p, axis=1).astype(np.float32)
            classes = np.zeros((n, size), dtype=np.intp)
            for k in range(p.shape[1] - 1):
                classes += u >= upper[:, k, None]
            hit = classes == (predicted[:, None] if key == CORRECT else key)
        elif key == 0 and len(self.scores) == 1:
            # Either of two classes gives the mirror image of the other's result.
            hit = u >= (1.0 - s).astype(np.float32)[:, None]
        else:
            hit = u < s.astype(np.float32)[:, None]
        e = np.subtract(hit, s.astype(np.float32)[:, None], dtype=np.float32)
        e *= self.weight.astype(np.float32)[:, None]
        return e

    def centred(self, key: int, e: Singles) -> Singles:
        """Take the average off columns of residuals if it is known, and round them."""
        return self.on_grid(self.averages[key].removed_from(e) if key in self.averages else e)

    def shifted(self, key: int, inside: Bools, gap: float | None = None) -> Outcomes:
        """Return the outcomes with other probabilities in some rows.

        The log-odds of the claim are moved by one number, so that the gap of these rows vanishes,
        or changes by `gap` in units of the residual's mean.
        """
        s = np.clip(self.scores[key][inside], _EPS, 1 - _EPS)
        w = self.weight[inside]
        target = (w * self.hits[key][inside]).sum() if gap is None else (w * (s + gap)).sum()
        new = _with_total(s, w, float(np.clip(target, 1e-9 * w.sum(), (1 - 1e-9) * w.sum())))
        if self.joint is None:
            score = self.scores[key].copy()
            score[inside] = new
            return replace(self, scores=self.scores | {key: score})
        p, predicted = self.joint[0].copy(), self.joint[1]
        part = p[inside]
        own = np.arange(len(part)), predicted[inside] if key == CORRECT else np.full(len(s), key)
        part *= ((1 - new) / np.maximum(1 - part[own], _EPS))[:, None]
        part[own] = new
        p[inside] = part / part.sum(axis=1, keepdims=True)
        scores = _scores_of(p, predicted, list(self.scores))
        return replace(self, scores=scores, joint=(p, predicted))

    def on_grid(self, e: Floats | Singles) -> Singles:
        """Round residuals to multiples of a power of two that is the same in every column."""
        largest = float(self.weight.max()) * 2
        digits = _RESIDUAL_DIGITS - np.ceil(np.log2(largest))
        wide = e * np.float32(2.0**digits)
        found: Singles = np.rint(wide, out=wide).astype(np.float32, copy=False)
        found *= np.float32(2.0**-digits)
        return found


def _scores_of(p: Floats, predicted: Ints, keys: Sequence[int]) -> dict[int, Floats]:
    own = np.take_along_axis(p, predicted[:, None], axis=1)[:, 0]
    return {key: own if key == CORRECT else p[:, key] for key in keys}


def _on_grid(values: Floats, digits: int) -> Floats:
    """Round numbers to multiples of a power of two, so that sums of them are exact."""
    largest = float(values.max(initial=0.0))
    if largest == 0:
        return values
    unit = 2.0 ** (np.ceil(np.log2(largest)) - digits)
    found: Floats = np.rint(values / unit) * unit
    return found


def _with_total(s: Floats, w: Floats, total: float, ridge: float = 0.0) -> Floats:
    """Move log-odds by one number, β, so that Σ w·s + ridge·β has the given value."""
    from scipy.optimize import brentq  # noqa: PLC0415  only a search needs it
    from scipy.special import expit  # noqa: PLC0415

    odds = np.log(s / (1 - s))

    def excess(by: float) -> float:
        return float((w * expit(odds + by)).sum() + ridge * by - total)

    return np.asarray(expit(odds + brentq(excess, -60.0, 60.0, xtol=1e-15)))
