"""Cards: one per variable, with what is wrong where, charts or levels, bins and statistics."""

from __future__ import annotations

from varcal._audit.verdicts import FINDINGS
from varcal._report.audit.charts import coincides, gap_chart, lines_chart, read_out
from varcal._report.audit.summary import Bin, Panel, Summary, VariableSummary
from varcal._report.claim_words import ClaimWords, claim_words
from varcal._report.html.chart_parts import verdict_badge
from varcal._report.html.dumbbells import Dumbbell, dumbbell_table
from varcal._report.html.markup import Markup, el
from varcal._text.gaps import gap_side
from varcal._text.numbers import count, interval, level_text, limit_text, percent, points, signed
from varcal._text.sentences import Named, Sentence, cut

#: Cards of so many variables with evidence are open; the others can be opened.
MOST_OPEN = 5


def cards(summary: Summary) -> Markup:
    """Make the section with one card per variable."""
    found = [one for one in summary.variables if one.verdict in FINDINGS]
    shown = found[:MOST_OPEN] or [max(summary.variables, key=_unknown)]
    title = "Variable by variable" if found else "The variable known least well"
    note = (
        "In the order of the ranking; folded cards open with a click."
        if found
        else "Shown because its weakest place leaves most room; the others are folded."
    )
    return el(
        "section",
        el("h2", title),
        el("p", note, class_="sub"),
        el("p", "No variable matches the search.", id="none", hidden=True),
        [_card(one, summary, open_=True) for one in shown],
        [_card(one, summary, open_=False) for one in summary.variables if one not in shown],
        id="variables",
    )


def _unknown(one: VariableSummary) -> float:
    return max(abs(one.weakest.low), abs(one.weakest.high))


def _card(one: VariableSummary, summary: Summary, *, open_: bool) -> Markup:
    number = f"v{one.rank}"
    size = (
        f"uneven error {points(one.hidden)} points ({interval(one.low, one.high)})"
        if one.verdict in FINDINGS
        else f"uneven error at most {points(one.high)} points"
    )
    heading = el(
        "summary",
        el("h3", Named(cut(one.name, 200)), id=f"{number}-name"),
        verdict_badge(one.verdict),
        el("span", size, class_="size"),
    )
    words = claim_words(one.claim)
    body = _levels(one, words) if one.levels else _charts(one, summary, words)
    return el(
        "details",
        heading,
        el(
            "div",
            el("ul", [el("li", place) for place in one.places], class_="say")
            if one.places
            else None,
            body,
            el("ul", [el("li", note) for note in one.notes], class_="note") if one.notes else None,
            bin_table(one.bins, number, cut(one.name), summary.level, words),
            el(
                "details",
                el("summary", "For statisticians"),
                el("ul", [el("li", line) for line in one.statistics]),
                class_="fold",
            ),
            class_="body",
        ),
        class_="card",
        id=number,
        data_v=one.rank,
        open=open_,
    )


def _charts(one: VariableSummary, summary: Summary, words: ClaimWords) -> Markup:
    number = f"v{one.rank}"
    close = coincides(one.main.line, words)
    small = []
    if close or one.verdict not in FINDINGS:
        caption = el(
            "figcaption",
            "Gap: says minus happens, with its band",
            el("small", f"Green: within the limit, ±{limit_text(summary.limit)}."),
        )
        chart = gap_chart(one.main.line, f"{number}-gap", summary.limit, variable=one.name)
        small.append(el("figure", caption, chart))
    for key, panel in (("other", one.other), ("repaired", one.repaired)):
        if panel is not None and not (small and key == "other" and one.repaired):
            small.append(_small(panel, f"{number}-{key}", one.name))
    return el(
        "div",
        el(
            "figure",
            el("figcaption", one.main.title, id=f"{number}-title-text"),
            lines_chart(
                one.main,
                number,
                str(one.main.title),
                str(one.main.note),
                words,
                variable=one.name,
                cursor=True,
                worst=one.main.worst if one.main.worst_is_sure and not close else None,
            ),
            _reader(one, number, words),
            el(
                "p",
                "Bar under the axis: where the whole band lies off the prediction, so that the "
                "error is sure."
                if one.main.regions
                else "At no single value is the error sure, so the bar under the axis is empty.",
                class_="note wide",
            ),
        ),
        el("div", small, class_="small-charts"),
        class_="charts",
    )


def _small(panel: Panel, number: str, variable: str) -> Markup:
    words = claim_words(panel.claim)
    note = el("small", panel.note, class_="wide")
    caption = el("figcaption", panel.title, note)
    if panel.line.kind == "levels":
        return el("figure", caption)
    chart = lines_chart(
        panel, number, str(panel.title), str(panel.note), words, variable=variable, small=True
    )
    return el("figure", caption, chart)


def _levels(one: VariableSummary, words: ClaimWords) -> Markup:
    """Make the table of levels, those that are most too low first."""
    rows = [
        Dumbbell(
            name=Named(cut(level.text)),
            about=count(level.n, "row"),
            says=level.says,
            happens=level.happens,
            low=level.low,
            high=level.high,
            side=Sentence.of(gap_side(level.gap, words.claim)),
            instead=Sentence.of("better than the rest") if level.better else Sentence(),
        )
        for level in one.levels
    ]
    rows.sort(key=lambda row: row.says - row.happens)
    heads = ("Level", words.y.capitalize(), words.says, words.happens)
    return dumbbell_table(rows, caption=one.main.title, heads=heads)


def _reader(one: VariableSummary, number: str, words: ClaimWords) -> Markup:
    """Make the slider, and the line that says what the chart shows at its place."""
    slider = el(
        "input",
        type="range",
        min=0,
        max=len(one.main.line.x) - 1,
        value=one.main.worst,
        aria_label=f"Read the chart along {cut(one.name)}",
        class_="reader",
        hidden=True,
    )
    said = read_out(one.main.line, one.main.worst, words)
    if not one.main.worst_is_sure:
        said = ["Move the slider or the pointer to read a point."]
    return el("div", slider, el("p", said, class_="said"), id=f"{number}-read")


def bin_table(
    bins: tuple[Bin, ...], number: str, name: str, level: float, words: ClaimWords
) -> Markup:
    """Make the collapsed table of bins."""
    heads = ("Bin", "Rows", words.says, words.happens)
    head = [
        *(el("th", text, scope="col", class_="num" if k else None) for k, text in enumerate(heads)),
        el("th", "Gap, points", scope="col", class_="num"),
        el("th", f"{level_text(level)} interval", scope="col", class_="num"),
    ]
    rows = [
        el(
            "tr",
            el("th", Named(cut(bin_.label)), scope="row"),
            el("td", count(bin_.n), class_="num"),
            el("td", percent(bin_.says), class_="num"),
            el("td", percent(bin_.happens), class_="num"),
            el("td", signed(bin_.gap), class_="num"),
            el("td", interval(bin_.low, bin_.high), class_="num"),
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
