"""Calibration errors as plain numbers in [0, 1]."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from varcal._options import checked, one_of
from varcal._sums.evidence import Evidence
from varcal._sums.gather import gather
from varcal._sums.plan import N_BINS, QUANTILE, BinOptions, Question
from varcal._sums.stats import BinnedStats
from varcal.exceptions import InputError

NORMS = (1, 2, "max")
SIDES = ("both", "over", "under")


@checked(norm=one_of(*NORMS), side=one_of(*SIDES))
def ece(
    y: object,
    p: object = None,
    *,
    data: object = None,
    event: str = "correct",
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_BINS,
    binning: str = QUANTILE,
    bins: object = None,
    edges: str | None = None,
    norm: int | str = 1,
    side: str = "both",
    sample_weight: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
) -> float:
    r"""Expected calibration error: how far confidence is from accuracy, by confidence.

    .. math:: \widehat{\text{ECE}} = \sum_{b=1}^{B} \frac{n_b}{n}
              \, |\text{Acc}_b - \text{Conf}_b|

    over bins of the score itself (equal support by default).

    Parameters
    ----------
    y : array-like, column name, or Collected
        Labels: integers, booleans, strings or categories. Or the result of `collect`, instead
        of predictions.
    p : array-like, column name, or names of one column per class
        Probabilities: (n,) is P(y = pos_label), (n, K) one column per class.
    data : frame, dict of columns, path, relation or lazy frame, optional
        With it, a string or a list of strings names columns; anything else is an array. Paths
        and globs of Parquet or CSV files, partitioned folders, DuckDB relations, polars lazy
        frames, PyArrow datasets and Spark data frames are read in batches: columns are then
        given by name.
    event : {"correct", "positive", "classwise"}
        What a probability claims: that the most likely class is right; that y is the positive
        class (two classes); or, for each class, that y is this class (unweighted mean).
    n_bins : int
        Number of bins; ties may leave fewer.
    binning : {"quantile", "uniform", "atoms"}
        Equal support as `pandas.qcut(duplicates="drop")`; equal width; or frequent values in
        bins of their own and quantiles for the rest.
    bins : sequence, optional
        Cut points to use instead, for example ``np.linspace(0, 1, 11)``.
    edges : {"exact", "sampled"}, optional
        Whether bins are quantiles of all rows, or of a random sample. By default they are exact
        for rows in memory, and sampled for more rows than memory holds, where "exact" costs one
        more pass over the rows.
    norm : {1, 2, "max"}
        The mean of gaps, the root of their mean square, or the largest.
    side : {"both", "over", "under"}
        Count every gap, only overconfidence, or only underconfidence. With ``norm=1`` the two
        parts add up to the whole.
    classes : sequence, optional
        The labels in the order of the columns of `p`. By default labels 0/1 and booleans
        mean [0, 1], and any others are assigned to the columns in sorted order.
    pos_label : label, optional
        The positive one of two classes, as in scikit-learn: the one that a vector `p` is the
        probability of, and the event "positive". By default the second one.
    sample_weight : array-like or column name, optional
        Sampling weights. Edges are chosen without them.
    from_logits : bool
        Whether `p` holds logits.
    unlabelled : {"raise", "drop"}
        What to do with rows whose label is missing.

    Returns
    -------
    float
        In [0, 1], not percent.

    References
    ----------
    Kelly and Smyth (2023), Variable-Based Calibration for Machine Learning Classifiers, AAAI.

    Examples
    --------
    >>> import varcal as vc
    >>> round(vc.ece([1, 0, 1, 1], [0.9, 0.6, 0.7, 0.8], n_bins=2), 3)
    0.15
    >>> vc.ece([1, 0, 1, 1], [0.9, 0.6, 0.7, 0.8], n_bins=1, side="over")
    0.0
    """
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    question = Question(options, event, pos_label, fine=False, moments=False)
    found = gather(
        y,
        p,
        None,
        question,
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    return _mean_error(found, question, norm, side)


@checked(norm=one_of(*NORMS), side=one_of(*SIDES))
def vece(
    y: object,
    p: object = None,
    v: object = None,
    *,
    data: object = None,
    event: str = "correct",
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_BINS,
    binning: str = QUANTILE,
    bins: object = None,
    edges: str | None = None,
    norm: int | str = 1,
    side: str = "both",
    sample_weight: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
) -> float:
    r"""Variable-based expected calibration error: confidence against accuracy, by a variable.

    .. math:: \widehat{\text{VECE}} = \sum_{b=1}^{B} \frac{n_b}{n}
              \, |\text{Acc}_b - \text{Conf}_b|

    over bins of the variable V (equal support by default). It is never below the overall gap
    |accuracy − mean confidence|.

    Parameters
    ----------
    y : array-like, column name, or Collected
        Labels: integers, booleans, strings or categories. Or the result of `collect`, instead
        of predictions.
    p : array-like, column name, or names of one column per class
        Probabilities: (n,) is P(y = pos_label), (n, K) one column per class.
    v : array-like, frame, dict of columns, or column names
        The variable: numbers, categories, strings, booleans or dates, missing values included
        (they have a bin of their own). Two or more variables are binned jointly.
    data : frame, dict of columns, path, relation or lazy frame, optional
        With it, a string or a list of strings names columns; anything else is an array. Paths
        and globs of Parquet or CSV files, partitioned folders, DuckDB relations, polars lazy
        frames, PyArrow datasets and Spark data frames are read in batches: columns are then
        given by name.
    event : {"correct", "positive", "classwise"}
        What a probability claims: that the most likely class is right; that y is the positive
        class (two classes); or, for each class, that y is this class (unweighted mean).
    n_bins : int
        Number of bins of a numeric variable; ties may leave fewer. A categorical variable has
        one bin per level; levels with less than 1/(10 n_bins) of the rows share a bin.
    binning : {"quantile", "uniform", "atoms"}
        Equal support as `pandas.qcut(duplicates="drop")`; equal width; or frequent values in
        bins of their own and quantiles for the rest.
    bins : sequence or dict of sequences, optional
        Cut points to use instead, for example ``bins=[18, 30, 65]`` or by variable
        ``bins={"age": [18, 30, 65]}``.
    edges : {"exact", "sampled"}, optional
        Whether bins are quantiles of all rows, or of a random sample. By default they are exact
        for rows in memory, and sampled for more rows than memory holds, where "exact" costs one
        more pass over the rows.
    norm : {1, 2, "max"}
        The mean of gaps, the root of their mean square, or the largest.
    side : {"both", "over", "under"}
        Count every gap, only overconfidence, or only underconfidence. With ``norm=1`` the two
        parts add up to the whole.
    classes : sequence, optional
        The labels in the order of the columns of `p`. By default labels 0/1 and booleans
        mean [0, 1], and any others are assigned to the columns in sorted order.
    pos_label : label, optional
        The positive one of two classes, as in scikit-learn: the one that a vector `p` is the
        probability of, and the event "positive". By default the second one.
    sample_weight : array-like or column name, optional
        Sampling weights. Edges are chosen without them.
    from_logits : bool
        Whether `p` holds logits.
    unlabelled : {"raise", "drop"}
        What to do with rows whose label is missing.

    Returns
    -------
    float
        In [0, 1], not percent.

    References
    ----------
    Kelly and Smyth (2023), Variable-Based Calibration for Machine Learning Classifiers, AAAI.

    Examples
    --------
    Right on average, wrong at every age:

    >>> import varcal as vc
    >>> y, p = [1, 1, 1, 0], [0.75, 0.75, 0.75, 0.75]
    >>> round(vc.ece(y, p), 3), round(vc.vece(y, p, [20, 25, 60, 65], n_bins=2), 3)
    (0.0, 0.25)
    """
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    question = Question(options, event, pos_label, joint=True, fine=False, moments=False)
    found = gather(
        y,
        p,
        v,
        question,
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    if not found.along:
        raise InputError("v is None", "give a variable; without one use ece(y, p)", argument="v")
    return _mean_error(found, question, norm, side)


def calibration_error(stats: BinnedStats, norm: int | str = 1, side: str = "both") -> float:
    """Return the error over the bins of a table, for `ece` and `vece`."""
    filled = stats.total("weight") > 0
    gap, share = stats.gap[filled], stats.share[filled]
    if side == "over":
        size = np.maximum(gap, 0.0)
    else:
        size = np.abs(gap) if side == "both" else np.maximum(-gap, 0.0)
    if norm == "max":
        return float(size.max())
    return float((share * size).sum() if norm == 1 else np.sqrt((share * size**2).sum()))


def _mean_error(found: Evidence, question: Question, norm: int | str, side: str) -> float:
    keys = found.keys(question.event, question.pos_label)
    return float(np.mean([calibration_error(found.table(key), norm, side) for key in keys]))
