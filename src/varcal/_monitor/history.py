"""History: what happened over time, in a limited number of blocks of batches."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from varcal._arrays import Floats
from varcal._monitor.confidence import Running
from varcal._monitor.moments import Moments
from varcal._options import check_text
from varcal.exceptions import InputError, shown

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


#: The longest name of a batch.
MOST_CHARACTERS = 500


def checked_id(id: object, last: str) -> str:
    """Return the name of a batch, if it comes after the last one (``""`` if there is none).

    >>> import datetime
    >>> checked_id(datetime.date(2026, 11, 16), "2026-11-15")
    '2026-11-16'
    """
    name = check_text("id", str(id)) if _names_a_batch(id) else ""
    if not name.strip() or len(name) > MOST_CHARACTERS:
        raise InputError(f"id is {shown(id)}", "give the name of the batch, such as its date", "id")
    if last and id_order(name) <= id_order(last):
        same = id_order(name) == id_order(last)
        raise InputError(
            f"id is {name!r}, "
            + ("which is already counted" if same else f"and the latest batch is {last!r}"),
            "batches are closed windows: enter each once, in order, when its labels are in",
            argument="id",
        )
    return name


def id_order(id: str) -> list[tuple[bool, int, str]]:
    """Return what ids are sorted by: numbers in them count as numbers, however they are written.

    >>> id_order("day 9") < id_order("day 10"), id_order("2026-9-1") == id_order("2026-09-01")
    (True, True)
    """
    return [
        (True, int(part), "") if part.isdecimal() else (False, 0, part)
        for part in re.split(r"(\d+)", id)
        if part
    ]


def _names_a_batch(id: object) -> bool:
    """Tell whether an id is a text, a whole number or a date, of any library."""
    if isinstance(id, str) or (isinstance(id, Integral) and not isinstance(id, bool)):
        return True
    dated = isinstance(id, np.datetime64) or hasattr(id, "strftime")
    return dated and str(id) != "NaT"
