"""The base class of all calibrators: fitting, predicting, describing and saving."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from inspect import signature
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from varcal import _options as options
from varcal._arrays import AnyArray, Floats
from varcal._input.frames import frame_of
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable, present_levels
from varcal._options import Check, checked
from varcal._text import Shown, text_table
from varcal._threads import one_blas_thread
from varcal.calibrators import rows as checked_rows
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.rows import CalibrationRows, consistent, score_names
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import Step, class_scores
from varcal.exceptions import CorrelatedRowsWarning, InputError, InSampleWarning, VarcalWarning

if TYPE_CHECKING:
    from varcal._export.onnx_export import OnnxExport
    from varcal._export.python_export import PythonExport
    from varcal._export.sql_export import SqlExport

#: The variables of calibrators that use the score alone.
NO_VARIABLES = Schema()


def parameter(default: Any, check: Check, **settings: Any) -> Any:
    """Return the field of a parameter of a calibrator's constructor, which `fit` checks."""
    return field(default=default, metadata={"check": check}, **settings)


@dataclass(frozen=True, repr=False)
class Description(Shown):
    """The description that a calibrator's `describe()` returns.

    Attributes
    ----------
    calibrator : str
        The name of the calibrator's class.
    words : str
        A few sentences.
    rows : tuple of dict
        The table: one dict per row, all with the same keys.

    Examples
    --------
    >>> shown = Description("PlattCalibrator", "One sentence.", ({"slope": 1.25, "n": 3},))
    >>> print(shown)
    PlattCalibrator. One sentence.
    slope  n
    1.25   3
    """

    calibrator: str
    words: str
    rows: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self) | {"rows": [dict(row) for row in self.rows]}

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the table as a frame of the given library, by default pandas."""
        names = list(self.rows[0]) if self.rows else []
        return frame_of({name: [row[name] for row in self.rows] for name in names}, backend)

    def __str__(self) -> str:
        head, cells, _ = self._shown()
        return f"{head}\n{text_table(cells)}" if cells else head

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        names = list(self.rows[0]) if self.rows else []
        cells = {name: [_formatted(row[name]) for row in self.rows] for name in names}
        return f"{self.calibrator}. {self.words}", cells, ""


class Estimator(ABC):
    """Parameters, their checks and descriptions: what scikit-learn asks of an estimator.

    It does not inherit from scikit-learn's base class, which takes three times as long to load as
    all else that a prediction needs.

    Attributes
    ----------
    read_from_file : bool
        Whether the fitted values come from a file; every answer is then checked.
    """

    read_from_file: bool = False

    def describe(self) -> Description:
        """Describe the fit in words (`str`) and as a table (`to_frame`)."""
        self._check_fitted()
        with consistent(self.read_from_file):
            words, table = self._describe()
        return Description(type(self).__name__, words, tuple(table))

    def _check_fitted(self) -> None:
        """Refuse to go on before `fit`."""
        if not self.__sklearn_is_fitted__():
            from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415  slow to ask

            check_is_fitted(self)

    def _check_parameters(self) -> None:
        """Refuse parameters of the constructor that cannot be used."""
        declared = {each.name: each.metadata for each in fields(cast(Any, self)) if each.init}
        checks = {name: held["check"] for name, held in declared.items() if "check" in held}
        options.check_parameters(checks, self)

    @abstractmethod
    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        """Return a description of the fit: sentences and a table."""

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether `fit` was called."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor; if `deep`, also those of calibrators inside."""
        found = {name: getattr(self, name) for name in sorted(signature(type(self)).parameters)}
        for name, inner in list(found.items()) if deep else ():
            if isinstance(inner, Estimator):
                found |= {f"{name}__{key}": each for key, each in inner.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the constructor; `name__inner` sets one of a calibrator inside."""
        known = self.get_params()
        for name, value in params.items():
            options.check_choice("the name of a parameter", name, [*known])
            outer, _, inner = name.partition("__")
            if inner:
                known[outer].set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = signature(type(self)).parameters
        params = self.get_params(deep=False).items()
        shown = [f"{k}={v!r}" for k, v in params if repr(v) != repr(usual[k].default)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator  # noqa: PLC0415  slow to load

        return BaseEstimator.__sklearn_tags__(self)


class Calibrator(Estimator):
    """A map from uncalibrated to calibrated probabilities, as a scikit-learn estimator.

    A subclass defines how it is fitted (`_learn`), the steps of a prediction, which exports
    translate (`_steps`) and how it describes its fit (`_describe`). It is a dataclass: its fields
    are the parameters of the constructor (`parameter`) and the fitted attributes, with
    ``init=False``, whose types are the schema of saved files.

    Attributes
    ----------
    classes_ : ndarray
        The labels, in the order of the columns of `predict_proba`.
    n_features_in_ : int
        The number of columns of p in `fit`, 1 for a vector.
    score_names_ : tuple of str
        The names of the columns of p in `fit`; empty for arrays.
    separated_ : bool
        Whether the fit has no finite optimum, because the scores separate the classes.
    """

    classes_: AnyArray
    n_features_in_: int
    score_names_: tuple[str, ...]
    separated_: bool
    _uses_variables: ClassVar[bool] = False
    _needs_variables: ClassVar[bool] = False
    _uses_groups: ClassVar[bool] = False
    _fits_one_class: ClassVar[bool] = False
    #: What happens to a class without rows.
    _without_rows: ClassVar[str] = (
        "its calibrated probability is derived from the other classes alone"
    )
    #: Sums over the calibration rows, by which `predict_proba` recognizes them; not saved.
    _fitted_sums: Floats | None = None

    def fit(
        self,
        p: object,
        y: object,
        X: object = None,
        *,
        sample_weight: object = None,
        classes: Sequence[Hashable] | None = None,
        pos_label: Hashable = None,
        groups: object = None,
        time: object = None,
        blocks: object = "auto",
        from_logits: bool = False,
    ) -> Self:
        """Fit on rows that the classifier was not trained on.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, K)
            The uncalibrated probabilities; a vector holds P(y = pos_label).
        y : array-like of shape (n,)
            The labels.
        X : array-like, frame or dict of columns, optional
            The variables; score-based calibrators ignore them.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 counts as two equal rows; a row of weight 0 is left out.
        classes : sequence, optional
            The labels in the order of the columns of `p`; needed if that is not their sorted order
            or if some classes have no rows.
        pos_label : label, optional
            The class that a vector `p` is about, of two; the second one by default. It becomes the
            second of `classes_`, so that a vector and the second column of `predict_proba` are
            about this class from then on, in exports as well.
        groups : array-like of shape (n,), optional
            The unit (patient, customer, …) of each row; used by calibrators that hold out rows.
        time : str or array-like of shape (n,), optional
            When each row was made: dates or numbers, or the name of a column of `X`. Calibrators
            that hold out rows then judge a model on rows that are later than those that fitted it.
        blocks : "auto", False, str or array-like of shape (n,)
            Which rows are correlated, as those of the same day often are. By default, calibrators
            that hold out rows search the variables for such blocks, unless `groups` or `time` is
            given, and apply only what helps in blocks that the fit has not seen. False: new rows
            will come from the same blocks. Otherwise the name of a column of `X`, or the block of
            each row.
        from_logits : bool
            Whether `p` holds logits: (n,) log-odds of `pos_label`, (n, K) logits. The fit does not
            remember it: say it in `predict_proba`, too. Exports, `scorer` and `apply` take
            probabilities only, and refuse other scores or give NaN.

        Returns
        -------
        self
        """
        given = (p, y, X, sample_weight, classes, groups, time, blocks, pos_label)
        rows, n_columns = checked_rows.labelled_rows(*given, from_logits=from_logits)
        absent = np.flatnonzero(~rows.present())
        if absent.size == rows.n_classes - 1 and not self._fits_one_class:
            raise InputError(
                f"y holds only the class {rows.classes[int(rows.y[0])]!r}",
                "a calibrator needs rows of at least two classes",
            )
        with one_blas_thread():
            self._fit_rows(rows)
        self.n_features_in_ = n_columns
        self.score_names_ = score_names(p)
        for caution in self._notes([rows.classes[k] for k in absent]):
            warnings.warn(caution, VarcalWarning, stacklevel=2)
        for caution in self._cautions():
            warnings.warn(caution, CorrelatedRowsWarning, stacklevel=2)
        return self

    def _notes(self, absent: Sequence[object]) -> Iterator[str]:
        """Yield what the user should know about a fit, given the classes without rows."""
        if absent:
            yield f"no row of class {_first_few(absent)}: {self._without_rows}"
        if self._schema.silent:
            yield (
                f"variable {_first_few(self._schema.silent)} is missing at every row, and left "
                "out: its values in predict_proba will be ignored"
            )
        if self.separated_:
            yield (
                "the scores tell the classes apart with certainty, so the fitted probabilities "
                "go to 0 and 1; a penalty (l2=1) or more rows prevent that"
            )

    def predict_proba(self, p: object, X: object = None, *, from_logits: bool = False) -> Floats:
        """Return calibrated probabilities, one column per class.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, K)
            The uncalibrated probabilities; a vector holds P(y = second of `classes_`).
        X : array-like, frame or dict of columns, optional
            The variables that the calibrator was fitted on.
        from_logits : bool
            Whether `p` holds logits.

        Returns
        -------
        ndarray of shape (n, K)
        """
        rows = self._new_rows(p, X, from_logits)
        with consistent(self.read_from_file):
            answer = self._answer(rows)
        if self.read_from_file:
            checked_rows.refuse_invalid(answer, rows, normalized=self._normalized)
        if self._is_of_fit(rows):
            warnings.warn(
                f"these are the rows that this {type(self).__name__} was fitted on: its "
                "probabilities look better calibrated on them than they are; judge it on rows "
                "that it has not seen",
                InSampleWarning,
                stacklevel=2,
            )
        return answer

    def _is_of_fit(self, rows: CalibrationRows) -> bool:
        """Tell whether these are the calibration rows, in any order; unknown after loading."""
        known = self._fitted_sums
        if known is None or known[0] != len(rows):
            return False
        sums = rows.sums(with_variables=self._uses_variables)
        return sums.shape == known.shape and np.allclose(sums, known, rtol=1e-12, atol=0)

    def _cautions(self) -> tuple[str, ...]:
        """Return what the user should know about rows that are not independent."""
        return ()

    @property
    def _normalized(self) -> bool:
        """Whether the probabilities of a row sum to 1."""
        return True

    def _new_rows(self, p: object, X: object, from_logits: bool = False) -> CalibrationRows:
        """Check rows to predict, against what the calibrator was fitted on."""
        self._check_fitted()
        self._check_names(p)
        rows = checked_rows.score_rows(p, X, len(self.classes_), from_logits=from_logits)
        self._schema.check_zones(rows.variables)
        return rows

    def _check_names(self, p: object) -> None:
        """Refuse columns of p whose names or order differ from those in `fit`."""
        given = score_names(p)
        if len(given) < 2 or len(self.score_names_) != len(given) or given == self.score_names_:
            return
        raise InputError(
            f"p has the columns {list(given)}, but the calibrator was fitted on "
            f"{list(self.score_names_)}",
            "give the same columns in the same order",
        )

    def predict(self, p: object, X: object = None, *, from_logits: bool = False) -> AnyArray:
        """Return the label of the largest calibrated probability, the first one if tied."""
        winners = self.predict_proba(p, X, from_logits=from_logits).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted calibrator as JSON, which `varcal.load` reads.

        An existing file is only replaced once the new one is complete.
        """
        from varcal.calibrators.saved import CALIBRATOR, fields_of  # noqa: PLC0415  imports this

        self._check_fitted()
        CALIBRATOR.write(path, {"calibrator": fields_of(self)})

    def scorer(self) -> Callable[..., Any]:
        """Return a function of one row that is many times as fast as `predict_proba`.

        Returns
        -------
        callable
            It takes a score (with more than two classes a sequence of one probability per class)
            and a mapping of the variables by name, and returns the calibrated probability of the
            second class (with more classes a tuple).

        Examples
        --------
        >>> import varcal as vc
        >>> sim = vc.datasets.make_gap(2000, "tilt", vece=0.1, random_state=0)
        >>> fitted = vc.VariableCalibrator().fit(sim.p, sim.y, {"age": 20 + 60 * sim.v})
        >>> score = fitted.scorer()
        >>> slow = fitted.predict_proba([0.83], {"age": [41]}).item(1)
        >>> abs(score(0.83, {"age": 41}) - slow) < 1e-12
        True
        """
        from varcal._export.python_export import scorer  # noqa: PLC0415

        return scorer(self)

    def to_python(self) -> PythonExport:
        """Return the source of a Python module that imports only the standard library.

        Its function ``calibrate(p, X)`` gives for one row what `predict_proba` gives.

        Examples
        --------
        >>> import varcal as vc
        >>> fitted = vc.calibrators.PlattCalibrator().fit([0.2, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> exported = fitted.to_python()
        >>> exported.check().n_rows
        200
        """
        from varcal._export.python_export import to_python  # noqa: PLC0415

        return to_python(self)

    def to_onnx(self) -> OnnxExport:
        """Return an ONNX model in double precision, for onnxruntime and services that use it.

        It needs the extra ``onnx``. Inputs and outputs are described at `OnnxExport`.
        """
        from varcal._export.onnx_export import to_onnx  # noqa: PLC0415

        return to_onnx(self)

    @checked(
        table=options.check_names,
        p=options.or_none(options.check_names),
        X=options.or_none(options.check_renamed),
        keep=options.check_names,
        column=options.check_one_line,
    )
    def to_sql(
        self,
        dialect: str,
        *,
        table: str | Sequence[str] = "scores",
        p: str | Sequence[str] | None = None,
        X: Mapping[str, str] | None = None,
        keep: str | Sequence[str] = (),
        column: str = "p_calibrated",
    ) -> SqlExport:
        """Return a query that calibrates the rows of a table in a database.

        It needs the extra ``sql``.

        Parameters
        ----------
        dialect : {"duckdb", "postgres", "spark", "bigquery", "snowflake"}
            The database. The first three are tested by running queries; for the others queries
            are parsed, and use nothing but what all five have in common.
        table : str or sequence of str
            The table; dots separate the parts of its name, unless these are given one by one.
        p : str or sequence of str, optional
            The column of the score, or one per class if there are more than two. By default the
            names in `fit`, otherwise ``p``, or ``p_`` and the label of each class.
        X : mapping of str to str, optional
            The columns of variables that have other names than in `fit`.
        keep : str or sequence of str
            Columns that the result repeats, such as a key. Without any, it has a row number.
        column : str
            The name of the new column, the probability of the second class. With more than two
            classes there is one per class, named ``f"{column}_{label}"``.

        Returns
        -------
        SqlExport
            The query, and methods to run and to check it.

        Examples
        --------
        >>> import varcal as vc
        >>> fitted = vc.calibrators.PlattCalibrator().fit([0.2, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> exported = fitted.to_sql("duckdb", table="predictions", p="score", keep="id")
        >>> print(exported.query.splitlines()[1])
        -- It gives what predict_proba gives, within 1e-8.
        """
        from varcal._export.sql_export import to_sql  # noqa: PLC0415

        options = {"table": table, "p": p, "X": X, "keep": keep, "column": column}
        return to_sql(self, dialect, options)

    def _fit_rows(self, rows: CalibrationRows) -> Self:
        """Fit on rows that have been checked, as calibrators inside another one are."""
        self._check_parameters()
        self.__dict__.pop("_outputs", None)
        self.read_from_file = False
        self.separated_ = False
        self.score_names_ = ()
        self._learn(rows)
        self.classes_ = _label_array(rows.classes)
        self.n_features_in_ = 1 if rows.p.ndim == 1 else rows.n_classes
        self._fitted_sums = rows.sums(with_variables=self._uses_variables)
        return self

    def _unfitted(self) -> Self:
        """Return a calibrator with the same parameters."""
        return type(self)(**self.get_params(deep=False))

    @classmethod
    def _fitted_names(cls) -> tuple[str, ...]:
        """Return the fitted attributes, which files hold."""
        own = [each.name for each in fields(cast(Any, cls)) if not each.init]
        return ("classes_", "n_features_in_", "score_names_", "separated_", *own)

    @abstractmethod
    def _learn(self, rows: CalibrationRows) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the steps from the probabilities of all classes to the calibrated ones."""

    @cached_property
    def _outputs(self) -> tuple[Step, ...]:
        """The steps to the calibrated probability of each class."""
        return self._steps(class_scores(len(self.classes_)))

    @property
    def _schema(self) -> Schema:
        """The variables of the fit."""
        found: Schema = getattr(self, "schema_", NO_VARIABLES)
        return found

    def _answer(self, rows: CalibrationRows) -> Floats:
        """Return the calibrated probabilities, shape (n, K)."""
        schema = self._schema
        columns = schema.align(rows.variables) if schema.names else []
        return evaluate(self._outputs, rows.p, columns, [*map(len, schema.levels)])

    def __getstate__(self) -> dict[str, Any]:
        # Steps are made again where they are needed.
        return {name: value for name, value in vars(self).items() if name != "_outputs"}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")


@one_blas_thread()
def calibrate_held_out(calibrator: Calibrator, learn: Predictions, held: Predictions) -> Floats:
    """Fit on some checked rows; return probabilities of others, in the shape that theirs have.

    Both have the same classes and variables, and `learn` has rows of two classes with weight.
    Sampling weights are divided by their mean, as the warning of `fit` advises.

    >>> from varcal.calibrators import PlattCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 4000)
    >>> learn, held = (Predictions.of(rng.random(4000) < p**2, p) for _ in range(2))
    >>> q = calibrate_held_out(PlattCalibrator(), learn, held)
    >>> abs(float(q.mean() - held.y.mean())) < 0.02
    True
    """
    if learn.weight is not None:
        learn = learn.take(learn.weight > 0)
    weight = learn.weight
    if weight is not None and checked_rows.are_sampling_weights(weight):
        weight = weight / float(weight.mean())
    fit, new = (
        CalibrationRows(
            checked_rows.second_column(each.p),
            each.classes,
            each.y,
            variables=tuple(map(_present, each.variables)),
        )
        for each in (learn, held)
    )
    calibrator._fit_rows(replace(fit, weight=weight, groups=learn.groups))
    answer = calibrator._answer(new)
    return answer if held.p.ndim == 2 else answer[:, 1]


def _present(variable: Variable) -> Variable:
    """Return a variable without the levels that have no row, as if only these rows were known."""
    if variable.kind != "levels":
        return variable
    codes, levels = present_levels(variable.values, variable.levels)
    return replace(variable, values=codes, levels=tuple(levels))


def _first_few(labels: Sequence[object]) -> str:
    return ", ".join(map(repr, labels[:5])) + (" …" if len(labels) > 5 else "")


def _label_array(labels: tuple[Hashable, ...]) -> AnyArray:
    """Return labels as an array that keeps their types: numbers never become strings."""
    alike = len({type(label) for label in labels}) == 1 and isinstance(labels[0], bool | int | str)
    # Beyond 2**63, numpy would make floats of some whole numbers.
    if alike and not any(isinstance(label, int) and abs(label) >= 2**63 for label in labels):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _formatted(value: object) -> str:
    """Format with six digits: coefficients of unscaled variables are small."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
