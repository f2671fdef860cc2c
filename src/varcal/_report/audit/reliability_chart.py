"""The diagram by score: what happens along the score, against the diagonal."""

from __future__ import annotations

from varcal._report.audit.summary import ScoreSummary
from varcal._report.claim_words import ClaimWords
from varcal._report.html.axes import Axis, share_axis
from varcal._report.html.chart_parts import band, bars, box, path, svg, x_ticks, y_ticks
from varcal._report.html.markup import Markup, el

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
