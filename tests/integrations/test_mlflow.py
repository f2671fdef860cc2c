"""Metrics and audits in a real MLflow with a local store; run by ``make test-integrations``."""

import numpy as np
import pandas as pd
import pytest

import varcal as vc

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")


@pytest.fixture
def store(tmp_path):
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.create_experiment("varcal", artifact_location=(tmp_path / "files").as_uri())
    mlflow.set_experiment("varcal")
    yield tmp_path
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def frame():
    sim = vc.datasets.make_gap(2000, "tilt", vece=0.1)
    return pd.DataFrame({"y": sim.y, "p": sim.p, "age": sim.v, "hours per week": sim.v})


def evaluated(frame, metrics, **options):
    with mlflow.start_run():
        return mlflow.models.evaluate(
            data=frame, targets="y", predictions="p", extra_metrics=metrics, **options
        ).metrics


def test_metrics_are_those_of_estimate(store, frame):
    from varcal.integrations.mlflow import ece_metric, vece_metric

    found = evaluated(frame, [ece_metric(), vece_metric("age", n_bins=7)], evaluators="default")
    ece = vc.estimate(frame["y"], frame["p"], event="positive")
    vece = vc.estimate(frame["y"], frame["p"], frame["age"], event="positive", n_bins=7)
    for name in ("debiased", "low", "high", "p_value"):
        assert found[f"ece/{name}"] == pytest.approx(getattr(ece, name))
        assert found[f"vece_age/{name}"] == pytest.approx(getattr(vece, name))


def test_a_column_with_spaces_is_mapped(store, frame):
    from varcal.integrations.mlflow import vece_metric

    found = evaluated(
        frame,
        [vece_metric("hours per week")],
        evaluators="default",
        evaluator_config={"col_mapping": {"variable": "hours per week"}},
    )
    assert found["vece_hours per week/debiased"] > 0.05


def test_labels_instead_of_probabilities_are_refused(store, frame):
    from varcal.integrations.mlflow import ece_metric

    wrong = frame.assign(p=(frame["p"] > 0.5).astype(int))
    with pytest.raises(Exception, match="not probabilities"):
        evaluated(wrong, [ece_metric()], evaluators="default")


def test_an_audit_becomes_metrics_tags_and_files(store, frame):
    from varcal.integrations.mlflow import log_audit

    audit = vc.audit(frame["y"], frame["p"], frame[["age"]], ladder="none")
    with mlflow.start_run() as run:
        log_audit(audit)
    client = mlflow.tracking.MlflowClient()
    kept = client.get_run(run.info.run_id).data
    assert kept.metrics["varcal/uneven/age"] == pytest.approx(audit.row("age").uneven.debiased)
    assert kept.metrics["varcal/average_gap"] == pytest.approx(audit.gap)
    assert kept.tags["varcal.verdict"] == "repair"
    names = {one.path for one in client.list_artifacts(run.info.run_id, "varcal")}
    assert names == {"varcal/audit.html", "varcal/audit.json", "varcal/ranking.png"}
    file = client.download_artifacts(run.info.run_id, "varcal/audit.json")
    assert np.isclose(vc.load(file).gap, audit.gap)
