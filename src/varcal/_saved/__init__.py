"""Saved results of every kind: their file format, its limits, and the check of what was read."""
