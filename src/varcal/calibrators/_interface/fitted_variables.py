"""The variables that a calibrator was fitted on, and how those of new rows are matched to them."""

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
    """Names, kinds and levels of the variables in `fit`.

    Attributes
    ----------
    names : tuple of str
        The columns.
    kinds : tuple of str
        One per column: "numeric", "datetime", "levels", or "missing" where no row had a value.
    levels : tuple of tuple
        The levels of each column; empty for numbers.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    levels: tuple[tuple[Hashable, ...], ...]

    @classmethod
    def of(cls, variables: tuple[Variable, ...], calibrator: str) -> Schema:
        """Record the variables of a fit; at least one is required.

        Examples
        --------
        >>> Schema.of((Variable.of([31, 54], "age"),), "TreeCalibrator").kinds
        ('numeric',)
        """
        if not variables:
            raise InputError(
                f"v is missing: {calibrator} learns from at least one variable",
                "call fit(p, y, v) with an array, a frame or a dict of columns",
            )
        empty = [bool(variable.missing().all()) for variable in variables]
        return cls(
            tuple(variable.name for variable in variables),
            tuple("missing" if e else v.kind for v, e in zip(variables, empty, strict=True)),
            tuple(() if e else v.levels for v, e in zip(variables, empty, strict=True)),
        )

    @property
    def silent(self) -> tuple[str, ...]:
        """Return the names of the variables without any value in `fit`."""
        pairs = zip(self.names, self.kinds, strict=True)
        return tuple(name for name, kind in pairs if kind == "missing")

    def align(self, variables: tuple[Variable, ...], *, unseen: int = -1) -> list[AnyArray]:
        """Return one array per fitted column.

        Numbers stay numbers, with NaN where they are missing. Levels become their position among
        the fitted levels, −1 where they are missing and `unseen` for levels that were not in the
        fit. A variable without any value in the fit is treated as missing. Columns are matched by
        name if all fitted names are present, otherwise by position.
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
        """Return whether either side came as arrays, whose names only number the columns."""
        return any(
            all(name == f"v{k}" for k, name in enumerate(names)) or tuple(names) == ("v",)
            for names in (self.names, [variable.name for variable in variables])
        )

    def _mismatch(self, variables: tuple[Variable, ...]) -> InputError:
        wanted = ", ".join(map(repr, self.names))
        if not variables:
            return InputError(
                f"v is missing: the calibrator was fitted on {wanted}", "call predict_proba(p, v)"
            )
        found = [variable.name for variable in variables]
        absent = [name for name in self.names if name not in found]
        if len(found) != len(self.names) and found[0] in ("v", "v0"):
            return InputError(
                f"v has {len(found)} columns, but the calibrator was fitted on "
                f"{len(self.names)}: {wanted}",
                "give the same columns in the same order",
            )
        return InputError.no_column(absent[0], found, "v")

    def _column(self, k: int, variable: Variable, unseen: int) -> AnyArray:
        if self.kinds[k] == "missing":
            return np.full(len(variable), np.nan)
        is_levels = self.kinds[k] == "levels"
        if variable.kind != self.kinds[k]:
            if variable.missing().all():
                size = len(variable)
                return np.full(size, -1, dtype=np.intp) if is_levels else np.full(size, np.nan)
            raise InputError(
                f"v {self.names[k]!r} holds {_KIND_NAMES[variable.kind]}, but the calibrator was "
                f"fitted on {_KIND_NAMES[self.kinds[k]]}",
                "convert the column to the type that it had in fit",
            )
        if not is_levels:
            return np.asarray(variable.values, dtype=np.float64)
        position = {level: j for j, level in enumerate(self.levels[k])}
        lookup = np.array([position.get(level, unseen) for level in variable.levels] + [-1])
        return np.asarray(lookup.astype(np.intp)[variable.values])


_KIND_NAMES = {"numeric": "numbers", "datetime": "dates", "levels": "categories"}
