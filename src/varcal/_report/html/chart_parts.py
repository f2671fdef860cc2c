"""Parts that charts share: paths in a stretched box, ticks, bars, labels."""

from __future__ import annotations

from collections.abc import Sequence

from varcal._audit.verdicts import FAINT, MADE_WORSE, MARKS, OFF, SIZE_UNCLEAR, SMALL, STRONG
from varcal._measures.histogram import Histogram
from varcal._report.html.axes import Axis
from varcal._report.html.markup import Markup, el

#: Paths are drawn in a square of this size, which is stretched over the plot.
BOX = 1000


def box(*children: Markup, y: float, height: float) -> Markup:
    """Make the stretched box that paths are drawn in."""
    return el(
        "svg",
        children,
        x=0,
        y=y,
        width="100%",
        height=height,
        viewBox=f"0 0 {BOX} {BOX}",
        preserveAspectRatio="none",
        class_="box",
    )


def path(x: Axis, y: Axis, xs: Sequence[float], ys: Sequence[float], class_: str) -> Markup:
    """Make a line."""
    return el("path", d=_steps(x, y, xs, ys), class_=class_)


def band(
    x: Axis, y: Axis, xs: Sequence[float], low: Sequence[float], high: Sequence[float], class_: str
) -> Markup:
    """Make the area between two lines."""
    there, back = _steps(x, y, xs, high), _steps(x, y, list(xs)[::-1], list(low)[::-1])
    return el("path", d=f"{there}L{back[1:]}Z", class_=class_)


def bars(x: Axis, histogram: Histogram, *, y: float, height: float) -> Markup:
    """Make a histogram whose tallest bar is as high as the box."""
    tallest = max(histogram.share) or 1.0
    shapes = []
    for k, share in enumerate(histogram.share):
        left, right = (BOX * x.place(histogram.edges[j]) for j in (k, k + 1))
        top = BOX * (1 - share / tallest)
        if right > left and share > 0:
            shapes.append(f"M{left:.0f} {BOX}V{top:.0f}H{right:.0f}V{BOX}Z")
    return box(el("path", d="".join(shapes), class_="density"), y=y, height=height)


def y_ticks(y: Axis, *, height: float) -> Markup:
    """Make the lines of a grid and their texts to the left of the plot."""
    lines, texts = [], []
    for at, text in y.ticks:
        place = f"{height * (1 - y.place(at)):.1f}"
        lines.append(el("line", x1=0, x2="100%", y1=place, y2=place, class_="grid"))
        texts.append(el("text", text, x=0, y=place, dx=-6, dy="0.32em", class_="tick end"))
    return Markup("".join([*lines, *texts]))


def x_ticks(x: Axis, *, top: float, bottom: float, every: int = 1) -> Markup:
    """Make the marks of the lower axis and their texts below the plot."""
    made = []
    for at, text in x.ticks[::every]:
        place = x.percent(at)
        made.append(el("line", x1=place, x2=place, y1=top, y2=bottom, class_="grid faint"))
        made.append(el("text", text, x=place, y=bottom, dy="1.2em", class_="tick middle"))
    return Markup("".join(made))


def svg(
    *children: Markup, number: str, title: str, text: str, class_: str, **more: object
) -> Markup:
    """Make a chart with a title and a description for screen readers."""
    ids = (f"{number}-title", f"{number}-text")
    return el(
        "svg",
        el("title", title, id=ids[0]),
        el("desc", text, id=ids[1]),
        children,
        role="img",
        aria_labelledby=" ".join(ids),
        class_=f"chart {class_}",
        **more,
    )


def _steps(x: Axis, y: Axis, xs: Sequence[float], ys: Sequence[float]) -> str:
    places = (
        f"{BOX * a:.0f} {BOX * (1 - b):.0f}"
        for a, b in zip(x.places(xs), y.places(ys), strict=True)
        if b == b
    )
    return "M" + "L".join(places)


#: The colour of a verdict.
LOOKS = {OFF: "bad", MADE_WORSE: "bad", SIZE_UNCLEAR: "watch", SMALL: "watch"}


def verdict_badge(verdict: str) -> Markup:
    """Show a verdict with its mark."""
    look = " strong" if verdict in STRONG else " faint" if verdict in FAINT else ""
    colour = f" {LOOKS[verdict]}" if verdict in LOOKS else ""
    mark = el("span", MARKS[verdict], aria_hidden="true")
    return el("span", mark, f" {verdict.capitalize()}", class_=f"verdict{look}{colour}")
