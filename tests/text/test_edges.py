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


@pytest.mark.parametrize(
    ("edges", "texts"),
    [
        ([7200, 18_000], ["2 h", "5 h"]),
        ([0, 259_200, 604_800], ["0 days", "3 days", "7 days"]),
        ([86_400, 5 * 86_400], ["1 day", "5 days"]),
        ([0.002, 0.0155], ["2 ms", "15.5 ms"]),
        ([1, 60, 3600, 30 * 86_400], ["1 s", "1 min", "1 h", "30 days"]),
        ([-7200, 3600], ["-2 h", "1 h"]),
        ([100.0001, 100.0002], ["1.666668 min", "1.66667 min"]),
    ],
)
def test_durations_have_units(edges, texts):
    assert edge_texts(edges, duration=True) == texts


def test_time_zones_stay_and_are_shown():
    local = pd.date_range("2024-07-01", periods=90, freq="D", tz="Europe/Berlin")
    bins = choose_bins([Variable.of(pd.Series(local), "day")], n_bins=20)
    assert bins.labels()[0] == "[2024-07-01 00:00, 2024-07-05 10:48] (Europe/Berlin)"
    p = np.linspace(0.1, 0.9, 900)
    y = np.arange(900) % 2
    day = pd.Series(np.tile(local, 10))
    curve = vc.curve(y, p, day)
    assert curve.zone == "Europe/Berlin" and curve.worst_label.endswith("(Europe/Berlin)")


def test_durations_go_through_an_audit():
    rng = np.random.default_rng(0)
    wait = pd.Series(pd.to_timedelta(rng.uniform(1, 9, 4000), unit="h"))
    p = rng.uniform(0.2, 0.8, 4000)
    y = rng.random(4000) < np.clip(p - 0.2 * (wait > pd.Timedelta("4h")), 0, 1)
    found = vc.audit(y, p, {"wait": wait})
    assert found.row("wait").kind == "duration"
    texts = [found.row("wait").place.text, *found.row("wait").table.columns["bin"]]
    assert all(" h" in text for text in texts), texts
