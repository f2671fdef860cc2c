"""Collected: sums over rows, which replace the rows in audits and metrics."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from varcal._arrays import Bools
from varcal._input.dates import part_name
from varcal._input.events import CORRECT, audit_keys, claim_keys
from varcal._options import checked
from varcal._sums.bins import Bins
from varcal._sums.evidence import Evidence
from varcal._sums.plan import BinPlan, Sums, closed
from varcal._sums.profile import Profile, SidedProfile, correct_of
from varcal._sums.stats import BinnedStats
from varcal._sums.survey import SCORE
from varcal._text import count, short
from varcal.exceptions import InputError, argument_name


@dataclass(frozen=True, eq=False)
class Collected:
    """The binned statistics of a batch of predictions; `a + b` merges two batches.

    It is the result of `collect`. `audit`, `estimate`, `curve`, `vece`, `ece`, `bin_table` and
    `reliability` accept it instead of predictions, with the results of all rows at once.

    Attributes
    ----------
    plan : BinPlan
        The columns and the bins.
    sums : Sums
        The number of rows, the number of dropped rows, and the sums of each bin.
    engine : str
        What summed the rows.
    backend : str or None
        The frame library of results.
    """

    plan: BinPlan
    sums: Sums
    engine: str = "numpy"
    backend: str | None = None

    def __add__(self, other: Collected) -> Collected:
        if not isinstance(other, Collected):
            return NotImplemented
        if self.plan != other.plan:
            raise InputError(
                "two collections over different bins cannot be merged",
                "collect both with the same bins from make_bins()",
            )
        engine = self.engine if self.engine == other.engine else "several"
        backend = self.backend if self.backend == other.backend else None
        return Collected(self.plan, self.sums + other.sums, engine, backend).finite()

    def finite(self) -> Collected:
        """Refuse sums that overflow."""
        for wanted, table in zip(self.plan.wanted, self.sums.tables, strict=True):
            for name, part in zip(wanted.fields, table, strict=True):
                if np.isfinite(part).all():
                    continue
                if name == "x":
                    raise InputError(
                        f"the sum of variable {wanted.names[0]!r} overflows",
                        "divide the variable by a constant before the bins are chosen",
                    )
                raise InputError(
                    "the sum of sample_weight overflows: these weights are much larger than those "
                    "that the bins were chosen for",
                    "choose the bins from rows with similar weights, or divide all weights",
                )
        return self

    def __radd__(self, other: object) -> Collected:
        # For sum(parts), which starts with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __len__(self) -> int:
        return self.sums.n_rows

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels."""
        return self.plan.classes

    @property
    def n_rows(self) -> int:
        """Rows behind the tables."""
        return self.sums.n_rows

    @property
    def n_dropped(self) -> int:
        """Rows dropped because their outcome is missing."""
        return self.sums.n_dropped

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Write the statistics to a ``.json`` or ``.parquet`` file, which `varcal.load` reads.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import varcal as vc
        >>> sim = vc.datasets.make_gap(500)
        >>> rows = {"y": sim.y, "p": sim.p, "age": sim.v}
        >>> day = vc.collect(rows, vc.make_bins("y", "p", data=rows))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "day.json"
        >>> day.save(path)
        >>> len(vc.load(path) + day)
        1000
        """
        from varcal._sums.collected_file import save  # noqa: PLC0415  pyarrow loads when first used

        save(self, path)

    def __repr__(self) -> str:
        names = short(", ".join(variable.name for variable in self.plan.along), 50)
        along = count(len(self.plan.along), "variable")
        return f"Collected: {count(self.n_rows, 'row')} along {along} ({names})"


class CollectedEvidence(Evidence):
    """Sums as the evidence of a call."""

    def __init__(self, found: Collected) -> None:
        plan = found.plan
        self.plan, self.sums = plan, found.sums
        self.engine, self.backend = found.engine, found.backend
        self.classes, self.n_rows, self.n_dropped = plan.classes, found.n_rows, found.n_dropped
        self.grouped, self.along = plan.roles.groups is not None, plan.along
        self.parts = tuple(map(part_name, plan.part.calendar))
        self.odd = {name: why for name, why in plan.left_out.items() if name not in plan.roles.v}
        n_bins, binning = plan.n_bins, plan.binning
        self.options = {"n_bins": n_bins, "binning": binning, "bins": None, "edges": None}
        two = plan.roles.pos_label is None and len(plan.classes) == 2
        #: The positive one of two classes, None with more.
        self.pos_label = plan.classes[1] if two else plan.roles.pos_label

    def keys(self, event: str, pos_label: Hashable = None) -> list[int]:
        """Return the keys of the claims of an event."""
        pos_label = self.pos_label if pos_label is None else pos_label
        keys = claim_keys(self.classes, event, pos_label)
        known = self._sided | {key for key, _ in self._tables}
        if not known.issuperset(keys):
            raise self._not_collected(event, known)
        return keys

    def audit_keys(self, pos_label: Hashable = None) -> list[int]:
        """Return the keys of the claims that an audit judges.

        With more than two classes that is the top class alone if no other was collected.
        """
        keys = audit_keys(self.classes, self.pos_label)
        about = [key for key in keys if key != CORRECT]
        scores = {key for key, names in self._tables if not names}
        if self._sided.issuperset(about) and scores.issuperset(keys):
            return keys
        if CORRECT in keys and CORRECT in scores:
            return [CORRECT]
        label = self.classes[about[0]]
        raise InputError(
            f"P({self.plan.roles.y} = {label}) was not collected by predicted side",
            'choose the bins with events=["both"], the default',
            argument="y",
        )

    def _not_collected(self, event: str, known: set[int]) -> InputError:
        shown = ["correct" if key == CORRECT else repr(self.classes[key]) for key in known]
        hint = "name it when the bins are chosen: make_bins(…, events=[…])"
        if len(self.classes) == 2 and 0 not in known and event != "correct":
            hint = 'choose the bins for both classes: make_bins(…, events=["both", "classwise"])'
        return InputError(
            f'event="{event}" was not collected; collected were {", ".join(sorted(shown))}',
            hint,
            argument="event",
        )

    @cached_property
    def _sided(self) -> set[int]:
        """The claims about classes that were collected by predicted side."""
        return {wanted.key for wanted in self.plan.wanted if wanted.sided}

    def profile(self, key: int, name: str | None) -> Profile:
        """Return a claim along a variable, in fine cells and coarse bins."""
        names = () if name is None else (name,)
        if key == CORRECT and (key, names) not in self._tables and self._sided and names:
            return correct_of([self.sided(about, names[0]) for about in sorted(self._sided)])
        if key in self._sided and names:
            return self.sided(key, names[0]).claim
        return self._profile(key, names)

    def sided(self, key: int, name: str) -> SidedProfile:
        """Return the claim about a class along a variable, by predicted side."""
        return SidedProfile.of(key, self._profile(key, (name,)))

    def _profile(self, key: int, names: tuple[str, ...]) -> Profile:
        fine, coarse = self._table(key, names)
        name = names[0] if names else SCORE
        return Profile(name, self.plan.kinds.get(name, "numeric"), fine, coarse)

    def table(self, key: int) -> BinnedStats:
        """Return a claim over the bins of all variables jointly, or of the score without them."""
        names = tuple(variable.name for variable in self.along)
        if len(names) < 2:
            return self.profile(key, names[0] if names else None).coarse
        fine, coarse = self._table(key, names)
        return fine.coarsen(coarse)

    def members(self, name: str, bins: Bins, part: slice) -> Bools | None:
        """Return None: the rows are not available."""
        return None

    def absent(self) -> set[str]:
        """Return the names of variables that are missing at every row with weight."""
        absent = set()
        for (_, names), (stats, _) in self._tables.items():
            weight = stats.total("weight")
            if len(names) == 1 and getattr(stats.bins, "missing", False) and not weight[:-1].any():
                absent.add(names[0])
        return absent

    def left_out(self, explicit: Collection[str] = ()) -> dict[str, str]:
        """Return the variables that an audit leaves out, with the reason; never explicit ones."""
        names = {variable.name for variable in self.along} - set(explicit)
        return {name: why for name, why in self.plan.left_out.items() if name in names}

    def date_notes(self) -> tuple[str, ...]:
        """Return notes on text that was read as dates, or could not be."""
        return self.plan.date_notes

    def about(self, v: object) -> CollectedEvidence:
        """Return the statistics of some variables, or of the score alone (None)."""
        names = [] if v is None else [v] if isinstance(v, str) else v
        argument = argument_name("v")
        if not isinstance(names, list | tuple) or not all(isinstance(x, str) for x in names):
            raise InputError(
                f"{argument} is a {type(v).__name__}",
                "give the name of a variable that was collected",
                argument,
            )
        known = {variable.name: variable for variable in self.along}
        for name in names:
            if name not in known:
                raise InputError.no_column(name, known, argument)
        plan = replace(self.plan, along=tuple(known[x] for x in names))
        return CollectedEvidence(Collected(plan, self.sums, self.engine, self.backend))

    @cached_property
    def _tables(self) -> dict[tuple[int, tuple[str, ...]], tuple[BinnedStats, Any]]:
        pairs = zip(self.plan.wanted, self.sums.tables, strict=True)
        return {
            (wanted.key, wanted.names): closed(
                BinnedStats(wanted.fine, np.asarray(table)), wanted.coarse
            )
            for wanted, table in pairs
            if wanted.limit is None
        }

    def _table(self, key: int, names: tuple[str, ...]) -> tuple[BinnedStats, Any]:
        if (key, names) not in self._tables:
            shown = " × ".join(names) or "the score"
            raise InputError(f"{shown} was not collected", "collect it, or pass rows instead")
        return self._tables[key, names]
