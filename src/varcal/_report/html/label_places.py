"""Places for the names of lines: beside their own line, clear of others and of other texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats

#: Width of a character and height of a text, in pixels.
CHARACTER, TEXT = 6.8, 14.0
#: Distances of a text's middle from its line that are tried, in pixels.
DISTANCES = (15.0, 24.0, 36.0)
#: Places along the line that are tried.
TRIED = np.linspace(0.06, 0.94, 23)


@dataclass(frozen=True)
class Box:
    """A text on a plot: its middle and half its size; x in shares of the width, y in pixels."""

    x: float
    y: float
    half_width: float
    half_height: float = TEXT / 2

    def overlaps(self, other: Box) -> bool:
        """Whether two texts overlap."""
        return (
            abs(self.x - other.x) < self.half_width + other.half_width
            and abs(self.y - other.y) < self.half_height + other.half_height
        )


def text_box(text: str, x: float, y: float, width: float) -> Box:
    """Return the box of a text whose middle is at a place on a plot of some width in pixels."""
    return Box(x, y, CHARACTER * len(text) / width / 2)


def place_label(
    text: str,
    own: tuple[Floats, Floats],
    others: Sequence[tuple[Floats, Floats]],
    taken: Sequence[Box],
    *,
    width: float,
    height: float,
) -> Box:
    """Find a place for the name of a line.

    Parameters
    ----------
    text : str
        The name.
    own : (x, y)
        The points of its line, x from 0 to 1, y in pixels from the top.
    others : sequence of (x, y)
        Lines to keep clear of.
    taken : sequence of Box
        Texts to keep clear of.
    width, height : float
        Of the plot, in pixels.
    """
    best, best_cost = text_box(text, 0.5, height / 2, width), np.inf
    for x in TRIED:
        at = float(np.interp(x, *own))
        for distance in (*DISTANCES, *(-one for one in DISTANCES)):
            box = text_box(text, float(x), at + distance, width)
            cost = _cost(box, own, others, taken, height) + abs(distance) / 10
            if cost < best_cost:
                best, best_cost = box, cost
    return best


def _cost(
    box: Box,
    own: tuple[Floats, Floats],
    others: Sequence[tuple[Floats, Floats]],
    taken: Sequence[Box],
    height: float,
) -> float:
    cost = 100.0 * sum(box.overlaps(one) for one in taken)
    if box.x - box.half_width < 0 or box.x + box.half_width > 1:
        cost += 300
    if box.y - box.half_height < 0 or box.y + box.half_height > height:
        cost += 300
    near = distance(box, own)
    cost += 60 * (near < 2)
    for line in others:
        apart = distance(box, line)
        # A name that is nearer to another line than to its own misleads.
        cost += 60 * (apart < 2) + 40 * (apart < near) - min(apart, 60.0) / 12
    return cost


def distance(box: Box, line: tuple[Floats, Floats]) -> float:
    """Return the distance of a text from a line, in pixels; 0 if the line runs through it."""
    at = np.interp(np.linspace(box.x - box.half_width, box.x + box.half_width, 9), *line)
    return float(np.clip(np.abs(at - box.y) - box.half_height, 0, None).min())
