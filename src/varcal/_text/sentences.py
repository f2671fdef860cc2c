"""Sentences whose parts know what they are: text from the data, stressed words, code.

Results say what they found in such sentences; each form (page, Markdown, terminal, notebook)
escapes and marks the parts in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Longer names are cut in sentences and tables; JSON has them in full.
NAME_LENGTH = 60


class Named(str):
    """Text that came from the data (a column, a level, a label), to be escaped."""

    __slots__ = ()


class Strong(str):
    """Words to be stressed."""

    __slots__ = ()


class StrongName(Named, Strong):
    """Text that came from the data, to be escaped and stressed."""

    __slots__ = ()


class Code(str):
    """A line that can be run in Python, and the command that does the same, if there is one.

    >>> Code("vc.audit(y, p)", command="varcal audit").command
    'varcal audit'
    """

    __slots__ = ("command",)
    command: str

    def __new__(cls, text: str, *, command: str = "") -> Code:
        code = super().__new__(cls, text)
        code.command = command or text
        return code


@dataclass(frozen=True)
class Sentence:
    """A sentence whose parts that came from the data are `Named`.

    >>> str(Sentence.of("Most along ", Named("age"), "."))
    'Most along age.'
    """

    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, *parts: str | Sentence) -> Sentence:
        """Join parts and sentences."""
        flat: list[str] = []
        for part in parts:
            flat += part.parts if isinstance(part, Sentence) else (part,)
        return cls(tuple(flat))

    def __str__(self) -> str:
        return "".join(self.parts)

    def __bool__(self) -> bool:
        return any(self.parts)


def filled(text: str, *parts: str | Sentence) -> Sentence:
    """Put parts into the places {} of a text; parts without a place are left out.

    >>> filled("Most along {}.", Named("age")).parts
    ('Most along ', 'age', '.')
    """
    first, *rest = text.split("{}")
    pairs = zip(parts, rest, strict=False)
    return Sentence.of(first, *(one for pair in pairs for one in pair))


def cut(text: str, length: int = NAME_LENGTH) -> str:
    """Cut a long name and say how long it is; quote a blank one.

    >>> cut("a" * 100, 5), cut(" ")
    ('aaaaa… (100 characters)', "' '")
    """
    if not text.strip():
        return repr(text)
    return text if len(text) <= length + 20 else f"{text[:length]}… ({len(text):,} characters)"


def short(name: str, most: int = 28) -> str:
    """Shorten a name, and put it on one line.

    >>> short("a very long name indeed", 12)
    'a very long…'
    """
    flat = " ".join(name.split()) or "(blank)"
    return flat if len(flat) <= most else f"{flat[: most - 1].rstrip()}…"


def listed(names: list[str], *, strong: bool = False, most: int = 5) -> Sentence:
    """Join names from the data with commas and "and"; of many, only the first ones.

    >>> str(listed(["a", "b", "c"])), str(listed(["a", "b", "c"], most=1))
    ('a, b and c', 'a and 2 more')
    """
    kind = StrongName if strong else Named
    shown = [kind(cut(name)) for name in names[:most]]
    more = len(names) - len(shown)
    parts: list[str] = []
    for k, name in enumerate(shown):
        if k:
            parts.append(" and " if k == len(shown) - 1 and not more else ", ")
        parts.append(name)
    return Sentence.of(*parts, f" and {more} more") if more else Sentence(tuple(parts))
