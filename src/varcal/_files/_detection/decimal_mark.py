"""The decimal mark of a text file, from the ways in which its numbers are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from varcal._files._detection.separator import FirstRows
from varcal._files.dialect import UncertainDialectError

#: How missing values are written, in lower case.
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "-nan", "#na"})
_PATTERNS = {
    "plain": r"[+-]?\d+([eE][+-]?\d+)?",
    "unclear comma": r"[+-]?[1-9]\d{0,2},\d{3}",
    "unclear dot": r"[+-]?[1-9]\d{0,2}\.\d{3}",
    "comma": r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?",
    "dot": r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?",
    "groups, dot": r"[+-]?[1-9]\d{0,2}((,\d{3})+\.\d*|(,\d{3}){2,})",
    "groups, comma": r"[+-]?[1-9]\d{0,2}((\.\d{3})+,\d*|(\.\d{3}){2,})",
    "spaced groups": "[+-]?[1-9]\\d{0,2}([ '\u00a0\u202f]\\d{3})+([.,]\\d*)?",
}
_KINDS = {kind: re.compile(pattern) for kind, pattern in _PATTERNS.items()}


@dataclass(frozen=True)
class NumberColumn:
    """One example of each way in which the numbers of a column are written."""

    name: str
    kinds: dict[str, str]

    def says(self, mark: str) -> bool:
        """Tell whether the numbers can only have this decimal mark."""
        name, other = ("comma", "dot") if mark == "," else ("dot", "comma")
        return any(f"{start}{name}" in self.kinds for start in ("", "groups, ")) and not any(
            f"{start}{other}" in self.kinds for start in ("", "groups, ")
        )


def number_columns(sample: FirstRows) -> list[NumberColumn]:
    """Return the columns of a sample whose values are all numbers, however they are written."""
    found = []
    for name, values in zip(sample.header, zip(*sample.regular(), strict=False), strict=False):
        kinds: dict[str, str] = {}
        for value in dict.fromkeys(value.strip() for value in values):
            if value.lower() in _MISSING:
                continue
            kind = next((kind for kind, one in _KINDS.items() if one.fullmatch(value)), None)
            if kind is None:
                break
            kinds.setdefault(kind, value)
        else:
            found.append(NumberColumn(name, kinds))
    return found


def detected_decimal(columns: Sequence[NumberColumn], shown: str) -> str:
    """Return the decimal mark that all columns of numbers can have."""
    commas = [column for column in columns if column.says(",")]
    dots = [column for column in columns if column.says(".")]
    unclear = [column for column in columns if "unclear comma" in column.kinds]
    if commas and dots:
        examples = [
            f"{_example(column, mark)!r} in column {column.name!r}"
            for column, mark in ((commas[0], ","), (dots[0], "."))
        ]
        problem = f"{shown} has {' and '.join(examples)}"
    elif commas:
        return ","
    elif unclear and not dots:
        value = unclear[0].kinds["unclear comma"]
        problem = (
            f"{value!r} in column {unclear[0].name!r} of {shown} may have a decimal comma or a "
            "thousands separator"
        )
    else:
        return "."
    raise UncertainDialectError(
        problem, "say which is the decimal mark with {decimal}", settings={"decimal": ...}
    )


def _example(column: NumberColumn, mark: str) -> str:
    name = "comma" if mark == "," else "dot"
    return column.kinds.get(name) or column.kinds[f"groups, {name}"]


def remarks_on(columns: Sequence[NumberColumn], decimal: str) -> Iterator[str]:
    """Name the columns of numbers that this decimal mark turns into text."""
    readable = {
        "plain",
        *(("comma", "unclear comma") if decimal == "," else ("dot", "unclear dot")),
    }
    for column in columns:
        other = [value for kind, value in column.kinds.items() if kind not in readable]
        if other:
            yield f"column {column.name!r} is read as text, because of values such as {other[0]!r}"
