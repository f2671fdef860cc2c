"""What the second stage does: sentences, and its mean effect along each variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal.calibrators._variable._growth.growth import Growth

#: Variables of trees that are named.
NAMED = 4
#: The share in what splits gain from which a variable is named.
LEAST_USED = 0.05


def growth_sentences(growth: Growth, names: Sequence[str]) -> list[str]:
    """Return one sentence for each table, and one for the trees or what takes their place."""
    shown = ["score" if k < 0 else names[k] for k in growth.variables]
    words = [
        f"Table of {shown[one]} × {shown[two]}: lowers the log-loss of held-out rows by "
        f"{gain:.4f} ± {error:.4f}."
        for (one, two), gain, error in ((t.pair, t.gain, t.error) for t in growth.tables)
    ]
    if growth.trees is not None:
        most = np.argsort(-growth.trees.used, kind="stable")[:NAMED]
        used = [shown[k] for k in most if growth.trees.used[k] >= LEAST_USED]
        lower = f"the log-loss of held-out rows by {growth.gain:.4f} ± {growth.error:.4f}."
        if used:
            along = f"{len(growth.trees.cut)} trees, mostly along {', '.join(used)}"
            words.append(f"{along}: applied at {growth.share:.0%}, lower {lower}")
        else:
            # Without a tree, the second predictor is that of the score.
            words.append(f"Shrunk towards the score by {growth.share:.0%}, which lowers {lower}")
    return words


def mean_effects(
    growth: Growth,
    z: Floats,
    columns: Sequence[AnyArray],
    added: Callable[[Floats, list[AnyArray]], Floats],
    some: AnyArray,
) -> tuple[Floats, ...]:
    """Return what the second stage adds on average in each cell of each variable.

    Every cell is given to some rows in turn, by one of the values that calibration rows have in it.

    Parameters
    ----------
    growth : Growth
        The second stage.
    z, columns
        The calibration rows.
    added : callable
        Returns what the second stage adds to the logit of rows.
    some : ndarray of int
        The rows over which the mean is taken.
    """
    codes = growth.codes(z, columns)
    found = []
    for k, variable in enumerate(growth.variables):
        if variable < 0:
            found.append(np.empty(0))
            continue
        values = columns[variable]
        # The least value in each cell: which row comes first does not matter.
        order = np.lexsort([values, codes[k]])
        cells, first = np.unique(codes[k][order], return_index=True)
        here = [np.tile(column[some], len(cells)) for column in columns]
        here[variable] = np.repeat(values[order][first], len(some))
        moved = added(np.tile(z[some], len(cells)), here).reshape(len(cells), -1).mean(axis=1)
        counts = np.bincount(codes[k], minlength=growth.cells[k].size)
        effect = np.zeros(len(counts))
        effect[cells] = moved
        found.append(effect - counts @ effect / counts.sum() * (counts > 0))
    return tuple(found)


def moved_by(growth: Growth, variable: int, values: AnyArray) -> Floats:
    """Return what the second stage adds on average at values of a variable."""
    if variable not in growth.variables:
        return np.zeros(len(values))
    k = growth.variables.index(variable)
    return np.asarray(growth.effects[k][growth.cells[k].codes(values)])
