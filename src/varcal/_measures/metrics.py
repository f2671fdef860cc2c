"""Calibration errors as plain numbers in [0, 1], and as scikit-learn scorers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from varcal._input.frames import Table, is_frame
from varcal._options import checked, one_of
from varcal._sums.choose_bins import N_BINS, QUANTILE, BinOptions
from varcal._sums.evidence import Evidence, gather
from varcal._sums.plan import Question
from varcal._sums.stats import BinnedStats
from varcal.exceptions import InputError, nearest

NORMS = (1, 2, "max")
SIDES = ("both", "over", "under")
# Parameters that the scorer passes to the metric, or that do not apply to an estimator.
_OWN = {"y", "p", "v", "data", "classes", "sample_weight", "from_logits"}


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
    weight, hit, score = (stats.total(name)[filled] for name in ("weight", "hit", "score"))
    gap, share = (score - hit) / weight, weight / weight.sum()
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


@dataclass(frozen=True)
class Scorer:
    """A scikit-learn scorer: minus the calibration error, so that greater is better."""

    metric: Callable[..., float]
    variables: tuple[str | int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [name for name in inspect.signature(self.metric).parameters if name not in _OWN]
        for name in self.options:
            if name not in known:
                near = nearest(name, known)
                raise InputError(
                    f"a scorer has no option {name!r}",
                    f"did you mean {near!r}?" if near else f"the options are {', '.join(known)}",
                )

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted classifier on rows."""
        p = np.asarray(estimator.predict_proba(X))
        v = {str(name): column_of_features(X, name) for name in self.variables}
        args = (y, p, v) if self.variables else (y, p)
        classes = list(estimator.classes_)
        return -self.metric(*args, classes=classes, sample_weight=sample_weight, **self.options)


def ece_scorer(**options: Any) -> Scorer:
    """Return a scorer of minus the ECE.

    Parameters
    ----------
    **options
        Passed on to `ece`: event, n_bins, binning, norm, side, …

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import varcal as vc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bool((cross_val_score(GaussianNB(), X, y, scoring=vc.ece_scorer()) < 0).all())
    True
    """
    return Scorer(ece, (), options)


def vece_scorer(variables: str | int | Sequence[str | int], **options: Any) -> Scorer:
    """Return a scorer of minus the VECE over columns of X.

    Parameters
    ----------
    variables : str, int or a sequence of them
        Names of columns of X, or their positions. Several are binned jointly.
    **options
        Passed on to `vece`: event, n_bins, binning, norm, side, …

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import varcal as vc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> score = vc.vece_scorer(0)(GaussianNB().fit(X, y), X, y)
    >>> -1 <= score <= 0
    True
    """
    several = isinstance(variables, Iterable) and not isinstance(variables, str)
    given: tuple[Any, ...] = tuple(variables) if several else (variables,)  # type: ignore[arg-type]
    names = tuple(int(name) if isinstance(name, Integral) else name for name in given)
    if not names:
        raise InputError(
            "variables is empty", "name at least one column of X", argument="variables"
        )
    if any(not isinstance(name, str | int) for name in names):
        raise InputError(
            f"variables is {variables!r}",
            "give names or positions of columns of X",
            argument="variables",
        )
    if len({str(name) for name in names}) < len(names):
        raise InputError(
            f"variables names a column twice: {list(names)}",
            "name each column once",
            argument="variables",
        )
    return Scorer(vece, names, options)


def column_of_features(X: Any, name: str | int) -> Any:
    """Return a column of X by name or position."""
    frame = Table.of(X, "X") if is_frame(X) else None
    if isinstance(name, str):
        if frame is None:
            raise InputError(
                f"variables names column {name!r}, but X is a {type(X).__name__} without names",
                "give its position, or pass X as a frame",
                argument="variables",
            )
        return frame.column(name, "variables")
    width = len(frame.columns) if frame is not None else np.shape(X)[1]
    if not -width <= name < width:
        raise InputError(
            f"variables gives position {name}, but X has {width} columns",
            f"positions go from 0 to {width - 1}",
            argument="variables",
        )
    if frame is not None:
        return frame.column(frame.columns[name], "variables")
    if hasattr(X, "tocsc"):
        return X.tocsc()[:, [name]].toarray()[:, 0]
    return np.asarray(X)[:, name]
