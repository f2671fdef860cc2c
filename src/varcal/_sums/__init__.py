"""Bins, and the mergeable sums of rows over them."""
