"""`surface`: the gap over two variables at once, with a simultaneous band."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._inference.bands import GAP, cell_variance, effective_groups, group_factor
from varcal._input.frames import frame_of
from varcal._input.groups import buckets
from varcal._input.labels import audit_keys, claim_names, claim_of
from varcal._input.predictions import ALL
from varcal._options import checked
from varcal._search.cells import (
    SurfaceAxis,
    axis_of,
    bins_of,
    plain_lists,
    read_rows,
)
from varcal._sums.bins import JointBins
from varcal._sums.profile import cells_of
from varcal._sums.stats import BinnedStats, bin_rows
from varcal._text import (
    Shown,
    count,
    gap_said,
    gap_side,
    interval,
    level_text,
    off_by,
    p_equation,
    percent,
    share_text,
    signed,
)
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: The arrays of a surface, one number per cell.
SERIES = ("share", "predicted", "observed", "gap", "low", "high")
#: Rows of the table in a notebook.
MOST_LINES = 5


@dataclass(frozen=True, eq=False, repr=False)
class Surface(Shown):
    """The gap over the cells of two variables, with a mask that holds for all cells at once.

    Arrays have one row per cell of the first variable and one column per cell of the second.

    Attributes
    ----------
    first, second : SurfaceAxis
        The variables and their cells: ranges of numbers and dates, levels, missing values.
    claim : str
        What is judged: "probability" (that of the positive class), "confidence" (in the
        predicted class), or "class …" with more classes.
    n : ndarray of int
        Rows of each cell.
    share : ndarray
        Each cell's share of the weight.
    predicted, observed : ndarray
        Mean score and hit rate of the rows of a cell, not smoothed; NaN without rows.
    gap : ndarray
        Says minus happens, smoothed over neighbouring cells; NaN without rows.
    low, high : ndarray
        The simultaneous band, which contains the whole true surface in `level` of all samples;
        NaN where too few rows are near.
    p_value : float
        How likely a deviation as clear as the clearest would be if the gap were 0 everywhere,
        over all claims.
    overall : float
        The gap over all rows.
    half_width : float
        The share of the rows to either side that is smoothed together along a variable.
    level : float
        Level of the band; it holds for all claims of the call at once.
    others : tuple of Surface
        The other claims, the one with the clearest gap first.
    n_rows, n_dropped : int
        Rows behind the surface, and rows without an outcome.
    grouped : bool
        Whether the band allows for groups.
    notes : tuple of str
        Remarks, such as that rows are a sample.
    """

    first: SurfaceAxis
    second: SurfaceAxis
    claim: str
    n: Ints
    share: Floats
    predicted: Floats
    observed: Floats
    gap: Floats
    low: Floats
    high: Floats
    p_value: float
    overall: float
    half_width: float
    level: float
    n_rows: int
    n_dropped: int = 0
    grouped: bool = False
    others: tuple[Surface, ...] = ()
    notes: tuple[str, ...] = ()
    engine: str = "numpy"
    backend: str | None = None

    @property
    def sure(self) -> Ints:
        """The mask: 1 where the gap is surely above 0, −1 where it is surely below, else 0."""
        with np.errstate(invalid="ignore"):
            return (self.low > 0).astype(np.int64) - (self.high < 0).astype(np.int64)

    @property
    def judged(self) -> Bools:
        """The cells with enough rows near them."""
        return ~np.isnan(self.low)

    @property
    def worst(self) -> tuple[int, int]:
        """The cell whose gap is surely the largest; without a sure one, the nearest to it."""
        surely = np.nan_to_num(np.maximum(self.low, -self.high), nan=-np.inf)
        row, column = np.unravel_index(int(surely.argmax()), surely.shape)
        return int(row), int(column)

    @property
    def sentence(self) -> str:
        """The finding in one or two sentences."""
        names = f"{self.first.name} and {self.second.name}"
        sure = self.sure
        if not sure.any():
            return f"Over {names} no place is surely off ({p_equation(self.p_value)})."
        over, under = (float(self.share[sure == sign].sum()) for sign in (1, -1))
        if over > 0 and under > 0:
            parts = [
                f"{gap_said(sign, self.claim)} for {share_text(share)}"
                for sign, share in ((1.0, over), (-1.0, under))
            ]
            sides = ", ".join(parts)
        else:
            sides = str(gap_said(1.0 if over > 0 else -1.0, self.claim))
        head = f"Over {names}, {share_text(over + under)} of rows are surely off: {sides}."
        row, column = self.worst
        gap, low, high = (float(one[row, column]) for one in (self.gap, self.low, self.high))
        low, high = sorted((abs(low), abs(high)))
        place = f"{self.first.text(row)} and {self.second.text(column)}"
        size = f"{off_by(gap, self.claim)} ({interval(low, high)})"
        return f"{head} Most for {place}: {size}, {count(int(self.n[row, column]), 'row')}."

    def to_frame(self) -> Any:
        """Return the cells with rows as a frame of the input's library."""
        cells = np.nonzero(self.n)
        taken = {"rows", *SERIES, "sure"}
        columns: dict[str, Any] = {}
        for name, place in zip(("first", "second"), cells, strict=True):
            axis = getattr(self, name)
            own = name if axis.name in taken else axis.name
            columns[own] = [axis.labels[k] for k in place]
        columns |= {"rows": self.n[cells], **{name: getattr(self, name)[cells] for name in SERIES}}
        return frame_of(columns | {"sure": self.sure[cells]}, self.backend)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN as None)."""
        plain = {"sentence": self.sentence, **plain_lists(self)}
        plain["others"] = [one.to_dict() for one in self.others]
        del plain["backend"]
        return plain

    def plot(self, ax: Any = None) -> Any:
        """Draw the gap over both variables.

        Over two numbers or dates this is a heat map with contours, bars that show where the rows
        are, and strong colours where the gap surely differs from 0. With levels it is one curve
        per level with its band, or a table of cells.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_variables import draw_surface  # noqa: PLC0415

        return draw_surface(self, ax)

    def _shown(self) -> tuple[str, dict[str, list[Any]], str]:
        names = f"{self.first.name!r} and {self.second.name!r}"
        head = f"Surface of {names}: {self.claim}, {count(self.n_rows, 'row')}\n{self.sentence}"
        over, under = (gap_side(sign, self.claim) for sign in (1.0, -1.0))
        legend = (
            f"Gap: what the model says minus what happens (above 0: {over}, below: {under}); "
            f"the band holds for all cells at once, {level_text(self.level)}."
        )
        surely = np.where(self.sure != 0, np.maximum(self.low, -self.high), -np.inf)
        order = np.argsort(-surely, axis=None, kind="stable")[:MOST_LINES]
        cells = [np.unravel_index(int(k), surely.shape) for k in order]
        cells = [cell for cell in cells if surely[cell] > 0]
        table: dict[str, list[Any]] = {
            self.first.name: [self.first.labels[int(i)] for i, _ in cells],
            self.second.name: [self.second.labels[int(j)] for _, j in cells],
            "gap, points": [signed(float(self.gap[cell])) for cell in cells],
            "band": [interval(float(self.low[cell]), float(self.high[cell])) for cell in cells],
            "says": [percent(float(self.predicted[cell])) for cell in cells],
            "happens": [percent(float(self.observed[cell])) for cell in cells],
            "rows": [int(self.n[cell]) for cell in cells],
        }
        return head, table if cells else {}, "\n".join([*self.notes, legend])


#: Half-widths, as shares of the rows, from which cross-validation chooses.
HALF_WIDTHS = (0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4)
#: Degree of the polynomials that choose the half-width, and of those of the surface. The bias of
#: the latter is small beside its standard error, so that coverage does not fall with more rows.
CHOICE_DEGREE, DEGREE = 1, 2
#: The surface's half-width as part of the chosen one. With 4/5, a jump along a diagonal was covered
#: in 8 of 10 samples of 50,000 rows, with 2/3 in all, at a band that is up to an eighth wider.
NARROWER = 0.67
#: It is not made narrower than this, which is little more than two cells.
NARROW = 0.1
#: The widest half-width of the surface. Without it, cross-validation smooths away a narrow bump
#: that few rows cannot show: 3 of 12 samples of 5,000 rows were covered, with it all of them.
WIDEST = 0.27
#: Cross-validation ignores half-widths with a smaller share of residual degrees of freedom.
LEAST_FREEDOM = 0.1
#: Smaller eigenvalues of a local fit, as part of the largest, count as 0: fewer distinct places
#: than coefficients.
_SINGULAR = 1e-8


def hat_matrix(
    first: SurfaceAxis, second: SurfaceAxis, weight: Floats, half_width: float, degree: int
) -> Floats:
    """Return the weights of all cells in the fit at each cell, both in row-major order.

    Parameters
    ----------
    first, second : SurfaceAxis
        The variables.
    weight : ndarray of shape (m1, m2)
        Weight of each cell.
    half_width : float
        Share of the rows to either side along each variable.
    degree : int
        Degree of the local polynomial.

    Examples
    --------
    >>> place = (np.arange(4) + 0.5) / 4
    >>> one = SurfaceAxis("a", "numeric", ("",) * 4, np.arange(5.0), place)
    >>> hat = hat_matrix(one, one, np.ones((4, 4)), 0.8, 1)
    >>> plane = np.add.outer(2 * place, -3 * place).ravel()
    >>> bool(np.allclose(hat @ plane, plane))
    True
    """
    across = [_kernel(axis, half_width) for axis in (first, second)]
    powers = [
        [kernel * distance**power for power in range(2 * degree + 1)] for kernel, distance in across
    ]
    terms = [(a, b) for a in range(degree + 1) for b in range(degree + 1 - a)]
    moments = {
        (a, b): powers[0][a] @ weight @ powers[1][b].T
        for a in range(2 * degree + 1)
        for b in range(2 * degree + 1 - a)
    }
    rows = [[moments[a + c, b + d] for c, d in terms] for a, b in terms]
    gram = np.moveaxis(np.array(rows), (0, 1), (2, 3))
    value, vector = np.linalg.eigh(gram)
    usable = value > _SINGULAR * value[..., -1:]
    inverse = np.where(usable, 1 / np.where(usable, value, 1.0), 0.0)
    # The fitted value is the constant term, the first coefficient.
    coefficient = np.einsum("ijk,ijtk,ijk->ijt", vector[:, :, 0], vector, inverse)
    shape = (*weight.shape, *weight.shape)
    hat = np.zeros(shape)
    for k, (a, b) in enumerate(terms):
        hat += (
            coefficient[:, :, k, None, None]
            * powers[0][a][:, None, :, None]
            * powers[1][b][None, :, None, :]
        )
    hat *= weight
    return hat.reshape(weight.size, weight.size)


def best_half_width(
    first: SurfaceAxis, second: SurfaceAxis, weight: Floats, response: Floats
) -> float:
    """Choose the half-width of a surface by generalized cross-validation of local lines.

    Parameters
    ----------
    first, second, weight
        As in `hat_matrix`.
    response : ndarray of shape (m1 m2,)
        The mean of each cell; any number where the weight is 0.
    """
    mass = weight.ravel()
    filled = int((mass > 0).sum())
    scores = []
    for half_width in HALF_WIDTHS:
        hat = hat_matrix(first, second, weight, half_width, CHOICE_DEGREE)
        free = 1 - float(np.diag(hat).sum()) / filled
        loss = float((mass * (response - hat @ response) ** 2).sum())
        scores.append(loss / free**2 if free >= LEAST_FREEDOM else np.inf)
    best = HALF_WIDTHS[int(np.argmin(scores))]
    return min(max(NARROWER * best, min(best, NARROW)), WIDEST)


def _kernel(axis: SurfaceAxis, half_width: float) -> tuple[Floats, Floats]:
    """Return tricube weights between cells, and distances in half-widths."""
    alone = axis.alone
    place = np.where(alone, 0.0, axis.position)
    distance = (place[None, :] - place[:, None]) / half_width
    kernel = np.clip(1 - np.abs(distance) ** 3, 0.0, None) ** 3
    apart = alone[:, None] | alone[None, :]
    kernel[apart] = distance[apart] = 0.0
    np.fill_diagonal(kernel, 1.0)
    return kernel, distance


#: Draws of the largest deviation anywhere; its 95 % point is then known to about 0.02.
DRAWS = 1000
#: A cell is judged if its estimate rests on at least this many rows.
LEAST_ROWS = 20
#: The band is wider by this where cells are smoothed, for the bias that is left: without it a wave
#: was covered in 85 % of 60 samples of 50,000 rows, and a jump along a diagonal in 82 %; with 1.08
#: the jump was covered in 93 %, with this in 97 %.
WIDER = 1.12
#: The half-width of the window over which squared residuals are averaged is at least this.
LEAST_WINDOW = 0.2


def _smoothed(
    stats: BinnedStats, first: SurfaceAxis, second: SurfaceAxis, *, level: float, random_state: int
) -> dict[str, Any]:
    """Smooth the gaps of cells; return them with their band, p-value and half-width."""
    shape = len(first), len(second)
    filled = stats.total("weight") > 0
    weight = stats.total("weight").reshape(shape)
    raw = np.where(filled, np.nan_to_num(stats.gap), 0.0)
    half_width = best_half_width(first, second, weight, raw)
    hat = hat_matrix(first, second, weight, half_width, DEGREE)[np.ix_(filled, filled)]
    window = hat_matrix(first, second, weight, max(half_width, LEAST_WINDOW), 0)
    window = window[np.ix_(filled, filled)]
    cells = cells_of(stats, filled, np.flatnonzero(filled).astype(float))
    fit = hat @ cells.gap
    # `cell_variance` takes a window over sums; that of `hat_matrix` is over means.
    over_sums = window / cells.weight
    over_sums /= over_sums.sum(1, keepdims=True)
    factor = hat * np.sqrt(cell_variance(cells, fit, hat, over_sums, GAP))
    dof = np.inf
    if cells.group_weight is not None:
        dof = max(effective_groups(cells.group_weight, cells.weight, hat) - 1, 1.0)
        factor = group_factor(cells, fit, hat, GAP, factor)
    se = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    rows = cells.weight**2 / cells.weight2
    judged = (1 / np.maximum((hat**2 / rows).sum(1), 1e-300) >= LEAST_ROWS) & (se > 0)
    largest = _largest_deviations(factor[judged], se[judged], dof, random_state)
    wider = 1.0 if first.alone.all() and second.alone.all() else WIDER
    critical = wider * float(np.quantile(largest, level)) if judged.any() else np.nan
    observed = float(np.max(np.abs(fit[judged]) / se[judged])) / wider if judged.any() else 0.0
    p_value = (1 + int((largest >= observed).sum())) / (1 + len(largest))

    reach = np.where(judged, critical * se, np.nan)
    gap, low, high = np.full((3, len(filled)), np.nan)
    gap[filled] = np.clip(fit, -1.0, 1.0)
    low[filled] = np.maximum(gap[filled] - reach, -1.0)
    high[filled] = np.minimum(gap[filled] + reach, 1.0)
    return {
        "gap": gap.reshape(shape),
        "low": low.reshape(shape),
        "high": high.reshape(shape),
        "p_value": p_value if judged.any() else 1.0,
        "half_width": half_width,
    }


def _largest_deviations(factor: Floats, se: Floats, dof: float, random_state: int) -> Floats:
    """Draw the largest standardized deviation over all cells."""
    rng = np.random.default_rng(random_state)
    drawn = np.abs((factor / se[:, None]) @ rng.standard_normal((factor.shape[1], DRAWS)))
    largest = drawn.max(axis=0, initial=0.0)
    if np.isfinite(dof):
        largest = largest * np.sqrt(dof / rng.chisquare(dof, DRAWS))
    found: Floats = largest
    return found


@checked()
@one_blas_thread()
def surface(
    y: object,
    p: object = None,
    X: object = ALL,
    *,
    data: object = None,
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    random_state: int = 0,
) -> Surface:
    r"""Estimate the gap over two variables, with a mask that holds for all places at once.

    Rows are summed into cells: 24 ranges of numbers or dates with about equally many rows,
    levels, and missing values as a level of their own. Gaps of neighbouring cells are smoothed by
    local quadratics with product weights along the ranks of both variables; levels are not
    smoothed. The width of the neighbourhood is chosen by cross-validation and then narrowed, so
    that the bias is small compared with the standard error. Then, with the probability `level`,

    .. math:: |\hat g(v_1, v_2) - g(v_1, v_2)| \le c \cdot se(v_1, v_2)

    holds for all cells at once, where c is the quantile of the largest deviation in simulated
    draws.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `vece`.
    X : frame, dict of columns, array, or column names
        Two variables: numbers, dates or levels.
    data, classes, sample_weight, from_logits, unlabelled
        As in `vece`. Of lazy rows that do not fit into memory, 500,000 are drawn at random.
    pos_label : label, optional
        The class whose probability is judged, and that a vector `p` is the probability of;
        the second one by default.
    level : float
        Level of the band.
    groups : array-like or column name, optional
        Units that rows belong to, such as patients. The band then allows for dependence within a
        unit.
    random_state : int
        Seed of the simulated deviations.

    Returns
    -------
    Surface

    See Also
    --------
    curve : The gap along one variable.
    slices : The regions of up to three variables where the gap is largest.

    Examples
    --------
    >>> import varcal as vc
    >>> adult = vc.datasets.load_adult()
    >>> X = {"age": adult["age"], "hours": adult["hours-per-week"]}
    >>> found = vc.surface(adult.y, adult.p, X)
    >>> found.claim, found.gap.shape, bool((found.sure == -1).any())
    ('probability', (24, 16), True)
    """
    options = {
        "data": data,
        "classes": classes,
        "pos_label": pos_label,
        "sample_weight": sample_weight,
        "groups": groups,
        "from_logits": from_logits,
        "unlabelled": unlabelled,
    }
    rows = read_rows("surface()", y, p, X, options)
    predictions, variables = rows.predictions, rows.predictions.variables
    if len(variables) != 2:
        many = count(len(variables), "variable")
        raise InputError(f"X has {many}", "give two; curve() is along one", argument="X")
    for variable in variables:
        if variable.missing().all():
            raise InputError(
                f"{variable.name!r} is missing at every row", "give a variable with values"
            )
    keys = audit_keys(predictions.classes, pos_label)
    parts = tuple(bins_of(variable) for variable in variables)
    units = buckets(predictions.unit)
    names = claim_names(predictions.classes, keys)
    found = []
    for key in keys:
        claim = claim_of(predictions, key)
        stats = bin_rows(
            JointBins(parts), variables, claim.score, claim.hit, predictions.weight, *units
        )
        n = stats.n.reshape([bins.size for bins in parts])
        first = axis_of(variables[0], parts[0], n.sum(axis=1))
        second = axis_of(variables[1], parts[1], n.sum(axis=0))
        each = 1 - (1 - level) / len(keys)
        smoothed = _smoothed(stats, first, second, level=each, random_state=random_state)
        smoothed["p_value"] = min(1.0, smoothed["p_value"] * len(keys))
        score, hit, weight = (stats.total(name).sum() for name in ("score", "hit", "weight"))
        found.append(
            Surface(
                first=first,
                second=second,
                claim=names[key],
                n=n,
                share=stats.share.reshape(n.shape),
                predicted=stats.confidence.reshape(n.shape),
                observed=stats.accuracy.reshape(n.shape),
                **smoothed,
                overall=float((score - hit) / weight),
                level=level,
                n_rows=len(predictions),
                n_dropped=predictions.n_dropped,
                grouped=predictions.unit is not None,
                notes=rows.notes,
                engine=rows.engine,
                backend=predictions.backend,
            )
        )
    found.sort(key=_clearest)
    return replace(found[0], others=tuple(found[1:]))


def _clearest(one: Surface) -> tuple[float, float]:
    """Order claims: the one that is surely off for the most rows, by the most, first."""
    surely = np.maximum(np.nan_to_num(np.maximum(one.low, -one.high), nan=0.0), 0.0)
    return -float((one.share * surely).sum()), one.p_value
