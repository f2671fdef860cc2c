r"""The additive model of the logit: a sum of tables, fitted by REML.

.. math:: \eta = s(z) + \sum_j \{f_j(v_j) + \tilde z\, g_j(v_j)\} + \sum_{(j,k)} h_{jk}(v_j, v_k)

A `Design` makes columns of rows. A fit of it is a set of `Tables`: heights of s, f and g at knots
or levels, and each h as a sum of products of two such tables. Tables are linear in coefficients,
so that a mixture of two fits is again a set of tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators import steps
from varcal.calibrators.steps import Step
from varcal.calibrators.variable.columns import (
    SCORE,
    Columns,
    heights_at,
    level_columns,
    number_columns,
    score_columns,
)
from varcal.calibrators.variable.reml import Fit, Loss, fit_blocks, refit_on_all

# Tuned constants.

#: Columns of the model at most, and those that are kept free for each variable: those with the
#: least evidence shrink to a line, or are left out. That bounds the time by rows × columns.
MOST_COLUMNS, NARROW, MOST_NARROW = 256, 2, 60
#: The most levels of a category whose effect varies with the score, or that enters a pair.
FEW_LEVELS = 12
#: Variables whose pairs are tried, on so many rows; pairs with a surface of their own at most, and
#: the score test (in standard deviations) from which one has: with less, noise had surfaces.
PAIR_VARIABLES, PAIR_TEST_ROWS, MOST_PAIRS, PAIR_SCORE = 20, 5_000, 8, 4.0
#: Curve columns of each variable in the test of a pair, and in its surface.
TEST_CURVES, SURFACE_CURVES = 2, 5

#: Rows whose columns are computed at once.
CHUNK = 20_000
#: Singular values of a surface below this share of the largest are rounding.
SURFACE_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of a model.

    Attributes
    ----------
    score : Columns
        Those of the score.
    variables : tuple of Columns
        Those of each variable in the model.
    varying : bool
        Whether effects may vary with the score.
    pairs : tuple of (int, int)
        Variables that have a surface of their own; −1 is the score.
    """

    score: Columns
    variables: tuple[Columns, ...] = ()
    varying: bool = False
    pairs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls,
        z: Floats,
        columns: list[AnyArray],
        n_levels: list[int],
        weight: Floats,
        ends: tuple[float, float],
        *,
        varying: bool,
    ) -> Design:
        """Learn the columns from the calibration rows, whose logits lie between `ends`."""
        found = [
            level_columns(k, column, n_levels[k], weight)
            if n_levels[k]
            else number_columns(k, column, weight)
            for k, column in enumerate(columns)
        ]
        live = tuple(each for each in found if each is not None)
        return cls(score_columns(z, weight, ends), live, varying)

    def by_variable(self, k: int) -> Columns:
        """Return the columns of a variable; −1 is the score."""
        if k == SCORE:
            return self.score
        return next(each for each in self.variables if each.variable == k)

    def without(self, some: set[int]) -> Design:
        """Return the design without some variables."""
        kept = tuple(each for each in self.variables if each.variable not in some)
        return replace(self, variables=kept, pairs=())

    def blocks(self) -> list[tuple[str, tuple[int, ...], int]]:
        """Return the name, the variables and the width of each block of columns."""
        found: list[tuple[str, tuple[int, ...], int]]
        found = [(name, (SCORE,), width) for name, width in self.score.parts]
        for each in self.variables:
            found += [(name, (each.variable,), width) for name, width in each.parts]
            varying = self._varying_width(each)
            if varying:
                found.append(("varying", (each.variable,), varying))
        for j, k in self.pairs:
            widths = [_pair_table(self.by_variable(v), SURFACE_CURVES).shape[1] for v in (j, k)]
            found.append(("surface", (j, k), widths[0] * widths[1]))
        return found

    def _varying_width(self, each: Columns) -> int:
        """Return how many columns, the first ones, enter multiplied by the score as well."""
        if not self.varying or not self.score.block("slope").stop:
            return 0
        if not len(each.knots):
            return each.table.shape[1] if each.table.shape[1] <= FEW_LEVELS else 0
        return 1

    def groups(self) -> Ints:
        """Return the penalized block of each column, −1 for the intercept."""
        widths = [width for *_, width in self.blocks()]
        return np.repeat(np.arange(len(widths)) - 1, widths)

    def matrix(self, z: Floats, columns: list[AnyArray]) -> Floats:
        """Return the columns of rows."""
        score = self.score.at(z)
        unit = score[:, self.score.block("slope")]
        found = [score]
        at = {SCORE: score}
        for each in self.variables:
            own = at[each.variable] = each.at(columns[each.variable])
            found.append(own)
            varying = self._varying_width(each)
            if varying:
                found.append(unit * own[:, :varying])
        for pair in self.pairs:
            a, b = (at[v][:, _pair_columns(self.by_variable(v), SURFACE_CURVES)] for v in pair)
            found.append((a[:, :, None] * b[:, None, :]).reshape(len(z), -1))
        return np.hstack(found)

    def chunks(
        self, z: Floats, columns: list[AnyArray], loss: Loss
    ) -> Iterator[tuple[Floats, Loss]]:
        """Yield the columns and the loss of parts of the rows."""
        for begin in range(0, len(z), CHUNK):
            part = slice(begin, begin + CHUNK)
            yield self.matrix(z[part], [each[part] for each in columns]), loss.take(part)


def _pair_columns(columns: Columns, curves: int) -> Ints:
    """Return which columns of a variable enter its pairs."""
    if not len(columns.knots):
        return np.arange(columns.table.shape[1] if columns.table.shape[1] <= FEW_LEVELS else 0)
    line = columns.block("slope" if columns.variable == SCORE else "line")
    curve = columns.block("curve")
    return np.r_[line, slice(curve.start, min(curve.stop, curve.start + curves))]


def _pair_table(columns: Columns, curves: int) -> Floats:
    return columns.table[:, _pair_columns(columns, curves)]


def _score_test(B: Floats, residual: Floats, weight: Floats) -> float:
    """Return ‖Bᵀr‖² in standard deviations from what it would be without an effect."""
    M = (B * weight[:, None]).T @ B
    spread = float(np.sqrt(2.0 * (M**2).sum()))
    return (float(((B.T @ residual) ** 2).sum()) - float(np.trace(M))) / max(spread, 1e-12)


def screened(
    design: Design, columns: list[AnyArray], residual: Floats, weight: Floats
) -> tuple[Design, dict[int, float]]:
    """Return the design with at most `MOST_COLUMNS`, and the evidence for each variable.

    `residual` and `weight` are slopes of the loss under a model of the score.
    """
    tests = {}
    for each in design.variables:
        own = each.at(columns[each.variable])
        tests[each.variable] = max(
            _score_test(own[:, each.block(name)], residual, weight) for name, _ in each.parts
        )
    ranked = sorted(design.variables, key=lambda one: (-tests[one.variable], one.variable))
    room = MOST_COLUMNS - design.score.table.shape[1]
    # A line for each comes first, then all columns of those with the most evidence.
    slim = {each.variable: each.narrow(NARROW) for each in ranked[:MOST_NARROW]}

    def width(one: Columns) -> int:
        return one.table.shape[1] + design._varying_width(one) if one.parts else 0

    room -= sum(map(width, slim.values()))
    for each in ranked[:MOST_NARROW]:
        more = width(each) - width(slim[each.variable])
        if more <= room:
            room -= more
            slim[each.variable] = each
    kept = [each for each in slim.values() if each.parts]
    kept = sorted(kept, key=lambda one: one.variable)
    return replace(design, variables=tuple(kept)), tests


def with_pairs(
    design: Design,
    tests: dict[int, float],
    X: Floats,
    mass: Floats,
    residual: Floats,
    weight: Floats,
) -> Design:
    """Return the design with surfaces of the pairs that residuals of the additive model ask for."""
    best = sorted(design.variables, key=lambda one: (-tests[one.variable], one.variable))
    some = [design.score, *sorted(best[:PAIR_VARIABLES], key=lambda one: one.variable)]
    begins = {SCORE: 0}
    at = 0
    for _, variables, width in design.blocks():
        if variables[0] not in begins:
            begins[variables[0]] = at
        at += width
    # Rows are in the order of a hash, so that the first are a sample.
    most = int(np.searchsorted(np.cumsum(mass), PAIR_TEST_ROWS * (1 - 1e-12))) + 1
    own_weight = weight[:most]
    parts = {
        each.variable: X[:most, begins[each.variable] + _pair_columns(each, TEST_CURVES)]
        for each in some
    }
    found = []
    for i, one in enumerate(some):
        for other in some[i + 1 :]:
            a, b = parts[one.variable], parts[other.variable]
            if not a.shape[1] or not b.shape[1]:
                continue
            B = (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
            B -= own_weight @ B / own_weight.sum()
            test = _score_test(B, residual[:most], own_weight)
            if test > PAIR_SCORE:
                found.append((-test, (one.variable, other.variable)))
    return replace(design, pairs=tuple(pair for _, pair in sorted(found)[:MOST_PAIRS]))


@dataclass(frozen=True, eq=False)
class Table:
    """The effect of one variable.

    Attributes
    ----------
    variable : int
        Its position; −1 for the score.
    knots : ndarray of shape (m,)
        Where effects are given, straight in between; empty for a category.
    effect, varying, variance : ndarray of shape (m + 1,) or (n_levels + 2,)
        The effect at each knot and of missing values, or of each level, unseen ones and missing
        values; what is added multiplied by z̃; and the posterior variance of the effect.
    """

    variable: int
    knots: Floats
    effect: Floats
    varying: Floats
    variance: Floats

    def _check_saved(self) -> None:
        """Raise ValueError unless the heights belong to the knots."""
        sizes = {each.shape for each in (self.effect, self.varying, self.variance)}
        if len(sizes) != 1 or self.effect.ndim != 1 or len(self.effect) < 2:
            raise ValueError("the heights of a table do not match")
        if len(self.knots) and len(self.knots) + 1 != len(self.effect):
            raise ValueError("a table has other heights than knots")
        if not (np.diff(self.knots) > 0).all() or not np.isfinite(self.effect).all():
            raise ValueError("the knots of a table do not increase, or its heights are not finite")


@dataclass(frozen=True, eq=False)
class Product:
    """A term of two variables: the sum of products of their tables.

    Attributes
    ----------
    variables : tuple of (int, int)
        The variables, −1 for the score; each has a `Table` with the same knots.
    first, second : ndarray of shape (rank, m + 1)
        The factors.
    """

    variables: tuple[int, int]
    first: Floats
    second: Floats


@dataclass(frozen=True, eq=False)
class Tables:
    """A fitted additive model.

    Attributes
    ----------
    unit : ndarray
        z̃ at the knots of the score.
    score : Table
        s, as the whole predictor of the score alone.
    variables : tuple of Table
        The effects of variables.
    products : tuple of Product
        The surfaces.
    scale : float
        What the sum of the variances is multiplied by to be that of the predictor, on average.
    """

    unit: Floats
    score: Table
    variables: tuple[Table, ...]
    products: tuple[Product, ...]
    scale: float

    def _check_saved(self) -> None:
        """Raise ValueError unless products are of variables with a table."""
        sizes = {each.variable: len(each.effect) for each in (self.score, *self.variables)}
        if self.unit.shape != self.score.effect.shape:
            raise ValueError("the score has other heights than knots")
        for each in self.products:
            pair = tuple(sizes.get(k, -1) for k in each.variables)
            if (each.first.shape[-1], each.second.shape[-1]) != pair:
                raise ValueError("a product is of unknown variables")

    def table(self, k: int) -> Table:
        """Return the table of a variable; −1 is the score."""
        return self.score if k == SCORE else next(t for t in self.variables if t.variable == k)

    def mixed(self, other: Tables, share: float) -> Tables:
        """Return the predictor that is a share of the way to another one of the same knots."""
        mine = {each.variable: each for each in (self.score, *self.variables)}
        tables = [_mixed(mine.get(t.variable), t, share) for t in (other.score, *other.variables)]
        theirs = {t.variable for t in tables}
        tables += [_scaled(t, 1 - share) for t in self.variables if t.variable not in theirs]
        products = [replace(p, first=share * p.first) for p in other.products]
        products += [replace(p, first=(1 - share) * p.first) for p in self.products]
        kept = tuple(p for p in products if p.first.any())
        return Tables(other.unit, tables[0], tuple(tables[1:]), kept, other.scale)

    def predictor(self, z: Floats, columns: list[AnyArray]) -> tuple[Floats, Floats]:
        """Return η of rows, and about its posterior variance."""
        score = self.score
        eta = heights_at(score.knots, score.effect, z)
        variance = heights_at(score.knots, score.variance, z)
        unit = heights_at(score.knots, self.unit, z)
        for each in self.variables:
            values = columns[each.variable]
            eta = eta + heights_at(each.knots, each.effect, values)
            variance = variance + heights_at(each.knots, each.variance, values)
            if each.varying.any():
                eta = eta + unit * heights_at(each.knots, each.varying, values)
        for product in self.products:
            a, b = (z if k == SCORE else columns[k] for k in product.variables)
            at, to = (self.table(k).knots for k in product.variables)
            for left, right in zip(product.first, product.second, strict=True):
                eta = eta + heights_at(at, left, a) * heights_at(to, right, b)
        return eta, self.scale * variance

    def steps(self, z: Step) -> tuple[Step, Step]:
        """Return the steps to η and to its variance."""
        score = self.score
        eta = table_step(z, score.knots, score.effect).named("by_score")
        variance = table_step(z, score.knots, score.variance)
        slopes: list[Step] = []
        for each in self.variables:
            eta = eta + variable_step(each, each.effect)
            variance = variance + variable_step(each, each.variance)
            if each.varying.any():
                slopes.append(variable_step(each, each.varying))
        if slopes:
            total = slopes[0]
            for slope in slopes[1:]:
                total = total + slope
            eta = eta + total * table_step(z, score.knots, self.unit).named("unit")
        for product in self.products:
            tables = [self.table(k) for k in product.variables]
            for pair in zip(product.first, product.second, strict=True):
                a, b = (
                    table_step(z, t.knots, h) if t.variable == SCORE else variable_step(t, h)
                    for t, h in zip(tables, pair, strict=True)
                )
                eta = eta + a * b
        return eta.named("additive"), (variance * self.scale).named("variance")


def table_step(x: Step, knots: Floats, heights: Floats) -> Step:
    """Return the step to the height of a table at a number that is never missing."""
    return steps.curve(x, knots, heights[:-1])


def variable_step(table: Table, heights: Floats) -> Step:
    """Return the step to the height of a variable's table."""
    if not heights.any():
        return steps.constant(0.0)
    if not len(table.knots):
        return steps.take(steps.code(table.variable), heights)
    x = steps.number(table.variable)
    inside = steps.where(steps.missing(x), float(table.knots[0]), x)
    return steps.where(
        steps.missing(x), float(heights[-1]), steps.curve(inside, table.knots, heights[:-1])
    )


def _scaled(table: Table, share: float) -> Table:
    return replace(
        table,
        effect=share * table.effect,
        varying=share * table.varying,
        variance=share * table.variance,
    )


def _mixed(mine: Table | None, other: Table, share: float) -> Table:
    """Return a share of the way from one table to another; variances are those of the other."""
    if mine is None:
        return replace(other, effect=share * other.effect, varying=share * other.varying)
    return replace(
        other,
        effect=mine.effect + share * (other.effect - mine.effect),
        varying=mine.varying + share * (other.varying - mine.varying),
    )


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit of a design.

    Attributes
    ----------
    design : Design
        The columns.
    fit : Fit
        Coefficients, penalties and covariance.
    """

    design: Design
    fit: Fit

    def blocks(self) -> Iterator[tuple[str, tuple[int, ...], slice]]:
        """Yield the name, the variables and the coefficients of each block."""
        end = 0
        for name, variables, width in self.design.blocks():
            end += width
            yield name, variables, slice(end - width, end)

    def tables(
        self, offset: Floats, X: Floats | None = None, weight: Floats | None = None
    ) -> Tables:
        """Return the tables of the fit.

        Parameters
        ----------
        offset : ndarray
            What the loss adds to the predictor, at the knots of the score (and for missing).
        X, weight : ndarray, optional
            Columns of rows, and their working weights, on which the sum of variances is compared
            with the exact variance.
        """
        beta, V, design = self.fit.beta, self.fit.covariance, self.design
        effects: dict[int, list[Floats]] = {}
        products: list[Product] = []
        where_in: dict[tuple[int, bool], list[slice]] = {}
        for name, variables, own in self.blocks():
            if name == "surface":
                tables = [_pair_table(design.by_variable(k), SURFACE_CURVES) for k in variables]
                B = beta[own].reshape(tables[0].shape[1], tables[1].shape[1])
                U, size, W = np.linalg.svd(B, full_matrices=False)
                kept = size > SURFACE_ROUNDING * max(float(size.max(initial=0.0)), 1e-12)
                first = (tables[0] @ (U * size))[:, kept].T
                products.append(
                    Product((variables[0], variables[1]), first, (tables[1] @ W.T)[:, kept].T)
                )
                continue
            where_in.setdefault((variables[0], name == "varying"), []).append(own)
        for each in (design.score, *design.variables):
            k = each.variable
            parts = where_in[k, False]
            main = slice(parts[0].start, parts[-1].stop)
            effect = each.table @ beta[main]
            variance = np.einsum("ij,jk,ik->i", each.table, V[main, main], each.table)
            varying = np.zeros(len(effect))
            for own in where_in.get((k, True), []):
                part = each.table[:, : own.stop - own.start]
                varying = part @ beta[own]
                variance = variance + np.einsum("ij,jk,ik->i", part, V[own, own], part)
            effects[k] = [effect, varying, variance]
        effects[SCORE][0] = effects[SCORE][0] + offset
        found = [
            Table(each.variable, each.knots, *effects[each.variable])
            for each in (design.score, *design.variables)
        ]
        slope = design.score.block("slope")
        unit = design.score.table[:, slope].sum(axis=1)
        tables_ = Tables(unit, found[0], tuple(found[1:]), tuple(products), 1.0)
        if X is None or weight is None:
            return tables_
        return replace(tables_, scale=self._scale((X * weight[:, None]).T @ X, where_in))

    def _scale(self, M: Floats, where_in: dict[tuple[int, bool], list[slice]]) -> float:
        """Return the mean variance of rows over that of the sum, by XᵀWX."""
        V = self.fit.covariance
        parts = 0.0
        for owns in where_in.values():
            own = slice(owns[0].start, owns[-1].stop)
            parts += float((M[own, own] * V[own, own]).sum())
        return float((M * V).sum()) / max(parts, 1e-300)


def fit_design(
    design: Design, X: Floats, loss: Loss, start: tuple[float, float], like: Fit | None = None
) -> Fitted:
    """Fit a design; the line of the score comes first, from coefficients `start`."""
    groups = design.groups()
    beta = np.zeros(X.shape[1])
    lines = 1 + (design.score.block("slope").stop > 0)
    beta[:lines] = start[:lines]
    line = fit_blocks(X[:, :lines], loss, np.full(lines, -1), start=beta[:lines])
    beta[:lines] = line.beta
    if like is not None:
        beta[: len(like.beta)] = like.beta
    return Fitted(design, fit_blocks(X, loss, groups, start=beta))


def on_all_rows(fitted: Fitted, z: Floats, columns: list[AnyArray], loss: Loss) -> Fitted:
    """Return the fit after one Newton step on all rows, where it was made on a sample."""
    design = fitted.design
    chunks = design.chunks(z, columns, loss)
    return Fitted(design, refit_on_all(fitted.fit, design.groups(), chunks))
