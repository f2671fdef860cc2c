"""Penalized additive models whose penalties are learned from the data (REML)."""
