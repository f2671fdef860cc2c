"""MonitorView: what pictures and pages show of a monitor over time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats, ratio_or_nan
from varcal._monitor.confidence import MOST_PREDICTED, gap_interval
from varcal._monitor.history import BLOCK_SUMS, Block, id_order
from varcal._monitor.monitor import Monitor
from varcal._monitor.status import Status, Where

#: The largest number of columns of a heat map: more are narrower than a few pixels.
MOST_COLUMNS = 40
#: The largest number of variables that are shown, those with the most evidence.
MOST_VARIABLES = 6
#: A gap is called clear if it is this many standard errors from zero.
CLEAR = 2.0
#: The smallest evidence that is shown, and the end of its axis as a multiple of that of an alarm:
#: what matters is when that is crossed.
LEAST_EVIDENCE, MOST_OF_ALARM = 0.05, 100.0
#: Gaps of at least this size have the full colour.
FULL_COLOUR = 0.10


@dataclass(frozen=True, eq=False)
class Stretch:
    """A time during which the mean rates of one cell are followed.

    Attributes
    ----------
    x : ndarray
        The numbers of batches at which it is known.
    says, happens, low, high : ndarray
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
        Whether the gap is more than chance by itself.
    says, happens, off, low, high : float
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
        """The ends of the axis of evidence."""
        alarm_at = self.status.alarm_at
        most = max(float(self.evidence.max(initial=1.0)), 3 * alarm_at)
        return LEAST_EVIDENCE, min(most, MOST_OF_ALARM * alarm_at)

    @property
    def evidence_powers(self) -> Floats:
        """The powers of ten that are marked on it."""
        low, high = np.log10(self.evidence_ends)
        powers = np.arange(np.ceil(low), np.floor(high) + 1)
        return powers[:: max(1, len(powers) // 4)]


def view_of(monitor: Monitor) -> MonitorView:
    """Return what is drawn of a monitor."""
    status, blocks = monitor.status, monitor._history.blocks
    shown = status.where or (monitor.strongest() if monitor.n_rows else None)
    ends = np.cumsum([block.batches for block in blocks], dtype=np.float64)
    starts = ends - [block.batches for block in blocks]
    # Blocks of batches that are no longer followed count as well.
    before = monitor.n_batches - (ends[-1] if len(ends) else 0.0)
    ends, starts = ends + before, starts + before
    raised = _place(blocks, starts, status.raised) if status.alarm else None
    since = _place(blocks, starts, shown.since) if shown is not None and status.alarm else None
    cell = _number(monitor, shown)
    old, new = _stretches(monitor, blocks, ends, cell, since)
    resets = tuple(
        float(starts[k]) for k in range(1, len(blocks)) if blocks[k].epoch > blocks[k - 1].epoch
    )
    edges, groups = _columns(blocks, starts, ends)
    maps, hidden = _maps(monitor, shown, groups)
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
        resets=resets,
        before=old,
        after=new,
        rates=_rates(blocks, (starts + ends) / 2, cell),
        columns=edges,
        maps=maps,
        n_hidden=hidden,
    )


def _number(monitor: Monitor, shown: Where | None) -> int:
    """Return the number of the cell that is shown."""
    if shown is None:
        return 0
    wanted = (shown.claim, shown.variable, shown.text)
    found = [(one.claim, one.variable, one.text) for one in monitor._cells.cells]
    return found.index(wanted)


def _place(blocks: list[Block], starts: Floats, id: str) -> float | None:
    """Return where the block that begins with or holds an id begins."""
    for k in reversed(range(len(blocks))):
        if blocks[k].first == id:
            return float(starts[k])
    later = [k for k, block in enumerate(blocks) if block.last == id]
    if later:
        return float(starts[later[-1]] + blocks[later[-1]].batches - 1)
    for k, block in enumerate(blocks):
        if id_order(block.first) <= id_order(id) <= id_order(block.last):
            return float(starts[k])
    return None


def _stretches(
    monitor: Monitor, blocks: list[Block], ends: Floats, cell: int, since: float | None
) -> tuple[Stretch | None, Stretch | None]:
    """Follow one cell since the last reset, and from the change on."""
    current = [k for k, block in enumerate(blocks) if block.epoch == monitor._epoch]
    if not current:
        return None, None
    first = current[0]
    split = len(blocks)
    if since is not None:
        split = int(np.searchsorted(ends, since, side="right"))
    start = ends[first] - blocks[first].batches
    batch = 1 + (ends[split - 1] - start if split > first and split < len(blocks) else 0)
    alpha = 1 - monitor.level
    part = monitor._cells.part[cell]
    plain, chosen = math.log(2 / alpha), math.log(2 * batch * (batch + 1) / (alpha * part))
    old = _stretch(monitor, blocks, ends, cell, range(first, split), plain)
    new = _stretch(monitor, blocks, ends, cell, range(split, len(blocks)), chosen)
    return old, new


def _stretch(
    monitor: Monitor, blocks: list[Block], ends: Floats, cell: int, which: range, odds: float
) -> Stretch | None:
    if not which:
        return None
    sums = np.array([blocks[k].sums[:, cell] for k in which]).cumsum(axis=0)
    named = dict(zip(BLOCK_SUMS, sums.T, strict=True))
    earlier = 0.0
    if which.start and blocks[which.start - 1].epoch == monitor._epoch:
        earlier = float(blocks[which.start - 1].spread[cell])
    spread = np.array([blocks[k].spread[cell] for k in which]) - earlier
    cap, price = monitor._running.cap(grouped=monitor.grouped)
    gap, low, high = gap_interval(
        named["score"] - named["hit"],
        named["weight"],
        spread,
        np.full(len(which), cap[cell]),
        odds + float(price[cell]),
        1 + MOST_PREDICTED,
    )
    predicted = ratio_or_nan(named["score"], named["weight"])
    return Stretch(
        ends[which.start : which.stop],
        predicted,
        predicted - gap,
        np.clip(predicted - high, 0, 1),
        np.clip(predicted - low, 0, 1),
    )


def _rates(blocks: list[Block], x: Floats, cell: int) -> tuple[Floats, Floats, Floats]:
    sums = np.array([block.sums[:, cell] for block in blocks]).reshape(-1, len(BLOCK_SUMS))
    _, weight, hit, score = sums.T
    return x, ratio_or_nan(score, weight), ratio_or_nan(hit, weight)


def _columns(blocks: list[Block], starts: Floats, ends: Floats) -> tuple[Floats, list[list[Block]]]:
    """Join blocks to few columns; return the edges and the blocks of each."""
    many = max(1, math.ceil(len(blocks) / MOST_COLUMNS))
    groups = [blocks[k : k + many] for k in range(0, len(blocks), many)]
    if not blocks:
        return np.zeros(1), []
    edges = np.array([*starts[::many], ends[-1]])
    return edges, groups


def _maps(
    monitor: Monitor, shown: Where | None, groups: list[list[Block]]
) -> tuple[tuple[HeatMap, ...], int]:
    """Return the cells of the variables with the most evidence, of the claim that is shown."""
    if shown is None:
        return (), 0
    cells, names = monitor._cells.cells, monitor._cells.variables
    best = monitor._detector.log_strength(monitor._cells.part).max(axis=1)
    claim = np.array([one.claim == shown.claim for one in cells])
    top = {
        name: float(best[claim & (monitor._cells.variable_number == k)].max(initial=-math.inf))
        for k, name in enumerate(names)
    }
    ordered = sorted(names, key=lambda name: (name != shown.variable, -top[name]))
    sums = np.array([sum(block.sums for block in several) for several in groups])
    columns = monitor.columns()
    maps = []
    for name in ordered[:MOST_VARIABLES]:
        rows = []
        for k, one in enumerate(cells):
            if one.claim != shown.claim or one.variable != name or not columns["n"][k]:
                continue
            n, weight, hit, score = sums[:, :, k].T
            gap = ratio_or_nan(score - hit, weight)
            predicted = np.clip(ratio_or_nan(score, weight), 0.01, 0.99)
            # The second term keeps a few rows from looking clear by chance.
            variance = ratio_or_nan(
                predicted * (1 - predicted) + ratio_or_nan(np.ones_like(n), n), n
            )
            clear = np.abs(gap) > CLEAR * np.sqrt(variance)
            facts = {key: columns[key][k] for key in ("predicted", "observed", "low", "high", "n")}
            rows.append(HeatRow(one.text, gap, clear, off=columns["gap"][k], **facts))
        maps.append(HeatMap(name, shown.claim, tuple(rows)))
    return tuple(maps), len(names) - len(maps)
