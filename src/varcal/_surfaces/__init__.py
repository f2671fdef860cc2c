"""Gaps over two variables, and how much of the gap any variables predict together."""
