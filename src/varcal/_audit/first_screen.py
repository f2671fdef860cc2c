"""The first screen of an audit: what is wrong, for whom, how surely, and what to do about it.

All decisions and words of an audit are made here and in `screen`. The page, Markdown, the terminal,
notebooks and `audit.sentence` only write them down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from varcal._audit.screen.checks import (
    Check,
    Column,
    along_variables,
    average,
    by_score,
    columns_of,
    hidden_errors,
    rows_off,
    variables_off,
)
from varcal._audit.screen.judgement import (
    CANNOT_TELL,
    FINE,
    REPAIR_FIRST,
    WATCH,
    Judgement,
    headline,
    is_sure,
    judgement_of,
)
from varcal._audit.screen.lede import lede
from varcal._audit.screen.next_steps import Step, next_steps
from varcal._audit.verdicts import OFF
from varcal._text.gaps import CLASS, CONFIDENCE, RISK, claim_name, gap_side
from varcal._text.numbers import count, level_text, limit_text, percent, points, share_text
from varcal._text.sentences import Code, Named, Sentence, cut, listed

if TYPE_CHECKING:
    from varcal._audit.audit_result import Audit
    from varcal._audit.places import Place
    from varcal._audit.repair import Repair

#: Lines of the two tables.
MOST_LINES = 5
#: The mark of each badge.
BADGE_MARKS = {REPAIR_FIRST: "✕", WATCH: "◐", FINE: "✓", CANNOT_TELL: "?"}
#: Below this rate a limit of some points may be large beside the rate itself.
RARE = 0.1
#: A lower limit that is suggested then: about this share of the rate.
OF_THE_RATE = 0.15
#: A level that is at most so long, such as 1 or yes, means nothing without its variable.
SHORT_LEVEL = 3


@dataclass(frozen=True)
class Badge:
    """The decision: its kind, its mark and its words."""

    kind: str
    mark: str
    text: str


@dataclass(frozen=True)
class Group:
    """A group for which the model is wrong.

    Attributes
    ----------
    name, about : Sentence
        The group; its variable and its share of the rows.
    claim : str
        The claim that is wrong.
    predicted, observed : float
        The mean of what the model says, and what happens.
    gap, low, high : float
        Says − happens, with an interval that holds for all groups at once.
    side : str
        The direction in words.
    better : Sentence
        For a group that is better than the rest, this instead of a mark; else empty.
    n : int
        Rows.
    """

    name: Sentence
    about: Sentence
    claim: str
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    side: str
    better: Sentence
    n: int


@dataclass(frozen=True)
class Bound:
    """What could still be wrong along a variable.

    Attributes
    ----------
    variable : str
        The variable.
    at_most : float
        The largest uneven error that cannot be ruled out.
    place : Sentence
        Where least is known.
    n : int
        Rows there.
    there : float
        The largest gap there that cannot be ruled out.
    """

    variable: str
    at_most: float
    place: Sentence
    n: int
    there: float


@dataclass(frozen=True)
class FirstScreen:
    """What a reader meets first.

    Attributes
    ----------
    badge : Badge
        The decision.
    headline : str
        The finding in a few words.
    lede : Sentence
        The finding in three sentences.
    groups_title, groups_note
        What the groups or bounds are.
    groups : tuple of Group
        For whom the model is wrong; none if it is not.
    bounds : tuple of Bound
        Without groups: what could still be wrong.
    groups_after : Sentence
        A remark on the other claim, or on a rare outcome.
    checks_note, checks_after : Sentence
        How to read the checks; how the figures after a repair were found.
    columns : tuple of Column
        The claims of the checks, and after a repair.
    checks : tuple of Check
        On average, by score, along variables, variables off.
    intersections : Sentence
        What was found over several variables at once; empty if that was not asked for.
    steps : tuple of Step
        What to do next.
    limit : float
        The error that matters.
    """

    badge: Badge
    headline: str
    lede: Sentence
    groups_title: str
    groups_note: Sentence
    groups: tuple[Group, ...]
    bounds: tuple[Bound, ...]
    groups_after: Sentence
    checks_note: Sentence
    columns: tuple[Column, ...]
    checks: tuple[Check, ...]
    checks_after: Sentence
    intersections: Sentence
    steps: tuple[Step, ...]
    limit: float


def first_screen(audit: Audit, *, repair: bool = True) -> FirstScreen:
    """Decide what an audit says first.

    Parameters
    ----------
    audit : Audit
        The results.
    repair : bool
        Whether to say what a repair would achieve, which may have to be computed first.
    """
    found = judgement_of(audit)
    attempt = audit.repair if repair else None
    groups = _groups(audit, found)
    columns = columns_of(audit)
    shown = (*columns, _after_column(attempt)) if _is_shown(attempt) else columns
    return FirstScreen(
        badge=_badge(found),
        headline=headline(audit, found),
        lede=lede(audit, found, attempt),
        groups_title=_title(found, groups),
        groups_note=_groups_note(audit, groups),
        groups=groups,
        bounds=() if groups else _bounds(audit),
        groups_after=_groups_after(audit, groups),
        checks_note=_checks_note(audit),
        columns=shown,
        checks=_checks(audit, columns, attempt if _is_shown(attempt) else None),
        checks_after=_checks_after(attempt) if _is_shown(attempt) else Sentence(),
        intersections=(Sentence() if audit.intersections is None else audit.intersections.sentence),
        steps=next_steps(audit, found, attempt),
        limit=audit.limit,
    )


def place_name(place: Place) -> tuple[Sentence, Sentence]:
    """Return the name of a place, and what to add to it: the variable of a telling level."""
    if place.label != f"{place.variable}: {place.text}" or len(place.text) <= SHORT_LEVEL:
        return Sentence.of(Named(cut(place.label))), Sentence()
    return Sentence.of(Named(cut(place.text))), Sentence.of(Named(cut(place.variable)))


def _is_shown(attempt: Repair | None) -> bool:
    return attempt is not None and attempt.full.helps


def _badge(found: Judgement) -> Badge:
    text = found.badge
    if text == FINE:
        text = f"{FINE}, to within {points(found.bound)} points"
    return Badge(found.badge, BADGE_MARKS[found.badge], text)


def _title(found: Judgement, groups: tuple[Group, ...]) -> str:
    if not groups:
        return "What could still be wrong"
    return "For whom it is wrong" if found.off else "Where faults show"


def _groups(audit: Audit, found: Judgement) -> tuple[Group, ...]:
    places = [place for place in audit.places if is_sure(place) or better_words(audit, place)]
    if not places:
        clear = [row.place for row in found.rows if row.place is not None]
        places = [place for place in clear if is_sure(place)]
    groups = [_group(audit, place) for place in places[:MOST_LINES]]
    return tuple(sorted(groups, key=lambda group: bool(group.better)))


def _group(audit: Audit, place: Place) -> Group:
    name, variable = place_name(place)
    share = f"{share_text(place.share)} of rows"
    return Group(
        name=name,
        about=Sentence.of(variable, f" · {share}") if variable else Sentence.of(share),
        claim=place.claim,
        predicted=place.predicted,
        observed=place.observed,
        gap=place.gap,
        low=place.low,
        high=place.high,
        side=gap_side(place.gap, place.claim),
        better=better_words(audit, place),
        n=place.n,
    )


def better_words(audit: Audit, place: Place) -> Sentence:
    """Say that a model that is off everywhere is less so at a place; empty if it is not."""
    one = audit.claims[place.claim]
    biased = one.gap_low > 0 or one.gap_high < 0
    same = place.gap * one.gap >= 0 or abs(place.gap) <= audit.limit
    if not (biased and same and abs(place.gap) < abs(one.gap)):
        return Sentence()
    sizes = f"{points(abs(place.gap))} instead of {points(abs(one.gap))}"
    return Sentence.of(f"better than the rest: {sizes}")


def _bounds(audit: Audit) -> tuple[Bound, ...]:
    rows = sorted(audit.rows, key=lambda row: -row.high)[:MOST_LINES]
    return tuple(
        Bound(
            variable=row.variable,
            at_most=row.high,
            place=Sentence.of(Named(cut(row.weakest.text))),
            n=row.weakest.n,
            there=row.weakest.largest_gap,
        )
        for row in rows
    )


def outcome_words(audit: Audit, claim: str) -> Sentence:
    """Say what happens or not in the rates of a claim."""
    if claim == CONFIDENCE:
        return Sentence.of("How sure the model is of its answers, and how often they are right")
    label = audit.claims[claim].label
    return Sentence.of("Share of rows with outcome ", Named(cut(label) if label else "positive"))


def _groups_note(audit: Audit, groups: tuple[Group, ...]) -> Sentence:
    if not groups:
        return Sentence.of(
            "The most that these rows cannot rule out, with "
            f"{level_text(audit.level)} certainty for all variables at once. "
            f"Dashed: the limit of {limit_text(audit.limit)} points."
        )
    claims = list(dict.fromkeys(group.claim for group in groups))
    many = "The clearest groups; they may overlap." if len(groups) > 1 else ""
    if len(claims) == 1:
        return Sentence.of(outcome_words(audit, claims[0]), f". {many}".rstrip())
    return Sentence.of(f"{many} Each line names the claim that is wrong.")


def _groups_after(audit: Audit, groups: tuple[Group, ...]) -> Sentence:
    if not groups:
        return _rare(audit)
    cancelling = [
        row.variable
        for row in audit.rows
        if row.verdict == OFF and row.place is not None and not is_sure(row.place)
    ]
    if cancelling:
        return Sentence.of(
            "Along ",
            listed(cancelling),
            " no group is surely off as a whole: within groups, too high and too low cancel.",
        )
    told = {group.claim for group in groups}
    other = next((claim for claim in audit.claims if claim not in told), None)
    if other is None or other.startswith(CLASS):
        return Sentence()
    start = Sentence.of(str(claim_name(other)).capitalize())
    off = rows_off(audit, (other,))
    if not off:
        return Sentence.of(start, " is not surely off by more than the limit along any variable.")
    if off == rows_off(audit, tuple(told)):
        return Sentence.of(start, " is off along the same variables.")
    most = max(off, key=lambda row: hidden_errors(row, (other,))[0][0])
    size = hidden_errors(most, (other,))[0][0]
    return Sentence.of(
        start,
        f" is off along {count(len(off), 'variable')}, most along ",
        Named(cut(most.variable)),
        f", by {points(size)} points.",
    )


def _rare(audit: Audit) -> Sentence:
    """Relate the bound to the rate of a rare outcome."""
    one = audit.claims.get(RISK)
    if one is None or not 0 < one.observed < RARE:
        return Sentence()
    ratio = audit.bound / one.observed
    lower = float(f"{max(one.observed * OF_THE_RATE, 0.0005):.1g}")
    compared = (
        f"{points(audit.bound)} points are {percent(ratio).split('.')[0]}% of that"
        if ratio < 1
        else f"{points(audit.bound)} points are more than that"
    )
    if lower >= audit.limit:
        return Sentence.of(f"The outcome is rare: {percent(one.observed)} of rows; {compared}.")
    return Sentence.of(
        f"The outcome is rare: {percent(one.observed)} of rows; {compared}. If this matters to "
        "you, set a lower limit: ",
        Code(f"limit={lower:g}"),
        ".",
    )


def _checks_note(audit: Audit) -> Sentence:
    many = f", after allowing for all {count(len(audit.rows), 'variable')}" * (len(audit.rows) > 1)
    return Sentence.of(
        f"Limit that matters: {limit_text(audit.limit)} points. ✓ below it, ◐ may be on either "
        f"side, ✕ surely above{many}."
    )


def _after_column(attempt: Repair | None) -> Column:
    assert attempt is not None
    return Column("After repair", tuple(attempt.full.after.claims), after_repair=True)


#: The checks with an interval: what is checked, the same in other words, and the figure.
_INTERVALS = (
    ("On average", "all rows together", average),
    ("By score", "ECE, the usual check", by_score),
    ("Along variables", "uneven error, the worst", along_variables),
)


def _checks(audit: Audit, columns: tuple[Column, ...], attempt: Repair | None) -> tuple[Check, ...]:
    places = [(audit, column.claims) for column in columns]
    if attempt is not None:
        after = attempt.full.after
        places.append((after, tuple(after.claims)))
    found = [
        Check(name, note, tuple(figure(*place) for place in places))
        for name, note, figure in _INTERVALS
    ]
    off = tuple(variables_off(*place) for place in places)
    either = variables_off(audit, tuple(audit.claims))
    note = f"surely by more than {limit_text(audit.limit)}"
    if len(columns) > 1 and either.n > max(one.n for one in off[: len(columns)]):
        note = f"either claim: {either.n} of {either.of}"
    return (*found, Check("Variables off", note, off))


def _checks_after(attempt: Repair | None) -> Sentence:
    assert attempt is not None
    full = attempt.full
    worse = "; the worse of the claims is shown" if len(full.after.claims) > 1 else ""
    learned, judged = count(attempt.n_learned, "row"), count(attempt.n_rows)
    rows = (
        f"learned from {learned}{' of these' if attempt.sampled else ''}, judged by {judged} others"
    )
    before, after = full.accuracy
    right = ""
    if percent(before) != percent(after):
        more = "more" if after > before else "fewer"
        right = f" It gets {more} answers right: {percent(after)} instead of {percent(before)}."
    losses = [f"{loss:.3f}" for loss in full.log_loss]
    loss = f" Log-loss {losses[1]} instead of {losses[0]}." if losses[0] != losses[1] else ""
    return Sentence.of(f"After repair: {rows}{worse}.{right}{loss}")
