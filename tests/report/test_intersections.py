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


def test_the_section_shows_slices_a_map_and_the_number(audit):
    found = combinations(audit.intersections)
    page, text = (render(f"intersections.{form}.j2", found=found) for form in ("html", "md"))
    first, surface = audit.intersections.slices[0], audit.intersections.surface
    assert page.count('class="map"') == 1 and page.count('class="whom"') == 1
    assert page.count('class="tip"') == (surface.n > 0).sum()
    assert "<b>sex" not in page and "&lt;b&gt;sex" in page and "<b>sex" not in text
    for form in (page, text):
        assert f"{100 * first.predicted:.1f}%" in form
        assert f"too high by {100 * first.shrunk:.1f} points" in form
        assert f"{100 * audit.intersections.predictable.low:.1f} points" in form
    # One probability: nothing to name.
    assert "risk ·" not in page and "risk too high by" not in text.split("Over ")[0]


def test_slices_as_markdown(audit):
    found = audit.intersections.slices
    text = slices_markdown(found, audit.intersections.predictable)
    assert text.startswith(f"# {len(found)} slice")
    assert "| Slice | Rows | Says | Happens | Shrunk gap, points | p |" in text
    assert "&lt;b&gt;sex = f" in text and "points of gap can be predicted" in text


def test_with_more_classes_slices_name_theirs():
    rng = np.random.default_rng(2)
    n = 3000
    p = rng.dirichlet([2, 2, 2], n)
    x = rng.random(n)
    true = p * np.where((x > 0.6)[:, None], [0.2, 1, 1], 1)
    true /= true.sum(1, keepdims=True)
    y = np.array(["<b>", "a", "c"])[(rng.random((n, 1)) > true.cumsum(1)).sum(1).clip(0, 2)]
    found = vc.slices(y, p, {"x": x}, classes=["<b>", "a", "c"], draws=39)
    text = slices_markdown(found)
    assert len(found) and "| Slice | About | Rows |" in text
    assert "&lt;b&gt; |" in text and "<b>" not in text


def test_the_next_steps_say_how_to_get_it(rows, audit):
    plain = " ".join(repr(vc.audit(*rows, ladder="none")).split())
    assert "vc.audit(…, slices=True)" in plain
    assert "slices=True" not in " ".join(audit_lines(audit))


def test_saved_audits_keep_it(audit, tmp_path):
    audit.save(tmp_path / "audit.json")
    again = vc.load(tmp_path / "audit.json")
    assert again.intersections.to_dict() == audit.intersections.to_dict()


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
