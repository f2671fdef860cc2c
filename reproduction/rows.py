"""Rows: the model outputs of a study, and their splits into calibration and test rows."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pooch

from reproduction.studies import Study
from varcal.datasets import load_yelp

#: The authors' repository at the commit that added the data.
BASE_URL = (
    "https://raw.githubusercontent.com/markellekelly/variable-wise-calibration/"
    "7d6c03a4bce7bbbf3f9886df79934b5bbfd78d27/data/"
)
#: SHA-256 of each uncompressed file.
SHA256 = {
    "adult_out.csv": "8b03f386f0f8820a6aac7a6effb0497f0202d089750aa119ff576cc3d3a69067",
    "bank_out.csv": "793258a5d34ec27a0d518a459a48da287d7149fe73aa5249cd2808679b4a3415",
    "cardio_out.csv": "05b34cdbff03608c48f1f9732be57b3c427e0e65e7791fcaa2342ca9be96ffa1",
    "cifar_out.csv": "b6386ef2a7527234b76331d1408a93f0cc86198a5234b6280969b0402cc11bc4",
}


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

    p: np.ndarray
    y: np.ndarray
    pred: np.ndarray
    variables: dict[str, np.ndarray]
    calibration: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        variables = {name: values[rows] for name, values in self.variables.items()}
        return Rows(self.p[rows], self.y[rows], self.pred[rows], variables)

    def split(self, n_cal: int, seed: int) -> Split:
        """Split as the paper does: the first rows of a permutation calibrate, the rest test.

        Seed 0 gives the paper's own split. The test rows keep the order of the file.
        """
        chosen = np.random.RandomState(seed).permutation(len(self.y))[:n_cal]
        if seed == 0 and self.calibration is not None:
            chosen = self.calibration
        rest = np.ones(len(self.y), bool)
        rest[chosen] = False
        return Split(self.take(chosen), self.take(rest))


@dataclass(frozen=True, eq=False)
class Split:
    """Calibration and test rows."""

    cal: Rows
    test: Rows


def paper_file(name: str, folder: Path | None = None) -> bytes:
    """Return the authors' outputs of a study as CSV, from a folder or downloaded and cached."""
    file = f"{name}_out.csv"
    if folder is None:
        store = pooch.create(pooch.os_cache("varcal"), BASE_URL, registry=SHA256, retry_if_failed=3)
        return Path(store.fetch(file)).read_bytes()
    zipped = folder / f"{file}.gz"
    content = (
        gzip.decompress(zipped.read_bytes()) if zipped.exists() else (folder / file).read_bytes()
    )
    content = content.replace(b"\r\n", b"\n")  # as in a checkout on Windows
    if hashlib.sha256(content).hexdigest() != SHA256[file]:
        raise SystemExit(f"{file} in {str(folder)!r} is not the authors' file: its SHA-256 differs")
    return content


def paper_rows(study: Study, folder: Path | None = None) -> Rows:
    """Return the authors' outputs of a study."""
    table = pd.read_csv(BytesIO(paper_file(study.name, folder)))
    # The authors leave out the few patients who are 32 or younger.
    table = table[table["age"] > 32] if study.name == "cardio" else table
    p = table[[f"prob_{k}" for k in range(study.classes)]].to_numpy(float)
    variables = {name: table[name].to_numpy(float) for name in (study.variable, *study.others)}
    y, pred = (table[name].to_numpy().astype(int) for name in ("actual", "pred"))
    return Rows(p, y, pred, variables)


def yelp_rows(study: Study) -> Rows:
    """Return the bundled predictions of our own model on Yelp sentences."""
    yelp = load_yelp()
    p = np.column_stack([1 - yelp.p, yelp.p])
    variables = {name: np.asarray(yelp[name], float) for name in (study.variable, *study.others)}
    fit = np.flatnonzero(yelp.split == "calibration")
    return Rows(p, yelp.y, p.argmax(axis=1), variables, fit)
