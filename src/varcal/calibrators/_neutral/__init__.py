"""The neutral form of a fitted calibrator: arrays and steps, from which every target is made."""
