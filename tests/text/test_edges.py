"""Edges that people can read: days, months, years, units and time zones."""

import numpy as np
import pytest

from varcal._edge_texts import edge_texts


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
