"""`Dataset`: outcomes, the predictions of a real model, and variables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Floats
from varcal._input.frames import frame_of
from varcal._options import check_choice
from varcal.exceptions import InputError


def bundled(name: str) -> dict[str, AnyArray]:
    """Return the arrays of a bundled file."""
    path = resources.files("varcal.datasets") / f"{name}.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return dict(stored)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Held-out rows of a data set, with the predictions of a model.

    Attributes
    ----------
    name : str
        A short name.
    description : str
        A description of the rows and of the model.
    source : str
        A citation of the data.
    licence : str
        The licence of the rows.
    y : ndarray of int, shape (n,)
        The outcome, 0 or 1.
    p : ndarray of float, shape (n,)
        The model's P(y = 1).
    X : dict of str to ndarray
        The variables. Categorical ones are object arrays of strings with ``None`` where the
        value is missing.
    split : ndarray of str, shape (n,), optional
        The part that each row belongs to, if the data set has parts.

    Examples
    --------
    >>> from varcal.datasets import load_adult
    >>> adult = load_adult()
    >>> adult["age"][:5]
    array([25, 38, 28, 44, 18])
    """

    name: str
    description: str
    source: str
    licence: str
    y: NDArray[np.int64]
    p: Floats
    X: dict[str, AnyArray]
    split: NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, column: str) -> AnyArray:
        try:
            return self.X[column]
        except KeyError:
            raise InputError.no_column(str(column), self.X, f"Dataset {self.name}") from None

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self):,} rows, {len(self.X)} variables)"

    def part(self, name: str) -> Dataset:
        """Return the rows of one part.

        Parameters
        ----------
        name : str
            A value of ``split``.

        Returns
        -------
        Dataset
            Those rows, in order.

        Raises
        ------
        InputError
            If there is no such part, or the data set has no parts.

        Examples
        --------
        >>> from varcal.datasets import load_yelp
        >>> load_yelp().part("calibration")
        Dataset('yelp', 10,000 rows, 11 variables)
        """
        if self.split is None:
            raise InputError(f"Dataset {self.name} has no parts", "use all of its rows")
        check_choice("name", name, np.unique(self.split).tolist())
        rows = self.split == name
        X = {variable: column[rows] for variable, column in self.X.items()}
        return replace(self, y=self.y[rows], p=self.p[rows], X=X, split=self.split[rows])

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one frame with the columns y, p, split (if there is one) and the variables.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow", "modin", "cudf"}, default "pandas"
            The library of the frame.

        Returns
        -------
        frame
            A frame (or table) of that library, with its own null for missing values.

        Raises
        ------
        MissingDependencyError
            If the library is not installed.

        Examples
        --------
        >>> from varcal.datasets import load_adult
        >>> load_adult().to_frame("pandas").shape
        (16281, 16)
        """
        split = {} if self.split is None else {"split": self.split.astype(object)}
        return frame_of({"y": self.y, "p": self.p, **split, **self.X}, backend)
