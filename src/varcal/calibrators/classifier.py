"""A classifier followed by a calibrator, as one scikit-learn classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils import Bunch, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from varcal._arrays import AnyArray, Floats
from varcal._input.frames import Table, columns_by_name, is_frame
from varcal._options import check_count
from varcal.calibrators.calibrator import Calibrator, Description
from varcal.calibrators.cross_fitting import (
    check_lengths,
    cross_fit,
    estimator_scores,
    positions,
    take_rows,
    units_of,
)
from varcal.calibrators.rows import instants_of
from varcal.calibrators.variable.variable_calibrator import VariableCalibrator
from varcal.exceptions import InputError, VarcalWarning, shown

#: The most folds that are fitted at once, by number or by all cores but some.
MOST_JOBS = 10_000


class VariableCalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated along variables.

    Wrap an estimator that is fitted already in `sklearn.frozen.FrozenEstimator`: then `fit` only
    calibrates, on rows that the estimator must not have been trained on. Otherwise the estimator
    is cross-fitted: the calibrator learns from out-of-fold probabilities.

    Parameters
    ----------
    estimator : classifier or pipeline
        It needs `predict_proba`, or `decision_function`, whose values are then taken as log-odds.
    variables : str, int, or list of them, optional
        The columns of X that are used as variables, by name or number; None means all. Instead,
        variables can be passed as ``variables=`` to `fit` and `predict_proba`.
    calibrator : Calibrator, optional
        None means `VariableCalibrator`.
    cv : int, splitter or iterable, optional
        How folds are made, as elsewhere in scikit-learn; None means 5 stratified folds, or as many
        as the rarest class has rows (or groups). Not used with a frozen estimator.
    n_jobs : int, optional
        The number of folds that are fitted in parallel.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    estimator_, calibrator_ : objects
        The fitted estimator and calibrator.
    n_features_in_, feature_names_in_ : int, ndarray
        Those of the estimator.

    References
    ----------
    M. Kelly, P. Smyth (2023), Variable-based calibration for machine learning classifiers, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = rng.random(600) < 1 / (1 + np.exp(-X[:, 0] * (1 + (X[:, 1] > 0))))
    >>> fit = VariableCalibratedClassifier(LogisticRegression(), variables=1).fit(X, y)
    >>> fit.predict_proba(X[:2]).round(1)
    array([[0.5, 0.5],
           [0.3, 0.7]])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        variables: Any = None,
        calibrator: Calibrator | None = None,
        cv: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.variables = variables
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        variables: Any = None,
        groups: Any = None,
        time: Any = None,
        blocks: Any = "auto",
        **fit_params: Any,
    ) -> Self:
        """Fit the estimator, unless it is frozen, and the calibrator.

        Parameters
        ----------
        X : array-like or frame of shape (n, features)
            The features of the estimator.
        y : array-like of shape (n,)
            The labels.
        sample_weight : array-like of shape (n,), optional
            Weights for the estimator, if its `fit` accepts them, and for the calibrator.
        variables : array-like, frame or dict of columns, optional
            The variables, if they are not columns of X.
        groups : array-like of shape (n,), optional
            The unit (patient, customer, …) of each row. The rows of a unit share a fold of the
            cross-fitting, and the calibrator holds them out together.
        time : array-like of shape (n,), optional
            When each row was made, as dates or numbers. The calibrator is then judged on rows that
            are later than those that fitted it; the folds of the cross-fitting do not depend on
            it.
        blocks : "auto", False or array-like of shape (n,)
            Which rows are correlated, as those of the same day do; see `VariableCalibrator.fit`.
        **fit_params
            Passed to the estimator's `fit`.

        Returns
        -------
        self
        """
        self._check_parameters(variables)
        check_classification_targets(y)
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if isinstance(time, str):
            hint = "give one date or number per row"
            raise InputError(f"time is the string {time!r}", hint, argument="time")
        n = len(y)
        self._choice = ColumnChoice.of(X, self.variables) if variables is None else None
        units = None if groups is None else units_of(groups, n)
        given = {
            "X": self._variables_of(X, variables),
            "sample_weight": sample_weight,
            "groups": units,
            "time": None if time is None else instants_of(time, None, n),
            "blocks": blocks if isinstance(blocks, str | bool) else units_of(blocks, n, "blocks"),
        }
        check_lengths(n, given["X"])
        routed = self._routed(sample_weight, groups, fit_params)
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_, self.classes_ = self.estimator, np.asarray(self.estimator.classes_)
            scores, rows = estimator_scores(self.estimator, X, self.classes_), np.arange(n)
        else:
            self.classes_ = np.unique(y)
            scores, rows = cross_fit(
                self.estimator, X, y, self.classes_, self.cv, units, routed, self.n_jobs
            )
            self.estimator_ = clone(self.estimator).fit(X, y, **routed.estimator.fit)
        self.calibrator_ = self._calibrated(scores, y, given, rows)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _check_parameters(self, variables: Any) -> None:
        if self.calibrator is not None and not isinstance(self.calibrator, Calibrator):
            raise InputError(
                f"calibrator must be a calibrator of varcal; got {self.calibrator!r}",
                "None means VariableCalibrator()",
            )
        if not hasattr(self.estimator, "fit") or not hasattr(self.estimator, "get_params"):
            raise InputError(
                f"estimator must be a classifier of scikit-learn; got {shown(self.estimator)}",
                "for example LogisticRegression()",
                argument="estimator",
            )
        if isinstance(self.cv, str):
            raise InputError(
                f"cv must be a number of folds, a splitter or an iterable; got {self.cv!r}",
                "wrap a fitted model, VariableCalibratedClassifier(FrozenEstimator(model)), with "
                "FrozenEstimator from sklearn.frozen: then fit only calibrates",
                argument="cv",
            )
        if self.n_jobs is not None:
            check_count("n_jobs", self.n_jobs, -MOST_JOBS, MOST_JOBS)
            if not self.n_jobs:
                raise InputError("n_jobs is 0", "give None, 1 or −1", argument="n_jobs")
        if variables is not None and self.variables is not None:
            raise InputError(
                f"variables are given to fit, and variables={self.variables!r} names columns of X",
                "take the variables from columns of X or pass them to fit, not both",
            )

    def _routed(self, sample_weight: Any, groups: Any, fit_params: dict[str, Any]) -> Bunch:
        """Return which parameters go to the estimator and which to the splitter."""
        of_splitter = {} if groups is None else {"groups": groups}
        if _routing_enabled():
            passed = fit_params | of_splitter
            routed = process_routing(self, "fit", sample_weight=sample_weight, **passed)
            routed.splitter.split |= of_splitter
            return routed
        passed = dict(fit_params)
        if sample_weight is not None and not isinstance(self.estimator, FrozenEstimator):
            if "sample_weight" in signature(self.estimator.fit).parameters:
                passed["sample_weight"] = sample_weight
            else:
                warnings.warn(
                    f"{type(self.estimator).__name__} takes no sample_weight: the weights are "
                    "only used for calibration",
                    VarcalWarning,
                    stacklevel=3,
                )
        return Bunch(estimator=Bunch(fit=passed), splitter=Bunch(split=of_splitter))

    def _calibrated(
        self, scores: Floats, y: AnyArray, given: dict[str, Any], rows: AnyArray
    ) -> Calibrator:
        """Fit a calibrator on some rows and their scores."""
        codes = positions(self.classes_, y[rows])
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            raise InputError.at_row(
                "y",
                f"is none of the estimator's classes {self.classes_.tolist()!r}",
                y[rows].tolist()[unknown[0]],
                int(unknown[0]),
                int(unknown.size),
                "use the labels that the estimator was trained on",
            )
        calibrator = VariableCalibrator() if self.calibrator is None else clone(self.calibrator)
        own = {name: take_rows(each, rows) for name, each in given.items()}
        calibrator.fit(scores, codes, own.pop("X"), classes=range(len(self.classes_)), **own)
        calibrator.classes_ = self.classes_
        return calibrator

    def predict_proba(self, X: Any, *, variables: Any = None) -> Floats:
        """Return calibrated probabilities, one column per class.

        Parameters
        ----------
        X : array-like or frame of shape (n, features)
            The features of the estimator.
        variables : array-like, frame or dict of columns, optional
            The variables, if they were passed as ``variables=`` to `fit`.
        """
        check_is_fitted(self)
        scores = estimator_scores(self.estimator_, X, self.classes_)
        return self.calibrator_.predict_proba(scores, self._variables_of(X, variables))

    def _variables_of(self, X: Any, variables: Any) -> dict[str, Any]:
        """Return the variables by name: those that were given, or columns of X."""
        if (self._choice is None) != (variables is not None):
            raise InputError(
                "variables is missing, though it was given to fit"
                if self._choice is None
                else "variables is given, though it was not given to fit",
                "give variables= to both or to neither",
            )
        if self._choice is None:
            return columns_by_name(variables, "variables")
        return self._choice.columns(X)

    def predict(self, X: Any, *, variables: Any = None) -> AnyArray:
        """Return the label of the largest calibrated probability, the first one if tied."""
        winners = self.predict_proba(X, variables=variables).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, variables: Any = None) -> float:
        """Return the accuracy on rows.

        Parameters
        ----------
        X, y, sample_weight
            Features, labels and weights.
        variables : array-like, frame or dict of columns, optional
            The variables, if they were passed as ``variables=`` to `fit`.
        """
        found = self.predict(X, variables=variables)
        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def describe(self) -> Description:
        """Describe the fitted calibrator."""
        check_is_fitted(self)
        return self.calibrator_.describe()

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which parameters of `fit` go to this object, the estimator and the splitter."""
        router = MetadataRouter(owner=self).add_self_request(self)
        for callee, given in (
            ("fit", {"estimator": self.estimator}),
            ("split", {"splitter": self.cv}),
        ):
            mapping = MethodMapping().add(caller="fit", callee=callee)
            router.add(method_mapping=mapping, **given)
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("sparse", "allow_nan", "string"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        return tags


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of X are variables.

    Attributes
    ----------
    names : tuple of str
        The names of the variables; x0, x1, … for columns of an array.
    positions : tuple of int
        Their positions in X.
    named : bool
        Whether X had column names in `fit`.
    """

    names: tuple[str, ...]
    positions: tuple[int, ...]
    named: bool

    @classmethod
    def of(cls, X: Any, variables: object) -> ColumnChoice:
        """Find the columns that `variables` names; None means all."""
        named, known = is_frame(X), _names_of(X)
        wanted: Any = range(len(known)) if variables is None else variables
        if isinstance(wanted, str | int | np.integer):
            wanted = [wanted]
        one_axis = isinstance(wanted, Sequence | np.ndarray) and np.ndim(wanted) == 1
        if not one_axis or (variables is not None and not 0 < len(wanted) <= len(known)):
            raise InputError(
                f"variables must be a name, a number or a list of them; got {shown(variables)}",
                f"None means all {len(known)} columns of X",
                argument="variables",
            )
        chosen = [_position(each, known, named) for each in wanted]
        return cls(tuple(known[k] for k in chosen), tuple(chosen), named)

    def columns(self, X: Any) -> dict[str, Any]:
        """Return the variables of X, by name."""
        known, last = _names_of(X), max(self.positions, default=-1)
        if is_frame(X):
            table = Table.of(X, "X")
            if self.named:
                return {name: table.column(name, "X") for name in self.names}
        if last >= len(known):
            raise InputError(
                f"X has {len(known)} columns; the variable "
                f"{self.names[self.positions.index(last)]!r} is its column {last}",
                "give the columns that fit was given, in the same order",
                argument="X",
            )
        if is_frame(X):
            taken = [table.column(known[k], "X") for k in self.positions]
        elif hasattr(X, "tocsc"):
            taken = [*X.tocsc()[:, list(self.positions)].toarray().T]
        else:
            taken = [np.asarray(X)[:, k] for k in self.positions]
        return dict(zip(self.names, taken, strict=True))


def _names_of(X: Any) -> tuple[str, ...]:
    """Return the names of the columns of a frame, or x0, x1, … for those of an array."""
    if is_frame(X):
        return Table.of(X, "X").columns
    shape = X.shape if hasattr(X, "tocsc") else np.asarray(X).shape
    if len(shape) < 2:
        hint = "pass them as variables= to fit"
        raise InputError("X has no columns to take variables from", hint)
    return tuple(f"x{k}" for k in range(shape[1]))


def _position(wanted: object, known: tuple[str, ...], named: bool) -> int:
    """Return the position of a column that is named or numbered."""
    if isinstance(wanted, str) and not named:
        raise InputError(
            f"variables names the column {wanted!r}, but X has no column names",
            "an earlier step of the pipeline dropped them: keep them with "
            'pipeline.set_output(transform="pandas"), number the column '
            f"(0 to {len(known) - 1}), or pass it to fit as variables=",
        )
    if isinstance(wanted, str):
        if wanted not in known:
            raise InputError.no_column(wanted, known, "variables")
        return known.index(wanted)
    if isinstance(wanted, bool) or not isinstance(wanted, int | np.integer):
        raise InputError(f"variables holds {wanted!r}", "use names or numbers of columns")
    if not -len(known) <= wanted < len(known):
        raise InputError(
            f"variables asks for column {wanted}, but X has {len(known)}",
            f"columns are numbered from 0 to {len(known) - 1}",
        )
    return int(wanted) % len(known)
