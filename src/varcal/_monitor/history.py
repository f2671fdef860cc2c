"""History: what happened over time, in a limited number of blocks of batches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from varcal._arrays import Floats
from varcal._monitor.confidence import Running
from varcal._monitor.moments import Moments

#: The largest number of blocks. When it is exceeded, neighbouring blocks are joined in pairs, so
#: that memory stays the same however many batches come: plots need no more points.
MOST_BLOCKS = 128
#: The sums that a block has for each cell.
BLOCK_SUMS = ("n", "weight", "hit", "score")


@dataclass
class Block:
    """Some neighbouring batches.

    Attributes
    ----------
    first, last : str
        The ids of the first and the last batch.
    batches, rows : int
        Their numbers.
    epoch : int
        How often the monitor had been reset.
    evidence : float
        The largest evidence of its batches.
    sums : ndarray of shape (4, cells)
        Number, weight, hits and scores of its rows (`BLOCK_SUMS`).
    spread : ndarray of shape (cells,)
        The spread of all rows since the reset, at its end.
    """

    first: str
    last: str
    batches: int
    rows: int
    epoch: int
    evidence: float
    sums: Floats
    spread: Floats

    def joined(self, later: Block) -> Block:
        """Return this block and the next as one."""
        return Block(
            self.first,
            later.last,
            self.batches + later.batches,
            self.rows + later.rows,
            self.epoch,
            max(self.evidence, later.evidence),
            self.sums + later.sums,
            later.spread,
        )


@dataclass
class History:
    """Blocks of batches, the earliest first.

    Attributes
    ----------
    blocks : list of Block
        The blocks; those of different epochs are never joined.
    span : int
        How many batches a new block takes.
    """

    blocks: list[Block] = field(default_factory=list)
    span: int = 1

    def add(
        self,
        id: str,
        rows: int,
        epoch: int,
        evidence: float,
        moments: Moments,
        running: Running,
    ) -> None:
        """Add a batch."""
        sums = np.stack([getattr(moments, name) for name in BLOCK_SUMS])
        new = Block(id, id, 1, rows, epoch, evidence, sums, running.spread.copy())
        last = self.blocks[-1] if self.blocks else None
        if last is not None and last.epoch == epoch and last.batches < self.span:
            self.blocks[-1] = last.joined(new)
            return
        self.blocks.append(new)
        if len(self.blocks) > MOST_BLOCKS:
            self._thin()

    def _thin(self) -> None:
        joined: list[Block] = []
        for block in self.blocks:
            earlier = joined[-1] if joined else None
            if (
                earlier is not None
                and earlier.epoch == block.epoch
                and earlier.batches + block.batches <= 2 * self.span
            ):
                joined[-1] = earlier.joined(block)
            else:
                joined.append(block)
        self.blocks = joined[-MOST_BLOCKS:]  # after very many resets the earliest are dropped
        self.span *= 2
