"""What the picture of slices shows, the same for every backend."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from varcal._slices.slices_result import Slice, Slices
from varcal._text.gaps import CONFIDENCE, marked_side
from varcal._text.numbers import count, interval, level_text, p_equation, percent, points
from varcal.plotting._colours import OVER, UNDER

#: Characters in a line of a rule, and its lines at most.
WIDTH, LINES = 38, 3


@dataclass(frozen=True)
class SliceLine:
    """One slice as it is drawn.

    Attributes
    ----------
    name : str
        Its rule on a few lines.
    says, happens : float
        Mean score and hit rate.
    low, high : float
        Where the hit rate would lie by the interval of the gap.
    size, rows : str
        The gap with its interval, and the rows, as text.
    colour : str
        Colour of the direction.
    """

    name: str
    says: float
    happens: float
    low: float
    high: float
    size: str
    rows: str
    colour: str


@dataclass(frozen=True)
class SlicesView:
    """Slices as they are drawn, the clearest at the top.

    Attributes
    ----------
    lines : tuple of SliceLine
        The slices.
    title, note, axis : str
        Texts.
    says, happens : str
        The names of the two dots.
    """

    lines: tuple[SliceLine, ...]
    title: str
    note: str
    axis: str
    says: str
    happens: str

    @classmethod
    def of(cls, found: Slices) -> SlicesView:
        """Arrange slices for drawing."""
        claims = {one.claim for one in found.slices}
        several = len(claims) > 1
        sure = claims == {CONFIDENCE}
        title = f"{count(len(found), 'slice')} where the model is most wrong"
        if not found.slices:
            title = "No slice is clearly off"
        searched = f"{count(found.n, 'row')}, {count(found.n_variables, 'variable')}"
        return cls(
            lines=tuple(_line(one, several) for one in found.slices),
            title=f"{title} ({p_equation(found.p_value)})",
            note=(
                f"{searched}; whiskers: {level_text(found.level)} intervals that allow for the "
                "search"
            ),
            axis="share of rows right" if sure else "share of rows with the outcome",
            says="model says",
            happens="is right" if sure else "happens",
        )


def _line(one: Slice, several: bool) -> SliceLine:
    rule = f"{one.rule} [{one.claim}]" if several else one.rule
    lines = textwrap.wrap(rule, WIDTH, break_long_words=True) or [rule]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"{lines[LINES - 1][: WIDTH - 1]}…"]
    low, high = sorted(abs(end) for end in (one.low, one.high))
    ends = interval(low, high) if one.low * one.high > 0 else interval(one.low, one.high)
    return SliceLine(
        name="\n".join(lines),
        says=one.score,
        happens=one.rate,
        low=max(one.score - one.high, 0.0),
        high=min(one.score - one.low, 1.0),
        size=f"{marked_side(one.gap, one.claim)} by {points(abs(one.gap))} ({ends})",
        rows=f"{count(one.rows, 'row')}, {percent(one.share)}",
        colour=OVER if one.gap > 0 else UNDER,
    )
