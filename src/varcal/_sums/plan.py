"""BinPlan: the bins of all variables and of the score, chosen once and used for every batch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from varcal._input.events import CORRECT
from varcal._input.labels import Part
from varcal._sums.bins import Bins, JointBins, LevelBins
from varcal._sums.choose import RARE_LEVEL, check_cut_names
from varcal._sums.evidence import SCORE, Along
from varcal._sums.question import N_FINE, Question
from varcal._sums.roles import Roles
from varcal._sums.scan import Survey
from varcal._sums.stats import BinnedStats
from varcal._sums.tally import Tally, Wanted
from varcal._text import count, short

#: With more classes than this, the claims about classes have no fine cells, to save memory.
MOST_FINE_CLASSES = 10


@dataclass(frozen=True)
class BinPlan:
    """The roles of columns, and the bins into which rows are summed.

    It is the result of `make_bins`. Batches that are collected with the same plan can be added.

    Attributes
    ----------
    roles : Roles
        The columns: outcome, probabilities, variables, weights, groups.
    part : Part
        The classes.
    along : tuple of Along
        The variables and their kinds.
    wanted : tuple of Wanted
        The tables: claims, variables and their bins.
    units : tuple
        All groups, if there are few and all are known; otherwise groups are hashed.
    n_bins, binning
        How bins were chosen.
    left_out : mapping
        Columns that an audit leaves out unless they are named, with the reason.
    date_notes : tuple of str
        Notes on text that was read as dates, or could not be.
    monitor : float or None
        The tolerance of the monitor that the bins were chosen for.
    weight_cap : float or None
        The largest weight that a row may have, for a monitor.
    """

    roles: Roles
    part: Part
    along: tuple[Along, ...]
    wanted: tuple[Wanted, ...]
    units: tuple[Hashable, ...] = ()
    n_bins: int = 10
    binning: str = "atoms"
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)
    date_notes: tuple[str, ...] = field(default=(), compare=False)
    monitor: float | None = None
    weight_cap: float | None = None

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in the order of the columns of `p`."""
        return self.part.classes

    def tally(self, **settings: Any) -> Tally:
        """Return the work that sums a batch into the bins."""
        kinds = {variable.name: variable.kind for variable in self.along}
        return Tally(
            self.roles,
            self.part,
            kinds,
            self.wanted,
            self.units,
            weight_cap=self.weight_cap,
            **settings,
        )

    def __repr__(self) -> str:
        names = short(", ".join(variable.name for variable in self.along), 50)
        claims = {table.key for table in self.wanted}
        along = count(len(self.along), "variable")
        return f"BinPlan: {count(len(claims), 'claim')} along {along} ({names})"


def plan_of(survey: Survey, question: Question) -> BinPlan:
    """Choose the bins that a question needs."""
    options = question.options
    classes = survey.part.classes
    keys = question.keys(classes)
    n_fine = N_FINE if question.fine else 0
    along = tuple(Along(name, survey.kind(name)) for name in survey.names)
    check_cut_names(options["bins"], along or (Along(SCORE, "numeric"),))
    chosen = {one.name: _open_levels(survey, one, question, n_fine) for one in along}
    wanted: list[Wanted] = []
    if question.joint and len(along) > 1:
        bins = JointBins(tuple(chosen[one.name][0] for one in along))
        wanted += [Wanted(key, survey.names, bins, bins) for key in keys]
    else:
        for name, (coarse, fine) in chosen.items():
            if question.sided:
                wanted += _sided(keys, name, fine, coarse)
            else:
                wanted += [Wanted(key, (name,), fine, coarse) for key in keys]
    if not along or question.score is not None:
        for key in keys:
            how = question.score or options
            coarse, fine = survey.score_bins(key, how, n_fine, SCORE)
            wanted.append(Wanted(key, (), fine, coarse))
    return BinPlan(
        survey.roles,
        survey.part,
        along,
        tuple(wanted),
        survey.units,
        options["n_bins"],
        options["binning"],
        survey.left_out(1 / (RARE_LEVEL * options["n_bins"])) | survey.seen.odd,
        survey.date_notes(),
    )


def _sided(keys: list[int], name: str, fine: Any, coarse: Any) -> list[Wanted]:
    """Return the tables of claims about classes by predicted side, along one variable.

    "The prediction is correct" follows from those of all classes, or from either of two. With
    many classes their tables would be large: they have coarse bins only.
    """
    about = [key for key in keys if key != CORRECT]
    if len(about) <= MOST_FINE_CLASSES:
        return [Wanted(key, (name,), fine, coarse, sided=True) for key in about]
    plain = [Wanted(CORRECT, (name,), fine, coarse)] if CORRECT in keys else []
    return plain + [Wanted(key, (name,), coarse, coarse, sided=True) for key in about]


def _open_levels(survey: Survey, one: Along, question: Question, n_fine: int) -> tuple[Any, Any]:
    coarse, fine = survey.bins(one.name, question.options, n_fine)
    if survey.opened(one.name):
        coarse = fine = replace(coarse, open=True)
    return coarse, fine


def opened(bins: Any) -> Any:
    """Return bins that also take levels and missing values that were not known at their choice."""
    if isinstance(bins, LevelBins):
        return replace(bins, missing=True, open=True)
    return replace(bins, missing=True)


def closed(stats: BinnedStats, coarse: Bins) -> tuple[BinnedStats, Bins]:
    """Drop the bins for missing and unknown values if they are empty."""
    fine, sums = stats.bins, stats.sums
    if isinstance(fine, JointBins) or isinstance(coarse, JointBins):
        return stats, coarse
    empty = sums[0].sum(axis=0) == 0
    if fine.missing and empty[-1] and fine.size > 1:
        fine, coarse = replace(fine, missing=False), replace(coarse, missing=False)
        sums, empty = sums[..., :-1], empty[:-1]
    if isinstance(fine, LevelBins) and fine.open:
        other = len(fine.levels)
        if empty[other] and not fine.pooled and fine.size > 1:
            sums = np.delete(sums, other, axis=-1)
            fine = coarse = replace(fine, open=False)
    return BinnedStats(fine, sums), coarse
