"""Curves: error and predicted error as smooth functions of a variable, with bands."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from varcal._arrays import Floats
from varcal._inference.bands import TRIM, Bands, curve_bands, level_bands, lines, span_bands
from varcal._inference.calibration_test import enough_groups
from varcal._inference.debiased import LawErrors, Measured
from varcal._inference.gap_law import gap_law
from varcal._measures.curve_result import SERIES, Curve, histogram_of, regions_of
from varcal._measures.estimate import Estimate, measure_and_test
from varcal._options import check_flag, checked, number, one_of, or_none
from varcal._sums.choose_bins import ATOMS, N_BINS, BinOptions
from varcal._sums.evidence import gather
from varcal._sums.plan import Question
from varcal._sums.profile import Profile
from varcal._sums.stream import SCORE
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: Silverman's rule: factor of the bandwidth, and the interquartile range of a normal law whose
#: standard deviation is 1.
SILVERMAN, NORMAL_IQR = 0.9, 1.34
#: The least bandwidth, as a part of the range of the cells, so that ties cannot make it 0.
LEAST_WIDTH = 1e-3
#: A cell narrower than this part of the bandwidth is treated as a single value.
SINGLE_VALUE = 1e-9
#: Values are scaled if the largest is beyond this, or below its inverse.
EXTREME = 1e100
#: The least probability inside the range that a density is divided by, far beyond its ends.
LEAST_INSIDE = 1e-3


@checked(
    span=or_none(number(0, 1_000, hint="try 0.9")),
    degree=one_of(0, 1, 2, 3, 4),
    trim=number(0, 0.5, ends="[)", hint="try 0.05"),
    bands=check_flag,
)
@one_blas_thread()
def curve(
    y: object,
    p: object = None,
    v: object = None,
    *,
    data: object = None,
    event: str = "correct",
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    span: float | None = None,
    degree: int = 2,
    trim: float = TRIM,
    bands: bool = True,
    edges: str | None = None,
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
) -> Curve:
    r"""Estimate error and predicted error as smooth functions of a variable.

    The gap at v is :math:`g(v) = \mathbb{E}[s | v] - \text{Acc}(v)`, and VCE(v) = |g(v)|. Rows
    are summed into about a thousand cells, and local polynomials with tricube weights are fitted
    to them; after that, the cost does not depend on the number of rows.

    By default the span is chosen by generalized cross-validation, and the bands come from a
    local quartic with a narrower span. Its bias is small compared with its standard error, so
    that the simultaneous band keeps its level as the number of rows grows. Where the rows show a
    jump, such as at an age limit, the curve breaks; where they may have one, the band contains the
    curves with and without it. With `span=` (0.9 in
    the paper) the curve is the local polynomial of that span, and the bands are
    for the smoothed truth.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `vece`.
    v : array-like or column name
        One variable: numbers, dates or levels. Each level is estimated separately.
    data, event, edges, classes, pos_label, sample_weight, from_logits, unlabelled
        As in `vece`; `event` is "correct" or "positive".
    span : float, optional
        Share of the rows in each neighbourhood (nearest neighbours).
    degree : int
        Degree of the local polynomial at the given span.
    level : float
        Level of all bands.
    trim : float
        Share of the rows at each end in which v* is not searched for (5 % in the paper, where
        faults in the outer rows are missed). `Curve.search_note` says where it was searched for.
    bands : bool
        Whether to compute bands, intervals and regions along numbers and dates. The lines alone
        take a fraction of the time, above all with `span=`; bands and intervals are then NaN.
    groups : array-like or column name, optional
        Units that rows belong to, such as patients or customers. Bands then allow for dependence
        within a unit.

    Returns
    -------
    Curve

    References
    ----------
    Kelly and Smyth (2023), Variable-Based Calibration for Machine Learning Classifiers, AAAI.
    Cleveland and Devlin (1988), Locally Weighted Regression, JASA 83.

    Examples
    --------
    >>> import varcal as vc
    >>> adult = vc.datasets.load_adult()
    >>> found = vc.curve(adult.y, adult.p, {"age": adult["age"]})
    >>> found.direction, found.worst_label
    ('over', '48')
    """
    options: BinOptions = {"n_bins": N_BINS, "binning": ATOMS, "bins": None, "edges": edges}
    if event == "classwise":
        raise InputError(
            "event is 'classwise', which makes one claim per class; a curve shows one claim",
            'use event="correct", or for one class p against y == class with event="positive"',
            argument="event",
        )
    evidence = gather(
        y,
        p,
        v,
        Question(options, event, pos_label),
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    if len(evidence.along) != 1:
        raise InputError(
            f"v has {len(evidence.along)} variables; a curve is along one",
            "give one column; vece() and bin_table() accept several",
            argument="v",
        )
    (key,) = evidence.keys(event, pos_label)
    name = evidence.along[0].name
    found = evidence.profile(key, name)
    if not len(found.cells()):
        raise InputError(
            f"variable {name!r} is missing at every row",
            "give a variable with values",
            argument="v",
        )
    if evidence.grouped and not enough_groups(found.coarse):
        vece = LawErrors.of([gap_law(found.coarse)]).measured(level)[0]
    else:
        vece = measure_and_test(found, level=level)
    return curve_of(
        found,
        event,
        level=level,
        trim=trim,
        with_bands=bands,
        vece=vece,
        backend=evidence.backend,
        engine=evidence.engine,
        span=span,
        degree=degree,
    )


@one_blas_thread()
def curve_of(
    found: Profile,
    event: str,
    *,
    level: float = 0.95,
    trim: float = TRIM,
    span: float | None = None,
    degree: int = 2,
    with_bands: bool = True,
    vece: Measured | Estimate,
    backend: str | None = None,
    engine: str = "numpy",
) -> Curve:
    """Return the curve of a profile, for `curve` and `audit`."""
    cells = found.cells()
    if found.kind == "levels":
        bands = level_bands(cells, level=level)
    elif not with_bands:
        bands = lines(cells, span=span, degree=degree, trim=trim)
    elif span is not None:
        bands = span_bands(cells, span=span, degree=degree, level=level, trim=trim)
    else:
        bands = curve_bands(cells, level=level, trim=trim)
    kept = bands.cells
    labels = tuple(found.fine.bins.labels()) if found.kind == "levels" else ()
    if found.kind == "levels":
        mass = kept.weight / kept.weight.sum()
    else:
        mass = density(kept.x, kept.weight, kept.x, rows=float(kept.n.sum()))
    series = _series(bands, mass, kept.x if found.name == SCORE else None)
    overall = float((kept.score - kept.hit).sum() / kept.weight.sum())
    missing = _missing(found)
    zone = getattr(found.fine.bins, "zone", "")
    return Curve(
        variable=found.name,
        kind=found.kind,
        event=event,
        x=bands.x,
        labels=labels,
        **series,
        worst=float(bands.x[bands.worst]),
        vce=float(abs(bands.gap[bands.worst])),
        vce_low=bands.worst_low,
        vce_high=bands.worst_high,
        worst_set=bands.candidates,
        searched=_searched(bands),
        unsearched=float(kept.weight[~bands.searched].sum() / kept.weight.sum()),
        vece=vece.debiased,
        vece_low=vece.low,
        vece_high=vece.high,
        overall=overall,
        regions=regions_of(bands, kept, found.kind, labels, zone),
        counts=kept.n.astype(np.int64) if found.kind == "levels" else np.zeros(0, np.int64),
        histogram=histogram_of(found),
        span=2 * bands.half_span,
        level=level,
        n_rows=int(kept.n.sum()),
        n_missing=missing[0],
        missing_gap=missing[1],
        backend=backend,
        engine=engine,
        edges=found.fine.edges,
        zone=zone,
        breaks=tuple(bands.x[list(bands.breaks)].tolist()),
    )


def _series(bands: Bands, mass: Floats, score: Floats | None) -> dict[str, Floats]:
    """Return the series of a curve; along the score itself, `score` has its values."""
    error, predicted = bands.smooth_error, bands.smooth_predicted_error
    if score is not None:
        # A smooth line cannot follow the steep ends of the score, but only the gap needs one.
        error, predicted = np.clip(1 - score + error - predicted, 0.0, 1.0), 1 - score
    if not np.isnan(bands.critical):
        # A wide span may smooth too much; the line is then clipped to its band.
        error = np.clip(error, *bands.pointwise("error"))
        if score is None:
            predicted = np.clip(predicted, *bands.pointwise("predicted_error"))
    series = {
        "predicted": 1 - predicted,
        "observed": 1 - error,
        "gap": error - predicted,
        "band_low": bands.low,
        "band_high": bands.high,
        "density": mass,
    }
    series["gap_low"], series["gap_high"] = bands.pointwise("gap")
    for name, error_name in (("predicted", "predicted_error"), ("observed", "error")):
        low, high = bands.pointwise(error_name)
        series[f"{name}_low"], series[f"{name}_high"] = 1 - high, 1 - low
    return {name: series[name] for name in SERIES}


def _searched(bands: Bands) -> tuple[float, float]:
    """Return the least and the largest value among those that may be v*."""
    places = np.flatnonzero(bands.searched)
    return float(bands.x[places[0]]), float(bands.x[places[-1]])


def _missing(found: Profile) -> tuple[int, float]:
    if not found.missing:
        return 0, np.nan
    return int(found.fine.n[-1]), float(found.fine.gap[-1])


def density(x: ArrayLike, weight: ArrayLike, at: ArrayLike, *, rows: float) -> Floats:
    r"""Estimate the density of a variable.

    The mass of each cell is spread evenly up to the midpoints between it and its neighbours, and
    then smoothed by a normal kernel with Silverman's bandwidth
    :math:`0.9 \min(sd, IQR / 1.34)\, n^{-1/5}`, renormalized to the range of the cells.

    Parameters
    ----------
    x : array-like of shape (k,)
        Means of the cells, strictly ascending.
    weight : array-like of shape (k,)
        Σw of each cell.
    at : array-like of shape (m,)
        Where to evaluate the density.
    rows : float
        Number of rows in all cells.

    References
    ----------
    Silverman, B. W. (1986). Density Estimation for Statistics and Data Analysis.

    Examples
    --------
    >>> x = np.linspace(0, 1, 101)
    >>> density(x, np.ones(101), [0.0, 0.5], rows=1000).round(2).tolist()
    [0.99, 0.99]
    """
    x, at = np.asarray(x, float), np.atleast_1d(np.asarray(at, float))
    far = float(np.abs(x).max())
    if len(x) > 1 and not 1 / EXTREME < far < EXTREME:
        # By a power of two, which is exact; squares of the values then neither overflow nor vanish.
        power = int(np.frexp(far)[1])
        scaled = density(np.ldexp(x, -power), weight, np.ldexp(at, -power), rows=rows)
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(np.ldexp(scaled, -power), np.finfo(float).max)
    mass = np.asarray(weight, float) / np.sum(weight)
    if len(x) == 1:
        edges = np.array([x[0] - 0.5, x[0] + 0.5])
    else:
        middle = (x[1:] + x[:-1]) / 2
        edges = np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])
    below = np.concatenate([[0.0], np.cumsum(mass)])
    low, high = np.interp([0.25, 0.75], below, edges)
    centre = mass @ x
    sd = np.sqrt(mass @ (x - centre) ** 2)
    spread = min(sd, (high - low) / NORMAL_IQR) or sd or 1.0
    width = max(SILVERMAN * spread * rows**-0.2, (edges[-1] - edges[0]) * LEAST_WIDTH)
    reach = ndtr((at[:, None] - edges) / width)
    inside = reach[:, 0] - reach[:, -1]
    slab = np.diff(edges)
    thin = slab < SINGLE_VALUE * width
    blurred = (reach[:, :-1] - reach[:, 1:])[:, ~thin] @ (mass / np.where(thin, 1.0, slab))[~thin]
    bell = np.exp(-(((at[:, None] - x[thin]) / width) ** 2) / 2) / (np.sqrt(2 * np.pi) * width)
    blurred = blurred + bell @ mass[thin]
    out: Floats = blurred / np.maximum(inside, LEAST_INSIDE)
    return out
