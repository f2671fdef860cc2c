"""ErrorSums: the sums over bins that inference needs, and the finer cells within bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._sums.stats import FIELDS, BinnedStats

#: The variance of a cell with a constant gap is at least this part of its variance without a gap.
LEAST_MODEL = 0.1
#: Weight of the model of a constant gap against the observed scatter, as a number of rows times
#: their variance.
MODEL_ROWS = 50.0
#: The number of finer cells is this times the root of the rows, counted as rows that vary like
#: those with p = 1/2 (coverage of sines of three and four periods).
CELLS_PER_ROOT = 1.25
#: The most finer cells, whose law takes products of matrices.
MOST_FINER = 200


@dataclass(frozen=True)
class ErrorSums:
    r"""Sums over the rows of each bin; the last axis of every array runs over bins.

    With the score :math:`s`, the hit :math:`h \in \{0, 1\}`, :math:`e = h - s` and the
    weight :math:`w`, each array has one sum per bin. Leading axes may be replicates or classes.

    Parameters
    ----------
    n : array
        Rows.
    weight, weight2 : array
        :math:`\sum w` and :math:`\sum w^2`.
    error, error2, square2 : array
        :math:`\sum we`, :math:`\sum w^2 e` and :math:`\sum w^2 e^2`.
    score2 : array
        :math:`\sum w^2 s`.
    null2 : array
        :math:`\sum w^2 s(1 - s)`, the variance of ``error`` if the scores are calibrated.
    fourth : array
        :math:`\sum w^4 s(1 - s)(1 - 6s(1 - s))`, its fourth cumulant.

    Examples
    --------
    >>> cells = ErrorSums.from_rows([0, 0, 1], [0.5, 0.5, 0.9], [1, 1, 0], n_bins=2)
    >>> cells.gap
    array([-0.5,  0.9])
    """

    n: Floats
    weight: Floats
    weight2: Floats
    error: Floats
    error2: Floats
    square2: Floats
    score2: Floats
    null2: Floats
    fourth: Floats

    @classmethod
    def from_rows(
        cls,
        index: ArrayLike,
        score: ArrayLike,
        hit: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        n_bins: int,
    ) -> ErrorSums:
        """Sum rows by bin; arrays of rows may have leading axes of replicates."""
        s = np.asarray(score, float)
        e = np.asarray(hit, float) - s
        w = np.broadcast_to(1.0 if weight is None else np.asarray(weight, float), s.shape)
        index = np.broadcast_to(np.asarray(index, np.intp), s.shape)
        lead = s.shape[:-1]
        start = np.arange(int(np.prod(lead))).reshape(*lead, 1) * n_bins
        flat = (index + start).ravel()
        w2, v = w * w, s * (1 - s)

        def sums(values: Floats | None) -> Floats:
            bulk = np.bincount(
                flat,
                None if values is None else values.ravel(),
                minlength=n_bins * int(np.prod(lead)),
            )
            return bulk.reshape(*lead, n_bins).astype(float)

        return cls(
            n=sums(None),
            weight=sums(w),
            weight2=sums(w2),
            error=sums(w * e),
            error2=sums(w2 * e),
            square2=sums(w2 * e * e),
            score2=sums(w2 * s),
            null2=sums(w2 * v),
            fourth=sums(w2 * w2 * v * (1 - 6 * v)),
        )

    @property
    def share(self) -> Floats:
        """Each bin's share of the weight."""
        return ratio_or_zero(self.weight, self.weight.sum(-1, keepdims=True))

    @property
    def gap(self) -> Floats:
        """Mean score minus hit rate of each bin: positive is overconfident, 0 if empty."""
        return ratio_or_zero(-self.error, self.weight)

    @property
    def overall(self) -> Floats:
        """Gap over all rows."""
        return ratio_or_zero(-self.error.sum(-1), self.weight.sum(-1))

    @property
    def effective_n(self) -> Floats:
        r""":math:`(\sum w)^2 / \sum w^2` over all rows."""
        return ratio_or_zero(self.weight.sum(-1) ** 2, self.weight2.sum(-1))

    @property
    def effective_rows(self) -> Floats:
        r""":math:`(\sum w)^2 / \sum w^2` of each bin: its rows if all have the same weight."""
        return ratio_or_zero(self.weight**2, self.weight2)

    def scatter(self) -> Floats:
        r""":math:`\sum w^2 (e - \bar e_b)^2` of each bin, about the bin's own mean."""
        mean = -self.gap
        return np.maximum(self.square2 - 2 * mean * self.error2 + mean**2 * self.weight2, 0.0)


def plug_in(gap: Floats, share: Floats) -> Floats:
    r"""Return the plug-in calibration error of binned gaps, :math:`\sum_b \pi_b |g_b|`.

    Parameters
    ----------
    gap, share : array
        Gap and share of the weight of each bin, along the last axis.

    Examples
    --------
    >>> float(plug_in(np.array([0.1, -0.3]), np.array([0.5, 0.5])))
    0.2
    """
    return np.asarray((share * np.abs(gap)).sum(-1))


def finer_cells(fine: ErrorSums, merge: Ints, placed: Bools, sides: int = 1) -> Ints | None:
    r"""Return the finer cell of each fine one; None where rows allow none within the bins.

    A gap that changes its sign inside a bin cancels there. With :math:`V = \sum s(1 - s)`, or
    :math:`\sum (h - s)^2` if that is larger (wrong scores near 0 or 1 vary more than they say),
    each bin is cut into cells of equal V, :math:`1.25 \sqrt{4V}` over all bins: more with more
    rows, and as many rows in each as needed for a gap that is not mostly noise.

    Parameters
    ----------
    fine : ErrorSums
        The sums of fine cells, by predicted side.
    merge : array of int
        The bin of each fine cell.
    placed : array of bool
        Which fine cells have an order.
    sides : int
        The number of sides whose cells are tested: fewer cells find a gap more often.
    """
    each = ratio_or_zero(fine.n, fine.weight2)
    v = (fine.null2 * each).sum(0)
    total = float(v.sum())
    seen = max(float((fine.square2 * each).sum()), total)
    many = min(CELLS_PER_ROOT * np.sqrt(4 * seen / sides), MOST_FINER)
    bins = np.bincount(merge, v)
    pieces = np.maximum(np.floor(many * bins / max(total, 1e-300)), 1.0)[merge]
    before = np.cumsum(v) - v / 2 - (np.cumsum(bins) - bins)[merge]
    piece = np.floor(pieces * ratio_or_zero(before, bins[merge].astype(np.float64)))
    piece = np.clip(piece, 0, pieces - 1) * placed
    found = np.unique(np.stack([merge, piece]), axis=1, return_inverse=True)[1].ravel()
    return found if found.max() + 1 > len(bins) else None


def merged_cells(cells: ErrorSums, index: Ints) -> ErrorSums:
    """Add up the sums of the cells with the same number, along the last axis."""
    starts = np.searchsorted(index, np.arange(index.max() + 1))
    return ErrorSums(
        **{name: np.add.reduceat(sums, starts, axis=-1) for name, sums in vars(cells).items()}
    )


def error_sums(stats: BinnedStats) -> ErrorSums:
    """Return the sums of a table over all buckets, in the form that tests need."""
    return _sums(stats.sums.sum(axis=1))


def error_sums_by_bucket(stats: BinnedStats) -> ErrorSums:
    """Return the sums of a table with a first axis for buckets of groups."""
    return _sums(stats.sums)


def error_sums_of(tables: Sequence[BinnedStats]) -> ErrorSums:
    """Return the sums of several tables over the same bins, with a first axis for the tables."""
    return _sums(np.stack([stats.sums.sum(axis=1) for stats in tables], axis=1))


def _sums(sums: Floats) -> ErrorSums:
    field = dict(zip(FIELDS, sums, strict=True))
    field["error"] = field["hit"] - field["score"]
    field["error2"] = field["hit2"] - field["score2"]
    return ErrorSums(**{name: field[name] for name in ErrorSums.__dataclass_fields__})


def constant_gap_variance(cells: ErrorSums, evidence: Floats | None = None) -> Floats:
    r"""Return the variance of each cell's ``we`` if the gap is constant.

    With a constant gap g the hits are approximately Bernoulli(s − g) with the variance
    :math:`s(1 - s) + g(2s - 1) - g^2`. This model also suits scores that are mostly near 1, for
    which :math:`s(1 - s)` is nearly 0. But the gap can be constant in v without each row being
    Bernoulli(s − g). Therefore the variances of the model are scaled so that their total equals
    the observed scatter, and each is averaged with the scatter of its own cell about g. The
    scatter has the weight of ``evidence`` rows (by default those of the cell) times the variance
    per row, the model the weight `MODEL_ROWS`.

    A cell counts by its effective number of rows, :math:`n_b = (\sum_b w)^2 / \sum_b w^2`: g is
    the mean of the cells' gaps with these weights, and scatter and model are compared per squared
    weight. A single row with most of the weight would otherwise determine both, and with its own
    error as g it has no scatter.
    """
    rows = cells.effective_rows
    total = rows.sum(-1, keepdims=True)
    g = (ratio_or_zero(rows, total) * cells.gap).sum(-1, keepdims=True)
    model = cells.null2 + g * (2 * cells.score2 - cells.weight2) - g**2 * cells.weight2
    model = np.maximum(model, LEAST_MODEL * cells.null2)
    scatter = np.maximum(cells.square2 + 2 * g * cells.error2 + g**2 * cells.weight2, 0.0)
    scatter = scatter * ratio_or_zero(total, total - 1)
    each = ratio_or_zero(rows, cells.weight2)
    observed, expected = ((sums * each).sum(-1, keepdims=True) for sums in (scatter, model))
    model = model * ratio_or_zero(observed, expected)
    per_row = ratio_or_zero(observed, total)
    evidence = rows if evidence is None else evidence
    weight = ratio_or_zero(evidence * per_row, evidence * per_row + MODEL_ROWS)
    return np.asarray(weight * scatter + (1 - weight) * model)
