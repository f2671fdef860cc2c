"""Question: what a call wants to know, so that rows which are read in passes are read once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypedDict

#: Fine cells of a numeric variable; a local fit on them is within 2e-4 of one on rows.
N_FINE = 1000


class Default:
    """Marks a default, which collected statistics overrule; the same value given must be theirs."""


class _DefaultInt(Default, int):
    """A number that nobody gave."""


class _DefaultStr(Default, str):
    """A text that nobody gave."""

    __slots__ = ()


#: How bins are chosen where nothing is said.
N_BINS = _DefaultInt(10)
QUANTILE = _DefaultStr("quantile")
ATOMS = _DefaultStr("atoms")


class BinOptions(TypedDict):
    """How rows are binned."""

    n_bins: int
    binning: str
    bins: object


@dataclass(frozen=True)
class Question:
    """Which tables a call needs.

    Attributes
    ----------
    options : BinOptions
        How variables are binned, and without variables the score.
    event, pos_label
        What probabilities claim.
    joint : bool
        Whether variables are binned together, instead of each by itself.
    fine : bool
        Whether fine cells are needed, for curves and tests.
    moments : bool
        Whether all sums are needed, or only rows, weight, hit and score.
    other_claim : bool
        Whether the other claim of a binary model is wanted, too, over the coarse bins.
    score : BinOptions, optional
        How the score is binned, where it is wanted besides variables.
    """

    options: BinOptions
    event: str = "correct"
    pos_label: Hashable = None
    joint: bool = False
    fine: bool = True
    moments: bool = True
    other_claim: bool = False
    score: BinOptions | None = None
