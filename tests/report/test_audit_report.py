"""The summary of a report and its forms."""

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import varcal as vc
from varcal._measures.regions import Region
from varcal._smoothing.density import density
from varcal._text.numbers import interval, percent, signed
from varcal.exceptions import InputError
from varcal.report import summarise
from varcal.report.audit.markdown import escape, markdown
from varcal.report.audit.page import html
from varcal.report.html.axes import date_axis, number_axis, number_text, share_axis
from varcal.report.html.markup import el
from varcal.report.json_form import json_text, plain
from varcal.report.words import Named, region_words, wording

GOLDEN = Path(__file__).parents[1] / "golden" / "report.json"


@pytest.fixture(scope="module")
def audit(adult):
    names = ("age", "sex", "workclass", "fnlwgt", "hours-per-week")
    return vc.audit(adult.y, adult.p, {name: adult[name] for name in names})


@pytest.fixture(scope="module")
def summary(audit):
    return summarise(audit, created="2024-01-01 00:00 UTC", versions=(("varcal", "0"),))


def small_audit(event="positive"):
    rng = np.random.default_rng(3)
    n = 1200
    score, place = rng.uniform(0.1, 0.9, n), rng.integers(0, 4, n)
    when = np.datetime64("2022-03-01") + rng.integers(0, 3, n).astype("m8[D]")
    y = rng.random(n) < np.clip(score - np.where(place == 3, 0.3, 0.0), 0, 1)
    kind = np.where(rng.random(n) < 0.1, None, rng.choice(["a", "b"], n))
    return vc.audit(y, score, {"place": place, "kind": kind, "when": when}, event=event, n_bins=4)


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
    found = summarise(small_audit(), created="2024-01-01 00:00 UTC", versions=(("varcal", "0"),))
    content = json.loads(json_text(found))
    assert content.pop("schema_version") == 1
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
    loaded = vc.load_audit(tmp_path / "audit.json")
    again = summarise(loaded, created=summary.created, versions=summary.versions)
    assert html(again) == html(summary)
    assert json_text(again) == json_text(summary)


def test_audit_keeps_the_bins_behind_its_figures(adult, audit):
    for name in ("age", "sex"):
        table = vc.bin_table(adult.y, adult.p, {name: adult[name]}, binning="atoms")
        found = audit.tables[name]
        assert found.columns["bin"] == table.columns["bin"]
        for key in ("n", "gap", "gap_low", "gap_high"):
            np.testing.assert_allclose(found.columns[key], table.columns[key], atol=1e-12)
    estimate = vc.estimate(adult.y, adult.p)
    for key in ("value", "debiased", "low", "high", "p_value"):
        assert getattr(audit.score.ece, key) == pytest.approx(getattr(estimate, key))


def test_intervals_of_bins_allow_for_groups(rng):
    groups = np.repeat(np.arange(100), 20)
    p = np.full(2000, 0.7) + rng.normal(0, 0.01, 2000)
    y = (rng.random(100) < 0.7)[groups].astype(int)
    v = rng.normal(size=100)[groups]
    alone, grouped = (
        vc.audit(y, p, {"v": v}, event="positive", groups=one) for one in (None, groups)
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
    found = summarise(vc.audit(adult.y, adult.p, {"sex": sex}, event=event))
    one = found.variables[0]
    y, p = np.asarray(adult.y), np.asarray(adult.p)
    wrong, doubt = (p > 0.5) != y, np.minimum(p, 1 - p)
    actual, predicted = (y, p) if event == "positive" else (wrong, doubt)
    for k, level in enumerate(one.line.labels):
        inside = sex == level
        assert one.line.actual[k] == pytest.approx(actual[inside].mean())
        assert one.line.predicted[k] == pytest.approx(predicted[inside].mean())
        assert one.bins[k].actual == pytest.approx(actual[inside].mean())
        assert one.line.actual_low[k] < one.line.actual[k] < one.line.actual_high[k]
        assert one.line.n[k] == inside.sum()
    assert found.overall.actual == pytest.approx(actual.mean())
    assert found.overall.predicted == pytest.approx(predicted.mean())
    side = "overconfident" if event == "correct" else "predicted too low"
    assert str(found.headline).startswith(f"Overall {side} by")


def test_lines_lie_in_their_bands_and_agree_with_the_worst_value(audit, summary):
    for one in summary.variables:
        line, curve = one.line, audit[one.name]
        assert np.less_equal(line.actual_low, line.actual).all()
        assert np.less_equal(line.actual, line.actual_high).all()
        assert min(line.actual_low) >= 0 and max(line.actual_high) <= 1
        gap = line.actual[one.at_worst] - line.predicted[one.at_worst]
        assert gap == pytest.approx(curve.vce, abs=2e-3)


def test_sentences(audit, summary):
    assert str(summary.headline) == audit.sentence
    age = next(one for one in summary.variables if one.name == "age")
    assert re.fullmatch(
        r"The gap changes along age: 9\.\d points on average beyond the overall gap "
        r"\(95% interval \d\.\d to 1?\d\.\d, adjusted p <0\.001\)\.",
        str(age.finding),
    )
    assert re.fullmatch(
        r"▲ overconfident by 2\d\.\d to 3\d\.\d points for 3\d to 6\d \([\d,]+ rows\)\. "
        r"Largest gap at 4\d: wrong 3\d\.\d% of the time, expected 0\.\d%\.",
        str(age.worst),
    )
    workclass = next(one for one in summary.variables if one.name == "workclass")
    assert any("963 rows (5.9%) without a value" in str(note) for note in workclass.notes)
    assert any("other claim" in str(note) for note in summary.notes)
    hours = next(one for one in summary.variables if one.name == "hours-per-week")
    assert any("of the rows have the value 40" in str(note) for note in hours.notes)
    assert dict(summary.verdicts)["varies"] >= 2


def test_sentences_without_a_finding():
    sim = vc.datasets.make_gap(2000, vece=0.0)
    found = summarise(vc.audit(sim.y, sim.p, {"v": sim.v}, event="positive"))
    one = found.variables[0]
    assert "no variable shows a change" in str(found.headline)
    assert str(found.worst) == ""
    assert one.verdict == "no evidence"
    assert str(one.finding).startswith("No evidence that the gap changes along v")
    few = summarise(vc.audit(sim.y[:60], sim.p[:60], {"v": sim.v[:60]}, event="positive"))
    assert str(few.variables[0].finding).startswith("Too few rows to tell")
    assert "<details" in html(few)


@pytest.mark.parametrize(
    ("n", "make"),
    [
        (2, lambda rng, n: rng.normal(size=n)),
        (30, lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, rng.normal(size=n))),
        (300, lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, 1e12 * rng.normal(size=n))),
        (300, lambda rng, n: np.r_[np.zeros(n - 1), 5.0]),
        (300, lambda rng, n: np.datetime64("0900") + rng.integers(0, 9, n)),
        (300, lambda rng, n: [f"level {k}" for k in rng.integers(0, 60, n)]),
        (300, lambda rng, n: rng.random(n) < 0.5),
    ],
    ids=["two rows", "infinite", "missing", "one apart", "dates", "many levels", "bool"],
)
@pytest.mark.parametrize("scores", ["sure", "any"])
def test_every_kind_of_variable_can_be_reported(rng, n, make, scores):
    p = np.ones(n) if scores == "sure" else rng.random(n)
    y = np.arange(n) % 2
    found = summarise(vc.audit(y, p, {"v": make(rng, n)}))
    for text in (html(found), json_text(found), markdown(found)):
        assert "nan" not in re.sub(r"[<>].*?script>", "", text).lower().split()
        assert text.encode()


def test_models_of_many_classes_have_one_claim(rng):
    p = rng.dirichlet(np.ones(4), 400)
    found = summarise(vc.audit(rng.integers(0, 4, 400), p, {"v": rng.normal(size=400)}))
    assert found.overall.other_gap is None
    assert "other claim" not in html(found)


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
    assert len(html(summarise(vc.audit(adult.y, adult.p, many))).encode()) < 1_000_000


def test_page_holds_no_single_rows(rng):
    n = 400
    v = rng.normal(size=n)
    person = np.array([f"person{k}@example.org" for k in range(n)])
    y, p = rng.integers(0, 2, n), rng.uniform(0.2, 0.8, n)
    found = summarise(vc.audit(y, p, {"v": v, "person": person}))
    for text in (html(found), json_text(found), markdown(found)):
        assert "@example" not in text
    (line,) = (one.line for one in found.variables if one.name == "v")
    assert not np.isclose(np.sort(line.x)[1:-1, None], v, atol=1e-12).any()


def test_json_data_of_the_page_cannot_end_its_element():
    name = "</script><!--\u2028&"
    y, p = [0, 1] * 100, np.linspace(0.1, 0.9, 200)
    page = html(summarise(vc.audit(y, p, {"v": [name, "b"] * 100})))
    block = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S).group(1)
    assert not set("<>&\u2028") & set(block)
    assert name in json.loads(block)["charts"]["v1"]["t"]


def test_elements_escape():
    assert el("p", '<a href="x">', title='"<') == '<p title="&quot;&lt;">&lt;a href="x"&gt;</p>'
    assert el("p", Named("a\x00b\ud800")) == "<p><bdi>a\ufffdb\ufffd</bdi></p>"
    assert el("input", hidden=False, id=None, class_="a") == '<input class="a">'


@pytest.mark.parametrize(
    "name", ["a|b", "a\nb", "<script>x</script>", "[x](http://e.org)", "`c`", "**b**", "www.e.org"]
)
def test_markdown_escapes_names(name):
    y, p = [0, 1] * 100, np.linspace(0.1, 0.9, 200)
    text = markdown(summarise(vc.audit(y, p, {name: np.arange(200.0), "other": [0.0, 1] * 100})))
    table = text[: text.index("## Reliability")]
    rows = [line for line in table.splitlines() if re.match(r"\| \d", line)]
    assert len(rows) == 2
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 8 for row in rows)
    assert escape(name) in text
    assert not re.search(r"<script|\]\(http|(?<!\\)`|www\.e", text)


def test_numbers():
    assert (percent(0.9996), percent(-0.0), signed(-0.153)) == ("100.0%", "0.0%", "−15.3")
    assert interval(0.0, 0.1234) == "0.0 to 12.3"
    assert plain({}) == {}
    assert number_text(1_234_567.0) == "1,234,567"


def test_regions_that_include_zero():
    region = Region(0, 1, "a", "under", -0.02, 0.01, 0.5, 1)
    said = str(region_words(region, wording("positive")))
    assert said == "▼ gap of −2.0 to +1.0 points for a (1 row)"


def test_axes():
    assert [text for _, text in share_axis(0.004).ticks] == ["0%", "0.1%", "0.2%", "0.3%", "0.4%"]
    assert share_axis(1.0, 0.52).low == 0.5
    assert number_axis(3.0, 3.0).place(3.0) == 0.5
    days = date_axis(0.0, 10 * 86_400.0)
    assert [text for _, text in days.ticks][:2] == ["1970-01-01", "1970-01-03"]
    hours = date_axis(0.0, 86_400.0)
    assert hours.ticks[1][1] == "1970-01-01 06"
    months = date_axis(0.0, 400 * 86_400.0)
    assert [text for _, text in months.ticks][:2] == ["1970-01", "1970-04"]


@pytest.mark.parametrize("shift", [0, -30, 1000])
def test_histograms_of_whole_numbers_have_no_gaps(rng, shift):
    v = rng.integers(18, 90, 4000) + shift
    y, p = rng.integers(0, 2, 4000), rng.uniform(0.2, 0.8, 4000)
    found = vc.audit(y, p, {"v": v.astype(float)})["v"].histogram
    counts, _ = np.histogram(v, found.edges)
    np.testing.assert_allclose(found.share, counts / len(v), atol=1e-3)
    assert len(set(np.diff(found.edges))) == 1


def test_density_of_values_that_differ_by_their_last_bits():
    x = np.array([0.5, 1 - 2e-16, 1 - 1e-16, 1.0])
    x = np.unique(x)
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(density(x, np.ones(len(x)), x, rows=1000)).all()
