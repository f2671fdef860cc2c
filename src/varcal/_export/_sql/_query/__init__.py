"""The query of a calibrator, from its steps to its text."""
