"""Calibrators of the score alone."""
