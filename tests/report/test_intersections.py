"""Slices and the predictable gap in audits and in every form of a report."""

import json
import re

import pytest

import varcal as vc
from cases.slices import planted


@pytest.fixture(scope="module")
def rows():
    y, p, X, _ = planted(4000)
    return y, p, {"age": X["age"], "<b>sex": X["sex"], "noise": X["x"]}


@pytest.fixture(scope="module")
def audit(rows):
    return vc.audit(*rows, slices=True, ladder="none")


def test_an_audit_has_slices_and_a_number(audit, rows):
    found = audit.intersections
    assert {one.variable for one in found.slices[0].conditions} == {"age", "<b>sex"}
    assert found.predictable.low > 0
    alone = vc.predictable_gap(*rows)
    assert found.predictable.value == alone.value
    assert vc.audit(*rows, ladder="none").intersections is None


def written(audit, folder):
    """Return the page, the Markdown and the JSON of a report."""
    paths = [folder / f"report.{ending}" for ending in ("html", "md", "json")]
    for path in paths:
        audit.report(path)
    return [path.read_text(encoding="utf-8") for path in paths]


def test_every_form_says_it(audit, tmp_path):
    page, text, data = written(audit, tmp_path)
    first = audit.intersections.slices[0]
    said = f"{100 * first.predicted:.1f}%"
    assert "Combinations of variables" in page and 'id="intersections"' in page
    assert "<b>sex" not in page
    assert said in page and said in text
    assert "Combinations of variables" in text
    parsed = json.loads(data)["intersections"]
    assert parsed["slices"]["slices"][0]["rule"] == first.rule
    assert parsed["predictable"]["low"] == pytest.approx(audit.intersections.predictable.low)
    lines = repr(audit).splitlines()
    assert re.search(r"at least [\d.]+ points of gap can be predicted", " ".join(lines))
    assert max(map(len, lines)) <= 80


def test_a_calibrated_model_has_no_slice(tmp_path):
    y, p, X, _ = planted(2000, seed=1, gap=0.0)
    audit = vc.audit(y, p, X, slices=True, ladder="none")
    assert not len(audit.intersections.slices)
    assert "No slice is clearly off." in str(audit.intersections.sentence)
    for text in written(audit, tmp_path)[:2]:
        assert "No slice of up to three variables is clearly off." in text
        assert "no gap that is surely above zero" in text
