"""Plain-text tables, as results are printed in a terminal or a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from varcal._text.numbers import UNKNOWN

#: The characters of a line in a terminal.
WIDTH = 100


def wrapped(text: str) -> str:
    """Break the lines of a text that are too long for a terminal."""
    return "\n".join(fill(line, WIDTH) for line in text.split("\n"))


def text_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """Write columns as a table: text aligned to the left, numbers to the right.

    >>> print(text_table({"bin": ["a", "bb"], "n": [10, 2], "gap": [0.5, float("nan")]}))
    bin   n     gap
    a    10  0.5000
    bb    2       –
    """
    blocks = []
    for name, values in columns.items():
        text = any(isinstance(value, str) for value in values)
        cells = [name, *(show_cell(value, name) for value in values)]
        width = max(map(len, cells))
        blocks.append([cell.ljust(width) if text else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(row).rstrip() for row in zip(*blocks, strict=True))


def show_cell(value: Any, name: str) -> str:
    """Write one value of a column."""
    if isinstance(value, float):
        if value != value:
            return UNKNOWN
        return f"{value:.3f}" if name == "share" else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
