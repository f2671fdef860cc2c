"""Part: what a batch of rows must know of all rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """What is known of all rows when some of them come in at the door.

    Attributes
    ----------
    classes : tuple
        Every label, in the order of the columns of `p`; none where they are not known, and rows
        are only checked.
    by_meaning : bool
        Whether labels are 0/1 or booleans, which mean the same in every part.
    exponent : int
        Weights are divided by 2 to this power.
    """

    classes: tuple[Hashable, ...]
    by_meaning: bool = False
    exponent: int = 0
