"""Calibrators that map one score, applied to each class against the rest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from varcal._arrays import Floats
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.steps import Step, join, less, total, where


class ScoreMap(Protocol):
    """A fitted map of one score: a frozen dataclass whose fields are its parameters."""

    def columns(self, score: Floats) -> Floats:
        """Return the probabilities of "no" and "yes", shape (n, 2)."""
        ...

    def table_row(self) -> dict[str, Any]:
        """Return the parameters, as a row of the description's table."""
        ...

    def as_steps(self, score: Step) -> tuple[Step, Step]:
        """Return the steps to the probabilities of "no" and "yes"."""
        ...


@dataclass(frozen=True)
class IdentityMap:
    """The map of a class that no row, or every row, belongs to: it leaves scores unchanged."""

    def columns(self, score: Floats) -> Floats:
        """Return the score and its complement."""
        return stacked(score)

    def table_row(self) -> dict[str, Any]:
        """Return an empty row: there are no parameters."""
        return {}

    def as_steps(self, score: Step) -> tuple[Step, Step]:
        """Return the score and its complement."""
        return 1.0 - score, score


class OneVsRestCalibrator(Calibrator):
    """One map for two classes; for more, one per class against the rest, then normalized.

    A row for which all maps give 0 keeps its uncalibrated probabilities.

    Attributes
    ----------
    maps_ : list
        One fitted map for two classes, K for more.
    """

    _state = ("maps_",)

    def _learn(self, rows: CalibrationRows) -> None:
        if rows.p.ndim == 1:
            self.maps_ = [self._fit_map(rows.p, rows.y == 1, rows.weight)]
        else:
            self.maps_ = [
                self._fit_map(np.ascontiguousarray(rows.p[:, k]), rows.y == k, rows.weight)
                for k in range(rows.n_classes)
            ]

    def _fit_map(self, score: Floats, hit: Any, weight: Floats | None) -> ScoreMap:
        if hit.all() or not hit.any():
            return IdentityMap()
        return self._map(score, hit.astype(np.float64), weight)

    @abstractmethod
    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> ScoreMap:
        """Fit one map on rows with both outcomes."""

    def _answer(self, rows: CalibrationRows) -> Floats:
        if rows.p.ndim == 1:
            return self.maps_[0].columns(rows.p)
        answer = np.empty(rows.p.shape)
        for k, each in zip(range(rows.n_classes), self.maps_, strict=True):
            answer[:, k] = each.columns(np.ascontiguousarray(rows.p[:, k]))[:, 1]
        return normalized(answer, rows.p)

    def _steps(self, scores: tuple[Step, ...], *, exact: bool = True) -> tuple[Step, ...]:
        if len(self.maps_) == 1:
            return self.maps_[0].as_steps(scores[1])
        cells = [each.as_steps(score)[1] for each, score in zip(self.maps_, scores, strict=True)]
        return normalized_steps(cells, scores)

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        labels = self.classes_[1:] if len(self.maps_) == 1 else self.classes_
        table = [
            {"class": str(label)} | each.table_row()
            for label, each in zip(labels, self.maps_, strict=True)
        ]
        names = list(dict.fromkeys(name for row in table for name in row))
        return self._sentence(), [{name: row.get(name) for name in names} for row in table]

    @abstractmethod
    def _sentence(self) -> str:
        """Describe the map in words."""


def stacked(q: Floats) -> Floats:
    """Return ``[1 - q, q]`` as columns."""
    out = np.empty((q.size, 2))
    np.subtract(1.0, q, out=out[:, 0])
    out[:, 1] = q
    return out


def normalized(cells: Floats, otherwise: Floats) -> Floats:
    """Divide rows by their sums; a row of zeros becomes that of `otherwise`."""
    sums = cells.sum(axis=1, keepdims=True)
    empty = sums[:, 0] <= 0
    if empty.any():
        cells = np.where(empty[:, None], otherwise, cells)
        sums = cells.sum(axis=1, keepdims=True)
    return np.asarray(cells / sums)


def normalized_steps(cells: Sequence[Step], otherwise: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps of `normalized`, for one row."""
    found = join(cells).named("cell")
    filled = less(0.0, total(found))
    kept = where(filled, found, join(otherwise)).named("kept")
    shares = kept / total(kept)
    return tuple(shares.item(k) for k in range(len(cells)))
