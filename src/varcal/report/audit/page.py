"""The HTML page of an audit."""

from __future__ import annotations

from varcal._audit.verdicts import MARKS
from varcal._text.numbers import count, interval, level_text, percent, points, signed
from varcal.report.audit.cards import bin_table, cards
from varcal.report.audit.charts import chart_data
from varcal.report.audit.ranking import ranking
from varcal.report.audit.reliability_chart import reliability_chart
from varcal.report.audit.summary import ReliabilitySummary, Summary
from varcal.report.html.markup import Child, Markup, el
from varcal.report.html.page import list_section, method_section, page
from varcal.report.words import CORRECT, Wording, wording


def html(summary: Summary) -> str:
    """Return the page as text."""
    words = wording(summary.event)
    data = {
        "words": {
            name: getattr(words, name) for name in ("happened", "expected", "over", "under", "risk")
        },
        "charts": {f"v{one.rank}": chart_data(one) for one in summary.variables},
    }
    sections = [
        ("summary", "Summary", _top(summary, words)),
        ("ranking", "Ranking", ranking(summary)),
        ("reliability", "Reliability", _reliability(summary.reliability, summary.level, words)),
        ("variables", "Variables", cards(summary, words)),
        ("notes", "Data notes", list_section("notes", "Data notes", summary.notes)),
        (
            "method",
            "How it was computed",
            method_section(summary.method, summary.versions, summary.citation),
        ),
    ]
    return page(summary.title, f"{summary.created} · varcal", sections, data)


def _top(summary: Summary, words: Wording) -> Markup:
    overall = summary.overall
    level = level_text(summary.level)
    found = [
        el("li", f"{MARKS[verdict]} {verdict}: {number}") for verdict, number in summary.verdicts
    ]
    facts: list[tuple[str, Child]] = [
        ("Rows", count(summary.n_rows)),
        (words.actual.capitalize(), percent(overall.actual)),
        (words.predicted.capitalize(), percent(overall.predicted)),
        (
            f"Overall gap ({level} interval)",
            f"{signed(overall.gap)} points ({interval(overall.gap_low, overall.gap_high)})",
        ),
        ("Variables by verdict", el("ul", found)),
        ("Size that matters", f"{points(summary.threshold)} points beyond the overall gap"),
    ]
    if overall.other_gap is not None:
        other = wording("correct" if words.risk else "positive")
        name = "Gap of top-class confidence" if other is CORRECT else "Gap of P(positive class)"
        facts.append((name, f"{signed(overall.other_gap)} points"))
    worst = el("p", summary.worst) if summary.worst.parts else None
    return el(
        "section",
        el("h2", "Findings", class_="quiet"),
        el("p", summary.headline, class_="headline"),
        worst,
        el("p", summary.checked, class_="note"),
        el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in facts]),
        id="summary",
        tabindex=-1,
    )


def _reliability(one: ReliabilitySummary, level: float, words: Wording) -> Markup:
    return el(
        "section",
        el("h2", "Reliability diagram"),
        el("p", one.finding),
        el(
            "figure",
            reliability_chart(one, "reliability-chart", words),
            el(
                "figcaption",
                f"Solid line: {words.hit} along the {words.score}, with its band. Dots: bins with "
                "equal numbers of rows, with intervals. Dotted diagonal: perfect calibration; grey "
                "around it: where the dots of a calibrated model would fall in "
                f"{level_text(level)} of samples.",
                class_="note",
            ),
        ),
        bin_table(one.bins, "reliability", words.score, level, _rates(words)),
        id="reliability",
    )


def _rates(words: Wording) -> Wording:
    """Return the wording of tables that show hit rates and scores."""
    return Wording(**vars(words) | {"actual": words.hit, "predicted": words.score})
