"""Softmax regression: cross-entropy of logits that are linear in the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal.calibrators.newton import minimize_convex, solve_by_products, solve_dense

# Limits of time and memory; the optimum does not depend on them.

#: Probabilities of a block of rows, so that it stays in cache; blocks have at least so many rows.
BLOCK_CELLS, LEAST_BLOCK = 200_000, 256
#: Up to this number of parameters the whole Hessian is computed.
DENSE_PARAMETERS = 700
#: Up to this number, probabilities are kept between products with the Hessian.
HELD_CELLS = 20_000_000
#: The probability of the true class from which a row counts as predicted with certainty.
CERTAIN = 1 - 1e-4


class LogitMap(Protocol):
    """A linear model of the logits: how parameters become logits, and the adjoint of that map."""

    n_parameters: int

    def logits(self, theta: Floats, rows: slice) -> Floats:
        """Return the logits of the rows, shape (rows, classes)."""
        ...

    def adjoint(self, cells: Floats, rows: slice) -> Floats:
        """Return Σ cells·∂logit/∂theta over the rows."""
        ...

    def squares(self, cells: Floats, rows: slice) -> Floats:
        """Return Σ cells·(∂logit/∂theta)² over the rows, a bound of the Hessian's diagonal."""
        ...

    def hessian(self, probability: Floats, weight: Floats, rows: slice) -> Floats:
        """Return the weighted Hessian of the rows' cross-entropy; used with few parameters."""
        ...


@dataclass(frozen=True)
class SoftmaxFit:
    """Parameters, and how the optimizer arrived at them; see `LogisticFit`."""

    theta: Floats
    gradient: float
    n_iter: int
    separated: bool


def fit_softmax(
    model: LogitMap,
    y: Ints,
    weight: Floats | None,
    n_classes: int,
    *,
    penalty: Floats,
    target: Floats,
    start: Floats,
    free: Bools | None = None,
    tol: float = 1e-11,
    max_iter: int = 200,
) -> SoftmaxFit:
    r"""Minimize the mean cross-entropy plus a quadratic penalty.

    .. math:: -\frac{1}{\sum w}\sum_i w_i \ln \mathrm{softmax}(\text{logits}_i(\theta))_{y_i}
              + \sum_j \lambda_j (\theta_j - \theta^0_j)^2

    by damped Newton steps, with the whole Hessian for few parameters and conjugate gradients for
    many.
    """
    n = y.size
    shares = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    index = np.flatnonzero(np.ones(model.n_parameters, bool) if free is None else free)
    dense = model.n_parameters <= DENSE_PARAMETERS

    def evaluate(values: Floats) -> tuple[Floats, Callable[[], Floats]]:
        theta = start.copy()
        theta[index] = values
        gradient = 2.0 * penalty * (theta - target)
        for rows in blocks(n, n_classes):
            cells = softmax(model.logits(theta, rows))
            cells[np.arange(len(cells)), y[rows]] -= 1.0
            gradient += model.adjoint(cells * shares[rows, None], rows)
        part = gradient[index]
        return part, lambda: (_dense if dense else _products)(theta, part)

    def loss(values: Floats) -> float:
        theta = start.copy()
        theta[index] = values
        value = float(penalty @ (theta - target) ** 2)
        for rows in blocks(n, n_classes):
            logits = model.logits(theta, rows)
            logits -= logits.max(axis=1, keepdims=True)
            true_logit = logits[np.arange(len(logits)), y[rows]]
            value += float(shares[rows] @ (np.log(np.exp(logits).sum(axis=1)) - true_logit))
        return value

    def _dense(theta: Floats, part: Floats) -> Floats:
        hessian = np.diag(2.0 * penalty)
        for rows in blocks(n, n_classes):
            hessian += model.hessian(softmax(model.logits(theta, rows)), shares[rows], rows)
        return solve_dense(hessian[np.ix_(index, index)], part)

    def _products(theta: Floats, part: Floats) -> Floats:
        held = {}
        diagonal = 2.0 * penalty
        for rows in blocks(n, n_classes):
            cells = softmax(model.logits(theta, rows))
            diagonal += model.squares(shares[rows, None] * cells * (1.0 - cells), rows)
            if n * n_classes <= HELD_CELLS:
                held[rows.start] = cells

        def product(values: Floats) -> Floats:
            direction = np.zeros(model.n_parameters)
            direction[index] = values
            image = 2.0 * penalty * direction
            for rows in blocks(n, n_classes):
                cells = held.get(rows.start)
                if cells is None:
                    cells = softmax(model.logits(theta, rows))
                move = model.logits(direction, rows)
                move -= np.einsum("ij,ij->i", cells, move)[:, None]
                move *= cells
                move *= shares[rows, None]
                image += model.adjoint(move, rows)
            return image[index]

        return solve_by_products(product, diagonal[index], part)

    values, size, n_iter = minimize_convex(evaluate, loss, start[index], tol=tol, max_iter=max_iter)
    theta = start.copy()
    theta[index] = values
    least = min(
        float(softmax(model.logits(theta, rows))[np.arange(y[rows].size), y[rows]].min())
        for rows in blocks(n, n_classes)
    )
    return SoftmaxFit(theta, size, n_iter, separated=least > CERTAIN)


def softmax(logits: Floats) -> Floats:
    """Return probabilities, row by row, without overflow."""
    cells = logits - logits.max(axis=1, keepdims=True)
    np.exp(cells, out=cells)
    cells /= cells.sum(axis=1, keepdims=True)
    return np.asarray(cells)


def blocks(n: int, n_classes: int) -> Iterator[slice]:
    """Yield slices of rows that stay in cache."""
    rows = max(LEAST_BLOCK, BLOCK_CELLS // n_classes)
    for first in range(0, n, rows):
        yield slice(first, min(first + rows, n))
