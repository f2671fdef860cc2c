"""Calibration errors, curves and tables of one variable."""
