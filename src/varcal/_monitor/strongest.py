"""The place with the most evidence: its rows, its gap with an interval, and its rivals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from varcal._monitor.confidence import gap_interval
from varcal._monitor.detector import WINDOW
from varcal._monitor.status import Where

if TYPE_CHECKING:
    from varcal._monitor.monitor import Monitor

#: A variable is named beside the strongest one if its evidence is at least this part of it: the
#: data do not tell them apart at the 5 % level.
ALSO = 0.05


def strongest(monitor: Monitor) -> Where:
    """Return the place with the most evidence, whether or not there is an alarm."""
    detector, part = monitor._detector, monitor._cells.part
    # Without an alarm, detectors of cells with few rows lead only because time passes.
    alarm = monitor.evidence >= monitor.alarm_at
    cell, bet = detector.strongest(part) if alarm else detector.latest()
    here = monitor._cells.cells[cell]
    window = dict(zip(WINDOW, detector.window[:, cell, bet], strict=True))
    start = max(int(detector.start[cell, bet]), 1)
    cap, price = monitor._running.cap(grouped=monitor.grouped)
    # The interval is that of this place and start among all, each with its part of the error.
    odds = math.log(2 * start * (start + 1) / ((1 - monitor.level) * here.part))
    gap, low, high = gap_interval(
        np.array([window["score"] - window["hit"]]),
        np.array([window["weight"]]),
        np.array([window["square2"]]),
        cap[cell : cell + 1],
        odds + price[cell],
    )
    weight = window["weight"] or math.nan
    share = detector.shares(part, spent=monitor.alpha is not None)
    own = monitor._cells.variable_number == monitor._cells.variable_number[cell]
    return Where(
        claim=here.claim,
        variable=here.variable,
        text=here.text,
        label=here.label,
        direction="under" if bet < detector.flow.shape[-1] // 2 else "over",
        since=monitor._ids.get(start, ""),
        n=int(window["n"]),
        predicted=float(window["score"] / weight),
        observed=float(window["hit"] / weight),
        gap=float(gap[0]),
        low=float(low[0]),
        high=float(high[0]),
        proven=bool(share[own].sum() >= monitor.alarm_at),
        also=_also(monitor, cell, bet),
    )


def _also(monitor: Monitor, cell: int, bet: int) -> tuple[str, ...]:
    """Return other variables with about as much evidence as the strongest cell."""
    strength = monitor._detector.log_strength(monitor._cells.part)
    number, names = monitor._cells.variable_number, monitor._cells.variables
    best = np.full(len(names) + 1, -np.inf)
    np.maximum.at(best, number, strength.max(axis=1))
    best[[number[cell], -1]] = -np.inf
    enough = best >= math.log(ALSO) + strength[cell, bet]
    found = np.flatnonzero(enough & np.isfinite(best))
    return tuple(names[k] for k in found[np.argsort(-best[found])])
