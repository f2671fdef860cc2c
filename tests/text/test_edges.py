"""Edges that people can read: days, months, years, units and time zones."""

import re

import numpy as np
import pytest

import varcal as vc


@pytest.mark.parametrize(
    ("stamps", "texts"),
    [
        # A date keeps its day: "up to 2020-03" would read as if it included March.
        ("2020-01-01 2021-01-01", "2020-01-01, 2021-01-01"),
        ("2020-01-01T07:12:33 2020-03-02T18:00:01", "2020-01-01, 2020-03-02"),
        ("2020-01-01T07:12 2020-01-03", "2020-01-01 07:12, 2020-01-03 00:00"),
        ("2020-01-01T07:12:31 2020-01-01T09:00:07", "2020-01-01 07:12, 2020-01-01 09:00"),
        ("2020-01-01T07:12:31 2020-01-01T07:12:40", "2020-01-01 07:12:31, 2020-01-01 07:12:40"),
        ("1969-12-31T23:59 1970-01-01T00:01", "1969-12-31 23:59, 1970-01-01 00:01"),
    ],
)
def test_instants_are_as_short_as_tells_them_apart(stamps, texts):
    v = np.array(stamps.split(), "M8[us]")
    assert vc.bin_table([0, 1], [0.4, 0.5], v, n_bins=1).columns["bin"] == [f"[{texts}]"]


@pytest.mark.parametrize("unit", [86_400.0, 3600.0, 0.001])
def test_curves_along_dates_are_labelled_as_exactly_as_their_points_differ(unit):
    rng = np.random.default_rng(0)
    v = (np.sort(rng.integers(0, 400 * unit * 1e6, 500)) + 1_704_067_200_000_000).astype("M8[us]")
    p = rng.random(500)
    found = vc.curve((rng.random(500) < p).astype(int), p, v)
    ends = re.search(r"from (.*) to (.*);", found.search_note).groups()
    assert not any("." in text for text in (*ends, found.worst_label)) or unit < 1
    for text, end in zip(ends, found.searched, strict=True):
        assert abs(np.datetime64(text, "us").astype(float) / 1e6 - end) < np.ptp(found.x) / 500
