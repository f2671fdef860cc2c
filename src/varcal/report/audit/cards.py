"""Cards: one per variable, with its finding, chart, bins and notes."""

from __future__ import annotations

from varcal._audit.verdicts import FINDINGS
from varcal._text.numbers import count, interval, level_text, percent, points, signed
from varcal.report.audit.charts import read_out, variable_chart
from varcal.report.audit.summary import Bin, Summary, VariableSummary
from varcal.report.html.badge import verdict_badge
from varcal.report.html.markup import Child, Markup, el
from varcal.report.words import Named, Wording, cut


def cards(summary: Summary, words: Wording) -> Markup:
    """Make the section with one card per variable."""
    return el(
        "section",
        el("h2", "Variable by variable"),
        el(
            "p",
            f"Solid line: {words.actual}; shaded: its band. Dashed line: {words.predicted}. "
            "The strip marks where the prediction is surely wrong; the bars below it show how "
            "often values occur. Variables without evidence of a change are collapsed.",
            class_="note",
        ),
        el("p", "No variable matches the search.", id="none", hidden=True),
        [_card(one, summary, words) for one in summary.variables],
        id="variables",
    )


def _card(one: VariableSummary, summary: Summary, words: Wording) -> Markup:
    number = f"v{one.rank}"
    heading = el(
        "summary",
        el("span", f"{one.rank}", class_="place"),
        el("h3", Named(cut(one.name, 200)), id=f"{number}-name"),
        verdict_badge(one.verdict),
        el("span", f"{points(one.beyond.debiased)} points beyond", class_="beyond"),
    )
    other = None
    if one.other_vece is not None:
        claim = (
            "probability of the positive class"
            if summary.overall.other_event == "positive"
            else "confidence in the predicted class"
        )
        other = el("li", f"VECE of the other claim ({claim}): {points(one.other_vece)} points.")
    size = f"{points(one.vece.debiased)} points"
    ends = f"{level_text(summary.level)} interval {interval(one.vece.low, one.vece.high)}"
    return el(
        "details",
        heading,
        el(
            "div",
            el("p", one.finding),
            el("p", one.worst),
            el(
                "figure",
                variable_chart(one, number, words),
                _reader(one, number, words),
            ),
            bin_table(one.bins, number, cut(one.name), summary.level, words),
            el(
                "ul",
                el("li", f"VECE {size} ({ends})."),
                other,
                [el("li", note) for note in one.notes],
                class_="note",
            ),
            class_="body",
        ),
        class_="card",
        id=number,
        data_v=one.rank,
        open=one.verdict in FINDINGS,
    )


def _reader(one: VariableSummary, number: str, words: Wording) -> Markup:
    """Make the slider, and the line that says what the chart shows at its place."""
    slider = el(
        "input",
        type="range",
        min=0,
        max=len(one.line.x) - 1,
        value=one.at_worst,
        aria_label=f"Read the chart along {cut(one.name)}",
        class_="reader",
        hidden=True,
    )
    said: Child = read_out(one.line, one.at_worst, words)
    return el("figcaption", slider, el("p", said, class_="said"), id=f"{number}-read")


def bin_table(
    bins: tuple[Bin, ...], number: str, name: str, level: float, words: Wording
) -> Markup:
    """Make the collapsed table of bins."""
    heads = ("Bin", "Rows", words.actual.capitalize(), words.predicted.capitalize())
    head = [
        *(el("th", text, scope="col") for text in heads),
        el("th", "Gap, points", el("small", f"{level_text(level)} interval"), scope="col"),
    ]
    rows = [
        el(
            "tr",
            el("th", Named(cut(bin_.label)), scope="row"),
            el("td", count(bin_.n)),
            el("td", percent(bin_.actual)),
            el("td", percent(bin_.predicted)),
            el(
                "td",
                signed(bin_.gap),
                el("small", interval(bin_.gap_low, bin_.gap_high)) if bin_.n else None,
            ),
        )
        for bin_ in bins
    ]
    title = f"{number}-bins"
    table = el(
        "table",
        el("caption", "Bins of ", Named(name), id=title),
        el("thead", el("tr", head)),
        el("tbody", rows),
        class_="bins",
    )
    return el(
        "details",
        el("summary", f"Table of bins ({len(bins)})"),
        el("div", table, class_="scroll", role="region", aria_labelledby=title, tabindex=0),
        class_="fold",
    )
