"""The figures of a comparison as text, each in its own unit."""

from __future__ import annotations

from varcal._text.numbers import decimals, percent, points, signed, with_sign

#: The unit of a metric's values; differences of all of these are in points.
UNITS = {
    **dict.fromkeys(("uneven", "by score", "average", "VECE", "ECE"), "points"),
    "accuracy": "%",
}
_DIGITS = 4


def metric_text(metric: str, value: float) -> str:
    """Write the value of a metric: in points, in percent, or with four decimals.

    >>> metric_text("VECE", 0.0904), metric_text("accuracy", 0.7886)
    ('9.0', '78.9%')
    >>> metric_text("log-loss", 0.50291)
    '0.5029'
    """
    if UNITS.get(metric) == "points":
        return points(value)
    return percent(value) if metric in UNITS else decimals(value, _DIGITS)


def metric_interval(metric: str, low: float, high: float) -> str:
    """Write the ends of an interval of a metric or of a difference.

    >>> metric_interval("accuracy", 0.781, 0.796)
    '78.1 to 79.6'
    """
    ends = [points(end) if metric in UNITS else decimals(end, _DIGITS) for end in (low, high)]
    return " to ".join(ends)


def metric_change(metric: str, value: float) -> str:
    """Write a difference of two values of a metric, with its sign.

    >>> metric_change("VECE", -0.116), metric_change("log-loss", 0.00123)
    ('−11.6', '+0.0012')
    """
    return signed(value) if metric in UNITS else with_sign(decimals(value, _DIGITS))
