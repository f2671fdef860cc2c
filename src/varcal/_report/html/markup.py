"""Elements of a page: text is escaped unless it is already markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

from varcal._text.sentences import Code, Named, Sentence, Strong

_VOID = {"input", "link", "meta", "br"}
# Control characters, lone surrogates and noncharacters are not allowed in a page.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is already markup, and so is not escaped again."""

    __slots__ = ()


Child = str | Sentence | Iterable[Any] | None


def el(tag: str, *children: Child, **attributes: object) -> Markup:
    """Make an element.

    Underscores of attribute names become hyphens (a trailing one is dropped); None and False
    leave an attribute out, True gives it no value.

    >>> el("p", "a < b", class_="note", hidden=True, id=None)
    '<p class="note" hidden>a &lt; b</p>'
    >>> el("p", Named("<i>"))
    '<p><bdi>&lt;i&gt;</bdi></p>'
    """
    parts = [tag]
    for key, value in attributes.items():
        name = key.removesuffix("_").replace("_", "-")
        if value is True:
            parts.append(name)
        elif value is not None and value is not False:
            parts.append(f'{name}="{escape(clean(str(value)))}"')
    opening = f"<{' '.join(parts)}>"
    return Markup(opening if tag in _VOID else f"{opening}{inner(children)}</{tag}>")


def inner(child: Child) -> Markup:
    """Turn text, sentences, elements and lists of them into markup."""
    if child is None:
        return Markup("")
    if isinstance(child, Markup):
        return child
    if isinstance(child, Strong):
        plain = Named(child) if isinstance(child, Named) else str(child)
        return Markup(f"<b>{inner(plain)}</b>")
    if isinstance(child, Named):
        return Markup(f"<bdi>{escape(clean(child))}</bdi>")
    if isinstance(child, Code):
        return Markup(f"<code>{escape(clean(child))}</code>")
    if isinstance(child, str):
        return Markup(escape(clean(child), quote=False))
    if isinstance(child, Sentence):
        return inner(child.parts)
    return Markup("".join(inner(part) for part in child))


def clean(text: str) -> str:
    """Replace characters that are not allowed in a page."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
