"""The frame of every page: templates that escape all text, in one file that fetches nothing.

``{{ }}`` writes sentences and text from the data as well as plain text: in a page, names, stressed
words and code become elements; in Markdown, its own signs.
"""

from __future__ import annotations

import platform
import re
from base64 import b64encode
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from varcal import _text
from varcal._report.svg import clean, rates_axis
from varcal._text import Code, Named, Sentence, Strong, cut, gap_mark
from varcal._version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

#: What templates write numbers with.
_FILTERS = "points signed percent interval count level_text limit_text p_text ratio_text share_text"
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$:@>-])")
_BREAKS = re.compile(r"[\r\n\v\f\x85\u2028\u2029]+")


def render(template: str, **context: Any) -> str:
    """Write a template: ``.html.j2`` as a page or a part of one, ``.md.j2`` as Markdown."""
    pages, texts = _environments()
    chosen = texts if template.endswith(".md.j2") else pages
    return chosen.get_template(template).render(context)


@cache
def _environments() -> tuple[Environment, Environment]:
    """Return the environments of pages and of Markdown, made when first used."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    pages = Environment(
        loader=PackageLoader("varcal._report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=as_html,
    )
    pages.policies["json.dumps_kwargs"] = {"allow_nan": False}
    pages.filters |= {name: getattr(_text, name) for name in _FILTERS.split()}
    pages.filters |= {"named": named, "plain": str, "mark": gap_mark}
    templates = files("varcal._report").joinpath("templates")
    style, script = (
        templates.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    pages.globals |= {
        "style": Markup(style),
        "script": Markup(script),
        "policy": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        "rates_axis": rates_axis,
    }
    # Autoescape stays on: what `as_markdown` returns counts as escaped.
    return pages, pages.overlay(finalize=as_markdown)


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def named(text: object, length: int = 60) -> Named:
    """Mark text that came from the data, and cut it if it is long."""
    return Named(cut(str(text), length))


def as_html(value: Any) -> Any:
    """Mark up a sentence or a text for a page.

    >>> as_html(Sentence.of("a < b ", Named("<i>"), Code("x()")))
    Markup('a &lt; b <bdi>&lt;i&gt;</bdi><code>x()</code>')
    """
    if value is None:
        return ""
    if isinstance(value, Sentence):
        return Markup("").join(as_html(part) for part in value.parts)
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = escape(clean(value))
    if isinstance(value, Code):
        return Markup("<code>{}</code>").format(text)
    if isinstance(value, Named):
        text = Markup("<bdi>{}</bdi>").format(text)
    return Markup("<b>{}</b>").format(text) if isinstance(value, Strong) else text


def as_markdown(value: Any) -> Any:
    r"""Write a sentence or a text in Markdown: no signs are read in text from the data.

    >>> as_markdown(Sentence.of("*", Named("<b> | *a*\n"), Strong("!")))
    Markup('*&lt;b&gt; \\| \\*a\\* **!**')
    """
    if value is None:
        return ""
    if isinstance(value, Sentence):
        return Markup("").join(as_markdown(part) for part in value.parts)
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = clean(_BREAKS.sub(" ", value))
    if isinstance(value, Code):
        return Markup("`" + text.replace("`", "'") + "`")
    if isinstance(value, Named):
        text = _SPECIAL.sub(r"\\\1", text).replace("www.", "www\\.")
        text = text.replace("&", "&amp;").replace("\\>", "&gt;")
    text = text.replace("<", "&lt;")
    return Markup(f"**{text}**" if isinstance(value, Strong) else text)


def now() -> str:
    """Return the time at which a report is made."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def installed() -> tuple[tuple[str, str], ...]:
    """Return the versions of the packages behind the figures."""
    packages = tuple((name, version(name)) for name in ("numpy", "scipy"))
    return (("varcal", __version__), ("Python", platform.python_version()), *packages)


def about(notes: list[Sentence], method: list[str]) -> dict[str, Any]:
    """Return what the section on data and method shows."""
    return {"notes": notes, "method": method, "citation": citation(), "versions": installed()}


def citation() -> list[str]:
    """Say how to cite the method and the software."""
    return [
        "Kelly, M. and Smyth, P. (2023). Variable-Based Calibration for Machine Learning "
        "Classifiers. AAAI-23. https://arxiv.org/abs/2209.15154",
        f"varcal {__version__} (software). Variable-based calibration audits.",
    ]
