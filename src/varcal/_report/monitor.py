"""The report of a monitor: its words and charts, as a page and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
from markupsafe import Markup

from varcal._monitor.history import FULL_COLOUR, HeatRow, MonitorView, view_of
from varcal._monitor.monitor import Monitor, Status, Where, evidence_text
from varcal._report import page as svg
from varcal._report.page import (
    as_html,
    citation,
    installed,
    json_text,
    now,
    prose,
    render,
    write_report,
)
from varcal._text import (
    CONFIDENCE,
    RISK,
    Code,
    Named,
    Sentence,
    Strong,
    Unit,
    claim_name,
    count,
    cut,
    filled,
    gap_said,
    gap_side,
    listed,
    number_text,
    percent,
    points,
    short,
)

_CLOSED = (
    "Batches are closed windows: each is entered once, when its labels are in. Labels that come "
    "sooner for one outcome than for the other show a gap that is not there; enter rows by the "
    "date of their prediction."
)


def write_monitor(
    monitor: Monitor,
    path: str | PathLike[str],
    *,
    title: str = "Calibration monitor",
    commands: bool = False,
) -> None:
    """Write the report of a monitor; its advice names Python, or commands of a shell."""
    summary = summarise_monitor(monitor, title, commands=commands)
    forms = {
        ".html": lambda: monitor_html(summary),
        ".md": lambda: render("monitor.md.j2", **_context(summary)),
        ".json": lambda: json_text(summary),
    }
    write_report(path, forms)


def monitor_html(summary: Mapping[str, Any]) -> str:
    """Return the page as text."""
    context = _context(summary)
    view, words = summary["view"], context["words"]
    return render(
        "monitor.html.j2",
        evidence_chart=evidence_chart(view) if len(view.x) else "",
        rate_chart=rate_chart(view, words) if view.shown is not None else "",
        heat_strip=partial(heat_strip, view=view, words=words),
        **context,
    )


def status_html(monitor: Monitor) -> str:
    """Return the badge, the headline and the lede, for a notebook."""
    summary = summarise_monitor(monitor)
    headline, lede = as_html(summary["headline"]), as_html(summary["lede"])
    return f"<div><h3>{summary['badge']}: {headline}</h3><p>{lede}</p></div>"


def _context(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what templates show: the summary, and the words of charts and tables."""
    shown = summary["view"].shown
    claim = shown.claim if shown is not None else RISK
    names = ("says", "happens", "predicted", "actual", "rate")
    texts = (
        ("Is sure", "Is right", "how sure", "is right", "share right")
        if claim == CONFIDENCE
        else ("Model says", "Happens", "says", "happens", "rate")
    )
    words = dict(zip(names, texts, strict=True))
    words |= {"over": gap_side(1, claim), "under": gap_side(-1, claim)}
    return {"summary": summary, "words": words, "claim": claim_name(claim)}


def summarise_monitor(
    monitor: Monitor, title: str = "Calibration monitor", *, commands: bool = False
) -> dict[str, Any]:
    """Return the content of the report of a monitor, whatever its format.

    Parameters
    ----------
    monitor : Monitor
        The monitor.
    title : str
        The heading.
    commands : bool
        Whether advice names commands of a shell instead of Python.
    """
    status, alarm_at = monitor.status, evidence_text(monitor.alarm_at)
    if status.where is None:
        badge = "No alarm, but close" if status.close else "No alarm"
        look = "ok" if status.n_batches and not status.close else "watch"
    else:
        badge, look = ("Alarm, acknowledged", "watch") if status.acknowledged else ("Alarm", "bad")
    return {
        "title": title,
        "created": now(),
        "headline": _headline(monitor, status),
        "lede": _lede(monitor, status),
        "badge": badge,
        "look": look,
        "steps": _steps(status.where, commands=commands),
        "facts": _facts(monitor, status),
        "view": view_of(monitor),
        "log": tuple(reversed(monitor.events)),
        "notes": (*(Sentence.of(Named(note)) for note in monitor.notes), Sentence.of(_CLOSED)),
        "method": tuple(prose("method_monitor.txt.j2", monitor=monitor, alarm_at=alarm_at)),
        "versions": installed(),
        "citation": citation(),
    }


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
    limit = Unit().limit(monitor.limit)
    exceeds = (
        f"differs from that of the reference by more than {limit} points"
        if monitor.has_reference
        else f"exceeds {limit} points"
    )
    if where is None:
        if not status.n_batches:
            return Sentence.of("The monitor waits for its first batch.")
        return Sentence.of(
            f"After {status.batches_text} with {count(status.n_rows, 'row')} the evidence that a "
            f"gap {exceeds} anywhere is "
            + (
                f"{status.share_text('raise an alarm')}."
                if status.close
                else f"{evidence_text(status.evidence)}; an alarm is raised at "
                f"{evidence_text(status.alarm_at)}."
            )
        )
    rates = f"the model says {percent(where.predicted)} and {percent(where.observed)} happens"
    if where.claim == CONFIDENCE:
        sure, right = percent(where.predicted), percent(where.observed)
        rates = f"the model is sure of {sure} and is right in {right}"
    proof, also = Sentence(), Sentence()
    if where.also:
        also = filled(
            "Other variables show it about as clearly, which correlated ones do: {}.",
            listed(list(where.also)),
        )
    if where.variable and where.proven:
        name = Named(cut(where.variable))
        proof = filled(" Along {} alone the evidence is enough for an alarm.", name)
    elif where.variable:
        proof = Sentence.of(
            " The alarm is proven, the place is the most likely one: the evidence is shared with "
            "other places."
        )
    return filled(
        f"Since then {rates}: off by {{}} ({where.interval_text}), {count(where.n, 'row')}. The "
        f"alarm was raised at {{}}.{{}} {{}}",
        Strong(f"{points(abs(where.gap))} points"),
        Named(cut(status.raised)),
        proof,
        also,
    )


#: What to run, in Python and in a shell.
_CALLS = ("vc.audit(…)", "vc.VariableCalibrator()", "vc.compare(…)", "monitor.reset()")
_COMMANDS = ("varcal audit", "varcal calibrate", "varcal compare", "varcal monitor reset")


def _steps(where: Where | None, *, commands: bool) -> tuple[tuple[str, Sentence], ...]:
    if where is None:
        return ()
    audit, calibrate, compare, reset = map(Code, _COMMANDS if commands else _CALLS)
    look = (
        "Did the data change, or how labels are made? Were labels selected, or some still missing? "
        "{} of the rows since {} shows all variables."
    )
    fit = "Learn one from rows since the change with {}, and prove it on later rows with {}."
    new = (
        "The repaired probabilities need a monitor of their own. If nothing was wrong, {} starts "
        "this one over."
    )
    return (
        ("Look at the rows since then", filled(look, audit, Named(cut(where.since)))),
        ("Find a repair", filled(fit, calibrate, compare)),
        ("Start a new monitor", filled(new, reset)),
    )


def _facts(monitor: Monitor, status: Status) -> tuple[tuple[str, str], ...]:
    rate = (
        f"at most {percent(monitor.alpha)} of monitors ever raise one"
        if monitor.alpha is not None
        else f"one in {count(round(monitor.arl or 0))} batches or rarer"
    )
    return (
        ("Batches since the last reset", count(status.n_batches)),
        ("Rows", count(status.n_rows)),
        ("Latest batch", cut(status.id or "–")),
        ("Limit", f"{Unit().limit(monitor.limit)} points"),
        ("False alarms", rate),
        (
            "Evidence",
            f"{evidence_text(status.evidence)}, alarm at {evidence_text(status.alarm_at)}",
        ),
    )


#: The height of the plots, in pixels.
HEIGHT = 210
#: The longest id under an axis, and in the text of a point.
_UNDER, _IN_TEXT = 12, 60


def evidence_chart(view: MonitorView) -> Markup:
    """Draw the evidence against its threshold."""
    x, alarm_at = _time_axis(view), view.status.alarm_at
    low, high = view.evidence_ends
    ticks = tuple((float(k), number_text(10.0**k)) for k in view.evidence_powers)
    y = svg.Scale(math.log10(low), math.log10(high), ticks)
    at = svg.level(y, math.log10(alarm_at), HEIGHT)
    texts = [f"evidence {evidence_text(value)}" for value in view.evidence.tolist()]
    return svg.chart(
        svg.y_ticks(y, HEIGHT),
        svg.x_ticks(x, HEIGHT),
        _marks(view, x),
        svg.box(
            svg.path(x, y, view.x, np.log10(np.maximum(view.evidence, low)), "gap"), height=HEIGHT
        ),
        svg.el("line", x1=0, x2="100%", y1=at, y2=at, class_="limit"),
        svg.el("text", "alarm", x=4, y=at, dy="-0.4em", class_="name bad"),
        _blocks(view, x, texts),
        key="evidence",
        title="Evidence over time",
        text=f"Evidence is now {evidence_text(view.status.evidence)}; an alarm is raised at "
        f"{evidence_text(alarm_at)}.",
        class_="time",
    )


def rate_chart(view: MonitorView, words: Mapping[str, str]) -> Markup:
    """Draw what the model says and what happens in the cell with the most evidence."""
    assert view.shown is not None
    place = short(view.shown.label, _IN_TEXT)
    x, stretches = _time_axis(view), [one for one in (view.before, view.after) if one is not None]
    middles, says, happens = view.rates
    held = happens[np.isfinite(happens)]
    ends = np.quantile(held, [0.02, 0.98]).tolist() if held.size else [0.0, 1.0]
    for one in stretches:
        rates = np.concatenate([one.predicted, one.observed, one.low[-1:], one.high[-1:]])
        ends += rates[np.isfinite(rates)].tolist()
    y = svg.share_axis(min(max(ends), 1.0), max(min(ends), 0.0), many=4)
    shapes, names = [], []
    for one in stretches:
        shapes.append(svg.band(x, y, one.x.tolist(), one.low.tolist(), one.high.tolist(), "band"))
        shapes.append(svg.path(x, y, one.x, one.observed, "actual"))
        shapes.append(svg.path(x, y, one.x, one.predicted, "predicted"))
        names = _names(one.predicted[-1], one.observed[-1], y, words)
    dots = [
        svg.el("circle", cx=x.percent(a), cy=svg.level(y, b, HEIGHT), r=1.8, class_="speck")
        for a, b in zip(middles.tolist(), happens.tolist(), strict=True)
        if y.low <= b <= y.high
    ]
    texts = [
        f"{words['predicted']} {percent(a)}, {words['actual']} {percent(b)}"
        for a, b in zip(says.tolist(), happens.tolist(), strict=True)
    ]
    return svg.chart(
        svg.y_ticks(y, HEIGHT),
        svg.x_ticks(x, HEIGHT),
        _marks(view, x),
        *dots,
        svg.box(*shapes, height=HEIGHT),
        *names,
        _blocks(view, x, texts),
        key="rates",
        title=f"What the model says and what happens where {place}",
        text="Dots are single batches, lines are means so far, the band is their interval.",
        class_="time",
    )


def heat_strip(row: HeatRow, view: MonitorView, words: Mapping[str, str]) -> Markup:
    """Draw the gaps of one cell over time: the larger, the stronger; pale what may be chance."""
    x, edges = _time_axis(view), view.columns.tolist()
    shapes = []
    for k, (gap, clear) in enumerate(zip(row.gap.tolist(), row.clear.tolist(), strict=True)):
        if gap != gap:
            continue
        side = "over" if gap > 0 else "under"
        strength = f"{min(abs(gap) / FULL_COLOUR, 1.0) * (1.0 if clear else 0.25):.2f}"
        look = {"height": 18, "fill_opacity": strength, "class_": side}
        shape = svg.bar(x, edges[k], edges[k + 1], **look)
        text = f"{points(abs(gap))} points {words[side]}{'' if clear else ', may be chance'}"
        shapes.append(svg.tip(shape, f"{_when(view, edges[k], edges[k + 1])}: {text}"))
    if view.since is not None:
        place = x.percent(view.since)
        shapes.append(svg.el("line", x1=place, x2=place, y1=-3, y2=21, class_="since"))
    return svg.el("svg", *shapes, class_="heat", aria_hidden="true")


def _time_axis(view: MonitorView, many: int = 3) -> svg.Scale:
    """Return the axis of batches, with as many of their ids as a phone has room for."""
    low, high = float(view.columns[0]), max(float(view.columns[-1]), 1.0)
    which = np.unique(np.linspace(0, max(len(view.x) - 1, 0), many).round().astype(int))
    ticks = tuple((float(view.x[k]), short(view.ids[k], _UNDER)) for k in which[: len(view.x)])
    return svg.Scale(low, high, ticks)


def _blocks(view: MonitorView, x: svg.Scale, texts: list[str]) -> Markup:
    """Lay a column over each block of batches that says what is drawn there."""
    edges = [float(view.columns[0]), *view.x.tolist()]
    whens = [_when(view, *ends) for ends in pairwise(edges)]
    shown = [f"{when}: {text}" for when, text in zip(whens, texts, strict=True)]
    return svg.columns(x, edges, shown, HEIGHT)


def _when(view: MonitorView, start: float, end: float) -> str:
    """Name the batches from one number to another by the id of the last one."""
    last = short(view.ids[int(np.searchsorted(view.x, end))], _IN_TEXT)
    return last if end - start <= 1 else f"{end - start:.0f} batches to {last}"


def _names(says: float, happens: float, y: svg.Scale, words: Mapping[str, str]) -> list[Markup]:
    """Write the names of both lines at their ends, apart from each other."""
    pairs = sorted([(says, "predicted"), (happens, "actual")], reverse=True)
    top, bottom = (HEIGHT * (1 - y.place(value)) for value, _ in pairs)
    places = [top - 8, bottom + (22 if bottom - top < 34 else 16)]
    return [
        svg.el("text", words[name], x="100%", y=f"{place:.0f}", class_=f"name end {name}")
        for place, (_, name) in zip(places, pairs, strict=True)
    ]


def _marks(view: MonitorView, x: svg.Scale) -> Markup:
    """Mark where the change began, and resets."""
    made = [
        svg.el("line", x1=x.percent(at), x2=x.percent(at), y1=0, y2=HEIGHT, class_="axis faint")
        for at in view.resets
    ]
    if view.since is not None:
        place, late = x.percent(view.since), x.place(view.since) > 0.6
        made.append(svg.el("line", x1=place, x2=place, y1=-12, y2=HEIGHT, class_="since"))
        look = {"dx": -5, "class_": "name bad end"} if late else {"dx": 5, "class_": "name bad"}
        made.append(svg.el("text", "change began", x=place, y=-4, **look))
    return Markup("").join(made)
