"""What an audit says first: what is wrong, for whom, how much repair it needs, what to do next.

All sentences of an audit are made here. The page, Markdown, the terminal, notebooks and JSON only
write them down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from varcal._audit.ladder import (
    AS_IT_IS,
    CURVE,
    NOT_ASKED,
    RETRAIN,
    SHIFT,
    VARIABLES,
    Ladder,
    Left,
    Rung,
)
from varcal._audit.record import RARE, TOP_CLASS, AuditRow, Place, Target, state_of
from varcal._text import (
    ABOVE,
    BELOW,
    CANNOT_TELL,
    CONFIDENCE,
    FINDINGS,
    FINE,
    MAY_BE,
    NO_EVIDENCE,
    REPAIR,
    RISK,
    WATCH,
    Code,
    Named,
    Sentence,
    Strong,
    StrongName,
    count,
    cut,
    decimals,
    difference,
    filled,
    gap_side,
    interval,
    limit_text,
    listed,
    percent,
    points,
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
#: Code and command that learn each repair.
LINES = {
    SHIFT: ("vc.calibrators.ShiftCalibrator().fit(p, y{})", "shift"),
    CURVE: ("vc.BetaCalibrator().fit(p, y{})", "score-curve"),
    VARIABLES: ("vc.VariableCalibrator().fit(p, y, X{})", "variables"),
}
#: Scores are called too extreme or too timid if the correlation of gap and score is at least this.
CLEAR_TREND = 0.5
#: The outcome is called a multiple of what the model says from this ratio on.
CLEAR_RATIO = 1.5
#: A level that is at most so long, such as 1 or yes, means nothing without its variable.
SHORT_LEVEL = 3


@dataclass(frozen=True)
class Figure:
    """A figure with its interval, and where that lies.

    `signed` if its sign says something; `target` is the class, where there are several, and
    `limit` its limit.
    """

    value: float
    low: float
    high: float
    state: str
    signed: bool
    target: str
    limit: float


@dataclass(frozen=True)
class Group:
    """Rows for which the model is wrong; the first one is all rows.

    Attributes
    ----------
    name, about : Sentence
        The rows, and in small print their number and predicted side.
    predicted, observed : float
        What the model says on average, and how often it happens.
    gap, low, high : float
        The difference of the two as they are shown, and its interval.
    sure : bool
        Whether the interval excludes 0.
    words : tuple of str
        What a gap above and below zero is called: too high, too low.
    after : float or None
        The difference after the advised repair.
    events, expected : float
        Rows with the outcome, and how many the model expects.
    """

    name: Sentence
    about: Sentence
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    sure: bool
    words: tuple[str, str]
    after: float | None
    events: float
    expected: float


@dataclass(frozen=True)
class Step:
    """One repair of the ladder as it is shown."""

    name: str
    about: str
    average: Figure
    by_score: Figure
    uneven: Figure
    along: str
    n_above: int
    n_may_be: int
    log_loss: float
    accuracy: float
    advised: bool


@dataclass(frozen=True)
class Todo:
    """One thing to do: its title, and sentences in which lines to run are `Code`."""

    title: str
    text: Sentence


@dataclass(frozen=True)
class Screen:
    """What a reader meets first.

    Attributes
    ----------
    verdict, badge : str
        The decision, and the decision with the advised repair.
    headline, lede : Sentence
        The finding in a few words, and in about three sentences.
    target : Sentence
        What the probabilities are of.
    groups : tuple of Group
        All rows, and for whom the model is wrong.
    groups_note : Sentence
        How to read them, or that no single group is certain.
    steps : tuple of Step
        The ladder; empty if it was not judged.
    after : str
        The repair of the column "after", or empty.
    limit : Sentence
        The limit and why it is that.
    ladder_note : Sentence
        How the ladder was judged, or why there is none.
    todos : tuple of Todo
        What to do next.
    suspicions : tuple of Sentence
        What may be wrong with the input.
    combinations : Sentence
        What was found over several variables at once; empty if that was not asked for.
    digits : int
        Decimals of points and percentages.
    rare : bool
        Whether observed over expected events is shown.
    """

    verdict: str
    badge: str
    headline: Sentence
    lede: Sentence
    target: Sentence
    groups: tuple[Group, ...]
    groups_note: Sentence
    steps: tuple[Step, ...]
    after: str
    limit: Sentence
    ladder_note: Sentence
    todos: tuple[Todo, ...]
    suspicions: tuple[Sentence, ...]
    combinations: Sentence
    digits: int
    rare: bool


def screen_of(audit: Audit, ladder: Ladder | None) -> Screen:
    """Decide what an audit says first; without a ladder nothing is advised."""
    return _Writer(audit, ladder).screen()


def name_of(target: Target, *, capital: bool = False) -> Sentence:
    """Name a target; the label comes from the data."""
    if target.name == TOP_CLASS:
        return Sentence.of("The" if capital else "the", " probability of the predicted class")
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


class _Writer:
    """Writes the sentences of one audit."""

    def __init__(self, audit: Audit, ladder: Ladder | None) -> None:
        self.audit, self.ladder = audit, ladder
        self.target = _worst_target(audit)
        self.digits = self.target.digits
        self.limit = limit_text(self.target.limit)
        self.above = [row for row in audit.rows if row.verdict == ABOVE]
        self.found = [row for row in audit.rows if row.verdict in FINDINGS]
        self.bound = max(row.high for row in audit.rows)
        self.average = state_of(self.target.gap_low, self.target.gap_high, self.target.limit)
        one = self.target.by_score
        self.by_score = state_of(one.low, one.high, self.target.limit)
        self.advice = "" if ladder is None else str(audit.advice)
        self.several = len(audit.targets) > 1

    def screen(self) -> Screen:
        audit = self.audit
        rate = min(self.target.observed, 1 - self.target.observed)
        return Screen(
            verdict=audit.verdict,
            badge=self.badge(),
            headline=self.headline(),
            lede=self.lede(),
            target=Sentence.of("the model") if self.several else name_of(self.target),
            groups=self.groups(),
            groups_note=self.groups_note(),
            steps=self.steps(),
            after=self.repaired(),
            limit=self.limit_words(),
            ladder_note=self.ladder_note(),
            todos=self.todos(),
            suspicions=tuple(Sentence.of(Named(text)) for text in audit.suspicions),
            combinations=getattr(audit.intersections, "sentence", Sentence()),
            digits=self.digits,
            rare=rate < RARE and len(audit.targets) == 1,
        )

    def points(self, value: float) -> str:
        return points(value, self.digits)

    def repaired(self) -> str:
        """Return the repair whose effect is shown beside each group, or an empty text."""
        shown = self.ladder is not None and self.ladder.places_after
        name = self.ladder.suffices if self.ladder and self.advice == RETRAIN else self.advice
        return name if shown else ""

    # ---------------------------------------------------------------- decision

    def badge(self) -> str:
        verdict = self.audit.verdict
        if verdict == REPAIR:
            return f"Repair: {self.advice}" if self.advice else "Repair"
        if verdict == FINE:
            return f"Fine, to within {self.points(self.largest())} points"
        return "Cannot tell yet" if verdict == CANNOT_TELL else "Watch"

    def largest(self) -> float:
        """Return the largest error of any kind that cannot be ruled out."""
        ends = [
            max(abs(one.gap_low), abs(one.gap_high), one.by_score.high)
            for one in self.audit.targets.values()
        ]
        return max(self.bound, *ends)

    def headline(self) -> Sentence:
        subject, verdict = name_of(self.target, capital=True), self.audit.verdict
        if verdict == REPAIR and self.average == ABOVE:
            return Sentence.of(subject, f" is {self.how_far()}")
        if verdict == REPAIR:
            wrong = ["by score"] * (self.by_score == ABOVE) + ["for groups"] * bool(self.above)
            text = f"{self.on_average()}, wrong {' and '.join(wrong)}"
            trend = self.trend() if not self.above else ""
            return Sentence.of(subject, f" is {text}" + (f": scores too {trend}" if trend else ""))
        if verdict == WATCH:
            if self.largest() <= self.target.limit:
                return Sentence.of(subject, " has small errors only")
            return Sentence.of(subject, " shows errors of unclear size")
        if verdict == FINE:
            return Sentence.of("No error found in ", name_of(self.target))
        return Sentence.of("Too few rows to judge ", name_of(self.target))

    def how_far(self) -> str:
        one = self.target
        ratio = one.predicted / one.observed if one.observed else float("inf")
        side = side_of(one.gap, one.name)
        if one.observed < RARE and one.observed and max(ratio, 1 / max(ratio, 1e-9)) > CLEAR_RATIO:
            if ratio < 1:
                part = "half" if 0.45 <= ratio <= 0.55 else f"{100 * ratio:.0f}%"
                return f"{part} of what it should be"
            return f"{ratio:.1f} times what it should be"
        gap = abs(difference(one.predicted, one.observed, self.digits))
        return f"{self.points(gap) if gap < 0.1 else decimals(100 * gap, 0)} points {side}"

    def on_average(self) -> str:
        if self.average == BELOW:
            return "right on average"
        if self.target.gap_low <= 0 <= self.target.gap_high:
            return "about right on average"
        return f"somewhat {side_of(self.target.gap, self.target.name)} on average"

    def trend(self) -> str:
        """Say whether scores are too extreme or too timid; "" if neither is clear."""
        if self.by_score != ABOVE:
            return ""
        if self.target.name == TOP_CLASS:
            return "extreme" if self.target.gap > 0 else "timid"
        columns = self.target.score.columns
        n, score, gap = (np.asarray(columns[name], float) for name in ("n", "predicted", "gap"))
        held = n > 0
        n, score, gap = n[held], score[held], gap[held]
        spread = score - np.average(score, weights=n)
        off = gap - np.average(gap, weights=n)
        size = np.sqrt(np.average(spread**2, weights=n) * np.average(off**2, weights=n))
        trend = float(np.average(spread * off, weights=n) / size) if size > 0 else 0.0
        return "" if abs(trend) < CLEAR_TREND else "extreme" if trend > 0 else "timid"

    # ---------------------------------------------------------------- lede

    def lede(self) -> Sentence:
        verdict = self.audit.verdict
        if verdict == CANNOT_TELL:
            return Sentence.of(self.too_few(), " ", self.overall(), ".")
        said = [Sentence.of(self.overall(), self.score_words(), ".")]
        if verdict == FINE:
            said.append(self.ruled_out())
        elif verdict == WATCH:
            said += [Sentence.of(one) for one in (self.shown_words(), self.unclear()) if one]
        else:
            said += [Sentence.of(one) for one in (self.off(), self.after_words()) if one]
        return Sentence.of(said[0], *(part for one in said[1:] for part in (" ", one)))

    def overall(self) -> Sentence:
        says, happens = (
            Strong(percent(value, self.digits))
            for value in (self.target.predicted, self.target.observed)
        )
        if self.target.name == TOP_CLASS:
            return Sentence.of(
                "On average the model is ", says, " sure of its answers and right in ", happens
            )
        about = Sentence()
        if self.several:
            about = Sentence.of(" for ", name_of(self.target))
        return Sentence.of("On average the model says ", says, about, " and ", happens, " happens")

    def score_words(self) -> str:
        if self.by_score != ABOVE or self.average == ABOVE:
            return ""
        return f"; by score it is off by {self.points(self.target.by_score.debiased)} points"

    def off(self) -> Sentence:
        """Name the variables along which the model is surely off by more than the limit."""
        if not self.above:
            return Sentence()
        first, many, too = self.above[0], len(self.audit.rows), self.average == ABOVE
        start, also = ("Along", "also ") if too else ("But along", "")
        once = " once that is taken off" if too else ""
        size = f"{self.points(first.uneven.debiased)} points"
        if self.several:
            size += " of {}"
        name, of = StrongName(cut(first.variable)), name_of(self.audit.targets[first.target])
        if many == 1:
            return filled(f"{start} {{}} it is {also}unevenly off{once}: by {size}.", name, of)
        return filled(
            f"{start} {{}} it is {also}surely off by more than {self.limit} points{once}, most "
            f"along {{}}: {size}.",
            Strong(f"{len(self.above)} of {count(many, 'variable')}"),
            name,
            of,
        )

    def after_words(self) -> Sentence | str:
        """Say what the advised repair leaves, of each kind of error."""
        if self.ladder is None or not self.advice:
            return ""
        if self.advice == RETRAIN:
            return "No repair that was tried predicts unseen rows better by an amount that matters."
        rung = self.ladder.rung(self.advice)
        name, left = rung.worst
        average = abs(self.ladder.shown_average(rung))
        text = (
            f"{self.subject()} leaves {self.points(average)} points on average, "
            f"{self.points(rung.by_score.value)} by score"
        )
        if left.low > 0:
            text += f" and {self.points(left.value)} along {{}}"
            text += f" ({interval(left.low, left.high, self.digits)})"
            if state_of(left.low, left.high, left.limit) == MAY_BE:
                text += f", which may be above the limit of {limit_text(left.limit)}"
        else:
            text += " and none that is shown along variables"
        if not rung.suffices:
            text += ". That is not enough"
        if self.advice == VARIABLES:
            text += self.beyond_curve(rung)
        return Sentence.of(filled(f"{text}.", Named(cut(name))), self.made_worse(rung))

    def subject(self) -> str:
        """Name the advised repair at the start of a sentence."""
        if self.advice == VARIABLES:
            return "A repair by variables"
        if self.several:
            return f"O{OF_CLASSES[self.advice][1:]}"
        return "A curve of the score" if self.advice == CURVE else f"A shift ({REPAIRS[SHIFT]})"

    def beyond_curve(self, rung: Rung) -> str:
        """Say why a curve of the score is not enough."""
        assert self.ladder is not None
        curve = self.ladder.rung(CURVE)
        if curve.above:
            return (
                f". A score curve would leave {self.points(curve.worst[1].value)} along variables"
            )
        if curve.better:
            losses = f"log-loss {curve.log_loss:.4f} instead of {rung.log_loss:.4f}"
            return f". A score curve predicts unseen rows worse ({losses})"
        return ""

    def made_worse(self, rung: Rung) -> Sentence:
        """Name the variable along which a repair adds most uneven error, if that is shown."""
        assert self.ladder is not None
        before = self.ladder.rungs[0].uneven
        name, after = max(rung.uneven.items(), key=lambda x: x[1].value - before[x[0]].value)
        old = before[name].value
        if after.low <= 0 or after.value <= after.limit or after.value - old < after.limit / 2:
            return Sentence()
        text = f" It makes {{}} worse: {self.points(old)} before, {self.points(after.value)} after."
        return filled(text, StrongName(cut(name)))

    def shown_words(self) -> str:
        """Say which average or error by score there is evidence of, if none is above the limit."""
        every = self.audit.targets.values()
        alpha, said = (1 - self.audit.level) / (2 * len(every)), []
        for one in every:
            of = f" of {one.label or one.name}" if self.several else ""
            if one.p_value <= alpha:
                ends = interval(one.gap_low, one.gap_high, self.digits)
                said.append(f"of the average{of} ({ends} points)")
            if one.by_score.p_value <= alpha:
                ends = interval(one.by_score.low, one.by_score.high, self.digits)
                said.append(f"by score{of} ({ends} points)")
        return f"There is evidence of an error {' and '.join(said[:2])}." if said else ""

    def unclear(self) -> Sentence | str:
        """Say what variables show when none is surely above the limit."""
        if not self.found:
            most = self.points(self.bound)
            return f"No variable shows uneven error, but up to {most} points could be there."
        row = max(self.found, key=lambda row: row.uneven.debiased)
        name, size = StrongName(cut(row.variable)), uneven_words(row, self.digits)
        if len(self.audit.rows) == 1:
            return filled(f"Along {{}} there is uneven error: {size}.", name)
        return filled(
            f"Along {{}} there is uneven error, along none surely more than {self.limit} points: "
            f"most along {{}}, {size}.",
            Strong(f"{len(self.found)} of {count(len(self.audit.rows), 'variable')}"),
            name,
        )

    def ruled_out(self) -> Sentence:
        which, along = "The variable shows no", "it"
        if len(self.audit.rows) > 1:
            which, along = f"None of the {len(self.audit.rows)} variables shows", "any of them"
        bound = Strong(f"more than {self.points(self.bound)} points")
        return filled(f"{which} uneven error: {{}} along {along} can be ruled out.", bound)

    def too_few(self) -> Sentence:
        most = max(self.audit.rows, key=lambda row: row.high)
        where = " along {}" if most.high >= self.largest() else ""
        events = self.target.events
        few = f" There are only {count(events, 'event')}." if self.target.few_events else ""
        return filled(
            f"Nothing to repair is shown, but {{}}{where} cannot be excluded; about "
            f"{count(self.rows_needed(), 'row')} would show {self.limit} points.{few}",
            Strong(f"errors of up to {self.points(self.largest())} points"),
            Named(cut(most.variable)),
        )

    def rows_needed(self) -> int:
        """Return with how many rows bounds would be as small as the limit, to two digits.

        Intervals shrink with the root of the number of rows.
        """
        n, limit = self.audit.n_rows, self.target.limit
        if limit <= 0:
            return n
        return max(n, int(float(f"{n * (self.largest() / limit) ** 2:.2g}")))

    # ---------------------------------------------------------------- tables

    def groups(self) -> tuple[Group, ...]:
        one = self.target
        shifts: list[float | None] = [None] * (1 + len(self.audit.places))
        if self.repaired() and self.ladder is not None:
            shifts = list(self.ladder.places_after)
        every = Sentence.of("All ", count(self.audit.n_rows, "row"))
        about = name_of(one) if self.several else Sentence()
        made = [self.group(every, about, one, shifts[0])]
        for place, shift in zip(self.audit.places, shifts[1:], strict=True):
            side = filled("among those predicted {} · ", Named(cut(place.side)))
            target = filled("{} · ", Named(cut(place.target)))
            about = Sentence.of(
                side if place.side else "",
                target if place.target != one.name else "",
                count(place.n, "row"),
            )
            made.append(self.group(place_name(place), about, place, shift))
        return tuple(made)

    def group(
        self, name: Sentence, about: Sentence, one: Target | Place, shift: float | None
    ) -> Group:
        if isinstance(one, Target):
            low, high, n, target = one.gap_low, one.gap_high, self.audit.n_rows, one.name
        else:
            low, high, n, target = one.low, one.high, one.n, one.target
        after = None
        if shift is not None and shift == shift:
            after = difference(one.predicted + shift, one.observed, self.digits)
        return Group(
            name=name,
            about=about,
            predicted=one.predicted,
            observed=one.observed,
            gap=difference(one.predicted, one.observed, self.digits),
            low=low,
            high=high,
            sure=low > 0 or high < 0,
            words=(side_of(1.0, target), side_of(-1.0, target)),
            after=after,
            events=n * one.observed,
            expected=n * one.predicted,
        )

    def groups_note(self) -> Sentence:
        if self.audit.places:
            many = "Groups may overlap; intervals" if len(self.audit.places) > 1 else "Intervals"
            return Sentence.of(f"{many} hold for all groups searched.")
        if self.found:
            return Sentence.of("No single group is certain to differ from the average.")
        return Sentence.of("No group shows evidence of an error of its own.")

    def steps(self) -> tuple[Step, ...]:
        return tuple(self.step(rung) for rung in (self.ladder.rungs if self.ladder else ()))

    def step(self, rung: Rung) -> Step:
        assert self.ladder is not None
        name, left = rung.worst

        def figure(one: Left, *, signed: bool = False) -> Figure:
            target = self.audit.targets[one.target]
            label = (target.label or target.name) if self.several else ""
            state = state_of(one.low, one.high, one.limit)
            return Figure(one.value, one.low, one.high, state, signed, label, one.limit)

        verdicts = [
            state_of(one.low, one.high, one.limit) if one.low > 0 else NO_EVIDENCE
            for one in rung.uneven.values()
        ]
        if rung.name == AS_IT_IS:
            verdicts = [row.verdict for row in self.audit.rows]
        about = OF_CLASSES.get(rung.name) if self.several else None
        shown = replace(rung.average, value=self.ladder.shown_average(rung))
        return Step(
            name=rung.name,
            about=about or REPAIRS[rung.name],
            average=figure(shown, signed=True),
            by_score=figure(rung.by_score),
            uneven=figure(left),
            along=name,
            n_above=verdicts.count(ABOVE),
            n_may_be=verdicts.count(MAY_BE),
            log_loss=rung.log_loss,
            accuracy=rung.accuracy,
            advised=rung.name == self.advice and self.audit.verdict in (REPAIR, WATCH),
        )

    def limit_words(self) -> Sentence:
        limits = [one.limit for one in self.audit.targets.values()]
        if min(limits) < max(limits):
            least, most = limit_text(min(limits)), limit_text(max(limits))
            return Sentence.of(f"Limits {least} to {most} points, each class by its own rate.")
        reason = self.target.limit_reason
        if reason == "the default" and self.target.name != TOP_CLASS:
            fifth = 0.2 * min(self.target.observed, 1 - self.target.observed)
            reason += f"; a fifth of the rarer class's rate, {points(fifth)}, is more"
        return Sentence.of(f"Limit {self.limit} points ({reason}).")

    def ladder_note(self) -> Sentence:
        if self.ladder is None:
            why = self.audit.ladder_obstacle if "_climbed" in vars(self.audit) else ""
            return Sentence.of(f"How much repair it needs was not judged: {why}." if why else "")
        sample = " a sample of" if self.ladder.sampled else ""
        many = count(self.ladder.n_rows, "row")
        rows = f"Judged on rows that did not fit each repair (of{sample} {many})"
        if self.several:
            rows += "; each figure is of the class that is worst beside its limit"
        if self.audit.verdict not in (REPAIR, WATCH):
            return Sentence.of(f"{rows}.")
        rule = (
            "advised: the first that leaves nothing above the limit and that no later one surely "
            "beats"
            if self.ladder.is_enough
            else "none is enough; the one that predicts unseen rows best is marked"
        )
        return Sentence.of(f"{rows}; {rule}.")

    # ---------------------------------------------------------------- what to do

    def todos(self) -> tuple[Todo, ...]:
        verdict, limit = self.audit.verdict, self.limit
        told = Sentence.of(Named(" ".join(self.audit.suspicions)))
        check = (Todo("Check the input first", told),) if self.audit.suspicions else ()
        if verdict == FINE:
            text = filled(
                "The probabilities may be taken as they are along {}. Variables that are not in "
                "this table were not checked.{}",
                listed([row.variable for row in self.audit.rows]),
                self.search(),
            )
            return (*check, Todo("Use it, within what was checked", text), gate("Keep it so"))
        if verdict == CANNOT_TELL:
            wait = "That nothing was found does not show that nothing is wrong."
            more = (
                f"There are {count(self.audit.n_rows)}. With fewer variables or a higher limit, "
                "fewer rows are enough."
            )
            return (
                *check,
                Todo("Do not rely on it yet", Sentence.of(wait)),
                Todo("Collect more rows", Sentence.of(more)),
                gate("Then audit again"),
            )
        title = "Until it is repaired" if verdict == REPAIR else "Use it with care"
        sure = any(max(one.low, -one.high) > self.target.limit for one in self.audit.places)
        care = (
            f"No average, score or variable is surely off by more than {limit} points, but "
            f"{'some' if sure else 'single'} groups {'are' if sure else 'may be'}: look at their "
            "tables before you rely on them."
        )
        first = self.until() if verdict == REPAIR else Sentence.of(care)
        todo = Todo(title, Sentence.of(first, self.search()))
        end = "Prove it, then keep it so" if verdict == REPAIR else "Check new rows"
        return (*check, todo, self.repair(), gate(end))

    def until(self) -> Sentence:
        name = name_of(self.target)
        if self.average == ABOVE:
            sort = " Sorting rows by it is fine; a shift does not change their order."
            text = "Do not use {} as a probability, for single rows or for totals."
            return filled(text + sort * (self.advice == SHIFT), name)
        groups = ", nor totals for one of the groups above" if self.above else ""
        start = "Totals over all rows are right. " if self.average == BELOW else ""
        return filled(f"{start}Do not use {{}} for a single row{groups}.", name)

    def search(self) -> Sentence:
        """Say how to search several variables at once, if that was not done."""
        if self.audit.intersections is not None or len(self.audit.rows) < 2:
            return Sentence()
        code = Code("vc.audit(…, slices=True)", command="varcal audit … --slices")
        return filled(" Combinations of variables were not searched; {} does that.", code)

    def repair(self) -> Todo:
        name = self.advice
        why = self.audit.ladder_obstacle if "_climbed" in vars(self.audit) else ""
        if not name and why not in ("", NOT_ASKED):
            return Todo("Find out which repair it needs", Sentence.of(f"Not judged: {why}."))
        if not name:
            text = "From the rows: what a shift, a score curve, the variables leave. "
            code = Code("vc.audit(…).ladder", command="varcal audit …")
            return Todo("Find out which repair it needs", Sentence.of(text, code))
        if name == RETRAIN:
            text = (
                "Collect more rows, or give the model itself the variables that are off: no repair "
                "on top of it gains what matters."
            )
            return Todo("Retrain it", Sentence.of(text))
        if name == AS_IT_IS:
            text = "No repair predicts unseen rows surely better."
            return Todo("Leave it as it is", Sentence.of(text))
        call, method = LINES[name]
        if self.several and name == CURVE:
            call = "vc.calibrators.DirichletCalibrator().fit(p, y{})"
        positive = f", pos_label={self.audit.pos_label}" if self.audit.pos_label else ""
        command = f"varcal calibrate … --method {method} -o repair.json"
        line = Code(call.format(positive), command=command)
        return Todo(f"Repair: {name}", Sentence.of(self.about_repair(name), line))

    def about_repair(self, name: str) -> Sentence | str:
        steps = self.ladder.steps if self.ladder is not None else {}
        if name == SHIFT and SHIFT in steps:
            size = decimals(abs(steps[SHIFT]), 2)
            text = f"It adds {size} to" if steps[SHIFT] > 0 else f"It takes {size} off"
            return f"{text} the log-odds of every row. "
        if name == CURVE:
            return "It reads the score alone, no column. "
        if name != VARIABLES:
            return ""
        kept = self.audit.protected
        reads = f"It reads {count(len(self.audit.rows) - len(kept), 'column')}"
        trees = "whenever it scores, and may hold trees: validate it as a second model. "
        if kept:
            return filled(f"{reads} (not {{}}) {trees}", listed(list(kept)))
        code = Code("audit(…, protected=[…])", command="--protected")
        return filled(f"{reads} {trees}Columns that it may not read: {{}}. ", code)


def gate(title: str) -> Todo:
    """Say how to check rows that are new."""
    text = (
        "On rows that neither the model nor a repair has seen. It exits 1 as long as the verdict "
        "is repair. "
    )
    return Todo(title, Sentence.of(text, Code("varcal audit new.csv … --gate")))


def _worst_target(audit: Audit) -> Target:
    """Return the target that is reported: the first, unless another one is further off."""

    def size(one: Target) -> float:
        return max(one.gap_low, -one.gap_high, one.by_score.low, 0.0) / max(one.limit, 1e-9)

    most, first = max(audit.targets.values(), key=size), size(audit.target)
    return most if size(most) > max(1, 1.5 * first if first > 1 else 0) else audit.target


def uneven_words(row: AuditRow, digits: int) -> str:
    """Say how large the uneven error of a row is, or at most.

    The interval is the one that holds for all variables at once.
    """
    if row.verdict in FINDINGS:
        return (
            f"{points(row.uneven.debiased, digits)} points ({interval(row.low, row.high, digits)})"
        )
    return f"at most {points(row.high, digits)} points"
