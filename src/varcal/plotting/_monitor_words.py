"""What pictures of a monitor share: their texts, ticks and scales."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats
from varcal._monitor.status import fault
from varcal._monitor.view import FULL_COLOUR, HeatMap, MonitorView
from varcal._text.gaps import CONFIDENCE
from varcal._text.numbers import level_text, number_text
from varcal.plotting._words import short

#: The strength of the colour of gaps that may be chance.
_PALE = 0.3
#: The largest number of variables of a picture.
MOST_MAPS = 3


def headline(view: MonitorView) -> str:
    """Say in one or two lines whether there is an alarm, where and since when."""
    status = view.status
    if not status.alarm or status.where is None:
        return str(status)
    word = "KNOWN ALARM" if status.acknowledged else "ALARM"
    return f"{word} since {short(status.where.since, 30)}\n{fault(status.where)}"


def evidence_axis(view: MonitorView) -> tuple[float, float, Floats, list[str]]:
    """Return the ends of the evidence axis, its ticks, and their texts."""
    ticks = 10.0**view.evidence_powers
    return *view.evidence_ends, ticks, [number_text(tick) for tick in ticks]


def evidence_shown(view: MonitorView) -> Floats:
    """Return the evidence, held within its axis."""
    return np.clip(view.evidence, *view.evidence_ends)


def time_ticks(view: MonitorView, many: int = 5) -> tuple[list[float], list[str]]:
    """Return some batches, evenly spaced, and their ids."""
    if not len(view.x):
        return [], []
    which = np.unique(np.linspace(0, len(view.x) - 1, many).round().astype(int))
    return [float(view.x[k]) for k in which], [short(view.ids[k], 14) for k in which]


def rate_names(view: MonitorView) -> tuple[str, str, str]:
    """Name what the model says, what happens, and the cell."""
    assert view.shown is not None
    here = short(view.shown.label, 60)
    if view.shown.claim == CONFIDENCE:
        return "how sure", "is right", f"How sure and how often right: {here}"
    about = "" if view.shown.claim == "risk" else f" ({view.shown.claim})"
    return "predicted", "actual", f"Actual and predicted rate{about}: {here}"


def rate_range(view: MonitorView) -> tuple[float, float]:
    """Return the ends of the axis of rates: most of the dots, and all lines."""
    _, _, rate = view.rates
    held = rate[np.isfinite(rate)]
    ends = [*np.quantile(held, [0.02, 0.98])] if held.size else [0.0, 1.0]
    for stretch in (view.before, view.after):
        if stretch is not None:
            last = (stretch.low[-1:], stretch.high[-1:])
            lines = np.concatenate([stretch.says, stretch.happens, *last])
            ends += lines[np.isfinite(lines)].tolist()
    low, high = max(min(ends), 0.0), min(max(ends), 1.0)
    pad = 0.12 * max(high - low, 0.02)
    return max(low - 2 * pad, 0.0), min(high + pad, 1.0)


def band_note(view: MonitorView) -> str:
    """Say what the lines of the strongest cell are."""
    level = level_text(round(view.level, 6))
    since = ", from the change on" if view.after is not None else ""
    return f"dots: each batch; lines: mean so far{since}, {level} interval valid at all times"


def shades(one: HeatMap) -> Floats:
    """Return the colours of a map as gaps, rows × columns; what may be chance is pale."""
    gaps = np.array([row.gap for row in one.rows])
    clear = np.array([row.clear for row in one.rows])
    return np.where(clear, 1.0, _PALE) * np.clip(gaps, -FULL_COLOUR, FULL_COLOUR)
