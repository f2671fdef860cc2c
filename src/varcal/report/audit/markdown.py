"""The report of an audit as Markdown, for a pull request, a wiki or a log."""

from __future__ import annotations

import re

from varcal._text.numbers import count, interval, level_text, p_text, percent, points, signed
from varcal.report.audit.summary import Bin, Summary, VariableSummary
from varcal.report.html.markup import clean
from varcal.report.words import Named, Sentence, cut, wording

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$:@>-])")


def markdown(summary: Summary) -> str:
    """Return the findings, the ranking and the notes."""
    words, overall = wording(summary.event), summary.overall
    level = level_text(summary.level)
    lines = [
        f"# {escape(summary.title)}",
        "",
        f"**{text(summary.headline)}**",
        "",
        *([text(summary.worst), ""] if summary.worst.parts else []),
        f"{text(summary.checked)} {words.actual.capitalize()} {percent(overall.actual)}, "
        f"{words.predicted} {percent(overall.predicted)}: overall gap {signed(overall.gap)} "
        f"points ({level} interval {interval(overall.gap_low, overall.gap_high)}).",
        "",
        "## Variables, ranked",
        "",
        f"| # | variable | verdict | VECE ({level}) | beyond overall ({level}) | adjusted p "
        "| where it differs most |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_row(one) for one in summary.variables]
    lines += ["", "Sizes are in points (hundredths of a probability).", "", "## Reliability", ""]
    lines += [text(summary.reliability.finding), "", "## Variable by variable", ""]
    for one in summary.variables:
        lines += [f"### {one.rank}. {escape(cut(one.name, 200))}: {one.verdict}", ""]
        lines += [f"{text(one.finding)} {text(one.worst)}", ""]
        lines += [
            f"| bin | rows | {words.actual} | {words.predicted} | gap ({level}) |",
            "|---|---|---|---|---|",
        ]
        lines += [_bin_row(bin_) for bin_ in one.bins]
        lines += ["", *(f"- {text(note)}" for note in one.notes), ""]
    lines += ["## Data notes", "", *(f"- {text(note)}" for note in summary.notes), ""]
    lines += ["## How it was computed", "", *(f"- {line}" for line in summary.method), ""]
    versions = " · ".join(f"{name} {number}" for name, number in summary.versions)
    lines += [f"{summary.created} · {versions}", ""]
    lines += [*(f"- {line}" for line in summary.citation), ""]
    return "\n".join(lines)


def _row(one: VariableSummary) -> str:
    return (
        f"| {one.rank} | {escape(cut(one.name))} | {one.verdict} "
        f"| {points(one.vece.debiased)} ({interval(one.vece.low, one.vece.high)}) "
        f"| {points(one.beyond.debiased)} ({interval(one.beyond.low, one.beyond.high)}) "
        f"| {escape(p_text(one.p_holm))} | {text(one.where) if one.where.parts else '–'} |"
    )


def _bin_row(one: Bin) -> str:
    return (
        f"| {escape(cut(one.label))} | {count(one.n)} | {percent(one.actual)} "
        f"| {percent(one.predicted)} | {signed(one.gap)} "
        f"({interval(one.gap_low, one.gap_high)}) |"
    )


def text(sentence: Sentence) -> str:
    """Write a sentence; text that came from the data is escaped."""
    return "".join(
        escape(part) if isinstance(part, Named) else part.replace("<", "&lt;")
        for part in sentence.parts
    )


def escape(value: str) -> str:
    r"""Escape text so that neither Markdown nor HTML is read in it, and put it on one line.

    >>> escape("<b> | *a*\n")
    '&lt;b&gt; \\| \\*a\\* '
    """
    plain = " ".join(re.split(r"[\r\n\v\f\x85\u2028\u2029]+", value))
    plain = _SPECIAL.sub(r"\\\1", clean(plain))
    plain = plain.replace("www.", "www\\.")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace("\\>", "&gt;")
