"""The HTML page of an audit."""

from __future__ import annotations

from varcal._report.audit.cards import bin_table, cards
from varcal._report.audit.charts import chart_data, reliability_chart
from varcal._report.audit.first_screen_page import first_screen_section
from varcal._report.audit.intersections_page import intersections_section
from varcal._report.audit.ranking import ranking
from varcal._report.audit.summary import ScoreSummary, Summary
from varcal._report.claim_words import claim_words
from varcal._report.html.markup import Markup, el
from varcal._report.html.page import method_section, page
from varcal._text.gaps import claim_name
from varcal._text.numbers import count, level_text
from varcal._text.sentences import cut


def html(summary: Summary) -> str:
    """Return the page as text."""
    charts = {
        f"v{one.rank}": chart_data(
            one.main.line, one.main.histogram, one.main.worst, claim_words(one.claim)
        )
        for one in summary.variables
        if one.main.line.kind != "levels"
    }
    sections = [
        ("summary", "", first_screen_section(summary.screen, summary.level)),
        ("ranking", "Ranking", ranking(summary)),
        ("variables", "Charts", cards(summary)),
        *_intersections(summary),
        ("score", "Score", _score(summary)),
        ("words", "Words", _words(summary)),
        (
            "method",
            "Data and method",
            method_section(summary.notes, summary.method, summary.versions, summary.citation),
        ),
    ]
    about = f"{count(summary.n_rows, 'row')} · {summary.created}"
    return page(summary.title, about, sections, {"charts": charts})


def _intersections(summary: Summary) -> list[tuple[str, str, Markup]]:
    if summary.intersections is None:
        return []
    made = intersections_section(summary.intersections)
    return [("intersections", "Combinations", made)]


def _score(summary: Summary) -> Markup:
    first, *others = summary.scores
    return el(
        "section",
        el("h2", "By score: what the usual check sees"),
        _diagram(first, summary.level, "score-0"),
        [
            el(
                "details",
                el("summary", "The same for ", claim_name(one.claim)),
                _diagram(one, summary.level, f"score-{k}"),
                class_="fold",
            )
            for k, one in enumerate(others, 1)
        ],
        id="score",
    )


def _diagram(one: ScoreSummary, level: float, number: str) -> Markup:
    words = claim_words(one.claim)
    text = [
        el("p", one.finding, class_="large"),
        el(
            "p",
            "Rows with the same score can be too high in one group and too low in another. Such "
            "errors cancel here; the ranking above finds them.",
            class_="sub",
        ),
        el(
            "p",
            f"Dots: groups of equal size with {level_text(level)} intervals; line: smoothed, with "
            "its band. Dotted: perfect. Grey: where the dots of a perfect model would fall in "
            f"{level_text(level)} of samples.",
            class_="sub",
        ),
        bin_table(one.bins, number, cut(f"the score, {one.claim}"), level, words),
    ]
    return el(
        "div",
        el("figure", reliability_chart(one, f"{number}-chart", words)),
        el("div", text),
        class_="rel",
    )


def _words(summary: Summary) -> Markup:
    pairs = [Markup(el("dt", name) + el("dd", text)) for name, text in summary.glossary]
    return el("section", el("h2", "Words on this page"), el("dl", pairs), id="words")
