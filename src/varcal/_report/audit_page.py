"""An audit as an HTML page, as Markdown, and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from typing import Any

from varcal._audit.ladder import CURVE, SHIFT, VARIABLES
from varcal._audit.record import TOP_CLASS, AuditRow, Target, bins_of
from varcal._audit.result import Audit
from varcal._audit.sentences import (
    Screen,
    name_of,
    row_unit,
    side_of,
    split_code,
    uneven_words,
)
from varcal._report.intersections import combinations
from varcal._report.page import (
    Scale,
    about,
    bin_chart,
    json_text,
    now,
    points_axis,
    prose,
    render,
    share_axis,
    write_report,
)
from varcal._text import (
    FINDINGS,
    LOOKS,
    MARKS,
    Named,
    Sentence,
    Unit,
    count,
    cut,
    filled,
    level_text,
    listed,
    p_text,
    short_number,
)

#: What the audit of probabilities and that of means is called.
KIND = ("Calibration audit", "Audit of the predicted mean")
#: Cards of so many variables with evidence are open; the others can be opened.
MOST_OPEN = 3
#: With more variables than this there is a box to search them.
MANY = 10
#: The height of a page in a notebook, in pixels: that of the first screen.
HEIGHT = 900


def write_audit(
    audit: Audit, path: str | PathLike[str], *, title: str = "", commands: bool = False
) -> None:
    """Write the report of an audit; its advice names Python, or commands of a shell."""
    forms = {
        ".html": lambda: audit_html(audit, title, commands=commands),
        ".md": lambda: audit_markdown(audit, title, commands=commands),
        ".json": lambda: json_text(audit.to_dict(ladder=True)),
    }
    write_report(path, forms)


def audit_html(audit: Audit, title: str = "", *, commands: bool = False) -> str:
    """Return the page as text."""
    return render("audit.html.j2", **_context(audit, title, commands=commands))


def audit_markdown(audit: Audit, title: str = "", *, commands: bool = False) -> str:
    """Return the first screen, the ranking, tables of variables with evidence, words and notes."""
    return render("audit.md.j2", **_context(audit, title, commands=commands))


def notebook_html(audit: Audit) -> str:
    """Return the first screen in the style of the notebook."""
    return render("notebook.html.j2", **_context(audit, "", cards=False))


@dataclass(frozen=True)
class InlineReport:
    """A report that a notebook shows as a page."""

    page: str
    title: str

    def _repr_html_(self) -> str:
        # The page is isolated in a frame, where its own policy holds.
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.page)}" width="100%" '
            f'height="{HEIGHT}" frameborder="0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Report {self.title!r} for notebooks; audit.report('report.html') writes a file"


def _context(
    audit: Audit, title: str, *, cards: bool = True, commands: bool = False
) -> dict[str, Any]:
    screen = audit.screen(commands=commands)
    shown = [row for row in audit.rows if _is_shown(row, audit)]
    quiet = [row for row in audit.rows if not _is_shown(row, audit)]
    name = audit.target.name if len(audit.targets) == 1 else audit.label
    worst = max((row.high for row in shown or audit.rows), default=0.02)
    steps = [
        step for one in screen.steps for step in (one.average, one.rung.by_score, one.rung.worst[1])
    ]
    reach = max((max(abs(one.low), abs(one.high)) for one in steps), default=0.02)
    most = None if cards else 0
    shared = {"audit": audit, "unit": screen.unit, "level": level_text(audit.level)}
    return shared | {
        "title": title or f"{KIND[screen.of_mean]} of {name}",
        "subtitle": f"{count(audit.n_rows, 'row')} · {count(len(audit), 'variable')} · {now()}",
        "screen": screen,
        "ladder": audit.ladder,
        "look": LOOKS,
        "mark_of": MARKS,
        "todos": [(title, *split_code(text)) for title, text in screen.todos],
        "limit": audit.limit,
        "axis": points_axis(max(worst, 1.2 * audit.limit), unit=screen.unit),
        "strip_axis": points_axis(max(reach, 1.2 * audit.limit), unit=screen.unit),
        "ranked": shown,
        "quiet": quiet,
        "quiet_names": listed([row.variable for row in quiet]),
        "afters": _afters(audit, screen),
        "is_many": len(audit) > MANY,
        "cards": [_card(audit, screen, *each) for each in enumerate(audit.rows[:most], 1)],
        "scores": [_score(*each) for each in enumerate(list(audit.targets.values())[:most])],
        "found": None if audit.intersections is None else combinations(audit.intersections),
        "words": _words(audit),
        "about": about(_notes(audit, screen), prose("method_audit.txt.j2", by=screen.by, **shared)),
        "side_of": side_of,
        "uneven_words": uneven_words,
        "row_unit": row_unit,
        "FINDINGS": FINDINGS,
    }


def _is_shown(row: AuditRow, audit: Audit) -> bool:
    """Whether a variable is listed without unfolding: with evidence, or if it is protected."""
    return row.verdict in FINDINGS or row.variable in audit.protected


def _afters(audit: Audit, screen: Screen) -> list[tuple[str, dict[str, Any]]]:
    """Return the repairs whose uneven errors the ranking shows beside those of the model."""
    if audit.ladder is None:
        return []
    names = (SHIFT if screen.after == SHIFT else CURVE, VARIABLES)
    known = {rung.name: rung for rung in audit.ladder.rungs}
    return [(name, known[name].uneven) for name in names if name in known]


# ------------------------------------------------------------------ cards


def _tables(row: AuditRow, after: Sequence[float]) -> dict[str, list[dict[str, Any]]]:
    """Return the bins that have rows, by side, with what the model says after a repair."""
    says = iter(after)
    tables = {
        side: [one | {"after": next(says, math.nan)} for one in bins]
        for side, bins in row.bins.items()
    }
    held = [k for k, one in enumerate(tables["all"]) if one["n"]]
    return {side: [bins[k] for k in held] for side, bins in tables.items()}


def _card(audit: Audit, screen: Screen, rank: int, row: AuditRow) -> dict[str, Any]:
    """Return what the card of a variable shows: charts of its bins, the table, sums."""
    target, unit = audit.targets[row.target], screen.unit
    after = [] if audit.ladder is None else audit.ladder.after.get(row.variable, [])
    tables = _tables(row, after)
    axis = _rates([one for bins in tables.values() for one in bins], unit)
    titles = [_side_title(side) for side in tables]
    charts = [
        bin_chart(bins, axis, key=f"v{rank}-{k}", title=str(titles[k]), unit=unit)
        for k, bins in enumerate(tables.values())
    ]
    totals = [_total(bins) for bins in tables.values()]
    return {
        "id": f"v{rank}",
        "row": row,
        "target": name_of(target),
        "open": row.variable in audit.protected or (_is_shown(row, audit) and rank <= MOST_OPEN),
        "panels": [
            (title, total["n"], chart)
            for title, total, chart in zip(titles, totals, charts, strict=True)
        ],
        "sides": titles,
        "bins": [(cells[0]["bin"], cells) for cells in zip(*tables.values(), strict=True)],
        "totals": totals,
        "sums": _sums(row, tables, unit),
        "statistics": _statistics(row, unit),
        "has_after": any(one["after"] == one["after"] for one in tables["all"]),
    }


def _side_title(side: str) -> Sentence:
    if side == "all":
        return Sentence.of("All rows")
    return Sentence.of("Predicted ", Named(cut(side, 40)))


def _rates(bins: Sequence[dict[str, Any]], unit: Unit) -> Scale:
    """Return the axis of rates for all charts of a card."""
    names = ("predicted", "observed", "after")
    held = [one for one in bins if one["n"]]
    ends = [one[name] for one in held for name in names]
    ends += [min(unit.happens_at(one["predicted"], one["gap_low"]), unit.most) for one in held]
    ends = [end for end in ends if end == end]
    if unit.most == 1:
        return share_axis(max(0.02, *ends), many=4)
    return share_axis(max(ends), min(0.0, *ends), many=4, unit=unit)


def _total(bins: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the means over all bins, weighted by their shares."""
    share = sum(one["share"] for one in bins) or 1.0
    held = [one for one in bins if one["n"]]
    return {
        "n": sum(one["n"] for one in bins),
        "predicted": sum(one["share"] * one["predicted"] for one in held) / share,
        "observed": sum(one["share"] * one["observed"] for one in held) / share,
    }


def _sums(row: AuditRow, tables: dict[str, list[dict[str, Any]]], unit: Unit) -> Sentence:
    """Say how error and uneven error follow from the table."""
    sides = [side for side in tables if side != "all"] or ["all"]
    cells = sum(one["n"] > 0 for side in sides for one in tables[side])
    means = []
    for side in sides:
        total = _total(tables[side])
        mean = unit.signed(unit.difference(total["predicted"], total["observed"]))
        means.append(f"{mean} (predicted {cut(side, 40)})" if side != "all" else mean)
    what = "cells (bins within each predicted side)" if len(sides) > 1 else "bins"
    error, uneven = row.error, row.uneven
    each, off = "|difference|", "with {} taken off every cell"
    if row.scale == "relative":
        each, off = "|A/E − 1| (share of all that is predicted)", "about {} instead of 1"
    return filled(
        f"Over the {cells} {what}: error = sum of share × {each} = "
        f"{unit.size(error.value)}; uneven error = the same {off} = "
        f"{unit.error(uneven.value)}. Chance alone makes such sums too large; "
        f"corrected for that they are {unit.error(error.debiased)} and "
        f"{unit.error(uneven.debiased)}, the figures used above.",
        Named(" and ".join(means)),
    )


def _statistics(row: AuditRow, unit: Unit) -> str:
    uneven = row.uneven
    ranks = " to ".join(str(rank) for rank in sorted({row.rank_low, row.rank_high}))
    side = " within each side" if row.scale == "points" else ""
    return (
        f"p {p_text(uneven.p_value)}: how likely this would be if the gap were the same everywhere"
        f"{side}; adjusted for all variables {p_text(row.p_holm)} (Holm), "
        f"{p_text(row.p_bh)} (Benjamini–Hochberg). "
        f"Uneven error by itself {unit.ends(uneven.low, uneven.high)}, for all variables at "
        f"once {unit.ends(row.low, row.high)}; a perfect "
        f"model shows up to {unit.error(uneven.noise_high)} by chance. Possible ranks: {ranks}."
    )


def _score(k: int, target: Target) -> dict[str, Any]:
    """Return the bins of the probability itself, as a chart and a table."""
    columns, unit = target.score.columns, target.unit
    texts = _score_texts(columns["low"], columns["high"], unit)
    pairs = zip(bins_of(target.score), texts, strict=True)
    bins = [one | {"bin": text, "after": math.nan} for one, text in pairs if one["n"]]
    chart = bin_chart(bins, _rates(bins, unit), key=f"score-{k}", title="By score", unit=unit)
    return {"target": target, "name": name_of(target), "bins": bins, "chart": chart}


def _score_texts(low: Sequence[float], high: Sequence[float], unit: Unit) -> list[str]:
    """Name the bins of a prediction; a frequent value is a bin by itself."""
    texts, share = [], unit.most == 1
    sign = "%" if share else ""
    for k, ends in enumerate(zip(low, high, strict=True)):
        first, last = (f"{100 * end:.3g}" if share else short_number(end) for end in ends)
        text = f"up to {last}{sign}" if k == 0 else f"{first} to {last}{sign}"
        text = f"{first}{sign} and over" if 0 < k == len(low) - 1 else text
        texts.append(f"{first}{sign}" if ends[0] == ends[1] else text)
    return texts if len(texts) > 1 else ["all"]


# ------------------------------------------------------------------ words and method


_SURE = (
    "How sure the model is of its own answer, the most probable class, and how often it is right. "
    "Of other targets: the mean probability of a class, and its share of the rows."
)


def _words(audit: Audit) -> Sequence[tuple[str, Sentence | str]]:
    """Explain the words of the page."""
    lines = prose("glossary_audit.txt.j2", level=level_text(audit.level), scale=audit.target.scale)
    rest = [(name, text) for name, _, text in (line.partition(": ") for line in lines)]
    if audit.target.scale != "points":
        return rest
    outcome = Named(cut(f"{audit.label} = {audit.target.label}"))
    says = "The mean of {} in a group, and the share of its rows with {}."
    first = filled(says, name_of(audit.target), outcome)
    named = _SURE if audit.target.name == TOP_CLASS else first
    return [("says, happens", named), *rest]


def _notes(audit: Audit, screen: Screen) -> list[Sentence]:
    rows = f"{count(audit.n_rows, 'row')} with a known outcome"
    notes = [Sentence.of(rows, "." if audit.n_dropped else "; none was left out.")]
    notes += [
        filled("Not audited: {} ({}).", Named(cut(name)), reason) for name, reason in audit.left_out
    ]
    if audit.left_out:
        code = screen.code("audit(…, include=[…])", "--include")
        notes.append(filled("To audit such a column: {}.", code))
    return notes + [Sentence.of(Named(cut(note, 400))) for note in audit.notes]
