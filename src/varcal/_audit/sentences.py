"""What an audit says first: what is wrong, for whom, how much repair it needs, what to do next.

All sentences of an audit are made here. The page, Markdown, the terminal, notebooks and JSON only
write them down.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from varcal._audit.ladder import (
    AS_IT_IS,
    CURVE,
    NOT_ASKED,
    RETRAIN,
    SHIFT,
    TRY_VARIABLES,
    VARIABLES,
    Ladder,
    Left,
    Rung,
)
from varcal._audit.record import TOP_CLASS, AuditRow, Place, Target
from varcal._audit.verdict import RARE, state_of
from varcal._input.dates import CYCLES, part_name
from varcal._text import (
    ABOVE,
    BELOW,
    CANNOT_TELL,
    CONFIDENCE,
    FINDINGS,
    FINE,
    MAY_BE,
    REPAIR,
    RISK,
    WATCH,
    Code,
    Named,
    Sentence,
    Strong,
    StrongName,
    Unit,
    count,
    cut,
    decimals,
    filled,
    gap_side,
    listed,
)

if TYPE_CHECKING:
    from varcal._audit.result import Audit

#: What each repair is, in a few words.
REPAIRS = {
    AS_IT_IS: "no repair",
    SHIFT: "one number added to every score",
    CURVE: "one curve for every score",
    VARIABLES: "a correction that reads the columns",
}
#: The same with more than two classes.
OF_CLASSES = {SHIFT: "one number per class", CURVE: "one map of all scores (Dirichlet)"}
#: The same for predicted means.
OF_MEANS = {SHIFT: "one factor for every prediction", CURVE: "one curve of the prediction"}
#: Code and command that learn each repair.
LINES = {
    SHIFT: ("vc.calibrators.ShiftCalibrator().fit(p, y{})", "shift"),
    CURVE: ("vc.calibrators.BetaCalibrator().fit(p, y{})", "score-curve"),
    VARIABLES: ("vc.VariableCalibrator().fit(p, y, X{})", "variables"),
}
#: Said where no repair that was tried is enough.
NOT_TRIED = "; variables were not tried"
#: Scores are called too extreme or too timid if the correlation of gap and score is at least this.
CLEAR_TREND = 0.5
#: The outcome is called a multiple of what the model says from this ratio on.
CLEAR_RATIO = 1.5
#: A level that is at most so long, such as 1 or yes, means nothing without its variable.
SHORT_LEVEL = 3


@dataclass(frozen=True)
class Group:
    """Rows for which the model is wrong; the first one is all rows.

    Attributes
    ----------
    name, about : Sentence
        The rows, and in small print their number and predicted side.
    n : int
        Their number.
    predicted, observed : float
        What the model says on average, and how often it happens.
    gap, low, high : float
        The difference of the two as they are shown, and its interval.
    words : tuple of str
        What a gap above and below zero is called: too high, too low.
    after : float or None
        The difference after the advised repair.
    note : str
        What is said instead of the interval.
    shift : float
        By how much the repair changes what the model says.
    """

    name: Sentence
    about: Sentence
    n: int
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    words: tuple[str, str]
    after: float | None = None
    note: str = ""
    shift: float = 0.0

    @property
    def is_sure(self) -> bool:
        """Whether the difference is surely not zero."""
        return (self.low > 0 or self.high < 0) and not self.note

    @property
    def repaired(self) -> Group | None:
        """The same rows after the advised repair."""
        if self.after is None:
            return None
        by = self.after - self.gap
        moved = replace(self, predicted=self.predicted + self.shift, gap=self.after, after=None)
        return replace(moved, low=self.low + by, high=self.high + by)


@dataclass(frozen=True)
class ShownRung:
    """One repair of the ladder as it is shown.

    Attributes
    ----------
    rung : Rung
        What it leaves.
    about : str
        What it is.
    average : Left
        The average that it leaves, as the percentages beside it show it.
    n_above, n_may_be : int
        Variables along which more than the limit is left, surely or perhaps.
    advised : bool
        Whether it is the one to use.
    """

    rung: Rung
    about: str
    average: Left
    n_above: int
    n_may_be: int
    advised: bool


#: One thing to do: its title, and sentences in which lines to run are `Code`.
Todo = tuple[str, Sentence]


def name_of(target: Target, *, capital: bool = False) -> Sentence:
    """Name a target; the label comes from the data."""
    if target.name == TOP_CLASS:
        return Sentence.of("The" if capital else "the", " probability of the predicted class")
    if target.scale != "points":
        mean = Named(cut(target.name))
        return Sentence.of("The" if capital else "the", " predicted mean of ", mean)
    return Sentence.of(Named(cut(target.name)))


def side_of(gap: float, target: str = "") -> str:
    """Name the sign of a gap: too high, too low; of the predicted class too sure, not sure enough.

    >>> side_of(0.1), side_of(-0.1), side_of(0.1, "top class")
    ('too high', 'too low', 'too sure')
    """
    return gap_side(gap, CONFIDENCE if target == TOP_CLASS else RISK)


def place_name(place: Place) -> Sentence:
    """Name a place: a telling level by itself, anything else with its variable."""
    if place.label != f"{place.variable}: {place.text}" or len(place.text) <= SHORT_LEVEL:
        return Sentence.of(Named(cut(place.label)))
    return Sentence.of(Named(cut(place.variable)), " ", Named(cut(place.text)))


class Screen:
    """What a reader meets first; without a ladder nothing is advised.

    Attributes
    ----------
    audit, ladder : Audit, Ladder or None
        The results.
    reported : Target
        What the probabilities are of that average and score are reported for.
    unit : Unit
        How rates and errors are written.
    commands : bool
        Whether advice names commands instead of Python.
    advice : str
        The repair to use, or empty.
    several, of_mean : bool
        Whether there are several targets, and whether they are means.
    by : str
        What the error over bins of the prediction itself is called.
    """

    def __init__(self, audit: Audit, ladder: Ladder | None, *, commands: bool = False) -> None:
        self.audit, self.ladder = audit, ladder
        self.reported = _worst_target(audit)
        self.unit, self.commands = self.reported.unit, commands
        self.advice = "" if ladder is None else str(audit.advice)
        self.several = len(audit.targets) > 1
        self.of_mean = self.reported.scale != "points"
        self.score = "prediction" if self.of_mean else "score"
        self.by = f"by {self.score}"
        self.curve = "curve of the prediction" if self.of_mean else "score curve"
        self._limit = self.unit.limit_size(self.reported.limit)
        self._above = [row for row in audit.rows if row.verdict == ABOVE]
        self._found = [row for row in audit.rows if row.verdict in FINDINGS]
        self._bound = max(row.high for row in audit.rows)
        one, score = self.reported, self.reported.by_score
        self._average = state_of(one.gap_low, one.gap_high, one.limit)
        self._by_score = state_of(score.low, score.high, one.limit)

    @property
    def rare(self) -> bool:
        """Whether observed over expected events is shown."""
        rate = self.reported.observed
        return min(rate, 1 - rate) < RARE and not self.several and not self.of_mean

    @property
    def target(self) -> Sentence:
        """What the probabilities are of."""
        return Sentence.of("the model") if self.several else name_of(self.reported)

    @property
    def suspicions(self) -> tuple[Sentence, ...]:
        """What may be wrong with the input."""
        return tuple(Sentence.of(Named(text)) for text in self.audit.suspicions)

    @property
    def combinations(self) -> Sentence:
        """What was found over several variables at once; empty if that was not asked for."""
        return getattr(self.audit.intersections, "sentence", Sentence())

    def code(self, python: str, command: str) -> Code:
        """Return a line to run, in Python or in a shell."""
        return Code(command if self.commands else python)

    @property
    def after(self) -> str:
        """The repair whose effect is shown beside each group, or an empty text."""
        shown = self.ladder is not None and self.ladder.places_after
        none = self.advice in (RETRAIN, TRY_VARIABLES)
        name = self.ladder.suffices if self.ladder and none else self.advice
        return name if shown else ""

    # ---------------------------------------------------------------- decision

    @property
    def badge(self) -> str:
        """The decision with the advised repair."""
        verdict = self.audit.verdict
        if verdict == REPAIR:
            return f"Repair: {self.advice}" if self.advice else "Repair"
        if verdict == FINE:
            return f"Fine, to within {self.unit.size(self._largest())}"
        return "Cannot tell yet" if verdict == CANNOT_TELL else "Watch"

    def _largest(self) -> float:
        """Return the largest error of any kind that cannot be ruled out."""
        ends = [
            max(abs(one.gap_low), abs(one.gap_high), one.by_score.high)
            for one in self.audit.targets.values()
        ]
        return max(self._bound, *ends)

    @property
    def headline(self) -> Sentence:
        """The finding in a few words."""
        subject, verdict = name_of(self.reported, capital=True), self.audit.verdict
        if verdict == REPAIR and self._average == ABOVE:
            return Sentence.of(subject, f" is {self._how_far()}")
        if verdict == REPAIR:
            wrong = [self.by] * (self._by_score == ABOVE) + ["for groups"] * bool(self._above)
            text = f"{self._on_average()}, wrong {' and '.join(wrong)}"
            trend = self._trend() if not self._above else ""
            scores = "predictions" if self.of_mean else "scores"
            return Sentence.of(
                subject, f" is {text}" + (f": {scores} too {trend}" if trend else "")
            )
        if verdict == WATCH:
            if self._largest() <= self.reported.limit:
                return Sentence.of(subject, " has small errors only")
            return Sentence.of(subject, " shows errors of unclear size")
        if verdict == FINE:
            return Sentence.of("No error found in ", name_of(self.reported))
        return Sentence.of("Too few rows to judge ", name_of(self.reported))

    def _how_far(self) -> str:
        one = self.reported
        ratio = one.predicted / one.observed if one.observed else float("inf")
        side = side_of(one.gap, one.name)
        if one.scale == "relative":
            return f"{side}: A/E {self.unit.signed(one.gap)}"
        if (
            not self.of_mean
            and one.observed < RARE
            and one.observed
            and max(ratio, 1 / max(ratio, 1e-9)) > CLEAR_RATIO
        ):
            if ratio < 1:
                part = "half" if 0.45 <= ratio <= 0.55 else f"{100 * ratio:.0f}%"
                return f"{part} of what it should be"
            return f"{ratio:.1f} times what it should be"
        gap = abs(self.unit.difference(one.predicted, one.observed))
        unit = self.unit if gap < 0.1 else replace(self.unit, digits=0)
        return f"{unit.size(gap)} {side}"

    def _on_average(self) -> str:
        if self._average == BELOW:
            return "right on average"
        if self.reported.gap_low <= 0 <= self.reported.gap_high:
            return "about right on average"
        return f"somewhat {side_of(self.reported.gap, self.reported.name)} on average"

    def _trend(self) -> str:
        """Say whether scores are too extreme or too timid; "" if neither is clear."""
        if self._by_score != ABOVE:
            return ""
        if self.reported.name == TOP_CLASS:
            return "extreme" if self.reported.gap > 0 else "timid"
        columns = self.reported.score.columns
        n, score, gap = (np.asarray(columns[name], float) for name in ("n", "predicted", "gap"))
        held = n > 0
        n, score, gap = n[held], score[held], gap[held]
        spread = score - np.average(score, weights=n)
        off = gap - np.average(gap, weights=n)
        size = np.sqrt(np.average(spread**2, weights=n) * np.average(off**2, weights=n))
        trend = float(np.average(spread * off, weights=n) / size) if size > 0 else 0.0
        return "" if abs(trend) < CLEAR_TREND else "extreme" if trend > 0 else "timid"

    # ---------------------------------------------------------------- lede

    @property
    def lede(self) -> Sentence:
        """The finding in about three sentences."""
        verdict = self.audit.verdict
        if verdict == CANNOT_TELL:
            return Sentence.of(self._too_few(), " ", self._overall(), ".")
        said = [Sentence.of(self._overall(), self._score_words(), ".")]
        if verdict == FINE:
            said.append(self._ruled_out())
        elif verdict == WATCH:
            said += [Sentence.of(one) for one in (self._shown_words(), self._unclear()) if one]
        else:
            said += [Sentence.of(one) for one in (self._off(), self._after_words()) if one]
        return Sentence.of(said[0], *(part for one in said[1:] for part in (" ", one)))

    def _overall(self) -> Sentence:
        says, happens = (
            Strong(self.unit.rate(value))
            for value in (self.reported.predicted, self.reported.observed)
        )
        if self.reported.name == TOP_CLASS:
            return Sentence.of(
                "On average the model is ", says, " sure of its answers and right in ", happens
            )
        if self.of_mean:
            one = self.reported
            sure = self.unit.signed_ends(one.gap_low, one.gap_high)
            gap = f" is observed: {self.unit.off} {self.unit.signed(one.gap)} ({sure})"
            return Sentence.of("On average the model predicts ", says, " and ", happens, gap)
        about = Sentence()
        if self.several:
            about = Sentence.of(" for ", name_of(self.reported))
        return Sentence.of("On average the model says ", says, about, " and ", happens, " happens")

    def _score_words(self) -> str:
        if self._by_score != ABOVE or self._average == ABOVE:
            return ""
        return f"; {self.by} it is off by {self.unit.size(self.reported.by_score.debiased)}"

    def _off(self) -> Sentence:
        """Name the variables along which the model is surely off by more than the limit."""
        if not self._above:
            return Sentence()
        first, many, too = self._above[0], len(self.audit.rows), self._average == ABOVE
        start, also = ("Along", "also ") if too else ("But along", "")
        once = " once that is taken off" if too else ""
        size = f"{self.unit.size(first.uneven.debiased)}"
        if self.several:
            size += " of {}"
        name, of = StrongName(cut(first.variable)), name_of(self.audit.targets[first.target])
        if many == 1:
            return filled(f"{start} {{}} it is {also}unevenly off{once}: by {size}.", name, of)
        return filled(
            f"{start} {{}} it is {also}surely off by more than {self._limit}{once}, most "
            f"along {{}}: {size}.",
            Strong(f"{len(self._above)} of {count(many, 'variable')}"),
            name,
            of,
        )

    def _after_words(self) -> Sentence | str:
        """Say what the advised repair leaves, of each kind of error."""
        if self.ladder is None or not self.advice:
            return ""
        if self.advice == RETRAIN:
            return "No repair that was tried predicts unseen rows better by an amount that matters."
        if self.advice == TRY_VARIABLES:
            return f"Neither a shift nor a {self.curve} is enough, and variables were not tried."
        rung = self.ladder.rung(self.advice)
        name, left = rung.worst
        average = abs(self.ladder.shown_average(rung))
        text = (
            f"{self._subject()} leaves {self.unit.size(average)} on average, "
            f"{self.unit.error(rung.by_score.value)} {self.by}"
        )
        if left.low > 0:
            text += f" and {self.unit.error(left.value)} along {{}}"
            text += f" ({self.unit.ends(left.low, left.high)})"
            if left.state == MAY_BE:
                text += f", which may be above the limit of {self.unit.limit(left.limit)}"
        else:
            text += " and no clear error along variables"
        if not rung.suffices:
            text += ". That is not enough" + NOT_TRIED * (not self.ladder.tried_variables)
        if self.advice == VARIABLES:
            text += self._beyond_curve(rung)
        return Sentence.of(filled(f"{text}.", Named(cut(name))), self._made_worse(rung))

    def _subject(self) -> str:
        """Name the advised repair at the start of a sentence."""
        if self.advice == VARIABLES:
            return "A repair by variables"
        if self.several or self.of_mean:
            return f"O{self._about[self.advice][1:]}"
        return "A curve of the score" if self.advice == CURVE else f"A shift ({REPAIRS[SHIFT]})"

    @property
    def _about(self) -> dict[str, str]:
        """What each repair is."""
        more = OF_CLASSES if self.several else OF_MEANS if self.of_mean else {}
        if self.of_mean and self.reported.scale == "difference":
            more = more | {SHIFT: "one number added to every prediction"}
        return REPAIRS | more

    def _beyond_curve(self, rung: Rung) -> str:
        """Say why a curve of the score is not enough."""
        assert self.ladder is not None
        curve = self.ladder.rung(CURVE)
        if curve.above:
            left = self.unit.error(curve.worst[1].value)
            return f". A {self.curve} would leave {left} along variables"
        if curve.better:
            losses = f"{self.ladder.loss_text(curve)} instead of {self.ladder.loss_text(rung)}"
            return f". A {self.curve} predicts unseen rows worse ({self.ladder.loss} {losses})"
        return ""

    def _made_worse(self, rung: Rung) -> Sentence:
        """Name the variable along which a repair adds most uneven error, if that is shown."""
        assert self.ladder is not None
        before = self.ladder.rungs[0].uneven
        name, after = max(rung.uneven.items(), key=lambda x: x[1].value - before[x[0]].value)
        old = before[name].value
        if after.low <= 0 or after.value <= after.limit or after.value - old < after.limit / 2:
            return Sentence()
        values = f"{self.unit.error(old)} before, {self.unit.error(after.value)} after"
        repair = "variables" if rung.name == VARIABLES else rung.name
        return filled(f" The repair by {repair} makes {{}} worse: {values}.", StrongName(cut(name)))

    def _shown_words(self) -> str:
        """Say which average or error by score there is evidence of, if none is above the limit."""
        every = self.audit.targets.values()
        alpha, said = (1 - self.audit.level) / (2 * len(every)), []
        for one in every:
            of = f" of {one.label or one.name}" if self.several else ""
            if one.p_value <= alpha:
                ends = f"{self._ends(one.gap_low, one.gap_high)} {self.unit.word}"
                if self.of_mean:
                    ends = f"{self.unit.off} {self.unit.signed_ends(one.gap_low, one.gap_high)}"
                said.append(f"of the average{of} ({ends})")
            if one.by_score.p_value <= alpha:
                ends = self._ends(one.by_score.low, one.by_score.high)
                said.append(f"{self.by}{of} ({ends} {self.unit.word})")
        return f"There is evidence of an error {' and '.join(said[:2])}." if said else ""

    def _ends(self, low: float, high: float) -> str:
        """Write an interval that excludes 0 with the digits that show it."""
        return self.unit.enough(min(low, high, key=abs)).ends(low, high)

    def _unclear(self) -> Sentence | str:
        """Say what variables show when none is surely above the limit."""
        if not self._found:
            most = self.unit.size(self._bound)
            return f"No variable shows uneven error, but up to {most} cannot be ruled out."
        row = max(self._found, key=lambda row: row.uneven.debiased)
        name, size = StrongName(cut(row.variable)), uneven_words(row, self.unit)
        if len(self.audit.rows) == 1:
            return filled(f"Along {{}} there is uneven error: {size}.", name)
        return filled(
            f"There is uneven error along {{}}, most along {{}}: {size}. Along none is it surely "
            f"more than {self._limit}.",
            Strong(f"{len(self._found)} of {count(len(self.audit.rows), 'variable')}"),
            name,
        )

    def _ruled_out(self) -> Sentence:
        which, along = "The variable shows no", "it"
        if len(self.audit.rows) > 1:
            which, along = f"None of the {len(self.audit.rows)} variables shows", "any of them"
        bound = Strong(f"more than {self.unit.size(self._bound)}")
        return filled(f"{which} uneven error: {{}} along {along} can be ruled out.", bound)

    def _too_few(self) -> Sentence:
        most = max(self.audit.rows, key=lambda row: row.high)
        where = " along {}" if most.high >= self._largest() else ""
        rarer = f"{count(self.reported.events, 'row')} of the rarer outcome"
        few = "A few rows carry most of the variance" if self.of_mean else f"There are only {rarer}"
        few = f" {few}." if self.reported.few_events else ""
        return filled(
            f"Nothing that needs repair was found, but {{}}{where} cannot be ruled out; about "
            f"{count(self._rows_needed(), 'row')} would show an error of {self._limit}.{few}",
            Strong(f"errors of up to {self.unit.size(self._largest())}"),
            Named(cut(most.variable)),
        )

    def _rows_needed(self) -> int:
        """Return with how many rows bounds would be as small as the limit, to two digits.

        Intervals shrink with the root of the number of rows.
        """
        n, limit = self.audit.n_rows, self.reported.limit
        if limit <= 0:
            return n
        return max(n, int(float(f"{n * (self._largest() / limit) ** 2:.2g}")))

    # ---------------------------------------------------------------- tables

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All rows, and for whom the model is wrong."""
        one = self.reported
        shifts: list[float | None] = [None] * (1 + len(self.audit.places))
        if self.after and self.ladder is not None:
            shifts = list(self.ladder.places_after)
        every = Sentence.of("All ", count(self.audit.n_rows, "row"))
        about = name_of(one) if self.several else Sentence()
        made = [self._group(every, about, one, shifts[0])]
        for place, shift in zip(self.audit.places, shifts[1:], strict=True):
            side = filled("among those predicted {} · ", Named(cut(place.side)))
            target = filled("{} · ", Named(cut(place.target)))
            about = Sentence.of(
                side if place.side else "",
                target if place.target != one.name else "",
                count(place.n, "row"),
            )
            made.append(self._group(place_name(place), about, place, shift))
        return tuple(made)

    def _group(
        self, name: Sentence, about: Sentence, one: Target | Place, shift: float | None
    ) -> Group:
        if isinstance(one, Target):
            low, high, n, target = one.gap_low, one.gap_high, self.audit.n_rows, one.name
        else:
            low, high, n, target = one.low, one.high, one.n, one.target
        gap = self.unit.difference(one.predicted, one.observed)
        words = side_of(1.0, target), side_of(-1.0, target)
        found = Group(name, about, n, one.predicted, one.observed, gap, low, high, words)
        if shift is None or shift != shift:
            return found
        after = self.unit.difference(one.predicted + shift, one.observed)
        return replace(found, after=after, shift=shift)

    @property
    def protected(self) -> tuple[Group, ...]:
        """All levels or bins of the protected columns, each with the interval of its own."""
        made = []
        kept = [row for row in self.audit.rows if row.variable in self.audit.protected]
        for row in sorted(kept, key=lambda row: self.audit.protected.index(row.variable)):
            colon = ":" if row.kind == "levels" else ""
            words = side_of(1.0, row.target), side_of(-1.0, row.target)
            names = ("bin", "n", "predicted", "observed", "gap_low", "gap_high")
            for one in row.bins["all"]:
                text, n, says, happens, low, high = (one[name] for name in names)
                if n:
                    name = Sentence.of(Named(cut(f"{row.variable}{colon} {text}")))
                    gap, rows = self.unit.difference(says, happens), Sentence.of(count(n, "row"))
                    made.append(Group(name, rows, n, says, happens, gap, low, high, words))
        return tuple(made)

    @property
    def groups_note(self) -> Sentence:
        """How to read the groups, or that no single one is certain."""
        if self.audit.places:
            many = "Groups may overlap; intervals" if len(self.audit.places) > 1 else "Intervals"
            return Sentence.of(f"{many} hold for all groups searched.")
        if self._found:
            return Sentence.of("No single group is certain to differ from the average.")
        return Sentence.of("No group shows evidence of an error of its own.")

    @cached_property
    def steps(self) -> tuple[ShownRung, ...]:
        """The ladder; empty if it was not judged."""
        if self.ladder is None:
            return ()
        made, serious = [], self.audit.verdict in (REPAIR, WATCH)
        for rung in self.ladder.rungs:
            verdicts = [left.state for left in rung.uneven.values() if left.low > 0]
            if rung.name == AS_IT_IS:
                verdicts = [row.verdict for row in self.audit.rows]
            average = replace(rung.average, value=self.ladder.shown_average(rung))
            counts = verdicts.count(ABOVE), verdicts.count(MAY_BE)
            advised = serious and rung.name == self.advice
            made.append(ShownRung(rung, self._about[rung.name], average, *counts, advised))
        return tuple(made)

    def class_of(self, left: Left) -> str:
        """Return the class that a figure is of, where there are several; otherwise nothing."""
        return (self.audit.targets[left.target].label or left.target) if self.several else ""

    @property
    def limit(self) -> Sentence:
        """The limit, and why it is that."""
        limits = [one.limit for one in self.audit.targets.values()]
        if min(limits) < max(limits):
            ends = f"{self.unit.limit(min(limits))} to {self.unit.limit_size(max(limits))}"
            return Sentence.of(f"Limits {ends}, each class by its own rate.")
        reason = self.reported.limit_reason
        if reason == "the default" and self.reported.name != TOP_CLASS:
            fifth = 0.2 * min(self.reported.observed, 1 - self.reported.observed)
            reason += f"; a fifth of the rarer class's rate would be {Unit().error(fifth)}"
        return Sentence.of(f"Limit {self._limit} ({reason}).")

    @property
    def ladder_note(self) -> Sentence:
        """How the ladder was judged, or why there is none."""
        if self.ladder is None:
            why = self.audit.ladder_obstacle if "_climbed" in vars(self.audit) else ""
            return Sentence.of(f"How much repair it needs was not judged: {why}." if why else "")
        sample = " a sample of" if self.ladder.sampled else ""
        many = count(self.ladder.n_rows, "row")
        rows = f"Each repair is judged on rows that it was not fitted on (of{sample} {many})."
        if self.several:
            rows += " Each figure is of the class that is furthest above its limit."
        if self.audit.verdict not in (REPAIR, WATCH):
            return Sentence.of(rows)
        rule = "None is enough; the one that predicts unseen rows best is marked"
        if self.ladder.is_enough:
            rule = "Advised: the first that leaves nothing above the limit and that no later one "
            rule += "surely beats"
        elif self.advice in (RETRAIN, TRY_VARIABLES):
            rule = "None is enough, and none predicts unseen rows better by an amount that matters"
        untried = "" if self.ladder.is_enough or self.ladder.tried_variables else NOT_TRIED
        return Sentence.of(f"{rows} {rule}{untried}.")

    # ---------------------------------------------------------------- what to do

    @property
    def todos(self) -> tuple[Todo, ...]:
        """What to do next."""
        verdict, limit = self.audit.verdict, self._limit
        told = Sentence.of(Named(" ".join(self.audit.suspicions)))
        check = (("Check the input first", told),) if self.audit.suspicions else ()
        if verdict == FINE:
            text = filled(
                "Along {} the "
                f"{'predictions' if self.of_mean else 'probabilities'} can be used as they are. "
                "Other variables were not checked.{}",
                listed([row.variable for row in self.audit.rows]),
                self._search(),
            )
            return (*check, ("Use it, within what was checked", text), self._gate("Keep checking"))
        if verdict == CANNOT_TELL:
            wait = "That nothing was found does not show that nothing is wrong."
            more = (
                f"There are {count(self.audit.n_rows)}. With fewer variables or a higher limit, "
                "fewer rows are enough."
            )
            return (
                *check,
                ("Do not rely on it yet", Sentence.of(wait)),
                ("Collect more rows", Sentence.of(more)),
                self._gate("Then audit again"),
            )
        title = "Until it is repaired" if verdict == REPAIR else "Use it with care"
        sure = any(max(one.low, -one.high) > self.reported.limit for one in self.audit.places)
        care = (
            f"No average, {self.score} or variable is surely off by more than {limit}, but "
            f"{'some' if sure else 'single'} groups {'are' if sure else 'may be'}: look at their "
            "tables before you rely on them."
        )
        first = self._until() if verdict == REPAIR else Sentence.of(care)
        end = "Prove it, then keep checking" if verdict == REPAIR else "Check new rows"
        care_first = (title, Sentence.of(first, self._search()))
        return (*check, care_first, self._repair(), self._gate(end))

    def _until(self) -> Sentence:
        name = name_of(self.reported)
        if self._average == ABOVE:
            sort = " Sorting rows by it is fine; a shift does not change their order."
            how = "" if self.of_mean else " as a probability,"
            text = f"Do not use {{}}{how} for single rows or for totals."
            return filled(text + sort * (self.advice == SHIFT), name)
        groups = ", or on totals for one of the groups above" if self._above else ""
        start = "Totals over all rows are right. " if self._average == BELOW else ""
        return filled(f"{start}Do not rely on {{}} for a single row{groups}.", name)

    def _search(self) -> Sentence:
        """Say how to search several variables at once, if that was not done."""
        if self.audit.intersections is not None or len(self.audit.rows) < 2 or self.of_mean:
            return Sentence()
        code = self.code("vc.audit(…, slices=True)", "varcal audit … --slices")
        return filled(" Combinations of variables were not searched; {} does that.", code)

    def _repair(self) -> Todo:
        name = self.advice
        why = self.audit.ladder_obstacle if "_climbed" in vars(self.audit) else ""
        if not name and why not in ("", NOT_ASKED):
            return "Find out which repair it needs", Sentence.of(f"Not judged: {why}.")
        if not name:
            text = f"The ladder shows what a shift, a {self.curve} and the variables leave. "
            code = self.code("vc.audit(…).ladder", "varcal audit …")
            return "Find out which repair it needs", Sentence.of(text, code)
        if name == TRY_VARIABLES:
            text = f"Neither a shift nor a {self.curve} gains what matters{NOT_TRIED}. "
            code = self.code('vc.audit(…, ladder="all")', "varcal audit … --ladder all")
            return "Try the variables", Sentence.of(text, code)
        if name == RETRAIN:
            text = (
                "Collect more rows, or give the model itself the variables that are off: no repair "
                "on top of it gains what matters."
            )
            return "Retrain it", Sentence.of(text)
        if name == AS_IT_IS:
            text = "No repair predicts unseen rows surely better."
            return "Leave it as it is", Sentence.of(text)
        call, method = LINES[name]
        if self.of_mean:
            link = "" if self.reported.scale == "relative" else 'link="identity"'
            read = ", X" * (name == VARIABLES)
            read += ", exposure=…" * any("exposure" in note for note in self.audit.notes)
            line = Code(f"vc.calibrators.MeanCalibrator({link}).fit(mu, y{read})")
            return f"Repair: {name}", Sentence.of(self._about_repair(name), line)
        if self.several and name == CURVE:
            call = "vc.calibrators.DirichletCalibrator().fit(p, y{})"
        positive = f", pos_label={self.audit.pos_label}" if self.audit.pos_label else ""
        command = f"varcal calibrate … --method {method} -o repair.json"
        if name == VARIABLES and self.audit.protected:
            command += f" --exclude {shlex.quote(','.join(self.audit.protected))}"
        line = self.code(call.format(positive), command)
        return f"Repair: {name}", Sentence.of(self._about_repair(name), line)

    def _about_repair(self, name: str) -> Sentence | str:
        steps = self.ladder.steps if self.ladder is not None else {}
        if name == SHIFT and SHIFT in steps:
            size = decimals(abs(steps[SHIFT]), 2)
            text = f"It adds {size} to" if steps[SHIFT] > 0 else f"It takes {size} off"
            return f"{text} the log-odds of every row. "
        if name == CURVE:
            return f"It reads only the {self.score}. "
        if name != VARIABLES:
            return ""
        kept = self.audit.protected
        known = [row.variable for row in self.audit.rows]
        every = [*known, *(name for name, _ in self.audit.left_out)]
        parts = {part_name((name, part, "")) for name in every for part in CYCLES}
        read = [name for name in known if name not in kept and name not in parts]
        reads = f"It reads {count(len(read), 'column')}"
        trees = "for every prediction and may hold trees: validate it like a second model. "
        trees = trees.replace(" and may hold trees", "") if self.of_mean else trees
        if kept:
            without = "(not {})" if self.commands else "(leave {} out of X)"
            return filled(f"{reads} {without} {trees}", listed(list(kept)))
        code = self.code("audit(…, protected=[…])", "--protected")
        return filled(f"{reads} {trees}Columns that it may not read are named in {{}}. ", code)

    def _gate(self, title: str) -> Todo:
        """Say how to check rows that are new."""
        fails = "The command exits with 1" if self.commands else "This test fails"
        text = (
            "Use rows that neither the model nor a repair has seen. "
            f"{fails} as long as the verdict is repair. "
        )
        code = self.code("vc.testing.assert_calibrated(…)", "varcal audit new.csv … --gate")
        return title, Sentence.of(text, code)


def split_code(text: Sentence) -> tuple[Sentence, str]:
    """Put the line to run at the end of a sentence into a place of its own."""
    *parts, last = text.parts
    return (Sentence(tuple(parts)), last) if isinstance(last, Code) else (text, "")


def _worst_target(audit: Audit) -> Target:
    """Return the target that is reported: the first, unless another one is further off."""

    def size(one: Target) -> float:
        return max(one.gap_low, -one.gap_high, one.by_score.low, 0.0) / max(one.limit, 1e-9)

    most, first = max(audit.targets.values(), key=size), size(audit.target)
    return most if size(most) > max(1, 1.5 * first if first > 1 else 0) else audit.target


def row_unit(row: AuditRow, unit: Unit) -> Unit:
    """Return the unit in which an error that there is evidence of is not 0.0."""
    return unit if row.verdict not in FINDINGS else unit.enough(row.uneven.debiased)


def uneven_words(row: AuditRow, unit: Unit) -> str:
    """Say how large the uneven error of a row is, or at most.

    The interval is the one that holds for all variables at once.
    """
    if row.verdict not in FINDINGS:
        return f"at most {unit.size(row.high)}"
    unit = row_unit(row, unit)
    return f"{unit.size(row.uneven.debiased)} ({unit.ends(row.low, row.high)})"
