"""Calibration errors, curves and tables along one variable."""
