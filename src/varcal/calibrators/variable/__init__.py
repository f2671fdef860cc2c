"""The variable calibrator: curves, an additive model and trees, each as far as rows go."""
