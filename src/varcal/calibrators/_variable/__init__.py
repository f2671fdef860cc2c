"""The variable calibrator: an additive model of the score and all variables."""
