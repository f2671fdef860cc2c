"""Curve: error and predicted error as smooth functions of a variable, with honest bands."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal._bands import Bands, curve_bands, level_bands, span_bands
from varcal._binned import BinOptions
from varcal._cells import Cells
from varcal._density import density
from varcal._events import claims
from varcal._histogram import Histogram, histogram_of
from varcal._html import html_table
from varcal._measured import Measured, measure
from varcal._options import check_level
from varcal._predictions import Predictions
from varcal._profile import Profile, profile
from varcal._regions import Region, describe_region, regions_of, value_label
from varcal._tables import frame_of
from varcal.exceptions import InputError

Floats = NDArray[np.float64]

#: The arrays of a curve, in the order in which tables show them.
SERIES = (
    "error",
    "predicted_error",
    "gap",
    "error_low",
    "error_high",
    "predicted_error_low",
    "predicted_error_high",
    "gap_low",
    "gap_high",
    "band_low",
    "band_high",
    "density",
)
#: Its numbers that may be missing.
NUMBERS = (
    "worst",
    "vce",
    "vce_low",
    "vce_high",
    "vece",
    "vece_low",
    "vece_high",
    "overall",
    "span",
    "missing_gap",
)


@dataclass(frozen=True, eq=False)
class Curve:
    """How wrong the confidence is along a variable, and how sure that is.

    Attributes
    ----------
    variable, kind, event : str
        The variable, its kind ("numeric", "datetime" or "levels") and what is claimed.
    x : ndarray
        Values of the variable (seconds since 1970 for dates, 0, 1, … for levels).
    labels : tuple of str
        The levels, none for numbers and dates.
    error, predicted_error, gap : ndarray
        1 − accuracy, 1 − mean confidence, and mean confidence − accuracy, smoothed.
    error_low, …, gap_high : ndarray
        Pointwise bands.
    band_low, band_high : ndarray
        The simultaneous band: holds the whole true gap curve in `level` of all samples.
    density : ndarray
        Density of the variable (share of the weight for levels).
    worst, vce : float
        v*, the value with the largest |gap| of the band's centre, and VCE(v*), that size.
    vce_low, vce_high : float
        Interval of the largest |gap|, from the simultaneous band.
    worst_set : ndarray of bool
        The values of x that cannot be told from v*.
    vece, vece_low, vece_high : float
        VECE over ten bins (those of the audit), debiased, with its interval.
    overall : float
        The gap over all rows of the curve.
    regions, excess : tuple of Region
        Where the simultaneous band leaves zero, and where it leaves the overall gap.
    counts : ndarray
        Rows of each level, none for numbers and dates.
    histogram : Histogram
        Where the rows lie.
    span : float
        Share of the rows in a neighbourhood; 0 where every value stands by itself.
    n_rows, n_missing : int
        Rows behind the curve, and rows whose value is missing (not in it).
    missing_gap : float
        Gap of the rows whose value is missing, NaN without any.
    """

    variable: str
    kind: str
    event: str
    x: Floats
    labels: tuple[str, ...]
    error: Floats
    predicted_error: Floats
    gap: Floats
    error_low: Floats
    error_high: Floats
    predicted_error_low: Floats
    predicted_error_high: Floats
    gap_low: Floats
    gap_high: Floats
    band_low: Floats
    band_high: Floats
    density: Floats
    worst: float
    vce: float
    vce_low: float
    vce_high: float
    worst_set: NDArray[np.bool_]
    vece: float
    vece_low: float
    vece_high: float
    overall: float
    regions: tuple[Region, ...]
    excess: tuple[Region, ...]
    counts: NDArray[np.int64]
    histogram: Histogram
    span: float
    level: float
    n_rows: int
    n_missing: int
    missing_gap: float
    backend: str | None = None

    @property
    def worst_label(self) -> str:
        """v* for people."""
        return value_label(self.worst, self.kind, self.labels)

    @property
    def direction(self) -> str:
        """Where the band leaves zero: "over", "under", "mixed", or "none" if it nowhere does."""
        found = {region.direction for region in self.regions}
        return "mixed" if len(found) == 2 else found.pop() if found else "none"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN as None)."""
        plain = {name: _plain(getattr(self, name)) for name in ("x", *SERIES)}
        return {
            "variable": self.variable,
            "kind": self.kind,
            "event": self.event,
            "labels": list(self.labels),
            **plain,
            "worst": _plain(self.worst),
            "worst_label": self.worst_label,
            "vce": _plain(self.vce),
            "vce_low": _plain(self.vce_low),
            "vce_high": _plain(self.vce_high),
            "worst_set": self.worst_set.tolist(),
            "direction": self.direction,
            "vece": _plain(self.vece),
            "vece_low": _plain(self.vece_low),
            "vece_high": _plain(self.vece_high),
            "overall": _plain(self.overall),
            "regions": [vars(region) for region in self.regions],
            "excess": [vars(region) for region in self.excess],
            "counts": self.counts.tolist(),
            "histogram": self.histogram.to_dict(),
            "span": _plain(self.span),
            "level": self.level,
            "n_rows": self.n_rows,
            "n_missing": self.n_missing,
            "missing_gap": _plain(self.missing_gap),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Curve:
        """Return the curve that `to_dict` described."""
        arrays: dict[str, Any] = {
            name: np.array([np.nan if x is None else x for x in data[name]], dtype=np.float64)
            for name in ("x", *SERIES)
        }
        numbers: dict[str, Any] = {
            name: np.nan if data[name] is None else float(data[name]) for name in NUMBERS
        }
        return cls(
            variable=data["variable"],
            kind=data["kind"],
            event=data["event"],
            labels=tuple(data["labels"]),
            **arrays,
            **numbers,
            worst_set=np.array(data["worst_set"], dtype=bool),
            regions=tuple(Region(**region) for region in data["regions"]),
            excess=tuple(Region(**region) for region in data["excess"]),
            counts=np.array(data["counts"], dtype=np.int64),
            histogram=Histogram.from_dict(data["histogram"]),
            level=data["level"],
            n_rows=data["n_rows"],
            n_missing=data["n_missing"],
        )

    def to_frame(self) -> Any:
        """Return the curve as a frame of the input's library, one row a value of x."""
        shown: Any = self.x
        if self.labels:
            shown = [self.labels[int(x)] for x in self.x]
        elif self.kind == "datetime":
            shown = np.array(np.round(self.x * 1e6), "M8[us]")
        return frame_of(
            {self.variable: shown}
            | {name: getattr(self, name) for name in SERIES}
            | {"in_worst_set": self.worst_set},
            self.backend,
        )

    def plot(self, ax: Any = None, *, backend: str = "matplotlib") -> Any:
        """Draw actual against predicted error along the variable, as in the paper.

        Actual error is solid with its pointwise band, predicted error dashed (rates instead of
        errors where the event is "positive"). Below lie a strip where the simultaneous band of
        the gap leaves zero, marked over or under, and the histogram of the variable, both from
        the 1st to the 99th percentile. Levels are dots with whiskers against a dash.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure without it.
        backend : {"matplotlib", "plotly"}
            Who draws.

        Returns
        -------
        matplotlib Axes, or plotly Figure
        """
        from varcal.plotting import draw  # noqa: PLC0415

        return draw("curve", self, ax=ax, backend=backend)

    def __repr__(self) -> str:
        head = (
            f"Curve of {self.variable!r} (event {self.event}, {self.n_rows:,} rows): "
            f"worst at {self.worst_label}, VCE(v*) = {self.vce:.4f} "
            f"({self.vce_low:.4f} to {self.vce_high:.4f})"
        )
        return "\n".join([head, *(f"  {describe_region(region)}" for region in self.regions)])

    def _repr_html_(self) -> str:
        regions: dict[str, list[Any]] = {
            self.variable: [region.label for region in self.regions],
            "direction": [f"{region.direction}confident" for region in self.regions],
            "smallest gap": [region.gap_low for region in self.regions],
            "largest gap": [region.gap_high for region in self.regions],
            "rows": [region.n for region in self.regions],
        }
        head = repr(self).split("\n")[0]
        vece = f"VECE {self.vece:.4f} ({self.vece_low:.4f} to {self.vece_high:.4f})"
        return html_table(regions, f"{head}\n{vece}")


def curve(
    y: object,
    p: object,
    v: object,
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
    predictions = Predictions.of(
        y,
        p,
        v,
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    if len(predictions.variables) != 1:
        raise InputError(
            f"a curve is along one variable; v has {len(predictions.variables)}",
            "give one column; vece() and bin_table() take several at once",
        )
    if event == "classwise":
        raise InputError(
            'a curve shows one claim, and event="classwise" makes one a class',
            'use event="correct", or for one class p against y == class with event="positive"',
        )
    check_level(level)
    if not 0 <= trim < 0.5:
        raise InputError(f"trim must lie in [0, 0.5); got {trim!r}", "try 0.05")
    if degree not in (0, 1, 2, 3, 4):
        raise InputError(f"degree must be 0, 1, 2, 3 or 4; got {degree!r}", "the paper's is 2")
    if bandwidth is not None and not bandwidth > 0:
        raise InputError(f"bandwidth must be positive; got {bandwidth!r}", "or leave it out")
    (claim,) = claims(predictions, event, pos_label)
    options: BinOptions = {"n_bins": 10, "binning": "atoms", "bins": None}
    found = profile(predictions, claim, predictions.variables[0], options)
    fit: dict[str, Any] = {"span": span, "bandwidth": bandwidth, "degree": degree}
    return curve_of(
        found, event, level=level, trim=trim, grid=grid, backend=predictions.backend, **fit
    )


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
) -> Curve:
    """Make the curve of a profile: what `curve` and `audit` share."""
    cells = found.cells()
    if not len(cells):
        raise InputError(
            f"variable {found.name!r} is missing at every row", "a curve needs values to run along"
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
        mass = kept.w / kept.w.sum()
    else:
        mass = density(kept.x, kept.w, kept.x, rows=float(kept.n.sum()))
    series = _series(bands, mass)
    at = bands.x
    overall = float((kept.w_score - kept.w_hit).sum() / kept.w.sum())
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
    )


def _kept_cells(cells: Cells, bands: Bands) -> Cells:
    """Return the cells as the bands merged them."""
    return cells if len(cells) == len(bands.x) else cells.coarsen(len(bands.x))


def _series(bands: Bands, mass: Floats) -> dict[str, Floats]:
    # A wide span may smooth a bend away; the line then follows the edge of its band.
    error = np.clip(bands.smooth_error, *bands.pointwise("error"))
    predicted = np.clip(bands.smooth_predicted_error, 0.0, 1.0)
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
) -> tuple[Floats, dict[str, Floats], NDArray[np.bool_]]:
    if isinstance(grid, int | np.integer):
        if grid < 2:
            raise InputError(f"grid must have at least 2 points; got {grid!r}", "try 100")
        rank = (np.cumsum(cells.w) - cells.w / 2) / cells.w.sum()
        low, high = np.interp([trim, 1 - trim], rank, bands.x)
        at = np.linspace(low, high, int(grid))
    else:
        at = np.sort(np.asarray(grid, dtype=np.float64))
        outside = at[(at < bands.x[0]) | (at > bands.x[-1])]
        if outside.size:
            raise InputError(
                f"grid leaves the data: {outside[0]:g} is outside "
                f"[{bands.x[0]:g}, {bands.x[-1]:g}]",
                "give points inside; a curve is not extrapolated",
            )
    drawn = {name: np.interp(at, bands.x, values) for name, values in series.items()}
    nearest = np.abs(at[:, None] - bands.x).argmin(axis=1)
    return at, drawn, bands.candidates[nearest]


def _missing(found: Profile) -> tuple[int, float]:
    if not found.missing:
        return 0, np.nan
    return int(found.fine.n[-1]), float(found.fine.gap[-1])


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [None if x != x else x for x in value.tolist()]
    return None if value != value else float(value)
