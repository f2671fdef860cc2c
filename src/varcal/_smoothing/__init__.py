"""Local polynomials on cells, with simultaneous bands."""
