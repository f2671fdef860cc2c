"""An audit as lines of text, each of which can be read and searched for alone."""

from __future__ import annotations

from varcal._audit.audit_result import Audit, AuditRow
from varcal._measures.regions import main_region


def audit_lines(found: Audit) -> list[str]:
    """Return the finding, the ranking and how to read it."""
    level = f"{100 * found.level:g}%"
    spoken = "confidence" if found.event == "correct" else "predicted probability"
    return [
        found.sentence,
        f"{found.n_rows:,} rows · {_rates(found)}",
        "",
        *_aligned([_cells(found, row) for row in found.rows]),
        "",
        f"VECE ({level} interval): mean gap between {spoken} and what happened along the variable; "
        "never below the overall gap",
        "beyond: what is left of it once the overall gap is removed · p: that nothing is left, "
        f"adjusted for {len(found)} variable{'s' * (len(found) > 1)}",
        "▲ over, ▼ under: the largest gap where it surely differs from the overall one",
        *(f"note: {note}" for note in found.notes),
    ]


def p_text(p: float) -> str:
    """Show a p-value.

    >>> p_text(0.0002), p_text(0.25)
    ('p<0.001', 'p=0.250')
    """
    return "p<0.001" if p < 0.001 else f"p={p:.3f}"


def _rates(found: Audit) -> str:
    if found.event == "correct":
        return f"wrong {found.error:.1%} of the time, expected {found.predicted_error:.1%}"
    return f"happened {1 - found.error:.1%} of the time, expected {1 - found.predicted_error:.1%}"


def _cells(found: Audit, row: AuditRow) -> list[str]:
    vece, beyond = row.vece, row.beyond
    return [
        row.variable.replace("\n", " "),
        f"VECE {vece.debiased:.3f} ({vece.low:.3f}–{vece.high:.3f})",
        f"beyond {beyond.debiased:.3f}",
        p_text(row.p_holm),
        row.verdict,
        _where(found, row),
    ]


def _where(found: Audit, row: AuditRow) -> str:
    curve = found[row.variable]
    region = main_region(curve.excess, curve.worst)
    if region is None:
        return ""
    gap = max(region.gap_low, region.gap_high, key=abs)
    side = "▲ over" if gap > 0 else "▼ under"
    label = region.label.replace(" to ", "–").replace("\n", " ")
    return f"{side} {abs(gap):.3f} at {label} ({region.n:,} rows)"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
