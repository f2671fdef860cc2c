"""Variables taken from the columns of X."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from varcal._input.frames import Table, is_frame
from varcal.exceptions import InputError, shown


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of X are variables, by name and by position.

    Attributes
    ----------
    names : tuple of str
        The names of the variables.
    positions : tuple of int
        Their positions in X.
    named : bool
        Whether X had column names in `fit`.
    """

    names: tuple[str, ...]
    positions: tuple[int, ...]
    named: bool

    def _check_saved(self) -> None:
        """Raise ValueError unless every variable has a position."""
        if len(self.names) != len(self.positions) or len(set(self.names)) < len(self.names):
            raise ValueError("names and positions do not match")
        if any(position < 0 for position in self.positions):
            raise ValueError("a position is negative")

    @classmethod
    def of(cls, X: Any, variables: object) -> ColumnChoice:
        """Find the columns that `variables` names; None means all."""
        if is_frame(X):
            known = Table.of(X, "X").columns
            positions = [_position(each, known) for each in _listed(variables, len(known))]
            return cls(tuple(known[k] for k in positions), tuple(positions), True)
        if _array(X).ndim < 2:
            raise InputError(
                "X has no columns to take variables from", "pass them as variables= to fit"
            )
        width = _array(X).shape[1]
        wanted = _listed(variables, width)
        for each in wanted:
            if isinstance(each, str):
                raise InputError(
                    f"variables names the column {each!r}, but X is a "
                    f"{type(X).__name__} without column names",
                    "an earlier step of the pipeline dropped them: keep them with "
                    'pipeline.set_output(transform="pandas"), number the column '
                    f"(0 to {width - 1}), or pass it to fit as variables=",
                )
        positions = [_position(each, tuple(f"x{k}" for k in range(width))) for each in wanted]
        return cls(tuple(f"x{k}" for k in positions), tuple(positions), False)

    def columns(self, X: Any) -> dict[str, Any]:
        """Return the variables of X, by name."""
        if is_frame(X):
            table = Table.of(X, "X")
            if not self.named:
                self._check_width(len(table.columns))
            names = self.names if self.named else [table.columns[k] for k in self.positions]
            return {
                own: table.column(name, "X") for own, name in zip(self.names, names, strict=True)
            }
        array = _array(X)
        self._check_width(array.shape[1] if array.ndim > 1 else 0)
        if _is_sparse(array):
            array = array.tocsc()[:, list(self.positions)].toarray()
            return {name: array[:, k] for k, name in enumerate(self.names)}
        return {name: array[:, k] for name, k in zip(self.names, self.positions, strict=True)}

    def _check_width(self, width: int) -> None:
        """Refuse X with fewer columns than the last of the variables needs."""
        last = max(self.positions, default=-1)
        if last >= width:
            raise InputError(
                f"X has {width} columns; the variable {self.names[self.positions.index(last)]!r} "
                f"is its column {last}",
                "give the columns that fit was given, in the same order",
                argument="X",
            )


def take_rows(v: Any, rows: Any) -> Any:
    """Return some rows of the variables, in whatever form they were given."""
    from sklearn.utils import _safe_indexing  # noqa: PLC0415  calibrators load without it

    if isinstance(v, Mapping):
        return {name: _safe_indexing(column, rows) for name, column in v.items()}
    return _safe_indexing(v, rows)


def _listed(variables: object, width: int) -> list[object]:
    if variables is None:
        return list(range(width))
    if isinstance(variables, str | int | np.integer):
        return [variables]
    listed = isinstance(variables, Sequence) or (
        isinstance(variables, np.ndarray) and variables.ndim == 1
    )
    if listed and 0 < len(cast("list[object]", variables)) <= width:
        return list(cast("list[object]", variables))
    raise InputError(
        f"variables must be a name, a number or a list of them; got {shown(variables)}",
        f"None means all {width} columns of X",
        argument="variables",
    )


def _position(wanted: object, known: tuple[str, ...]) -> int:
    if isinstance(wanted, str):
        if wanted not in known:
            raise InputError.no_column(wanted, known, "variables")
        return known.index(wanted)
    if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool):
        if not -len(known) <= wanted < len(known):
            raise InputError(
                f"variables asks for column {wanted}, but X has {len(known)}",
                f"columns are numbered from 0 to {len(known) - 1}",
            )
        return int(wanted) % len(known)
    raise InputError(f"variables holds {wanted!r}", "use names or numbers of columns")


def _array(X: Any) -> Any:
    return X if _is_sparse(X) else np.asarray(X)


def _is_sparse(X: Any) -> bool:
    """Tell whether X is sparse, without loading scipy."""
    return hasattr(X, "tocsc")
