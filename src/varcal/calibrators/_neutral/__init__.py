"""The neutral form of a fitted calibrator: arrays and steps, which every target can be made from."""
