"""The frame of every page: templates that escape all text, in one file that fetches nothing.

``{{ }}`` writes sentences and text from the data as well as plain text: in a page, names, stressed
words and code become elements; in Markdown, its own signs.
"""

from __future__ import annotations

import json
import math
import platform
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from varcal import _text
from varcal._files.atomic import write_whole
from varcal._text import (
    Code,
    Named,
    Sentence,
    Strong,
    Unit,
    count,
    cut,
    gap_mark,
    number_text,
    short,
)
from varcal._version import __version__
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from jinja2 import Environment

    from varcal._audit.sentences import Group


#: What templates write numbers with.
_FILTERS = "count level_text p_text ratio_text"
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$:@>-])")
_BREAKS = re.compile(r"[\r\n\v\f\x85\u2028\u2029]+")


def render(template: str, **context: Any) -> str:
    """Write a template: ``.html.j2`` as a page or a part of one, ``.md.j2`` as Markdown."""
    pages, texts, _ = _environments()
    chosen = texts if template.endswith(".md.j2") else pages
    return chosen.get_template(template).render(context)


def prose(template: str, **context: Any) -> list[str]:
    """Return the paragraphs of a ``.txt.j2``, one per line, as plain text."""
    return _environments()[2].get_template(template).render(context).splitlines()


def write_report(path: str | PathLike[str], forms: Mapping[str, Callable[[], str]]) -> None:
    """Write a report whole or not at all, in the format of the file's extension."""
    suffix = Path(path).suffix.lower()
    suffix = ".html" if suffix == ".htm" else suffix
    if suffix not in forms:
        raise InputError(
            f"path has an unknown extension for a report: {str(path)!r}",
            f"use one of {', '.join(forms)}",
            argument="path",
        )
    write_whole(path, forms[suffix]())


def json_text(content: Mapping[str, Any]) -> str:
    """Write a result as JSON; NaN is null, and a lone surrogate is escaped as JSON does."""
    text = json.dumps(plain(content), allow_nan=False, indent=1, ensure_ascii=False) + "\n"
    return text.encode(errors="backslashreplace").decode()


def plain(value: Any) -> Any:
    """Turn records into dicts, lists, numbers and strings.

    >>> plain(Sentence.of("a", "b")), plain((1, float("nan")))
    ('ab', [1, None])
    """
    if isinstance(value, Sentence):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and value - value != 0 else value


@cache
def _environments() -> tuple[Environment, Environment, Environment]:
    """Return the environments of pages, Markdown and plain text, made when first used."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    pages = Environment(
        loader=PackageLoader("varcal._report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=as_html,
    )
    pages.filters |= {name: getattr(_text, name) for name in _FILTERS.split()}
    pages.filters |= {"named": named, "plain": str, "mark": gap_mark}
    pages.filters |= {
        "rate": lambda value, unit=None: (unit or Unit()).rate(value),
        "error": lambda value, unit=None: (unit or Unit()).error(value),
        "signed": lambda value, unit=None: (unit or Unit()).signed(value),
        "ends": lambda low, high, unit=None: (unit or Unit()).ends(low, high),
    }
    templates = files("varcal._report").joinpath("templates")
    style, script = (
        templates.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    pages.globals |= {
        "style": Markup(style),
        "script": Markup(script),
        "policy": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        "rates_axis": rates_axis,
        "points": POINTS,
    }
    # Autoescape stays on: what `as_markdown` returns counts as escaped.
    plain_text = pages.overlay(autoescape=False, finalize=str)
    return pages, pages.overlay(finalize=as_markdown), plain_text


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def named(text: object, length: int = 60) -> Named:
    """Mark text that came from the data, and cut it if it is long."""
    return Named(cut(str(text), length))


def as_html(value: Any) -> Any:
    """Mark up a sentence or a text for a page.

    >>> as_html(Sentence.of("a < b ", Named("<i>"), Code("x()")))
    Markup('a &lt; b <bdi>&lt;i&gt;</bdi><code>x()</code>')
    """
    if value is None:
        return ""
    if isinstance(value, Sentence):
        return Markup("").join(as_html(part) for part in value.parts)
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = escape(clean(value))
    if isinstance(value, Code):
        return Markup("<code>{}</code>").format(text)
    if isinstance(value, Named):
        text = Markup("<bdi>{}</bdi>").format(text)
    return Markup("<b>{}</b>").format(text) if isinstance(value, Strong) else text


def as_markdown(value: Any) -> Any:
    r"""Write a sentence or a text in Markdown: no signs are read in text from the data.

    >>> as_markdown(Sentence.of("*", Named("<b> | *a*\n"), Strong("!")))
    Markup('*&lt;b&gt; \\| \\*a\\* **!**')
    """
    if value is None:
        return ""
    if isinstance(value, Sentence):
        return Markup("").join(as_markdown(part) for part in value.parts)
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = clean(_BREAKS.sub(" ", value))
    if isinstance(value, Code):
        return Markup("`" + text.replace("`", "'") + "`")
    if isinstance(value, Named):
        text = _SPECIAL.sub(r"\\\1", text).replace("www.", "www\\.")
        text = text.replace("&", "&amp;").replace("\\>", "&gt;")
    text = text.replace("<", "&lt;")
    return Markup(f"**{text}**" if isinstance(value, Strong) else text)


def now() -> str:
    """Return the time at which a report is made."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def installed() -> tuple[tuple[str, str], ...]:
    """Return the versions of the packages behind the figures."""
    packages = tuple((name, version(name)) for name in ("numpy", "scipy"))
    return (("varcal", __version__), ("Python", platform.python_version()), *packages)


def about(notes: list[Sentence], method: list[str]) -> dict[str, Any]:
    """Return what the section on data and method shows."""
    return {"notes": notes, "method": method, "citation": citation(), "versions": installed()}


def citation() -> list[str]:
    """Say how to cite the method and the software."""
    return [
        "Kelly, M. and Smyth, P. (2023). Variable-Based Calibration for Machine Learning "
        "Classifiers. AAAI-23. https://arxiv.org/abs/2209.15154",
        f"varcal {__version__} (software). Variable-based calibration audits.",
    ]


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
class Scale:
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


#: The values of a line.
Line = Sequence[float]
#: The least length of an axis, a tenth of a point, and of one of amounts.
LEAST_SPAN, TINY_SPAN = 0.001, 1e-12
#: How probabilities are written.
POINTS = Unit()


def share_axis(high: float, low: float = 0.0, many: int = 5, unit: Unit = POINTS) -> Scale:
    """Make an axis of shares in percent or of means, from a round value to a round value.

    >>> axis = share_axis(0.43)
    >>> axis.high, [text for _, text in axis.ticks]
    (0.5, ['0%', '10%', '20%', '30%', '40%', '50%'])
    """
    low = min(low, unit.most - LEAST_SPAN)
    high = max(high, low + (LEAST_SPAN if unit.most == 1 else TINY_SPAN))
    step = _round_step(high - low, many)
    top = min(step * math.ceil(high / step - 1e-9), unit.most)
    bottom = max(step * math.floor(low / step + 1e-9), unit.least)
    ticks = _round_steps(bottom, top, step)
    return Scale(bottom, top, tuple((at, unit.tick(at)) for at in ticks))


def points_axis(high: float, low: float = 0.0, many: int = 5, unit: Unit = POINTS) -> Scale:
    """Make an axis of errors, from a round value to a round value.

    >>> [text for _, text in points_axis(0.05, -0.05, many=2).ticks]
    ['−5', '0', '+5']
    """
    high = max(high, low + LEAST_SPAN * min(unit.scale / POINTS.scale, 1.0))
    step = _round_step(high - low, many)
    top, bottom = step * math.ceil(high / step - 1e-9), step * math.floor(low / step + 1e-9)
    texts = []
    for at in _round_steps(bottom, top, step):
        text = number_text(float(f"{unit.scale * at:.12g}"))
        texts.append((at, f"+{text}" if low < 0 < at else text))
    return Scale(bottom, top, tuple(texts))


def rates_axis(rows: Iterable[Group], unit: Unit | None = None) -> Scale:
    """Make the axis of a table of says and happens: from zero, unless all rates are far from it."""
    unit = unit or POINTS
    held = []
    for row in rows:
        values = [row.predicted, row.observed]
        values += [unit.happens_at(row.predicted, end) for end in (row.low, row.high)]
        values += [] if row.repaired is None else [row.repaired.predicted]
        held += [min(max(one, unit.least), unit.most) for one in values if one == one]
    low, high = min(held, default=0.0), max(held, default=0.0)
    if unit.most == 1:
        return share_axis(max(high, 0.02), low if low > 0.4 else 0.0, many=3)
    return share_axis(high, low if low > 0.4 * high or low < 0 else 0.0, many=3, unit=unit)


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


def path(x: Scale, y: Scale, xs: Iterable[float], ys: Iterable[float], class_: str) -> Markup:
    """Make a line."""
    return el("path", d=_steps(x, y, xs, ys), class_=class_)


def band(x: Scale, y: Scale, xs: Line, low: Line, high: Line, class_: str) -> Markup:
    """Make the area between two lines."""
    there, back = _steps(x, y, xs, high), _steps(x, y, xs[::-1], low[::-1])
    return el("path", d=f"{there}L{back[1:]}Z", class_=class_)


def _steps(x: Scale, y: Scale, xs: Iterable[float], ys: Iterable[float]) -> str:
    places = (
        f"{BOX * x.place(a):.0f} {BOX * (1 - y.place(b)):.0f}"
        for a, b in zip(xs, ys, strict=True)
        if b == b
    )
    return "M" + "L".join(places)


def level(y: Scale, value: float, height: float) -> str:
    """Return how far below the top of a plot a value is, in pixels."""
    return f"{height * (1 - y.place(value)):.1f}"


def y_ticks(y: Scale, height: float) -> Markup:
    """Make the lines of a grid and their texts to the left of the plot."""
    places = [(level(y, at, height), text) for at, text in y.ticks]
    lines = [el("line", x1=0, x2="100%", y1=at, y2=at, class_="grid") for at, _ in places]
    texts = [
        el("text", text, x=0, y=at, dx=-6, dy="0.32em", class_="tick end") for at, text in places
    ]
    return Markup("".join(lines + texts))


def x_ticks(x: Scale, height: float, margin: float = 0.15) -> Markup:
    """Write the ticks under the plot; those near its ends stay inside."""
    made = []
    for at, text in x.ticks:
        place, look = x.percent(at), f"tick {x.anchor(at, margin)}"
        made.append(el("line", x1=place, x2=place, y1=0, y2=height, class_="grid faint"))
        made.append(el("text", text, x=place, y=height, dy="1.3em", class_=look))
    return Markup("").join(made)


def bar(x: Scale, left: float, right: float, **look: object) -> Markup:
    """Make a rectangle over a range of values."""
    width = f"{100 * (x.place(right) - x.place(left)):.2f}%"
    return el("rect", x=x.percent(left), y=0, width=width, **look)


def columns(x: Scale, edges: Sequence[float], texts: Sequence[str], height: float) -> Markup:
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
    bins: Sequence[Mapping[str, Any]], y: Scale, *, key: str, title: str, unit: Unit
) -> Markup:
    """Draw what the model says and what happens in each bin of a variable.

    Parameters
    ----------
    bins : sequence of mappings
        With `bin`, `n`, `predicted`, `observed`, `gap_low`, `gap_high` and possibly `after`, what
        the model says after a repair.
    y : Scale
        The rates.
    key, title : str
        The id of the chart, and its title for screen readers.
    unit : Unit
        How rates are written.
    """
    x, ends = Scale(0, len(bins)), [short(bins[k]["bin"], 18) for k in (0, -1)]
    shapes = [_bin(one, k, x, y, unit) for k, one in enumerate(bins) if one["n"]]
    names = [
        el("text", text, x=f"{place}%", y=BIN_HEIGHT + 18, class_=f"tick {anchor}")
        for text, place, anchor in zip(ends, (0, 100), ("", "end"), strict=True)
    ]
    text = f"{count(len(bins), 'bin')}, from {ends[0]} to {ends[1]}."
    parts = [y_ticks(y, BIN_HEIGHT), *shapes, *names[: len(bins)]]
    return chart(*parts, key=key, title=title, text=text, class_="small")


def _bin(one: Mapping[str, Any], k: int, x: Scale, y: Scale, unit: Unit) -> Markup:
    says, happens, after = one["predicted"], one["observed"], one.get("after", math.nan)
    middle, sides = x.percent(k + 0.5), {"x1": x.percent(k + 0.14), "x2": x.percent(k + 0.86)}
    ends = [unit.happens_at(says, one[end]) for end in ("gap_high", "gap_low")]
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
    repaired = "" if math.isnan(after) else f" ({unit.rate(after)} after the repair)"
    rates = f"{unit.says} {unit.rate(says)}{repaired}, {unit.happens} {unit.rate(happens)}"
    text = f"{short(one['bin'], 60)}: {rates}, {count(one['n'], 'row')}"
    return tip(Markup("").join(shapes), text, "few" if one["n"] < FEW else "")
