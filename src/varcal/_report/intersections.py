"""Combinations of variables: slices and the predictable gap, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from varcal._audit.intersections import Intersections
from varcal._audit.sentences import Group
from varcal._report.page import render
from varcal._search.predictable_gap import PredictableGap
from varcal._search.slices_result import Slice, Slices
from varcal._text import (
    CONFIDENCE,
    RISK,
    Named,
    Sentence,
    Strong,
    Unit,
    claim_name,
    count,
    cut,
    filled,
    gap_side,
    level_text,
    off_by,
    p_text,
    percent,
    points,
)

#: Longer rules are cut.
RULE_LENGTH = 200


def combinations(found: Intersections) -> dict[str, Any]:
    """Return what `intersections.html.j2` and `intersections.md.j2` show, as `found`."""
    slices = found.ordered
    named = _named(slices)
    rows = [_row(one, found, named=named) for one in slices]
    pairs = zip(slices, rows, strict=True)
    sure = {one.claim for one in slices} == {CONFIDENCE}
    return {
        "number": _number(found.predictable),
        "sentences": [_sentence(*pair, found, named=named) for pair in pairs],
        "rows": rows,
        "heads": ("Slice", "Is sure", "Is right") if sure else ("Slice", "Says", "Happens"),
        "notes": _notes(found),
    }


def slices_markdown(found: Slices, number: PredictableGap | None = None) -> str:
    """Return a table of slices and what was searched.

    Parameters
    ----------
    found : Slices
        The slices.
    number : PredictableGap, optional
        How much of the gap can be predicted.
    """
    targets = [claim_name(one.claim) for one in found] if _named(found) else []
    return render("slices.md.j2", found=found, number=number, targets=targets)


def _named(slices: Iterable[Slice]) -> bool:
    """Tell whether slices name what they are about: not if all are about the one probability."""
    return not {one.claim for one in slices} <= {RISK}


def _row(one: Slice, found: Intersections, *, named: bool) -> Group:
    """Return a row of the table of says and happens."""
    rows = f"{count(one.rows, 'row')}, {percent(one.share)}"
    return Group(
        name=Sentence.of(Named(cut(one.rule, RULE_LENGTH))),
        about=Sentence.of(claim_name(one.claim), f" · {rows}") if named else Sentence.of(rows),
        n=one.rows,
        predicted=one.predicted,
        observed=one.observed,
        gap=one.shrunk,
        low=one.low,
        high=one.high,
        words=(gap_side(1, one.claim), gap_side(-1, one.claim)),
        note="better than the rest" if found.is_better(one) else "",
    )


def _sentence(one: Slice, row: Group, found: Intersections, *, named: bool) -> Sentence:
    sure = one.claim == CONFIDENCE
    says, happens = ("is sure by", "it is right in") if sure else ("says", "it happens in")
    plain = f"{gap_side(one.gap, one.claim)} by {points(abs(one.shrunk))} points"
    rest = points(abs(found.gaps.get(one.claim, 0.0)))
    better = f", better than the rest, {rest}" if found.is_better(one) else ""
    ends = Unit().gap_ends(row.gap, row.low, row.high)
    return filled(
        f"Among rows with {{}} ({count(one.rows, 'row')}, {percent(one.share)} of all), the model "
        f"{says} {{}} and {happens} {{}}: {{}} ({ends}){better}.",
        Named(cut(one.rule, RULE_LENGTH)),
        *(Strong(percent(rate)) for rate in (one.predicted, one.observed)),
        off_by(one.shrunk, one.claim) if named else plain,
    )


def _number(number: PredictableGap) -> Sentence:
    value = points(number.value)
    least = f"a gap of at least {{}} ({value} by our estimate), as a root mean square over rows."
    none = (
        f"no gap that is surely above zero ({value} points by our estimate). That does not prove "
        "that there is none."
    )
    return filled(
        "Learned from some rows and judged on others, all variables and the score together predict "
        + (least if number.low > 0 else none),
        Strong(f"{points(number.low)} points"),
    )


def _notes(found: Intersections) -> list[Sentence]:
    slices, number = found.slices, found.predictable
    told = [
        f"Slices: all ranges of one variable, all rectangles of two and their extensions up to "
        f"{slices.max_depth} were searched in {count(slices.n_searched, 'row')}. Gaps, "
        f"intervals ({level_text(slices.level)}) and p-values (smallest {p_text(slices.p_value)}) "
        "allow for the search, which makes the plain difference of says and happens too large.",
        f"Predictable gap: boosted trees, learned from past blocks of {number.n_blocks}; p-value "
        f"{p_text(number.p_value)}.",
    ]
    remarks = [Sentence.of(Named(text)) for text in (*slices.notes, *number.notes)]
    return [*map(Sentence.of, told), *remarks]
