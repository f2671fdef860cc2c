"""Slices, a surface and the predictable gap in audits and in every form of a report."""

import json
import re

import numpy as np
import pytest

import varcal as vc
from varcal._report.audit_text import audit_lines
from varcal._report.intersections import combinations, slices_markdown
from varcal._report.page import render


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 4000
    X = {
        "age": rng.integers(20, 80, n),
        "<b>sex": rng.choice(["f", "m"], n),
        "noise": rng.random(n),
    }
    p = rng.uniform(0.3, 0.7, n)
    wrong = (X["age"] > 50) & (X["<b>sex"] == "f")
    y = (rng.random(n) < p - 0.25 * wrong).astype(int)
    return y, p, X


@pytest.fixture(scope="module")
def audit(rows):
    return vc.audit(*rows, slices=True, ladder="none")


def test_an_audit_has_slices_a_surface_and_a_number(audit, rows):
    found = audit.intersections
    assert {one.variable for one in found.slices[0].conditions} == {"age", "<b>sex"}
    assert {found.surface.first.name, found.surface.second.name} == {"age", "<b>sex"}
    assert found.predictable.low > 0
    alone = vc.predictable_gap(*rows)
    assert found.predictable.value == alone.value
    assert vc.audit(*rows, ladder="none").intersections is None


def test_every_form_says_it(audit, tmp_path):
    for name in ("report.html", "report.md", "report.json"):
        audit.report(tmp_path / name)
    page, text, data = (
        (tmp_path / name).read_text(encoding="utf-8")
        for name in ("report.html", "report.md", "report.json")
    )
    first = audit.intersections.slices[0]
    said = f"{100 * first.predicted:.1f}%"
    assert "Combinations of variables" in page and 'id="intersections"' in page
    assert page.count('class="map"') == 1 and "<b>sex" not in page
    assert said in page and said in text
    assert "Combinations of variables" in text
    parsed = json.loads(data)["intersections"]
    assert parsed["slices"]["slices"][0]["rule"] == first.rule
    assert parsed["surface"]["first"]["name"] == audit.intersections.surface.first.name
    assert parsed["predictable"]["low"] == pytest.approx(audit.intersections.predictable.low)
    lines = audit_lines(audit)
    told = " ".join(lines)
    assert re.search(r"at least [\d.]+ points of gap can be predicted", told)
    assert max(map(len, lines)) <= 80


def test_a_calibrated_model_has_no_slice():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.2, 0.8, 2000)
    y = (rng.random(2000) < p).astype(int)
    X = {"a": rng.random(2000), "b": rng.choice(["x", "y"], 2000)}
    found = vc.audit(y, p, X, slices=True, ladder="none").intersections
    assert not len(found.slices)
    assert "No slice is clearly off." in str(found.sentence)
    told = combinations(found)
    for form in ("html", "md"):
        text = render(f"intersections.{form}.j2", found=told)
        assert "No slice of up to three variables is clearly off." in text
        assert "no gap that is surely above zero" in text
    assert slices_markdown(found.slices).startswith("# No slice clearly off")
