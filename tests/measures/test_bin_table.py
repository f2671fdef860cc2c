import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import varcal as vc
from varcal.exceptions import InputError, MissingDependencyError


def test_columns_add_up_to_the_metric(make_frame, rng):
    n = 500
    s = rng.random(n)
    data = make_frame(
        {"y": (rng.random(n) < s).astype(int), "p": s, "age": rng.integers(18, 80, n)}
    )
    table = vc.bin_table("y", "p", "age", data=data)
    columns = table.columns
    assert sum(columns["n"]) == table.n_rows == n
    assert np.dot(columns["share"], np.abs(columns["gap"])) == pytest.approx(
        vc.vece("y", "p", "age", data=data)
    )
    assert columns["low"][1:] == columns["high"][:-1]
    np.testing.assert_allclose(
        np.subtract(columns["predicted"], columns["observed"]), columns["gap"]
    )
    assert all(
        a < g < b
        for a, g, b in zip(columns["gap_low"], columns["gap"], columns["gap_high"], strict=True)
    )
    frame = table.to_frame()
    assert isinstance(frame, pd.DataFrame if isinstance(data, dict) else type(data))
    assert len(table) == 10


def test_of_the_score_itself():
    table = vc.bin_table([1, 0, 1, 1], [0.9, 0.6, 0.7, 0.8], n_bins=2, event="positive")
    assert table.variable == "confidence"
    assert table.columns["bin"] == ["[0.6, 0.75]", "(0.75, 0.9]"]


def test_classwise_joint_missing_and_empty_bins():
    y, p = [0, 1, 2, 0], [[0.6, 0.2, 0.2]] * 4
    table = vc.bin_table(
        y, p, {"a": ["x", "x", "z", "z"], "b": [1.0, 3.0, np.nan, 2.0]}, event="classwise", n_bins=2
    )
    assert table.columns["class"] == [0] * 6 + [1] * 6 + [2] * 6
    assert 0 in table.columns["n"] and table.columns["bin"][2] == "x × missing"
    assert set(table.columns["a"]) == {"x", "z"}
    json.dumps(table.to_dict(), allow_nan=False)
    assert "6 empty bins not shown" in repr(table)


@pytest.mark.parametrize("name", ["n", "gap", "bin", "class", "share"])
def test_joint_variables_do_not_hide_a_column_of_the_table(name):
    y, p = [0, 1, 1, 0], [0.1, 0.8, 0.7, 0.4]
    with pytest.raises(InputError, match=f"variable '{name}' has the name of a column") as caught:
        vc.bin_table(y, p, {"x": [1, 2, 3, 4], name: list("abab")}, event="classwise")
    assert caught.value.hint == "rename the variable"
    assert vc.bin_table(y, p, {name: list("abab")}).columns["n"] == [2, 2]


def test_odd_values_of_the_variable():
    y, p = [0, 1, 1], [0.1, 0.8, 0.7]
    absent = vc.bin_table(y, p, [np.nan] * 3)
    assert absent.columns["bin"] == ["missing"] and absent.columns["n"] == [3]
    assert np.isnan(absent.columns["low"]).all()
    uneven = vc.bin_table(y, p, [-np.inf, 20.0, np.inf], bins=[18, 25])
    assert uneven.columns["n"] == [1, 1, 1] and uneven.columns["low"][0] == -np.inf
    assert uneven.to_dict()["columns"]["high"] == [18.0, 25.0, None]


def test_dropped_rows_are_counted():
    table = vc.bin_table([1, None, 0], [0.9, 0.6, 0.7], [1, 2, np.nan], unlabelled="drop")
    assert table.n_dropped == 1 and table.to_dict()["n_dropped"] == 1
    assert "1 dropped without outcome" in repr(table)
    assert np.isnan(table.columns["low"][-1])


def test_intervals_widen_with_the_level_and_narrow_with_n(rng):
    def width(n, level):
        s = np.full(n, 0.7)
        columns = vc.bin_table(rng.random(n) < 0.7, s, np.arange(n), level=level).columns
        return np.mean(np.subtract(columns["gap_high"], columns["gap_low"]))

    assert width(1000, 0.8) < width(1000, 0.99)
    assert width(4000, 0.95) == pytest.approx(width(1000, 0.95) / 2, rel=0.1)
    with pytest.raises(InputError, match="level must lie between 0 and 1; got 95"):
        vc.bin_table([0, 1], [0.1, 0.2], [1, 2], level=95)
    for level in ("a", None, np.array([0.9, 0.95])):
        with pytest.raises(InputError, match="level must lie between 0 and 1"):
            vc.bin_table([0, 1], [0.1, 0.2], [1, 2], level=level)


def test_frames_need_their_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    with pytest.raises(MissingDependencyError, match="pip install pandas"):
        vc.bin_table([0, 1], [0.1, 0.2], [1, 2]).to_frame()


def test_frame_types():
    data = pl.DataFrame({"y": [0, 1], "p": [0.2, 0.7], "v": [1, 2]})
    assert isinstance(vc.bin_table("y", "p", "v", data=data).to_frame(), pl.DataFrame)
