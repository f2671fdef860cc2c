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
from varcal._evidence.collect import collect
from varcal._evidence.collected import Collected
from varcal._evidence.plan import BinPlan
from varcal._input.frames import frame_of
from varcal._monitor.cells import Cells
from varcal._monitor.confidence import Running
from varcal._monitor.detector import BETS, SUMS, UNITS, Detector, log_evidence
from varcal._monitor.history import History, checked_id
from varcal._monitor.moments import Moments
from varcal._monitor.status import Status, Where, notes_of
from varcal._monitor.strongest import strongest
from varcal._options import check_finite, check_share, checked, number
from varcal._text.numbers import count
from varcal._text.sentences import short
from varcal.exceptions import InputError, VarcalWarning, shown

#: The limit if neither the monitor nor its bins name one: two points.
LIMIT = 0.02
#: Evidence is a double, and 1e300 is nearly the largest; an alarm must be possible.
MOST_EVIDENCE = 1e300
#: The level of intervals if false alarms are controlled by their distance (`arl`).
LEVEL = 0.95
#: The probability that the limits taken from a reference are wrong in any cell.
REFERENCE_ERROR = 0.01
#: The ids of batches at which no evidence began are forgotten when this many more are known.
_FORGET = 1024
#: The longest log of alarms and resets.
_MOST_EVENTS = 200


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
    >>> status.alarm, status.variable, status.since
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
            limit = LIMIT if bins.monitor is None else bins.monitor
        check_share("limit", limit, 0.5)
        self.bins = bins
        self.limit = float(limit)
        self.arl = None if arl is None else float(arl)
        self.alpha = None if arl is not None else float(0.05 if alpha is None else alpha)
        self.event = event
        self._cells = Cells(bins, event)
        self._limits = np.full((len(self._cells), 2), self.limit)
        self.has_reference = reference is not None
        self.method = self._method()
        if reference is not None:
            self._take_reference(reference)
        self._key = secrets.token_hex(8)
        self._revision = 0
        self._saved_revision: int | None = None
        self._epoch = 0
        self.n_batches = 0
        self._last_id = ""
        self._history = History()
        self.events: list[Event] = []
        self._start_over()

    def _start_over(self) -> None:
        self._detector = Detector.new(len(self._cells))
        self._running = Running.new(len(self._cells))
        self._ids: dict[int, str] = {}
        self.n_rows = 0
        self.n_dropped = 0
        self.raised = ""
        self.acknowledged = False
        self._alarmed: Where | None = None

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
        found = batch if isinstance(batch, Collected) else collect(batch, self._cells.slim)
        if found.n_dropped and not found.n_rows:
            raise InputError(
                f"batch {name!r} has {count(found.n_dropped, 'row')} and no outcome",
                "update when the outcomes are known: the batch could not be counted again",
                argument="batch",
            )
        moments = self._cells.moments(found, bets=self.method == BETS)
        self._add(moments, name, found.n_rows, found.n_dropped)
        return self.status

    def _add(self, moments: Moments, id: str, n_rows: int, n_dropped: int) -> None:
        self._detector.update(log_evidence(moments, self._limits), moments)
        self._running.update(moments)
        self.n_batches += 1
        self.n_rows += n_rows
        self.n_dropped += n_dropped
        self._last_id = id
        self._remember(id)
        evidence = self.evidence
        self._history.add(id, n_rows, self._epoch, evidence, moments, self._running)
        if evidence >= self.alarm_at:
            first, self._alarmed = not self.raised, self.strongest()
            if first:
                self.raised = id
                self._log("alarm", str(self.status))
        self._revision += 1

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
        """The level of intervals."""
        return LEVEL if self.alpha is None else 1 - self.alpha

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
        return strongest(self)

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
        return frame_of(self.columns(), backend)

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns of `to_frame` as lists."""
        running, detector = self._running, self._detector
        gap, low, high = self.intervals(running)
        bet = detector.log_strength(self._cells.part).argmax(axis=1)
        start = np.take_along_axis(detector.start, bet[:, None], axis=1)[:, 0]
        filled = running.weight > 0
        cells = self._cells.cells
        return {
            "claim": [cell.claim for cell in cells],
            "variable": [cell.variable or None for cell in cells],
            "where": [cell.text for cell in cells],
            "n": running.n.astype(np.int64).tolist(),
            "predicted": ratio_or_nan(running.score, running.weight).tolist(),
            "observed": ratio_or_nan(running.hit, running.weight).tolist(),
            "gap": np.where(filled, gap, np.nan).tolist(),
            "low": np.where(filled, low, np.nan).tolist(),
            "high": np.where(filled, high, np.nan).tolist(),
            "evidence": detector.shares(self._cells.part, spent=self.alpha is not None).tolist(),
            "since": [self._ids.get(int(t)) for t in start],
        }

    def intervals(self, running: Running) -> tuple[Floats, Floats, Floats]:
        """Return mean gaps and the ends of intervals that hold at all times, for one cell each."""
        return running.interval(math.log(2 / (1 - self.level)), grouped=self.grouped)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about how the evidence is computed."""
        return notes_of(self)

    def plot(self) -> Any:
        """Draw the evidence over time, cells × time coloured by gap, and the strongest cell.

        Returns
        -------
        matplotlib Figure
        """
        from varcal._monitor.view import view_of  # noqa: PLC0415
        from varcal._plotting.monitor import draw_monitor  # noqa: PLC0415

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
        from varcal._report import write_monitor  # noqa: PLC0415

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

    @property
    def grouped(self) -> bool:
        """Whether rows come in groups, whose sums are the units of evidence."""
        return self.bins.roles.groups is not None

    def _method(self) -> str:
        """Choose how evidence is computed, and warn if it could be stronger."""
        if self.grouped:
            return UNITS
        if self.has_reference:
            return SUMS
        if self._cells.has_bets and self.bins.monitor == self.limit:
            return BETS
        had = (
            "without monitor"
            if self.bins.monitor is None
            else f"for a limit of {self.bins.monitor:g}"
        )
        warnings.warn(
            f"the bins were chosen {had}: evidence is self-normalized, which needs up to half "
            f"as many rows again; choose them with make_bins(…, monitor={self.limit:g})",
            VarcalWarning,
            stacklevel=3,
        )
        return SUMS

    def _take_reference(self, reference: object) -> None:
        """Set the limits to the ends of the intervals of the reference, and the limit."""
        found = (
            reference if isinstance(reference, Collected) else collect(reference, self._cells.slim)
        )
        if not found.n_rows:
            raise InputError("reference has no rows", "give rows that count as normal", "reference")
        running = Running.new(len(self._cells))
        running.update(self._cells.moments(found, bets=False))
        odds = np.log(2 / (REFERENCE_ERROR * self._cells.part))
        _, low, high = running.interval(odds, grouped=self.grouped)
        # An error is the opposite of a gap. At 1 and above no error exceeds the limit.
        limits = np.stack([-low, high], axis=1) + self.limit
        self._limits = np.where((running.weight > 0)[:, None], np.minimum(limits, 1.0), 1.0)


def _check_plan(bins: object) -> None:
    if not isinstance(bins, BinPlan):
        raise InputError(
            f"bins is a {type(bins).__name__}",
            "give the result of make_bins(…, monitor=0.02)",
            argument="bins",
        )
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
        needed, name, hint = 1 / number(0, 1, hint="try 0.05")("alpha", alpha), "alpha", "try 0.05"
    elif arl is not None:
        needed, name, hint = _batches(arl), "arl", "try 20_000"
    else:
        return
    if needed > MOST_EVIDENCE:
        raise InputError(
            f"{name} is {shown(alpha or arl)}: an alarm would need more evidence than a number "
            "can hold",
            hint,
            argument=name,
        )


def _batches(arl: object) -> float:
    try:
        found = check_finite("arl", arl)
    except InputError:
        found = 0.0
    if not 1 < found < math.inf:
        raise InputError(
            f"arl must be a number of batches above 1; got {shown(arl)}",
            "try 20_000",
            argument="arl",
        )
    return found
