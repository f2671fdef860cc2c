"""Axes and the parts of charts, as SVG in which all text is escaped.

Paths are drawn in a square that is stretched over the plot. Texts are placed in percent of the
plot, so that they keep their size at any width; heights are in pixels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from varcal._edge_texts import show_number
from varcal._text import count, number_text, percent, short

#: Paths are drawn in a square of this size.
BOX = 1000
#: The height of the small charts of bins, in pixels, as in the style.
BIN_HEIGHT = 150
#: Bins with fewer rows are drawn pale.
FEW = 20
# Control characters, lone surrogates and noncharacters are not allowed in a page.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Replace characters that are not allowed in a page."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def el(tag: str, *children: str, **attributes: object) -> Markup:
    """Make an element; underscores of attribute names become hyphens, a trailing one is dropped.

    >>> el("text", "a < b", class_="tick", font_size=12)
    Markup('<text class="tick" font-size="12">a &lt; b</text>')
    """
    opening = "".join(
        f' {key.removesuffix("_").replace("_", "-")}="{escape(clean(str(value)))}"'
        for key, value in attributes.items()
    )
    inner = "".join(escape(one if isinstance(one, Markup) else clean(one)) for one in children)
    return Markup(f"<{tag}{opening}>{inner}</{tag}>")


@dataclass(frozen=True)
class Axis:
    """A range of values and its ticks, each with its text."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()

    def place(self, value: float) -> float:
        """Return where a value is, from 0 to 1; values outside are put at the ends."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def percent(self, value: float) -> str:
        """Return the place as an attribute, in percent of the plot."""
        return f"{100 * self.place(value):.2f}%"

    def anchor(self, value: float, margin: float = 0.04) -> str:
        """Return the class of a text at a place, which keeps texts at the ends inside the plot."""
        place = self.place(value)
        return "" if place < margin else "end" if place > 1 - margin else "middle"


#: The least length of an axis, a tenth of a point.
LEAST_SPAN = 0.001


def share_axis(high: float, low: float = 0.0, many: int = 5) -> Axis:
    """Make an axis of shares in percent, from a round value to a round value, at most 100%.

    >>> axis = share_axis(0.43)
    >>> axis.high, [text for _, text in axis.ticks]
    (0.5, ['0%', '10%', '20%', '30%', '40%', '50%'])
    """
    low = min(low, 1 - LEAST_SPAN)
    high = max(high, low + LEAST_SPAN)
    step = _round_step(high - low, many)
    top = min(step * math.ceil(high / step - 1e-9), 1.0)
    bottom = max(step * math.floor(low / step + 1e-9), 0.0)
    ticks = _round_steps(bottom, top, step)
    return Axis(bottom, top, tuple((at, f"{show_number(round(100 * at, 6))}%") for at in ticks))


def points_axis(high: float, low: float = 0.0, many: int = 5) -> Axis:
    """Make an axis of errors in points, from a round value to a round value.

    >>> [text for _, text in points_axis(0.05, -0.05, many=2).ticks]
    ['−5', '0', '+5']
    """
    high = max(high, low + LEAST_SPAN)
    step = _round_step(high - low, many)
    top, bottom = step * math.ceil(high / step - 1e-9), step * math.floor(low / step + 1e-9)
    texts = []
    for at in _round_steps(bottom, top, step):
        text = number_text(round(100 * at, 6))
        texts.append((at, f"+{text}" if low < 0 < at else text))
    return Axis(bottom, top, tuple(texts))


def rates_axis(rows: Iterable[Any]) -> Axis:
    """Make the axis of a table of says and happens: from zero, unless all rates are far from it."""
    held = []
    for row in rows:
        values = [row["predicted"], row["observed"]]
        values += [row["predicted"] - row[end] for end in ("low", "high")]
        values += [row["after"]["predicted"]] if row.get("after") else []
        held += [min(max(one, 0.0), 1.0) for one in values if one == one]
    low = min(held, default=0.0)
    return share_axis(max([0.02, *held]), low if low > 0.4 else 0.0, many=3)


def _round_steps(low: float, high: float, step: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _round_step(span: float, many: int) -> float:
    rough = span / many
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(k * scale for k in (1, 2, 5, 10) if k * scale >= rough * 0.999)


def box(*children: str, height: float) -> Markup:
    """Make the stretched box that paths are drawn in."""
    size = {"viewBox": f"0 0 {BOX} {BOX}", "preserveAspectRatio": "none"}
    return el("svg", *children, width="100%", height=height, **size, class_="box")


def path(x: Axis, y: Axis, xs: Iterable[float], ys: Iterable[float], class_: str) -> Markup:
    """Make a line."""
    return el("path", d=_steps(x, y, xs, ys), class_=class_)


def band(
    x: Axis, y: Axis, xs: Sequence[float], low: Sequence[float], high: Sequence[float], class_: str
) -> Markup:
    """Make the area between two lines."""
    there, back = _steps(x, y, xs, high), _steps(x, y, xs[::-1], low[::-1])
    return el("path", d=f"{there}L{back[1:]}Z", class_=class_)


def _steps(x: Axis, y: Axis, xs: Iterable[float], ys: Iterable[float]) -> str:
    places = (
        f"{BOX * x.place(a):.0f} {BOX * (1 - y.place(b)):.0f}"
        for a, b in zip(xs, ys, strict=True)
        if b == b
    )
    return "M" + "L".join(places)


def level(y: Axis, value: float, height: float) -> str:
    """Return how far below the top of a plot a value is, in pixels."""
    return f"{height * (1 - y.place(value)):.1f}"


def y_ticks(y: Axis, height: float) -> Markup:
    """Make the lines of a grid and their texts to the left of the plot."""
    places = [(level(y, at, height), text) for at, text in y.ticks]
    lines = [el("line", x1=0, x2="100%", y1=at, y2=at, class_="grid") for at, _ in places]
    texts = [
        el("text", text, x=0, y=at, dx=-6, dy="0.32em", class_="tick end") for at, text in places
    ]
    return Markup("".join(lines + texts))


def x_ticks(x: Axis, height: float, margin: float = 0.15) -> Markup:
    """Write the ticks under the plot; those near its ends stay inside."""
    made = []
    for at, text in x.ticks:
        place, look = x.percent(at), f"tick {x.anchor(at, margin)}"
        made.append(el("line", x1=place, x2=place, y1=0, y2=height, class_="grid faint"))
        made.append(el("text", text, x=place, y=height, dy="1.3em", class_=look))
    return Markup("").join(made)


def bar(x: Axis, left: float, right: float, **look: object) -> Markup:
    """Make a rectangle over a range of values."""
    width = f"{100 * (x.place(right) - x.place(left)):.2f}%"
    return el("rect", x=x.percent(left), y=0, width=width, **look)


def columns(x: Axis, edges: Sequence[float], texts: Sequence[str], height: float) -> Markup:
    """Make unseen columns over a plot that show their text to a pointer, a finger or the keys."""
    return Markup("").join(
        tip(bar(x, left, right, height=height), text, "hit")
        for left, right, text in zip(edges[:-1], edges[1:], texts, strict=True)
    )


def tip(shape: Markup, text: str, class_: str = "") -> Markup:
    """Give a part of a chart a text, which the script shows in a style of its own."""
    return el("g", el("title", text), shape, class_=f"tip {class_}".strip(), role="img")


def chart(*children: str, key: str, title: str, text: str, class_: str) -> Markup:
    """Make a chart with a title and a description for screen readers."""
    ids = f"{key}-title {key}-text"
    head = el("title", title, id=f"{key}-title") + el("desc", text, id=f"{key}-text")
    return el("svg", head, *children, role="group", aria_labelledby=ids, class_=f"chart {class_}")


def bin_chart(
    bins: Sequence[Mapping[str, Any]], y: Axis, *, key: str, title: str, digits: int = 1
) -> Markup:
    """Draw what the model says and what happens in each bin of a variable.

    Parameters
    ----------
    bins : sequence of mappings
        With `text`, `n`, `predicted`, `observed`, `gap_low`, `gap_high` and possibly `after`, what
        the model says after a repair.
    y : Axis
        The rates.
    key, title : str
        The id of the chart, and its title for screen readers.
    digits : int
        Decimals of rates.
    """
    x, ends = Axis(0, len(bins)), [short(bins[k]["text"], 18) for k in (0, -1)]
    shapes = [_bin(one, k, x, y, digits) for k, one in enumerate(bins) if one["n"]]
    names = [
        el("text", text, x=f"{place}%", y=BIN_HEIGHT + 18, class_=f"tick {anchor}")
        for text, place, anchor in zip(ends, (0, 100), ("", "end"), strict=True)
    ]
    text = f"{count(len(bins), 'bin')}, from {ends[0]} to {ends[1]}."
    parts = [y_ticks(y, BIN_HEIGHT), *shapes, *names[: len(bins)]]
    return chart(*parts, key=key, title=title, text=text, class_="small")


def _bin(one: Mapping[str, Any], k: int, x: Axis, y: Axis, digits: int) -> Markup:
    says, happens, after = one["predicted"], one["observed"], one.get("after", math.nan)
    middle, sides = x.percent(k + 0.5), {"x1": x.percent(k + 0.14), "x2": x.percent(k + 0.86)}
    ends = [says - one[end] for end in ("gap_high", "gap_low")]
    shapes = [el("rect", x=x.percent(k), width=x.percent(1), height=BIN_HEIGHT, class_="hit")]
    if not math.isnan(sum(ends)):
        low, high = (level(y, end, BIN_HEIGHT) for end in ends)
        shapes.append(el("line", x1=middle, x2=middle, y1=low, y2=high, class_="whisker"))
    at = level(y, happens, BIN_HEIGHT)
    shapes.append(el("circle", cx=middle, cy=at, r=4.5, class_="dot actual"))
    for name, rate in (("saysbar", says), ("afterbar", after)):
        if not math.isnan(rate):
            at = level(y, rate, BIN_HEIGHT)
            shapes.append(el("line", **sides, y1=at, y2=at, class_=name))
    repaired = "" if math.isnan(after) else f" ({percent(after, digits)} after the repair)"
    rates = f"says {percent(says, digits)}{repaired}, happens {percent(happens, digits)}"
    text = f"{short(one['text'], 60)}: {rates}, {count(one['n'], 'row')}"
    return tip(Markup("").join(shapes), text, "few" if one["n"] < FEW else "")
