"""Logits of a PyTorch model are taken as they are; run by ``make test-integrations``."""

import numpy as np
import pytest

import varcal as vc

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("n_classes", [1, 3])
def test_logits_of_a_network(n_classes):
    torch.manual_seed(0)
    X = torch.randn(600, 4)
    logits = torch.nn.Linear(4, n_classes)(X)
    if n_classes == 1:
        logits = logits[:, 0]
        p = torch.sigmoid(logits)
        y = (torch.rand(600) < p).long()
    else:
        p = torch.softmax(logits, dim=1)
        y = torch.multinomial(p, 1)[:, 0]
    given = {"y": y.numpy(), "v": X[:, 0].numpy(), "classes": list(range(max(n_classes, 2)))}
    raw, known = logits.detach().cpu().numpy(), p.detach().cpu().numpy().astype(np.float64)
    known = known if n_classes == 1 else known / known.sum(axis=1, keepdims=True)
    found = vc.vece(p=raw, from_logits=True, **given)
    assert found == pytest.approx(vc.vece(p=known, **given), abs=1e-5)
    fit = vc.calibrators.TemperatureCalibrator().fit(
        raw, y.numpy(), classes=given["classes"], from_logits=True
    )
    assert fit.predict_proba(raw, from_logits=True).shape == (600, max(n_classes, 2))
