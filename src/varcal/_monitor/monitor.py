"""Monitor: calibration watched batch by batch, with false alarms under control."""

from __future__ import annotations

import math
import secrets
import warnings
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from varcal._arrays import Floats, ratio_or_nan
from varcal._files.schema import plain
from varcal._input.frames import frame_of
from varcal._monitor.detectors import Cells, Detector, Running, gap_interval, log_evidence
from varcal._monitor.history import Block, checked_id, view_of, with_block
from varcal._options import check_share, checked, number, of_type
from varcal._sums.collect import collect
from varcal._sums.plan import BinPlan, Collected
from varcal._text import count, cut, decimals, interval, off_by, short, wrapped
from varcal.exceptions import InputError, VarcalWarning

#: An alarm may not need more evidence than this: not even one cell's share of what is followed.
MOST_NEEDED = 1e90
#: The probability that the limits taken from a reference are wrong in any cell.
REFERENCE_ERROR = 0.01
#: The share of an alarm's evidence from which on a monitor is close to one. While all gaps are
#: within their limits, at most 20 % of monitors with alpha=0.05 ever come as far, to 5 of 20.
CLOSE = 0.25
#: A variable is named beside the strongest one if its evidence is at least this part of it: the
#: data do not tell them apart at the 5 % level.
ALSO = 0.05
#: The ids of batches at which no evidence began are forgotten when this many more are known.
_FORGET = 1024
#: The longest log of alarms and resets.
_MOST_EVENTS = 200


@dataclass(frozen=True)
class Where:
    """The place with the most evidence.

    Attributes
    ----------
    claim, variable : str
        The claim and the variable; the variable is empty for all rows.
    text, label : str
        The place as text, and with the name of the variable.
    direction : {"over", "under"}
        Whether the model says more than happens, or less.
    since : str
        The id of the batch at which the change seems to have begun.
    n : int
        Rows of the place since then.
    predicted, observed : float
        Mean score and hit rate of these rows.
    gap, low, high : float
        Their difference with its interval, which holds for whichever place and start are chosen,
        and at all times.
    proven : bool
        Whether the variable alone has enough evidence for an alarm.
    also : tuple of str
        Other variables with about as much evidence, such as correlated ones.
    """

    claim: str
    variable: str
    text: str
    label: str
    direction: str
    since: str
    n: int
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    proven: bool
    also: tuple[str, ...]

    @property
    def fault(self) -> str:
        """What is wrong, by how much and where."""
        place = f"where {cut(self.label)}" if self.variable else "over all rows"
        return f"{off_by(self.gap, self.claim)} ({self.interval_text}) {place}"

    @property
    def interval_text(self) -> str:
        """The interval of how far off the model is, in the direction in which it is.

        >>> Where("probability", "age", "up to 29", "age up to 29", "under", "d7", 900,
        ...       0.2, 0.3, -0.1, -0.22, 0.02, True, ()).interval_text
        '−2.0 to 22.0'
        """
        return interval(*((self.low, self.high) if self.gap > 0 else (-self.high, -self.low)))


@dataclass(frozen=True, repr=False)
class Status:
    """What a monitor says after its latest batch.

    Attributes
    ----------
    alarm : bool
        Whether the evidence reached the level of an alarm since the last reset.
    raised : str
        The id of the batch at which it did; empty without an alarm.
    acknowledged : bool
        Whether somebody has acknowledged the alarm.
    id : str
        The id of the latest batch.
    n_batches, n_rows, n_dropped : int
        Batches, rows and rows without a label since the last reset.
    evidence, alarm_at : float
        The evidence now, and how much raises an alarm.
    where : Where or None
        The place of the alarm; None without an alarm.
    """

    alarm: bool
    raised: str
    acknowledged: bool
    id: str
    n_batches: int
    n_rows: int
    n_dropped: int
    evidence: float
    alarm_at: float
    where: Where | None

    @property
    def close(self) -> bool:
        """Whether there is no alarm, but a quarter or more of the evidence that raises one."""
        return self.where is None and self.evidence >= CLOSE * self.alarm_at

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        found: dict[str, Any] = plain(self)
        return found

    def __str__(self) -> str:
        if self.where is not None:
            word = "Known alarm" if self.acknowledged else "Alarm"
            return f"{word}: {self.where.fault}, since {cut(self.where.since)}."
        if not self.n_batches:
            return "No alarm: no batch yet."
        seen = f"{self.batches_text} ({count(self.n_rows, 'row')})"
        if self.close:
            return f"No alarm yet after {seen}, but close: evidence {self.share_text('raise one')}."
        evidence, needed = evidence_text(self.evidence), evidence_text(self.alarm_at)
        return f"No alarm after {seen}: evidence {evidence}, alarm at {needed}."

    def __repr__(self) -> str:
        return wrapped(str(self))

    @property
    def batches_text(self) -> str:
        """The number of batches in words."""
        return f"{count(self.n_batches)} batch{'' if self.n_batches == 1 else 'es'}"

    def share_text(self, does: str) -> str:
        """Write evidence that is close to an alarm, and its share of what an alarm needs.

        >>> found = Status(False, "", False, "d8", 8, 2000, 0, 19.98, 20.0, None)
        >>> found.share_text("an alarm needs")
        'just below 20, 99% of the 20 that an alarm needs'
        """
        evidence, needed = evidence_text(self.evidence), evidence_text(self.alarm_at)
        share = math.floor(100 * self.evidence / self.alarm_at)
        below = "just below " if evidence == needed else ""
        return f"{below}{evidence}, {share}% of the {needed} that {does}"


def evidence_text(value: float) -> str:
    """Write evidence, in thousands and millions where it is large.

    >>> [evidence_text(value) for value in (0.234, 20.0, 20_000.0, 3.2e9, 1e100)]
    ['0.23', '20', '20,000', '3.2e9', 'over 1e99']
    """
    if value >= 1e99:
        return "over 1e99"
    if value >= 1e6:
        mantissa, power = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(power)}"
    return f"{value:,.0f}" if value >= 10 else decimals(value, 2)


@dataclass(frozen=True)
class Event:
    """An entry of the log: an alarm, an acknowledgement or a reset.

    Attributes
    ----------
    what : {"alarm", "acknowledged", "reset"}
        What happened.
    id : str
        The latest batch at that time.
    note : str
        What the user, or for an alarm the monitor, said.
    """

    what: str
    id: str
    note: str


class Monitor:
    """Watch calibration batch by batch; raise an alarm if a gap exceeds the limit anywhere.

    Look at every batch, for as long as you like: the probability of ever raising a false alarm
    is at most `alpha`, or with `arl` the mean number of batches until a false alarm is at least
    `arl`. An alarm is false if the gap of every cell (a bin of a variable, or all rows) was within
    the limit in every batch. Neither statement needs the variables to be independent, large
    batches, or a constant number of rows.

    Parameters
    ----------
    bins : BinPlan
        The result of ``make_bins(…, monitor=limit)``. Bins without `monitor`, or with another
        limit, also work, but need up to half as many rows again to find the same change.
    limit : float, optional
        The largest gap that is not a fault; by default that of the bins, or else 0.02.
    alpha : float, optional
        The largest probability of ever raising a false alarm; 0.05 by default.
    arl : float, optional
        Instead of alpha: the smallest mean number of batches until a false alarm. It finds late
        changes sooner.
    event : {"both", "correct", "positive", "classwise"}, optional
        The claims to watch; by default all that the bins were chosen for.
    reference : Collected, frame or lazy rows, optional
        A period that counts as normal. The gaps may then be those of the reference, plus or minus
        the limit and what is uncertain about them; that the latter is too small in any cell
        has a probability of at most 0.01, which adds to alpha.

    Notes
    -----
    The rows of a batch are independent given the past, or with ``make_bins(…, groups=…)`` the
    units are. Use a new monitor for a new model: its bins and limits are fixed beforehand.

    References
    ----------
    Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential change
    detection", New England Journal of Statistics in Data Science, 2024.
    Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", Journal of
    the Royal Statistical Society B, 2024.

    Examples
    --------
    >>> import varcal as vc
    >>> days = [vc.datasets.make_gap(2000, "tilt", vece=0.1, random_state=k) for k in range(5)]
    >>> rows = [{"y": day.y, "p": day.p, "age": day.v} for day in days]
    >>> monitor = vc.Monitor(vc.make_bins("y", "p", data=rows[0], monitor=0.02))
    >>> for k, day in enumerate(rows):
    ...     status = monitor.update(day, id=f"day {k}")
    >>> status.alarm, status.where.variable, status.where.since
    (True, 'age', 'day 0')
    """

    def __init__(
        self,
        bins: BinPlan,
        *,
        limit: float | None = None,
        alpha: float | None = None,
        arl: float | None = None,
        event: str | None = None,
        reference: object = None,
    ) -> None:
        _check_plan(bins)
        _check_rate(alpha, arl)
        if limit is None:
            limit = 0.02 if bins.monitor is None else bins.monitor
        self.limit = float(check_share("limit", limit, 0.5))
        self.bins = bins
        self.arl = None if arl is None else float(arl)
        self.alpha = None if arl is not None else float(0.05 if alpha is None else alpha)
        self.event = event
        self.has_reference = reference is not None
        self._cells = Cells(bins, event)
        self._limits = np.full((len(self._cells), 2), self.limit)
        if reference is not None:
            self._take_reference(reference)
        elif self.method == "sums":
            had = "without monitor" if bins.monitor is None else f"for a limit of {bins.monitor:g}"
            warnings.warn(
                f"the bins were chosen {had}: evidence is self-normalized, which needs up to half "
                f"as many rows again; choose them with make_bins(…, monitor={self.limit:g})",
                VarcalWarning,
                stacklevel=2,
            )
        self._key = secrets.token_hex(8)
        self._revision = 0
        self._saved_revision: int | None = None
        self._epoch = 0
        self.n_batches = 0
        self._last_id = ""
        self._blocks: list[Block] = []
        self.events: list[Event] = []
        self._start_over()

    def _start_over(self) -> None:
        self._detector = Detector.new(len(self._cells))
        self._running = Running.new(len(self._cells), grouped=self.grouped)
        self._ids: dict[int, str] = {}
        self.n_rows = 0
        self.n_dropped = 0
        self.raised = ""
        self.acknowledged = False
        self._alarmed: Where | None = None

    def _take_reference(self, reference: object) -> None:
        """Set the limits to the ends of the intervals of the reference, and the limit."""
        found = self._collected(reference)
        if not found.n_rows:
            raise InputError("reference has no rows", "give rows that count as normal", "reference")
        running = Running.new(len(self._cells), grouped=self.grouped)
        running.update(self._cells.moments(found, bets=False))
        _, low, high = running.interval(np.log(2 / (REFERENCE_ERROR * self._cells.part)))
        # An error is the opposite of a gap. At 1 and above no error exceeds the limit.
        limits = np.minimum(np.stack([-low, high], axis=1) + self.limit, 1.0)
        self._limits = np.where((running.sums[1] > 0)[:, None], limits, 1.0)

    def _collected(self, rows: object) -> Collected:
        return rows if isinstance(rows, Collected) else collect(rows, self._cells.slim)

    def update(self, batch: object, *, id: object) -> Status:
        """Add a batch: a closed window of predictions whose outcomes are known.

        Parameters
        ----------
        batch : frame, dict of columns, path, lazy rows or Collected
            The rows, or their sums over the monitor's bins. It does not matter in which order
            rows come, or in how many parts they were collected before they were added.
        id : str, int or date
            The name of the batch, such as its date. Ids must increase; numbers in them count as
            numbers (``day 9`` comes before ``day 10``). A batch that was already counted, or that
            belongs before the latest one, is refused.

        Returns
        -------
        Status

        Examples
        --------
        >>> import varcal as vc
        >>> sim = vc.datasets.make_gap(500, vece=0)
        >>> rows = {"y": sim.y, "p": sim.p, "age": sim.v}
        >>> monitor = vc.Monitor(vc.make_bins("y", "p", data=rows, monitor=0.02))
        >>> print(monitor.update(rows, id="2026-11-16"))
        No alarm after 1 batch (500 rows): evidence 0.78, alarm at 20.
        """
        name = checked_id(id, self._last_id)
        found = self._collected(batch)
        if found.n_dropped and not found.n_rows:
            raise InputError(
                f"batch {name!r} has {count(found.n_dropped, 'row')} and no outcome",
                "update when the outcomes are known: the batch could not be counted again",
                argument="batch",
            )
        moments = self._cells.moments(found, bets=self.method == "bets")
        self._detector.update(log_evidence(moments, self._limits), moments)
        added = self._running.update(moments)
        self.n_batches += 1
        self.n_rows += found.n_rows
        self.n_dropped += found.n_dropped
        self._last_id = name
        self._remember(name)
        evidence = self.evidence
        new = Block(name, name, 1, self._epoch, evidence, added)
        self._blocks = with_block(self._blocks, new)
        if evidence >= self.alarm_at:
            self._alarmed = self.strongest()
            if not self.raised:
                self.raised = name
                self._log("alarm", str(self.status))
        self._revision += 1
        return self.status

    def _remember(self, id: str) -> None:
        """Keep the id as long as evidence that began at its batch is followed."""
        self._ids[self._detector.t] = id
        if len(self._ids) > _FORGET + 2 * len(self._cells):
            begun = set(np.unique(self._detector.start).tolist())
            self._ids = {t: one for t, one in self._ids.items() if t in begun}

    @property
    def evidence(self) -> float:
        """The evidence of all cells together."""
        return float(self._detector.total(self._cells.part, spent=self.alpha is not None))

    @property
    def alarm_at(self) -> float:
        """The evidence that raises an alarm."""
        return 1 / self.alpha if self.alpha is not None else float(self.arl or math.inf)

    @property
    def level(self) -> float:
        """The level of intervals; 0.95 with `arl`."""
        return 0.95 if self.alpha is None else 1 - self.alpha

    @property
    def grouped(self) -> bool:
        """Whether rows come in groups, whose sums are the units of evidence."""
        return self.bins.roles.groups is not None

    @property
    def method(self) -> str:
        """How evidence is computed: "bets", "units" or "sums"."""
        if self.grouped:
            return "units"
        fixed = not self.has_reference and self.bins.monitor == self.limit
        return "bets" if fixed else "sums"

    @property
    def status(self) -> Status:
        """Whether there is an alarm, where, since when, and how large the gap is."""
        return Status(
            alarm=bool(self.raised),
            raised=self.raised,
            acknowledged=self.acknowledged,
            id=self._last_id,
            n_batches=self._detector.t,
            n_rows=self.n_rows,
            n_dropped=self.n_dropped,
            evidence=self.evidence,
            alarm_at=self.alarm_at,
            where=self._alarmed,
        )

    def strongest(self) -> Where:
        """Return the place with the most evidence, whether or not there is an alarm."""
        detector, cells, part = self._detector, self._cells, self._cells.part
        strength = detector.log_strength(part)
        lead = strength
        if self.evidence < self.alarm_at:
            # Without an alarm, detectors of cells with few rows lead only because time passes.
            lead = np.where(detector.window[0] > 0, detector.run, -np.inf)
        cell, bet = (int(k) for k in np.unravel_index(lead.argmax(), lead.shape))
        window, start = detector.window[:, cell, bet], max(int(detector.start[cell, bet]), 1)
        cap, price = (float(values[cell]) for values in self._running.cap())
        # The interval is that of this place and start among all, each with its part of the error.
        odds = math.log(2 * start * (start + 1) / ((1 - self.level) * part[cell]))
        gap, low, high = (float(value) for value in gap_interval(window, cap, odds + price))
        n, weight, hit, score, _ = window.tolist()
        number, here = cells.variable_number, cells.cells[cell]
        share = detector.shares(part, spent=self.alpha is not None)
        return Where(
            claim=here.claim,
            variable=here.variable,
            text=here.text,
            label=here.label,
            direction="under" if bet < lead.shape[1] // 2 else "over",
            since=self._ids.get(start, ""),
            n=int(n),
            predicted=score / (weight or math.nan),
            observed=hit / (weight or math.nan),
            gap=gap,
            low=low,
            high=high,
            proven=bool(share[number == number[cell]].sum() >= self.alarm_at),
            also=self._also(strength.max(axis=1), int(number[cell]), strength[cell, bet]),
        )

    def _also(self, strength: Floats, found: int, most: float) -> tuple[str, ...]:
        """Return the variables with about as much evidence as the one that was found."""
        names = self._cells.variables
        best = np.full(len(names) + 1, -np.inf)
        np.maximum.at(best, self._cells.variable_number, strength)
        best[[found, -1]] = -np.inf
        close = np.flatnonzero((best >= math.log(ALSO) + most) & np.isfinite(best))
        return tuple(names[k] for k in close[np.argsort(-best[close])])

    @checked()
    def acknowledge(self, note: str = "") -> None:
        """Say that an alarm is known: the command line no longer fails because of it.

        Evidence goes on being added up, but no other alarm is raised before `reset`.

        Parameters
        ----------
        note : str
            What to write into the log.
        """
        if not self.raised:
            raise InputError(
                "there is no alarm to acknowledge", "acknowledge one after it is raised"
            )
        self.acknowledged = True
        self._log("acknowledged", note)
        self._revision += 1

    @checked()
    def reset(self, note: str = "") -> None:
        """Start over without evidence, with the same bins and limits; the history is kept.

        The guarantee of false alarms holds anew from each reset.

        Parameters
        ----------
        note : str
            What to write into the log.
        """
        self._start_over()
        self._epoch += 1
        self._log("reset", note)
        self._revision += 1

    def _log(self, what: str, note: str) -> None:
        self.events = [*self.events, Event(what, self._last_id, note)][-_MOST_EVENTS:]

    def to_frame(self, backend: str | None = None) -> Any:
        """Return one row per cell: its gap since the last reset, with its interval, and evidence.

        The interval of a cell that is chosen beforehand holds at all times at once. `evidence` is
        the cell's share of all evidence, and `since` the batch at which its evidence began.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow", "modin", "cudf"}, optional
            The library of the frame; pandas by default.
        """
        return frame_of(self._table(), backend)

    def _table(self) -> dict[str, list[Any]]:
        """Return the columns of `to_frame`."""
        detector, cells = self._detector, self._cells
        n, weight, hit, score, _ = self._running.sums
        ends = self._running.interval(math.log(2 / (1 - self.level)))
        gap, low, high = (np.where(weight > 0, values, np.nan) for values in ends)
        bet = detector.log_strength(cells.part).argmax(axis=1)
        start = detector.start[np.arange(len(cells)), bet]
        numbers = {
            "n": n.astype(np.int64),
            "predicted": ratio_or_nan(score, weight),
            "observed": ratio_or_nan(hit, weight),
            "gap": gap,
            "low": low,
            "high": high,
            "evidence": detector.shares(cells.part, spent=self.alpha is not None),
        }
        return {
            "claim": [cell.claim for cell in cells.cells],
            "variable": [cell.variable or None for cell in cells.cells],
            "where": [cell.text for cell in cells.cells],
            **{name: values.tolist() for name, values in numbers.items()},
            "since": [self._ids.get(t) for t in start.tolist()],
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about how the evidence is computed."""
        notes = []
        if self.method == "units":
            notes.append(
                "Rows of one unit belong together: evidence is computed from the mean errors of "
                "units, hashed into 256 buckets, and holds if the size of a unit does not depend "
                "on its outcomes."
            )
        elif self.method == "sums":
            why = (
                "limits come from a reference"
                if self.has_reference
                else "the bins were not chosen with monitor="
                f"{self.limit:g}, so that the stronger bets are not available"
            )
            notes.append(
                f"Evidence is self-normalized, because {why}. It holds as well, but needs up "
                "to half as many rows again to find the same change."
            )
        notes += [f"{name} is not watched: {why}" for name, why in self.bins.left_out.items()]
        if self.bins.weight_cap is not None:
            notes.append(f"Weights are at most {self.bins.weight_cap:g}; larger ones are refused.")
        if self.n_dropped:
            share = self.n_dropped / (self.n_dropped + self.n_rows)
            notes.append(
                f"{self.n_dropped:,} rows ({100 * share:.1f}%) had no label and were left out. "
                "The guarantee holds if whether a label is missing does not depend on the outcome."
            )
        if self.has_reference:
            blind = int((self._limits >= 1).any(axis=1).sum())
            few = f" {blind} cells have too few reference rows to be judged." if blind else ""
            notes.append(f"Gaps may be those of the reference, plus or minus the limit.{few}")
        return tuple(notes)

    def plot(self) -> Any:
        """Draw the evidence over time, cells × time coloured by gap, and the strongest cell.

        Returns
        -------
        matplotlib Figure
        """
        from varcal._report.plot_monitor import draw_monitor  # noqa: PLC0415

        return draw_monitor(view_of(self))

    @checked()
    def report(self, path: str | PathLike[str], *, title: str = "Calibration monitor") -> None:
        """Write a page (``.html``), Markdown (``.md``) or JSON.

        Parameters
        ----------
        path : path
            The file; its extension decides.
        title : str
            The heading.
        """
        from varcal._report.monitor import write_monitor  # noqa: PLC0415

        write_monitor(self, path, title=title)

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole state to a ``.json`` file, which `varcal.load` reads.

        The file is written whole or not at all. A state that another process has saved since this
        one was loaded or saved is not overwritten.
        """
        from varcal._monitor.monitor_file import save  # noqa: PLC0415

        save(self, path)

    def _repr_html_(self) -> str:
        from varcal._report.monitor import status_html  # noqa: PLC0415

        return status_html(self)

    def __repr__(self) -> str:
        rate = f"alpha={self.alpha:g}" if self.alpha is not None else f"arl={self.arl:g}"
        names = short(", ".join(self._cells.variables), 60)
        return (
            f"Monitor: {len(self._cells)} cells along {len(self._cells.variables)} variables "
            f"({names}),\nlimit={self.limit:g}, {rate}\n{self.status!r}"
        )


def _check_plan(bins: BinPlan) -> None:
    of_type(BinPlan, "the result of make_bins(…, monitor=0.02)")("bins", bins)
    roles = bins.roles
    if roles.sample_weight is not None and roles.groups is None and bins.weight_cap is None:
        raise InputError(
            "bins have weights without a cap",
            "choose them with make_bins(…, monitor=…, weight_cap=…): the largest weight that a "
            "row can have must be fixed beforehand",
            argument="bins",
        )


def _check_rate(alpha: object, arl: object) -> None:
    if alpha is not None and arl is not None:
        raise InputError(
            "alpha and arl are both given",
            "give alpha to bound the probability of any false alarm, or arl for their distance",
            argument="alpha",
        )
    if alpha is not None:
        number(1 / MOST_NEEDED, 1, hint="try 0.05")("alpha", alpha)
    if arl is not None:
        number(1, MOST_NEEDED, hint="give a number of batches, such as 20_000")("arl", arl)
