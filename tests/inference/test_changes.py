"""Changes between sets of probabilities and between audits: small versions of the benchmark."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw
from varcal._inference.measured import Measured
from varcal._inference.multiplicity import p_of_interval, rank_range
from varcal._inference.paired import change_law, paired_interval

number = st.floats(-1, 1, allow_nan=False)


@given(number, st.floats(1e-6, 1), st.floats(0.5, 0.999), st.sampled_from([math.inf, 3.0, 20.0]))
def test_a_p_value_agrees_with_its_interval(low, width, level, df):
    high = low + width
    p = p_of_interval(low, high, level, df)
    if min(abs(low), abs(high)) > 1e-9:
        assert (p < 1 - level) == (low > 0 or high < 0)


def laws(rng, n, tilts, bins=10):
    """Return the laws of two sets whose gaps have the given tilts, and that of their changes."""
    v, q = rng.random(n), rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < q
    sets = [q + tilt * (2 * v - 1) for tilt in tilts]
    index = (bins * v).astype(int)
    made = [GapLaw.from_cells(ErrorSums.from_rows(index, s, y, n_bins=bins)) for s in sets]
    return *made, change_law(index, sets[1] - sets[0], None, bins)


@pytest.mark.parametrize("tilts", [(0.0, 0.02), (0.02, 0.0), (0.1, 0.05), (0.04, -0.04)])
def test_the_interval_of_a_change_of_vece_covers_and_has_width(tilts):
    """With a calibrated first set, the jackknife covered 63 %, with width 0 in a fifth."""
    rng = np.random.default_rng(15)
    truth = (abs(tilts[1]) - abs(tilts[0])) / 2
    ends = np.array([paired_interval(*laws(rng, 1_000, tilts), 0.95) for _ in range(80)])
    assert np.all(ends[:, 1] - ends[:, 0] > 1e-4)
    assert np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) >= 0.87  # 3.3 standard errors


def test_sets_that_are_the_same_have_no_change():
    rng = np.random.default_rng(3)
    assert paired_interval(*laws(rng, 500, (0.03, 0.03)), 0.95) == (0.0, 0.0)


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from([60, 400]),
    st.booleans(),
    st.sampled_from([0.8, 0.95]),
)
def test_every_change_of_a_comparison_agrees_with_its_p_value(seed, n, grouped, level):
    rng = np.random.default_rng(seed)
    v, q = rng.random(n), rng.uniform(0.05, 0.95, n)
    y = rng.random(n) < q
    y[:2] = [True, False]
    sets = {
        "a": np.clip(q + rng.normal(0, 0.1) * (v - 0.5), 0.01, 0.99),
        "b": np.clip(q + rng.normal(0, 0.3) * v, 0.01, 0.99),
        "c": rng.uniform(0.01, 0.99, n),
    }
    groups = rng.integers(0, 12, n) if grouped else None
    found = vc.compare(y, sets, {"v": v}, groups=groups, level=level)
    for row in found.rows:
        if row.method == "a":
            assert row.verdict == "baseline" and math.isnan(row.p_value)
            continue
        excludes = row.difference_low > 0 or row.difference_high < 0
        assert excludes == (row.p_value < 1 - level)
        assert row.p_value <= row.p_holm
        assert row.difference_low <= row.difference <= row.difference_high
        if row.verdict != "no clear change":
            assert row.p_holm < 1 - level


def measured(debiased, low, high):
    return Measured(debiased, debiased, low, high, math.nan, 0.0, 0.0)


def test_ranks_are_told_apart_by_differences():
    """Intervals that overlap can still tell two variables apart."""
    best, worst = rank_range([0.10, 0.07, 0.0], [0.085, 0.055, 0.0], [0.115, 0.088, 0.02])
    assert best.tolist() == [1, 2, 3] and worst.tolist() == [1, 2, 3]
    same = rank_range([0.1, 0.1], [0.1, 0.1], [0.1, 0.1])
    assert [one.tolist() for one in same] == [[1, 1], [2, 2]]
    assert [one.tolist() for one in rank_range([], [], [])] == [[], []]
