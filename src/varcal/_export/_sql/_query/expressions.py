"""Pieces of SQL text: expressions with parentheses where they are needed, and CASE.

Until a text is complete its lines end with NUL: names and levels may hold line breaks, which must
not be indented, but never NUL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from varcal._arrays import Floats, Ints

#: How tightly the parts of an expression are bound.
CONDITION, SUM, PRODUCT, ATOM = 0, 1, 2, 3
#: Characters in a line, and branches of a CASE before its cuts are nested.
_LINE, _BRANCHES = 92, 8


@dataclass(frozen=True)
class Expression:
    """A text, and where it may stand.

    Attributes
    ----------
    text : str
        The text.
    rank : int
        How tightly its parts are bound.
    layer : int
        The number of the query in which it can be computed; 0 for a constant.
    portable : bool
        Whether it can be read in later queries as well: a constant or a column.
    columns : frozenset of str
        The columns of earlier queries that it reads.
    """

    text: str
    rank: int = ATOM
    layer: int = 0
    portable: bool = True
    columns: frozenset[str] = frozenset()

    def bound(self, rank: int) -> str:
        """Return the text, in parentheses unless it is bound at least as tightly as asked for."""
        return self.text if self.rank >= rank else block(self.text)


def indent(text: str, prefix: str) -> str:
    """Indent the lines of a text."""
    return prefix + text.replace("\0", f"\0{prefix}")


def complete(text: str) -> str:
    """End the lines of a complete text as usual."""
    return text.replace("\0", "\n")


def block(text: str) -> str:
    """Put a text in parentheses."""
    if "\0" not in text and len(text) < _LINE:
        return f"({text})"
    return f"(\0{indent(text, '  ')}\0)"


def joined(parts: Sequence[str], sign: str) -> str:
    """Join parts by a sign, each on a line of its own if they are long."""
    short = f" {sign} ".join(parts)
    if "\0" not in short and len(short) < _LINE:
        return short
    return f"\0{sign} ".join(parts)


def summed(parts: Sequence[str]) -> str:
    """Add parts; one that begins with a minus is subtracted."""
    signed = [parts[0]]
    signed += [f"- {part[1:]}" if part.startswith("-") else f"+ {part}" for part in parts[1:]]
    short = " ".join(signed)
    if "\0" not in short and len(short) < _LINE:
        return short
    return "\0".join(signed)


def signed(number: Callable[[float], str], value: float) -> str:
    """Write a constant after its sign, to be added."""
    return f"{'-' if value < 0 else '+'} {number(abs(value))}"


def minus(x: Expression) -> str:
    """Write the negative of a number; two minuses would begin a comment."""
    return f"-{x.bound(ATOM if x.text.startswith('-') else PRODUCT)}"


def joined_signed(left: str, right: str) -> str:
    """Add a constant with its sign."""
    return f"{left}\0{right}" if "\0" in left else f"{left} {right}"


def wrapped(parts: Sequence[str]) -> str:
    """Join parts by commas, in lines of readable length."""
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > _LINE:
            lines.append("")
        lines[-1] += f", {part}" if lines[-1] else part
    if len(lines) == 1:
        return lines[0]
    return "\0" + indent(",\0".join(lines), "  ") + "\0"


def case(branches: Sequence[tuple[str, str]], otherwise: str | None) -> str:
    """Write a CASE of conditions and results."""
    last = [] if otherwise is None else [f"ELSE {otherwise}"]
    lines = [*(f"WHEN {condition} THEN {result}" for condition, result in branches), *last]
    short = f"CASE {' '.join(lines)} END"
    if "\0" not in short and len(short) < _LINE:
        return short
    return "CASE\0" + "\0".join(indent(line, "  ") for line in lines) + "\0END"


def cut_case(x: str, cuts: Sequence[str], results: Sequence[str]) -> str:
    """Write a CASE that gives the result of the interval between cuts that x lies in.

    Cuts are nested, so that few of them are compared with each x. Neighbours with equal results
    are made one.
    """
    kept = [k for k in range(len(cuts)) if results[k] != results[k + 1]]
    return _nested(x, [cuts[k] for k in kept], [*(results[k] for k in kept), results[-1]])


def _nested(x: str, cuts: Sequence[str], results: Sequence[str]) -> str:
    if not cuts:
        return results[0]
    if len(cuts) < _BRANCHES:
        pairs = [(f"{x} <= {cut}", result) for cut, result in zip(cuts, results, strict=False)]
        return case(pairs, results[-1])
    size = -(-len(results) // _BRANCHES)
    begins = range(0, len(results), size)
    inner = [
        _nested(x, cuts[begin : min(begin + size, len(results)) - 1], results[begin : begin + size])
        for begin in begins
    ]
    outer = [cuts[begin - 1] for begin in begins[1:]]
    pairs = [(f"{x} <= {cut}", text) for cut, text in zip(outer, inner, strict=False)]
    return case(pairs, inner[-1])


def by_number(x: str, results: Sequence[str]) -> str:
    """Write a CASE that gives the result with the number x, counted from 0."""
    if len(results) == 1:
        return results[0]
    branches = [(f"{x} = {k}", text) for k, text in enumerate(results[:-1])]
    return case(branches, results[-1])


def tree_case(
    names: list[str], number: Callable[[float], str], variable: Ints, cut: Floats, value: Floats
) -> str:
    """Write a complete tree as nested conditions; splits that send all rows left are left out."""

    def node(k: int) -> str:
        if k >= len(cut):
            return number(float(value[k - len(cut)]))
        left, right = node(2 * k + 1), node(2 * k + 2)
        if left == right:
            return left
        return f"CASE WHEN {names[variable[k]]} <= {cut[k]:.0f} THEN {left} ELSE {right} END"

    return node(0)


def top_case(*args: Expression) -> str:
    """Write the position of the first largest number."""
    branches = []
    for k, arg in enumerate(args[:-1]):
        larger = " AND ".join(f"{arg.text} >= {other.text}" for other in args[k + 1 :])
        branches.append((larger, str(k)))
    return case(branches, str(len(args) - 1))
