"""`surface`: the gap over two variables at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from varcal._input.columns import column_of
from varcal._input.events import audit_keys, claim_names, claim_of
from varcal._input.frames import Table, is_frame
from varcal._input.groups import buckets
from varcal._options import checked
from varcal._search.axis import axis_of, bins_of
from varcal._search.bands import surface_band
from varcal._search.rows import Rows, read_rows
from varcal._search.surface_result import Surface
from varcal._sums.bins import JointBins
from varcal._sums.gather import refuse_sums
from varcal._sums.kernel import bin_rows
from varcal._sums.sources import lazy_rows
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError


@checked()
@one_blas_thread()
def surface(
    y: object,
    p: object = None,
    v1: object = None,
    v2: object = None,
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
    v1, v2 : array-like or column names
        Two variables: numbers, dates or levels. Arrays get a name as a dict of one column.
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
    >>> age, hours = {"age": adult["age"]}, {"hours": adult["hours-per-week"]}
    >>> found = vc.surface(adult.y, adult.p, age, hours)
    >>> found.claim, found.gap.shape, bool((found.sure == -1).any())
    ('probability', (24, 16), True)
    """
    refuse_sums(y, "surface()")
    if v1 is None or v2 is None:
        missing = "v1" if v1 is None else "v2"
        raise InputError(
            f"{missing} is None", "give two variables; curve() is along one", argument=missing
        )
    rows = read_rows(
        y,
        p,
        _pair(v1, v2, data),
        data=data,
        classes=classes,
        pos_label=pos_label,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
        what="surface()",
    )
    keys = audit_keys(rows.predictions.classes, pos_label)
    return surface_of(rows, keys, level=level, random_state=random_state)


def surface_of(rows: Rows, keys: Sequence[int], *, level: float, random_state: int) -> Surface:
    """Return the surface of the two variables of some rows, for the given claims."""
    predictions = rows.predictions
    variables = predictions.variables
    for variable in variables:
        if variable.missing().all():
            raise InputError(
                f"{variable.name!r} is missing at every row", "give a variable with values"
            )
    parts = [bins_of(variable) for variable in variables]
    joint = JointBins(tuple(parts))
    bucket, n_buckets = buckets(predictions.unit)
    each = 1 - (1 - level) / len(keys)
    names = claim_names(predictions.classes, keys)
    found = []
    for key in keys:
        claim = claim_of(predictions, key)
        stats = bin_rows(
            joint, variables, claim.scores, claim.hits, predictions.weight, bucket, n_buckets
        )
        shape = parts[0].size, parts[1].size
        n = stats.n.reshape(shape)
        axes = [
            axis_of(variable, bins, n.sum(axis=1 - k))
            for k, (variable, bins) in enumerate(zip(variables, parts, strict=True))
        ]
        band = surface_band(stats, axes[0], axes[1], level=each, random_state=random_state)
        reach = np.where(band.judged, band.critical * band.se, np.nan)
        weight = stats.total("weight")
        found.append(
            Surface(
                first=axes[0],
                second=axes[1],
                claim=names[key],
                n=n,
                share=stats.share.reshape(shape),
                predicted=stats.confidence.reshape(shape),
                observed=stats.accuracy.reshape(shape),
                gap=band.gap,
                low=np.maximum(band.gap - reach, -1.0),
                high=np.minimum(band.gap + reach, 1.0),
                p_value=min(1.0, band.p_value * len(keys)),
                overall=float((stats.total("score") - stats.total("hit")).sum() / weight.sum()),
                half_width=band.half_width,
                level=level,
                n_rows=len(predictions),
                n_dropped=predictions.n_dropped,
                grouped=predictions.unit is not None,
                notes=(rows.note,) if rows.note else (),
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


def _pair(v1: object, v2: object, data: object) -> object:
    """Return both variables with their names, in a form that rows are read by."""
    if lazy_rows(data) is not None:
        for argument, value in (("v1", v1), ("v2", v2)):
            if not isinstance(value, str):
                raise InputError(
                    f"{argument} is a {type(value).__name__}, but data is read in batches",
                    "give the name of a column of data",
                    argument,
                )
        _check_different(str(v1), str(v2))
        return [v1, v2]
    table = None if data is None else Table.of(data, "data")
    columns: dict[str, object] = {}
    for argument, value in (("v1", v1), ("v2", v2)):
        name, column = _named(value, table, argument)
        if columns:
            _check_different(next(iter(columns)), name)
        columns[name] = column
    return columns


def _named(value: object, table: Table | None, argument: str) -> tuple[str, object]:
    """Return a variable and its name: that of its column, or that of the argument."""
    if is_frame(value) or isinstance(value, Mapping):
        frame = Table.of(value, argument)
        if len(frame.columns) != 1:
            raise InputError(
                f"{argument} has {len(frame.columns)} columns", "give one variable", argument
            )
        return frame.columns[0], frame.column(frame.columns[0], argument)
    given = value if isinstance(value, str) else getattr(value, "name", None)
    name = given if isinstance(given, str) and given else argument
    return name, column_of(value, table, argument)


def _check_different(first: str, second: str) -> None:
    if first == second:
        raise InputError(
            f"v1 and v2 are both {first!r}", "give two different variables", argument="v2"
        )
