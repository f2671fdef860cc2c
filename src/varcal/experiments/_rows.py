"""Rows: the model outputs of a study, and their division into calibration and test rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal.exceptions import InputError
from varcal.experiments._study import Study

__all__ = ["Rows", "Split", "read_rows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Model outputs.

    Attributes
    ----------
    p : ndarray of shape (n, K)
        Probabilities of the uncalibrated model.
    y, pred : ndarray of int
        Label, and the class that the uncalibrated model predicts.
    variables : dict of ndarray
        The variables by name.
    """

    p: Floats
    y: NDArray[np.int64]
    pred: NDArray[np.int64]
    variables: dict[str, Floats]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        variables = {name: values[rows] for name, values in self.variables.items()}
        return Rows(self.p[rows], self.y[rows], self.pred[rows], variables)

    def split(self, n_cal: int, seed: int) -> Split:
        """Divide as the paper does: the first rows of a permutation calibrate, the rest test.

        Seed 0 is the paper's own division. The test rows stay in the order of the file.
        """
        chosen = np.random.RandomState(seed).permutation(len(self))[:n_cal]
        rest = np.ones(len(self), bool)
        rest[chosen] = False
        return Split(self.take(chosen), self.take(rest))


@dataclass(frozen=True, eq=False)
class Split:
    """Calibration and test rows."""

    cal: Rows
    test: Rows


def read_rows(study: Study, path: Path) -> Rows:
    """Read the authors' output file of a study."""
    import pyarrow as pa  # noqa: PLC0415  loads when first needed
    from pyarrow import csv  # noqa: PLC0415

    try:
        table = csv.read_csv(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"cannot read {path.name!r} as CSV: {error}", "give the authors' file, unchanged"
        ) from None
    names = [f"prob_{k}" for k in range(study.classes)]
    variables = [study.variable, *study.others]
    for name in ("actual", "pred", *names, *variables):
        if name not in table.column_names:
            raise InputError(
                f"{path.name!r} has no column {name!r}", "give the authors' file, unchanged"
            )
    p = np.column_stack([table[name].to_numpy() for name in names])
    y, pred = (table[name].to_numpy().astype(np.int64) for name in ("actual", "pred"))
    rows = Rows(p, y, pred, {name: table[name].to_numpy().astype(float) for name in variables})
    # The authors leave the few patients of at most 32 years out.
    return rows.take(rows.variables["age"] > 32) if study.name == "cardio" else rows
