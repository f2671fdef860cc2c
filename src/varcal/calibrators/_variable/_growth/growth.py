"""The second stage of two classes: what the first stage leaves, where there are enough rows.

Three predictors stand side by side: the first stage, the first stage with fine tables of pairs, and
boosted trees that start at the score. Held-out rows decide which tables are added, how many trees
there are, and how far trees are mixed in; a last curve, learned on the same held-out predictions,
corrects the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from scipy.special import expit

from varcal._arrays import AnyArray, Floats, Ints, ratio_or_zero
from varcal.calibrators._variable._growth.blend import Held, blend
from varcal.calibrators._variable._growth.boosted_trees import (
    Boosting,
    Trees,
    depths_of,
    fit_trees,
    held_out_trees,
    placed,
    rate_of,
)
from varcal.calibrators._variable._growth.cells import LevelCells, NumberCells, cells_of
from varcal.calibrators._variable._growth.grow_tree import Codes
from varcal.calibrators._variable._growth.pair_tables import (
    MOST_TABLES,
    CoarseCells,
    PairTable,
    fit_tables,
)
from varcal.calibrators._variable._reml.losses import LogisticLoss
from varcal.calibrators._variable.additive_model import AdditiveModel
from varcal.calibrators._variable.folds import Folds
from varcal.calibrators._variable.last_curve import fit_link

# Tuned constants; ../README.md tells how they were chosen.

#: The number of rows below which there is no second stage.
LEAST_ROWS = 300.0
#: Below this number of rows there are only trees. A table of pairs once cost .002 of log-loss in
#: 300 calibrated rows; a last curve, which nothing judges, .026; and in 1,000 rows intervals by the
#: error of held-out rows were far wider than those of the first stage, which cover the truth there.
MANY_ROWS = 2_000.0
#: Beyond this number of rows, tables and trees are learned on a sample of this size.
MOST_ROWS = 250_000
#: Held-out rows that are enough to judge the second stage: other folds only fit.
ENOUGH_HELD = 50_000
#: Rows on which the variance of trees is measured.
VARIANCE_ROWS = 2_000


@dataclass(frozen=True, eq=False)
class Growth:
    r"""Tables and trees beside the first stage.

    .. math:: \eta = \eta_1 + t + w (\eta_0 + b - \eta_1 - t)

    with the first stage's predictor :math:`\eta_1`, tables t, the score's predictor
    :math:`\eta_0`, trees b and their share w; a last curve follows.

    Attributes
    ----------
    variables : tuple of int
        The variable of each entry of `cells`; −1 for the score.
    cells : tuple of NumberCells or LevelCells
        The cells of the score and of the variables.
    tables : tuple of PairTable
        The tables.
    trees : Trees or None
        The trees.
    share : float
        w, between 0 and 1.
    gain, error : float
        How much the trees lower the log-loss of held-out rows, and its standard error.
    link : AdditiveModel or None
        The last curve.
    variance : float
        The mean squared error of logits, measured on held-out rows; 0 where these are too few.
    effects : tuple of ndarray
        What the second stage adds on average in each of the `cells`.
    shift : float
        What is added to logits, so that the mean probability is the mean outcome.
    """

    variables: tuple[int, ...]
    cells: tuple[NumberCells | LevelCells, ...]
    tables: tuple[PairTable, ...]
    trees: Trees | None
    share: float
    gain: float
    error: float
    link: AdditiveModel | None
    variance: float
    effects: tuple[Floats, ...] = ()
    shift: float = 0.0

    def _check_saved(self) -> None:
        """Raise ValueError unless tables, trees and effects have an entry for every cell."""
        numbers = (self.share, self.gain, self.error, self.variance, self.shift)
        if not np.isfinite(numbers).all() or not 0 <= self.share <= 1 or self.variance < 0:
            raise ValueError("a share or a variance is impossible")
        if not len(self.variables) == len(self.cells) == len(self.effects):
            raise ValueError("variables, cells and effects do not match")
        for variable, cells, effect in zip(self.variables, self.cells, self.effects, strict=True):
            size = 0 if variable < 0 else cells.size
            if effect.shape != (size,) or not np.isfinite(effect).all():
                raise ValueError("effects do not match cells")
        for table in self.tables:
            if not all(0 <= k < len(self.cells) for k in table.pair):
                raise ValueError("a table is of an unknown variable")
            wanted = tuple(int(self.cells[k].coarse().max()) + 1 for k in table.pair)
            if table.added.shape != wanted:
                raise ValueError("a table does not match its cells")
        if self.trees is not None:
            most = max((each.size for each in self.cells), default=0)
            if self.trees.place.shape != (len(self.cells), most):
                raise ValueError("trees do not match cells")

    def codes(self, z: Floats, columns: Sequence[AnyArray]) -> Codes:
        """Return the cells of rows."""
        return _codes(self.variables, self.cells, z, columns)

    def blended(self, codes: Codes, base: Floats, first: Floats) -> Floats:
        """Return the predictor before the last curve.

        Parameters
        ----------
        codes : ndarray
            The cells of rows.
        base, first : ndarray
            The predictors of the score alone and of the first stage.
        """
        eta = first
        for table in self.tables:
            one, two = table.pair
            at = self.cells[one].coarse()[codes[one]], self.cells[two].coarse()[codes[two]]
            eta = eta + table.added[at]
        if self.trees is not None:
            eta = eta + self.share * (base + self.trees.added(codes) - eta)
        return eta

    def linked(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return the predictor after the last curve, and the variance that the curve adds."""
        if self.link is None:
            return eta + self.shift, np.zeros(len(eta))
        added, variance = self.link.lookup.predictor(eta, [])
        return eta + added + self.shift, variance

    def most_used(self) -> list[int]:
        """Return the entries of `cells`, the one that matters most first.

        Those of tables come first, then those whose splits gain most.
        """
        use = np.zeros(len(self.cells)) if self.trees is None else self.trees.used.copy()
        for table in reversed(self.tables):
            use[list(table.pair)] += 1 + use.max()
        return [int(k) for k in np.argsort(-use, kind="stable")]

    def without(self, k: int, rare: AnyArray) -> Growth:
        """Return the same after rare levels of variable k were pooled."""
        cells = tuple(
            each.without(rare) if variable == k and isinstance(each, LevelCells) else each
            for variable, each in zip(self.variables, self.cells, strict=True)
        )
        return replace(self, cells=cells)


@dataclass(frozen=True, eq=False)
class GrowthRows:
    """The rows of the second stage, with what the first stage says about them.

    Attributes
    ----------
    z, columns, n_levels
        Logits of scores, variables, and their numbers of levels.
    y, mass : ndarray
        Outcomes, and the number of rows that each row stands for.
    folds : Folds
        Which rows are held out together.
    units : ndarray or None
        The group of each row.
    base : ndarray
        The predictor of the score alone.
    firsts : ndarray of shape (k, n)
        The first stage's predictor of each row, by the model that is judged on each fold.
    first : ndarray
        The same by the model of all rows.
    """

    z: Floats
    columns: Sequence[AnyArray]
    n_levels: Sequence[int]
    y: Floats
    mass: Floats
    folds: Folds
    units: AnyArray | None
    base: Floats
    firsts: Floats
    first: Floats


def fewer_folds(folds: Folds) -> Folds:
    """Return folds of which only so many are held out as are enough to judge.

    >>> folds = fewer_folds(Folds(np.arange(300_000) % 3, 3))
    >>> folds.k, np.unique(folds.fold)
    (1, array([-1,  0]))
    """
    held = np.bincount(folds.fold[folds.fold >= 0], minlength=folds.k)
    if folds.forward:
        # The latest stretches of time have the most rows before them.
        kept = 1 + int(np.searchsorted(np.cumsum(held[::-1]), ENOUGH_HELD))
        fold = np.maximum(folds.fold - max(folds.k - kept, 0), -1)
    else:
        kept = 1 + int(np.searchsorted(np.cumsum(held), ENOUGH_HELD))
        fold = np.where(folds.fold < kept, folds.fold, -1)
    return replace(folds, fold=fold, k=min(kept, folds.k))


def fit_growth(rows: GrowthRows) -> Growth | None:
    """Return the second stage; None where held-out rows do not support it."""
    known = [(-1, cells_of(rows.z, 0, rows.mass))]
    known += [
        (k, cells_of(column, n_levels, rows.mass))
        for k, (column, n_levels) in enumerate(zip(rows.columns, rows.n_levels, strict=True))
    ]
    variables = tuple(k for k, each in known if each is not None)
    cells = tuple(each for _, each in known if each is not None)
    judged = rows.folds.judged()
    if not any(k >= 0 for k in variables) or not judged.any():
        return None
    codes = _codes(variables, cells, rows.z, rows.columns)
    held, n_rows = Held(rows.y, rows.mass, rows.folds, rows.units), float(rows.mass.sum())
    coarse = [each.coarse() for each in cells]
    tables, tabled = fit_tables(
        CoarseCells(
            [own[each].astype(np.uint8) for own, each in zip(coarse, codes, strict=True)],
            [int(own.max()) + 1 for own in coarse],
        ),
        held,
        rows.firsts,
        rows.first,
        most=MOST_TABLES if n_rows >= MANY_ROWS else 0,
    )
    boosting = Boosting(
        codes,
        np.array([isinstance(each, NumberCells) for each in cells]),
        max(each.size for each in cells),
        rows.base,
        rows.y,
        rows.mass,
        0,
        rate_of(n_rows),
    )
    found = []
    for depth in depths_of(n_rows):
        trial = replace(boosting, depth=depth)
        without = held_out_trees(trial, rows.folds)
        found.append((trial, without, *blend(held, tabled, without.eta)))
    boosting, without, share, gain = max(found, key=lambda each: each[-1].value)
    if not tables and share == 0:
        return None
    trees = fit_trees(boosting, _refit_number(without.number, rows)) if share > 0 else None
    growth = Growth(variables, cells, tables, trees, share, gain.value, gain.error, None, 0.0)
    if n_rows < MANY_ROWS:
        return growth
    eta = (tabled + share * (without.eta - tabled))[judged]
    link = fit_link(eta, LogisticLoss(rows.y[judged], rows.mass[judged], eta))
    growth = replace(growth, link=link)
    linked = np.zeros(len(rows.y))
    linked[judged] = growth.linked(eta)[0]
    ordered = placed(boosting.places(), codes)
    sizes = [each.size if isinstance(each, NumberCells) else boosting.n_cells for each in cells]
    variance = error_variance(held, linked, ordered, sizes, growth.most_used())
    if trees is not None:
        some = np.linspace(0, len(rows.y) - 1, VARIANCE_ROWS).astype(np.intp)
        variance += share**2 * without.variance(trees, np.ascontiguousarray(codes[:, some]))
    return replace(growth, variance=variance)


def _refit_number(number: int, rows: GrowthRows) -> int:
    """Return how many trees are grown on all rows, more than were best on a part of them."""
    part = np.mean([rows.mass[train].sum() for train, _ in rows.folds.splits()])
    return int(np.ceil(number * rows.mass.sum() / part))


def _codes(
    variables: Sequence[int],
    cells: Sequence[NumberCells | LevelCells],
    z: Floats,
    columns: Sequence[AnyArray],
) -> Codes:
    return np.array(
        [each.codes(z if k < 0 else columns[k]) for k, each in zip(variables, cells, strict=True)]
    )


# Tuned constants; ../README.md tells how they were chosen.

#: Variables whose pairs and triples are looked at.
LOOKED_AT = 4
#: The mean weight W of the smallest cells, which hold about three rows each.
CELL_WEIGHT = 0.6
#: Cells of one variable, as shares of the largest number of them.
SHARES = (1.0, 0.75, 0.5)
#: What is found is multiplied by this: where the truth was known, cells showed between 36 and 65 %
#: of the mean square of strong interactions, because errors change within them.
UNSEEN = 2.0


def error_variance(
    rows: Held, eta: Floats, codes: Codes, sizes: Sequence[int], most_used: Sequence[int]
) -> float:
    """Return the mean squared error of logits.

    Parameters
    ----------
    rows : Held
        Outcomes and folds.
    eta : ndarray
        The predictor of each row by a model that has not seen its fold.
    codes : ndarray of shape (d, n)
        The cells of the rows; those of categories in order of their outcomes.
    sizes : sequence of int
        The number of cells of each variable.
    most_used : sequence of int
        Variables, the one that matters most first.

    Examples
    --------
    >>> from varcal.calibrators._variable.folds import Folds
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(8, size=(2, 20_000)).astype(np.uint8)
    >>> error = np.where((codes[0] + codes[1]) % 2, 0.5, -0.5)
    >>> y = (rng.random(20_000) < expit(error)).astype(float)
    >>> rows = Held(y, np.ones(20_000), Folds(np.arange(20_000) % 3, 3))
    >>> found = error_variance(rows, np.zeros(20_000), codes, [8, 8], [0, 1])
    >>> bool(abs(found / UNSEEN - 0.25) < 0.05)
    True
    """
    judged = rows.folds.judged()
    mean, mass, fold = expit(eta[judged]), rows.mass[judged], rows.folds.fold[judged]
    residual, weight = rows.y[judged] - mean, mean * (1.0 - mean)
    chosen = list(most_used)[:LOOKED_AT]
    found = 0.0
    for number in (1, 2, 3):
        most = (float(mass @ weight) / rows.folds.k / CELL_WEIGHT) ** (1 / number)
        for some, share in product(combinations(chosen, number), SHARES):
            cell = fold.astype(np.intp)
            for k in some:
                side = int(np.clip(share * most, 2, sizes[k]))
                cell = cell * side + codes[k][judged].astype(np.intp) * side // sizes[k]
            found = max(found, _mean_square(cell, residual, weight, mass))
    return UNSEEN * found


def _mean_square(cell: Ints, residual: Floats, weight: Floats, mass: Floats) -> float:
    _, cell = np.unique(cell, return_inverse=True)
    parts = (mass * residual, mass * weight, mass * residual**2, mass * weight**2)
    R, W, own_R, own_W = (np.bincount(cell, each).astype(float) for each in parts)
    pairs = np.maximum(W**2 - own_W, 0.0)
    below = float(ratio_or_zero(pairs, W).sum())
    if below <= 0:
        return 0.0
    # The largest of several estimates is too large by about its standard error.
    error = float(np.sqrt(2.0 * ratio_or_zero(pairs, W**2).sum()))
    return (float(ratio_or_zero(R**2 - own_R, W).sum()) - error) / below
