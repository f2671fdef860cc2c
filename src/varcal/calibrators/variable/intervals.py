r"""How far a calibrated logit may be from the truth.

The posterior variance of the additive model takes its curves to be smooth, and variables to add up.
A jump of one variable, or a product of two, is a column s that the model leaves out. Given
residuals r, working weights W and the posterior covariance V, its score and information are

.. math:: u = s^\top r, \qquad i = s^\top (W - W X V X^\top W)\, s.

With a prior probability π, one of m such columns has an effect h ~ N(0, 1): a spike and slab. What
the data leave of it, the second moment of h, times the square of the column, is added to the
variance of each row. So intervals are wide next to a place where residuals point to a jump, and an
effect that the data exclude costs no width.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal.calibrators.variable.additive import Fitted
from varcal.calibrators.variable.columns import SCORE, Columns
from varcal.calibrators.variable.trees import TreeCells, cells_of

# Tuned constants: chosen on seeds 100 to 111 of `quality.py`'s worlds for intervals, for a coverage
# of at least 93 % in smooth worlds and 90 % next to jumps.

#: What the posterior variance is multiplied by: it takes the penalties as known.
PENALTY_DOUBT = 1.2
#: π: with .5, and with `JUMP_DOUBT` 1, intervals next to a jump held 84 % in place of 91 % with
#: 1,000 rows, and were 6 % narrower.
LEFT_OUT = 0.8
#: What jumps add is multiplied by this: a jump lies within a cell, and may not be the only one.
#: With 1, intervals next to three jumps held 88 and 84 % in place of 92 and 88 % (1,000 and 4,000
#: rows), and were 10 % narrower.
JUMP_DOUBT = 2.0

#: Variables at most: those with the largest effects.
MOST_VARIABLES = 20


@dataclass(frozen=True, eq=False)
class Errors:
    """What the additive model may leave out.

    Attributes
    ----------
    cells : tuple of TreeCells
        The cells of the score and of numbers.
    jumps : tuple of ndarray
        The variance by jumps in each cell.
    lines : tuple of ndarray
        The mean square of the variable's line in each cell.
    products : ndarray of shape (m, m)
        The second moment of the effect of a product of two lines.
    """

    cells: tuple[TreeCells, ...] = ()
    jumps: tuple[Floats, ...] = ()
    lines: tuple[Floats, ...] = ()
    products: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def _check_saved(self) -> None:
        """Raise ValueError unless there is a variance for each cell."""
        m = len(self.cells)
        if not len(self.jumps) == len(self.lines) == m or self.products.shape != (m, m):
            raise ValueError("intervals have other cells than variances")
        for cells, *heights in zip(self.cells, self.jumps, self.lines, strict=True):
            if any(each.shape != (len(cells.cuts) + 2,) for each in heights):
                raise ValueError("intervals have other cells than variances")

    def variance(self, z: Floats, columns: list[AnyArray]) -> Floats:
        """Return the variance of logits by what is left out."""
        codes = [
            each.codes(z if each.variable == SCORE else columns[each.variable])
            for each in self.cells
        ]
        total = np.zeros(len(z))
        for code, heights in zip(codes, self.jumps, strict=True):
            total += JUMP_DOUBT * heights[code]
        squares = [heights[code] for code, heights in zip(codes, self.lines, strict=True)]
        for a, b in combinations(range(len(squares)), 2):
            if self.products[a, b]:
                total += self.products[a, b] * squares[a] * squares[b]
        return total


def errors_of(
    fitted: Fitted, values: dict[int, AnyArray], applied: dict[tuple[int, int], float]
) -> Errors:
    """Return what a fit may leave out.

    Parameters
    ----------
    fitted : Fitted
        The fit.
    values : dict of int to ndarray
        Numbers and levels by their positions; −1 is the score's logit.
    applied : dict of tuple to float
        How much of the surface of a pair is applied.
    """
    design, spans, X = fitted.design, fitted.design.spans(), fitted.X
    tables = [each for each in (design.score, *design.variables) if len(each.knots)]

    def size(each: Columns) -> float:
        return float(np.ptp(each.table @ fitted.fit.beta[spans[each.variable,]]))

    tables = sorted(tables, key=lambda each: (each.variable != SCORE, -size(each), each.variable))
    sums = _Sums(X, *fitted.slopes(), fitted.fit.beta, fitted.fit.covariance)
    kept: list[TreeCells] = []
    heights: list[tuple[Floats, Floats]] = []
    lines = []
    for each in tables[:MOST_VARIABLES]:
        own, line = spans[each.variable,], each.block("slope" if each is design.score else "line")
        cells = cells_of(each.variable, values[each.variable], 0, np.ones(len(X)))
        if cells is None or line.stop == line.start:
            continue
        code = cells.codes(values[each.variable])
        u = X[:, own.start + line.start]
        kept.append(cells)
        heights.append(sums.along(code, len(cells.cuts) + 2, own, u))
        lines.append(u)
    products = np.zeros((len(kept), len(kept)))
    pairs = list(combinations(range(len(kept)), 2))
    if pairs:
        moments = left_out(*sums.tested(np.column_stack([lines[a] * lines[b] for a, b in pairs])))
        for (a, b), moment in zip(pairs, moments, strict=True):
            one, other = sorted((kept[a].variable, kept[b].variable))
            products[a, b] = moment * (1.0 - applied.get((one, other), 0.0)) ** 2
    jumps, squares = (tuple(each[j] for each in heights) for j in (0, 1))
    return Errors(tuple(kept), jumps, squares, products)


def left_out(score: Floats, information: Floats, likely: Floats | float = 1.0) -> Floats:
    """Return the second moments of the effects of columns, of which one may have an effect.

    Some may be more likely than others.

    >>> left_out(np.array([0.0, 20.0]), np.array([50.0, 50.0])).round(3)
    array([0.   , 0.159])
    """
    information = np.maximum(information, 1e-9)
    spread = 1.0 / (1.0 + information)
    log_factor = 0.5 * (score**2 * spread + np.log(spread))
    each = np.broadcast_to(likely, score.shape)
    prior = np.log(np.append(LEFT_OUT * each / each.sum(), 1.0 - LEFT_OUT))
    weight = np.exp(np.append(log_factor, 0.0) + prior - np.append(log_factor, 0.0).max())
    return np.asarray(weight[:-1] / weight.sum() * ((score * spread) ** 2 + spread))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Columns, residuals, weights, coefficients and posterior covariance of a fit."""

    X: Floats
    residual: Floats
    weight: Floats
    beta: Floats
    covariance: Floats

    def tested(self, B: Floats) -> tuple[Floats, Floats]:
        """Return scores and information of columns."""
        G = (self.X * self.weight[:, None]).T @ B
        known = np.einsum("ij,ij->j", G, self.covariance @ G)
        return B.T @ self.residual, self.weight @ B**2 - known

    def along(self, code: AnyArray, size: int, own: slice, u: Floats) -> tuple[Floats, Floats]:
        """Return the variance by jumps in each cell of a variable, and the mean square of u."""
        order = np.argsort(code, kind="stable")
        held, begins = np.unique(code[order], return_index=True)

        def summed(each: Floats) -> Floats:
            found = np.zeros((size, *each.shape[1:]))
            found[held] = np.add.reduceat(each[order], begins)
            return found

        weight, XW = summed(self.weight), summed(self.X * self.weight[:, None])
        mass = np.maximum(weight, 1e-300)
        # A step between cells c and c + 1, for every c; cell 0 holds missing values.
        steps = np.triu(np.ones((size, size)), 1)[1:-1]
        G = steps @ XW
        coefficients = G @ self.covariance
        information = steps @ weight - np.einsum("ij,ij->i", coefficients, G)
        mean = XW[:, own] / mass[:, None]
        # A jump is more likely where the curve is steep.
        rise = np.abs(np.diff(mean @ self.beta[own])[1:])
        likely = 1.0 + rise / max(float(rise.mean()), 1e-300)
        moments = left_out(steps @ summed(self.residual), information, likely)
        # What the curve of the variable does not follow of each step.
        apart = steps - coefficients[:, own] @ mean.T
        apart -= (apart @ weight / weight.sum())[:, None]
        variance = moments @ apart**2
        variance[0] = 0.0
        return variance, summed(self.weight * u**2) / mass
