"""Applying a fitted calibrator to files and lazy rows of any size."""
