"""Edges that people can read: days, months, years, units and time zones."""

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from varcal._edge_texts import edge_texts
from varcal._input.variables import Variable
from varcal._sums.choose import choose_bins


def seconds(*stamps):
    return [np.datetime64(stamp, "us").astype(np.int64) / 1e6 for stamp in stamps]


@pytest.mark.parametrize(
    ("stamps", "texts"),
    [
        (["2020-01-01", "2021-01-01", "2024-01-01"], ["2020", "2021", "2024"]),
        (["2020-01-01", "2020-03-01"], ["2020-01", "2020-03"]),
        (["2020-01-01", "2020-03-02"], ["2020-01-01", "2020-03-02"]),
        (["2020-01-01T07:12:33", "2020-03-02T18:00:01"], ["2020-01-01", "2020-03-02"]),
        (["2020-01-01T07:12", "2020-01-03"], ["2020-01-01 07:12", "2020-01-03 00:00"]),
        (["2020-01-01T07:12:31", "2020-01-01T09:00:07"], ["2020-01-01 07:12", "2020-01-01 09:00"]),
        (
            ["2020-01-01T07:12:31", "2020-01-01T07:12:40"],
            ["2020-01-01 07:12:31", "2020-01-01 07:12:40"],
        ),
        (["1969-12-31T23:59", "1970-01-01T00:01"], ["1969-12-31 23:59", "1970-01-01 00:01"]),
    ],
)
def test_instants_are_as_short_as_tells_them_apart(stamps, texts):
    assert edge_texts(seconds(*stamps), datetime=True) == texts


def test_time_zones_stay_and_are_shown():
    local = pd.date_range("2024-07-01", periods=90, freq="D", tz="Europe/Berlin")
    bins = choose_bins([Variable.of(pd.Series(local), "day")], n_bins=20)
    assert bins.labels()[0] == "[2024-07-01 00:00, 2024-07-05 10:48] (Europe/Berlin)"
    p = np.linspace(0.1, 0.9, 900)
    y = np.arange(900) % 2
    day = pd.Series(np.tile(local, 10))
    curve = vc.curve(y, p, day)
    assert curve.zone == "Europe/Berlin" and curve.worst_label.endswith("(Europe/Berlin)")
