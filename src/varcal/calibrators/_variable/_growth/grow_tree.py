r"""One tree of a boosted ensemble, grown level by level from sums of gradients in cells.

Every node splits at the cell of a variable that lowers the loss most, to second order:

.. math:: \frac{G_l^2}{H_l + \lambda} + \frac{G_r^2}{H_r + \lambda} - \frac{G^2}{H + \lambda},

with the sums G and H of gradients and curvatures. Both are rounded to whole numbers and packed
into one double-precision number for each row, H in the upper bits. Sums of whole numbers are exact:
they do not depend on the order of rows, a weight of 2 equals two rows, and the sums of a node's
larger child are those of the node minus those of the smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import Floats, Ints

#: The cells of all variables, one row each.
Codes = NDArray[np.uint8]

# Tuned constants; ../README.md tells how they were chosen.

#: λ, and the least H of a leaf.
LEAF_PENALTY = 10.0
LEAF_LEAST = 1.0

# Numerical limits.

#: Bits of a double-precision number that hold whole numbers.
_BITS = 53
#: The largest total weight of rows, by its power of two; larger ones are scaled.
_LARGEST = 20


@dataclass(frozen=True, eq=False)
class Tree:
    """A complete tree: node j has the children 2j + 1 and 2j + 2.

    Attributes
    ----------
    variable, cut : ndarray of shape (2**depth − 1,)
        A row goes right where the cell of the variable is above the cut.
    value : ndarray of shape (2**depth,)
        What the leaves add.
    gain : ndarray of shape (2**depth − 1,)
        How much each split lowers twice the loss.
    """

    variable: Ints
    cut: Ints
    value: Floats
    gain: Floats


@dataclass(frozen=True, eq=False)
class _Packed:
    """Gradients and curvatures of rows as whole numbers in one number each."""

    value: Floats
    gradient_unit: float
    curvature_unit: float
    shift: float

    @classmethod
    def of(cls, gradient: Floats, curvature: Floats, mass: Floats) -> _Packed:
        exponent = int(np.ceil(np.log2(max(float(mass.sum()), 2.0))))
        scale = 2.0 ** max(exponent - _LARGEST, 0)
        exponent = min(exponent, _LARGEST)
        spare = _BITS + 1 - 2 * exponent
        low = min((spare + 2) // 2, 16)
        high = min(spare - low, 16)
        shift = 2.0 ** (exponent + low + 1)
        mass = mass / scale
        whole = np.rint(mass * np.rint(gradient * 2.0**low))
        whole += shift * np.rint(mass * np.rint(curvature * 2.0**high))
        return cls(whole, scale / 2.0**low, scale / 2.0**high, shift)

    def sums(self, packed: Floats) -> tuple[Floats, Floats]:
        """Return sums of gradients and curvatures from sums of packed numbers."""
        upper = np.rint(packed / self.shift)
        return (packed - upper * self.shift) * self.gradient_unit, upper * self.curvature_unit


def grow_tree(
    codes: Codes, gradient: Floats, curvature: Floats, mass: Floats, n_cells: int, depth: int
) -> tuple[Tree, Ints]:
    """Return a tree, and the leaf of each row.

    Parameters
    ----------
    codes : ndarray of shape (d, n)
        The cells of the variables.
    gradient, curvature, mass : ndarray of shape (n,)
        Slopes of the loss of one row, and the number of rows that each row stands for.
    n_cells : int
        The number of cells of a variable at most.
    depth : int
        Levels of the tree.

    Examples
    --------
    >>> codes = np.array([[0, 0, 1, 1]], dtype=np.uint8).repeat(50, axis=1)
    >>> y = np.array([0, 0, 1, 1]).repeat(50)
    >>> tree, leaf = grow_tree(codes, 0.5 - y, np.full(200, 0.25), np.ones(200), 2, 1)
    >>> tree.cut, tree.value.round(2)
    (array([0]), array([-1.43,  1.43]))
    """
    packed = _Packed.of(gradient, curvature, mass)
    node = np.zeros(codes.shape[1], dtype=np.intp)
    splits = []
    sums = np.array([[np.bincount(each, packed.value, minlength=n_cells) for each in codes]])
    for level in range(depth):
        if level:
            sums = _children(sums, codes, packed.value, node)
        variable, cut, gain = _best_splits(*packed.sums(np.cumsum(sums, axis=2)))
        splits.append((variable, cut, gain))
        node = 2 * node + _goes_right(codes, variable[node], cut[node])
    G, H = packed.sums(np.bincount(node, packed.value, minlength=2**depth).astype(np.float64))
    variables, cuts, gains = (np.concatenate(each) for each in zip(*splits, strict=True))
    tree = Tree(variables, cuts, -G / (H + LEAF_PENALTY), gains)
    return tree, node


def leaves_of(variable: Ints, cut: Ints, codes: Codes) -> Ints:
    """Return the leaf of each row in a tree."""
    n, inner = codes.shape[1], len(cut)
    flat, begin, cuts = codes.ravel(), variable * n, cut.astype(np.uint8)
    rows, node = np.arange(n), np.zeros(n, dtype=np.intp)
    for _ in range(inner.bit_length()):
        right = flat.take(begin.take(node) + rows) > cuts.take(node)
        node += node
        node += 1
        node += right
    return node - inner


def _goes_right(codes: Codes, variable: Ints, cut: Ints) -> NDArray[np.bool_]:
    n = codes.shape[1]
    return np.asarray(codes.ravel()[variable * n + np.arange(n)] > cut)


def _children(sums: Floats, codes: Codes, packed: Floats, node: Ints) -> Floats:
    """Return the sums of the children of nodes: of the smaller child by its rows, and the rest."""
    n_parents, d, n_cells = sums.shape
    counts = np.bincount(node, minlength=2 * n_parents).reshape(-1, 2)
    right_smaller = counts[:, 1] < counts[:, 0]
    rows = np.flatnonzero((node & 1) == right_smaller[node >> 1])
    begin, values = (node[rows] >> 1) * n_cells, packed[rows]
    both = np.empty((n_parents, 2, d, n_cells))
    small = right_smaller.astype(np.intp)
    parents = np.arange(n_parents)
    for k, each in enumerate(codes):
        own = np.bincount(begin + each[rows], values, minlength=n_parents * n_cells)
        both[parents, small, k] = own.reshape(n_parents, n_cells)
    both[parents, 1 - small] = sums - both[parents, small]
    return both.reshape(2 * n_parents, d, n_cells)


def _best_splits(G: Floats, H: Floats) -> tuple[Ints, Ints, Floats]:
    """Return variable, cell and gain of the best split of each node, by cumulative sums.

    A node that must not be split sends all rows to the left.
    """
    n_nodes, _, n_cells = G.shape
    all_G, all_H = G[:, :1, -1:], H[:, :1, -1:]
    rest_G, rest_H = all_G - G, all_H - H
    score = G * G / (H + LEAF_PENALTY) + rest_G * rest_G / (rest_H + LEAF_PENALTY)
    score[(H < LEAF_LEAST) | (rest_H < LEAF_LEAST)] = -np.inf
    flat = score.reshape(n_nodes, -1)
    best = flat.argmax(axis=1)
    whole = (all_G * all_G / (all_H + LEAF_PENALTY)).ravel()
    variable, cut = np.divmod(best, n_cells)
    gain = flat[np.arange(n_nodes), best] - whole
    stays = ~(gain > 0)
    variable[stays], cut[stays], gain[stays] = 0, n_cells - 1, 0.0
    return variable, cut, gain
