"""Part: facts about all rows that are needed to read a batch of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Part:
    """Facts about all rows, for reading a batch of them.

    Attributes
    ----------
    classes : tuple
        Every label, in the order of the columns of `p`; empty if the labels are not known and rows
        are only checked.
    by_meaning : bool
        Whether labels are 0/1 or booleans, which are interchangeable.
    exponent : int
        Weights are divided by 2 to this power.
    date_formats : mapping
        How dates are written in each column of text that is dates (`date_texts`).
    """

    classes: tuple[Hashable, ...]
    by_meaning: bool = False
    exponent: int = 0
    date_formats: Mapping[str, str] = field(default_factory=dict)
