"""Tests, debiased values and intervals from sums over bins."""
