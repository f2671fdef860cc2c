"""Profile: one claim along one variable, in fine cells for curves and coarse bins for metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._input.events import Claim
from varcal._input.groups import buckets
from varcal._input.predictions import Predictions
from varcal._input.variables import Kind, Variable
from varcal._sums.bins import NumericBins
from varcal._sums.choose import fine_bins
from varcal._sums.curve_cells import Cells
from varcal._sums.kernel_numpy import bin_rows
from varcal._sums.question import N_FINE, BinOptions
from varcal._sums.stats import FIELDS, BinnedStats

# The sums that `Cells` has as well.
_CELL_FIELDS = tuple(name for name in Cells.__dataclass_fields__ if name in FIELDS)


@dataclass(frozen=True, eq=False)
class Profile:
    """The binned statistics of one claim along one variable.

    Attributes
    ----------
    name, kind : str
        The variable and its kind.
    fine, coarse : BinnedStats
        About a thousand cells of equal support, and the bins of the metrics; the same for levels.
    """

    name: str
    kind: Kind
    fine: BinnedStats
    coarse: BinnedStats

    @property
    def missing(self) -> bool:
        """Whether the last bin has the missing values."""
        return bool(getattr(self.fine.bins, "missing", False))

    @property
    def placed(self) -> Bools | None:
        """Which fine cells are ordered along the variable; None for levels."""
        if self.kind == "levels":
            return None
        placed = np.ones(self.fine.bins.size, dtype=bool)
        placed[-1] = not self.missing
        return placed

    def cells(self) -> Cells:
        """Return the cells with weight in the order of the variable, without missing values."""
        stats = self.fine
        keep = stats.total("weight") > 0
        if self.missing:
            keep[-1] = False
        x = np.flatnonzero(keep).astype(float)
        if isinstance(stats.bins, NumericBins):
            edges = np.array([stats.bins.low, *stats.bins.cuts, stats.bins.high])
            # Infinite values count as 0 in Σwx; the mean must stay inside its cell.
            inside = keep[: len(edges) - 1]
            low, high = edges[:-1][inside], edges[1:][inside]
            mean = stats.total("x")[keep] / stats.total("weight")[keep]
            # The sum of values near 1e308 overflows; the middle of the cell stands for its mean.
            if not np.isfinite(mean).all():
                middle = np.nan_to_num(low) / 2 + np.nan_to_num(high) / 2
                mean = np.where(np.isfinite(mean), mean, middle)
            x = np.clip(mean, low, high)
        return cells_of(stats, keep, x)


def cells_of(stats: BinnedStats, keep: Bools, x: Floats) -> Cells:
    """Return some bins of a table as cells at the positions x, by bucket if there are groups."""
    total = {name: stats.total(name)[keep] for name in _CELL_FIELDS}
    grouped: dict[str, Floats] = {}
    if stats.sums.shape[1] > 1:
        grouped = {
            f"group_{name}": stats.field(name)[:, keep].T for name in ("weight", "hit", "score")
        }
    return Cells(**total | {"x": x}, **grouped)


def profile(
    predictions: Predictions,
    claim: Claim,
    variable: Variable,
    options: BinOptions,
    *,
    n_fine: int = N_FINE,
) -> Profile:
    """Bin one claim along one variable, by bucket of groups if there are groups."""
    coarse, fine = fine_bins(variable, n_fine=n_fine, **options)
    bucket, n_buckets = buckets(predictions.unit)
    stats = bin_rows(
        fine, [variable], claim.score, claim.hit, predictions.weight, bucket, n_buckets
    )
    return Profile(variable.name, variable.kind, stats, stats.coarsen(coarse))
