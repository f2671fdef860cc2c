"""The levels of a category as texts, for targets where columns are texts."""

from __future__ import annotations

from varcal._export.program import Program
from varcal.exceptions import InputError

__all__ = ["level_text", "level_texts"]


def level_text(level: object) -> str:
    """Return a level as text; truth values are "true" and "false"."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def level_texts(program: Program, k: int) -> list[str]:
    """Return the levels of variable k as texts, which must differ."""
    found: list[str] = []
    name = program.schema.names[k]
    for level in program.schema.levels[k]:
        if not isinstance(level, str | bool | int):
            raise InputError(
                f"variable {name!r} has the level {level!r}, which is neither text, a truth "
                "value nor a whole number",
                "convert the column to text before fit",
            )
        text = level_text(level)
        if text in found:
            raise InputError(
                f"variable {name!r} has two levels that are written {text!r}",
                "convert the column to text before fit",
            )
        found.append(text)
    return found
