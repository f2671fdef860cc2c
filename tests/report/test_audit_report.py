"""The summary of a report and its forms."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import varcal as vc
from cases import audits_by_hand
from varcal._report import summarise
from varcal._report.audit.markdown import escape, markdown, text
from varcal._report.audit.notebook import first_screen_html
from varcal._report.audit.page import html
from varcal._report.audit.terminal import WIDTH, audit_lines
from varcal._report.html.markup import el
from varcal._report.json_form import SCHEMA_VERSION, json_text
from varcal._smoothing.density import density
from varcal._text.sentences import Code, Named, Sentence, Strong, StrongName
from varcal.exceptions import InputError

GOLDEN = Path(__file__).parents[1] / "golden" / "report.json"
FIXED = {"created": "2024-01-01 00:00 UTC", "versions": (("varcal", "0"),)}


@pytest.fixture(scope="module")
def audit(adult):
    names = ("age", "sex", "workclass", "fnlwgt", "hours-per-week")
    return vc.audit(adult.y, adult.p, {name: adult[name] for name in names}, repair=False)


@pytest.fixture(scope="module")
def summary(audit):
    return replace(summarise(audit), **FIXED)


def small_audit(event="both"):
    rng = np.random.default_rng(3)
    n = 1200
    score, place = rng.uniform(0.1, 0.9, n), rng.integers(0, 4, n)
    when = np.datetime64("2022-03-01") + rng.integers(0, 3, n).astype("m8[D]")
    y = rng.random(n) < np.clip(score - np.where(place == 3, 0.3, 0.0), 0, 1)
    kind = np.where(rng.random(n) < 0.1, None, rng.choice(["a", "b"], n))
    variables = {"place": place, "kind": kind, "when": when}
    return vc.audit(y, score, variables, event=event, n_bins=4, repair=False)


def assert_close(found, expected, path="summary"):
    if isinstance(expected, dict):
        assert list(found) == list(expected), path
        for key in expected:
            assert_close(found[key], expected[key], f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for k, value in enumerate(expected):
            assert_close(found[k], value, f"{path}[{k}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9), path
    else:
        assert found == expected, path


def test_json_is_unchanged():
    content = json.loads(json_text(replace(summarise(small_audit()), **FIXED)))
    assert content.pop("schema_version") == SCHEMA_VERSION
    content["citation"] = []
    assert_close(content, json.loads(GOLDEN.read_text(encoding="utf-8")))


def test_report_writes_by_suffix(audit, tmp_path):
    for name, start in (("a.html", "<!doctype html>"), ("a.md", "# Mine"), ("a.JSON", "{")):
        audit.report(tmp_path / name, title="Mine")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    with pytest.raises(InputError, match=r"unknown extension for a report: 'a.pdf'") as error:
        audit.report("a.pdf")
    assert "use one of .html, .htm, .md, .json" in str(error.value)
    with pytest.raises(InputError, match="cannot write"):
        audit.report(tmp_path / "nowhere" / "a.html")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_loaded_audit_gives_the_same_report(audit, summary, tmp_path):
    audit.save(tmp_path / "audit.json")
    loaded = vc.load(tmp_path / "audit.json")
    again = replace(summarise(loaded), **FIXED)
    assert html(again) == html(summary)
    assert json_text(again) == json_text(summary)


def test_without_a_path_the_page_is_shown_inline(audit):
    shown = audit.report(title='A "title"')
    frame = shown._repr_html_()
    assert frame.startswith('<iframe title="A &quot;title&quot;" srcdoc="&lt;!doctype html&gt;')
    assert '<html lang="en">' in shown.page
    assert "notebook" in repr(shown)


def test_intervals_of_bins_allow_for_groups(rng):
    groups = np.repeat(np.arange(100), 20)
    p = np.full(2000, 0.7) + rng.normal(0, 0.01, 2000)
    y = (rng.random(100) < 0.7)[groups].astype(int)
    v = rng.normal(size=100)[groups]
    alone, grouped = (
        vc.audit(y, p, {"v": v}, event="positive", groups=one, repair=False)
        for one in (None, groups)
    )
    widths = [
        np.subtract(one.tables["v"].columns["gap_high"], one.tables["v"].columns["gap_low"])
        for one in (alone, grouped)
    ]
    assert (widths[1] > 2 * widths[0]).all()
    assert "Rows belong to groups" in " ".join(summarise(grouped).method)


@pytest.mark.parametrize("event", ["correct", "positive"])
def test_charts_show_what_happened(adult, event):
    sex = np.asarray(adult["sex"])
    found = summarise(vc.audit(adult.y, adult.p, {"sex": sex}, event=event, repair=False))
    one = found.variables[0]
    y, p = np.asarray(adult.y), np.asarray(adult.p)
    observed = y if event == "positive" else (p > 0.5) == y
    predicted = p if event == "positive" else np.maximum(p, 1 - p)
    line = one.main.line
    for k, level in enumerate(line.labels):
        inside = sex == level
        assert line.actual[k] == pytest.approx(observed[inside].mean(), abs=2e-3)
        assert line.predicted[k] == pytest.approx(predicted[inside].mean(), abs=2e-3)
        assert one.bins[k].happens == pytest.approx(observed[inside].mean())
        assert line.actual_low[k] < line.actual[k] < line.actual_high[k]
        assert line.n[k] == inside.sum()
    # A level that is named elsewhere has the same interval in the table.
    (level,) = (level for level in one.levels if level.text == one.spot.text)
    assert (level.low, level.high) == (one.spot.low, one.spot.high)
    side = "Too sure" if event == "correct" else "Too low"
    assert found.screen.headline.startswith(side)


def test_the_band_excludes_the_prediction_where_the_bar_is(audit, summary):
    for one in summary.variables:
        line, curve = one.main.line, audit[one.name]
        assert np.less_equal(line.actual_low, line.actual).all()
        assert np.less_equal(line.actual, line.actual_high).all()
        assert min(line.actual_low) >= 0 and max(line.actual_high) <= 1
        gap = abs(line.actual[one.main.worst] - line.predicted[one.main.worst])
        assert gap == pytest.approx(curve.vce, abs=3e-3)
        for k, x in enumerate(line.x):
            sure = not line.actual_low[k] <= line.predicted[k] <= line.actual_high[k]
            assert sure == any(region.low <= x <= region.high for region in one.main.regions)


def test_sentences(audit, summary):
    screen = summary.screen
    assert f"{screen.headline}. {screen.lede}" == audit.sentence
    age = next(one for one in summary.variables if one.name == "age")
    assert re.fullmatch(
        r"▼ \d\d to \d\d: risk too low by [\d.]+ points \([\d.]+ to [\d.]+\)\. The model says "
        r"[\d.]+%, [\d.]+% happens; [\d,]+ rows\.",
        str(age.places[0]),
    ) or "better than the rest" in str(age.places[0])
    assert str(age.places[-1]).startswith("Surely off: too low at ")
    assert str(age.wrong) == "risk and confidence"
    workclass = next(one for one in summary.variables if one.name == "workclass")
    assert any("963 rows (6%) without a value" in str(note) for note in workclass.notes)
    hours = next(one for one in summary.variables if one.name == "hours-per-week")
    assert any("bin of their own: 40 (" in str(note) for note in hours.notes)
    assert any("p of no uneven error" in str(line) for line in hours.statistics)


def test_sentences_without_a_finding():
    sim = vc.datasets.make_gap(2000, vece=0.0)
    found = summarise(vc.audit(sim.y, sim.p, {"v": sim.v}, event="positive", repair=False))
    (one,) = found.variables
    assert one.verdict == "no evidence"
    assert one.spot is None and str(one.wrong) == ""
    assert str(one.places[0]).startswith("Uneven error of more than ")
    page = html(found)
    assert "1 variable without evidence" in page
    assert "Move the slider" in page
    few = vc.audit(sim.y[:60], sim.p[:60], {"v": sim.v[:60]}, event="positive", repair=False)
    assert "Too few rows to tell" in html(summarise(few))


def test_one_claim_and_several(adult):
    sex = {"sex": adult["sex"]}
    both, one = (
        html(summarise(vc.audit(adult.y, adult.p, sex, event=event, repair=False)))
        for event in ("both", "positive")
    )
    assert "claim that is wrong" in both and "The same for confidence" in both
    assert "claim that is wrong" not in one and "Confidence" not in one


def test_repaired_figures_are_shown_beside_the_others():
    found = audits_by_hand.mock()
    page = html(summarise(found))
    assert "After repair" not in page
    page = html(summarise(audits_by_hand.repaired(found, audits_by_hand.mock())))
    assert page.count("After repair") > len(found)
    assert "After repair: risk" in page
    assert "learned from 5,000 rows" in page


def test_better_groups_carry_no_mark():
    far = audits_by_hand.place("sex", "Female", 0.2, 0.36)
    near = audits_by_hand.place("sex", "Male", 0.2, 0.21)
    claims = [audits_by_hand.claim("risk", 0.25, 0.30, ece=(0.05, 0.043, 0.057))]
    rows = [audits_by_hand.row("sex", 0.05, 0.04, 0.06, where=far)]
    found = audits_by_hand.audit(claims, rows, places=[near, far], event="positive")
    summary = summarise(found)
    for form in (html(summary), markdown(summary), first_screen_html(summary.screen, 0.95)):
        assert "better than the rest" in form
        assert len(re.findall("▼.{0,60}1\\.0", form)) == 0
    assert any("1.0 (better)" in line for line in audit_lines(found))


@pytest.mark.parametrize(
    ("n", "make"),
    [
        (2, lambda rng, n: rng.normal(size=n)),
        (30, lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, rng.normal(size=n))),
        (300, lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, 1e12 * rng.normal(size=n))),
        (300, lambda rng, n: np.r_[np.zeros(n - 1), 5.0]),
        (300, lambda rng, n: np.datetime64("0900") + rng.integers(0, 9, n)),
        (300, lambda rng, n: rng.integers(0, 9, n).astype("m8[h]")),
        (300, lambda rng, n: [f"level {k}" for k in rng.integers(0, 60, n)]),
        (300, lambda rng, n: rng.random(n) < 0.5),
    ],
    ids=[
        "two rows",
        "infinite",
        "missing",
        "one apart",
        "dates",
        "durations",
        "many levels",
        "bool",
    ],
)
@pytest.mark.parametrize("scores", ["sure", "any"])
def test_every_kind_of_variable_can_be_reported(rng, n, make, scores):
    p = np.ones(n) if scores == "sure" else rng.random(n)
    y = np.arange(n) % 2
    audit = vc.audit(y, p, {"v": make(rng, n)}, repair=False)
    found = summarise(audit)
    forms = (html(found), json_text(found), markdown(found), repr(audit), audit._repr_html_())
    for form in forms:
        assert "nan" not in re.sub(r"[<>].*?script>", "", form).lower().split()
        assert form.encode()


def test_models_of_many_classes(rng):
    p = rng.dirichlet(np.ones(4), 400)
    audit = vc.audit(rng.integers(0, 4, 400), p, {"v": rng.normal(size=400)}, repair=False)
    found = summarise(audit)
    assert [column.title for column in found.screen.columns] == ["Confidence", "Worst class"]
    assert found.scores[0].claim == "confidence"
    assert found.scores[1].claim.startswith("class ")
    assert "Worst class" in html(found)
    assert all(len(line) <= WIDTH for line in audit_lines(audit))


def test_labels_of_classes_are_written_as_they_are():
    others = [("class Iris Setosa", (0.01, 0.0, 0.02))]
    claims = [
        audits_by_hand.claim(f"class {name}", 0.25, 0.20, label=name)
        for name in ("virginica", "Iris Setosa")
    ]
    rows = [audits_by_hand.row("v", 0.05, 0.04, 0.06, name="class virginica", others=others)]
    found = summarise(audits_by_hand.audit(claims, rows, event="classwise"))
    told = " ".join(map(str, found.variables[0].statistics))
    assert "error (class virginica): VECE" in told and "Class Iris Setosa: VECE" in told
    assert "Class <bdi>Iris Setosa</bdi>: VECE" in html(found)


def test_page_is_small_and_self_contained(adult, summary):
    page = html(summary)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src &#x27;none&#x27;")
    for tag in ("style", "script"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"sha256-{digest}" in policy
    assert not re.search(r"\son[a-z]+=|\sstyle=|javascript:|@import|url\(", page)
    assert "http" not in re.sub(r"https://arxiv\.org/abs/[\d.]+|http-equiv", "", page)
    rng = np.random.default_rng(0)
    many = {f"variable {k}": rng.gamma(2, size=len(adult.y)) for k in range(30)}
    found = vc.audit(adult.y, adult.p, many, repair=False)
    assert len(html(summarise(found)).encode()) < 1_500_000


def test_page_holds_no_single_rows(rng):
    n = 400
    v = rng.normal(size=n)
    person = np.array([f"person{k}@example.org" for k in range(n)])
    y, p = rng.integers(0, 2, n), rng.uniform(0.2, 0.8, n)
    variables = {"v": v, "person": person}
    found = summarise(vc.audit(y, p, variables, include=["person"], repair=False))
    for form in (html(found), json_text(found), markdown(found)):
        assert "@example" not in form
    (line,) = (one.main.line for one in found.variables if one.name == "v")
    assert not np.isclose(np.sort(line.x)[1:-1, None], v, atol=1e-12).any()


def test_json_data_of_the_page_cannot_end_its_element():
    name = "</script><!--\u2028&"
    claims = [audits_by_hand.claim(f"class {name}", 0.25, 0.20, label=name)]
    rows = [audits_by_hand.row("v", 0.05, 0.04, 0.06, name=f"class {name}")]
    page = html(summarise(audits_by_hand.audit(claims, rows, event="classwise")))
    block = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S).group(1)
    assert not set("<>&\u2028") & set(block)
    assert name in json.loads(block)["charts"]["v1"]["over"]


def test_elements_escape():
    assert el("p", '<a href="x">', title='"<') == '<p title="&quot;&lt;">&lt;a href="x"&gt;</p>'
    assert el("p", Named("a\x00b\ud800")) == "<p><bdi>a\ufffdb\ufffd</bdi></p>"
    said = Sentence.of("a ", StrongName("<b>"), Strong(" & "), Code("x < 1"))
    assert (
        el("p", said) == "<p>a <b><bdi>&lt;b&gt;</bdi></b><b> &amp; </b><code>x &lt; 1</code></p>"
    )
    assert text(said) == r"a **&lt;b&gt;**** & **`x < 1`"
    assert el("input", hidden=False, id=None, class_="a") == '<input class="a">'


@pytest.mark.parametrize(
    "name", ["a|b", "a\nb", "<script>x</script>", "[x](http://e.org)", "`c`", "**b**", "www.e.org"]
)
def test_markdown_escapes_names(name):
    y, p = [0, 1] * 100, np.linspace(0.1, 0.9, 200)
    variables = {name: np.arange(200.0), "other": [0.0, 1] * 100}
    found = summarise(vc.audit(y, p, variables, include=list(variables), repair=False))
    form = markdown(found)
    table = form[form.index("| # |") : form.index("Uneven error: how far")]
    rows = [line for line in table.splitlines() if re.match(r"\| \d", line)]
    assert len(rows) == 2
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)
    assert escape(name) in form
    assert not re.search(r"<script|\]\(http|(?<!\\)`c|www\.e", form)


def test_the_terminal_shows_the_same_in_80_columns(audit):
    lines = audit_lines(audit)
    assert max(map(len, lines)) <= WIDTH
    assert lines[0] == f"REPAIR FIRST  {summarise(audit).screen.headline}"
    assert "limit 2.0 points: ok below, ~ may be on either side, x surely above" in lines
    assert "\n".join(audit_lines(audit, repair=False)) == repr(audit)
    ranked = [line.split()[0] for line in lines if re.search(r"\d \([\d.]+, [\d.]+\) +\S", line)]
    assert {"age", "sex", "hours-per-week"} <= set(ranked)


def test_a_notebook_shows_the_first_screen(audit):
    shown = audit._repr_html_()
    assert shown.startswith("<div><h3>✕ Repair first: ")
    assert shown.count("<table>") == 2 and "<ol>" in shown
    assert "style=" not in shown


@pytest.mark.parametrize("shift", [0, -30, 1000])
def test_histograms_of_whole_numbers_have_no_gaps(rng, shift):
    v = rng.integers(18, 90, 4000) + shift
    y, p = rng.integers(0, 2, 4000), rng.uniform(0.2, 0.8, 4000)
    found = vc.audit(y, p, {"v": v.astype(float)}, repair=False)["v"].histogram
    counts, _ = np.histogram(v, found.edges)
    np.testing.assert_allclose(found.share, counts / len(v), atol=1e-3)
    assert len(set(np.diff(found.edges))) == 1


def test_density_of_values_that_differ_by_their_last_bits():
    x = np.array([0.5, 1 - 2e-16, 1 - 1e-16, 1.0])
    x = np.unique(x)
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(density(x, np.ones(len(x)), x, rows=1000)).all()
