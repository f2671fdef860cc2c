"""Blocks of rows that are correlated, and how much of each correction is applied."""
