"""Rows with a planted slice."""

import numpy as np


def planted(n=3000, seed=0, gap=0.25):
    """Return rows whose risk is too high for women above 60, and which these are."""
    rng = np.random.default_rng(seed)
    X = {
        "age": rng.integers(20, 90, n).astype(float),
        "sex": rng.choice(["f", "m"], n),
        "x": rng.normal(size=n),
        "kind": rng.choice(["a", "b", "c", "d"], n),
    }
    p = rng.uniform(0.3, 0.9, n)
    wrong = (X["age"] > 60) & (X["sex"] == "f")
    y = (rng.random(n) < p - gap * wrong).astype(int)
    return y, p, X, wrong
