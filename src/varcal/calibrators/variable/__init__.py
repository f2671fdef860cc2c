"""The variable calibrator: score curve, additive model and trees, each as far as held-out rows go."""
