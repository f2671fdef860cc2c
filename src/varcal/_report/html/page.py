"""The frame of every page: one self-contained file that fetches nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from varcal._report.html.markup import Child, Markup, clean, el


def page(
    title: str,
    subtitle: str,
    sections: list[tuple[str, str, Markup]],
    data: dict[str, Any],
    *,
    name: str = "",
) -> str:
    """Return a page that holds sections, a style, a script and the data of the script.

    Parameters
    ----------
    title, subtitle : str
        The name of the report, and what else the line at the top says.
    sections : list of (id, text, section)
        The sections of the page, each with its id and the text of the link to it; no link without
        a text.
    data : dict
        The data that the script reads.
    name : str
        The title of the window, if that is another one.
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
        el("title", name or title),
        el("style", Markup(style)),
    )
    links = [el("a", text, href=f"#{key}") for key, text, _ in sections if text]
    body = el(
        "body",
        el("a", "Skip to the findings", href="#summary", class_="skip"),
        el(
            "div",
            el(
                "header",
                el("p", el("b", title), f" · {subtitle}"),
                el("nav", links, aria_label="Sections"),
                el("button", "Theme: auto", type="button", id="theme", hidden=True),
            ),
            el("main", [section for _, _, section in sections]),
            class_="page",
        ),
        el("script", Markup(_json(data)), type="application/json", id="data"),
        el("script", Markup(script)),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def asset(name: str) -> str:
    """Return the text of a file in this folder."""
    return files("varcal._report").joinpath("html", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _json(data: dict[str, Any]) -> str:
    text = clean(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def method_section(
    notes: tuple[Child, ...],
    method: tuple[str, ...],
    versions: tuple[tuple[str, str], ...],
    citation: tuple[str, ...],
) -> Markup:
    """Make the section on the data, on how figures were computed, and how to cite them."""
    return el(
        "section",
        el("h2", "Data and method"),
        el(
            "div",
            el("ul", [el("li", note) for note in notes]),
            el("ul", [el("li", line) for line in method]),
            class_="cols",
        ),
        el("h3", "How to cite"),
        el("ul", [el("li", line) for line in citation]),
        el("p", " · ".join(f"{name} {number}" for name, number in versions), class_="note"),
        id="method",
    )
