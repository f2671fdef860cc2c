"""From an audit to the summary of its report."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np

from varcal._audit.audit_result import Audit, AuditRow, headline_parts
from varcal._audit.verdicts import FINDINGS, NO_EVIDENCE, VARIES, VARIES_SLIGHTLY, VERDICTS
from varcal._measures.bin_table import BinTable
from varcal._measures.curve import Curve
from varcal._measures.histogram import Histogram
from varcal._measures.regions import Region, main_region
from varcal._measures.score_profile import ScoreProfile
from varcal._text.numbers import count, interval, level_text, p_text, percent, points, signed
from varcal._version import __version__
from varcal.report.audit.method import citation, method
from varcal.report.audit.summary import (
    Bin,
    Line,
    Overall,
    ReliabilitySummary,
    Summary,
    VariableSummary,
)
from varcal.report.lines import centre, curve_line, score_line, value_text
from varcal.report.words import Named, Sentence, Wording, cut, region_words, wording


def summarise(
    audit: Audit,
    title: str = "Calibration audit",
    *,
    created: str | None = None,
    versions: tuple[tuple[str, str], ...] | None = None,
) -> Summary:
    """Return the summary of an audit, which its report is made from.

    Parameters
    ----------
    audit : Audit
        The results.
    title : str
        The heading.
    created, versions : optional
        When, and with which packages; now and those installed by default.
    """
    words = wording(audit.event)
    counts = Counter(row.verdict for row in audit.rows)
    return Summary(
        title=title,
        created=created or now(),
        event=audit.event,
        headline=_headline(audit),
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


def now() -> str:
    """Return the time at which a report is made."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def installed() -> tuple[tuple[str, str], ...]:
    """Return the versions of the packages behind the figures."""
    packages = tuple((name, version(name)) for name in ("numpy", "scipy"))
    return (("varcal", __version__), ("Python", platform.python_version()), *packages)


def _headline(audit: Audit) -> Sentence:
    before, name, after = headline_parts(audit)
    return Sentence.of(before, Named(cut(name)), after) if name else Sentence.of(before)


def _worst(audit: Audit, words: Wording) -> Sentence:
    row = audit.rows[0]
    if row.verdict not in FINDINGS:
        return Sentence(())
    worst = worst_words(audit.curves[row.variable], words)
    return Sentence.of(Named(cut(row.variable)), ": ", worst)


def _checked(audit: Audit) -> Sentence:
    along = f", in {count(audit.n_rows, 'row')} and along {count(len(audit), 'variable')}."
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
    histogram, within = shown_range(curve)
    line, at_worst = curve_line(curve, within, words)
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
        worst=worst_words(curve, words),
        vece=row.vece,
        beyond=row.beyond,
        p_holm=row.p_holm,
        other_vece=None if audit.other is None else audit.other.vece.get(row.variable),
        line=line,
        at_worst=at_worst,
        regions=curve.regions,
        histogram=histogram,
        bins=_bins(table, words),
        notes=_variable_notes(row, curve, table, line, within, words),
    )


def _finding(row: AuditRow, audit: Audit) -> Sentence:
    size = (
        f"{points(row.beyond.debiased)} points on average beyond the overall gap "
        f"({level_text(audit.level)} interval {interval(row.beyond.low, row.beyond.high)}, "
        f"adjusted p {p_text(row.p_holm)})"
    )
    name = Named(cut(row.variable))
    if row.verdict == VARIES:
        return Sentence.of("The gap changes along ", name, f": {size}.")
    if row.verdict == VARIES_SLIGHTLY:
        return Sentence.of(
            "The gap changes along ",
            name,
            f", but not surely by more than {points(audit.threshold)} points: {size}.",
        )
    if row.verdict == NO_EVIDENCE:
        return Sentence.of("No evidence that the gap changes along ", name, f": {size}.")
    return Sentence.of("Too few rows to tell whether the gap changes along ", name, f": {size}.")


def _where(curve: Curve, words: Wording) -> Sentence:
    region = _main_region(curve)
    return Sentence(()) if region is None else region_words(region, words)


def _main_region(curve: Curve) -> Region | None:
    region = main_region(curve.excess, curve.worst)
    if region is None:
        return None
    ends = list(dict.fromkeys(value_text(curve, end) for end in (region.low, region.high)))
    return replace(region, label=" to ".join(ends))


def shown_range(curve: Curve) -> tuple[Histogram | None, tuple[float, float] | None]:
    """Return the histogram of a curve and the range of its chart; None for levels."""
    if curve.kind == "levels":
        return None, None
    edges = curve.histogram.edges
    return curve.histogram, (float(edges[0]), float(edges[-1]))


def worst_words(curve: Curve, words: Wording) -> Sentence:
    """Say where the gap is largest, and what happened there."""
    k = int(np.abs(curve.x - curve.worst).argmin())
    actual, predicted = (words.shown(1 - float(series[k])) for series in centre(curve))
    said = words.at(actual, predicted)
    region, worst = _main_region(curve), value_text(curve, curve.worst)
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
            f"{count(curve.n_missing, 'row')} ({percent(row.missing)}) without a value are in a "
            f"bin of their own, not in the curve: {words.side(gap)} by {points(abs(gap))} points."
        )
    notes += _tie_notes(table)
    if within is not None and (within[0] > curve.x[0] or within[1] < curve.x[-1]):
        ends = [value_text(curve, end) for end in within]
        notes.append(f"The chart runs from the 1st to the 99th percentile, {' to '.join(ends)}.")
    if len(curve.x) == 1 and not curve.n_missing:
        notes.append("The variable has only one value.")
    if line.left_out:
        notes.append(
            f"The chart shows the {len(line.x)} most frequent levels; the other {line.left_out} "
            "are in the table."
        )
    if row.rank_low != row.rank_high:
        notes.append(f"Its rank could be anything from {row.rank_low} to {row.rank_high}.")
    return tuple(Sentence.of(note) for note in notes)


def _tie_notes(table: BinTable) -> list[str]:
    """Name the values that are so frequent that each has a bin of its own."""
    if "low" not in table.columns:
        return []
    names = ("bin", "low", "high", "share")
    held = [row for row in zip(*(table.columns[name] for name in names), strict=True) if row[3]]
    single = [(label, share) for label, low, high, share in held if low == high]
    if len(single) == sum(1 for row in held if row[1] == row[1]):
        return [f"Each of its {len(single)} values has a bin of its own."] * (len(single) > 1)
    return [
        f"{percent(share)} of the rows have the value {label}, which has a bin of its own."
        for label, share in single
    ]


def _reliability(score: ScoreProfile, level: float, words: Wording) -> ReliabilitySummary:
    curve, columns = score.curve, score.table.columns
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
            f"{words.score}, is {points(ece.debiased)} points ({level_text(level)} interval "
            f"{interval(ece.low, ece.high)})."
        ),
        ece=ece,
        line=score_line(curve),
        bins=bins,
        consistency=score.consistency,
        histogram=curve.histogram,
    )


def _notes(audit: Audit, words: Wording) -> tuple[Sentence, ...]:
    notes = [Sentence.of(Named(cut(note, 400))) for note in audit.notes]
    if audit.other is not None:
        other = wording(audit.other.event)
        what = (
            "The other claim of the model, the predicted probability of the positive class,"
            if audit.other.event == "positive"
            else "The other claim of the model, the confidence in the predicted class,"
        )
        gap = audit.other.gap
        notes.append(
            Sentence.of(
                f"{what} is off by {signed(gap)} points overall "
                f"({other.side(gap)}; {level_text(audit.level)} interval "
                f"{interval(audit.other.gap_low, audit.other.gap_high)})."
            )
        )
    if not audit.n_dropped:
        notes.append(Sentence.of("No row was left out."))
    return tuple(notes)
