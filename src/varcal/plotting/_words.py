"""The words and numbers of a picture, the same for every backend."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._input.events import gap_side
from varcal._measures.curve import Curve
from varcal._measures.estimate import Estimate
from varcal._measures.reliability import Reliability

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sides:
    """What is drawn of a curve: error against predicted error, or rate against predicted rate."""

    title: str
    actual: Floats
    low: Floats
    high: Floats
    predicted: Floats


def sides(curve: Curve) -> Sides:
    """Return errors where the claim is "correct", and rates where it is "positive"."""
    if curve.event == "correct":
        return Sides("error", curve.error, curve.error_low, curve.error_high, curve.predicted_error)
    return Sides(
        "positive rate",
        1 - curve.error,
        1 - curve.error_high,
        1 - curve.error_low,
        1 - curve.predicted_error,
    )


def mark_of(direction: str, event: str) -> str:
    """Mark a sure gap by a triangle and a word.

    >>> mark_of("over", "correct"), mark_of("under", "positive")
    ('▲ over', '▼ too low')
    """
    triangle, gap = ("▲", 1) if direction == "over" else ("▼", -1)
    return f"{triangle} {gap_side(gap, event, short=True)}"


def points(value: float) -> str:
    """Show a difference of shares in percentage points.

    >>> points(0.2064), points(-0.0731), points(-0.0001)
    ('20.6', '−7.3', '0.0')
    """
    text = f"{100 * value:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")


def spread(value: float, low: float, high: float) -> str:
    """Show points with their interval.

    >>> spread(0.206, 0.2, 0.213)
    '20.6 points (20.0–21.3)'
    """
    return f"{points(value)} points ({points(low)}–{points(high)})"


def worst_of(curve: Curve, most: int = 18) -> str:
    """Name v*, dates without the hour where the rows span more than a few days."""
    text = curve.worst_label
    if curve.kind == "datetime" and np.ptp(curve.histogram.edges) > 3 * 86_400:
        text = text.split("T")[0]
    return short(text, most)


def curve_title(curve: Curve) -> str:
    """Say how large the error along a variable is, and where it is worst."""
    return (
        f"VECE {points(curve.vece)} points ({points(curve.vece_low)}–{points(curve.vece_high)}), "
        f"worst {points(curve.vce)} at {worst_of(curve)}"
    )


def curve_note(curve: Curve) -> str:
    """Say which rows a picture of a curve shows."""
    parts = [f"n = {curve.n_rows:,}"]
    if curve.histogram.trimmed:
        parts.insert(0, "1st–99th percentile")
    if curve.n_missing:
        parts.append(f"{curve.n_missing:,} missing (gap {points(curve.missing_gap)} points)")
    return ", ".join(parts)


def estimate_title(estimate: Estimate) -> str:
    """Say what an estimate came to."""
    p = "p < 0.001" if estimate.p_value < 0.001 else f"p = {estimate.p_value:.3f}"
    along = "" if estimate.metric == "ECE" else f" along {short(estimate.variable, 20)}"
    size = spread(estimate.debiased, estimate.low, estimate.high)
    return f"{estimate.metric}{along}: {size}, {p}"


def short(name: str, most: int = 28) -> str:
    """Cap a name, and keep it on one line.

    >>> short("a very long name indeed", 12)
    'a very long…'
    """
    flat = " ".join(name.split()) or "(blank)"
    return flat if len(flat) <= most else f"{flat[: most - 1].rstrip()}…"


def escape(name: str) -> str:
    """Make a name safe for plotly, which reads tags, LaTeX and templates in texts.

    >>> escape("<b>$x$ %{y}")
    '&lt;b&gt;&#36;x&#36; %&#123;y}'
    """
    return html.escape(name).replace("$", "&#36;").replace("{", "&#123;")


def reliability_names(found: Reliability) -> tuple[str, str]:
    """Name the axes of a reliability diagram."""
    if found.event == "correct":
        return "confidence", "accuracy"
    return "predicted probability", "positive rate"


def panel_title(name: str, curve: Curve) -> str:
    """Name a panel and say what its curve came to, in points."""
    size = f"{points(curve.vece)} ({points(curve.vece_low)}–{points(curve.vece_high)})"
    return f"{name}\nVECE {size}\nworst {points(curve.vce)} at {worst_of(curve)}"
