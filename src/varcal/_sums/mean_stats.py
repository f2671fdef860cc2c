"""MeanStats: the sums of amounts and their predicted means, and the model of their variance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Floats, ratio_or_nan
from varcal._sums.stats import BinnedStats

#: A count, the product of a rate and an exposure, is whole up to this.
WHOLE = 1e-6
#: Marks the variance of soft labels, μ(1 − μ); other models are powers of μ.
SHARES = -1.0
#: The products of r and the base m whose sums are the third and fourth moments.
MOMENTS = ("rrr", "rrm", "rmm", "mmm", "rrrr", "rrrm", "rrmm", "rmmm", "mmmm")
#: With the weight w (that of a row times its exposure), the outcome y and its predicted mean μ:
#: rows, Σw, Σw², Σwy, Σwμ, Σwx; with r = w(y − μ) and the base m, wμ or w: Σm, Σm², Σrm, Σr²; the
#: model of the variance of Σr; and the moments.
MEAN_FIELDS = (
    *("n", "weight", "weight2", "hit", "score", "x", "base", "base2", "error2", "square2", "null2"),
    *MOMENTS,
)


@dataclass(frozen=True, eq=False)
class MeanStats(BinnedStats):
    """The sums of bins over rows whose outcome is an amount, a count or a share.

    Attributes
    ----------
    relative : bool
        Whether gaps are relative, 1 − A/E with the base wμ, or μ − y with the base w.
    power : float
        The power of the model of the variance (`variance_power`).
    """

    relative: bool = True
    power: float = 0.0
    fields: ClassVar[tuple[str, ...]] = MEAN_FIELDS

    @property
    def gap(self) -> Floats:
        """The gap of each bin, NaN where it is empty."""
        return ratio_or_nan(self.total("score") - self.total("hit"), self.total("base"))


def mean_terms(
    y: ArrayLike,
    mu: ArrayLike,
    *,
    exposure: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    relative: bool = True,
    power: float,
) -> dict[str, Floats]:
    """Return what each row adds to the sums `MEAN_FIELDS`, without n and x.

    Parameters
    ----------
    y, mu : array
        Outcomes and predicted means, per unit of exposure if there is one.
    exposure, weight : array, optional
        Exposure and sampling weight of each row.
    relative, power
        As in `MeanStats`.
    """
    y, mu = np.asarray(y, float), np.asarray(mu, float)
    e = np.ones_like(y) if exposure is None else np.asarray(exposure, float)
    w = e if weight is None else e * np.asarray(weight, float)
    r, m = w * (y - mu), w * mu if relative else w
    r2, rm, m2 = r * r, r * m, m * m
    terms = {"weight": w, "weight2": w * w, "hit": w * y, "score": w * mu, "base": m, "base2": m2}
    terms |= {"error2": rm, "square2": r2, "null2": w * (w / e) * model_variance(mu, power)}
    moments = (r2 * r, r2 * m, r * m2, m2 * m, r2 * r2, r2 * rm, r2 * m2, rm * m2, m2 * m2)
    return terms | dict(zip(MOMENTS, moments, strict=True))


def mean_sums(
    terms: Mapping[str, Floats],
    index: ArrayLike,
    size: int,
    bucket: ArrayLike | None = None,
    x: Floats | None = None,
) -> Floats:
    """Sum rows by bin, and by bucket of groups if there are any: (fields, buckets, bins)."""
    cell, many = np.asarray(index, np.intp), 1
    if bucket is not None:
        many = int(np.max(bucket, initial=0)) + 1
        cell = cell + size * np.asarray(bucket, np.intp)
    found = {name: np.bincount(cell, term, many * size) for name, term in terms.items()}
    found["n"] = np.bincount(cell, minlength=many * size)
    if x is not None:
        found["x"] = np.bincount(cell, terms["weight"] * x, many * size)
    none = np.zeros(many * size)
    sums = [found.get(name, none) for name in MEAN_FIELDS]
    return np.asarray(sums, float).reshape(len(sums), many, size)


def variance_power(y: ArrayLike, mu: ArrayLike, exposure: ArrayLike | None = None) -> float:
    """Return the power p of the model V(μ) = μᵖ, or `SHARES` for μ(1 − μ).

    0 where amounts may be negative, 1 for counts, 1.5 for amounts with zeros, 2 for positive
    amounts; μ(1 − μ) if outcomes and predictions lie in [0, 1].

    >>> variance_power([0, 2, 1], [0.5, 1.5, 1.0]), variance_power([0.0, 2.5], [1.0, 1.0])
    (1.0, 1.5)
    """
    y, mu = np.asarray(y, float), np.asarray(mu, float)
    if y.min(initial=0.0) < 0 or mu.min(initial=1.0) <= 0:
        return 0.0
    counts = y if exposure is None else y * np.asarray(exposure, float)
    whole = np.allclose(counts, np.round(counts), rtol=0.0, atol=WHOLE)
    if not whole and max(y.max(initial=0.0), mu.max(initial=0.0)) <= 1.0 and (mu < 1).all():
        return SHARES
    if whole:
        return 1.0
    return 1.5 if (y == 0).any() else 2.0


def model_variance(mu: Floats, power: float) -> Floats:
    """Return V(μ)."""
    return np.asarray(mu * (1 - mu) if power == SHARES else mu**power)
