"""What all calibrators share: one way of use, one way of checking, one way of keeping."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from varcal._arrays import AnyArray, Floats
from varcal._input.provenance import remember
from varcal.calibrators._interface.description import Description
from varcal.calibrators._interface.rows import (
    CalibrationRows,
    labelled_rows,
    score_names,
    score_rows,
)
from varcal.exceptions import InputError, VarcalWarning

__all__ = ["Calibrator"]


class Calibrator(BaseEstimator, ABC):
    """A map from uncalibrated to calibrated probabilities, as a scikit-learn estimator.

    A subclass states how it learns (`_learn`), how it answers (`_answer`), what it says of
    itself (`_told`) and which fitted attributes a file must hold (`_state`).

    Attributes
    ----------
    classes_ : ndarray
        The labels, in the order of the columns of the answer.
    n_features_in_ : int
        The number of columns of p at the fit, 1 for a vector.
    fitted_rows_ : str
        The fingerprint of the calibration rows; see `varcal._input.provenance`.
    score_names_ : tuple of str
        The names of the columns of p at the fit, none for arrays.
    separated_ : bool
        Whether the fit has no finite optimum, as the scores separate the classes.
    """

    _state: ClassVar[tuple[str, ...]] = ()
    _uses_variables: ClassVar[bool] = False
    _needs_variables: ClassVar[bool] = False
    _uses_groups: ClassVar[bool] = False

    def fit(
        self,
        p: object,
        y: object,
        v: object = None,
        *,
        sample_weight: object = None,
        classes: Sequence[Hashable] | None = None,
        groups: object = None,
    ) -> Self:
        """Learn from rows that the classifier was not trained on.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, K)
            The uncalibrated probabilities: (n,) is P(y = second class).
        y : array-like of shape (n,)
            The labels.
        v : array-like, frame or dict of columns, optional
            The variables; score-based calibrators do not look at them.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 counts as two equal rows, 0 leaves the row out.
        classes : sequence, optional
            The labels in the order of the columns of `p`, if they are not the sorted ones or
            if some have no row.
        groups : array-like of shape (n,), optional
            The unit (patient, customer, …) of each row; calibrators that hold rows out look at it.

        Returns
        -------
        self
        """
        rows, n_columns = labelled_rows(p, y, v, sample_weight, classes, groups)
        absent = np.flatnonzero(~rows.present())
        if absent.size:
            shown = ", ".join(repr(rows.classes[k]) for k in absent[:5])
            warnings.warn(
                f"no row of class {shown}{' …' if absent.size > 5 else ''}: "
                "its calibrated probability rests on the other classes alone",
                VarcalWarning,
                stacklevel=2,
            )
        self._fit_rows(rows)
        schema = getattr(self, "schema_", None)
        if schema is not None and schema.silent:
            shown = ", ".join(map(repr, schema.silent[:5]))
            warnings.warn(
                f"v {shown}{' …' if len(schema.silent) > 5 else ''} is missing at every row, and "
                "left out: whatever it holds later counts for nothing",
                VarcalWarning,
                stacklevel=2,
            )
        self.n_features_in_ = n_columns
        self.score_names_: tuple[str, ...] = score_names(p)
        if self.separated_:
            warnings.warn(
                "the scores tell the classes apart with certainty, so that the fit runs to "
                "probabilities of 0 and 1; a penalty (l2=1) or more rows keep it off them",
                VarcalWarning,
                stacklevel=2,
            )
        return self

    def predict_proba(self, p: object, v: object = None) -> Floats:
        """Return calibrated probabilities, one column a class.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, K)
            The uncalibrated probabilities.
        v : array-like, frame or dict of columns, optional
            The variables that the calibrator was fitted on.

        Returns
        -------
        ndarray of shape (n, K)
        """
        check_is_fitted(self)
        self._check_names(p)
        rows = score_rows(p, v, len(self.classes_))
        answer = self._answer(rows)
        if self.fitted_rows_.startswith(f"{len(rows):x}-") and self.fitted_rows_ == (
            rows.fingerprint(with_variables=self._uses_variables)
        ):
            remember(answer, type(self).__name__)
        return answer

    def _check_names(self, p: object) -> None:
        """Refuse columns of p that carry other names, or another order, than at the fit."""
        given = score_names(p)
        if len(given) < 2 or len(self.score_names_) != len(given) or given == self.score_names_:
            return
        raise InputError(
            f"p has the columns {list(given)}, but the calibrator was fitted on "
            f"{list(self.score_names_)}",
            "give the same columns in the same order",
        )

    def predict(self, p: object, v: object = None) -> AnyArray:
        """Return the label of the largest calibrated probability, the first one if tied."""
        winners = self.predict_proba(p, v).argmax(axis=1)
        labels: AnyArray = self.classes_[winners]
        return labels

    def describe(self) -> Description:
        """Return what was learned, in words (`str`) and as a table (`to_frame`)."""
        check_is_fitted(self)
        words, table = self._told()
        return Description(type(self).__name__, words, tuple(table))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted calibrator as versioned JSON; `varcal.load_calibrator` reads it.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced as a whole or not at all.
        """
        from varcal.calibrators._saved.json_file import save_calibrator  # noqa: PLC0415

        check_is_fitted(self)
        save_calibrator(self, path)

    def _probe(self) -> Floats:
        """Return the answer for one row that knows nothing: equal scores, V missing."""
        k = len(self.classes_)
        scores = np.full(1, 0.5) if k == 2 else np.full((1, k), 1.0 / k)
        schema = getattr(self, "schema_", None)
        unknown = () if schema is None else schema.unknown_row()
        return self._answer(
            CalibrationRows(scores, tuple(range(k)), np.empty(0, np.intp), None, unknown)
        )

    def _fit_rows(self, rows: CalibrationRows) -> Self:
        """Fit on rows that are already checked, as parts of another calibrator are."""
        self.separated_ = False
        self.score_names_ = ()
        self._learn(rows)
        self.classes_ = _label_array(rows.classes)
        self.n_features_in_ = 1 if rows.p.ndim == 1 else rows.n_classes
        self.fitted_rows_ = rows.fingerprint(with_variables=self._uses_variables)
        return self

    @abstractmethod
    def _learn(self, rows: CalibrationRows) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _answer(self, rows: CalibrationRows) -> Floats:
        """Return the calibrated probabilities, shape (n, K)."""

    @abstractmethod
    def _told(self) -> tuple[str, list[dict[str, Any]]]:
        """Return sentences and a table about the fit."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_rows_")


def _label_array(labels: tuple[Hashable, ...]) -> AnyArray:
    """Return labels as an array that keeps their type, never numbers turned into strings."""
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], bool | int | str):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
