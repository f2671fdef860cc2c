"""A fitted calibrator over files and lazy rows of any size."""
