"""Audits of many variables, comparisons of sets of probabilities, and their verdicts."""
