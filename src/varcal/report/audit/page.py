"""The page: one self-contained file, with nothing to fetch and nothing but its own script."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from varcal.report.audit.cards import bin_table, cards
from varcal.report.audit.charts import chart_data
from varcal.report.audit.ranking import MARKS, ranking
from varcal.report.audit.reliability_chart import reliability_chart
from varcal.report.audit.summary import ReliabilitySummary, Summary
from varcal.report.html.markup import Child, Markup, clean, el
from varcal.report.words import CORRECT, Wording, count, interval, percent, points, signed, wording


def html(summary: Summary) -> str:
    """Return the page of an audit."""
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


def page(
    title: str, subtitle: str, sections: list[tuple[str, str, Markup]], data: dict[str, Any]
) -> str:
    """Put sections into a page with its style, its script and their data.

    Parameters
    ----------
    title, subtitle : str
        The heading and the line under it.
    sections : list of (id, text, section)
        What the page holds, and how its links are called.
    data : dict
        What the script needs to know.
    """
    style, script = asset("report.css"), asset("report.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("link", rel="icon", href="data:,"),
        el("title", title),
        el("style", Markup(style)),
    )
    links = [el("li", el("a", text, href=f"#{key}")) for key, text, _ in sections]
    body = el(
        "body",
        el("a", "Skip to the findings", href="#summary", class_="skip"),
        el(
            "header",
            el("div", el("h1", title), el("p", subtitle, class_="note")),
            el("button", "Theme: auto", type="button", id="theme", hidden=True),
            el("nav", el("ul", links), aria_label="Sections"),
        ),
        el("main", [section for _, _, section in sections]),
        el("script", Markup(_json(data)), type="application/json", id="data"),
        el("script", Markup(script)),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return files("varcal.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _json(data: dict[str, Any]) -> str:
    text = clean(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _top(summary: Summary, words: Wording) -> Markup:
    overall = summary.overall
    level = f"{summary.level:.0%}"
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
                f"Solid: {words.hit} along the {words.score}, with its band. Dots: bins of equal "
                "support, with intervals. Dotted diagonal: perfect; grey around it: where the dots "
                f"of a calibrated model would fall in {level:.0%} of samples.",
                class_="note",
            ),
        ),
        bin_table(one.bins, "reliability", words.score, level, _rates(words)),
        id="reliability",
    )


def _rates(words: Wording) -> Wording:
    """Return words for tables that show hit rates and scores themselves."""
    return Wording(**vars(words) | {"actual": words.hit, "predicted": words.score})


def list_section(key: str, title: str, lines: tuple[Child, ...]) -> Markup:
    """Make a section of lines."""
    return el("section", el("h2", title), el("ul", [el("li", line) for line in lines]), id=key)


def method_section(
    method: tuple[str, ...], versions: tuple[tuple[str, str], ...], citation: tuple[str, ...]
) -> Markup:
    """Make the section on how figures were made, with which packages, and how to cite."""
    return el(
        "section",
        el("h2", "How it was computed"),
        el("ul", [el("li", line) for line in method]),
        el("h3", "Versions"),
        el("p", " · ".join(f"{name} {number}" for name, number in versions)),
        el("h3", "How to cite"),
        el("ul", [el("li", line) for line in citation]),
        id="method",
    )
