"""Calibration error in bins, computed without varcal."""

import numpy as np


def binned_error(score, hit, over, n_bins):
    """Mean absolute gap over bins of equal support, by sorting alone."""
    order = np.argsort(over, kind="stable")
    parts = np.array_split(order, n_bins)
    return sum(abs((score[part] - hit[part]).sum()) for part in parts) / len(hit)
