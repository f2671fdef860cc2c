"""The frame of every page: one self-contained file that fetches nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from varcal.report.html.markup import Child, Markup, clean, el


def page(
    title: str, subtitle: str, sections: list[tuple[str, str, Markup]], data: dict[str, Any]
) -> str:
    """Return a page that holds sections, a style, a script and the data of the script.

    Parameters
    ----------
    title, subtitle : str
        The heading and the line under it.
    sections : list of (id, text, section)
        The sections of the page, each with its id and the text of the link to it.
    data : dict
        The data that the script reads.
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
    """Return the text of a file in `assets`."""
    return files("varcal.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _json(data: dict[str, Any]) -> str:
    text = clean(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def list_section(key: str, title: str, lines: tuple[Child, ...]) -> Markup:
    """Make a section that is a list of lines."""
    return el("section", el("h2", title), el("ul", [el("li", line) for line in lines]), id=key)


def method_section(
    method: tuple[str, ...], versions: tuple[tuple[str, str], ...], citation: tuple[str, ...]
) -> Markup:
    """Make the section on how figures were computed, with which packages, and how to cite."""
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
