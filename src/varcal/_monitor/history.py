"""History: batches over time, in a limited number of blocks, and what is drawn of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from varcal._arrays import Bools, Floats, ratio_or_nan
from varcal._monitor.detectors import MOST_PREDICTED, gap_interval
from varcal._options import check_text
from varcal._text import number_text
from varcal.exceptions import InputError, shown

if TYPE_CHECKING:
    from varcal._monitor.monitor import Monitor, Status, Where

#: The largest number of blocks. When it is exceeded, neighbouring blocks are joined in pairs, so
#: that memory stays the same however many batches come: plots need no more points.
MOST_BLOCKS = 128
#: The largest number of columns of a heat map: more are narrower than a few pixels.
MOST_COLUMNS = 40
#: The largest number of variables that are shown, those with the most evidence.
MOST_VARIABLES = 6
#: The end of the axis of evidence at most, as a multiple of that of an alarm.
MOST_ALARMS = 100
#: Gaps of at least this size have the full colour.
FULL_COLOUR = 0.10


def checked_id(id: object, last: str) -> str:
    """Return the name of a batch, if it comes after the last one (``""`` if there is none).

    >>> import datetime
    >>> checked_id(datetime.date(2026, 11, 16), "2026-11-15")
    '2026-11-16'
    """
    dated = (isinstance(id, np.datetime64) or hasattr(id, "strftime")) and str(id) != "NaT"
    whole = isinstance(id, Integral) and not isinstance(id, bool)
    name = check_text("id", str(id)) if dated or whole or isinstance(id, str) else ""
    if not name.strip() or len(name) > 500:
        raise InputError(f"id is {shown(id)}", "give the name of the batch, such as its date", "id")
    if last and id_order(name) <= id_order(last):
        same = id_order(name) == id_order(last)
        raise InputError(
            f"id is {name!r}, "
            + ("which is already counted" if same else f"and the latest batch is {last!r}"),
            "batches are closed windows: enter each once, in order, when its labels are in",
            argument="id",
        )
    return name


def id_order(id: str) -> list[tuple[bool, int, str]]:
    """Return what ids are sorted by: numbers in them count as numbers, however they are written.

    >>> id_order("day 9") < id_order("day 10"), id_order("2026-9-1") == id_order("2026-09-01")
    (True, True)
    """
    return [
        (True, int(part), "") if part.isdecimal() else (False, 0, part)
        for part in re.split(r"(\d+)", id)
        if part
    ]


@dataclass(frozen=True, eq=False)
class Block:
    """Some neighbouring batches.

    Attributes
    ----------
    first, last : str
        The ids of the first and the last batch.
    batches : int
        Their number.
    epoch : int
        How often the monitor had been reset.
    evidence : float
        The largest evidence of its batches.
    sums : ndarray of shape (5, cells)
        What they added to the sums of `Running`.
    """

    first: str
    last: str
    batches: int
    epoch: int
    evidence: float
    sums: Floats


def with_block(blocks: list[Block], new: Block) -> list[Block]:
    """Return the blocks of a history, the earliest first, after one more batch.

    A block takes as many batches as the longest one has. Blocks of different epochs are not
    joined; if there are too many epochs, the earliest are dropped.
    """
    span = max((block.batches for block in blocks), default=1)
    joined = [*blocks[:-1], *_joined(blocks[-1:], new, span)]
    if len(joined) <= MOST_BLOCKS:
        return joined
    thinned: list[Block] = []
    for block in joined:
        thinned[-1:] = _joined(thinned[-1:], block, 2 * span)
    return thinned[-MOST_BLOCKS:]


def _joined(last: list[Block], new: Block, most: int) -> list[Block]:
    """Return the last block, if there is one, and the next as one block if it takes both."""
    if not last or last[0].epoch != new.epoch or last[0].batches + new.batches > most:
        return [*last, new]
    old = last[0]
    batches, evidence = old.batches + new.batches, max(old.evidence, new.evidence)
    return [Block(old.first, new.last, batches, new.epoch, evidence, old.sums + new.sums)]


@dataclass(frozen=True, eq=False)
class Stretch:
    """A time during which the mean rates of one cell are followed.

    Attributes
    ----------
    x : ndarray
        The numbers of batches at which it is known.
    predicted, observed, low, high : ndarray
        Mean score and hit rate from the start of the stretch on, and the interval of the rate
        given what the model says.
    """

    x: Floats
    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class HeatRow:
    """One cell over time.

    Attributes
    ----------
    text : str
        The cell.
    gap : ndarray
        Its gap in each column; NaN without rows.
    clear : ndarray of bool
        Whether the gap is more than chance by itself: two standard errors from zero.
    predicted, observed, off, low, high : float
        The means since the last reset, and the gap with its interval.
    n : int
        Rows since then.
    """

    text: str
    gap: Floats
    clear: Bools
    predicted: float
    observed: float
    off: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class HeatMap:
    """The cells of one variable over time, for one claim."""

    variable: str
    claim: str
    rows: tuple[HeatRow, ...]


@dataclass(frozen=True, eq=False)
class MonitorView:
    """All that is drawn; the x axis counts batches.

    Attributes
    ----------
    status : Status
        The status.
    shown : Where or None
        The place with the most evidence; None before the first row.
    limit, level : float
        Of the monitor.
    x : ndarray
        The number of the last batch of each block.
    ids : tuple of str
        The ids of these batches.
    evidence : ndarray
        The largest evidence of each block.
    raised, since : float or None
        Where the alarm was raised and where the change seems to have begun.
    resets : tuple of float
        Where the monitor was reset.
    before, after : Stretch or None
        The strongest cell since the last reset, and from the change on.
    rates : tuple of ndarray
        x, what the model says and what happens in each block of the strongest cell.
    columns : ndarray
        The edges of the columns of heat maps.
    maps : tuple of HeatMap
        The variables with the most evidence.
    n_hidden : int
        The number of other variables.
    """

    status: Status
    shown: Where | None
    limit: float
    level: float
    x: Floats
    ids: tuple[str, ...]
    evidence: Floats
    raised: float | None
    since: float | None
    resets: tuple[float, ...]
    before: Stretch | None
    after: Stretch | None
    rates: tuple[Floats, Floats, Floats]
    columns: Floats
    maps: tuple[HeatMap, ...]
    n_hidden: int

    @property
    def evidence_ends(self) -> tuple[float, float]:
        """The ends of the axis of evidence: what matters is when that of an alarm is crossed."""
        alarm_at = self.status.alarm_at
        most = max(float(self.evidence.max(initial=1.0)), 3 * alarm_at)
        return 0.05, min(most, MOST_ALARMS * alarm_at)

    @property
    def evidence_note(self) -> str:
        """What to add to the name of the axis if evidence reaches beyond its end."""
        end = self.evidence_ends[1]
        beyond = bool((self.evidence > end).any())
        return f", cut off at {number_text(end)}" if beyond else ""

    @property
    def evidence_powers(self) -> Floats:
        """The powers of ten that are marked on it."""
        low, high = np.log10(self.evidence_ends)
        powers = np.arange(np.ceil(low), np.floor(high) + 1)
        return powers[:: max(1, len(powers) // 4)]


def view_of(monitor: Monitor) -> MonitorView:
    """Return what is drawn of a monitor."""
    status, blocks = monitor.status, monitor._blocks
    shown = status.where or (monitor.strongest() if monitor.n_rows else None)
    batches = np.array([block.batches for block in blocks], dtype=np.float64)
    # Batches of blocks that are no longer kept count as well.
    ends = batches.cumsum() + (monitor.n_batches - batches.sum())
    starts = ends - batches
    raised = _place(blocks, starts, status.raised) if status.alarm else None
    since = _place(blocks, starts, shown.since) if shown is not None and status.alarm else None
    cells, cell = monitor._cells, 0
    if shown is not None:
        cell = cells.number_of(shown.claim, shown.variable, shown.text)
    sums = np.array([block.sums for block in blocks]).reshape(-1, 5, len(cells))
    _, weight, hit, score, _ = sums[..., cell].T
    before, after = _stretches(monitor, sums[..., cell].T, ends, cell, since)
    epochs = [block.epoch for block in blocks]
    many = max(1, math.ceil(len(blocks) / MOST_COLUMNS))
    columns = np.append(starts[::many], ends[-1:]) if blocks else np.zeros(1)
    by_column = np.add.reduceat(sums, np.arange(0, len(blocks), many)) if blocks else sums
    maps = _maps(monitor, shown, by_column) if shown is not None else ()
    return MonitorView(
        status=status,
        shown=shown,
        limit=monitor.limit,
        level=monitor.level,
        x=ends,
        ids=tuple(block.last for block in blocks),
        evidence=np.array([block.evidence for block in blocks]),
        raised=raised,
        since=since,
        resets=tuple(starts[1:][np.diff(epochs) > 0].tolist()),
        before=before,
        after=after,
        rates=((starts + ends) / 2, ratio_or_nan(score, weight), ratio_or_nan(hit, weight)),
        columns=columns,
        maps=maps,
        n_hidden=len(cells.variables) - len(maps) if maps else 0,
    )


def _place(blocks: list[Block], starts: Floats, id: str) -> float | None:
    """Return where a batch begins, or the block that holds it; None if neither is known."""
    for start, block in zip(starts.tolist(), blocks, strict=True):
        if id_order(block.first) <= id_order(id) <= id_order(block.last):
            return float(start + (block.batches - 1 if id == block.last else 0))
    return None


def _stretches(
    monitor: Monitor, sums: Floats, ends: Floats, cell: int, since: float | None
) -> tuple[Stretch | None, Stretch | None]:
    """Follow one cell, whose sums are by block, since the last reset and from the change on."""
    epochs = [block.epoch for block in monitor._blocks]
    if monitor._epoch not in epochs:
        return None, None
    first, last = epochs.index(monitor._epoch), len(ends)
    split = last if since is None else int(np.searchsorted(ends, since, side="right"))
    start = float(ends[first]) - monitor._blocks[first].batches
    batch = 1 + (float(ends[split - 1]) - start if first < split < last else 0)
    cap, price = (float(values[cell]) for values in monitor._running.cap())
    alpha, part = 1 - monitor.level, float(monitor._cells.part[cell])
    plain, chosen = 2 / alpha, 2 * batch * (batch + 1) / (alpha * part)

    def stretch(blocks: slice, odds: float) -> Stretch | None:
        so_far = sums[:, blocks].cumsum(axis=1)
        if not so_far.size:
            return None
        gap, low, high = gap_interval(so_far, cap, math.log(odds) + price, 1 + MOST_PREDICTED)
        predicted = ratio_or_nan(so_far[3], so_far[1])
        within = (np.clip(predicted - end, 0, 1) for end in (high, low))
        return Stretch(ends[blocks], predicted, predicted - gap, *within)

    return stretch(slice(first, split), plain), stretch(slice(split, last), chosen)


def _maps(monitor: Monitor, shown: Where, sums: Floats) -> tuple[HeatMap, ...]:
    """Return the cells of the variables with the most evidence, of the claim that is shown.

    The sums are those of each column: shape (columns, 5, cells).
    """
    cells, table = monitor._cells.cells, monitor._table()
    best = monitor._detector.log_strength(monitor._cells.part).max(axis=1)
    numbers: dict[str, list[int]] = {name: [] for name in monitor._cells.variables}
    for k, one in enumerate(cells):
        if one.claim == shown.claim and one.variable and table["n"][k]:
            numbers[one.variable].append(k)
    top = {name: best[several].max(initial=-math.inf) for name, several in numbers.items()}
    ordered = sorted(numbers, key=lambda name: (name != shown.variable, -top[name]))
    n, weight, hit, score, _ = sums.swapaxes(0, 1)
    gap = ratio_or_nan(score - hit, weight)
    predicted = np.clip(ratio_or_nan(score, weight), 0.01, 0.99)
    # The second term keeps a few rows from looking clear by chance.
    spread = predicted * (1 - predicted) + ratio_or_nan(np.ones_like(n), n)
    clear = np.abs(gap) > 2 * np.sqrt(ratio_or_nan(spread, n))
    maps = []
    for name in ordered[:MOST_VARIABLES]:
        rows = []
        for k in numbers[name]:
            facts = {key: table[key][k] for key in ("predicted", "observed", "low", "high", "n")}
            off = table["gap"][k]
            rows.append(HeatRow(cells[k].text, gap[:, k], clear[:, k], off=off, **facts))
        maps.append(HeatMap(name, shown.claim, tuple(rows)))
    return tuple(maps)
