"""Which rows belong together, and when they were made: the arguments groups, blocks and time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from varcal._arrays import Floats
from varcal._input.dates import formats_of, with_dates
from varcal._input.frames import Table, is_frame
from varcal._input.variables import Variable
from varcal.exceptions import InputError


def units_of(groups: object, time: object, blocks: object, X: object) -> tuple[object, str]:
    """Return the column of units that belong together, and what it is called.

    Parameters
    ----------
    groups, time, blocks, X
        Arguments of `fit`. `blocks` is "auto", False, the name of a column of `X`, or a column.

    Examples
    --------
    >>> units_of(None, None, "day", {"day": [1, 1, 2]})
    ([1, 1, 2], "blocks of 'day'")
    >>> units_of([1, 1, 2], None, "auto", None)
    ([1, 1, 2], 'groups')
    """
    if blocks is True or blocks is None:
        raise InputError(
            f"blocks is {blocks}",
            'give "auto", False, the name of a column of X, or one value per row',
            "blocks",
        )
    if (isinstance(blocks, str) and blocks == "auto") or blocks is False:
        return groups, "" if groups is None else "groups"
    for name, other in (("groups", groups), ("time", time)):
        if other is not None:
            raise InputError(
                f"blocks is given together with {name}",
                "give one of them: each says which rows are held out together",
                "blocks",
            )
    if isinstance(blocks, str):
        return _named(blocks, X, "blocks"), f"blocks of {blocks!r}"
    return blocks, "blocks"


def instants_of(time: object, X: object, n: int) -> Floats:
    """Return the times of rows as numbers; dates are seconds since 1970 in UTC.

    Parameters
    ----------
    time : str or array-like
        The name of a column of `X`, or dates, texts that are dates, or numbers.
    X : object
        The variables.
    n : int
        The number of rows.

    Examples
    --------
    >>> instants_of(["2024-03-01", "2024-03-02"], None, 2)
    array([1.7092512e+09, 1.7093376e+09])
    """
    if isinstance(time, str):
        time = _named(time, X, "time")
    column = with_dates(Variable.of(time, "time", "time"))
    if len(column) != n:
        raise InputError(
            f"lengths differ: p {n:,}, time {len(column):,}",
            "give one value per row in each",
            "time",
        )
    missing = column.missing()
    if missing.any():
        row = int(missing.argmax())
        raise InputError.at_row(
            "time",
            "is missing",
            None,
            row,
            int(missing.sum()),
            "every row needs a time: fill it in, or leave such rows out",
        )
    if column.kind == "levels":
        raise _not_a_time(column)
    values = np.asarray(column.values, dtype=np.float64)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        count = int((~np.isfinite(values)).sum())
        raise InputError.at_row(
            "time", "is infinite", float(values[row]), row, count, "give dates or finite numbers"
        )
    return values


def _not_a_time(column: Variable) -> InputError:
    """Say which value is not a date, or that dates can be read in two ways."""
    texts = [str(level) for level in column.levels]
    if len(formats_of(texts)) > 1:
        return InputError(
            f"time cannot be read: in {texts[0]!r} day and month cannot be told apart",
            "write dates as 2024-03-31, or convert the column to dates",
            "time",
        )
    odd = next((text for text in texts if not formats_of([text])), texts[0])
    row = int(np.flatnonzero(column.values == texts.index(odd))[0])
    return InputError.at_row(
        "time",
        "is neither a date nor a number",
        odd,
        row,
        int((column.values == texts.index(odd)).sum()),
        "give dates such as 2024-03-31, or numbers that rise with time",
    )


def _named(name: str, X: object, argument: str) -> object:
    """Return a column of X by its name."""
    if not (is_frame(X) or isinstance(X, Mapping)):
        raise InputError(
            f"{argument} is {name!r}, but X has no named columns",
            "give the column itself, or X as a frame or a dict",
            argument,
        )
    table = Table.of(X, "X")
    if name not in table.columns:
        raise InputError.no_column(name, table.columns, argument, where="X")
    column: object = table.column(name, argument)
    return column
