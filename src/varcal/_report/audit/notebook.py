"""An audit in a notebook: its first screen as the representation, and the whole page inline."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from varcal._audit.first_screen import FirstScreen
from varcal._audit.screen.checks import STATE_MARKS, Cell, Off
from varcal._report.html.markup import Child, Markup, el
from varcal._text.gaps import gap_mark, gap_said
from varcal._text.numbers import count, interval, level_text, percent, points, signed
from varcal._text.sentences import Named, Sentence, cut

#: The height of a page in a notebook, in pixels: that of the first screen.
HEIGHT = 900


def first_screen_html(screen: FirstScreen, level: float) -> str:
    """Return headline, lede, two tables and next steps, in the style of the notebook."""
    table = _groups(screen) if screen.groups else _bounds(screen)
    steps = [el("li", el("b", f"{step.title}. "), step.text) for step in screen.steps]
    badge = screen.badge
    return el(
        "div",
        el("h3", f"{badge.mark} {badge.text}: {screen.headline[0].lower()}{screen.headline[1:]}"),
        el("p", screen.lede),
        table,
        el("p", screen.groups_after) if screen.groups_after else None,
        _checks(screen, level),
        el("p", screen.checks_note, " ", screen.checks_after),
        el("ol", steps),
    )


def _groups(screen: FirstScreen) -> Markup:
    rows: list[list[Child]] = []
    for one in screen.groups:
        low, high = sorted((abs(one.low), abs(one.high)))
        off: list[Child] = [
            f"{gap_mark(one.gap)} ",
            el("b", points(abs(one.gap))),
            " ",
            gap_said(one.gap, one.claim),
            f" ({interval(low, high)})",
        ]
        name: list[Child] = [one.name, el("br"), el("small", one.about)]
        said: list[Child] = [one.better] if one.better else off
        rows.append([name, percent(one.predicted), percent(one.observed), said, count(one.n)])
    return _table([screen.groups_title, "Says", "Happens", "Off by, points", "Rows"], rows)


def _bounds(screen: FirstScreen) -> Markup:
    rows: list[list[Child]] = [
        [
            Named(cut(one.variable)),
            points(one.at_most),
            one.place,
            count(one.n),
            points(one.there),
        ]
        for one in screen.bounds
    ]
    heads = [screen.groups_title, "Uneven error at most, points", "Weakest place", "Rows"]
    return _table([*heads, "Off there at most"], rows)


def _checks(screen: FirstScreen, level: float) -> Markup:
    heads = [f"Points off, {level_text(level)} interval"]
    heads += [column.title for column in screen.columns]
    rows: list[list[Child]] = [
        [check.name, *(_cell(cell) for cell in check.cells)] for check in screen.checks
    ]
    return _table(heads, rows)


def _cell(cell: Cell | Off) -> Child:
    if isinstance(cell, Off):
        return f"{cell.n} of {cell.of}"
    value = signed(cell.value) if cell.signed else points(cell.value)
    label = Sentence.of(", class ", Named(cut(cell.label, 20))) if cell.label else None
    ends = f" ({interval(cell.low, cell.high)}"
    return [f"{STATE_MARKS[cell.state]} ", el("b", value), ends, label, ")"]


def _table(heads: list[str], rows: list[list[Child]]) -> Markup:
    head = [el("th", text, scope="col") for text in heads]
    body = [el("tr", [el("td", cell) for cell in row]) for row in rows]
    return el("table", el("thead", el("tr", head)), el("tbody", body))


@dataclass(frozen=True)
class InlineReport:
    """A report that a notebook shows as a page.

    Attributes
    ----------
    page : str
        The HTML page.
    title : str
        Its name.
    """

    page: str
    title: str

    def _repr_html_(self) -> str:
        # The page is isolated in a frame, where its own policy holds.
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.page)}" width="100%" '
            f'height="{HEIGHT}" frameborder="0"></iframe>'
        )

    def __repr__(self) -> str:
        return (
            f"Report {self.title!r}: shown in a notebook; audit.report('report.html') writes a file"
        )
