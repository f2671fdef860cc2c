"""From slices, surface and predictable gap to their part of the summary."""

from __future__ import annotations

from varcal._audit.intersections import Intersections
from varcal._report.audit.summary import IntersectionSummary, SliceSummary
from varcal._slices.slices_result import Slice
from varcal._text.gaps import CONFIDENCE, off_by
from varcal._text.numbers import count, interval, level_text, p_text, percent, points
from varcal._text.sentences import Named, Sentence, Strong, cut

#: Longer rules are cut.
RULE_LENGTH = 200


def intersections_of(found: Intersections | None) -> IntersectionSummary | None:
    """Return what the report says about several variables at once; None if nothing was asked."""
    if found is None:
        return None
    surface = found.surface
    return IntersectionSummary(
        number=_number(found),
        predictable=found.predictable.to_dict(),
        slices=tuple(_slice(one, found) for one in found.ordered),
        finding=Sentence() if surface is None else Sentence.of(Named(surface.sentence)),
        surface=surface,
        notes=_notes(found),
    )


def _slice(one: Slice, found: Intersections) -> SliceSummary:
    sure = one.claim == CONFIDENCE
    says, happens = ("is sure by", "it is right in") if sure else ("says", "it happens in")
    better = found.is_better(one)
    low, high = sorted(abs(end) for end in (one.low, one.high))
    ends = interval(low, high) if one.low * one.high > 0 else interval(one.low, one.high)
    return SliceSummary(
        rule=one.rule,
        sentence=Sentence.of(
            "Among rows with ",
            Named(cut(one.rule, RULE_LENGTH)),
            f" ({count(one.rows, 'row')}, {percent(one.share)} of all), the model {says} ",
            Strong(percent(one.predicted)),
            f" and {happens} ",
            Strong(percent(one.observed)),
            ": ",
            off_by(one.gap, one.claim),
            f" ({ends})",
            f", better than the rest, {points(abs(found.gaps[one.claim]))}." if better else ".",
        ),
        better=better,
        claim=one.claim,
        says=one.predicted,
        happens=one.observed,
        gap=one.gap,
        low=one.low,
        high=one.high,
        n=one.rows,
        share=one.share,
        p_adjusted=one.p_adjusted,
    )


def _number(found: Intersections) -> Sentence:
    number = found.predictable
    if number.low > 0:
        return Sentence.of(
            "Learned from some rows and judged on others, all variables and the score together "
            "predict a gap of at least ",
            Strong(f"{points(number.low)} points"),
            f" ({points(number.value)} by our estimate), as a root mean square over rows.",
        )
    return Sentence.of(
        "Learned from some rows and judged on others, all variables and the score together "
        f"predict no gap that is surely above zero ({points(number.value)} points by our "
        "estimate). That does not prove that there is none."
    )


def _notes(found: Intersections) -> tuple[Sentence, ...]:
    slices, number = found.slices, found.predictable
    searched = (
        f"Slices: all ranges of one variable, all rectangles of two and their extensions up to "
        f"{slices.max_depth} were searched in {count(slices.n_searched, 'row')}. Intervals "
        f"({level_text(slices.level)}) and p-values (smallest {p_text(slices.p_value)}) allow for "
        "the search."
    )
    tested = f"p-value {p_text(number.p_learner)}, with that of slices {p_text(number.p_value)}"
    learned = (
        f"Predictable gap: boosted trees and slices, learned from past blocks of "
        f"{number.n_blocks}; {tested}."
    )
    band = (
        ""
        if found.surface is None
        else (f"Surface: {level_text(found.surface.level)} band for all cells and claims at once.")
    )
    told = [searched, learned, band, *slices.notes, *number.notes]
    return tuple(Sentence.of(line) for line in told if line)
