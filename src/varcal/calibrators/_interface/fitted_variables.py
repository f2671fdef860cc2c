"""The variables that a calibrator was fitted on, and how new rows are brought to them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from varcal._arrays import AnyArray
from varcal._input.variables import Variable
from varcal.exceptions import InputError

__all__ = ["Schema"]


@dataclass(frozen=True)
class Schema:
    """Names, kinds and levels of V at the time of the fit.

    Attributes
    ----------
    names : tuple of str
        The columns.
    kinds : tuple of str
        "numeric", "datetime", "levels", or "missing" where no row had a value, one a column.
    levels : tuple of tuple
        The levels of each column, none for numbers.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    levels: tuple[tuple[Hashable, ...], ...]

    @classmethod
    def of(cls, variables: tuple[Variable, ...], calibrator: str) -> Schema:
        """Note the variables of a fit, of which there must be one.

        Examples
        --------
        >>> Schema.of((Variable.of([31, 54], "age"),), "TreeCalibrator").kinds
        ('numeric',)
        """
        if not variables:
            raise InputError(
                f"v is missing: {calibrator} learns from at least one variable",
                "fit(p, y, v) with an array, a frame or a dict of columns",
            )
        empty = [bool(variable.missing().all()) for variable in variables]
        return cls(
            tuple(variable.name for variable in variables),
            tuple("missing" if e else v.kind for v, e in zip(variables, empty, strict=True)),
            tuple(() if e else v.levels for v, e in zip(variables, empty, strict=True)),
        )

    @property
    def silent(self) -> tuple[str, ...]:
        """Return the variables that had no value in any row."""
        pairs = zip(self.names, self.kinds, strict=True)
        return tuple(name for name, kind in pairs if kind == "missing")

    def align(self, variables: tuple[Variable, ...], *, unseen: int = -1) -> list[AnyArray]:
        """Return one array a fitted column.

        Numbers stay numbers, NaN where they are missing; levels become their position in the
        fitted ones, −1 where they are missing and `unseen` where they were not seen. What had no
        value at the fit is missing here, too, whatever it holds. Columns are found by name where
        all the names are there, otherwise by position.
        """
        by_name = {variable.name: variable for variable in variables}
        if all(name in by_name for name in self.names):
            chosen = [by_name[name] for name in self.names]
        elif len(variables) == len(self.names) and self._nameless(variables):
            chosen = list(variables)
        else:
            raise self._mismatch(variables)
        return [self._column(k, variable, unseen) for k, variable in enumerate(chosen)]

    def unknown_row(self) -> tuple[Variable, ...]:
        """Return one row in which every variable is missing."""
        return tuple(
            Variable(name, "levels", np.array([-1], dtype=np.intp), levels)
            if kind == "levels"
            else Variable(name, "datetime" if kind == "datetime" else "numeric", np.array([np.nan]))
            for name, kind, levels in zip(self.names, self.kinds, self.levels, strict=True)
        )

    def _nameless(self, variables: tuple[Variable, ...]) -> bool:
        """Tell whether one of the two sides came as arrays, whose names mean positions."""
        return any(
            all(name == f"v{k}" for k, name in enumerate(names)) or tuple(names) == ("v",)
            for names in (self.names, [variable.name for variable in variables])
        )

    def _mismatch(self, variables: tuple[Variable, ...]) -> InputError:
        wanted = ", ".join(map(repr, self.names))
        if not variables:
            return InputError(
                f"v is missing: the calibrator was fitted on {wanted}", "predict_proba(p, v)"
            )
        found = [variable.name for variable in variables]
        gone = [name for name in self.names if name not in found]
        if len(found) != len(self.names) and found[0] in ("v", "v0"):
            return InputError(
                f"v has {len(found)} columns, but the calibrator was fitted on "
                f"{len(self.names)}: {wanted}",
                "give the same columns in the same order",
            )
        return InputError.no_column(gone[0], found, "v")

    def _column(self, k: int, variable: Variable, unseen: int) -> AnyArray:
        if self.kinds[k] == "missing":
            return np.full(len(variable), np.nan)
        is_levels = self.kinds[k] == "levels"
        if variable.kind != self.kinds[k]:
            if variable.missing().all():
                size = len(variable)
                return np.full(size, -1, dtype=np.intp) if is_levels else np.full(size, np.nan)
            raise InputError(
                f"v {self.names[k]!r} holds {_SHOWN[variable.kind]}, but the calibrator was "
                f"fitted on {_SHOWN[self.kinds[k]]}",
                "convert the column to the type that it had at the fit",
            )
        if not is_levels:
            return np.asarray(variable.values, dtype=np.float64)
        position = {level: j for j, level in enumerate(self.levels[k])}
        lookup = np.array([position.get(level, unseen) for level in variable.levels] + [-1])
        return np.asarray(lookup.astype(np.intp)[variable.values])


_SHOWN = {"numeric": "numbers", "datetime": "dates", "levels": "categories"}
