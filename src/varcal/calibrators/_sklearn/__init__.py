"""Calibrated classifiers for scikit-learn pipelines."""
