"""From a monitor to the summary of its report."""

from __future__ import annotations

from varcal._monitor.detector import BETS, UNITS
from varcal._monitor.monitor import Monitor
from varcal._monitor.status import (
    Status,
    Where,
    also_text,
    evidence_text,
    off_interval,
    share_text,
)
from varcal._monitor.view import view_of
from varcal._report.audit.method import citation
from varcal._report.audit.summarise import installed, now
from varcal._report.monitor.summary import LogEntry, MonitorSummary
from varcal._text.gaps import CONFIDENCE, gap_said
from varcal._text.numbers import count, level_text, limit_text, percent, points
from varcal._text.sentences import Code, Named, Sentence, Strong, cut


def summarise_monitor(
    monitor: Monitor,
    title: str = "Calibration monitor",
) -> MonitorSummary:
    """Return the summary of a monitor, which its report is made from.

    Parameters
    ----------
    monitor : Monitor
        The monitor.
    title : str
        The heading.
    """
    status = monitor.status
    where = status.where
    if where is None:
        badge = "No alarm, but close" if status.close else "No alarm"
        look = "ok" if status.n_batches and not status.close else "watch"
    elif status.acknowledged:
        badge, look = "Alarm, acknowledged", "watch"
    else:
        badge, look = "Alarm", "bad"
    return MonitorSummary(
        title=title,
        created=now(),
        headline=_headline(monitor, status),
        lede=_lede(monitor, status),
        badge=badge,
        look=look,
        steps=_steps(where),
        facts=_facts(monitor, status),
        view=view_of(monitor),
        log=tuple(LogEntry(one.what, one.id, one.note) for one in reversed(monitor.events)),
        notes=_notes(monitor),
        method=_method(monitor),
        versions=installed(),
        citation=citation(),
    )


def _headline(monitor: Monitor, status: Status) -> Sentence:
    where = status.where
    if where is None:
        if not status.n_batches:
            return Sentence.of("No batch yet")
        changed = "gaps beyond those of the reference"
        what = changed if monitor.has_reference else "a gap beyond the limit"
        if status.close:
            return Sentence.of(f"Signs of {what}, close to an alarm")
        # The mean of the evidence without any gap is at most this.
        chance = 1.0 if monitor.alpha is not None else float(status.n_batches)
        return Sentence.of(f"{'No sign' if status.evidence <= chance else 'Weak signs'} of {what}")
    said = str(gap_said(where.gap, where.claim))
    place = Sentence.of(" where ", Named(cut(where.label))) if where.variable else " over all rows"
    return Sentence.of(f"{said[0].upper()}{said[1:]}", place, ", since ", Named(cut(where.since)))


def _lede(monitor: Monitor, status: Status) -> Sentence:
    where = status.where
    limit = limit_text(monitor.limit)
    exceeds = (
        f"differs from that of the reference by more than {limit} points"
        if monitor.has_reference
        else f"exceeds {limit} points"
    )
    if where is None:
        if not status.n_batches:
            return Sentence.of("The monitor waits for its first batch.")
        return Sentence.of(
            f"After {count(status.n_batches)} batch{'' if status.n_batches == 1 else 'es'} with "
            f"{count(status.n_rows, 'row')} the evidence that a gap {exceeds} anywhere is "
            + (
                f"{share_text(status, 'raise an alarm')}."
                if status.close
                else f"{evidence_text(status.evidence)}; an alarm is raised at "
                f"{evidence_text(status.alarm_at)}."
            )
        )
    says, happens = (
        ("the model is sure of", "and is right in")
        if where.claim == CONFIDENCE
        else ("the model says", "and")
    )
    after = "" if where.claim == CONFIDENCE else " happens"
    proof = (
        Sentence()
        if not where.variable
        else Sentence.of(
            " Along ", Named(cut(where.variable)), " alone the evidence is enough for an alarm."
        )
        if where.proven
        else Sentence.of(
            " The alarm is proven, the place is the most likely one: the evidence is shared with "
            "other places."
        )
    )
    return Sentence.of(
        f"Since then {says} {percent(where.predicted)} {happens} {percent(where.observed)}{after}: "
        "off by ",
        Strong(f"{points(abs(where.gap))} points"),
        f" ({off_interval(where)}), {count(where.n, 'row')}. The alarm was raised at ",
        Named(cut(status.raised)),
        ".",
        proof,
        " ",
        also_text(where),
    )


def _steps(where: Where | None) -> tuple[tuple[str, Sentence], ...]:
    if where is None:
        return ()
    return (
        (
            "Look at the rows since then",
            Sentence.of(
                "Did the data change, or how labels are made? Were labels selected, or some still "
                "missing? ",
                Code("vc.audit(…)"),
                " of the rows since ",
                Named(cut(where.since)),
                " shows all variables.",
            ),
        ),
        (
            "Repair",
            Sentence.of(
                "Fit ",
                Code("vc.VariableCalibrator()"),
                " on rows since the change, and prove the repair on later rows with ",
                Code("vc.compare(…)"),
                ".",
            ),
        ),
        (
            "Start a new monitor",
            Sentence.of(
                "The repaired probabilities need a monitor of their own. If nothing was wrong, ",
                Code("monitor.reset()"),
                " starts this one over.",
            ),
        ),
    )


def _facts(monitor: Monitor, status: Status) -> tuple[tuple[str, str], ...]:
    rate = (
        f"at most {percent(monitor.alpha)} of monitors ever"
        if monitor.alpha is not None
        else f"one in {count(round(monitor.arl or 0))} batches or rarer"
    )
    return (
        ("Batches since the last reset", count(status.n_batches)),
        ("Rows", count(status.n_rows)),
        ("Latest batch", cut(status.id or "–")),
        ("Limit", f"{limit_text(monitor.limit)} points"),
        ("False alarms", rate),
        (
            "Evidence",
            f"{evidence_text(status.evidence)}, alarm at {evidence_text(status.alarm_at)}",
        ),
    )


def _notes(monitor: Monitor) -> tuple[Sentence, ...]:
    found = [Sentence.of(note) for note in monitor.notes]
    found.append(
        Sentence.of(
            "Batches are closed windows: each is entered once, when its labels are in. Labels that "
            "come sooner for one outcome than for the other show a gap that is not there; enter "
            "rows by the date of their prediction."
        )
    )
    return tuple(found)


def _method(monitor: Monitor) -> tuple[str, ...]:
    level = level_text(round(monitor.level, 6))
    bets = {
        BETS: "For each cell, twelve bets are made on every row that outcomes are more, or less, "
        "frequent than predicted by more than the limit.",
        UNITS: "For each cell, twelve bets are made on the mean error of every unit.",
    }
    first = bets.get(
        monitor.method,
        "For each cell, twelve self-normalized bets are made from the sums of each batch.",
    )
    cells = len(monitor._cells)
    combined = (
        f"Evidence is the mean of what the bets of {count(cells)} cells gained, restarted at each "
        "batch: 20% for all rows, the rest evenly over variables and their bins."
    )
    guarantee = (
        f"While all gaps are within their limits, the probability that it ever reaches "
        f"{evidence_text(monitor.alarm_at)} is at most {percent(monitor.alpha)}, however many "
        "batches are looked at."
        if monitor.alpha is not None
        else "While all gaps are within their limits, the mean number of batches until it reaches "
        f"{evidence_text(monitor.alarm_at)} is at least that number."
    )
    return (
        first,
        combined,
        guarantee,
        "The start of a change is the batch from which on the strongest bet has gained, without "
        "falling back to nothing.",
        f"The {level} interval of the gap since the change holds for whichever place and start "
        "are found, at all times. Those of the tables hold for one cell at all times.",
    )
