"""A table of what the model says and what happens, with a dumbbell between the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from varcal._report.html.axes import Axis, share_axis
from varcal._report.html.markup import Child, Markup, el
from varcal._text.gaps import gap_mark
from varcal._text.numbers import interval, percent, points
from varcal._text.sentences import Sentence


@dataclass(frozen=True)
class Dumbbell:
    """One line of the table.

    Attributes
    ----------
    name, about
        What it is about, and what to add in small print.
    says, happens : float
        The two rates.
    low, high : float
        The interval of says − happens.
    side : Sentence
        The direction of the gap in words.
    instead : Sentence
        If not empty, what to write instead of a mark and a side.
    """

    name: Child
    about: Child
    says: float
    happens: float
    low: float
    high: float
    side: Sentence
    instead: Sentence

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


def dumbbell_table(
    rows: Sequence[Dumbbell],
    *,
    caption: Child,
    heads: tuple[str, str, str, str],
) -> Markup:
    """Make the table; `heads` are the titles of group, picture and the two rates."""
    axis = _axis(rows)
    head = [
        _cell("th", "columnheader", heads[0], "g", scope="col"),
        _cell("th", "columnheader", heads[1], "c", scope="col"),
        _cell("th", "columnheader", heads[2], "num", scope="col"),
        _cell("th", "columnheader", heads[3], "num", scope="col"),
        _cell("th", "columnheader", "Off by, points", "num", scope="col"),
    ]
    ticks = [
        el("text", text, x=axis.percent(at), y=12, class_=f"tick {axis.anchor(at)}")
        # Of four and more there is room for every second one only.
        for at, text in axis.ticks[:: 2 if len(axis.ticks) > 3 else 1]
    ]
    foot = el(
        "tfoot",
        el(
            "tr",
            el("td"),
            el("td", el("svg", ticks, class_="ticks"), class_="c"),
            el("td", colspan=3),
        ),
        aria_hidden="true",
    )
    table = el(
        "table",
        el("caption", caption, class_="quiet"),
        el("thead", el("tr", head, role="row"), role="rowgroup"),
        el("tbody", [_row(one, axis, heads) for one in rows], role="rowgroup"),
        foot,
        class_="db",
        role="table",
    )
    return Markup(table + _key(heads))


def _axis(rows: Sequence[Dumbbell]) -> Axis:
    held = [one for one in rows if one.says == one.says]
    ends = [max(one.says, one.happens, _clip(one.says - one.low)) for one in held]
    starts = [min(one.says, one.happens, _clip(one.says - one.high)) for one in held]
    low = min(starts, default=0.0)
    # From zero, unless all rates are far from it.
    return share_axis(max(ends, default=0.02), low if low > 0.4 else 0.0, many=3)


def _row(one: Dumbbell, axis: Axis, heads: tuple[str, str, str, str]) -> Markup:
    return el(
        "tr",
        _cell("th", "rowheader", [el("b", one.name), el("small", one.about)], "g", scope="row"),
        _cell("td", "cell", _picture(one, axis), "c"),
        _cell("td", "cell", percent(one.says), "num says", data_l=heads[2].lower().split()[-1]),
        _cell(
            "td", "cell", percent(one.happens), "num happens", data_l=heads[3].lower().split()[-1]
        ),
        _cell("td", "cell", _off(one), "num off"),
        role="row",
    )


def _off(one: Dumbbell) -> list[Child]:
    gap = one.says - one.happens
    if one.instead:
        return [el("span", points(abs(gap)), " ", one.side), el("small", one.instead)]
    if not one.is_sure:
        return [el("span", "not sure", class_="unsure"), el("small", interval(one.low, one.high))]
    low, high = sorted((abs(one.low), abs(one.high)))
    return [
        el(
            "span",
            el("span", gap_mark(gap), aria_hidden="true"),
            " ",
            el("b", points(abs(gap))),
            " ",
            one.side,
            class_="over" if gap > 0 else "under",
        ),
        el("small", interval(low, high)),
    ]


def _picture(one: Dumbbell, axis: Axis) -> Markup:
    says, happens = axis.percent(one.says), axis.percent(one.happens)
    ends = [axis.percent(_clip(one.says - end)) for end in (one.high, one.low)]
    side = (
        ("over" if one.says > one.happens else "under") if one.is_sure and not one.instead else ""
    )
    return el(
        "svg",
        el("line", x1=0, x2="100%", y1=12, y2=12, class_="grid"),
        el("line", x1=says, x2=happens, y1=12, y2=12, class_=f"reach {side}"),
        el("line", x1=ends[0], x2=ends[1], y1=12, y2=12, class_="whisker"),
        el("line", x1=says, x2=says, y1=3, y2=21, class_="dash"),
        el("circle", cx=happens, cy=12, r=5.5, class_="dot actual"),
        class_="row",
        aria_hidden="true",
    )


def _key(heads: tuple[str, str, str, str]) -> Markup:
    dash = el("svg", el("line", x1=5, x2=5, y1=0, y2=16, class_="dash"), class_="key narrow")
    dot = el(
        "svg",
        el("line", x1=0, x2=26, y1=8, y2=8, class_="whisker"),
        el("circle", cx=13, cy=8, r=5, class_="dot actual"),
        class_="key",
    )
    says, happens = heads[2].lower(), heads[3].lower()
    return el(
        "p",
        el("span", dash, f" {says}"),
        el("span", dot, f" {happens}, with its interval"),
        class_="legend",
        aria_hidden="true",
    )


def _cell(tag: str, role: str, content: Child, class_: str, **more: object) -> Markup:
    # Roles are given because the rows of a table are stacked on phones.
    return el(tag, content, role=role, class_=class_, **more)


def _clip(rate: float) -> float:
    return min(max(rate, 0.0), 1.0)
