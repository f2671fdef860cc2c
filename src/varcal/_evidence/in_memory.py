"""InMemory: rows in memory, of which a table is made when it is asked for."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

from varcal._binning.bins import Bins
from varcal._binning.choose import make_bins
from varcal._binning.stats import BinnedStats
from varcal._engines.kernel_numpy import collect
from varcal._evidence.evidence import SCORE, Along, Evidence
from varcal._evidence.profile import Profile, coarse_stats, profile, rows_behind
from varcal._evidence.question import N_FINE, BinOptions, Question
from varcal._inference.cumulative_test import cumulative_test
from varcal._inference.simulated_null import ScoredRows
from varcal._input.events import Claim, claim_of
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable


@dataclass(frozen=True, eq=False)
class InMemory(Evidence):
    """Rows in memory: a table is made when it is asked for."""

    predictions: Predictions
    question: Question
    engine: str = "numpy"
    _claims: dict[int, Claim] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[Hashable, ...]:  # type: ignore[override]
        """The labels."""
        return self.predictions.classes

    @property
    def n_dropped(self) -> int:  # type: ignore[override]
        """Rows left out because their outcome is not known."""
        return self.predictions.n_dropped

    @property
    def backend(self) -> str | None:  # type: ignore[override]
        """The frame library that the data came in."""
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
        return tuple(Along(one.name, one.kind) for one in self.predictions.variables)

    def profile(self, key: int, name: str | None) -> Profile:
        """Return a claim along a variable, in fine cells and coarse bins."""
        asked = self.question
        options = asked.options if name is not None else asked.score or asked.options
        n_fine = N_FINE if asked.fine else 0
        return profile(
            self.predictions, self._claim(key), self._variable(key, name), options, n_fine=n_fine
        )

    def coarse(self, key: int, like: Profile) -> BinnedStats:
        """Return another claim over the coarse bins of a profile."""
        variable = self._variable(key, like.name)
        return coarse_stats(self.predictions, self._claim(key), variable, like)

    def table(self, key: int) -> BinnedStats:
        """Return a claim over the bins of all variables jointly, or of the score without them."""
        claim = self._claim(key)
        variables = self.predictions.variables
        bins = self._joint_bins
        if bins is None:
            variables = (self._variable(key, None),)
            bins = make_bins(variables, **self.question.options)
        return collect(
            bins,
            variables,
            claim.scores,
            claim.hits,
            self.predictions.weight,
            moments=self.question.moments,
        )

    def absent(self) -> set[str]:
        """Name the variables that are missing at every row."""
        return {one.name for one in self.predictions.variables if one.missing().all()}

    def rows(self, key: int, name: str | None, found: Profile) -> ScoredRows | None:
        """Return the rows behind a profile, None where there are many."""
        variable = self._variable(key, name)
        return rows_behind(self.predictions, self._claim(key), variable, found)

    def cumulative(self, key: int, name: str | None, statistic: str) -> float:
        """Return the p-value of a test that needs rows in their order."""
        claim, weight = self._claim(key), self.predictions.weight
        variable = self._variable(key, name)
        return cumulative_test(variable, claim.score, claim.hit, weight, statistic=statistic)

    @cached_property
    def _joint_bins(self) -> Bins | None:
        variables = self.predictions.variables
        return make_bins(variables, **self.question.options) if variables else None

    def _claim(self, key: int) -> Claim:
        if key not in self._claims:
            if len(self._claims) > 1:  # an audit has two; a thousand classes would fill memory
                self._claims.clear()
            self._claims[key] = claim_of(self.predictions, key)
        return self._claims[key]

    def _variable(self, key: int, name: str | None) -> Variable:
        for variable in self.predictions.variables:
            if variable.name == name:
                return variable
        return Variable(SCORE, "numeric", self._claim(key).score)
