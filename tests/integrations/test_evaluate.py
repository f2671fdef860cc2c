"""The metric of Hugging Face's evaluate, from its folder; run by ``make test-integrations``."""

import pytest

import varcal as vc

evaluate = pytest.importorskip("evaluate", reason="evaluate is not installed")


def test_the_metric_is_that_of_estimate(monkeypatch, tmp_path):
    from varcal.integrations import evaluate_folder

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    sim = vc.datasets.make_gap(2000, "tilt", vece=0.1)
    metric = evaluate.load(evaluate_folder(), cache_dir=str(tmp_path))
    found = metric.compute(predictions=sim.p, references=sim.y, variable=sim.v, n_bins=7)
    vece = vc.estimate(sim.y, sim.p, sim.v, event="positive", n_bins=7)
    assert found["vece"] == pytest.approx(vece.debiased)
    assert found["vece_high"] == pytest.approx(vece.high)
    assert set(metric.compute(predictions=sim.p, references=sim.y)) == {
        "ece",
        "ece_low",
        "ece_high",
        "ece_p_value",
    }
