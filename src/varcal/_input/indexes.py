"""Indexes of pandas: rows are paired by position, so labels must not say otherwise."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from varcal.exceptions import InputError, VarcalWarning

#: How the warning begins.
BY_POSITION = "rows are paired by position"


def check_indexes(given: Mapping[str, object]) -> None:
    """Refuse series and frames of pandas whose rows are in another order; warn of other labels.

    Parameters
    ----------
    given : mapping
        The arguments by name. A dict of columns counts as its columns.
    """
    pandas = nw.dependencies.get_pandas()
    if pandas is None:
        return
    indexes: dict[str, Any] = {}
    for name, value in given.items():
        columns = value.items() if isinstance(value, Mapping) else [(None, value)]
        for key, column in columns:
            if isinstance(column, pandas.Series | pandas.DataFrame):
                indexes[name if key is None else f"{name} {key!r}"] = column.index
    if len(indexes) < 2:
        return
    (first, labels), *others = indexes.items()
    unlike = [
        (name, index)
        for name, index in others
        if len(index) == len(labels) and not (index is labels or index.equals(labels))
    ]
    for name, index in unlike:
        if _same_labels(pandas, labels, index):
            raise InputError(
                f"{name} has the index labels of {first} in another order",
                f"align it, as in {name.split(' ')[0]}.loc[{first}.index], or pass .to_numpy() of "
                "both to pair rows by position",
                argument=name.split(" ")[0],
            )
    if unlike:
        shown = ", ".join(name for name, _ in unlike[:5]) + (" …" if len(unlike) > 5 else "")
        warnings.warn(
            f"{BY_POSITION}: the index labels of {shown} are not those of {first}; align them, or "
            "pass .to_numpy() if the order is right",
            VarcalWarning,
            stacklevel=4,
        )


def _same_labels(pandas: Any, one: Any, other: Any) -> bool:
    """Tell whether two indexes of equal length have the same labels, each as often."""
    a, b = (pandas.util.hash_pandas_object(index, index=False).to_numpy() for index in (one, other))
    # Sums differ unless the labels are the same, up to chance; sorting is certain, but slow.
    return bool(a.sum() == b.sum()) and np.array_equal(np.sort(a), np.sort(b))
