"""The colours of all plots: safe for the colour-blind, and never the only sign."""

from __future__ import annotations

ACTUAL = "#0072B2"
PREDICTED = "#D55E00"
PREDICTED_TEXT = "#B84A00"
OVER = "#B35806"
UNDER = "#542788"
DENSITY = "#C3C9D1"
INK = "#1B1F24"
FAINT = "#6B7280"
GROUND = "#FFFFFF"
ALARM = "#A4262C"

#: Cells of a surface with too few rows.
FEW = "#ECEEF1"

SIDES = {"over": OVER, "under": UNDER}


def shade(strength: float) -> str:
    """Return the colour of a gap: white at 0, orange towards 1, violet towards −1.

    >>> shade(0.0), shade(1.0), shade(-1.0)
    ('#ffffff', '#b35806', '#542788')
    """
    end = OVER if strength > 0 else UNDER
    full = [int(end[k : k + 2], 16) for k in (1, 3, 5)]
    mixed = [255 + min(abs(strength), 1.0) * (part - 255) for part in full]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)
