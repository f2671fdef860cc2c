"""The reliability diagram: hit rate along the score against the diagonal."""

from __future__ import annotations

from varcal._text.numbers import interval, points
from varcal.report.audit.summary import ReliabilitySummary
from varcal.report.html.axes import Axis, share_axis
from varcal.report.html.chart_parts import band, bars, box, path, svg, x_ticks, y_ticks
from varcal.report.html.markup import Markup, el
from varcal.report.words import Wording

PLOT, BARS = 300, 44
BARS_TOP = PLOT + 6
BOTTOM = BARS_TOP + BARS


def reliability_chart(one: ReliabilitySummary, number: str, words: Wording) -> Markup:
    """Draw the smooth line with its band, the bins with whiskers, and the diagonal."""
    held = [(k, bin_) for k, bin_ in enumerate(one.bins) if bin_.n]
    axis = _axis(one)
    x = [bin_.predicted for _, bin_ in held]
    reach = [one.consistency[k] for k, _ in held]
    low = [max(a - r, 0.0) for a, r in zip(x, reach, strict=True)]
    high = [min(a + r, 1.0) for a, r in zip(x, reach, strict=True)]
    line = one.line
    marks = []
    for _, bin_ in held:
        at = axis.percent(bin_.predicted)
        ends = [_down(axis, end, bin_.predicted) for end in (bin_.gap_low, bin_.gap_high)]
        marks.append(el("line", x1=at, x2=at, y1=ends[0], y2=ends[1], class_="whisker"))
        marks.append(
            el(
                "circle",
                cx=at,
                cy=f"{PLOT * (1 - axis.place(bin_.actual)):.1f}",
                r=4,
                class_="dot actual",
            )
        )
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
        el(
            "text",
            f"ECE {points(one.ece.debiased)} points ({interval(one.ece.low, one.ece.high)})",
            x=10,
            y=20,
            class_="inside",
        ),
        bars(axis, one.histogram, y=BARS_TOP, height=BARS) if one.histogram else Markup(""),
        el("line", x1=0, x2="100%", y1=BOTTOM, y2=BOTTOM, class_="axis"),
        el("text", words.score, x="50%", y=BOTTOM, dy="2.7em", class_="tick middle"),
        el("text", words.hit, x=0, y=0, dx=-40, dy="-0.7em", class_="tick"),
        number=number,
        title=f"Reliability diagram: {words.hit} along {words.score}",
        text=str(one.finding),
        class_="square",
    )


def _axis(one: ReliabilitySummary) -> Axis:
    """Return the range of both axes, which begins at the lowest score or rate shown."""
    held = [bin_ for bin_ in one.bins if bin_.n]
    lowest = min(
        one.line.x[0], *one.line.actual_low, *(min(b.actual, b.predicted) for b in held), 0.95
    )
    return share_axis(1.0, lowest)


def _down(axis: Axis, gap: float, predicted: float) -> str:
    return f"{PLOT * (1 - axis.place(min(max(predicted - gap, 0.0), 1.0))):.1f}"
