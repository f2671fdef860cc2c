"""Evidence: tables of claims along variables, from rows in memory or from sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from functools import cached_property

from varcal._arrays import Bools
from varcal._input.dates import date_note
from varcal._input.events import CORRECT, Claim, audit_keys, claim_keys, claim_of, predicted
from varcal._input.groups import buckets, sided_buckets
from varcal._input.left_out import (
    ColumnFacts,
    all_left_out,
    explicit_names,
    reason_to_leave_out,
)
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._sums.bins import Bins, joint_index
from varcal._sums.choose_bins import ATOMS, N_BINS, RARE_LEVEL, BinOptions, choose_bins, fine_bins
from varcal._sums.kernel import bin_rows
from varcal._sums.plan import MOST_FINE_CLASSES, N_FINE, Along, Question
from varcal._sums.profile import Profile, SidedProfile
from varcal._sums.stats import BinnedStats
from varcal._sums.survey import SCORE as SCORE


class Evidence(ABC):
    """Tables of claims along variables.

    Claims are identified by their key (`claim_keys`), and variables by name; the name None means
    the score itself.
    """

    classes: tuple[Hashable, ...]
    along: tuple[Along, ...]
    #: The variables that are parts of dates, and columns that cannot be variables with the reason.
    parts: tuple[str, ...]
    odd: dict[str, str]
    #: Rows behind the tables, rows dropped because their outcome is missing, and whether tables
    #: are by bucket of groups.
    n_rows: int
    n_dropped: int
    grouped: bool
    #: How variables are binned, what summed the rows, and the library of frames.
    options: BinOptions
    engine: str
    backend: str | None

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


class InMemory(Evidence):
    """Rows in memory, whose tables are made on demand."""

    def __init__(self, predictions: Predictions, question: Question) -> None:
        self.predictions, self.question, self.options = predictions, question, question.options
        self.classes, self.n_rows = predictions.classes, len(predictions)
        self.n_dropped, self.odd = predictions.n_dropped, dict(predictions.odd)
        self.engine, self.backend = predictions.engine, predictions.backend
        self.grouped = predictions.unit is not None
        self.along = tuple(Along(one.name, one.kind) for one in predictions.variables)
        self.parts = tuple(one.name for one in predictions.variables if one.source)
        self._claims: dict[int, Claim] = {}

    def profile(self, key: int, name: str | None) -> Profile:
        """Return a claim along a variable, in fine cells and coarse bins."""
        options = self.options if name is not None else self.question.score or self.options
        n_fine = N_FINE if self.question.fine else 0
        claim, variable = self._claim(key), self._variable(key, name)
        return profile_of(self.predictions, claim, variable, options, n_fine)

    def sided(self, key: int, name: str) -> SidedProfile:
        """Return the claim about a class along a variable, by predicted side."""
        n_fine = N_FINE if len(self.classes) <= MOST_FINE_CLASSES else 0
        claim, variable = self._claim(key), self._variable(key, name)
        side = predicted(self.predictions, key)
        found = profile_of(self.predictions, claim, variable, self.options, n_fine, side)
        return SidedProfile.of(key, found)

    def table(self, key: int) -> BinnedStats:
        """Return a claim over the bins of all variables jointly, or of the score without them."""
        claim, variables = self._claim(key), self.predictions.variables
        bins = self._joint_bins
        if bins is None:
            variables = (self._variable(key, None),)
            bins = choose_bins(variables, **self.options)
        weight, moments = self.predictions.weight, self.question.moments
        return bin_rows(bins, variables, claim.score, claim.hit, weight, moments=moments)

    @cached_property
    def _joint_bins(self) -> Bins | None:
        variables = self.predictions.variables
        return choose_bins(variables, **self.options) if variables else None

    def members(self, name: str, bins: Bins, part: slice) -> Bools | None:
        """Return which rows are in some bins of a variable."""
        index = joint_index(bins, [self._variable(CORRECT, name)])
        return (index >= part.start) & (index < part.stop)

    def absent(self) -> set[str]:
        """Return the names of variables that are missing at every row with weight."""
        weight = self.predictions.weight
        counts = slice(None) if weight is None else weight > 0
        variables = self.predictions.variables
        return {variable.name for variable in variables if variable.missing()[counts].all()}

    def left_out(self, explicit: Collection[str] = ()) -> dict[str, str]:
        """Return the variables that an audit leaves out, with the reason; never explicit ones."""
        rare = 1 / (RARE_LEVEL * self.options["n_bins"])
        found = {
            variable.name: reason_to_leave_out(variable.name, ColumnFacts.of(variable), rare)
            for variable in self.predictions.variables
            if variable.name not in explicit
        }
        return {name: reason for name, reason in found.items() if reason}

    def date_notes(self) -> tuple[str, ...]:
        """Return notes on text that was read as dates, or could not be."""
        variables = self.predictions.variables
        notes = (date_note(one.name, one.levels, one.date_format) for one in variables)
        return tuple(note for note in notes if note)

    def _claim(self, key: int) -> Claim:
        if key not in self._claims:
            if len(self._claims) > 1:  # an audit has two; a thousand classes would need much memory
                self._claims.clear()
            self._claims[key] = claim_of(self.predictions, key)
        return self._claims[key]

    def _variable(self, key: int, name: str | None) -> Variable:
        for variable in self.predictions.variables:
            if variable.name == name:
                return variable
        return Variable(SCORE, "numeric", self._claim(key).score)


def profile_of(
    rows: Predictions,
    claim: Claim,
    variable: Variable,
    options: BinOptions,
    n_fine: int,
    side: Bools | None = None,
) -> Profile:
    """Bin a claim along a variable, by bucket of groups and by predicted side if there are any."""
    coarse, fine = fine_bins(variable, n_fine=n_fine, **options)
    by_bucket = sided_buckets(side, *buckets(rows.unit))
    stats = bin_rows(fine, [variable], claim.score, claim.hit, rows.weight, *by_bucket)
    return Profile(variable.name, variable.kind, stats, coarse)


def without_left_out(
    rows: Predictions, X: object, include: str | Sequence[str] | None
) -> tuple[Predictions, dict[str, str]]:
    """Return rows without the variables that an audit leaves out, and the reasons.

    Parameters
    ----------
    rows : Predictions
        The rows.
    X : object
        The variables, as they were given; those that are named one by one are kept.
    include : str, sequence of str or None
        Variables that must not be left out.
    """
    options: BinOptions = {"n_bins": N_BINS, "binning": ATOMS, "bins": None, "edges": None}
    evidence = InMemory(rows, Question(options))
    known = [variable.name for variable in rows.variables]
    left_out = evidence.left_out(explicit_names(X, include, known))
    left_out |= dict.fromkeys(sorted(evidence.absent()), "every value is missing")
    left_out |= evidence.odd
    kept = tuple(variable for variable in rows.variables if variable.name not in left_out)
    if not kept:
        raise all_left_out(left_out)
    return replace(rows, variables=kept), left_out
