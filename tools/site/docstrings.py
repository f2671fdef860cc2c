"""What the API shows: docstrings as Markdown with MathML, and defaults as values, not names."""

from __future__ import annotations

import re
from collections.abc import Iterator

import griffe
from latex2mathml.converter import convert

_BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +\S.*| *(?=\n\1 +\S)))*)", re.M)
_INLINE = re.compile(r":math:`([^`]+)`")
_ROLE = re.compile(r":(?:func|class|meth|mod|obj):`~?([^`]+)`")
_PARAMETERS = re.compile(r"(?<=^Parameters\n----------\n).*?(?=^\w[\w ]*\n---|\Z)", re.M | re.S)
_SHARED = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)+)( :.*)?\n((?:(?: .*)?(?:\n|\Z))*)", re.M)
_CITED = re.compile(r"^( *)\.\. \[(\w+)\] ", re.M)


def to_markdown(text: str) -> str:
    """Rewrite the few marks of reStructuredText that docstrings use.

    >>> to_markdown("the gap :math:`g`, as in ``ece``")[:20]
    'the gap <span><math '
    """
    text = _BLOCK.sub(_block, text)
    # In an element that starts no block, or Markdown would end the paragraph.
    text = _INLINE.sub(lambda found: f"<span>{_mathml(found[1], 'inline')}</span>", text)
    text = _ROLE.sub(r"`\1`", text)
    text = text.replace("array-like", "array\N{NON-BREAKING HYPHEN}like")  # not array minus like
    return _CITED.sub(r"\1[\2] ", text)


def one_by_one(text: str) -> str:
    r"""Give each of several parameters that share a description an entry of its own.

    Otherwise all of them are shown with the default of the first.

    >>> one_by_one("Parameters\n----------\nlow, high : int\n    An end.\n").splitlines()[2:]
    ['low : int', '    An end.', 'high : int', '    An end.']
    """
    return _PARAMETERS.sub(lambda section: _SHARED.sub(_entries, section[0]), text)


def _entries(found: re.Match[str]) -> str:
    names, kind, description = found.groups(default="")
    blank = "\n" if description.endswith("\n\n") else ""
    body = description.rstrip("\n") + "\n"
    return "".join(f"{name}{kind}\n{body}" for name in names.split(", ")) + blank


def _block(found: re.Match[str]) -> str:
    formula = _mathml(found[2], "block")
    return f'\n{found[1]}<div class="formula" tabindex="0">{formula}</div>\n'


def _mathml(latex: str, display: str) -> str:
    return convert(" ".join(latex.split()), display=display)


class Docstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Rewrite the docstring of an object that was just read."""
        if obj.docstring:
            obj.docstring.value = to_markdown(one_by_one(obj.docstring.value))

    def on_package(self, *, pkg: griffe.Module, **kwargs: object) -> None:
        """Replace defaults that are named constants by their values, once all modules are read."""
        for function in _functions(pkg):
            for parameter in function.parameters:
                if isinstance(parameter.default, griffe.ExprName):
                    parameter.default = _value(function, parameter.default)


def _functions(part: griffe.Object) -> Iterator[griffe.Function]:
    for member in part.members.values():
        if isinstance(member, griffe.Function):
            yield member
        elif isinstance(member, griffe.Module | griffe.Class):
            yield from _functions(member)


def _value(function: griffe.Function, name: griffe.ExprName) -> str | griffe.Expr:
    try:
        found = function.modules_collection[function.resolve(name.name)]
        found = found.final_target if found.is_alias else found  # imported from elsewhere
    except (KeyError, griffe.NameResolutionError, griffe.AliasResolutionError):
        return name
    # A number or a string, or a subclass of them such as _DefaultInt(10).
    value = re.fullmatch(r"(?:_\w+\()?([\d.]+|\"[^\"]*\"|'[^']*')\)?", str(found.value))
    return value[1] if value else name
