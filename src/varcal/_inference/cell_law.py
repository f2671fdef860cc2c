"""The law of the gaps of cells: the bins of a variable within each predicted side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from varcal._arrays import Floats, Ints, ratio_or_zero
from varcal._inference.cluster_law import cluster_law
from varcal._inference.error_sums import ErrorSums
from varcal._inference.finer_cells import merged_cells
from varcal._inference.gap_law import GapLaw
from varcal._inference.measured import error_sums, error_sums_by_bucket
from varcal._inference.quadratic_forms import constant_gap_variance
from varcal._sums.bins import NumericBins
from varcal._sums.stats import PRIOR_ROWS, BinnedStats


def cell_law(tables: Sequence[BinnedStats], *, center: bool = False) -> GapLaw:
    r"""Return the law of the gaps of cells, all bins of the first side, then those of the next.

    With `center` the average gap of each side is taken off,

    .. math:: d_{bs} = g_{bs} - \bar g_s, \qquad \text{uneven} = \sum_{bs} \pi_{bs} |d_{bs}|,

    which makes the gaps of a side depend on each other. The variance of a cell is that of
    `GapLaw.from_cells`, shrunk towards the variance of a gap that is constant within the side.
    With groups it is the variance between groups (`cluster_law`).

    Parameters
    ----------
    tables : sequence of BinnedStats
        The table of each side, over the same bins.
    """
    sums = error_sums_by_bucket if tables[0].sums.shape[1] > 1 else error_sums
    ordered = isinstance(tables[0].bins, NumericBins)
    return law_of_sides([sums(stats) for stats in tables], center=center, ordered=ordered)


def law_of_sides(
    parts: Sequence[ErrorSums], *, center: bool = False, ordered: bool = False
) -> GapLaw:
    """Return the law from the sums of each side, of shape (bins,) or (groups, bins)."""
    sides = len(parts)
    if parts[0].n.ndim > 1:
        about = [_about_mean(part) for part in parts] if center else parts
        law = cluster_law(_joined(about), center=center, sides=sides)
        return replace(law, ordered=ordered)
    cells = _joined(parts)
    law = GapLaw.from_cells(cells)
    if not center:
        return law
    null = np.concatenate([constant_gap_variance(part) for part in parts])
    spread = (cells.n * cells.scatter() + PRIOR_ROWS * null) / (cells.n + PRIOR_ROWS - 1)
    return GapLaw(
        gap=law.gap,
        share=law.share,
        cov=np.diag(ratio_or_zero(spread, cells.weight**2)),
        null_cov=np.diag(ratio_or_zero(null, cells.weight**2)),
        share_cov=law.share_cov,
        ordered=ordered,
    ).center(sides)


def finer_law(fine: Sequence[BinnedStats], cells: Ints, *, center: bool = False) -> GapLaw:
    """Return the law of the gaps of finer cells, from tables of fine ones and their numbers."""
    parts = [merged_cells(error_sums(stats), cells) for stats in fine]
    return law_of_sides(parts, center=center, ordered=True)


def _joined(parts: Sequence[ErrorSums]) -> ErrorSums:
    """Put the bins of all sides side by side."""
    names = ErrorSums.__dataclass_fields__
    return ErrorSums(
        **{name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names}
    )


def _about_mean(cells: ErrorSums) -> ErrorSums:
    """Take the mean error of a side off, for sums by bucket of groups."""
    mean = float(ratio_or_zero(cells.error.sum(), np.asarray(cells.weight.sum())))
    return ErrorSums(
        **vars(cells)
        | {
            "error": cells.error - mean * cells.weight,
            "error2": cells.error2 - mean * cells.weight2,
            "square2": cells.square2 - 2 * mean * cells.error2 + mean**2 * cells.weight2,
        }
    )


def part_of(law: GapLaw, cells: Floats) -> tuple[float, float, float]:
    """Return share, gap and standard error of some cells together; `cells` has 1 for each."""
    weight = law.share * cells
    share = float(weight.sum())
    weight = weight / share
    variance = float(weight @ law.cov @ weight)
    return share, float(weight @ law.gap), max(variance, 0.0) ** 0.5
