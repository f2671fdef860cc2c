"""Large arrays in a JSON file: bytes as text, each array once, half of each symmetric matrix."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from varcal._arrays import AnyArray

__all__ = ["ArrayTexts", "array_of", "entry_of"]

#: Arrays with more entries than this are written as text; smaller ones stay readable.
LARGE = 64
#: The byte order in files, by type.
_BYTES = {"float64": "<f8", "int64": "<i8"}


class ArrayTexts:
    """The large arrays of one file, in the order in which they were added.

    Attributes
    ----------
    entries : list of dict
        The arrays as JSON.

    Examples
    --------
    >>> texts = ArrayTexts()
    >>> matrix = np.add.outer(np.arange(40.0), np.arange(40.0))
    >>> texts.number_of(matrix), texts.number_of(matrix.copy()), texts.number_of(matrix[:2])
    (0, 0, 1)
    >>> bool((array_of(texts.entries[0]) == matrix).all())
    True
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    @staticmethod
    def takes(array: AnyArray) -> bool:
        """Return whether an array belongs here: a large one of numbers."""
        return array.size > LARGE and array.dtype.kind in "fiu"

    def number_of(self, array: AnyArray) -> int:
        """Return the position of an array among the entries; add it if it is new."""
        entry = entry_of(array)
        key = (*entry["shape"], entry["dtype"], entry["base64"])
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            self.entries.append(entry)
        return self._numbers[key]


def array_of(entry: dict[str, Any]) -> AnyArray:
    """Return the array of an entry; raise a ValueError if it is inconsistent."""
    dtype, shape = _BYTES[entry["dtype"]], tuple(int(size) for size in entry["shape"])
    values = np.frombuffer(base64.b64decode(entry["base64"], validate=True), dtype=dtype)
    values = values.astype(entry["dtype"])
    if not entry["triangle"]:
        return values.reshape(shape)
    if values.size * 2 != math.prod(shape[:-1]) * (shape[-1] + 1):
        raise ValueError(f"{values.size} values for a triangle of {shape}")
    rows, columns = np.tril_indices(shape[-1])
    array = np.empty(shape, dtype=values.dtype)
    array[..., rows, columns] = values.reshape(*shape[:-2], -1)
    array[..., columns, rows] = array[..., rows, columns]
    return array


def entry_of(array: AnyArray) -> dict[str, Any]:
    """Return an array of floats or integers as JSON."""
    name = "float64" if array.dtype.kind == "f" else "int64"
    values = np.ascontiguousarray(array, dtype=_BYTES[name])
    bits = values.view(np.int64)
    square = values.ndim >= 2 and values.shape[-1] == values.shape[-2]
    triangle = square and bool((bits == bits.swapaxes(-1, -2)).all())
    if triangle:
        rows, columns = np.tril_indices(values.shape[-1])
        values = values[..., rows, columns]
    text = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
    return {"dtype": name, "shape": list(array.shape), "triangle": triangle, "base64": text}
