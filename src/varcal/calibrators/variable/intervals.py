r"""How far a calibrated logit may be from the truth.

The posterior variance of the additive model takes its curves to be smooth. What they and the trees
leave out shows in residuals of held-out rows, summed in cells: where sums are larger than the model
allows, the second moment of what they hide is added. That covers jumps, and scores of exactly 0
and 1. Interactions show in cells of two and three variables: products of residuals of two rows in
the same cell have the mean square of the error as their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators.variable.columns import SCORE

# Tuned constants, chosen for a coverage of at least 93 % in smooth worlds and 90 % at jumps.

#: What the posterior variance is multiplied by: it takes the penalties as known.
PENALTY_DOUBT = 1.2
#: Rows per cell, and cells at most.
CELL_ROWS, MOST_CELLS = 40.0, 32
#: The standard errors that are taken off what residuals show.
DOUBT = 0.6
#: The multiple of its variance that is taken off the squared sum of a single cell.
LOCAL_DOUBT = 3.0
#: Variables whose pairs and triples are looked at, and rows (by their working weight) per cell.
LOOKED_AT, CELL_WEIGHT = 4, 0.6
#: What cells of several variables show is multiplied by this: where the truth was known they showed
#: between 36 and 65 % of the mean square of strong interactions, which change within cells.
UNSEEN = 3.5
#: The standard errors that are taken off it, with trees and without: where trees are applied, the
#: truth is not smooth.
TREES_DOUBT, CURVES_DOUBT = 1.0, 2.0


@dataclass(frozen=True, eq=False)
class Errors:
    """The error of calibrated logits beside the posterior variance.

    Attributes
    ----------
    variables : tuple of int
        Variables along which residuals show more than curves do, −1 for the score.
    cuts, variances : tuple of ndarray
        The cells of each, #{cut < v}, and the extra variance in each cell.
    parts : ndarray of shape (m,)
        Calibrated logits that divide rows into parts.
    least : ndarray of shape (m + 1,)
        The least variance in each part.
    """

    variables: tuple[int, ...] = ()
    cuts: tuple[Floats, ...] = ()
    variances: tuple[Floats, ...] = ()
    parts: Floats = field(default_factory=lambda: np.empty(0))
    least: Floats = field(default_factory=lambda: np.zeros(1))

    def variance(
        self, posterior: Floats, eta: Floats, z: Floats, columns: list[AnyArray]
    ) -> Floats:
        """Return the variance of logits, given the posterior one."""
        beyond = np.zeros(len(eta))
        for k, cuts, variances in zip(self.variables, self.cuts, self.variances, strict=True):
            values = z if k == SCORE else columns[k]
            extra = variances[np.searchsorted(cuts, values).clip(0, len(cuts))]
            beyond = np.maximum(beyond, np.where(np.isnan(values), 0.0, extra))
        total = PENALTY_DOUBT * posterior + beyond
        return np.maximum(total, self.least[np.searchsorted(self.parts, eta)])


def errors_of(
    eta: Floats,
    posterior: Floats,
    y: AnyArray,
    mass: Floats,
    columns: dict[int, Floats],
    codes: list[AnyArray],
    doubt: float,
) -> Errors:
    """Estimate errors from held-out rows.

    Parameters
    ----------
    eta, posterior : ndarray
        Calibrated logits by models that have not seen the rows, and their posterior variance.
    y, mass : ndarray
        Outcomes, and the number of rows that each row stands for.
    columns : dict of int to ndarray
        The numeric variables by their positions; −1 is the score's logit.
    codes : list of ndarray
        The cells of the variables that matter most, for pairs and triples.
    doubt : float
        The standard errors that are taken off what these show.
    """
    mean = 1.0 / (1.0 + np.exp(-eta))
    residual, weight = mass * (y - mean), mass * mean * (1.0 - mean)
    found = []
    for k, values in columns.items():
        rows = np.flatnonzero(~np.isnan(values))
        if not len(rows):
            continue
        cuts = _cuts(np.sort(values[rows]))
        extra = _extra(
            np.searchsorted(cuts, values[rows]), len(cuts) + 1, residual[rows], weight[rows],
            posterior[rows],
        )  # fmt: skip
        if extra is not None:
            found.append((k, cuts, extra))
    parts = np.unique(np.quantile(eta, [1 / 3, 2 / 3]))
    part = np.searchsorted(parts, eta)
    least = np.array(
        [
            _mean_square(
                [each[part == j] for each in codes], residual[part == j], weight[part == j], doubt
            )
            for j in range(len(parts) + 1)
        ]
    )
    return Errors(
        tuple(k for k, _, _ in found),
        tuple(cuts for _, cuts, _ in found),
        tuple(extra for _, _, extra in found),
        parts,
        UNSEEN * least,
    )


def _extra(
    cell: Ints, n_cells: int, residual: Floats, weight: Floats, posterior: Floats
) -> Floats | None:
    """Return the variance in each cell of what residuals hide, None if they hide nothing."""
    r, w = (np.bincount(cell, each, minlength=n_cells) for each in (residual, weight))
    # Rows of a cell share most of the posterior error of their logits.
    known = np.bincount(cell, weight * posterior, minlength=n_cells) * w
    M = w + known
    square = max(float((M**2).sum()), 1e-300)
    excess = float(r @ r) - float(M.sum()) - DOUBT * np.sqrt(2.0 * square)
    spread = 1.0 / (square / max(excess, 1e-300) + w)
    everywhere = (spread * r) ** 2 + spread if excess > 0 else np.zeros(n_cells)
    # A jump shows in few cells, which the sum over all cells may hide.
    here = np.maximum(r**2 - LOCAL_DOUBT * M, 0.0) / np.maximum(w, 1e-12) ** 2
    extra = np.maximum(everywhere, here)
    return extra if extra.any() else None


def _cuts(known: Floats) -> Floats:
    """Return the cuts between cells of about equally many rows, given sorted values.

    A value that fills a whole cell has a cell of its own.

    >>> _cuts(np.repeat([0.0, 1.0, 2.0], [80, 1, 80])).round(3)
    array([0., 2.])
    """
    n_cells = int(np.clip(len(known) / CELL_ROWS, 1, MOST_CELLS))
    ends = known[(np.arange(1, n_cells + 1) * len(known)) // n_cells - 1]
    atoms = ends[1:][ends[1:] == ends[:-1]]
    cuts = np.unique(np.append(ends, np.nextafter(atoms, -np.inf)))
    return cuts[(cuts >= known[0]) & (cuts < known[-1])]


def _mean_square(codes: list[AnyArray], residual: Floats, weight: Floats, doubt: float) -> float:
    """Return the mean squared error that cells of one to three variables show at most."""
    found, total = 0.0, float(weight.sum())
    for number in (1, 2, 3):
        side = (total / CELL_WEIGHT / 4) ** (1 / number)
        if side < 2:
            continue
        for some in combinations(codes[:LOOKED_AT], number):
            cell = np.zeros(len(residual), dtype=np.intp)
            for each in some:
                size = int(each.max(initial=0)) + 1
                kept = int(min(side, size))
                cell = cell * kept + each.astype(np.intp) * kept // size
            found = max(found, _pair_products(cell, residual, weight, doubt))
    return found


def _pair_products(cell: Ints, residual: Floats, weight: Floats, doubt: float) -> float:
    """Return the mean square of the error by products of residuals in the same cell."""
    parts = (residual, weight, residual**2, weight**2)
    R, W, own_R, own_W = (np.bincount(cell, each).astype(float) for each in parts)
    some = W > 0
    R, W, own_R, own_W = (each[some] for each in (R, W, own_R, own_W))
    pairs = np.maximum(W**2 - own_W, 0.0)
    below = float((pairs / W).sum())
    if below <= 0:
        return 0.0
    # The largest of several estimates is too large by one or two of its standard errors.
    error = doubt * float(np.sqrt(2.0 * (pairs / W**2).sum()))
    return (float(((R**2 - own_R) / W).sum()) - error) / below
