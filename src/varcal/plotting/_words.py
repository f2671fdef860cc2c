"""The texts of plots, the same for every backend."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats
from varcal._measures.curve import Curve
from varcal._measures.estimate import Estimate
from varcal._measures.reliability import Reliability
from varcal._text.numbers import p_equation, points, points_with_interval
from varcal._text.sentences import short as short


@dataclass(frozen=True)
class Sides:
    """The series of a curve that are drawn: errors, or rates for event "positive"."""

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
        "actual rate",
        1 - curve.error,
        1 - curve.error_high,
        1 - curve.error_low,
        1 - curve.predicted_error,
    )


def worst_of(curve: Curve, most: int = 18) -> str:
    """Return v* as text; dates that span more than a few days have no time of day."""
    text = curve.worst_label
    if curve.kind == "datetime" and np.ptp(curve.histogram.edges) > 3 * 86_400:
        text = text.split(" ")[0]
    return short(text, most)


def curve_title(curve: Curve) -> str:
    """Say how large the error along a variable is, and where it is worst."""
    size = points_with_interval(curve.vece, curve.vece_low, curve.vece_high)
    return f"VECE {size}, worst {points(curve.vce)} at {worst_of(curve)}"


def curve_note(curve: Curve) -> str:
    """Say which rows the plot of a curve shows."""
    parts = [f"n = {curve.n_rows:,}"]
    if curve.histogram.trimmed:
        parts.insert(0, "1st–99th percentile")
    if curve.n_missing:
        parts.append(f"{curve.n_missing:,} missing (gap {points(curve.missing_gap)} points)")
    return ", ".join(parts)


def estimate_title(estimate: Estimate) -> str:
    """Return an estimate with its interval and p-value as a title."""
    along = "" if estimate.metric == "ECE" else f" along {short(estimate.variable, 20)}"
    size = points_with_interval(estimate.debiased, estimate.low, estimate.high)
    return f"{estimate.metric}{along}: {size}, {p_equation(estimate.p_value)}"


def escape(name: str) -> str:
    """Escape a name for plotly, which reads tags, LaTeX and templates in texts.

    >>> escape("<b>$x$ %{y}")
    '&lt;b&gt;&#36;x&#36; %&#123;y}'
    """
    return html.escape(name).replace("$", "&#36;").replace("{", "&#123;")


def reliability_names(found: Reliability) -> tuple[str, str]:
    """Name the axes of a reliability diagram."""
    if found.event == "correct":
        return "confidence", "share right"
    return "predicted probability", "actual rate"


def panel_title(name: str, curve: Curve) -> str:
    """Return the title of a panel: its name, VECE and the worst gap, in points."""
    size = f"{points(curve.vece)} ({points(curve.vece_low)}–{points(curve.vece_high)})"
    return f"{name}\nVECE {size}\nworst {points(curve.vce)} at {worst_of(curve)}"
