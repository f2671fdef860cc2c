from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from varcal.experiments._loess import interpolated_loess, loess_vertices

PAPER = Path(
    os.environ.get("VARCAL_PAPER_DATA")
    or Path(__file__).resolve().parents[3] / "shared" / "data" / "paper"
)


@pytest.mark.parametrize("digits", [None, 0, 1])
@pytest.mark.parametrize("span", [0.3, 0.9])
def test_equals_scikit_misc(digits, span):
    loess = pytest.importorskip("skmisc.loess").loess
    rng = np.random.default_rng(0)
    x = rng.gamma(2, size=800) * 5
    x = np.sort(x if digits is None else np.round(x, digits))
    y = np.sin(x) + rng.normal(size=800)
    at = np.linspace(*np.quantile(x, [0.01, 0.99]), 200)
    peer = loess(x, y, span=span, degree=2)
    peer.fit()
    np.testing.assert_allclose(
        interpolated_loess(x, y, at, span=span), peer.predict(at).values, atol=1e-9
    )


def test_vertices_lie_within_a_slightly_wider_box():
    x = np.sort(np.random.default_rng(1).normal(size=300))
    knots = loess_vertices(x, span=0.5)
    assert knots[0] == pytest.approx(x[0] - 0.005 * np.ptp(x))
    assert knots[-1] == pytest.approx(x[-1] + 0.005 * np.ptp(x))
    assert np.isin(knots[1:-1], x).all()
    inside = np.histogram(x, knots)[0]
    assert inside.max() <= 0.2 * 0.5 * 300 + 1


def test_a_single_value_gives_its_mean():
    curve = interpolated_loess(np.full(50, 3.0), np.arange(50.0), [3.0], span=0.9)
    assert curve == pytest.approx([24.5])


@pytest.mark.skipif(not PAPER.is_dir(), reason=f"the paper's model outputs are not in {PAPER}")
def test_worst_gaps_of_the_paper():
    pandas = pytest.importorskip("pandas")
    from sklearn.linear_model import LogisticRegression

    frame = pandas.read_csv(PAPER / "adult_out.csv.gz")
    order = np.random.RandomState(0).permutation(len(frame))
    test = np.ones(len(frame), bool)
    test[order[:2500]] = False
    p = frame["prob_1"].to_numpy().copy()
    p[p == 0], p[p == 1] = 1e-4, 1 - 1e-4
    features = np.column_stack([np.log(p), -np.log1p(-p)])
    model = LogisticRegression(C=1, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    model.fit(features[order[:2500]], frame["actual"].to_numpy()[order[:2500]])
    confidence = model.predict_proba(features[test]).max(axis=1)
    held = frame[test]
    wrong = (held["pred"] != held["actual"]).to_numpy()
    responses = 100 * np.column_stack([wrong, 1 - confidence])
    published = {
        "age": 23.437438,
        "fnlwgt": 12.080860,
        "education-num": 20.127376,
        "hours-per-week": 18.205070,
    }
    for name, worst in published.items():
        x = held[name].to_numpy(float)
        rank = np.argsort(x, kind="stable")
        at = np.linspace(*np.quantile(x, [0.05, 0.95]), 500)
        curves = interpolated_loess(x[rank], responses[rank], at, span=0.9)
        assert np.abs(curves[:, 0] - curves[:, 1]).max() == pytest.approx(worst, abs=1e-5), name
