import json

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from varcal.exceptions import InputError


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
