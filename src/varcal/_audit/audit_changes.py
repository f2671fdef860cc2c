"""Changes from one audit to the next: variables that got worse or better, new ones, lost ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from varcal._audit.verdicts import BETTER, GONE, NEW, UNCHANGED, WORSE
from varcal._inference.measured import Measured
from varcal._input.frames import frame_of
from varcal._text.html_tables import html_table
from varcal._text.numbers import level_text
from varcal._text.tables import text_table


@dataclass(frozen=True, eq=False)
class Changes:
    """How `beyond` changed from one audit to the next, one row per variable.

    Attributes
    ----------
    columns : dict of lists
        `variable`, `before`, `after`, `change`, `low`, `high` (interval of the change) and
        `verdict`: "worse", "better", "unchanged" (no change can be shown), "new" or "gone".
    level : float
        The level of the intervals.
    """

    columns: dict[str, list[Any]]
    level: float
    backend: str | None = None

    def to_frame(self) -> Any:
        """Return the table as a frame of the input's library, pandas for arrays."""
        return frame_of(self.columns, self.backend)

    def __repr__(self) -> str:
        return text_table(self.columns)

    def _repr_html_(self) -> str:
        return html_table(self.columns, f"Changes of beyond, {level_text(self.level)} intervals")


def changes(
    before: Mapping[str, Measured],
    after: Mapping[str, Measured],
    level: float,
    backend: str | None = None,
) -> Changes:
    """Compare measurements on two independent sets of rows.

    The half-width of a change's interval is the root of the two half-widths' sum of squares.
    """
    rows: list[tuple[Any, ...]] = []
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            ends = [one.debiased if one is not None else math.nan for one in (old, new)]
            rows.append((name, *ends, math.nan, math.nan, math.nan, GONE if new is None else NEW))
            continue
        change = new.debiased - old.debiased
        low = change - math.hypot(new.debiased - new.low, old.high - old.debiased)
        high = change + math.hypot(new.high - new.debiased, old.debiased - old.low)
        verdict = WORSE if low > 0 else BETTER if high < 0 else UNCHANGED
        rows.append((name, old.debiased, new.debiased, change, low, high, verdict))
    rows.sort(key=lambda row: -abs(row[3]) if row[3] == row[3] else 0.0)
    names = ("variable", "before", "after", "change", "low", "high", "verdict")
    return Changes({name: [row[k] for row in rows] for k, name in enumerate(names)}, level, backend)
