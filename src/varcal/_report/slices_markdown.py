"""Slices as Markdown, for a pull request, a wiki or a log."""

from __future__ import annotations

from varcal._report.audit.markdown import escape
from varcal._slices.slices_result import Slices
from varcal._surfaces.predictable_result import PredictableGap
from varcal._text.numbers import count, interval, level_text, p_text, percent, signed
from varcal._text.sentences import cut


def slices_markdown(found: Slices, number: PredictableGap | None = None) -> str:
    """Return a table of slices and what was searched.

    Parameters
    ----------
    found : Slices
        The slices.
    number : PredictableGap, optional
        How much of the gap can be predicted.
    """
    searched = f"{count(found.n_variables, 'variable')} and {count(found.n, 'row')} searched"
    title = f"{count(len(found), 'slice')} clearly off" if len(found) else "No slice clearly off"
    lines = [f"# {title}", "", f"{searched}, p {p_text(found.p_value)}.", ""]
    if len(found):
        lines += [
            "| Slice | Claim | Rows | Says | Happens | Gap, points | p |",
            "|:--|:--|--:|--:|--:|:--|--:|",
        ]
    for one in found:
        ends = interval(one.low, one.high)
        lines.append(
            f"| {escape(cut(one.rule, 200))} | {escape(one.claim)} | {count(one.rows)} | "
            f"{percent(one.predicted)} | {percent(one.observed)} | **{signed(one.gap)}** ({ends}) "
            f"| {p_text(one.p_adjusted)} |"
        )
    if number is not None:
        lines += ["", number.sentence]
    note = f"Intervals ({level_text(found.level)}) and p-values allow for the search."
    lines += ["", note, *(f"- {escape(text)}" for text in found.notes), ""]
    return "\n".join(lines)
