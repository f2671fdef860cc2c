"""Calibrators as JSON files."""
