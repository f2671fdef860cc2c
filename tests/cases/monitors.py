"""Rows with a planted change, bins for them, and a comparison of the states of monitors."""

import numpy as np

import varcal as vc


def make_rows(n=1000, shift=0.0, seed=0, **more):
    """Return calibrated predictions, except for people from 40 to 49."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n)
    p = rng.beta(1, 2, n)
    truth = np.clip(p + shift * ((age >= 40) & (age < 50)), 0, 1)
    return {
        "y": (rng.random(n) < truth).astype(int),
        "p": p,
        "age": age,
        "job": rng.choice(["a", "b", "c"], n),
    } | {name: make(rng, n) for name, make in more.items()}


BINS = {"age": [20, 30, 40, 50, 60, 70]}


def make_bins(limit=0.02, **options):
    rows = make_rows(3000, seed=99)
    return vc.make_bins("y", "p", data=rows, bins=BINS, monitor=limit, **options)


def state_of(monitor):
    """Return the numbers of a state."""
    detector, running = monitor._detector, monitor._running
    return [detector.spent, detector.flow, detector.run, detector.window, running.sums]


def assert_same_state(a, b):
    for one, other in zip(state_of(a), state_of(b), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert (a._detector.start == b._detector.start).all()
