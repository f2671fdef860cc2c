"""Changes from one audit to the next: variables that got worse or better, new ones, lost ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from varcal._audit.decision import BETTER, GONE, NEW, UNCHANGED, WORSE
from varcal._inference.measured import Measured
from varcal._inference.multiplicity import p_of_interval, two_sided_quantile
from varcal._input.frames import frame_of
from varcal._text.html_tables import html_table
from varcal._text.numbers import level_text, p_text, points, signed
from varcal._text.tables import text_table


@dataclass(frozen=True, eq=False)
class Changes:
    """How the uneven error (`uneven`) changed from one audit to the next, one row per variable.

    The level holds for one look at two audits. Whoever looks again with every batch of rows, and
    stops at the first alarm, is alarmed far more often than 1 − level: of models that do not
    change, 34 % after 25 looks at 5 %. Use `Monitor` for that.

    Attributes
    ----------
    columns : dict of lists
        `variable`, `before`, `after`, `change`, `low`, `high` (interval of the change, which holds
        for all variables at once), `p_adjusted` (p-value of no change, times the number of
        variables) and `verdict`: "worse", "better", "no clear change" (none can be shown), "new"
        or "gone".
    level : float
        The level of the intervals: with this probability all of them contain the true change.
    """

    columns: dict[str, list[Any]]
    level: float
    backend: str | None = None

    def to_frame(self) -> Any:
        """Return the table as a frame of the input's library, pandas for arrays."""
        return frame_of(self.columns, self.backend)

    def _shown(self) -> dict[str, list[str]]:
        """Return the columns of the printed table, in points."""
        made = self.columns
        return {
            "variable": made["variable"],
            "before": [points(value) for value in made["before"]],
            "after": [points(value) for value in made["after"]],
            "change": [signed(value) for value in made["change"]],
            "interval": [
                "" if low != low else f"{signed(low)} to {signed(high)}"
                for low, high in zip(made["low"], made["high"], strict=True)
            ],
            "p": ["" if p != p else p_text(p) for p in made["p_adjusted"]],
            "verdict": made["verdict"],
        }

    def __repr__(self) -> str:
        return f"{self._head}\n{text_table(self._shown())}"

    def _repr_html_(self) -> str:
        return html_table(self._shown(), self._head)

    @property
    def _head(self) -> str:
        return (
            f"Changes of the uneven error in points, {level_text(self.level)} intervals "
            "for all variables at once"
        )


def changes(
    before: Mapping[str, Measured],
    after: Mapping[str, Measured],
    level: float,
    backend: str | None = None,
) -> Changes:
    """Compare measurements on two independent sets of rows.

    The half-width of a change's interval is the root of the two half-widths' sum of squares
    (Zou and Donner, 2008). It is widened by the ratio of the normal quantiles of the levels
    1 − α/k and 1 − α for k variables (Bonferroni), so that it holds for all variables at once.
    """
    both = sum(name in before for name in after)
    wider = two_sided_quantile(1 - (1 - level) / max(both, 1)) / two_sided_quantile(level)
    rows: list[tuple[Any, ...]] = []
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            ends = [one.debiased if one is not None else math.nan for one in (old, new)]
            rows.append((name, *ends, *[math.nan] * 4, GONE if new is None else NEW))
            continue
        change = new.debiased - old.debiased
        low = change - wider * math.hypot(new.debiased - new.low, old.high - old.debiased)
        high = change + wider * math.hypot(new.high - new.debiased, old.debiased - old.low)
        verdict = WORSE if low > 0 else BETTER if high < 0 else UNCHANGED
        p = min(1.0, both * p_of_interval(low, high, 1 - (1 - level) / both))
        rows.append((name, old.debiased, new.debiased, change, low, high, p, verdict))
    rows.sort(key=lambda row: -abs(row[3]) if row[3] == row[3] else 0.0)
    names = ("variable", "before", "after", "change", "low", "high", "p_adjusted", "verdict")
    return Changes({name: [row[k] for row in rows] for k, name in enumerate(names)}, level, backend)
