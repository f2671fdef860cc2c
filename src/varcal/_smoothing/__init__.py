"""Smooth curves from sums over cells: local polynomials and simultaneous bands."""
