"""Axes of charts: round ticks for numbers and dates, places in percent of the plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varcal._text.edges import show_number
from varcal._text.numbers import number_text

_DAY = 86_400
# Steps of a date axis: length in seconds, numpy unit, number of units.
_STEPS = [
    *((k, "s", k) for k in (1, 5, 15, 30)),
    *((60 * k, "m", k) for k in (1, 5, 15, 30)),
    *((3600 * k, "h", k) for k in (1, 3, 6, 12)),
    *((_DAY * k, "D", k) for k in (1, 2, 7, 14)),
    *((30 * _DAY * k, "M", k) for k in (1, 3, 6)),
    *((365 * _DAY * k, "Y", k) for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
]

#: Units of durations, the longest first, and their lengths in seconds.
_DURATIONS = (("days", _DAY), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("µs", 1e-6))


@dataclass(frozen=True)
class Axis:
    """A range of values and its ticks, each with its text."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """Return where a value is, from 0 to 1; values outside are put at the ends."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def places(self, values: Sequence[float]) -> list[float]:
        """Return where each of some values is."""
        found = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.clip(found, 0.0, 1.0).tolist()

    def percent(self, value: float) -> str:
        """Return the place as an attribute, in percent of the plot."""
        return f"{100 * self.place(value):.2f}%"

    def anchor(self, value: float) -> str:
        """Return the class of a text at a place: at the ends of the plot it does not stick out."""
        place = self.place(value)
        return "" if place < 0.04 else "end" if place > 0.96 else "middle"


def number_axis(low: float, high: float) -> Axis:
    """Make an axis over a range of numbers.

    >>> [text for _, text in number_axis(17, 74).ticks]
    ['20', '30', '40', '50', '60', '70']
    >>> [text for _, text in number_axis(0, 100_000).ticks]
    ['0', '50,000', '100,000']
    """
    low, high = _apart(low, high)
    # On a phone there is room for only a few long texts.
    for many in (8, 4, 3):
        ticks = [(at, number_text(at)) for at in round_steps(low, high, many)]
        if sum(len(text) + 1 for _, text in ticks) <= 30:
            break
    return Axis(low, high, tuple(ticks))


def date_axis(low: float, high: float, many: int = 5) -> Axis:
    """Make an axis over seconds since 1970.

    >>> [text for _, text in date_axis(0, 3 * 365 * 86_400).ticks]
    ['1970', '1971', '1972']
    """
    low, high = _apart(low, high)
    wanted = (high - low) / many
    _, unit, k = next((step for step in _STEPS if step[0] >= wanted), _STEPS[-1])
    first = int(np.datetime64(math.floor(low), "s").astype(f"M8[{unit}]").astype(np.int64))
    last = int(np.datetime64(math.ceil(high), "s").astype(f"M8[{unit}]").astype(np.int64))
    ticks = []
    for number in range(first - first % k, last + 1, k):
        stamp = np.array(number).astype(f"M8[{unit}]")
        at = float(stamp.astype("M8[s]").astype(np.int64))
        if low <= at <= high:
            ticks.append((at, str(stamp).replace("T", " ")))
    return Axis(low, high, tuple(ticks))


def duration_axis(low: float, high: float) -> Axis:
    """Make an axis over seconds, in the unit that suits them.

    >>> [text for _, text in duration_axis(0, 10 * 86_400).ticks]
    ['0 days', '2 days', '4 days', '6 days', '8 days', '10 days']
    """
    low, high = _apart(low, high)
    unit, size = next((one for one in _DURATIONS if high >= 2 * one[1]), _DURATIONS[-1])
    ticks = round_steps(low / size, high / size, 5)
    return Axis(low, high, tuple((at * size, f"{number_text(at)} {unit}") for at in ticks))


def share_axis(high: float, low: float = 0.0, many: int = 5) -> Axis:
    """Make an axis of shares in percent, from a round value to a round value, at most 100%.

    >>> axis = share_axis(0.43)
    >>> axis.high, [text for _, text in axis.ticks]
    (0.5, ['0%', '10%', '20%', '30%', '40%', '50%'])
    """
    step = _round_step(max(high - low, 0.01), many)
    top = min(step * math.ceil(high / step - 1e-9), 1.0)
    bottom = max(step * math.floor(low / step + 1e-9), 0.0)
    ticks = round_steps(bottom, top, many)
    return Axis(bottom, top, tuple((at, f"{show_number(round(100 * at, 6))}%") for at in ticks))


def points_axis(high: float, low: float = 0.0, many: int = 5) -> Axis:
    """Make an axis of errors in points, from a round value to a round value.

    >>> [text for _, text in points_axis(0.17).ticks]
    ['0', '5', '10', '15', '20']
    >>> [text for _, text in points_axis(0.05, -0.05, many=2).ticks]
    ['−5', '0', '+5']
    """
    step = _round_step(max(high - low, 0.001), many)
    top, bottom = step * math.ceil(high / step - 1e-9), step * math.floor(low / step + 1e-9)
    texts = []
    for at in round_steps(bottom, top, many):
        text = number_text(round(100 * at, 6))
        texts.append((at, f"+{text}" if low < 0 < at else text))
    return Axis(bottom, top, tuple(texts))


def round_steps(low: float, high: float, many: int) -> list[float]:
    """Return about as many round numbers within a range as asked for."""
    step = _round_step(high - low, many)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _apart(low: float, high: float) -> tuple[float, float]:
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    reach = max(abs(low) * 1e-3, 0.5)
    return low - reach, high + reach


def _round_step(span: float, many: int) -> float:
    rough = span / many
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(k * scale for k in (1, 2, 5, 10) if k * scale >= rough * 0.999)
