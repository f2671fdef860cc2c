"""Evidence: the interface to tables of claims, from rows in memory or from collected sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from dataclasses import dataclass

from varcal._arrays import Bools
from varcal._input.events import audit_keys, claim_keys
from varcal._input.variables import Kind
from varcal._sums.bins import Bins
from varcal._sums.profile import Profile
from varcal._sums.question import BinOptions
from varcal._sums.sided import SidedProfile
from varcal._sums.stats import BinnedStats

#: The name of the score if it is the variable.
SCORE = "confidence"


@dataclass(frozen=True)
class Along:
    """A variable by name and kind."""

    name: str
    kind: Kind


class Evidence(ABC):
    """Tables of claims along variables.

    Claims are identified by their key (`claim_keys`), and variables by name; the name None means
    the score itself.
    """

    backend: str | None
    #: What summed the rows.
    engine: str

    @property
    @abstractmethod
    def classes(self) -> tuple[Hashable, ...]:
        """The labels."""

    @property
    @abstractmethod
    def n_dropped(self) -> int:
        """Rows dropped because their outcome is missing."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows behind the tables."""

    @property
    @abstractmethod
    def grouped(self) -> bool:
        """Whether tables are by bucket of groups."""

    @property
    @abstractmethod
    def options(self) -> BinOptions:
        """How variables are binned."""

    @property
    @abstractmethod
    def along(self) -> tuple[Along, ...]:
        """The variables."""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """The variables that are parts of dates."""

    @abstractmethod
    def profile(self, key: int, name: str | None) -> Profile:
        """Return a claim along a variable, in fine cells and coarse bins."""

    @abstractmethod
    def sided(self, key: int, name: str) -> SidedProfile:
        """Return the claim about a class along a variable, by predicted side."""

    @abstractmethod
    def table(self, key: int) -> BinnedStats:
        """Return a claim over the bins of all variables jointly, or of the score without them."""

    @abstractmethod
    def members(self, name: str, bins: Bins, part: slice) -> Bools | None:
        """Return which rows are in some bins of a variable; None if only sums are available."""

    @abstractmethod
    def absent(self) -> set[str]:
        """Return the names of variables that are missing at every row with weight."""

    @abstractmethod
    def left_out(self, explicit: Collection[str] = ()) -> dict[str, str]:
        """Return the variables that an audit leaves out, with the reason; never explicit ones."""

    @property
    @abstractmethod
    def odd(self) -> dict[str, str]:
        """Columns that cannot be variables, with the reason."""

    @abstractmethod
    def date_notes(self) -> tuple[str, ...]:
        """Return notes on text that was read as dates, or could not be."""

    def keys(self, event: str, pos_label: Hashable = None) -> list[int]:
        """Return the keys of the claims of an event."""
        return claim_keys(self.classes, event, pos_label)

    def audit_keys(self, pos_label: Hashable = None) -> list[int]:
        """Return the keys of the claims that an audit judges."""
        return audit_keys(self.classes, pos_label)

    def label(self, key: int) -> Hashable:
        """Return the class that a claim is about, or None."""
        return None if key < 0 else self.classes[key]
