"""The report and the pictures of a monitor."""

import json
import re

import matplotlib as mpl
import numpy as np
import pytest

import varcal as vc
from cases.monitors import make_bins, make_rows
from varcal._report.monitor import summarise_monitor
from varcal.exceptions import InputError

mpl.use("Agg")


def watched(days, change, shift=0.2):
    monitor = vc.Monitor(make_bins())
    for day in range(days):
        rows = make_rows(shift=shift if day >= change else 0, seed=day)
        monitor.update(rows, id=f"day {day}")
    return monitor


@pytest.fixture(scope="module")
def alarmed():
    return watched(40, 20)


@pytest.fixture(scope="module")
def calm():
    return watched(15, 99)


def test_the_summary_says_alarm_where_since_when_and_how_bad(alarmed):
    summary = summarise_monitor(alarmed)
    where = alarmed.status.where
    assert (summary["badge"], summary["look"]) == ("Alarm", "bad")
    assert str(summary["headline"]) == f"Too low where age above 40 to 50, since {where.since}"
    predicted, observed = f"{100 * where.predicted:.1f}%", f"{100 * where.observed:.1f}%"
    assert f"the model says {predicted} and {observed} happens: off by " in str(summary["lede"])
    assert f"raised at {alarmed.status.raised}." in str(summary["lede"])
    for commands, word in ((False, "vc.audit("), (True, "varcal audit")):
        steps = summarise_monitor(alarmed, commands=commands)["steps"]
        assert len(steps) == 3 and word in str(steps[0][1])
        assert all(("vc." in str(text)) <= (not commands) for _, text in steps)
    known = vc.Monitor(alarmed.bins)
    assert summarise_monitor(known)["look"] == "watch"


def test_calm_is_said_without_claiming_perfection(calm):
    summary = summarise_monitor(calm)
    assert (summary["badge"], summary["look"]) == ("No alarm", "ok")
    assert str(summary["headline"]) == "No sign of a gap beyond the limit"
    assert "the evidence that a gap exceeds 2 points anywhere is 0." in str(summary["lede"])
    assert not summary["steps"]


def test_all_formats(alarmed, calm, tmp_path):
    for monitor, name in ((alarmed, "alarm"), (calm, "calm"), (vc.Monitor(calm.bins), "new")):
        for ending in ("html", "md", "json"):
            monitor.report(tmp_path / f"{name}.{ending}", title="A <title>")
    page = (tmp_path / "alarm.html").read_text()
    assert "A &lt;title&gt;" in page and "<title>A <" not in page
    assert page.count('class="chart time"') == 2 and 'class="since"' in page
    assert 'style="' not in page  # the policy of the page allows no inline style
    assert 'class="since"' not in (tmp_path / "calm.html").read_text()
    assert "<title>day 3: evidence " in page and "<title>day 39: says " in page
    assert re.search(r"<title>day 39: [\d.]+ points too low</title><rect [^>]*height=\"18\"", page)
    assert "**Alarm: Too low where age above 40 to 50" in (tmp_path / "alarm.md").read_text()
    data = json.loads((tmp_path / "alarm.json").read_text())
    assert data["view"]["status"]["alarm"] is True and data["badge"] == "Alarm"
    with pytest.raises(InputError, match="unknown extension for a report"):
        alarmed.report(tmp_path / "page.pdf")
    assert "Alarm: " in alarmed._repr_html_()


def test_names_from_the_data_are_escaped(tmp_path):
    rows = make_rows(1500, 0.6) | {"<b>job</b>": np.array(["<i>x</i>", "y"] * 750)}
    bins = vc.make_bins("y", "p", ["<b>job</b>", "age"], data=rows, monitor=0.02)
    monitor = vc.Monitor(bins)
    monitor.update(rows, id="<script>1")
    monitor.reset("<img>")
    monitor.update(rows, id="<script>2")
    monitor.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    body = page[page.index("<body") :]
    for hostile in ("<b>job", "<i>x", "<img>", "<script>1", "<script>2"):
        assert hostile not in body
    assert "&lt;script&gt;2" in body and "&lt;img&gt;" in body
