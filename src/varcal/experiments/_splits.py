"""Rows: the model outputs of a study, and their splits into calibration and test rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Floats, Ints
from varcal.datasets import load_yelp
from varcal.exceptions import InputError, import_library
from varcal.experiments._study import Study

__all__ = ["Rows", "Split", "read_rows", "yelp_rows"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Model outputs.

    Attributes
    ----------
    p : ndarray of shape (n, K)
        Probabilities of the uncalibrated model.
    y, pred : ndarray of int
        The label, and the class that the uncalibrated model predicts.
    variables : dict of ndarray
        The variables by name.
    calibration : ndarray of int, optional
        The calibration rows of the first split, if it is fixed.
    """

    p: Floats
    y: NDArray[np.int64]
    pred: NDArray[np.int64]
    variables: dict[str, Floats]
    calibration: Ints | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: AnyArray) -> Rows:
        """Return some of the rows."""
        variables = {name: values[rows] for name, values in self.variables.items()}
        return Rows(self.p[rows], self.y[rows], self.pred[rows], variables)

    def split(self, n_cal: int, seed: int) -> Split:
        """Split as the paper does: the first rows of a permutation calibrate, the rest test.

        Seed 0 gives the paper's own split. The test rows keep the order of the file.
        """
        chosen = np.random.RandomState(seed).permutation(len(self))[:n_cal]
        if seed == 0 and self.calibration is not None:
            chosen = self.calibration
        rest = np.ones(len(self), bool)
        rest[chosen] = False
        return Split(self.take(chosen), self.take(rest))


@dataclass(frozen=True, eq=False)
class Split:
    """Calibration and test rows."""

    cal: Rows
    test: Rows


_UNCHANGED = "use the authors' file without changes"


def read_rows(study: Study, path: Path) -> Rows:
    """Read the authors' output file of a study."""
    pa = import_library("pyarrow", f"reading {path.name!r}", "reproduce")
    from pyarrow import csv  # noqa: PLC0415

    try:
        table = csv.read_csv(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"cannot read {path.name!r} as CSV: {error}", _UNCHANGED) from None
    names = [f"prob_{k}" for k in range(study.classes)]
    variables = [study.variable, *study.others]
    for name in ("actual", "pred", *names, *variables):
        if name not in table.column_names:
            raise InputError(f"{path.name!r} has no column {name!r}", _UNCHANGED)
    numbers = {
        name: _numbers(table[name], name, path) for name in ("actual", "pred", *names, *variables)
    }
    for name in ("actual", "pred"):
        bad = ~np.isin(numbers[name], np.arange(study.classes))
        if bad.any():
            row = int(bad.argmax())
            raise InputError.at_row(
                f"{path.name!r} column {name!r}",
                f"is not a class from 0 to {study.classes - 1}",
                float(numbers[name][row]),
                row,
                int(bad.sum()),
                _UNCHANGED,
            )
    if len(table) <= study.n_cal:
        raise InputError(
            f"{path.name!r} has {len(table):,} rows, but calibration alone needs {study.n_cal:,}",
            _UNCHANGED,
        )
    y, pred = (numbers[name].astype(np.int64) for name in ("actual", "pred"))
    p = np.column_stack([numbers[name] for name in names])
    rows = Rows(p, y, pred, {name: numbers[name] for name in variables})
    # The authors leave out the few patients who are 32 or younger.
    return rows.take(rows.variables["age"] > 32) if study.name == "cardio" else rows


def _numbers(column: Any, name: str, path: Path) -> Floats:
    """Return a column as finite numbers."""
    try:
        values = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{path.name!r} column {name!r} has values that are not numbers", _UNCHANGED
        ) from None
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        raise InputError.at_row(
            f"{path.name!r} column {name!r}",
            "is not a finite number",
            float(values[row]),
            row,
            int(bad.sum()),
            _UNCHANGED,
        )
    return values


def yelp_rows(study: Study) -> Rows:
    """Return the bundled predictions of our own model on Yelp sentences."""
    yelp = load_yelp()
    p = np.column_stack([1 - yelp.p, yelp.p])
    names = (study.variable, *study.others)
    variables = {name: np.asarray(yelp[name], np.float64) for name in names}
    fit = np.flatnonzero(yelp.split == "calibration")
    return Rows(p, yelp.y, p.argmax(axis=1), variables, fit)
