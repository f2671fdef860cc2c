"""Charts of a variable: lines with a band along numbers and dates, dots along levels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from varcal._measures.histogram import Histogram
from varcal._measures.regions import Region
from varcal._text.numbers import count, gap_mark, percent, points
from varcal.report.audit.summary import Line, VariableSummary
from varcal.report.html.axes import Axis, date_axis, number_axis, share_axis
from varcal.report.html.chart_parts import band, bars, box, labels, path, svg, x_ticks, y_ticks
from varcal.report.html.markup import Markup, el
from varcal.report.words import Named, Wording, cut

# Heights in pixels: plot, strip, histogram, and where the last two begin.
PLOT, STRIP, BARS = 190, 14, 38
STRIP_TOP = PLOT + 6
BARS_TOP = STRIP_TOP + STRIP + 4
BOTTOM = BARS_TOP + BARS
#: Shares of the width: the least that a marked region takes, and what a sign and a word need.
NARROWEST_MARK, WIDTH_OF_SIGN, WIDTH_OF_WORD = 0.006, 0.05, 0.22


class Drawn(Protocol):
    """What a chart of lines draws: a variable of an audit, or a panel of a comparison."""

    @property
    def line(self) -> Line:
        """The two lines of the curve."""

    @property
    def regions(self) -> tuple[Region, ...]:
        """Where the band of the gap excludes zero."""

    @property
    def histogram(self) -> Histogram | None:
        """How often values occur."""


def variable_chart(one: VariableSummary, number: str, words: Wording) -> Markup:
    """Draw what happened and what was predicted along a variable."""
    title = f"{words.actual.capitalize()} and {words.predicted} along {cut(one.name)}"
    described = str(one.worst)
    if one.line.kind == "levels":
        chart = levels_chart(one.line, y_axis([one.line]), title, described, words)
        return Markup(levels_key(words) + chart)
    return lines_chart(one, number, title, described, words, cursor=True)


def chart_data(one: VariableSummary) -> dict[str, Any]:
    """Return what the script of the page reads: places and tenths of a percent."""
    line = one.line
    if line.kind == "levels":
        places: Iterable[float] = [0.0] * len(line.x)
    else:
        axis = x_axis([one.line], one.histogram)
        places = (axis.place(x) for x in line.x)
    return {
        "x": [round(1000 * place) for place in places],
        "t": [cut(label) for label in line.labels],
        "a": _tenths(line.actual),
        "l": _tenths(line.actual_low),
        "h": _tenths(line.actual_high),
        "p": _tenths(line.predicted),
        "n": list(line.n),
        "k": one.at_worst,
        "y": round(1000 * y_axis([line]).high),
    }


def read_out(line: Line, k: int, words: Wording) -> list[str]:
    """Say what a chart shows at one point, as the script of the page says it at others."""
    actual, predicted = round(line.actual[k], 3), round(line.predicted[k], 3)
    gap = predicted - actual if words.risk else actual - predicted
    rows = f" ({count(line.n[k], 'row')})" if line.n else ""
    low, high = (percent(ends[k]) for ends in (line.actual_low, line.actual_high))
    side = "no gap" if abs(gap) < 0.0005 else f"{words.side(gap)} by {points(abs(gap))} points"
    return [
        Named(cut(line.labels[k])),
        f"{rows}: {words.happened} {percent(actual)} of the time (band {low} to {high}), "
        f"{words.expected} {percent(predicted)}: {side}.",
    ]


def _tenths(values: Sequence[float]) -> list[int]:
    return [round(1000 * value) for value in values]


def x_axis(lines: Sequence[Line], histogram: Histogram | None) -> Axis:
    """Make the axis of a variable, wide enough for every line and the histogram."""
    low, high = min(line.x[0] for line in lines), max(line.x[-1] for line in lines)
    if histogram is not None:
        low, high = min(histogram.edges[0], low), max(histogram.edges[-1], high)
    return date_axis(low, high) if lines[0].kind == "datetime" else number_axis(low, high)


def y_axis(lines: Sequence[Line]) -> Axis:
    """Make the axis of rates, high enough for every line and its band."""
    return share_axis(max(0.02, *(max(*line.actual_high, *line.predicted) for line in lines)))


def lines_chart(
    one: Drawn,
    number: str,
    title: str,
    described: str,
    words: Wording,
    *,
    beside: Sequence[Line] = (),
    cursor: bool = False,
) -> Markup:
    """Draw lines along numbers or dates, on axes shared with the lines of other charts."""
    line, together = one.line, beside or [one.line]
    x, y = x_axis(together, one.histogram), y_axis(together)
    return svg(
        x_ticks(x, top=0, bottom=BOTTOM),
        y_ticks(y, height=PLOT),
        box(
            band(x, y, line.x, line.actual_low, line.actual_high, "band"),
            path(x, y, line.x, line.predicted, "predicted"),
            path(x, y, line.x, line.actual, "actual"),
            y=0,
            height=PLOT,
        ),
        labels(
            [
                (y.place(line.actual[-1]), words.actual.split()[0], "actual"),
                (y.place(line.predicted[-1]), words.predicted.split()[0], "predicted"),
            ],
            height=PLOT,
        ),
        _strip(x, one.regions, "positive" if words.risk else "correct"),
        bars(x, one.histogram, y=BARS_TOP, height=BARS) if one.histogram else Markup(""),
        el("line", x1=0, x2="100%", y1=BOTTOM, y2=BOTTOM, class_="axis"),
        _cursor() if cursor else Markup(""),
        number=number,
        title=title,
        text=described,
        class_="lines",
    )


def _cursor() -> Markup:
    """Make the marks that the script of the page moves."""
    return el(
        "g",
        el("line", x1=0, x2=0, y1=0, y2=BOTTOM),
        el("circle", r=4, class_="dot actual"),
        el("circle", r=4, class_="dot predicted"),
        class_="cursor",
    )


def _strip(x: Axis, regions: tuple[Region, ...], event: str) -> Markup:
    """Mark where the simultaneous band excludes the prediction."""
    made = [el("rect", x=0, y=STRIP_TOP, width="100%", height=STRIP, class_="strip")]
    for region in regions:
        low, high = x.place(region.low), x.place(region.high)
        if region.high < x.low or region.low > x.high:
            continue
        width = max(high - low, NARROWEST_MARK)
        left = min(low, 1 - width)
        made.append(
            el(
                "rect",
                x=f"{100 * left:.2f}%",
                y=STRIP_TOP,
                width=f"{100 * width:.2f}%",
                height=STRIP,
                class_=region.direction,
            )
        )
        if width >= WIDTH_OF_SIGN:
            mark = gap_mark(1 if region.direction == "over" else -1, event)
            made.append(
                el(
                    "text",
                    mark if width >= WIDTH_OF_WORD else mark[0],
                    x=f"{100 * (left + width / 2):.2f}%",
                    y=STRIP_TOP + STRIP / 2,
                    dy="0.35em",
                    class_=f"mark middle {region.direction}",
                )
            )
    return Markup("".join(made))


def levels_chart(line: Line, y: Axis, title: str, described: str, words: Wording) -> Markup:
    """Draw one row per level: a dot with its whisker, and a dash for the prediction."""
    rows = []
    for k, label in enumerate(line.labels):
        rows.append(
            el(
                "div",
                el("span", Named(cut(label)), class_="level"),
                el("svg", _level_marks(line, k, y, words), class_="row"),
                el("span", count(line.n[k]) if line.n else "", class_="rows"),
                class_="level-row",
                data_k=k,
            )
        )
    ticks = [
        el("text", text, x=y.percent(at), y=0, dy="1em", class_="tick middle")
        for at, text in y.ticks
    ]
    rows.append(
        el(
            "div",
            el("span", class_="level"),
            el("svg", ticks, class_="row axis-row"),
            el("span", "rows", class_="rows"),
            class_="level-row",
        )
    )
    return el("div", rows, role="img", aria_label=f"{title}. {described}", class_="levels")


def levels_key(words: Wording) -> Markup:
    """Make the legend of a chart of levels."""
    return el(
        "p",
        el("svg", el("circle", cx=7, cy=7, r=4, class_="dot actual"), class_="key"),
        f" {words.actual} with its band ",
        el("svg", el("line", x1=7, x2=7, y1=0, y2=14, class_="dash"), class_="key"),
        f" {words.predicted}",
        class_="legend",
    )


def _level_marks(line: Line, k: int, y: Axis, words: Wording) -> list[Markup]:
    grid = [
        el("line", x1=y.percent(at), x2=y.percent(at), y1=0, y2="100%", class_="grid")
        for at, _ in y.ticks
    ]
    above = line.actual_low[k] > line.predicted[k]
    below = line.actual_high[k] < line.predicted[k]
    over = below if words.risk else above
    side = ("over" if over else "under") if above or below else ""
    actual, predicted = y.percent(line.actual[k]), y.percent(line.predicted[k])
    ends = [y.percent(line.actual_low[k]), y.percent(line.actual_high[k])]
    return [
        *grid,
        el("line", x1=predicted, x2=actual, y1="50%", y2="50%", class_=f"reach {side}"),
        el("line", x1=ends[0], x2=ends[1], y1="50%", y2="50%", class_="whisker"),
        el("line", x1=predicted, x2=predicted, y1="18%", y2="82%", class_="dash"),
        el("circle", cx=actual, cy="50%", r=4, class_="dot actual"),
    ]
