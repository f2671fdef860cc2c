"""Question: the tables that a call needs, so that lazy rows are summed in a single pass."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from varcal._input.events import audit_keys, claim_keys, collected_keys

#: Fine cells of a numeric variable; a local fit on them is within 2e-4 of one on rows.
N_FINE = 1000


class Default:
    """A default, which collected statistics override; a value that a user gives must be theirs."""


class _DefaultInt(Default, int):
    """A default number."""


class _DefaultStr(Default, str):
    """A default string."""

    __slots__ = ()


#: The defaults of options of bins.
N_BINS = _DefaultInt(10)
QUANTILE = _DefaultStr("quantile")
ATOMS = _DefaultStr("atoms")
#: The event of a question that is an audit's.
AUDIT = "audit"


class BinOptions(TypedDict):
    """How rows are binned."""

    n_bins: int
    binning: str
    bins: object
    edges: str | None
    whole: NotRequired[tuple[str, ...]]


@dataclass(frozen=True)
class Question:
    """Which tables a call needs.

    Attributes
    ----------
    options : BinOptions
        How variables are binned, or the score if there are none.
    event, pos_label
        What the probabilities claim.
    joint : bool
        Whether variables are binned jointly instead of separately.
    fine : bool
        Whether fine cells are needed, for curves and tests.
    moments : bool
        Whether all sums are needed, or only rows, weight, hit and score.
    sided : bool
        Whether the claims about classes are needed by predicted side; `event` may then be "both".
    score : BinOptions, optional
        How the score is binned, if it is needed in addition to variables.
    calendar : bool
        Whether hour, weekday and month of dates are variables as well.
    """

    options: BinOptions
    event: str = "correct"
    pos_label: Hashable = None
    joint: bool = False
    fine: bool = True
    moments: bool = True
    sided: bool = False
    score: BinOptions | None = None
    calendar: bool = False

    @classmethod
    def of_audit(
        cls,
        n_bins: int,
        binning: str,
        bins: object,
        edges: str | None,
        pos_label: Hashable,
        whole: tuple[str, ...] = (),
    ) -> Question:
        """Return what audits and comparisons ask: classes by predicted side, and the score."""
        options = BinOptions(n_bins=n_bins, binning=binning, bins=bins, edges=edges, whole=whole)
        plain = BinOptions(n_bins=n_bins, binning="quantile", bins=None, edges=edges)
        return cls(options, AUDIT, pos_label, sided=True, score=plain, calendar=True)

    def keys(self, classes: Sequence[Hashable]) -> list[int]:
        """Return the keys of the claims."""
        if self.event == AUDIT:
            return audit_keys(classes, self.pos_label)
        find = collected_keys if self.sided else claim_keys
        return find(classes, self.event, self.pos_label)
