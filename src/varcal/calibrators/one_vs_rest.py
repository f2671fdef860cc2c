"""Calibrators that map one score: for more than two classes, one map for each against the rest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from varcal._arrays import Floats
from varcal._options import EPS
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.steps import Step, clipped, items, join, less, total, where


class OneVsRestCalibrator(Calibrator):
    """One map for two classes; for more, one per class against the rest, then normalized.

    A subclass fits a map, a frozen dataclass of its parameters (`_map`), and says what it does
    (`_map_steps`). A row for which all maps give 0 keeps its uncalibrated probabilities.

    Attributes
    ----------
    maps_ : list
        One fitted map for two classes, K for more; None leaves the score unchanged, for a class
        that no row, or every row, belongs to.
    floor_ : float
        How far scores are kept from 0 and 1 before a logarithm is taken.
    """

    _state: ClassVar[tuple[str, ...]] = ("maps_", "floor_")
    floor_: float

    def _learn(self, rows: CalibrationRows) -> None:
        eps = getattr(self, "eps", None)
        self.floor_ = rows.floor() if eps is None else float(eps)
        columns = {1: rows.p} if rows.p.ndim == 1 else dict(enumerate(rows.p.T))
        self.maps_: Any = [
            self._fit_map(np.ascontiguousarray(score), rows.y == k, rows.weight)
            for k, score in columns.items()
        ]

    def _fit_map(self, score: Floats, hit: Any, weight: Floats | None) -> Any:
        one_outcome = hit.all() or not hit.any()
        return None if one_outcome else self._map(score, hit.astype(np.float64), weight)

    @abstractmethod
    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> Any:
        """Fit one map on rows with both outcomes."""

    @abstractmethod
    def _map_steps(self, fitted: Any, score: Step) -> tuple[Step, Step]:
        """Return the steps of a map to the probabilities of "no" and "yes"."""

    def _mapped(self, fitted: Any, score: Step) -> tuple[Step, Step]:
        return (1.0 - score, score) if fitted is None else self._map_steps(fitted, score)

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        if len(self.maps_) == 1:
            return self._mapped(self.maps_[0], scores[1])
        pairs = zip(self.maps_, scores, strict=True)
        return normalized([self._mapped(fitted, score)[1] for fitted, score in pairs], scores)

    def _inside(self, score: Step) -> Step:
        """Return the step that keeps a score away from 0 and 1."""
        return clipped(score, self.floor_, 1.0 - max(self.floor_, EPS)).named("inside")

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        labels = self.classes_[1:] if len(self.maps_) == 1 else self.classes_
        rows = [{} if each is None else self._table_row(each) for each in self.maps_]
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = [
            {"class": str(label)} | {name: row.get(name) for name in names}
            for label, row in zip(labels, rows, strict=True)
        ]
        return self._sentence(), table

    def _table_row(self, fitted: Any) -> dict[str, Any]:
        """Return the parameters of a map, as a row of the description's table."""
        return asdict(fitted)

    @abstractmethod
    def _sentence(self) -> str:
        """Describe the map in words."""


def inside_of(score: Floats, floor: float) -> Floats:
    """Return scores that are kept away from 0 and 1."""
    return np.minimum(np.maximum(score, floor), 1.0 - max(floor, EPS))


def normalized(cells: Sequence[Step], otherwise: Sequence[Step]) -> tuple[Step, ...]:
    """Return shares of the sum; a row of zeros becomes that of `otherwise`."""
    found = join(cells).named("cell")
    kept = where(less(0.0, total(found)), found, join(otherwise)).named("kept")
    return items(kept / total(kept))
