"""Status: whether there is an alarm, where, since when, and how large the gap is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import floor
from typing import TYPE_CHECKING, Any

from varcal._monitor.detector import SUMS, UNITS
from varcal._text.gaps import off_by
from varcal._text.numbers import count, decimals, interval
from varcal._text.sentences import Named, Sentence, cut, listed
from varcal._text.tables import wrapped

if TYPE_CHECKING:
    from varcal._monitor.monitor import Monitor


#: The share of an alarm's evidence from which on a monitor is close to one. While all gaps are
#: within their limits, at most 20 % of monitors with alpha=0.05 ever come as far, to 5 of 20.
CLOSE = 0.25


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

    # The most asked-for facts, without going through `where`.
    @property
    def variable(self) -> str | None:
        """The variable of the alarm; None without one, and for all rows."""
        return (self.where.variable or None) if self.where else None

    @property
    def claim(self) -> str | None:
        """The claim of the alarm."""
        return self.where.claim if self.where else None

    @property
    def direction(self) -> str | None:
        """The direction of the alarm: "over" or "under"."""
        return self.where.direction if self.where else None

    @property
    def since(self) -> str | None:
        """The id of the batch at which the change seems to have begun."""
        return self.where.since if self.where else None

    @property
    def gap(self) -> float | None:
        """The gap since then."""
        return self.where.gap if self.where else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        plain = asdict(self)
        if self.where is not None:
            plain["where"]["also"] = list(self.where.also)
        return plain

    @property
    def sentence(self) -> Sentence:
        """The status in words."""
        if self.where is None:
            return no_alarm(self)
        return Sentence.of(
            "Known alarm: " if self.acknowledged else "Alarm: ",
            fault(self.where),
            Sentence.of(", since ", Named(cut(self.where.since)), "."),
        )

    def __str__(self) -> str:
        return str(self.sentence)

    def __repr__(self) -> str:
        return wrapped(str(self))


def fault(where: Where) -> Sentence:
    """Say what is wrong, by how much and where.

    >>> found = Where("probability", "age", "up to 29", "age up to 29", "under", "d7", 900,
    ...               0.2, 0.3, -0.1, -0.15, -0.05, True, ())
    >>> str(fault(found))
    'too low by 10.0 points (5.0 to 15.0) where age up to 29'
    """
    place = Sentence.of(" where ", Named(cut(where.label))) if where.variable else " over all rows"
    return Sentence.of(off_by(where.gap, where.claim), f" ({off_interval(where)})", place)


def off_interval(where: Where) -> str:
    """Write the interval of how far off the model is, in the direction in which it is.

    >>> found = Where("probability", "age", "up to 29", "age up to 29", "under", "d7", 900,
    ...               0.2, 0.3, -0.1, -0.22, 0.02, True, ())
    >>> off_interval(found)
    '−2.0 to 22.0'
    """
    low, high = (where.low, where.high) if where.gap > 0 else (-where.high, -where.low)
    return interval(low, high)


def no_alarm(status: Status) -> Sentence:
    """Say that there is no alarm, and how near it is.

    >>> calm = Status(False, "", False, "d8", 8, 2000, 0, 0.35, 20.0, None)
    >>> str(no_alarm(calm))
    'No alarm after 8 batches (2,000 rows): evidence 0.35, alarm at 20.'
    >>> near = Status(False, "", False, "d9", 9, 900, 0, 15.2, 20.0, None)
    >>> str(no_alarm(near))
    'No alarm yet after 9 batches (900 rows), but close: evidence 15, 76% of the 20 that raise one.'
    """
    if not status.n_batches:
        return Sentence.of("No alarm: no batch yet.")
    seen = f"{count(status.n_batches)} batch{'' if status.n_batches == 1 else 'es'}"
    after = f"after {seen} ({count(status.n_rows, 'row')})"
    if status.close:
        return Sentence.of(
            f"No alarm yet {after}, but close: evidence {share_text(status, 'raise one')}."
        )
    return Sentence.of(
        f"No alarm {after}: "
        f"evidence {evidence_text(status.evidence)}, alarm at {evidence_text(status.alarm_at)}."
    )


def share_text(status: Status, does: str) -> str:
    """Write evidence that is close to an alarm, and its share of what an alarm needs.

    >>> found = Status(False, "", False, "d8", 8, 2000, 0, 19.98, 20.0, None)
    >>> share_text(found, "an alarm needs")
    'just below 20, 99% of the 20 that an alarm needs'
    """
    evidence, needed = evidence_text(status.evidence), evidence_text(status.alarm_at)
    share = floor(100 * status.evidence / status.alarm_at)
    below = "just below " if evidence == needed else ""
    return f"{below}{evidence}, {share}% of the {needed} that {does}"


def also_text(where: Where) -> Sentence:
    """Say which variables have about as much evidence; empty if there are none."""
    if not where.also:
        return Sentence()
    return Sentence.of(
        "Other variables show it about as clearly, which correlated ones do: ",
        listed(list(where.also)),
        ".",
    )


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


def notes_of(monitor: Monitor) -> tuple[str, ...]:
    """Return what a reader should know about how the evidence is computed."""
    notes = []
    if monitor.method == UNITS:
        notes.append(
            "Rows of one unit belong together: evidence is computed from the mean errors of "
            "units, hashed into 256 buckets, and holds if the size of a unit does not depend "
            "on its outcomes."
        )
    elif monitor.method == SUMS:
        why = (
            "limits come from a reference"
            if monitor.has_reference
            else "the bins were not chosen with monitor="
            f"{monitor.limit:g}, so that the stronger bets are not available"
        )
        notes.append(
            f"Evidence is self-normalized, because {why}. It holds as well, but needs up "
            "to half as many rows again to find the same change."
        )
    for name, why in monitor.bins.left_out.items():
        notes.append(f"{name} is not watched: {why}")
    if monitor.bins.weight_cap is not None:
        notes.append(f"Weights are at most {monitor.bins.weight_cap:g}; larger ones are refused.")
    if monitor.n_dropped:
        share = monitor.n_dropped / (monitor.n_dropped + monitor.n_rows)
        notes.append(
            f"{monitor.n_dropped:,} rows ({100 * share:.1f}%) had no label and were left out. "
            "The guarantee holds if whether a label is missing does not depend on the outcome."
        )
    if monitor.has_reference:
        blind = int((monitor._limits >= 1).any(axis=1).sum())
        text = "Gaps may be those of the reference, plus or minus the limit."
        if blind:
            text += f" {blind} cells have too few reference rows to be judged."
        notes.append(text)
    return tuple(notes)
