"""From an audit to the summary of its report."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from varcal._audit_result import VERDICTS, Audit, AuditRow
from varcal._bin_table import BinTable
from varcal._curves import Curve
from varcal._regions import Region, main_region, value_label
from varcal._score_profile import ScoreProfile
from varcal._version import __version__
from varcal.report._axes import number_text
from varcal.report._method import citation, method
from varcal.report._summary import (
    Bin,
    Line,
    Overall,
    ReliabilitySummary,
    Summary,
    VariableSummary,
)
from varcal.report._words import (
    Named,
    Sentence,
    Wording,
    count,
    cut,
    interval,
    p_text,
    percent,
    points,
    region_words,
    signed,
    wording,
)

#: A drawn curve has at most so many points, a chart of levels so many rows.
MOST_POINTS = 120
MOST_LEVELS = 30
#: A curve with fewer rows a point than this is drawn at so many even points instead.
ROWS_A_POINT, EVEN_POINTS = 5, 60
#: Dates that span more seconds than this (ten days) are written without their hours.
MANY_DAYS = 864_000


def summarise(
    audit: Audit,
    title: str = "Calibration audit",
    *,
    created: str | None = None,
    versions: tuple[tuple[str, str], ...] | None = None,
) -> Summary:
    """Say in a summary what an audit found.

    Parameters
    ----------
    audit : Audit
        The findings.
    title : str
        The heading.
    created, versions : optional
        When, and with which packages; now and those installed by default.
    """
    words = wording(audit.event)
    counts = Counter(row.verdict for row in audit.rows)
    return Summary(
        title=title,
        created=created or datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        event=audit.event,
        headline=_headline(audit, words),
        worst=_worst(audit, words),
        checked=_checked(audit),
        overall=Overall(
            audit.gap,
            audit.gap_low,
            audit.gap_high,
            words.shown(1 - audit.error),
            words.shown(1 - audit.predicted_error),
            None if audit.other is None else audit.other.event,
            None if audit.other is None else audit.other.gap,
        ),
        verdicts=tuple((verdict, counts[verdict]) for verdict in VERDICTS),
        n_rows=audit.n_rows,
        n_dropped=audit.n_dropped,
        level=audit.level,
        threshold=audit.threshold,
        variables=tuple(_variable(audit, row, k, words) for k, row in enumerate(audit.rows, 1)),
        reliability=_reliability(audit.score, audit.level, words),
        notes=_notes(audit, words),
        method=method(audit, words),
        versions=installed() if versions is None else versions,
        citation=citation(),
    )


def installed() -> tuple[tuple[str, str], ...]:
    """Return the versions behind the figures."""
    packages = tuple((name, version(name)) for name in ("numpy", "scipy"))
    return (("varcal", __version__), ("Python", platform.python_version()), *packages)


def _headline(audit: Audit, words: Wording) -> Sentence:
    sure = audit.gap_low > 0 or audit.gap_high < 0
    head = (
        f"Overall {words.side(audit.gap)} by {points(abs(audit.gap))} points"
        if sure
        else f"Overall no gap can be told from zero ({signed(audit.gap)} points)"
    )
    found = [row for row in audit.rows if row.verdict in VERDICTS[:2]]
    many = count(len(audit), "variable")
    if not found:
        return Sentence.of(f"{head}; along none of {many} does the gap demonstrably change.")
    return Sentence.of(
        f"{head}; the gap changes along {len(found)} of {many}, most along ",
        Named(cut(found[0].variable)),
        ".",
    )


def _worst(audit: Audit, words: Wording) -> Sentence:
    row = audit.rows[0]
    if row.verdict not in VERDICTS[:2]:
        return Sentence(())
    worst = _at_worst(audit.curves[row.variable], words)
    return Sentence.of(Named(cut(row.variable)), ": ", worst)


def _checked(audit: Audit) -> Sentence:
    along = f", over {count(audit.n_rows, 'row')} and along {count(len(audit), 'variable')}."
    if audit.event == "positive":
        return Sentence.of(
            "Checked: whether the predicted probability of ",
            Named(repr(cut(audit.label))) if audit.label else "the positive class",
            f" matches how often it happens{along}",
        )
    return Sentence.of(
        "Checked: whether the confidence in the predicted class matches how often it is right"
        + along
    )


def _variable(audit: Audit, row: AuditRow, rank: int, words: Wording) -> VariableSummary:
    curve, table = audit.curves[row.variable], audit.tables[row.variable]
    histogram = audit.histograms.get(row.variable)
    within = None if histogram is None else (histogram.low, histogram.high)
    bins = _bins(table, words)
    line, at_worst = _line(curve, within, bins, words)
    return VariableSummary(
        rank=rank,
        rank_low=row.rank_low,
        rank_high=row.rank_high,
        name=row.variable,
        kind=row.kind,
        verdict=row.verdict,
        direction=row.direction,
        finding=_finding(row, audit),
        where=_where(curve, words),
        worst=_at_worst(curve, words),
        vece=row.vece,
        beyond=row.beyond,
        p_holm=row.p_holm,
        other_vece=None if audit.other is None else audit.other.vece.get(row.variable),
        line=line,
        at_worst=at_worst,
        regions=curve.regions,
        histogram=histogram,
        bins=bins,
        notes=_variable_notes(row, curve, table, line, within, words),
    )


def _finding(row: AuditRow, audit: Audit) -> Sentence:
    size = (
        f"{points(row.beyond.debiased)} points on average beyond the overall gap "
        f"({audit.level:.0%} interval {interval(row.beyond.low, row.beyond.high)}, "
        f"adjusted p {p_text(row.p_holm)})"
    )
    name = Named(cut(row.variable))
    if row.verdict == "varies":
        return Sentence.of("The gap changes along ", name, f": {size}.")
    if row.verdict == "varies slightly":
        return Sentence.of(
            "The gap changes along ",
            name,
            f", but not surely by more than {points(audit.threshold)} points: {size}.",
        )
    if row.verdict == "no evidence":
        return Sentence.of("No evidence that the gap changes along ", name, f": {size}.")
    return Sentence.of("Too few rows to tell whether the gap changes along ", name, f": {size}.")


def _where(curve: Curve, words: Wording) -> Sentence:
    region = _main_region(curve)
    return Sentence(()) if region is None else region_words(region, words)


def _main_region(curve: Curve) -> Region | None:
    region = main_region(curve.excess, curve.worst)
    if region is None:
        return None
    ends = list(dict.fromkeys(_value(curve, end) for end in (region.low, region.high)))
    return replace(region, label=" to ".join(ends))


def _value(curve: Curve, value: float) -> str:
    """Write a value of a variable: days without hours where it spans many."""
    text = value_label(value, curve.kind, curve.labels)
    if curve.kind == "numeric":
        return number_text(float(f"{value:.4g}") if abs(value) < 1e4 else round(value))
    if curve.kind == "datetime" and curve.x[-1] - curve.x[0] > MANY_DAYS:
        return text.split("T")[0]
    return text


def _at_worst(curve: Curve, words: Wording) -> Sentence:
    k = int(np.abs(curve.x - curve.worst).argmin())
    actual, predicted = (words.shown(1 - float(series[k])) for series in _centre(curve))
    said = words.at(actual, predicted)
    region, worst = _main_region(curve), _value(curve, curve.worst)
    if region is None:
        return Sentence.of("Largest gap at ", Named(cut(worst)), f": {said}.")
    where = region_words(region, words)
    if region.label == worst:
        return Sentence.of(where, f": {said}.")
    return Sentence.of(where, ". Largest gap at ", Named(cut(worst)), f": {said}.")


def _bins(table: BinTable, words: Wording) -> tuple[Bin, ...]:
    columns = table.columns
    return tuple(
        Bin(
            label=str(columns["bin"][k]),
            n=columns["n"][k],
            share=columns["share"][k],
            actual=words.shown(columns["accuracy"][k]),
            predicted=words.shown(columns["confidence"][k]),
            gap=columns["gap"][k],
            gap_low=columns["gap_low"][k],
            gap_high=columns["gap_high"][k],
        )
        for k in range(len(table))
    )


def _line(
    curve: Curve, within: tuple[float, float] | None, bins: tuple[Bin, ...], words: Wording
) -> tuple[Line, int]:
    """Return what is drawn of a curve, and where v* or its nearest point is in it."""
    at = int(np.abs(curve.x - curve.worst).argmin())
    error, predicted_error = _centre(curve)
    ends = (
        (curve.error_high, curve.error_low) if words.risk else (curve.error_low, curve.error_high)
    )
    series: tuple[NDArray[np.float64], ...] = (error, *ends, predicted_error)
    x = curve.x
    if curve.kind == "levels":
        n = np.array([bins[int(value)].n for value in x])
        keep = np.sort(np.argsort(-n, kind="stable")[:MOST_LEVELS])
    elif len(x) > 1 and curve.n_rows < ROWS_A_POINT * len(x):
        # Values of single rows stay out of the report.
        low, high = within or (float(x[0]), float(x[-1]))
        even = np.linspace(max(low, x[0]), min(high, x[-1]), EVEN_POINTS)
        series = tuple(np.interp(even, x, one) for one in series)
        x, keep = even, np.arange(EVEN_POINTS)
    else:
        keep = _thinned(x, within, at)
    actual, actual_low, actual_high, predicted = (_shown(one[keep], words) for one in series)
    kind = "levels" if len(keep) == 1 else curve.kind
    line = Line(
        kind=kind,
        x=tuple(x[keep].tolist()),
        labels=tuple(_value(curve, float(value)) for value in x[keep]),
        actual=actual,
        actual_low=actual_low,
        actual_high=actual_high,
        predicted=predicted,
        n=tuple(int(k) for k in n[keep]) if curve.kind == "levels" else (),
        left_out=len(curve.x) - len(keep) if curve.kind == "levels" else 0,
    )
    return line, int(np.abs(x[keep] - curve.worst).argmin())


def _centre(curve: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the estimates that the bands lie around: what v*, VCE and the regions speak of."""
    low, high = curve.predicted_error_low, curve.predicted_error_high
    clipped = (low <= 0) | (high >= 1)
    predicted = np.where(clipped, curve.predicted_error, (low + high) / 2)
    gap = (curve.band_low + curve.band_high) / 2
    return np.clip(predicted + gap, curve.error_low, curve.error_high), predicted


def _thinned(
    x: NDArray[np.float64], within: tuple[float, float] | None, at: int
) -> NDArray[np.intp]:
    inside = np.arange(len(x))
    if within is not None:
        inside = np.flatnonzero((x >= within[0]) & (x <= within[1]))
        inside = inside if len(inside) > 1 else np.arange(len(x))
    if len(inside) <= MOST_POINTS:
        return inside
    even = np.linspace(x[inside[0]], x[inside[-1]], MOST_POINTS)
    nearest = inside[np.abs(x[inside][:, None] - even).argmin(axis=0)]
    wanted = {*nearest.tolist(), *({at} & set(inside.tolist()))}
    return np.array(sorted(wanted), dtype=np.intp)


def _shown(error: NDArray[np.float64], words: Wording) -> tuple[float, ...]:
    rates = np.clip(1 - error if words.risk else error, 0.0, 1.0)
    return tuple(rates.tolist())


def _variable_notes(
    row: AuditRow,
    curve: Curve,
    table: BinTable,
    line: Line,
    within: tuple[float, float] | None,
    words: Wording,
) -> tuple[Sentence, ...]:
    notes = []
    if curve.n_missing:
        gap = curve.missing_gap
        notes.append(
            f"{count(curve.n_missing, 'row')} ({percent(row.missing)}) without a value: a bin of "
            f"their own, not in the curve; {words.side(gap)} by {points(abs(gap))} points there."
        )
    notes += _tie_notes(table)
    if within is not None and (within[0] > curve.x[0] or within[1] < curve.x[-1]):
        ends = [_value(curve, end) for end in within]
        notes.append(f"The chart runs from the 1st to the 99th percentile, {' to '.join(ends)}.")
    if len(curve.x) == 1 and not curve.n_missing:
        notes.append("The variable has one value only.")
    if line.left_out:
        notes.append(
            f"The chart shows the {len(line.x)} most frequent levels; {line.left_out} more are "
            "in the table."
        )
    if row.rank_low != row.rank_high:
        notes.append(f"Its interval allows ranks {row.rank_low} to {row.rank_high}.")
    return tuple(Sentence.of(note) for note in notes)


def _tie_notes(table: BinTable) -> list[str]:
    """Name the values that are so frequent that each is a bin of its own."""
    if "low" not in table.columns:
        return []
    names = ("bin", "low", "high", "share")
    held = [row for row in zip(*(table.columns[name] for name in names), strict=True) if row[3]]
    single = [(label, share) for label, low, high, share in held if low == high]
    if len(single) == sum(1 for row in held if row[1] == row[1]):
        return [f"Each of its {len(single)} values is a bin of its own."] * (len(single) > 1)
    return [
        f"The value {label} holds {percent(share)} of the rows and is a bin of its own."
        for label, share in single
    ]


def _reliability(score: ScoreProfile, level: float, words: Wording) -> ReliabilitySummary:
    curve, columns = score.curve, score.table.columns
    keep = _thinned(curve.x, None, 0)
    rate, low, high = (
        tuple(np.clip(1 - series[keep], 0.0, 1.0).tolist())
        for series in (_centre(curve)[0], curve.error_high, curve.error_low)
    )
    bins = tuple(
        Bin(
            str(columns["bin"][k]),
            *(columns[name][k] for name in ("n", "share", "accuracy", "confidence")),
            *(columns[name][k] for name in ("gap", "gap_low", "gap_high")),
        )
        for k in range(len(score.table))
    )
    ece = score.ece
    return ReliabilitySummary(
        finding=Sentence.of(
            f"ECE, the mean distance between {words.score} and {words.hit} over bins of the "
            f"{words.score}: {points(ece.debiased)} points ({level:.0%} interval "
            f"{interval(ece.low, ece.high)})."
        ),
        ece=ece,
        line=Line(
            kind="numeric",
            x=tuple(curve.x[keep].tolist()),
            labels=tuple(percent(x) for x in curve.x[keep]),
            actual=rate,
            actual_low=low,
            actual_high=high,
            predicted=tuple(curve.x[keep].tolist()),
        ),
        bins=bins,
        consistency=score.consistency,
        histogram=score.histogram,
    )


def _notes(audit: Audit, words: Wording) -> tuple[Sentence, ...]:
    notes = [Sentence.of(Named(cut(note, 400))) for note in audit.notes]
    if audit.other is not None:
        other = wording(audit.other.event)
        what = (
            "The predicted probability of the positive class"
            if audit.other.event == "positive"
            else "Confidence in the predicted class"
        )
        gap = audit.other.gap
        notes.append(
            Sentence.of(
                f"The same model's other claim: {what} is off by {signed(gap)} points overall "
                f"({other.side(gap)}; {audit.level:.0%} interval "
                f"{interval(audit.other.gap_low, audit.other.gap_high)})."
            )
        )
    if not audit.n_dropped:
        notes.append(Sentence.of("No row was left out."))
    return tuple(notes)
