"""What a reader of a monitor should know about how its evidence is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from varcal._monitor.evidence import SUMS, UNITS

if TYPE_CHECKING:
    from varcal._monitor.monitor import Monitor


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
