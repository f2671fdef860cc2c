"""A classifier followed by a calibrator, as one scikit-learn classifier."""

from __future__ import annotations

import warnings
from inspect import signature
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils import Bunch, _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
)

from varcal._arrays import AnyArray, Floats
from varcal._options import check_count, check_flag, checked
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.columns_of_x import ColumnChoice, take_rows
from varcal.calibrators.cross_fitting import (
    FitArguments,
    cross_fit,
    estimator_scores,
    positions,
)
from varcal.calibrators.description import Description
from varcal.calibrators.saved_classifier import SavedClassifier, estimator_name
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
    ensemble : bool
        False: one estimator, fitted on all rows, and one calibrator, fitted on the
        out-of-fold probabilities. True: one of each per fold, and their
        predictions are averaged.
    n_jobs : int, optional
        The number of folds that are fitted in parallel.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    estimator_, calibrator_ : objects
        The fitted estimator and calibrator, unless there are several pairs.
    pairs_ : list of (estimator, calibrator)
        All fitted pairs.
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
        ensemble: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.variables = variables
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
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
        self._separate = variables is not None
        given = FitArguments.of(X, y, variables, sample_weight, groups, time, blocks)
        routed = self._routed(sample_weight, groups, fit_params)
        if isinstance(self.estimator, FrozenEstimator):
            self.classes_ = np.asarray(self.estimator.classes_)
            scores = estimator_scores(self.estimator, X, self.classes_)
            everything = np.arange(len(y))
            self.pairs_ = [(self.estimator, self._calibrated(scores, given, everything))]
        else:
            self.classes_ = np.unique(y)
            self._fit_folds(given, routed)
        if len(self.pairs_) == 1:
            self.estimator_, self.calibrator_ = self.pairs_[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.pairs_[0][0], name):
                setattr(self, name, getattr(self.pairs_[0][0], name))
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
        check_flag("ensemble", self.ensemble)
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

    def _fit_folds(self, given: FitArguments, routed: Bunch) -> None:
        folds = cross_fit(self.estimator, given, self.classes_, self.cv, routed, n_jobs=self.n_jobs)
        if self.ensemble:
            # The last rows of a stratified fold are of one class; the order says nothing else.
            mixed = [np.random.default_rng(0).permutation(len(fold.rows)) for fold in folds]
            self.pairs_ = [
                (fold.model, self._calibrated(fold.scores[order], given, fold.rows[order]))
                for fold, order in zip(folds, mixed, strict=True)
            ]
            return
        scores = np.concatenate([fold.scores for fold in folds])
        tested = np.concatenate([fold.rows for fold in folds])
        order = np.argsort(tested, kind="stable")
        model = clone(self.estimator).fit(given.X, given.y, **routed.estimator.fit)
        self.pairs_ = [(model, self._calibrated(scores[order], given, tested[order]))]

    def _calibrated(self, scores: Floats, given: FitArguments, rows: Any) -> Calibrator:
        """Fit a calibrator on some rows and their scores."""
        X, y, v, sample_weight, units, instants, blocks = given
        if v is None:
            self._choice = ColumnChoice.of(X, self.variables)
            variables = self._choice.columns(_safe_indexing(X, rows))
        else:
            variables = take_rows(v, rows)
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
        calibrator.fit(
            scores,
            codes,
            variables,
            sample_weight=None if sample_weight is None else sample_weight[rows],
            classes=range(len(self.classes_)),
            groups=None if units is None else units[rows],
            time=None if instants is None else instants[rows],
            blocks=blocks if isinstance(blocks, str | bool) else blocks[rows],
        )
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
        scores = [estimator_scores(model, X, self.classes_) for model, _ in self.pairs_]
        if self._separate != (variables is not None):
            raise InputError(
                "variables is missing, though it was given to fit"
                if self._separate
                else "variables is given, though it was not given to fit",
                "give variables= to both or to neither",
            )
        columns = variables if self._separate else self._choice.columns(X)
        answers = [
            calibrator.predict_proba(p, columns)
            for p, (_, calibrator) in zip(scores, self.pairs_, strict=True)
        ]
        return answers[0] if len(answers) == 1 else np.mean(answers, axis=0)

    def predict(self, X: Any, *, variables: Any = None) -> AnyArray:
        """Return the label of the largest calibrated probability, the first one if tied."""
        winners = self.predict_proba(X, variables=variables).argmax(axis=1)
        labels: AnyArray = self.classes_[winners]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, variables: Any = None) -> float:
        """Return the accuracy on rows.

        Parameters
        ----------
        X, y, sample_weight
            Features, labels and weights.
        variables : array-like, frame or dict of columns, optional
            The variables, if they were passed as ``variables=`` to `fit`.
        """
        return float(
            accuracy_score(y, self.predict(X, variables=variables), sample_weight=sample_weight)
        )

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted calibrators as JSON, for `varcal.load`; the estimator is not saved.

        An estimator of another library can only be saved by that library (with joblib or skops for
        scikit-learn, or ONNX). The file holds nothing that is executed when it is loaded.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.linear_model import LogisticRegression
        >>> import varcal as vc
        >>> sim = vc.datasets.make_gap(500)
        >>> X = np.column_stack([sim.p, sim.v])
        >>> fit = VariableCalibratedClassifier(LogisticRegression(), variables=1).fit(X, sim.y)
        >>> path = Path(tempfile.mkdtemp(), "classifier.json")
        >>> fit.save(path)
        >>> again = vc.load(path, estimator=fit.estimator_)
        >>> bool((again.predict_proba(X) == fit.predict_proba(X)).all())
        True
        """
        from varcal.calibrators.saved import CLASSIFIER, classifier_fields  # noqa: PLC0415

        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        saved = SavedClassifier(
            calibrators=tuple(calibrator for _, calibrator in self.pairs_),
            classes=self.classes_,
            choice=None if self._separate else self._choice,
            variables=self.variables,
            calibrator=self.calibrator,
            ensemble=self.ensemble,
            estimators=tuple(estimator_name(model) for model, _ in self.pairs_),
            n_features_in=getattr(self, "n_features_in_", None),
            feature_names_in=None if names is None else tuple(map(str, names)),
        )
        CLASSIFIER.write(path, classifier_fields(saved))

    @classmethod
    def _of(cls, saved: SavedClassifier, pairs: list[tuple[Any, Calibrator]]) -> Self:
        """Return the fitted classifier of a file and its estimators, which stay frozen."""
        model = pairs[0][0]
        found = cls(
            model if isinstance(model, FrozenEstimator) else FrozenEstimator(model),
            variables=saved.variables,
            calibrator=saved.calibrator,
            ensemble=saved.ensemble,
        )
        found.classes_ = saved.classes
        found.pairs_ = pairs
        found._separate = saved.choice is None
        if saved.choice is not None:
            found._choice = saved.choice
        if len(pairs) == 1:
            found.estimator_, found.calibrator_ = pairs[0]
        if saved.n_features_in is not None:
            found.n_features_in_ = saved.n_features_in
        if saved.feature_names_in is not None:
            found.feature_names_in_ = np.array(saved.feature_names_in, dtype=object)
        return found

    def describe(self) -> Description:
        """Describe the fitted calibrator; of an ensemble, the first one."""
        check_is_fitted(self)
        return self.pairs_[0][1].describe()

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which parameters of `fit` go to this object, the estimator and the splitter."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.string = inner.input_tags.string
        return tags
