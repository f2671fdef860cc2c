"""Values that no careful user passes, by name; each is made afresh for every call."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd


class Opaque:
    """An object that refuses everything."""

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = None

    def __bool__(self):
        raise RuntimeError("no truth")

    def __repr__(self):
        return "Opaque()"


MAKERS = {
    "None": lambda: None,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-1": lambda: -1,
    "0": lambda: 0,
    "0.5": lambda: 0.5,
    "5e-324": lambda: 5e-324,
    "10**9": lambda: 10**9,
    "10**30": lambda: 10**30,
    "10**400": lambda: 10**400,
    "complex": lambda: 1 + 2j,
    "True": lambda: True,
    "empty string": lambda: "",
    "string": lambda: "x",
    "string with NUL": lambda: "a\0b",
    "string with surrogate": lambda: "a\udcffb",
    "bytes": lambda: b"x",
    "empty list": list,
    "empty dict": dict,
    "list of None": lambda: [None],
    "list of lists": lambda: [[1], [2, 3]],
    "set": lambda: {1, 2},
    "dict": lambda: {"x": 1},
    "object": object,
    "opaque": Opaque,
    "lambda": lambda: lambda *a, **k: 1 / 0,
    "range": lambda: range(10**12),
    "generator": lambda: (i for i in range(3)),
    "array": lambda: np.arange(3.0),
    "array of NaN": lambda: np.full(240, np.nan),
    "array of texts": lambda: np.array(["a", "b"] * 120),
    "array of objects": lambda: np.array([object(), None, 1, "x"] * 60),
    "matrix": lambda: np.ones((240, 240)),
    "array of 0 dimensions": lambda: np.array(3),
    "structured array": lambda: np.zeros(240, dtype=[("a", "f8"), ("b", "U3")]),
    "datetimes": lambda: np.full(240, "NaT", dtype="M8[s]"),
    "numpy integer": lambda: np.int8(5),
    "numpy float": lambda: np.float16(0.1),
    "numpy bool": lambda: np.bool_(True),
    "Decimal": lambda: Decimal("0.5"),
    "Decimal NaN": lambda: Decimal("sNaN"),
    "timedelta": lambda: dt.timedelta(days=1),
    "folder": lambda: Path(__file__).parent,
    "missing path": lambda: Path("/no/such/folder/file.json"),
    "device": lambda: "/dev/null",
    "pandas NA": lambda: pd.NA,
    "series": lambda: pd.Series([1.0, 2.0, None]),
    "frame": lambda: pd.DataFrame({"y": [0, 1], "p": [0.1, np.nan]}),
    "open file": lambda: open(Path(__file__)),  # noqa: SIM115
}
