"""A check for reports of skore: whether probabilities are wrong along a variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from varcal.exceptions import InputError
from varcal.integrations import tool

__all__ = ["CalibrationCheck"]


class CalibrationCheck:
    """A check of skore: the probabilities of a classifier along its columns.

    It reports an issue if the verdict of an audit on the test rows is "repair", with the sentence
    of the audit and where the model is most wrong.

    Parameters
    ----------
    variables : frame or dict of columns, optional
        Variables of the test rows that the model does not see, as in `audit_estimator`.
    **options
        Passed on to `varcal.audit`, such as `limit`.

    Examples
    --------
    ::

        report = skore.EstimatorReport(model, X_test=X, y_test=y)
        report.checks.add([CalibrationCheck(limit=0.03)])
        report.checks.summarize()
    """

    code = "VARCAL001"
    title = "Probabilities are wrong along a variable"
    report_types = ("estimator",)
    docs_url = None
    severity = "issue"
    slow = False

    def __init__(self, variables: Any = None, **options: Any) -> None:
        self.report_types = ["estimator"]  # type: ignore[assignment]  # skore wants a list
        self.variables, self.options = variables, options

    def check_function(self, report: Any) -> str | None:
        """Return what is wrong, or None."""
        from varcal._audit.audit import audit_estimator  # noqa: PLC0415

        skore = tool("skore", "CalibrationCheck", "Check", "CheckNotApplicable")
        if report.X_test is None or report.y_test is None:
            raise skore.CheckNotApplicable("There are no test rows.")
        model = report.estimator_
        if not hasattr(model, "classes_"):
            raise skore.CheckNotApplicable("The model is not a classifier.")
        X = report.X_test if hasattr(report.X_test, "columns") else np.asarray(report.X_test)
        try:
            found = audit_estimator(
                model, X, report.y_test, variables=self.variables, ladder="none", **self.options
            )
        except InputError as error:
            raise skore.CheckNotApplicable(str(error)) from error
        return found.sentence if found.verdict == "repair" else None
