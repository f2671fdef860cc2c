"""The report of an audit as Markdown, for a pull request, a wiki or a log."""

from __future__ import annotations

import re

from varcal._audit.first_screen import Bound, FirstScreen, Group
from varcal._audit.screen.checks import STATE_MARKS, Cell, Off
from varcal._audit.verdicts import FINDINGS, MARKS
from varcal._report.audit.summary import Summary, VariableSummary
from varcal._report.claim_words import claim_words
from varcal._report.html.markup import clean
from varcal._text.gaps import claim_name, gap_mark, gap_said
from varcal._text.numbers import count, interval, level_text, limit_text, percent, points, signed
from varcal._text.sentences import Code, Named, Sentence, Strong, cut

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$:@>-])")


def markdown(summary: Summary) -> str:
    """Return the first screen, the ranking, notes and words."""
    screen = summary.screen
    lines = [
        f"# {escape(summary.title)}",
        "",
        f"## {screen.badge.mark} {screen.badge.text}: {_lower(screen.headline)}",
        "",
        text(screen.lede),
        "",
        *(_groups(screen) if screen.groups else _bounds(screen)),
        "",
    ]
    if screen.groups_after:
        lines += [text(screen.groups_after), ""]
    lines += [*_checks(screen, summary.level), "", text(screen.checks_note), ""]
    if screen.checks_after:
        lines += [text(screen.checks_after), ""]
    if screen.intersections:
        lines += [text(screen.intersections), ""]
    lines += ["**Next**", ""]
    lines += [f"{k}. **{step.title}.** {text(step.text)}" for k, step in enumerate(screen.steps, 1)]
    lines += ["", *_intersections(summary), *_ranking(summary), *_fold("Words", _glossary(summary))]
    lines += _fold("Data and method", _method(summary))
    versions = " · ".join(f"{name} {number}" for name, number in summary.versions)
    lines += [f"*{count(summary.n_rows, 'row')} · {summary.created} · {versions}*", ""]
    return "\n".join(lines)


def _lower(headline: str) -> str:
    return headline[0].lower() + headline[1:]


def _groups(screen: FirstScreen) -> list[str]:
    claims = {group.claim for group in screen.groups}
    words = claim_words(screen.groups[0].claim)
    named = len(claims) > 1
    says, happens = ("Says", "Happens") if named else (words.says, words.happens)
    head = screen.groups_title if named else f"{screen.groups_title} ({_plain(claims.pop())})"
    return [
        f"| {head} | {says} | {happens} | Off by, points | Rows |",
        "|:--|--:|--:|:--|--:|",
        *(_group(group, named=named) for group in screen.groups),
    ]


def _plain(claim: str) -> str:
    return text(claim_name(claim))


def _group(group: Group, *, named: bool) -> str:
    low, high = group.low, group.high
    if group.better:
        off = f"{text(group.better)} ({interval(low, high)})"
    else:
        side = text(gap_said(group.gap, group.claim)) if named else group.side
        low, high = sorted((abs(low), abs(high)))
        size = points(abs(group.gap))
        off = f"{gap_mark(group.gap)} **{size}** {side} ({interval(low, high)})"
    variable = str(group.about).rpartition(" · ")[0]
    name = f"{escape(variable)}: {text(group.name)}" if variable else text(group.name)
    rates = f"{percent(group.predicted)} | {percent(group.observed)}"
    return f"| {name} | {rates} | {off} | {count(group.n)} |"


def _bounds(screen: FirstScreen) -> list[str]:
    return [
        f"| {screen.groups_title} | Uneven error at most, points | Weakest place | Rows "
        "| Off there at most |",
        "|:--|--:|:--|--:|--:|",
        *(_bound(one) for one in screen.bounds),
    ]


def _bound(one: Bound) -> str:
    return (
        f"| {escape(cut(one.variable))} | {points(one.at_most)} | {text(one.place)} "
        f"| {count(one.n)} | {points(one.there)} |"
    )


def _checks(screen: FirstScreen, level: float) -> list[str]:
    titles = " | ".join(column.title for column in screen.columns)
    lines = [
        f"| Points off, {level_text(level)} interval | {titles} |",
        "|:--" * (1 + len(screen.columns)) + "|",
    ]
    for check in screen.checks:
        cells = " | ".join(_cell(cell) for cell in check.cells)
        lines.append(f"| {check.name} ({check.note}) | {cells} |")
    return lines


def _cell(cell: Cell | Off) -> str:
    if isinstance(cell, Off):
        return f"**{cell.n}** of {cell.of}"
    value = signed(cell.value) if cell.signed else points(cell.value)
    label = f", class {escape(cut(cell.label, 20))}" if cell.label else ""
    return f"{STATE_MARKS[cell.state]} **{value}** ({interval(cell.low, cell.high)}{label})"


def _intersections(summary: Summary) -> list[str]:
    """Return the slices as sentences, and what the surface shows."""
    found = summary.intersections
    if found is None:
        return []
    lines = [text(found.number), ""]
    lines += [f"{k}. {text(one.sentence)}" for k, one in enumerate(found.slices, 1)]
    lines += ["", text(found.finding)] if found.finding else []
    lines += ["", *(f"- {text(note)}" for note in found.notes)]
    return _fold("Combinations of variables", lines)


def _ranking(summary: Summary) -> list[str]:
    repaired = any(one.after is not None for one in summary.variables)
    lines = [
        "| # | Variable | Verdict | Uneven error, points | Clearest place |"
        + (" After repair |" if repaired else ""),
        "|--:|:--|:--|:--|:--|" + ("--:|" if repaired else ""),
    ]
    lines += [_row(one, repaired) for one in summary.variables]
    lines += [
        "",
        "Uneven error: how far what the model says and what happens are apart along the variable, "
        "on average over rows, once the average gap is taken off. Intervals hold for all variables "
        f"at once. Limit: {limit_text(summary.limit)} points.",
    ]
    return _fold(f"All {count(len(summary.variables), 'variable')}", lines)


def _row(one: VariableSummary, repaired: bool) -> str:
    size = (
        f"{points(one.hidden)} ({interval(one.low, one.high)})"
        if one.verdict in FINDINGS
        else f"at most {points(one.high)}"
    )
    place = "–"
    if one.spot is not None:
        spot, words = one.spot, claim_words(one.spot.claim)
        place = (
            f"{escape(cut(spot.text))}: {words.says_short} {percent(spot.says)}, "
            f"{words.happens_short} {percent(spot.happens)} ({count(spot.n, 'row')})"
        )
    after = "" if not repaired else " – |" if one.after is None else f" {points(one.after.value)} |"
    verdict = f"{MARKS[one.verdict]} {one.verdict.capitalize()}"
    return f"| {one.rank} | {escape(cut(one.name))} | {verdict} | {size} | {place} |{after}"


def _glossary(summary: Summary) -> list[str]:
    return [f"- **{name}**: {text(meaning)}" for name, meaning in summary.glossary]


def _method(summary: Summary) -> list[str]:
    return [
        *(f"- {text(note)}" for note in summary.notes),
        *(f"- {line.replace('|', chr(92) + '|')}" for line in summary.method),
        *(f"- {line}" for line in summary.citation),
    ]


def _fold(title: str, lines: list[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def text(sentence: Sentence) -> str:
    """Write a sentence; text that came from the data is escaped."""
    return "".join(_part(part) for part in sentence.parts)


def _part(part: str) -> str:
    if isinstance(part, Code):
        return f"`{part}`"
    shown = escape(part) if isinstance(part, Named) else part.replace("<", "&lt;")
    return f"**{shown}**" if isinstance(part, Strong) else shown


def escape(value: str) -> str:
    r"""Escape text so that neither Markdown nor HTML is read in it, and put it on one line.

    >>> escape("<b> | *a*\n")
    '&lt;b&gt; \\| \\*a\\* '
    """
    plain = " ".join(re.split(r"[\r\n\v\f\x85\u2028\u2029]+", value))
    plain = _SPECIAL.sub(r"\\\1", clean(plain))
    plain = plain.replace("www.", "www\\.")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace("\\>", "&gt;")
