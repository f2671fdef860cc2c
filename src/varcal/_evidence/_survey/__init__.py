"""Passes over rows that are not in memory, before their sums: what bins need, and samples."""
