"""The reference engine: rows in numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._bins import (
    Bins,
    JointBins,
    LevelBins,
    NumericBins,
    check_binning,
    cut_points,
    joint_index,
    level_bins,
    numeric_bins,
    refine,
)
from varcal._stats import FIELDS, BinnedStats
from varcal._variables import Variable
from varcal.exceptions import InputError

# Rows taken at a time: their temporaries stay in the processor's cache.
_CHUNK = 32_768


class ArraySummary:
    """Quantiles and counts of a numeric array, from one sorted copy of it."""

    def __init__(self, values: NDArray[Any]) -> None:
        ordered = np.sort(values.astype(np.float64, copy=False))  # NaN comes last
        self.n_missing = int(len(ordered) - np.searchsorted(ordered, np.nan))
        self._ordered = ordered[: len(ordered) - self.n_missing]
        ends = (
            np.searchsorted(self._ordered, -np.inf, side="right"),
            np.searchsorted(self._ordered, np.inf),
        )
        self._finite = self._ordered[ends[0] : ends[1]]

    def quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return linearly interpolated quantiles of the finite values, NaN if there are none.

        As `numpy.quantile` does it, to the bit.
        """
        if not len(self._finite):
            return np.full(len(levels), np.nan)
        position = levels * (len(self._finite) - 1)
        before = np.floor(position).astype(np.intp)
        a, b = self._finite[before], self._finite[np.minimum(before + 1, len(self._finite) - 1)]
        t = position - before
        half = b / 2 - a / 2  # the whole width may be beyond what floats can hold
        return np.where(t >= 0.5, b - half * (2 * (1 - t)), a + half * (2 * t))

    def below(self, value: float) -> int:
        """Return how many rows hold a smaller value."""
        return int(np.searchsorted(self._ordered, value))

    def above(self, value: float) -> int:
        """Return how many rows hold a larger value."""
        return len(self._ordered) - int(np.searchsorted(self._ordered, value, side="right"))

    def count(self, value: float) -> int:
        """Return how many rows hold exactly this value."""
        return len(self._ordered) - self.below(value) - self.above(value)


def make_bins(
    variables: Sequence[Variable],
    *,
    n_bins: int = 10,
    binning: str = "quantile",
    bins: object = None,
) -> Bins:
    """Choose bins for one variable, or joint bins for several.

    Parameters
    ----------
    variables : sequence of Variable
        At least one.
    n_bins : int
        Bins of each numeric variable. Levels with less than 1/(10 n_bins) of the rows are pooled.
    binning : {"quantile", "uniform", "atoms"}
        How numeric variables are cut.
    bins : sequence or dict of sequences, optional
        Cut points, for the one variable or by name.
    """
    check_cut_names(bins, variables)
    parts = tuple(fine_bins(variable, n_bins, binning, bins)[0] for variable in variables)
    return parts[0] if len(parts) == 1 else JointBins(parts)


def check_cut_names(bins: object, variables: Sequence[Variable]) -> None:
    """Refuse cut points for a variable that is not there, and one list for several variables."""
    known = [variable.name for variable in variables]
    if isinstance(bins, Mapping):
        for name in bins:
            if name not in known:
                raise InputError.no_column(str(name), known, "bins")
    elif bins is not None and len(known) > 1:
        raise InputError(
            f"bins is one list of cut points for {len(known)} variables",
            f"give them by name, such as bins={{{known[0]!r}: […]}}",
        )


def fine_bins(
    variable: Variable,
    n_bins: int = 10,
    binning: str = "quantile",
    bins: object = None,
    *,
    n_fine: int = 0,
) -> tuple[NumericBins | LevelBins, NumericBins | LevelBins]:
    """Choose the bins of a variable, and finer ones (for curves) that keep all their cuts."""
    check_binning(n_bins, binning)
    cuts = cut_points(bins, variable.name)
    if variable.kind != "levels":
        summary = ArraySummary(variable.values)
        coarse = numeric_bins(variable, summary, n_bins=n_bins, scheme=binning, cuts=cuts)
        return coarse, refine(coarse, summary, n_fine) if n_fine else coarse
    if cuts is not None:
        raise InputError(
            f"bins gives cut points for {variable.name!r}, which has levels",
            "cut points are for numeric and datetime variables",
        )
    present = variable.values[variable.values >= 0]
    counts = np.bincount(present, minlength=len(variable.levels))
    levels = level_bins(variable, counts, len(variable) - len(present), rare=1 / (10 * n_bins))
    return levels, levels


def collect(
    bins: Bins,
    variables: Sequence[Variable],
    score: NDArray[np.float64],
    hit: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    bucket: NDArray[np.intp] | None = None,
    n_buckets: int = 1,
    *,
    moments: bool = True,
) -> BinnedStats:
    """Sum rows into bins.

    The binning variables, the score and the hit are separate on purpose: the paper's protocol
    bins over the score of one model and scores another.

    Parameters
    ----------
    bins : Bins
        The bins.
    variables : sequence of Variable
        What is binned, in the order of the bins' parts.
    score, hit : ndarray
        The claim of each row and whether it came true.
    weight : ndarray, optional
        Sampling weights.
    bucket : ndarray of int, optional
        The bucket of groups that each row belongs to, below `n_buckets`.
    moments : bool
        Whether to sum all fields. Otherwise only rows, weight, hit and score, which are all
        that a plain metric needs; the other fields are NaN.
    """
    size = n_buckets * bins.size
    sums = np.zeros((len(FIELDS), size))
    numeric = isinstance(bins, NumericBins)
    for start in range(0, len(score), _CHUNK):
        rows = slice(start, start + _CHUNK)
        index = joint_index(bins, variables, rows)
        x = variables[0].values[rows].astype(np.float64, copy=False) if numeric else None
        cell = index if bucket is None else index + bins.size * bucket[rows]
        w = None if weight is None else weight[rows]
        for name, value in _terms(x, score[rows], hit[rows], w, moments).items():
            sums[FIELDS.index(name)] += np.bincount(cell, value, minlength=size)
    if weight is None:
        for target, source in _UNWEIGHTED.items():
            sums[FIELDS.index(target)] = sums[FIELDS.index(source)]
    if not moments:
        sums[[name not in _PLAIN for name in FIELDS]] = np.nan
    return BinnedStats(bins, sums.reshape(len(FIELDS), n_buckets, bins.size))


# Without weights these sums are those.
_UNWEIGHTED = {
    "weight": "n",
    "weight2": "n",
    "hit2": "hit",
    "score2": "score",
    "square2": "square",
    "null2": "null",
}


_PLAIN = ("n", "weight", "hit", "score")


def _terms(
    x: NDArray[np.float64] | None,
    s: NDArray[np.float64],
    h: NDArray[np.bool_],
    w: NDArray[np.float64] | None,
    moments: bool,
) -> dict[str, NDArray[Any] | None]:
    """Return what each row adds to each field (None: one)."""
    if not moments:
        if w is None:
            return {"n": None, "hit": h, "score": s}
        return {"n": None, "weight": w, "hit": w * h, "score": w * s}
    u = s * (1.0 - s)
    values: dict[str, NDArray[Any]] = {"hit": h, "score": s, "square": (h - s) ** 2, "null": u}
    fourth = u * (1.0 - 6.0 * u)
    at = None if x is None else np.where(np.isfinite(x), x, 0.0)
    terms: dict[str, NDArray[Any] | None] = {"n": None}
    if w is None:
        terms |= values | {"fourth": fourth}
    else:
        w2 = w * w
        terms |= {"weight": w, "weight2": w2, "fourth": w2 * w2 * fourth}
        for name, value in values.items():
            terms |= {name: w * value, f"{name}2": w2 * value}
    if at is not None:
        terms["x"] = at if w is None else w * at
    return terms
