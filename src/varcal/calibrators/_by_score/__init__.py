"""Calibrators that look at the score alone."""
