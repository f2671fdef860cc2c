"""Slices: conjunctions of conditions on variables where predictions are most wrong."""
