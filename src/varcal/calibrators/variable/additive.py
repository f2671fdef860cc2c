r"""The additive model of the logit: a sum of tables, fitted by REML.

.. math:: \eta = s(z) + \sum_j f_j(v_j) + \sum_{(j,k)} h_{jk}(v_j, v_k)

A `Design` makes columns of rows. A fit of it is a set of `Tables`: heights of s and f at knots or
levels, and each h as a sum of products of two such tables. Tables are linear in coefficients, so
that a mixture of two fits is again a set of tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators import steps
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.steps import Step
from varcal.calibrators.variable.columns import (
    SCORE,
    Columns,
    level_columns,
    number_columns,
    score_columns,
)
from varcal.calibrators.variable.losses import Loss
from varcal.calibrators.variable.reml import Fit, fit_blocks, held_out, refit_on_all, weighted_gram

# Tuned constants.

# Half and twice `FEW_LEVELS` and numbers of curve columns moved the log-loss of 19 tables of 300 to
# 5,000 rows by at most .00005.

#: The most levels of a category that enters a pair.
FEW_LEVELS = 12
#: Pairs with a surface at most, and the score test (in standard deviations) from which one has:
#: with less, noise had surfaces.
MOST_PAIRS, PAIR_SCORE = 8, 4.0
#: Curve columns of each variable in the test of a pair, and in its surface.
TEST_CURVES, SURFACE_CURVES = 2, 5

#: Columns of the model at most, and those that are kept free for each variable: those with the
#: least evidence shrink to a line, or are left out. That bounds the time by rows × columns.
MOST_COLUMNS, NARROW, MOST_NARROW = 256, 2, 60
#: Variables whose pairs are tried, on so many rows.
PAIR_VARIABLES, PAIR_TEST_ROWS = 20, 5_000
#: Rows whose columns are computed at once.
CHUNK = 20_000


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of a model.

    Attributes
    ----------
    score : Columns
        Those of the score.
    offset : ndarray
        The winsorized logit at the knots of the score, to which the coefficients shrink.
    variables : tuple of Columns
        Those of each variable in the model.
    pairs : tuple of (int, int)
        Variables that have a surface of their own; −1 is the score.
    """

    score: Columns
    offset: Floats
    variables: tuple[Columns, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls,
        z: Floats,
        columns: list[AnyArray],
        n_levels: list[int],
        weight: Floats,
        ends: tuple[float, float],
    ) -> Design:
        """Learn the columns from the calibration rows, whose logits lie between `ends`."""
        found = [
            level_columns(k, column, n_levels[k], weight)
            if n_levels[k]
            else number_columns(k, column, weight)
            for k, column in enumerate(columns)
        ]
        live = tuple(each for each in found if each is not None)
        return cls(*score_columns(z, weight, ends), live)

    def by_variable(self, k: int) -> Columns:
        """Return the columns of a variable; −1 is the score."""
        return next(each for each in (self.score, *self.variables) if each.variable == k)

    def without(self, some: set[int]) -> Design:
        """Return the design without some variables."""
        kept = tuple(each for each in self.variables if each.variable not in some)
        return replace(self, variables=kept, pairs=())

    def spans(self) -> dict[tuple[int, ...], slice]:
        """Return the columns of each variable and pair; (−1,) is the score."""
        widths: dict[tuple[int, ...], int] = {}
        for each in (self.score, *self.variables):
            widths[each.variable,] = each.table.shape[1]
        for pair in self.pairs:
            a, b = (len(_pair_columns(self.by_variable(k), SURFACE_CURVES)) for k in pair)
            widths[pair] = a * b
        ends = np.cumsum(list(widths.values())).tolist()
        found = zip(widths.items(), ends, strict=True)
        return {variables: slice(end - width, end) for (variables, width), end in found}

    def groups(self) -> Ints:
        """Return the penalized block of each column, −1 for the intercept."""
        widths = [width for each in (self.score, *self.variables) for _, width in each.parts]
        widths += [own.stop - own.start for key, own in self.spans().items() if len(key) > 1]
        return np.repeat(np.arange(len(widths)) - 1, widths)

    def matrix(self, z: Floats, columns: list[AnyArray]) -> Floats:
        """Return the columns of rows."""
        at = {SCORE: self.score.at(z)}
        at |= {each.variable: each.at(columns[each.variable]) for each in self.variables}
        found = list(at.values())
        for pair in self.pairs:
            a, b = (at[v][:, _pair_columns(self.by_variable(v), SURFACE_CURVES)] for v in pair)
            found.append((a[:, :, None] * b[:, None, :]).reshape(len(z), -1))
        return np.hstack(found)


def _pair_columns(columns: Columns, curves: int) -> Ints:
    """Return which columns of a variable enter its pairs."""
    if not len(columns.knots):
        return np.arange(columns.table.shape[1] if columns.table.shape[1] <= FEW_LEVELS else 0)
    line = columns.block("slope" if columns.variable == SCORE else "line")
    curve = columns.block("curve")
    return np.r_[line, slice(curve.start, min(curve.stop, curve.start + curves))]


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
        blocks = (own[:, each.block(name)] for name, _ in each.parts)
        tests[each.variable] = max(_score_test(block, residual, weight) for block in blocks)
    ranked = sorted(design.variables, key=lambda one: (-tests[one.variable], one.variable))
    # A line for each comes first, then all columns of those with the most evidence.
    kept = {each.variable: each.narrow(NARROW) for each in ranked[:MOST_NARROW]}
    room = MOST_COLUMNS - sum(each.table.shape[1] for each in (design.score, *kept.values()))
    for each in ranked[:MOST_NARROW]:
        more = each.table.shape[1] - kept[each.variable].table.shape[1]
        if more <= room:
            room -= more
            kept[each.variable] = each
    variables = tuple(kept[k] for k in sorted(kept) if kept[k].parts)
    return replace(design, variables=variables), tests


def with_pairs(
    design: Design, tests: dict[int, float], X: Floats, mass: Floats, slopes: tuple[Floats, Floats]
) -> Design:
    """Return the design with surfaces of the pairs that residuals of the additive model ask for."""
    best = sorted(design.variables, key=lambda one: (-tests[one.variable], one.variable))
    some = [design.score, *sorted(best[:PAIR_VARIABLES], key=lambda one: one.variable)]
    # Rows are in the order of a hash, so that the first are a sample.
    most = int(np.searchsorted(np.cumsum(mass), PAIR_TEST_ROWS * (1 - 1e-12))) + 1
    residual, weight = (each[:most] for each in slopes)
    spans = design.spans()
    parts = {
        each.variable: X[:most, spans[each.variable,].start + _pair_columns(each, TEST_CURVES)]
        for each in some
    }
    found = []
    for one, other in combinations(parts, 2):
        B = (parts[one][:, :, None] * parts[other][:, None, :]).reshape(len(residual), -1)
        B -= weight @ B / weight.sum()
        test = _score_test(B, residual, weight)
        if test > PAIR_SCORE:
            found.append((-test, (one, other)))
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
    effect, variance : ndarray of shape (m + 1,) or (n_levels + 2,)
        The effect at each knot and of missing values, or of each level, unseen ones and missing
        values; and its posterior variance.
    """

    variable: int
    knots: Floats
    effect: Floats
    variance: Floats

    def _check_saved(self) -> None:
        """Raise ValueError unless the heights belong to the knots."""
        if not self.effect.shape == self.variance.shape == (len(self.effect),):
            raise ValueError("the heights of a table do not match")
        if len(self.effect) < 2 or len(self.knots) not in (0, len(self.effect) - 1):
            raise ValueError("a table has other heights than knots")
        if not (np.diff(self.knots) > 0).all() or not np.isfinite(self.effect).all():
            raise ValueError("the knots of a table do not increase, or its heights are not finite")

    def step(self, heights: Floats, z: Step) -> Step:
        """Return the step to a height of the table; z is the score, which is never missing."""
        if self.variable == SCORE:
            return steps.curve(z, self.knots, heights[:-1])
        if not heights.any():
            return steps.constant(0.0)
        if not len(self.knots):
            return steps.take(steps.code(self.variable), heights)
        x = steps.number(self.variable)
        inside = steps.where(steps.missing(x), float(self.knots[0]), x)
        curve = steps.curve(inside, self.knots, heights[:-1])
        return steps.where(steps.missing(x), float(heights[-1]), curve)


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
    score : Table
        s, as the whole predictor of the score alone.
    variables : tuple of Table
        The effects of variables.
    products : tuple of Product
        The surfaces.
    scale : float
        What the sum of the variances is multiplied by to be that of the predictor, on average.
    """

    score: Table
    variables: tuple[Table, ...] = ()
    products: tuple[Product, ...] = ()
    scale: float = 1.0

    def _check_saved(self) -> None:
        """Raise ValueError unless products are of variables with a table."""
        sizes = {each.variable: len(each.effect) for each in (self.score, *self.variables)}
        for each in self.products:
            pair = tuple(sizes.get(k, -1) for k in each.variables)
            if (each.first.shape[-1], each.second.shape[-1]) != pair:
                raise ValueError("a product is of unknown variables")

    def table(self, k: int) -> Table:
        """Return the table of a variable; −1 is the score."""
        return next(each for each in (self.score, *self.variables) if each.variable == k)

    def mixed(self, other: Tables, share: float) -> Tables:
        """Return the predictor that is a share of the way to a larger one of the same knots.

        Variances are those of the larger one.
        """
        mine = {each.variable: each.effect for each in (self.score, *self.variables)}

        def between(table: Table) -> Table:
            begin = mine.get(table.variable, 0.0)
            return replace(table, effect=begin + share * (table.effect - begin))

        products = tuple(replace(each, first=share * each.first) for each in other.products)
        variables = tuple(map(between, other.variables))
        return Tables(between(other.score), variables, products, other.scale)

    def predictor(self, z: Floats, columns: list[AnyArray]) -> tuple[Floats, Floats]:
        """Return η of rows, and about its posterior variance."""
        sizes = {each.variable: len(each.effect) - 2 for each in self.variables}
        found = evaluate(self.steps(steps.score(1)), z, columns, sizes)
        return found[:, 0], found[:, 1]

    def added(self, variables: tuple[int, ...], z: Step) -> Step:
        """Return the step to what a variable, the score or a pair adds to η."""
        tables = [self.table(k) for k in variables]
        if len(tables) == 1:
            return tables[0].step(tables[0].effect, z)
        total = steps.constant(0.0)
        for product in self.products:
            if product.variables == variables:
                for a, b in zip(product.first, product.second, strict=True):
                    total = total + tables[0].step(a, z) * tables[1].step(b, z)
        return total

    def steps(self, z: Step) -> tuple[Step, Step]:
        """Return the steps to η and to its variance."""
        eta = self.added((SCORE,), z).named("by_score")
        variance = self.score.step(self.score.variance, z)
        for each in self.variables:
            eta = eta + self.added((each.variable,), z)
            variance = variance + each.step(each.variance, z)
        for pair in dict.fromkeys(each.variables for each in self.products):
            eta = eta + self.added(pair, z)
        return eta.named("additive"), (variance * self.scale).named("variance")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit of a design.

    Attributes
    ----------
    design : Design
        The columns.
    X : ndarray of shape (n, p)
        The columns of rows.
    loss : Loss
        The loss of rows.
    fit : Fit
        Coefficients, penalties and covariance.
    """

    design: Design
    X: Floats
    loss: Loss
    fit: Fit

    @classmethod
    def of(
        cls, design: Design, X: Floats, loss: Loss, start: Floats, like: Fitted | None = None
    ) -> Fitted:
        """Fit a design; the line of the score comes first, from coefficients `start`."""
        lines = len(start)
        beta = np.zeros(X.shape[1])
        beta[:lines] = fit_blocks(X[:, :lines], loss, np.full(lines, -1), start=start).beta
        if like is not None:
            beta[: len(like.fit.beta)] = like.fit.beta
        return cls(design, X, loss, fit_blocks(X, loss, design.groups(), start=beta))

    def slopes(self) -> tuple[Floats, Floats]:
        """Return residuals and working weights of rows."""
        return self.loss.slopes(self.X @ self.fit.beta)

    def held_out(self, splits: list[tuple[AnyArray, AnyArray]]) -> Floats:
        """Return the predictor of held-out rows."""
        return held_out(self.X, self.loss, self.design.groups(), self.fit, splits)

    def on_all_rows(self, z: Floats, columns: list[AnyArray], loss: Loss) -> Fitted:
        """Return the fit after one Newton step on all rows, where it was made on a sample."""

        def chunks() -> Iterator[tuple[Floats, Loss]]:
            for begin in range(0, len(z), CHUNK):
                part = slice(begin, begin + CHUNK)
                some = [each[part] for each in columns]
                yield self.design.matrix(z[part], some), loss.take(part)

        return replace(self, fit=refit_on_all(self.fit, self.design.groups(), chunks()))

    def tables(self) -> Tables:
        """Return the tables of the fit."""
        beta, V, design = self.fit.beta, self.fit.covariance, self.design
        # XᵀWX, by which the sum of variances is compared with the exact variance.
        M = weighted_gram(self.X, self.slopes()[1])
        tables, products, parts = [], [], 0.0
        for variables, own in design.spans().items():
            if len(variables) == 2:
                a, b = (
                    each.table[:, _pair_columns(each, SURFACE_CURVES)]
                    for each in map(design.by_variable, variables)
                )
                B = beta[own].reshape(a.shape[1], b.shape[1])
                products.append(Product((variables[0], variables[1]), a.T.copy(), B @ b.T))
                continue
            each = design.by_variable(*variables)
            variance = np.einsum("ij,jk,ik->i", each.table, V[own, own], each.table)
            effect = each.table @ beta[own]
            tables.append(Table(each.variable, each.knots, effect, variance))
            parts += float((M[own, own] * V[own, own]).sum())
        score = replace(tables[0], effect=tables[0].effect + design.offset)
        scale = float((M * V).sum()) / max(parts, 1e-300)
        return Tables(score, tuple(tables[1:]), tuple(products), scale)
