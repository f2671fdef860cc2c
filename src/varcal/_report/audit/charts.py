"""Charts along numbers and dates: what happened with its band, and what the model said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from varcal._measures.histogram import Histogram
from varcal._measures.regions import Region
from varcal._report.audit.summary import ScoreSummary
from varcal._report.claim_words import ClaimWords
from varcal._report.html.axes import (
    Axis,
    date_axis,
    duration_axis,
    number_axis,
    points_axis,
    share_axis,
)
from varcal._report.html.chart_parts import band, bars, box, path, svg, x_ticks, y_ticks
from varcal._report.html.label_places import Box, distance, place_label, text_box
from varcal._report.html.markup import Markup, el
from varcal._report.lines import Line
from varcal._text.gaps import gap_mark, gap_side, off_by
from varcal._text.numbers import limit_text, percent, points
from varcal._text.sentences import Named, cut

# Heights in pixels of the plot, the bar of sure errors and the histogram, large and small.
LARGE, SMALL = (300, 14, 48), (120, 8, 30)
#: Widths that texts are placed for: charts are wider on a desk, and about this wide on a phone.
WIDE, NARROW = 460.0, 250.0
#: Shares of the width: the least that a marked region takes, and what a sign and a word need.
NARROWEST_MARK, WIDTH_OF_SIGN, WIDTH_OF_WORD = 0.006, 0.05, 0.2
#: The longest name below an axis.
AXIS_NAME = 24
#: Lines that are nowhere further apart than this share of the axis coincide.
COINCIDE = 0.04


class Drawn(Protocol):
    """What a chart of lines draws: a panel of an audit or of a comparison."""

    @property
    def line(self) -> Line:
        """The two rates."""

    @property
    def regions(self) -> tuple[Region, ...]:
        """Where the band of the gap excludes zero."""

    @property
    def histogram(self) -> Histogram | None:
        """How often values occur."""


def chart_data(
    line: Line, histogram: Histogram | None, worst: int, words: ClaimWords
) -> dict[str, Any]:
    """Return what the script of the page reads: places and tenths of a percent."""
    places = x_axis([line], histogram).places(line.x)
    axis = y_axis([line], words)
    return {
        "x": [round(1000 * place) for place in places],
        "t": [cut(label) for label in line.labels],
        "a": _tenths(line.actual),
        "l": _tenths(line.actual_low),
        "h": _tenths(line.actual_high),
        "p": _tenths(line.predicted),
        "s": [
            int(not low <= said <= high)
            for low, said, high in zip(
                line.actual_low, line.predicted, line.actual_high, strict=True
            )
        ],
        "k": worst,
        "y": [round(1000 * axis.low), round(1000 * axis.high)],
        "over": str(off_by(1.0, words.claim)).split(" by ")[0],
        "under": str(off_by(-1.0, words.claim)).split(" by ")[0],
        "says": words.says_short,
        "happens": words.happens_short,
    }


def read_out(line: Line, k: int, words: ClaimWords) -> list[str]:
    """Say what a chart shows at one point, as the script of the page says it at others."""
    actual, predicted = round(line.actual[k], 3), round(line.predicted[k], 3)
    gap = predicted - actual
    low, high = (percent(ends[k]) for ends in (line.actual_low, line.actual_high))
    sure = not line.actual_low[k] <= line.predicted[k] <= line.actual_high[k]
    side = str(off_by(gap, words.claim)) if sure else "not surely off"
    return [
        Named(cut(line.labels[k])),
        f": {words.says_short} {percent(predicted)}, {words.happens_short} "
        f"{percent(actual)} (band {low} to {high}): {side}.",
    ]


def _tenths(values: Sequence[float]) -> list[int]:
    return [round(1000 * value) for value in values]


def axis_name(variable: str) -> str:
    """Return the name of a variable as it fits below a small chart.

    >>> axis_name("age"), axis_name("n" * 100)
    ('age', 'nnnnnnnnnnnnnnnnnnnnnnn…')
    """
    name = cut(variable)
    return name if len(name) <= AXIS_NAME else f"{name[: AXIS_NAME - 1]}…"


def x_axis(lines: Sequence[Line], histogram: Histogram | None) -> Axis:
    """Make the axis of a variable, wide enough for every line and the histogram."""
    low, high = min(line.x[0] for line in lines), max(line.x[-1] for line in lines)
    if histogram is not None:
        low, high = min(histogram.edges[0], low), max(histogram.edges[-1], high)
    make = {"datetime": date_axis, "duration": duration_axis}.get(lines[0].kind, number_axis)
    return make(low, high)


def y_axis(lines: Sequence[Line], words: ClaimWords, many: int = 5) -> Axis:
    """Make the axis of rates, high enough for every line and its band."""
    high = max(0.02, *(max(*line.actual_high, *line.predicted) for line in lines))
    low = min(min(*line.actual_low, *line.predicted) for line in lines)
    return share_axis(high, 0.0 if words.from_zero else min(low, high - 0.02), many)


def coincides(line: Line, words: ClaimWords) -> bool:
    """Whether the two lines can hardly be told apart."""
    axis = y_axis([line], words)
    apart = max(abs(a - p) for a, p in zip(line.actual, line.predicted, strict=True))
    return apart < COINCIDE * (axis.high - axis.low)


def lines_chart(
    one: Drawn,
    number: str,
    title: str,
    described: str,
    words: ClaimWords,
    *,
    variable: str,
    beside: Sequence[Line] = (),
    small: bool = False,
    cursor: bool = False,
    worst: int | None = None,
) -> Markup:
    """Draw lines along numbers or dates, on axes shared with the lines of other charts."""
    plot, strip, tall = SMALL if small else LARGE
    strip_top = plot + 4
    bars_top = strip_top + strip + 4
    bottom = bars_top + (tall if one.histogram else 0)
    line, together = one.line, beside or [one.line]
    x, y = x_axis(together, one.histogram), y_axis(together, words, 2 if small else 5)
    taken: list[Box] = []
    mark = Markup("")
    if worst is not None and not small:
        mark, box_of_mark = _worst_mark(line, worst, x, y, words, plot)
        taken.append(box_of_mark)
    return svg(
        x_ticks(x, top=0, bottom=bottom, every=2 if small and len(x.ticks) > 4 else 1),
        y_ticks(y, height=plot),
        el("text", words.y, x=0, y=-11, dx=-38, class_="title"),
        box(
            band(x, y, line.x, line.actual_low, line.actual_high, "band"),
            path(x, y, line.x, line.predicted, "predicted"),
            path(x, y, line.x, line.actual, "actual"),
            y=0,
            height=plot,
        ),
        mark,
        _names(line, x, y, words, taken, plot, small=small),
        _strip(x, one.regions, words, strip_top, strip, small=small),
        bars(x, one.histogram, y=bars_top, height=tall) if one.histogram else Markup(""),
        el("text", "rows", x=0, y=bottom, dx=-6, dy="-0.3em", class_="tick end")
        if one.histogram
        else Markup(""),
        el("line", x1=0, x2="100%", y1=bottom, y2=bottom, class_="axis"),
        el("text", axis_name(variable), x="50%", y=bottom, dy="2.6em", class_="title middle"),
        _cursor(bottom) if cursor else Markup(""),
        number=number,
        title=title,
        text=described,
        class_="lines small" if small else "lines",
        data_plot=plot,
    )


def gap_chart(line: Line, number: str, limit: float, *, variable: str) -> Markup:
    """Draw the gap with its band against the limit, where the lines themselves coincide."""
    plot, _, _ = SMALL
    gap = np.subtract(line.predicted, line.actual)
    low = np.subtract(line.predicted, line.actual_high)
    high = np.subtract(line.predicted, line.actual_low)
    reach = max(limit * 1.2, float(np.abs([low, high]).max()))
    y = points_axis(reach, -reach, many=4)
    x = x_axis([line], None)
    inside = el(
        "rect",
        x=0,
        width="100%",
        y=f"{plot * (1 - y.place(limit)):.1f}",
        height=f"{plot * (y.place(limit) - y.place(-limit)):.1f}",
        class_="within",
    )
    zero = f"{plot * (1 - y.place(0.0)):.1f}"
    return svg(
        inside,
        x_ticks(x, top=0, bottom=plot, every=2 if len(x.ticks) > 4 else 1),
        y_ticks(y, height=plot),
        el("text", "points", x=0, y=-11, dx=-38, class_="title"),
        box(
            band(x, y, line.x, low.tolist(), high.tolist(), "band"),
            path(x, y, line.x, gap.tolist(), "gap"),
            y=0,
            height=plot,
        ),
        el("line", x1=0, x2="100%", y1=zero, y2=zero, class_="axis"),
        el("text", axis_name(variable), x="50%", y=plot, dy="2.6em", class_="title middle"),
        number=number,
        title="Gap: what the model says minus what happens, with its band",
        text=f"Green: within the limit of {limit_text(limit)} points.",
        class_="lines small gaps",
    )


def _names(
    line: Line,
    x: Axis,
    y: Axis,
    words: ClaimWords,
    taken: list[Box],
    plot: float,
    *,
    small: bool,
) -> Markup:
    """Write the names of the two lines beside them, where they are clear of everything else."""
    places = np.asarray(x.places(line.x))
    actual, predicted, low, high = (
        plot * (1 - np.asarray(y.places(values)))
        for values in (line.actual, line.predicted, line.actual_low, line.actual_high)
    )
    width = NARROW if small else WIDE
    made = []
    names = (
        (words.actual, actual, [(places, predicted)], "actual"),
        (
            words.predicted,
            predicted,
            [(places, actual), (places, low), (places, high)],
            "predicted",
        ),
    )
    for text, own, others, class_ in names:
        found = place_label(text, (places, own), others, taken, width=width, height=plot)
        taken.append(found)
        made.append(
            el(
                "text",
                text,
                x=f"{100 * found.x:.2f}%",
                y=f"{found.y:.1f}",
                dy="0.35em",
                class_=f"name middle {class_}",
            )
        )
    return Markup("".join(made))


def _worst_mark(
    line: Line, k: int, x: Axis, y: Axis, words: ClaimWords, plot: float
) -> tuple[Markup, Box]:
    """Mark the largest gap, and say how large it is and where."""
    at = x.place(line.x[k])
    ends = [plot * (1 - y.place(values[k])) for values in (line.actual, line.predicted)]
    gap = line.predicted[k] - line.actual[k]
    text = f"{points(abs(gap))} {gap_side(gap, words.claim)} at {cut(line.labels[k], 20)}"
    half = text_box(text, 0.0, 0.0, WIDE).half_width
    right = at < 0.5  # where it also fits on a phone
    side = 1 if right else -1
    boxes = [
        Box(at + side * (half + 0.02), ends[0] + part * (ends[1] - ends[0]), half + 0.02)
        for part in (0.5, 0.35, 0.65, 0.2, 0.8)
    ]
    places = np.asarray(x.places(line.x))
    drawn = [
        (places, plot * (1 - np.asarray(y.places(values))))
        for values in (line.actual, line.predicted)
    ]
    found = max(boxes, key=lambda one: min(2.0, *(distance(one, curve) for curve in drawn)))
    middle = found.y
    place = f"{100 * at:.2f}%"
    mark = el(
        "g",
        el("line", x1=place, x2=place, y1=f"{ends[0]:.1f}", y2=f"{ends[1]:.1f}", class_="widest"),
        *(el("circle", cx=place, cy=f"{end:.1f}", r=3, class_="end") for end in ends),
        el(
            "text",
            text,
            x=place,
            y=f"{middle:.1f}",
            dx=8 if right else -8,
            dy="0.35em",
            class_="name ink" if right else "name ink end",
        ),
        class_="worst",
    )
    return mark, found


def _cursor(bottom: float) -> Markup:
    """Make the marks that the script of the page moves."""
    return el(
        "g",
        el("line", x1=0, x2=0, y1=0, y2=bottom),
        el("circle", r=4, class_="dot actual"),
        el("circle", r=4, class_="dot predicted"),
        class_="cursor",
    )


def _strip(
    x: Axis,
    regions: tuple[Region, ...],
    words: ClaimWords,
    top: float,
    height: float,
    *,
    small: bool,
) -> Markup:
    """Mark where the simultaneous band excludes the prediction."""
    made = [el("rect", x=0, y=top, width="100%", height=height, class_="strip")]
    for region in regions:
        low, high = x.place(region.low), x.place(region.high)
        if region.high < x.low or region.low > x.high:
            continue
        width = max(high - low, NARROWEST_MARK)
        left = min(low, 1 - width)
        side = region.direction
        made.append(
            el(
                "rect",
                x=f"{100 * left:.2f}%",
                y=top,
                width=f"{100 * width:.2f}%",
                height=height,
                class_=side,
            )
        )
        if width >= WIDTH_OF_SIGN and not small:
            gap = 1.0 if side == "over" else -1.0
            word = el("tspan", f" {gap_side(gap, words.claim)}", class_="wide")
            made.append(
                el(
                    "text",
                    gap_mark(gap),
                    word if width >= WIDTH_OF_WORD else None,
                    x=f"{100 * (left + width / 2):.2f}%",
                    y=top + height / 2,
                    dy="0.35em",
                    class_="mark middle",
                )
            )
    return Markup("".join(made))


PLOT, BARS = 340, 44
BARS_TOP = PLOT + 6
BOTTOM = BARS_TOP + BARS


def reliability_chart(one: ScoreSummary, number: str, words: ClaimWords) -> Markup:
    """Draw the smooth line with its band, the bins with whiskers, and the diagonal."""
    axis = _axis(one, words)
    x = [bin_.says for bin_ in one.bins]
    low = [max(a - r, 0.0) for a, r in zip(x, one.consistency, strict=True)]
    high = [min(a + r, 1.0) for a, r in zip(x, one.consistency, strict=True)]
    line = one.line
    marks = []
    for bin_ in one.bins:
        at = axis.percent(bin_.says)
        ends = [_down(axis, bin_.says - end) for end in (bin_.low, bin_.high)]
        marks.append(el("line", x1=at, x2=at, y1=ends[0], y2=ends[1], class_="whisker"))
        marks.append(el("circle", cx=at, cy=_down(axis, bin_.happens), r=4.5, class_="dot actual"))
    return svg(
        x_ticks(axis, top=0, bottom=BOTTOM),
        y_ticks(axis, height=PLOT),
        box(
            band(axis, axis, x, low, high, "consistency"),
            path(axis, axis, [axis.low, axis.high], [axis.low, axis.high], "diagonal"),
            band(axis, axis, line.x, line.actual_low, line.actual_high, "band"),
            path(axis, axis, line.x, line.actual, "actual"),
            y=0,
            height=PLOT,
        ),
        Markup("".join(marks)),
        el("text", "perfect", x="100%", y=0, dx=-30, dy="1.2em", class_="tick end"),
        bars(axis, one.histogram, y=BARS_TOP, height=BARS) if one.histogram else Markup(""),
        el("text", "rows", x=0, y=BOTTOM, dx=-6, dy="-0.3em", class_="tick end"),
        el("line", x1=0, x2="100%", y1=BOTTOM, y2=BOTTOM, class_="axis"),
        el("text", words.score, x="50%", y=BOTTOM, dy="2.7em", class_="title middle"),
        el("text", words.hit, x=0, y=-11, dx=-38, class_="title"),
        number=number,
        title=f"{words.hit} by score",
        text=str(one.finding),
        class_="square",
    )


def _axis(one: ScoreSummary, words: ClaimWords) -> Axis:
    """Return the range of both axes: from zero, or from the lowest confidence shown."""
    rates = [rate for bin_ in one.bins for rate in (bin_.says, bin_.happens)]
    high = max(*one.line.x, *one.line.actual_high, *rates, 0.02)
    if words.from_zero:
        return share_axis(high)
    return share_axis(high, min(one.line.x[0], *one.line.actual_low, *rates, high - 0.05))


def _down(axis: Axis, rate: float) -> str:
    return f"{PLOT * (1 - axis.place(min(max(rate, 0.0), 1.0))):.1f}"
