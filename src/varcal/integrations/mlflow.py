"""Audits in MLflow: metrics for `mlflow.models.evaluate`, and audits logged to a run."""

from __future__ import annotations

import math
import re
import tempfile
from inspect import Parameter, Signature
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varcal.exceptions import InputError, import_library
from varcal.integrations import tool

if TYPE_CHECKING:
    from varcal._audit.result import Audit

__all__ = ["ece_metric", "log_audit", "vece_metric"]

#: What MLflow allows in the name of a metric.
_ODD = re.compile(r"[^\w\-. /]")


def ece_metric(**options: Any) -> Any:
    """Return ECE as an extra metric of `mlflow.models.evaluate`.

    Predictions must be probabilities: evaluate a model whose `predict` returns those of the
    second class, or a frame with a column of them.

    Parameters
    ----------
    **options
        Passed on to `varcal.estimate`, such as `n_bins` or `event`; by default "positive".
    """
    return _metric("ece", None, options)


def vece_metric(variable: str, **options: Any) -> Any:
    """Return VECE along a column of the evaluated data, debiased, as an extra metric.

    Parameters
    ----------
    variable : str
        The column. If its name is not a Python name, map it:
        ``evaluator_config={"col_mapping": {"variable": "hours per week"}}``.
    **options
        Passed on to `varcal.estimate`, such as `n_bins` or `event`; by default "positive".

    Examples
    --------
    Evaluate probabilities in a frame, with the error along a column beside MLflow's own::

        mlflow.models.evaluate(
            data=frame, targets="y", predictions="p", extra_metrics=[vece_metric("age")],
        )
    """
    return _metric(f"vece_{_ODD.sub('_', variable)}", variable, options)


def _metric(name: str, variable: str | None, options: dict[str, Any]) -> Any:
    from varcal._measures.estimate import estimate  # noqa: PLC0415

    models = tool("mlflow.models", "varcal.integrations.mlflow", "make_metric")
    metrics = tool("mlflow.metrics", "varcal.integrations.mlflow", "MetricValue")

    def value(predictions: Any, targets: Any, along: Any) -> Any:
        found = estimate(targets, _probabilities(predictions), along, **{**_POSITIVE, **options})
        figures = {"debiased": found.debiased, "low": found.low, "high": found.high}
        return metrics.MetricValue(aggregate_results=figures | {"p_value": found.p_value})

    def of_columns(predictions: Any, targets: Any, *along: Any) -> Any:
        return value(predictions, targets, along[0] if along else None)

    # MLflow passes the columns that the parameters are named after.
    names = ["predictions", "targets", *([_parameter(variable)] if variable else [])]
    parameters = [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in names]
    of_columns.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return models.make_metric(
        eval_fn=of_columns,
        greater_is_better=False,
        name=name,
        long_name="ECE" if variable is None else f"VECE along {variable}",
        metric_details="Calibration error without the bias of noise, with its interval (varcal)",
    )


_POSITIVE = {"event": "positive"}


def _parameter(variable: str) -> str:
    return variable if variable.isidentifier() and not iskeyword(variable) else "variable"


def _probabilities(predictions: Any) -> Any:
    """Refuse predicted labels in the place of probabilities."""
    values = predictions.to_numpy() if hasattr(predictions, "to_numpy") else predictions
    if getattr(values, "dtype", None) is not None and values.dtype.kind not in "f":
        raise InputError(
            f"predictions are {values.dtype}, not probabilities",
            "evaluate a frame with a column of probabilities: predictions='p'",
            argument="predictions",
        )
    return values


def log_audit(audit: Audit, *, artifact_path: str = "varcal") -> None:
    """Log an audit to the active run of MLflow.

    Figures become metrics (average gap, error by score, uneven error along each variable, each in
    [0, 1]), the verdict becomes a tag, and page, JSON and picture become artifacts.

    Parameters
    ----------
    audit : Audit
        The audit.
    artifact_path : str
        The folder of the artifacts.

    Examples
    --------
    ::

        with mlflow.start_run():
            log_audit(vc.audit(y, p, X))
    """
    mlflow = tool("mlflow", "log_audit", "log_metrics", "log_figure")
    figures = {"average_gap": audit.gap, "by_score": audit.by_score.debiased}
    for row in audit.rows:
        figures[f"uneven/{_ODD.sub('_', row.variable)}"] = row.uneven.debiased
    finite = {f"varcal/{name}": v for name, v in figures.items() if math.isfinite(v)}
    mlflow.log_metrics(finite)
    mlflow.set_tags({"varcal.verdict": audit.verdict, "varcal.sentence": audit.sentence[:5000]})
    with tempfile.TemporaryDirectory() as folder:
        page, plain = Path(folder) / "audit.html", Path(folder) / "audit.json"
        audit.report(page)
        audit.save(plain)
        mlflow.log_artifact(str(page), artifact_path)
        mlflow.log_artifact(str(plain), artifact_path)
    picture = audit.plot().figure
    mlflow.log_figure(picture, f"{artifact_path}/ranking.png")
    import_library("matplotlib.pyplot", "log_audit").close(picture)
