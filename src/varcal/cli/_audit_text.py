"""An audit as lines of text, each of which can be read and searched for by itself."""

from __future__ import annotations

from varcal._audit.audit_result import Audit, AuditRow
from varcal._measures.regions import main_region
from varcal._text.numbers import count, gap_mark, level_text, p_equation


def audit_lines(found: Audit) -> list[str]:
    """Return the finding, the ranking and a legend."""
    level = level_text(found.level)
    score = "confidence" if found.event == "correct" else "predicted probability"
    return [
        found.sentence,
        f"{found.n_rows:,} rows · {_rates(found)}",
        "",
        *_aligned([_cells(found, row) for row in found.rows]),
        "",
        f"VECE ({level} interval): mean gap between {score} and what happened along the variable; "
        "never below the overall gap",
        "beyond: what is left of it once the overall gap is removed · p: how likely this would be "
        f"if the gap were the same everywhere, adjusted for {count(len(found), 'variable')}",
        f"{gap_mark(1, found.event)}, {gap_mark(-1, found.event)}: the largest gap where it surely "
        "differs from the overall gap",
        *(f"note: {note}" for note in found.notes),
    ]


def _rates(found: Audit) -> str:
    if found.event == "correct":
        return f"wrong {found.error:.1%} of the time, expected {found.predicted_error:.1%}"
    return f"happened {1 - found.error:.1%} of the time, predicted {1 - found.predicted_error:.1%}"


def _cells(found: Audit, row: AuditRow) -> list[str]:
    vece, beyond = row.vece, row.beyond
    return [
        row.variable.replace("\n", " "),
        f"VECE {vece.debiased:.3f} ({vece.low:.3f}–{vece.high:.3f})",
        f"beyond {beyond.debiased:.3f}",
        p_equation(row.p_holm),
        row.verdict,
        _where(found, row),
    ]


def _where(found: Audit, row: AuditRow) -> str:
    curve = found[row.variable]
    region = main_region(curve.excess, curve.worst)
    if region is None:
        return ""
    gap = max(region.gap_low, region.gap_high, key=abs)
    label = region.label.replace(" to ", "–").replace("\n", " ")
    return f"{gap_mark(gap, found.event)} {abs(gap):.3f} at {label} ({region.n:,} rows)"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
