"""Tests, debiased values, intervals and power, computed from sums over bins."""
