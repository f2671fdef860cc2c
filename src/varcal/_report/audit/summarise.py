"""From an audit to the summary of its report."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from varcal._audit.audit_result import Audit
from varcal._audit.audit_row import AuditRow, ClaimSummary
from varcal._audit.first_screen import better_words, first_screen
from varcal._audit.places import Place
from varcal._audit.screen.checks import Column, columns_of, hidden_errors
from varcal._audit.screen.judgement import is_sure
from varcal._audit.verdicts import FINDINGS, OFF
from varcal._measures.bin_table import BinTable
from varcal._measures.curve_result import Curve
from varcal._measures.histogram import Histogram
from varcal._report.audit.intersections import intersections_of
from varcal._report.audit.method import citation, glossary, method
from varcal._report.audit.summary import (
    Bin,
    Hidden,
    Panel,
    ScoreSummary,
    Spot,
    Summary,
    VariableSummary,
)
from varcal._report.claim_words import chart_title, claim_words
from varcal._report.lines import Line, curve_line, score_line, value_text
from varcal._text.gaps import (
    CLASS,
    CONFIDENCE,
    claim_name,
    gap_mark,
    gap_side,
    off_by,
)
from varcal._text.numbers import (
    count,
    interval,
    level_text,
    p_text,
    percent,
    points,
    share_text,
)
from varcal._text.sentences import Code, Named, Sentence, Strong, StrongName, cut
from varcal._version import __version__

if TYPE_CHECKING:
    from varcal._audit.repair import Repair

#: The largest number of other places that a card names.
MOST_PLACES = 4
#: The largest number of frequent values that a note names.
MOST_TIES = 4
#: The largest number of classes that a ranking names as wrong.
MOST_CLAIMS = 3


def summarise(
    audit: Audit,
    title: str = "Calibration audit",
) -> Summary:
    """Return the summary of an audit, which its report is made from.

    Parameters
    ----------
    audit : Audit
        The results.
    title : str
        The name of the report.
    """
    columns = columns_of(audit)
    return Summary(
        title=title,
        created=now(),
        event=audit.event,
        screen=first_screen(audit),
        outcome=next((one.label for one in audit.claims.values() if one.label), ""),
        n_rows=audit.n_rows,
        n_dropped=audit.n_dropped,
        level=audit.level,
        limit=audit.limit,
        variables=tuple(_variable(audit, row, k, columns) for k, row in enumerate(audit.rows, 1)),
        scores=tuple(_score(_worst_by_score(audit, column)) for column in columns),
        intersections=intersections_of(audit.intersections),
        glossary=glossary(audit),
        notes=_notes(audit),
        method=method(audit),
        versions=installed(),
        citation=citation(),
    )


def now() -> str:
    """Return the time at which a report is made."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def installed() -> tuple[tuple[str, str], ...]:
    """Return the versions of the packages behind the figures."""
    packages = tuple((name, version(name)) for name in ("numpy", "scipy"))
    return (("varcal", __version__), ("Python", platform.python_version()), *packages)


def _variable(
    audit: Audit, row: AuditRow, rank: int, columns: tuple[Column, ...]
) -> VariableSummary:
    name = row.variable
    curve, table = audit.curves[name], audit.tables[name]
    main = _panel(audit, curve, row.claim, main=True)
    other_claim = next((one.claim for one in row.others), "")
    other = audit.other_curves.get(name)
    return VariableSummary(
        rank=rank,
        name=name,
        kind=row.kind,
        verdict=row.verdict,
        claim=row.claim,
        wrong=_wrong(audit, row),
        hidden=row.uneven.debiased,
        low=row.low,
        high=row.high,
        claims=tuple(_hidden(row, column) for column in columns),
        spot=None if row.place is None else _spot(audit, row.place),
        weakest=_spot(audit, row.weakest),
        after=_after(audit.repair, name),
        places=_places(audit, row),
        main=main,
        other=None if other is None else _panel(audit, other, other_claim),
        repaired=_repaired(audit, row),
        levels=_levels(audit, row, main.line) if main.line.kind == "levels" else (),
        bins=_bins(table),
        notes=_variable_notes(row, curve, table, main.line),
        statistics=_statistics(audit, row),
    )


def _wrong(audit: Audit, row: AuditRow) -> Sentence:
    """Name the claims that are wrong along a variable."""
    least = audit.limit if row.verdict == OFF else 0.0
    wrong = [row.claim] if row.verdict in FINDINGS else []
    wrong += [one.claim for one in row.others if wrong and one.low > least]
    wrong.sort(key=list(audit.claims).index)
    parts: list[str | Sentence] = []
    for k, claim in enumerate(wrong[:MOST_CLAIMS]):
        last = k == len(wrong) - 1
        parts += [(" and " if last else ", ") if k else "", claim_name(claim)]
    more = len(wrong) - MOST_CLAIMS
    return Sentence.of(*parts, f" and {more} more" if more > 0 else "")


def _hidden(row: AuditRow, column: Column) -> Hidden:
    value, low, high = max(hidden_errors(row, column.claims))
    return Hidden(column.title, value, low, high)


def _after(repair: Repair | None, name: str) -> Hidden | None:
    if repair is None or name not in repair.full.after:
        return None
    row = repair.full.after.row(name)
    return Hidden("After repair", row.uneven.debiased, row.low, row.high)


def _spot(audit: Audit, place: Place) -> Spot:
    return Spot(
        place.text,
        place.claim,
        place.predicted,
        place.observed,
        place.gap,
        place.low,
        place.high,
        place.n,
        better_words(audit, place),
    )


def _places(audit: Audit, row: AuditRow) -> tuple[Sentence, ...]:
    """Say what is wrong where: the clear places, then other parts of the curve."""
    if row.place is None:
        weak = row.weakest
        return (
            Sentence.of(
                f"Uneven error of more than {points(row.high)} points can be ruled out. Least is "
                "known for ",
                StrongName(cut(weak.text)),
                f" ({count(weak.n, 'row')}): up to {points(weak.largest_gap)} points could still "
                "be there.",
            ),
        )
    if row.kind == "levels":
        return ()
    same = [place for place in audit.places if place.variable == row.variable]
    places = [row.place, *(place for place in same if place.text != row.place.text)]
    told = [_place_sentence(audit, place) for place in places if is_sure(place)]
    curve = audit.curves[row.variable]
    return (*told, *([region_note(curve, row.claim)] if curve.regions else []))


def _place_sentence(audit: Audit, place: Place) -> Sentence:
    """Say what is wrong at a place."""
    low, high = sorted((abs(place.low), abs(place.high)))
    says, happens = percent(place.predicted), percent(place.observed)
    rates = (
        f"The model is {says} sure and right {happens} of the time"
        if place.claim == CONFIDENCE
        else f"The model says {says}, {happens} happens"
    )
    better = better_words(audit, place)
    name = StrongName(cut(place.text))
    rows = count(place.n, "row")
    if better:
        return Sentence.of(name, ": ", better, f" points. {rates}; {rows}.")
    return Sentence.of(
        f"{gap_mark(place.gap)} ",
        name,
        ": ",
        off_by(place.gap, place.claim),
        f" ({interval(low, high)}). {rates}; {rows}.",
    )


def _levels(audit: Audit, row: AuditRow, line: Line) -> tuple[Spot, ...]:
    """Return the levels; one that is named elsewhere has the same interval as there."""
    named = [row.place, *audit.places]
    known = {
        place.text: place for place in named if place is not None and place.variable == row.variable
    }
    levels = []
    for k, text in enumerate(line.labels):
        if text in known:
            levels.append(_spot(audit, known[text]))
            continue
        says, happens = line.predicted[k], line.actual[k]
        ends = says - line.actual_high[k], says - line.actual_low[k]
        n = line.n[k] if line.n else audit.n_rows
        levels.append(Spot(text, row.claim, says, happens, says - happens, *ends, n, Sentence()))
    return tuple(levels)


def _panel(audit: Audit, curve: Curve, claim: str, *, main: bool = False) -> Panel:
    histogram, within = shown_range(curve)
    line, worst = curve_line(curve, within)
    label = audit.claims[claim].label
    return Panel(
        title=chart_title(claim, label, curve.variable if main else ""),
        note=region_note(curve, claim),
        claim=claim,
        line=line,
        regions=curve.regions,
        histogram=histogram,
        worst=worst,
    )


def _repaired(audit: Audit, row: AuditRow) -> Panel | None:
    repair = audit.repair
    if repair is None or not repair.full.helps or row.variable not in repair.full.after:
        return None
    after = repair.full.after
    curves = after.curves
    if after.row(row.variable).claim != row.claim:
        curves = after.other_curves
    if row.variable not in curves:
        return None
    found = _panel(after, curves[row.variable], row.claim)
    title = Sentence.of("After repair: ", claim_name(row.claim))
    return Panel(**vars(found) | {"title": title})


def region_note(curve: Curve, claim: str) -> Sentence:
    """Say where a curve is surely off, in which direction."""
    if not curve.regions:
        return Sentence.of("At no single value surely off.")
    parts: list[str | Sentence] = ["Surely off: "]
    last = ""
    for k, region in enumerate(curve.regions[:MOST_PLACES]):
        ends = dict.fromkeys(value_text(curve, end) for end in (region.low, region.high))
        side = gap_side(1.0 if region.direction == "over" else -1.0, claim)
        parts += [", " if k else "", f"{side} at " if side != last else ""]
        parts.append(Named(cut(" to ".join(ends))))
        last = side
    more = len(curve.regions) - MOST_PLACES
    return Sentence.of(*parts, f" and {more} more." if more > 0 else ".")


def shown_range(curve: Curve) -> tuple[Histogram | None, tuple[float, float] | None]:
    """Return the histogram of a curve and the range of its chart; None for levels."""
    if curve.kind == "levels":
        return None, None
    edges = curve.histogram.edges
    return curve.histogram, (float(edges[0]), float(edges[-1]))


def worst_words(curve: Curve, claim: str) -> Sentence:
    """Say where the gap of a curve is largest, and what happened there."""
    line, k = curve_line(curve, shown_range(curve)[1])
    says, happens, words = line.predicted[k], line.actual[k], claim_words(claim)
    return Sentence.of(
        "Largest gap at ",
        Named(cut(line.labels[k])),
        f": {words.says_short} {percent(says)}, {words.happens_short} {percent(happens)}; ",
        off_by(says - happens, claim),
        ".",
    )


def _bins(table: BinTable) -> tuple[Bin, ...]:
    """Return the bins that have rows."""
    columns = table.columns
    return tuple(
        Bin(
            label=str(columns["bin"][k]),
            n=columns["n"][k],
            share=columns["share"][k],
            says=columns["predicted"][k],
            happens=columns["observed"][k],
            gap=columns["gap"][k],
            low=columns["gap_low"][k],
            high=columns["gap_high"][k],
        )
        for k in range(len(table))
        if columns["n"][k]
    )


def _variable_notes(
    row: AuditRow, curve: Curve, table: BinTable, line: Line
) -> tuple[Sentence, ...]:
    notes = []
    if curve.n_missing:
        gap = curve.missing_gap
        notes.append(
            Sentence.of(
                f"{count(curve.n_missing, 'row')} ({share_text(row.missing)}) without a value are "
                "in a bin of their own, not in the curve: ",
                off_by(gap, row.claim),
                ".",
            )
        )
    notes += [Sentence.of(note) for note in _tie_notes(table)]
    within = shown_range(curve)[1]
    if within is not None and (within[0] > curve.x[0] or within[1] < curve.x[-1]):
        ends = f"{line.labels[0]} to {line.labels[-1]}"
        notes.append(
            Sentence.of(
                f"The picture runs from the 1st to the 99th percentile, {ends}; all figures use "
                "every row."
            )
        )
    if len(curve.x) == 1 and not curve.n_missing:
        notes.append(Sentence.of("The variable has only one value."))
    if line.left_out:
        notes.append(
            Sentence.of(
                f"The table has the {len(line.x)} most frequent levels; {line.left_out} more are "
                "in the figures."
            )
        )
    return tuple(notes)


def _tie_notes(table: BinTable) -> list[str]:
    """Name the values that are so frequent that each has a bin of its own."""
    if "low" not in table.columns:
        return []
    names = ("bin", "low", "high", "share")
    held = [row for row in zip(*(table.columns[name] for name in names), strict=True) if row[3]]
    single = [(label, share) for label, low, high, share in held if low == high]
    if len(single) == sum(1 for row in held if row[1] == row[1]):
        return [f"Each of its {len(single)} values has a bin of its own."] * (len(single) > 1)
    single.sort(key=lambda pair: -pair[1])
    named = ", ".join(f"{label} ({percent(share)} of rows)" for label, share in single[:MOST_TIES])
    more = f" and {len(single) - MOST_TIES} more" if len(single) > MOST_TIES else ""
    return [f"Values with a bin of their own: {named}{more}."] if single else []


def _statistics(audit: Audit, row: AuditRow) -> tuple[Sentence, ...]:
    """Return the figures that statisticians ask for."""
    level = level_text(audit.level)
    vece, uneven = row.vece, row.uneven
    told = [
        Sentence.of(
            "Of the claim with the larger error (",
            claim_name(row.claim),
            f"): VECE {points(vece.debiased)} points ({level} interval "
            f"{interval(vece.low, vece.high)}; before debiasing {points(vece.value)}; a perfect "
            f"model has less than {points(vece.noise_high)} in {level} of samples).",
        )
    ]
    figures = [
        f"Uneven error {points(uneven.debiased)} points, by itself "
        f"{interval(uneven.low, uneven.high)}, for all variables at once "
        f"{interval(row.low, row.high)}; before debiasing {points(uneven.value)}.",
        f"p of no uneven error in any claim: {p_text(uneven.p_value)}; adjusted for "
        f"{count(len(audit.rows), 'variable')}: {p_text(row.p_holm)} (Holm), {p_text(row.p_bh)} "
        "(Benjamini–Hochberg).",
        f"{row.n_bins} bins; its rank could be {_ranks(row)}.",
    ]
    told += [Sentence.of(text) for text in figures]
    for one in row.others:
        first, *label = claim_name(one.claim).parts
        told.append(
            Sentence.of(
                first.capitalize(),
                *label,
                f": VECE {points(one.vece.debiased)} points, uneven error "
                f"{points(one.uneven.debiased)} ({interval(one.low, one.high)}).",
            )
        )
    if uneven.debiased > vece.debiased:
        told.append(
            Sentence.of(
                "Uneven error is above VECE here: the average gap is taken off for each predicted "
                "side, and both are estimates."
            )
        )
    return tuple(told)


def _ranks(row: AuditRow) -> str:
    if row.rank_low == row.rank_high:
        return f"only {row.rank_low}"
    return f"anything from {row.rank_low} to {row.rank_high}"


def _worst_by_score(audit: Audit, column: Column) -> ClaimSummary:
    return max(
        (audit.claims[claim] for claim in column.claims), key=lambda one: one.score.ece.debiased
    )


def _score(one: ClaimSummary) -> ScoreSummary:
    score, ece = one.score, one.score.ece
    subject: list[str] = ["the model"]
    if one.claim.startswith(CLASS):
        subject = ["the probability of class ", Named(cut(one.label))]
    elif one.claim == CONFIDENCE:
        subject = ["its confidence"]
    held = [k for k, n in enumerate(score.table.columns["n"]) if n]
    return ScoreSummary(
        claim=one.claim,
        finding=Sentence.of(
            "Grouped by the score itself, ",
            *subject,
            " is off by ",
            Strong(f"{points(ece.debiased)} points"),
            f" on average ({interval(ece.low, ece.high)}). That is ECE.",
        ),
        line=score_line(score.curve),
        bins=_bins(score.table),
        consistency=tuple(score.consistency[k] for k in held),
        histogram=score.curve.histogram,
    )


def _notes(audit: Audit) -> tuple[Sentence, ...]:
    dropped = (
        f"{count(audit.n_dropped, 'row')} without an outcome were left out."
        if audit.n_dropped
        else "none was left out."
    )
    notes = [Sentence.of(f"{count(audit.n_rows, 'row')} with a known outcome; {dropped}")]
    for name, reason in audit.left_out:
        notes.append(Sentence.of("Not audited: ", Named(cut(name)), f" ({reason})."))
    if audit.left_out:
        notes.append(Sentence.of("To audit such a column: ", Code("audit(…, include=[…])"), "."))
    notes += [Sentence.of(Named(cut(note, 400))) for note in audit.notes]
    return tuple(notes)
