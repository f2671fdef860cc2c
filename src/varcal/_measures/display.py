"""`VariableCalibrationDisplay`: a variable plot, used like scikit-learn's `CalibrationDisplay`."""

from __future__ import annotations

from typing import Any

import numpy as np

from varcal._measures.curve import curve
from varcal._measures.curve_result import Curve
from varcal._measures.metrics import column_of_features
from varcal.exceptions import InputError


class VariableCalibrationDisplay:
    """A plot of what is predicted and observed along a variable, with bands.

    Make it with `from_predictions` or `from_estimator`.

    Parameters
    ----------
    curve : Curve
        What is drawn, the result of `varcal.curve`.

    Attributes
    ----------
    curve : Curve
        What is drawn.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        Its figure.

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(1000, "tilt", vece=0.1)
    >>> display = vc.VariableCalibrationDisplay.from_predictions(sim.y, sim.p, sim.v, name="age")
    >>> display.ax_.get_xlabel().splitlines()[0]
    'age'
    """

    def __init__(self, curve: Curve) -> None:
        self.curve = curve

    def plot(self, *, ax: Any = None) -> VariableCalibrationDisplay:
        """Draw the curve, on a new figure by default, and return the display."""
        self.ax_ = self.curve.plot(ax=ax)
        self.figure_ = self.ax_.figure
        return self

    @classmethod
    def from_predictions(
        cls,
        y_true: object,
        y_prob: object,
        v: object,
        *,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> VariableCalibrationDisplay:
        """Draw predictions along a variable.

        Parameters
        ----------
        y_true, y_prob : array-like
            Labels, and probabilities as in `varcal.ece`.
        v : array-like
            The variable.
        name : str, optional
            Its name on the plot; that of a series by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed on to `varcal.curve`. With two classes, `event` is "positive" by default: the
            probability of `pos_label`, as in scikit-learn.

        Returns
        -------
        VariableCalibrationDisplay
        """
        shape = np.asarray(y_prob).shape
        options = {"event": "correct" if shape[1:] > (2,) else "positive", **options}
        named = v if name is None else {name: v}
        return cls(curve(y_true, y_prob, named, **options)).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: object,
        v: object,
        *,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> VariableCalibrationDisplay:
        """Draw a fitted classifier along a column of its features, or along another variable.

        Parameters
        ----------
        estimator : fitted classifier
            With `predict_proba` and `classes_`.
        X : frame or array
            The features, of rows that the classifier was not trained on.
        y : array-like
            The labels.
        v : str, int or array-like
            The name or position of a column of X, or a variable that X does not have.
        name, ax, **options
            As in `from_predictions`.

        Returns
        -------
        VariableCalibrationDisplay
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"estimator has no predict_proba: {type(estimator).__name__}",
                "give a fitted classifier with probabilities; audit_estimator takes margins, too",
                argument="estimator",
            )
        if isinstance(v, str | int):
            name = str(v) if name is None else name
            v = column_of_features(X, v)
        p = np.asarray(estimator.predict_proba(X))
        options = {"classes": list(estimator.classes_), **options}
        return cls.from_predictions(y, p, v, name=name, ax=ax, **options)
