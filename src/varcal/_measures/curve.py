"""Curves: error and predicted error as smooth functions of a variable, with honest bands."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Bools, Floats
from varcal._evidence.gather import gather
from varcal._evidence.profile import Profile
from varcal._evidence.question import ATOMS, N_BINS, BinOptions, Question
from varcal._inference.measured import Measured, measure
from varcal._measures.curve_result import SERIES, Curve
from varcal._measures.histogram import histogram_of
from varcal._measures.regions import regions_of
from varcal._options import check_level
from varcal._runtime.threads import one_blas_thread
from varcal._smoothing.bands import Bands, curve_bands, level_bands, span_bands
from varcal._smoothing.cells import Cells
from varcal._smoothing.density import density
from varcal.exceptions import InputError

__all__ = ["SERIES", "Curve", "curve", "curve_of"]


@one_blas_thread
def curve(
    y: object,
    p: object = None,
    v: object = None,
    *,
    data: object = None,
    event: str = "correct",
    span: float | None = None,
    bandwidth: float | None = None,
    degree: int = 2,
    level: float = 0.95,
    trim: float = 0.05,
    grid: int | ArrayLike | None = None,
    classes: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
) -> Curve:
    r"""Estimate error and predicted error as smooth functions of a variable.

    The gap at v is :math:`g(v) = \mathbb{E}[s | v] - \text{Acc}(v)`, VCE(v) = |g(v)|. Rows are
    put into about a thousand cells, and local polynomials with tricube weights are fitted to
    them; the cost after binning does not depend on the number of rows.

    By default the span is chosen by generalized cross-validation, and the bands come from a
    local quartic at a narrower one, whose bias is small beside its standard error: that is why
    the simultaneous band keeps its level as the rows grow. With `span=` (the paper: 0.9) or
    `bandwidth=` the fit is that very local polynomial, and its bands are those of the smoothed
    truth.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `vece`.
    v : array-like or column name
        One variable: numbers, dates, or levels (then each level stands by itself).
    data, event, classes, pos_label, sample_weight, from_logits, unlabelled
        As in `vece`; `event` is "correct" or "positive".
    span : float, optional
        Share of the rows in each neighbourhood (nearest neighbours).
    bandwidth : float, optional
        Half-width of the kernel in units of the variable (seconds for dates), instead.
    degree : int
        Degree of the local polynomial at the given span or bandwidth.
    level : float
        Level of all bands.
    trim : float
        Share of the rows at each end where v* is not looked for (the paper's 5 and 95 %).
    grid : int or array, optional
        Where to give the curve: so many even points between the trimmed ends, or these
        points; without it, at the cells (at most 300 by default).
    groups : array-like or column name, optional
        Units that rows belong to; bands then allow for dependence within a unit.

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
    ('over', '46')
    """
    options: BinOptions = {"n_bins": N_BINS, "binning": ATOMS, "bins": None}
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
            "give one column; vece() and bin_table() take several at once",
            argument="v",
        )
    check_level(level)
    if not 0 <= trim < 0.5:
        raise InputError(f"trim must lie in [0, 0.5); got {trim!r}", "try 0.05", argument="trim")
    if degree not in (0, 1, 2, 3, 4):
        raise InputError(
            f"degree must be 0, 1, 2, 3 or 4; got {degree!r}", "the paper's is 2", argument="degree"
        )
    if bandwidth is not None and not bandwidth > 0:
        raise InputError(
            f"bandwidth must be positive; got {bandwidth!r}",
            "or leave it out",
            argument="bandwidth",
        )
    (key,) = evidence.keys(event, pos_label)
    found = evidence.profile(key, evidence.along[0].name)
    fit: dict[str, Any] = {"span": span, "bandwidth": bandwidth, "degree": degree}
    return curve_of(
        found,
        event,
        level=level,
        trim=trim,
        grid=grid,
        backend=evidence.backend,
        engine=evidence.engine,
        **fit,
    )


@one_blas_thread
def curve_of(
    found: Profile,
    event: str,
    *,
    level: float = 0.95,
    trim: float = 0.05,
    grid: int | ArrayLike | None = None,
    span: float | None = None,
    bandwidth: float | None = None,
    degree: int = 2,
    vece: Measured | None = None,
    backend: str | None = None,
    engine: str = "numpy",
) -> Curve:
    """Make the curve of a profile: what `curve` and `audit` share."""
    cells = found.cells()
    if not len(cells):
        raise InputError(
            f"v {found.name!r} is missing at every row",
            "give a variable with values",
            argument="v",
        )
    if found.kind == "levels":
        bands = level_bands(cells, level=level)
    elif span is not None or bandwidth is not None:
        bands = span_bands(
            cells, span=span, bandwidth=bandwidth, degree=degree, level=level, trim=trim
        )
    else:
        bands = curve_bands(cells, level=level, trim=trim)
    kept = _kept_cells(cells, bands)
    labels = tuple(found.fine.bins.labels()) if found.kind == "levels" else ()
    if found.kind == "levels":
        mass = kept.weight / kept.weight.sum()
    else:
        mass = density(kept.x, kept.weight, kept.x, rows=float(kept.n.sum()))
    series = _series(bands, mass)
    at = bands.x
    overall = float((kept.score - kept.hit).sum() / kept.weight.sum())
    worst_set = bands.candidates
    if grid is not None and found.kind != "levels":
        at, series, worst_set = _on_grid(grid, bands, series, kept, trim)
    missing = _missing(found)
    vece = measure(found.coarse, level) if vece is None else vece
    return Curve(
        variable=found.name,
        kind=found.kind,
        event=event,
        x=at,
        labels=labels,
        **series,
        worst=float(bands.x[bands.worst]),
        vce=float(abs(bands.gap[bands.worst])),
        vce_low=bands.worst_low,
        vce_high=bands.worst_high,
        worst_set=worst_set,
        vece=vece.debiased,
        vece_low=vece.low,
        vece_high=vece.high,
        overall=overall,
        regions=regions_of(bands, kept, found.kind, labels, 0.0),
        excess=regions_of(bands, kept, found.kind, labels, overall),
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
    )


def _kept_cells(cells: Cells, bands: Bands) -> Cells:
    """Return the cells as the bands merged them."""
    return cells if len(cells) == len(bands.x) else cells.coarsen(len(bands.x))


def _series(bands: Bands, mass: Floats) -> dict[str, Floats]:
    # A wide span may smooth a bend away; the line then follows the edge of its band.
    error = np.clip(bands.smooth_error, *bands.pointwise("error"))
    predicted = np.clip(bands.smooth_predicted_error, *bands.pointwise("predicted_error"))
    series = {
        "error": error,
        "predicted_error": predicted,
        "gap": error - predicted,
        "band_low": bands.low,
        "band_high": bands.high,
        "density": mass,
    }
    for name in ("error", "predicted_error", "gap"):
        series[f"{name}_low"], series[f"{name}_high"] = bands.pointwise(name)
    return {name: series[name] for name in SERIES}


def _on_grid(
    grid: int | ArrayLike, bands: Bands, series: dict[str, Floats], cells: Cells, trim: float
) -> tuple[Floats, dict[str, Floats], Bools]:
    if isinstance(grid, int | np.integer):
        if grid < 2:
            raise InputError(
                f"grid must have at least 2 points; got {grid!r}", "try 100", argument="grid"
            )
        rank = (np.cumsum(cells.weight) - cells.weight / 2) / cells.weight.sum()
        low, high = np.interp([trim, 1 - trim], rank, bands.x)
        at = np.linspace(low, high, int(grid))
    else:
        at = np.sort(np.asarray(grid, dtype=np.float64))
        outside = at[~((at >= bands.x[0]) & (at <= bands.x[-1]))]
        if outside.size:
            raise InputError(
                f"grid leaves the data: {outside[0]:g} is outside "
                f"[{bands.x[0]:g}, {bands.x[-1]:g}]",
                "give points inside; a curve is not extrapolated",
                argument="grid",
            )
    drawn = {name: np.interp(at, bands.x, values) for name, values in series.items()}
    nearest = np.abs(at[:, None] - bands.x).argmin(axis=1)
    return at, drawn, bands.candidates[nearest]


def _missing(found: Profile) -> tuple[int, float]:
    if not found.missing:
        return 0, np.nan
    return int(found.fine.n[-1]), float(found.fine.gap[-1])
