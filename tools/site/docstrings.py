"""Docstrings as Markdown: formulas become MathML, which browsers show without a script."""

from __future__ import annotations

import re

import griffe
from latex2mathml.converter import convert

_BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +\S.*| *(?=\n\1 +\S)))*)", re.M)
_INLINE = re.compile(r":math:`([^`]+)`")
_ROLE = re.compile(r":(?:func|class|meth|mod|obj):`~?([^`]+)`")
_CITED = re.compile(r"^( *)\.\. \[(\w+)\] ", re.M)


def to_markdown(text: str) -> str:
    """Rewrite the few marks of reStructuredText that docstrings use.

    >>> to_markdown("the gap :math:`g`, as in ``ece``")[:20]
    'the gap <span><math '
    """
    text = _BLOCK.sub(lambda found: "\n" + found[1] + _mathml(found[2], "block") + "\n", text)
    # In an element that starts no block, or Markdown would end the paragraph.
    text = _INLINE.sub(lambda found: f"<span>{_mathml(found[1], 'inline')}</span>", text)
    text = _ROLE.sub(r"`\1`", text)
    return _CITED.sub(r"\1[\2] ", text)


def _mathml(latex: str, display: str) -> str:
    return convert(" ".join(latex.split()), display=display)


class Docstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Rewrite the docstring of an object that was just read."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)
