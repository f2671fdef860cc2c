"""Fitted calibrators as SQL."""
