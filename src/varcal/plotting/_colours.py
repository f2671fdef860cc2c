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

SIDES = {"over": OVER, "under": UNDER}
