"""Figures before and after as text: each in its unit, differences with their sign."""

from __future__ import annotations

from varcal.report.words import MINUS, percent, points, signed

UNITS = {"VECE": "points", "ECE": "points", "accuracy": "%"}


def size(metric: str, value: float) -> str:
    """Write a figure: points, percent, or four decimals.

    >>> size("VECE", 0.0904), size("accuracy", 0.7886), size("log-loss", 0.50291)
    ('9.0', '78.9%', '0.5029')
    """
    if UNITS.get(metric) == "points":
        return points(value)
    return percent(value) if metric in UNITS else _decimals(value)


def sizes(metric: str, low: float, high: float) -> str:
    """Write the ends of an interval of a figure.

    >>> sizes("accuracy", 0.781, 0.796)
    '78.1 to 79.6'
    """
    write = points if metric in UNITS else _decimals
    return f"{write(low)} to {write(high)}"


def change(metric: str, value: float) -> str:
    """Write a difference with its sign.

    >>> change("VECE", -0.116), change("log-loss", 0.00123), change("AUC", -0.00001)
    ('−11.6', '+0.0012', '0.0000')
    """
    if metric in UNITS:
        return signed(value)
    text = _decimals(value)
    flat = text.startswith(MINUS) or text in ("–", "0.0000")
    return text if flat else f"+{text}"


def _decimals(value: float) -> str:
    if value != value:
        return "–"
    text = f"{value:.4f}"
    return "0.0000" if text == "-0.0000" else text.replace("-", MINUS)
