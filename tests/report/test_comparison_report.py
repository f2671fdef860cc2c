"""Reports of comparisons."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import varcal as vc
from varcal._report import summarise_comparison
from varcal._report.comparison.markdown import comparison_markdown
from varcal._report.comparison.page import comparison_html
from varcal._report.json_form import json_text
from varcal.exceptions import InputError

EVIL = "<script>alert(1)</script>"
PIPE = "a | *b* `c` [d](http://e)"


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
    sets = {"raw": sim.p, "truth": sim.rate, "worse": np.clip(sim.p + 0.2, 0, 1)}
    return vc.compare(sim.y, sets, X, event="positive")


@pytest.fixture(scope="module")
def summary(found):
    return summarise_comparison(found)


def test_curves_are_those_of_the_same_rows(found, world):
    sim, X = world
    assert list(found.curves) == ["noise", "v", "side", "when"]
    assert list(found.curves["v"]) == list(found.methods)
    alone = vc.curve(sim.y, sim.rate, {"v": X["v"]}, event="positive")
    mine = found.curves["v"]["truth"]
    np.testing.assert_allclose(mine.gap, alone.gap)
    row = found.row("truth", "VECE", "v")
    assert (mine.vece, mine.vece_low, mine.vece_high) == (row.value, row.low, row.high)


def test_a_comparison_survives_json(found):
    kept = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    again = vc.results.Comparison.from_dict(kept)
    assert again.to_dict() == found.to_dict()
    assert again.rows[0].verdict == found.rows[0].verdict
    assert np.isnan(again.row("raw", "accuracy").noise_floor)
    first, second = (replace(summarise_comparison(one), created="now") for one in (found, again))
    assert comparison_html(first) == comparison_html(second)
    kept.pop("curves")
    assert not vc.results.Comparison.from_dict(kept).curves


def test_notebooks_show_a_table(world):
    sim, _ = world
    shown = vc.compare(sim.y, {EVIL: sim.p, "figure": sim.p}, None)._repr_html_()
    assert EVIL not in shown and "&lt;script&gt;" in shown
    assert shown.count("<th ") == 3 and "<td>accuracy</td>" in shown


def test_headlines_say_what_was_fixed(summary, found):
    truth, worse = map(str, summary.headlines)
    assert re.match(r"truth fixes VECE along \d of 4 variables", truth)
    assert "makes it worse along none; accuracy " in truth
    assert re.search(r"makes it worse along \d \((v|side|noise|when)", worse)
    assert "log-loss made worse (+0." in worse and "ECE made worse (+" in worse
    assert worse.count("accuracy") == 1
    first = summary.variables[0]
    assert any(row.verdict == "made worse" for row in first.vece.rows)
    assert [len(one.panels) for one in summary.variables] == [3] * 4


def test_headlines_of_few_sets_and_figures(world):
    sim, _ = world
    alone = vc.compare(sim.y, {"raw": sim.p}, {"v": sim.v}, event="positive")
    assert str(summarise_comparison(alone).headlines[0]) == (
        "Nothing to compare: only raw was given."
    )
    comparison_html(summarise_comparison(alone))
    comparison_markdown(summarise_comparison(alone))
    bare = vc.compare(sim.y, {"raw": sim.p, "same": sim.p}, None, event="positive")
    said = summarise_comparison(bare)
    assert str(said.headlines[0]).startswith("same shows no change of ECE; accuracy unch")
    assert 'id="variables"' not in comparison_html(said)
    assert "Variable by variable" not in comparison_markdown(said)
    same = vc.compare(sim.y, {"raw": sim.p, "same": sim.p}, {"v": sim.v}, event="positive")
    assert "shows no improvement of VECE along 1 variable and makes it worse along none" in str(
        summarise_comparison(same).headlines[0]
    )
    many = {f"m{k}": sim.p for k in range(6)}
    page = comparison_html(summarise_comparison(vc.compare(sim.y, many, None)))
    assert 'class="headline"' not in page and "<li><bdi>m5</bdi> shows no change" in page


@pytest.mark.parametrize("event", ["both", "correct", "positive"])
def test_the_page_says_what_was_checked(world, event):
    sim, X = world
    found = vc.compare(sim.y, {"raw": sim.p, "truth": sim.rate}, {"v": X["v"]}, event=event)
    text = comparison_markdown(summarise_comparison(found))
    assert re.search(r"Checked: [\w ]+(?:, [\w ]+)?, for 1 set of probabilities", text)


def test_the_report_says_whose_predictions_count(world):
    sim, _ = world
    sets = {"raw": sim.p, "flipped": 1 - sim.p}
    own, first = (
        " ".join(map(str, summarise_comparison(vc.compare(sim.y, sets, None, hits=hits)).notes))
        for hits in ("recomputed", "first")
    )
    assert "Each set is judged by its own predictions" in own
    assert "the predictions of raw count as correct or wrong for every set" in first
    risk = summarise_comparison(vc.compare(sim.y, sets, None, event="positive"))
    assert "correct" not in " ".join(map(str, risk.notes))
    assert "held out" in str(risk.notes[0])


def test_the_report_mentions_groups_gaps_and_dropped_rows(rng):
    n = 400
    y = rng.integers(0, 2, n).astype(float)
    y[:7] = np.nan
    p = rng.uniform(0.1, 0.9, n)
    X = {"empty": np.full(n, np.nan), "v": rng.normal(size=n)}
    groups = np.arange(n) // 10
    found = vc.compare(y, {"a": p, "b": p**2}, X, groups=groups, unlabelled="drop")
    assert list(found.curves) == ["v"]
    summary = summarise_comparison(found)
    notes = " ".join(map(str, summary.notes))
    assert "7 rows without an outcome were left out." in notes
    assert "empty has no value at any row, so it has no curve." in notes
    assert "Rows belong to groups" in " ".join(summary.method)
    comparison_html(summary)


def test_the_page(summary):
    page = comparison_html(summary)
    assert page.startswith("<!doctype html>")
    for mark in ("✓", "✗", "○"):
        assert f'<span aria-hidden="true">{mark}</span>' in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page.count('role="img"') == 4 * (1 + 3)
    table = page[page.index('class="figures"') :]
    assert table[: table.index("</tbody>")].count('<th scope="row"') == len(summary.figures)
    assert "style=" not in page and "onclick" not in page


def test_panels_share_their_scale(found, summary):
    v = next(one for one in summary.variables if one.name == "v")
    top = max(max(panel.line.actual_high) for panel in v.panels)
    page = comparison_html(summary)
    charts = re.findall(r'<svg role="img".*?class="axis">', page, re.S)
    along = [chart for chart in charts if "along v, " in chart]
    ticks = [re.findall(r'class="tick end">([\d.]+)%', chart) for chart in along]
    assert len(ticks) == 3 and ticks[0] == ticks[1] == ticks[2]
    assert float(ticks[0][-1]) / 100 >= min(top, 1.0)


def test_names_are_text_in_every_form(world):
    sim, _ = world
    sets = {EVIL: sim.p, PIPE: np.clip(sim.p + 0.2, 0, 1)}
    found = vc.compare(sim.y, sets, {EVIL: sim.v, "kind": np.where(sim.v > 0.5, EVIL, PIPE)})
    summary = summarise_comparison(found, title=EVIL)
    page = comparison_html(summary)
    assert EVIL not in page and "&lt;script&gt;alert(1)" in page
    text = comparison_markdown(summary)
    assert EVIL not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert "[d](" not in text
    assert json.loads(json_text(summary))["methods"] == [EVIL, PIPE]


def test_markdown_and_json(summary, found):
    text = comparison_markdown(summary)
    assert text.startswith("# Before and after\n\n**truth fixes VECE along ")
    assert re.search(r"\| VECE along v, points \| \d+\.\d \([\d.]+ to [\d.]+\) \|", text)
    assert "✓ fixed −" in text and "✗ made worse +" in text
    content = json.loads(json_text(summary))
    assert content["schema_version"] == 2
    row = content["figures"][0]["rows"][1]
    assert row["value"] == found.row("truth", "accuracy").value and row["noise_floor"] is None
    assert content["headlines"][0] == str(summary.headlines[0])


def test_report_writes_by_suffix(found, tmp_path):
    for name, start in (("a.html", "<!doctype html>"), ("a.md", "# Mine"), ("a.json", "{")):
        found.report(tmp_path / name, title="Mine")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    with pytest.raises(InputError, match="unknown extension for a report"):
        found.report(tmp_path / "a.pdf")
    assert len(list(tmp_path.iterdir())) == 3
