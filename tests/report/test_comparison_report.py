"""Reports of comparisons."""

import re

import numpy as np
import pytest

import varcal as vc
from cases.audits import IMAGE, MARKS, SCRIPT
from cases.page import read
from varcal._report.comparison import comparison_html, comparison_markdown


@pytest.fixture(scope="module")
def world():
    """Rows whose gap changes along v and a level, but not along noise and dates."""
    rng = np.random.default_rng(3)
    sim = vc.datasets.make_gap(3000, "tilt", vece=0.1)
    when = np.datetime64("2021-01-01") + rng.integers(0, 500, len(sim.y)).astype("m8[D]")
    side = np.where(sim.v > np.median(sim.v), "high", "low")
    return sim, {"noise": rng.normal(size=len(sim.y)), "v": sim.v, "side": side, "when": when}


@pytest.fixture(scope="module")
def found(world):
    sim, X = world
    worse = np.clip(sim.p + 0.1 + 0.3 * (sim.v - 0.5), 0, 1)
    return vc.compare(sim.y, {"raw": sim.p, "truth": sim.rate, "worse": worse}, X)


def headlines(found):
    return [one.text() for one in read(comparison_html(found, "x")).all("p", "headline")]


def test_headlines_say_what_was_fixed(found, world):
    sim, _ = world
    truth, worse = headlines(found)
    assert re.match(r"truth fixes the uneven error along \d of \d variables", truth)
    assert "makes it worse along none; accuracy" in truth
    assert re.search(r"makes it worse along \d \((v|side)", worse) and worse.count("accuracy") == 1
    assert "log-loss made worse (+0." in worse and re.search(
        r"average made worse \(\+.* points", worse
    )
    alone = vc.compare(sim.y, {"raw": sim.p}, {"v": sim.v})
    assert headlines(alone) == ["Nothing to compare: only raw was given."]
    bare = vc.compare(sim.y, {"raw": sim.p, "same": sim.p}, None)
    said = (
        "same shows no change of the error by score; accuracy: no clear change (0.0 to 0.0 points)."
    )
    assert headlines(bare) == [said] and 'id="variables"' not in comparison_html(bare, "")
    same = vc.compare(sim.y, {"raw": sim.p, "same": sim.p}, {"v": sim.v})
    assert (
        "no improvement of the uneven error along 1 variable and makes it worse along none"
        in (headlines(same)[0])
    )


def test_every_form_holds_the_figures(found):
    tree, text = read(comparison_html(found, "Mine")), comparison_markdown(found, "Mine")
    table = {one[0]: one[1:] for one in tree.one("table", "figures").cells()}
    for metric, variable in found.figures:
        cells = table[f"uneven along {variable}" if variable else metric]
        for cell, method in zip(cells, found.methods, strict=True):
            row = found.row(method, metric, variable)
            scale, digits = (100, 1) if metric not in ("log-loss", "Brier", "AUC") else (1, 4)
            shown = [f"{abs(scale * one):.{digits}f}" for one in (row.value, row.low, row.high)]
            assert all(one in cell for one in shown)
            assert all(one in text for one in shown)
            if method != "raw":
                first, mine = (float(re.match(r"[\d.]+", one)[0]) for one in (cells[0], cell))
                assert re.search(rf" [+−]?{abs(mine - first):.{digits}f}\D", cell), cell
                assert row.difference == pytest.approx(
                    (mine - first) / scale, abs=1.1 * 10**-digits
                )
                assert row.verdict in cell.lower()
    assert "Checked: P\\(y = 1\\), 2 sets of probabilities against raw" in text
    names = [one.text() for one in tree.all("h3")][:4]
    assert set(names) == {"noise", "v", "side", "when"} and names[0] in ("v", "side")
    for mark in ("✓", "✗", "○"):
        assert any(mark in one.text() for one in tree.all("span", "verdict"))
    assert not re.search(r"VECE|confidence|\brisk", text)


def test_names_are_text_in_every_form(world):
    sim, _ = world
    sets = {SCRIPT: sim.p, MARKS: np.clip(sim.p + 0.2, 0, 1)}
    found = vc.compare(sim.y, sets, {IMAGE: sim.v, "kind": np.where(sim.v > 0.5, SCRIPT, MARKS)})
    tree = read(comparison_html(found, SCRIPT))
    assert not tree.all("img") and len(tree.all("script")) == 1 and tree.one("h1").text() == SCRIPT
    text = comparison_markdown(found, SCRIPT)
    assert SCRIPT not in text and "[d](" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    shown = found._repr_html_()
    assert SCRIPT not in shown and "&lt;script&gt;" in shown
