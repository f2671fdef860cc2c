"""The one way in: from the arguments of a call to its evidence, tables of claims along variables.

`gather` returns the evidence of rows in memory, whose tables are filled on demand, or of tables
that a stream of rows has filled, or that were collected before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from varcal._arrays import Bools
from varcal._input.dates import part_name, with_calendar
from varcal._input.frames import check_indexes
from varcal._input.groups import buckets, sided_buckets
from varcal._input.labels import CORRECT, Claim, audit_keys, claim_keys, claim_of, predicted
from varcal._input.left_out import all_left_out, explicit_names
from varcal._input.predictions import ALL, Predictions, no_weight
from varcal._input.variables import Variable
from varcal._options import check_choice
from varcal._sums.bins import Bins, joint_index
from varcal._sums.choose_bins import (
    ATOMS,
    N_BINS,
    BinOptions,
    Default,
    choose_bins,
    fine_bins,
)
from varcal._sums.plan import (
    MOST_FINE_CLASSES,
    N_FINE,
    Along,
    Collected,
    Question,
    date_notes,
    plan_of,
    reasons_to_leave_out,
    sum_up,
)
from varcal._sums.profile import Profile, SidedProfile, correct_of
from varcal._sums.sources import fits_in_memory, lazy_rows
from varcal._sums.stats import CHUNK, FIELDS, BinnedStats, add_rows, bin_rows
from varcal._sums.stream import SCORE, Roles, Sample, Stream
from varcal.exceptions import InputError


def gather(
    y: object, p: object, v: object, question: Question, *, soft: bool = True, **how: Any
) -> Evidence:
    """Return the evidence of a call.

    Collected sums are returned as they are. Rows in memory and few lazy rows are kept, and many
    lazy rows are summed. `how` are further arguments of `rows_of_call`.
    """
    if isinstance(y, Collected):
        return _of_collected(CollectedEvidence(y), p, v, question, how)
    found = rows_of_call(y, p, v, pos_label=question.pos_label, soft=soft, **how)
    if isinstance(found, Predictions):
        if question.calendar:
            found = replace(found, variables=with_calendar(found.variables))
        return InMemory(found, question)
    sample = Sample.of(found, how.get("classes"), calendar=question.calendar)
    plan = plan_of(sample, question)
    return _not_empty(CollectedEvidence(sum_up(found.rows, plan, moments=question.moments)))


def rows_of_call(
    y: object,
    p: object,
    v: object,
    *,
    data: object = None,
    classes: Any = None,
    soft: bool = False,
    **how: Any,
) -> Predictions | Stream:
    """Return the rows that the arguments of a call name: in memory and checked, or a stream.

    Labels of rows in memory may be `soft`; `how` are further arguments of `Predictions.of`.
    """
    lazy = None if data is None else lazy_rows(data)
    if lazy is None:
        arrays = {"y": y, "p": p, "X": v}
        arrays |= {name: how.get(name) for name in ("sample_weight", "groups")}
        check_indexes(arrays if isinstance(data, Mapping) else arrays | {"data": data})
        return Predictions.of(y, p, v, data=data, classes=classes, soft=soft, **how)
    roles = Roles.of(lazy.columns, y, p, v, **how)
    n_all = lazy.count()
    if not fits_in_memory(n_all, len(roles.columns)):
        return Stream(lazy, roles, n_all=n_all)
    return replace(roles.read(lazy.read(roles.columns), classes=classes), engine=lazy.engine)


def refuse_sums(y: object, what: str) -> None:
    """Refuse collected statistics instead of rows; `what` names the function that needs rows."""
    if isinstance(y, Collected):
        raise InputError(
            f"y is collected statistics; {what} needs rows",
            "give the outcomes and probabilities, or data= with the names of their columns",
            argument="y",
        )


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
    def absent(self) -> set[str]:
        """Return the names of variables that are missing at every row with weight."""

    @abstractmethod
    def left_out(self, explicit: Collection[str] = ()) -> dict[str, str]:
        """Return the variables that an audit leaves out, with the reason; never explicit ones."""

    @abstractmethod
    def date_notes(self) -> tuple[str, ...]:
        """Return notes on text that was read as dates, or could not be."""

    def members(self, name: str, bins: Bins, part: slice) -> Bools | None:
        """Return which rows are in some bins of a variable; None if only sums are available."""
        return None

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
    """Rows in memory, whose tables are filled on demand."""

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
        rows, moments = self.predictions, self.question.moments
        bins = self._joint_bins
        if bins is None:
            bins = choose_bins((self._variable(key, None),), **self.options)
        stats = BinnedStats.empty(bins)
        for start in range(0, len(rows), CHUNK):  # claims of all rows would not stay in the cache
            part = rows.take(slice(start, start + CHUNK))
            claim = claim_of(part, key)
            variables = part.variables or (Variable(SCORE, "numeric", claim.score),)
            filling = stats, variables, None
            add_rows([filling], claim.score, claim.hit, part.weight, moments=moments)
        return stats

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
        others = [one for one in self.predictions.variables if one.name not in explicit]
        return reasons_to_leave_out(others, self.options["n_bins"])

    def date_notes(self) -> tuple[str, ...]:
        """Return notes on text that was read as dates, or could not be."""
        return date_notes(self.predictions.variables)

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


class CollectedEvidence(Evidence):
    """Sums as the evidence of a call."""

    def __init__(self, found: Collected) -> None:
        self.collected, self.plan = found, found.plan
        plan = found.plan
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
        if not isinstance(names, list | tuple) or not all(isinstance(x, str) for x in names):
            raise InputError(
                f"v is a {type(v).__name__}", "give the name of a variable that was collected", "v"
            )
        known = {variable.name: variable for variable in self.along}
        for name in names:
            if name not in known:
                raise InputError.no_column(name, known, "v")
        plan = replace(self.plan, along=tuple(known[x] for x in names))
        return CollectedEvidence(replace(self.collected, plan=plan))

    @cached_property
    def _tables(self) -> dict[tuple[int, tuple[str, ...]], tuple[BinnedStats, Any]]:
        pairs = zip(self.plan.wanted, self.collected.tables, strict=True)
        return {
            (one.key, one.names): one.closed(table) for one, table in pairs if one.limit is None
        }

    def _table(self, key: int, names: tuple[str, ...]) -> tuple[BinnedStats, Any]:
        if (key, names) not in self._tables:
            shown = " × ".join(names) or "the score"
            raise InputError(f"{shown} was not collected", "collect it, or pass rows instead")
        return self._tables[key, names]


def _not_empty(collected: CollectedEvidence) -> CollectedEvidence:
    """Refuse statistics without labelled rows or without weight."""
    if not collected.n_rows:
        raise InputError(
            "y has no label at any row", "at least one outcome is needed", argument="y"
        )
    weighted = collected.plan.roles.sample_weight is not None
    if weighted and not collected.collected.tables[0][FIELDS.index("weight")].any():
        raise no_weight()
    return collected


def _of_collected(
    collected: CollectedEvidence, p: object, v: object, question: Question, how: dict[str, Any]
) -> CollectedEvidence:
    """Refuse arguments that collected statistics fix; return them for the given variables."""
    for argument in ("p", "data", "classes", "sample_weight", "groups"):
        if (p if argument == "p" else how.get(argument)) is not None:
            raise InputError(
                f"{argument} is given together with collected statistics",
                "omit it: it was fixed when the rows were collected",
                argument,
            )
    options, plan = question.options, collected.plan
    unlabelled = how.get("unlabelled", "raise")
    check_choice("unlabelled", unlabelled, ["raise", "drop"])
    given: dict[str, object] = {
        "from_logits": how.get("from_logits") or None,
        "unlabelled": None if unlabelled == "raise" else unlabelled,
        **({"pos_label": question.pos_label} if len(plan.roles.p) == 1 else {}),
        **options,
    }
    own = vars(plan.roles) | {
        "bins": None,
        "edges": None,
        "whole": options.get("whole"),
        "n_bins": plan.n_bins,
        "binning": str(ATOMS if v is None else plan.binning),  # the score's own bins
        "pos_label": collected.pos_label,
    }
    for argument, value in given.items():
        if value is not None and value != own[argument] and not isinstance(value, Default):
            raise InputError(
                f"{argument} is given together with collected statistics"
                + ("" if own[argument] is None else f", which have {own[argument]!r}"),
                f"set it before rows are collected: make_bins(…, {argument}=…)",
                argument,
            )
    return _not_empty(collected if v is ALL else collected.about(v))
