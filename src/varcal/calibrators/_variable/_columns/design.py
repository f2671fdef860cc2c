"""The design matrix of the variable calibrator: terms of the score, of V, and of pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators._variable._columns.score_basis import ScoreBasis
from varcal.calibrators._variable._columns.spline_basis import LevelBasis, NumberBasis, Parts

#: The number that stands for the score, which is not a column of V.
SCORE = -1
#: Parts of a variable whose effect may vary with the score.
VARYING = ("line", "curve", "levels", "missing")

# Tuned constants; ../README.md shows what changes at half and at twice each value.

#: Columns of a curve, beside its line, that enter the products of pairs with a shared penalty.
SHARED_PAIR_CURVES = 2
#: The same for pairs with a penalty of their own.
OWN_PAIR_CURVES = 5
#: Columns of a category that enter products: those of its first levels.
PAIR_LEVELS = 12


@dataclass(frozen=True)
class Block:
    """Columns that share one penalty.

    Attributes
    ----------
    part : str
        The kind of columns: "line", "curve", "raw", "atoms", "missing" or "levels"; for the score
        "level", "slope", "fold" or "curve"; for pairs "product" or "surface".
    variables : tuple of int
        The variables concerned, −1 for the score; several for products.
    by_score : bool
        Whether the block is multiplied by z̃, so that its effect varies with the score.
    shared : bool
        Whether several pairs share the penalty.
    """

    part: str
    variables: tuple[int, ...]
    by_score: bool = False
    shared: bool = False

    @property
    def free(self) -> bool:
        """Return whether the block has no penalty; only the intercept has none."""
        return self.part == "level"

    @property
    def is_pair(self) -> bool:
        """Return whether the block holds products of two variables."""
        return self.part in ("product", "surface")


@dataclass(frozen=True, eq=False)
class Ingredients:
    """The columns from which all designs on the same rows are built.

    Attributes
    ----------
    unit : ndarray of shape (n, 1)
        z̃.
    score : dict of str to ndarray
        The blocks of the score.
    paired_score : ndarray
        The columns of the score that enter products.
    parts : list of dict of str to ndarray
        The blocks of every variable.
    """

    unit: Floats
    score: Parts
    paired_score: Floats
    parts: list[Parts]

    def take(self, rows: Ints | Bools | slice) -> Ingredients:
        """Return the columns of some rows."""
        return Ingredients(
            self.unit[rows],
            {name: block[rows] for name, block in self.score.items()},
            self.paired_score[rows],
            [{name: block[rows] for name, block in each.items()} for each in self.parts],
        )


@dataclass(frozen=True, eq=False)
class Design:
    """How the score and the variables become columns.

    Attributes
    ----------
    score : ScoreBasis
        The columns of the score.
    bases : tuple of NumberBasis, LevelBasis or None
        The columns of each variable; None where it does not vary.
    pairs : tuple of (int, int)
        Pairs whose products share two penalties: one for products of lines, one for the others.
    own : tuple of (int, int)
        Pairs with a penalty of their own.
    only : tuple of Block or None
        The blocks in the model; None means all.
    varying : bool
        Whether effects of V may vary with the score.
    """

    score: ScoreBasis
    bases: tuple[NumberBasis | LevelBasis | None, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    own: tuple[tuple[int, int], ...] = ()
    only: tuple[Block, ...] | None = None
    varying: bool = True

    @classmethod
    def of(
        cls,
        z: Floats,
        columns: list[AnyArray],
        n_levels: list[int],
        weight: Floats | None,
        *,
        varying: bool = True,
    ) -> Design:
        """Learn the columns from calibration rows; `n_levels` is 0 for numbers."""
        bases = tuple(
            LevelBasis.of(values, count, weight) if count else NumberBasis.of(values, weight)
            for values, count in zip(columns, n_levels, strict=True)
        )
        return cls(ScoreBasis.of(z, weight), bases, varying=varying)

    def live(self) -> list[int]:
        """Return the variables that vary; others must not even influence the folds."""
        return [k for k, basis in enumerate(self.bases) if basis is not None]

    def candidate_pairs(self) -> list[tuple[int, int]]:
        """Return all pairs of varying variables, and each of these paired with the score."""
        live = self.live()
        scored = live if self.score.rank is not None else []
        return [*combinations(live, 2), *((SCORE, k) for k in scored)]

    def score_only(self) -> Design:
        """Return the design without V."""
        return replace(self, bases=())

    def without(self, variables: set[int]) -> Design:
        """Return the design without some variables."""
        kept = (None if k in variables else basis for k, basis in enumerate(self.bases))
        return replace(self, bases=tuple(kept))

    def with_pairs(
        self, pairs: tuple[tuple[int, int], ...], own: tuple[tuple[int, int], ...]
    ) -> Design:
        """Return the design with products of pairs added."""
        only = self.only
        if only is not None:
            only = (*only, *_pair_names(pairs, own))
        return replace(self, pairs=pairs, own=own, only=only)

    def restricted(self, blocks: tuple[Block, ...]) -> Design:
        """Return the design with only some of its blocks."""
        held = {block.variables for block in blocks if block.is_pair and not block.shared}
        shared = any(block.shared for block in blocks)
        return replace(
            self,
            only=blocks,
            pairs=self.pairs if shared else (),
            own=tuple(pair for pair in self.own if pair in held),
        )

    def parts(self, columns: list[AnyArray]) -> list[Parts]:
        """Return the blocks of every variable in the model."""
        if not self.bases:
            return []
        needed = None
        if self.only is not None:
            needed = {k for block in self.only for k in block.variables}
            needed |= self.paired()
        return [
            {} if basis is None or (needed is not None and k not in needed) else basis.parts(values)
            for k, (basis, values) in enumerate(zip(self.bases, columns, strict=True))
        ]

    def ingredients(self, z: Floats, columns: list[AnyArray]) -> Ingredients:
        """Return the columns from which the blocks of rows are built."""
        paired = SCORE in self.paired() or self.only is None
        return Ingredients(
            self.score.unit(z)[:, None],
            self.score.parts(z),
            self.score.pair_columns(z, OWN_PAIR_CURVES) if paired else np.empty((len(z), 0)),
            self.parts(columns),
        )

    def blocks(self, z: Floats, columns: list[AnyArray]) -> list[tuple[Block, Floats]]:
        """Return all blocks with their columns, in the order of the design matrix."""
        return self.blocks_of(self.ingredients(z, columns))

    def blocks_of(self, rows: Ingredients) -> list[tuple[Block, Floats]]:
        """Return the blocks of rows, given their ingredients."""
        found: list[tuple[Block, Floats]] = []

        def add(block: Block, columns: Floats) -> None:
            if columns.shape[1] and (self.only is None or block in self.only):
                found.append((block, rows.unit * columns if block.by_score else columns))

        for part, block in rows.score.items():
            add(Block(part, (SCORE,)), block)
        for k, each in enumerate(rows.parts[: len(self.bases)]):
            for part, block in each.items():
                add(Block(part, (k,)), block)
                if self.varying and part in VARYING:
                    add(Block(part, (k,), by_score=True), block)
        return [*found, *self.products(self.factors_of(rows, self.paired()))]

    def matrix(self, z: Floats, columns: list[AnyArray]) -> Floats:
        """Return the design matrix, shape (n, p)."""
        return np.hstack([block for _, block in self.blocks(z, columns)])

    def layout(self) -> list[tuple[Block, int]]:
        """Return the blocks and their numbers of columns."""
        row = [
            np.array([-2]) if isinstance(basis, LevelBasis) else np.array([np.nan])
            for basis in self.bases
        ]
        found = self.blocks(np.array([self.score.mean]), row)
        return [(block, columns.shape[1]) for block, columns in found]

    def factors_of(self, rows: Ingredients, variables: set[int]) -> dict[int, AnyArray]:
        """Return the columns of variables that enter products."""
        return {
            k: rows.paired_score if k == SCORE else few_columns(rows.parts[k])
            for k in sorted(variables)
        }

    def pair_columns(
        self, factors: dict[int, AnyArray], pair: tuple[int, int], *, fine: bool
    ) -> AnyArray:
        """Return the products of the columns of two variables."""
        left, right = (self.factor(factors[k], k, fine=fine) for k in pair)
        return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), -1))

    def factor(self, columns: AnyArray, k: int, *, fine: bool) -> AnyArray:
        """Return the columns of a variable that enter products: few, or `fine`, all of them."""
        whole = fine or (k != SCORE and isinstance(self.bases[k], LevelBasis))
        return columns if whole else columns[:, : 1 + SHARED_PAIR_CURVES]

    def paired(self) -> set[int]:
        """Return the variables that are in a pair."""
        return {k for pair in (*self.pairs, *self.own) for k in pair}

    def products(self, factors: dict[int, AnyArray]) -> list[tuple[Block, Floats]]:
        """Return the blocks of pairs, which come last in the design matrix."""
        coarse = [self.pair_columns(factors, pair, fine=False) for pair in self.pairs]
        fine = [self.pair_columns(factors, pair, fine=True) for pair in self.own]
        shared = []
        if coarse:
            shared = [np.hstack([block[:, :1] for block in coarse])]
            shared.append(np.hstack([block[:, 1:] for block in coarse]))
        found = zip(_pair_names(self.pairs, self.own), [*shared, *fine], strict=True)
        return [
            (name, columns)
            for name, columns in found
            if columns.shape[1] and (self.only is None or name in self.only)
        ]


def _pair_names(
    pairs: tuple[tuple[int, int], ...], own: tuple[tuple[int, int], ...]
) -> tuple[Block, ...]:
    together = tuple(sorted({k for pair in pairs for k in pair}))
    shared = [Block(part, together, shared=True) for part in ("product", "surface") if pairs]
    return (*shared, *(Block("surface", pair) for pair in own))


def group_numbers(blocks: list[tuple[Block, Floats]]) -> Ints:
    """Return the penalty group of every column: one per block, −1 for the intercept."""
    free = np.array([block.free for block, _ in blocks])
    number = np.where(free, -1, np.cumsum(~free) - 1)
    return np.asarray(np.repeat(number, [columns.shape[1] for _, columns in blocks]))


def few_columns(parts: Parts) -> Floats:
    """Return the few columns of a variable that enter products."""
    if "levels" in parts:
        return parts["levels"][:, :PAIR_LEVELS]
    line = parts["line"]
    return np.hstack([line, parts["curve"][:, :OWN_PAIR_CURVES]]) if "curve" in parts else line
