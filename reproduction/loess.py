"""LOESS as the paper uses it: quadratic, with tricube weights of the nearest rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from skmisc.loess import loess


@dataclass(frozen=True, eq=False)
class LoessLine:
    """A fit with the pointwise 95 % band of its standard error."""

    fit: np.ndarray
    low: np.ndarray
    high: np.ndarray


def loess_line(x: np.ndarray, y: np.ndarray, at: np.ndarray, *, span: float) -> LoessLine:
    """Fit y on x, and return the line and its band at some ascending points.

    scikit-misc gives the same line; its band takes 15 seconds for 12,000 rows.
    """
    values, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    weights = np.array([_weights(values, counts, point, span) for point in at])
    fit = weights @ (np.bincount(place, y) / counts)
    scale = np.std(y - np.interp(x, at, fit))
    reach = 1.96 * scale * np.sqrt(weights**2 @ (1 / counts))
    return LoessLine(fit, fit - reach, fit + reach)


def _weights(values: np.ndarray, counts: np.ndarray, point: float, span: float) -> np.ndarray:
    """Return the weight of the mean of each tied value in a local quadratic fit at a point."""
    offset = values - point
    distance = np.abs(offset)
    order = np.argsort(distance)
    nearest = np.searchsorted(np.cumsum(counts[order]), int(span * counts.sum()))
    width = distance[order[nearest]]
    kernel = counts * np.clip(1 - (distance / width) ** 3, 0, None) ** 3
    basis = np.vander(offset / width, 3, increasing=True)
    return kernel * (basis @ np.linalg.inv(basis.T * kernel @ basis)[0])


def worst_gap(x: np.ndarray, wrong: np.ndarray, predicted: np.ndarray) -> float:
    """Return VCE(v*) as a fraction: the largest distance between the curves of two responses.

    The curves are interpolated between vertices, and the distance is taken at 500 points between
    the 5 % and 95 % quantiles of x.
    """
    order = np.argsort(x, kind="stable")
    at = np.linspace(*np.quantile(x, [0.05, 0.95]), 500)
    curves = []
    for y in (wrong, predicted):
        curve = loess(x[order], y[order].astype(float), span=0.9, degree=2)
        curve.fit()
        curves.append(curve.predict(at).values)
    return float(np.abs(curves[0] - curves[1]).max())
