"""Dataset: outcomes, a real model's predictions and the variables, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._tables import frame_of
from varcal.exceptions import InputError

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Held-out rows of a data set with the predictions that a model made for them.

    Attributes
    ----------
    name : str
        A short name.
    description : str
        What the rows and the model are.
    source : str
        Where the rows come from, as a citation.
    licence : str
        The licence of the rows.
    y : ndarray of int, shape (n,)
        The outcome, 0 or 1.
    p : ndarray of float, shape (n,)
        The model's P(y = 1).
    X : dict of str to ndarray
        The variables. Categorical ones are object arrays of strings with ``None`` where the
        value is missing.

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
    p: NDArray[np.float64]
    X: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, column: str) -> NDArray[Any]:
        try:
            return self.X[column]
        except KeyError:
            raise InputError.no_column(str(column), self.X, f"Dataset {self.name}") from None

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self):,} rows, {len(self.X)} variables)"

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one frame with the columns y, p and the variables.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow", "modin", "cudf"}, default "pandas"
            The library whose frame is wanted.

        Returns
        -------
        frame
            A frame (or table) of that library; missing values are its nulls.

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
        return frame_of({"y": self.y, "p": self.p, **self.X}, backend)
