"""Large arrays in a JSON file: bytes as text, half of each symmetric matrix."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from varcal._arrays import AnyArray

#: No saved array has more dimensions than this.
MOST_DIMENSIONS = 4
#: The byte order in files, by type.
_BYTES = {"float64": "<f8", "int64": "<i8"}


def array_of(entry: dict[str, Any]) -> AnyArray:
    """Return the array of an entry; raise a ValueError if it is inconsistent.

    What is allocated is at most twice the bytes of the entry, whatever its shape says.
    """
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "triangle", "base64"}:
        raise ValueError("an array has other entries than its bytes, type and shape")
    name, shape = entry["dtype"], entry["shape"]
    if name not in ("float64", "int64") or not isinstance(entry["base64"], str):
        raise ValueError("an array has an unknown type")
    if not isinstance(shape, list) or not 1 <= len(shape) <= MOST_DIMENSIONS:
        raise ValueError("an array has an unknown shape")
    if any(type(size) is not int or not 0 <= size < 2**40 for size in shape):
        raise ValueError("an array has an impossible size")
    values = np.frombuffer(base64.b64decode(entry["base64"], validate=True), dtype=_BYTES[name])
    values = values.astype(name)
    if entry["triangle"] is False:
        if values.size != math.prod(shape):
            raise ValueError(f"{values.size} values for an array of {shape}")
        return values.reshape(shape)
    if not values.size and 0 in shape:
        return np.empty(shape, dtype=values.dtype)
    side = shape[-1]
    matrices = math.prod(shape[:-2])
    if (
        entry["triangle"] is not True
        or len(shape) < 2
        or shape[-2] != side
        or not values.size
        or values.size != matrices * (side * (side + 1) // 2)
    ):
        raise ValueError(f"{values.size} values for a triangle of {shape}")
    rows, columns = np.tril_indices(side)
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
    triangle = square and values.size > 0 and bool((bits == bits.swapaxes(-1, -2)).all())
    if triangle:
        rows, columns = np.tril_indices(values.shape[-1])
        values = values[..., rows, columns]
    text = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
    return {"dtype": name, "shape": list(array.shape), "triangle": triangle, "base64": text}
