"""InMemory: evidence from rows in memory, whose tables are made on demand."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from varcal._arrays import Bools
from varcal._input.dates import date_note
from varcal._input.events import CORRECT, Claim, claim_of
from varcal._input.left_out import (
    ColumnFacts,
    all_left_out,
    explicit_names,
    reason_to_leave_out,
)
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._sums.bins import Bins, joint_index
from varcal._sums.choose import RARE_LEVEL, choose_bins
from varcal._sums.evidence import SCORE, Along, Evidence
from varcal._sums.kernel_numpy import bin_rows
from varcal._sums.plan import MOST_FINE_CLASSES
from varcal._sums.profile import Profile, profile
from varcal._sums.question import ATOMS, N_BINS, N_FINE, BinOptions, Question
from varcal._sums.sided import SidedProfile, sided_profile
from varcal._sums.stats import BinnedStats


@dataclass(frozen=True, eq=False)
class InMemory(Evidence):
    """Rows in memory, whose tables are made on demand."""

    predictions: Predictions
    question: Question
    engine: str = "numpy"
    _claims: dict[int, Claim] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels."""
        return self.predictions.classes

    @property
    def n_dropped(self) -> int:
        """Rows dropped because their outcome is missing."""
        return self.predictions.n_dropped

    @property
    def backend(self) -> str | None:  # type: ignore[override]
        """The frame library of the data."""
        return self.predictions.backend

    @property
    def n_rows(self) -> int:
        """Rows behind the tables."""
        return len(self.predictions)

    @property
    def grouped(self) -> bool:
        """Whether tables are by bucket of groups."""
        return self.predictions.unit is not None

    @property
    def options(self) -> BinOptions:
        """How variables are binned."""
        return self.question.options

    @property
    def along(self) -> tuple[Along, ...]:
        """The variables."""
        return tuple(Along(variable.name, variable.kind) for variable in self.predictions.variables)

    @property
    def parts(self) -> tuple[str, ...]:
        """The variables that are parts of dates."""
        return tuple(one.name for one in self.predictions.variables if one.source)

    def profile(self, key: int, name: str | None) -> Profile:
        """Return a claim along a variable, in fine cells and coarse bins."""
        question = self.question
        options = question.options if name is not None else question.score or question.options
        n_fine = N_FINE if question.fine else 0
        return profile(
            self.predictions, self._claim(key), self._variable(key, name), options, n_fine=n_fine
        )

    def sided(self, key: int, name: str) -> SidedProfile:
        """Return the claim about a class along a variable, by predicted side."""
        question = self.question
        n_fine = N_FINE if len(self.classes) <= MOST_FINE_CLASSES else 0
        return sided_profile(
            self.predictions,
            key,
            self._claim(key),
            self._variable(key, name),
            question.options,
            n_fine=n_fine,
        )

    def table(self, key: int) -> BinnedStats:
        """Return a claim over the bins of all variables jointly, or of the score without them."""
        claim = self._claim(key)
        variables = self.predictions.variables
        bins = self._joint_bins
        if bins is None:
            variables = (self._variable(key, None),)
            bins = choose_bins(variables, **self.question.options)
        return bin_rows(
            bins,
            variables,
            claim.scores,
            claim.hits,
            self.predictions.weight,
            moments=self.question.moments,
        )

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
        rare = 1 / (RARE_LEVEL * self.question.options["n_bins"])
        found = {
            variable.name: reason_to_leave_out(variable.name, ColumnFacts.of(variable), rare)
            for variable in self.predictions.variables
            if variable.name not in explicit
        }
        return {name: reason for name, reason in found.items() if reason}

    @property
    def odd(self) -> dict[str, str]:
        """Columns that cannot be variables, with the reason."""
        return dict(self.predictions.odd)

    def date_notes(self) -> tuple[str, ...]:
        """Return notes on text that was read as dates, or could not be."""
        notes = (
            date_note(variable.name, variable.levels, variable.date_format)
            for variable in self.predictions.variables
        )
        return tuple(note for note in notes if note)

    @cached_property
    def _joint_bins(self) -> Bins | None:
        variables = self.predictions.variables
        return choose_bins(variables, **self.question.options) if variables else None

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
