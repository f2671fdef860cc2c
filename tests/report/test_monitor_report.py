"""The report and the pictures of a monitor."""

import itertools
import json
import re

import matplotlib as mpl
import numpy as np
import pytest

import varcal as vc
from cases.monitors import make_bins, make_rows
from varcal.exceptions import InputError

mpl.use("Agg")


def watched(days, change, shift=0.2):
    monitor = vc.Monitor(make_bins())
    for day in range(days):
        rows = make_rows(shift=shift if day >= change else 0, seed=day)
        monitor.update(rows, id=f"day {day}")
    return monitor


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The reports of three monitors, by the name of their files."""
    folder = tmp_path_factory.mktemp("pages")
    monitors = {"alarm": watched(40, 20), "calm": watched(15, 99), "new": vc.Monitor(make_bins())}
    for name, ending in itertools.product(monitors, ("html", "md", "json")):
        monitors[name].report(folder / f"{name}.{ending}", title="A <title>")
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    return texts, monitors["alarm"]


def test_an_alarm_is_said_with_place_since_when_and_how_bad(written):
    texts, monitor = written
    said, where = json.loads(texts["alarm.json"]), monitor.status.where
    assert (said["badge"], said["look"]) == ("Alarm", "bad") and said["view"]["status"]["alarm"]
    assert said["headline"] == f"Too low where age above 40 to 50, since {where.since}"
    predicted, observed = f"{100 * where.predicted:.1f}%", f"{100 * where.observed:.1f}%"
    assert f"the model says {predicted} and {observed} happens: off by " in said["lede"]
    assert f"raised at {monitor.status.raised}." in said["lede"] and len(said["steps"]) == 3
    page = texts["alarm.html"]
    assert "A &lt;title&gt;" in page and "<title>A <" not in page
    assert page.count('class="chart time"') == 2 and 'class="since"' in page
    assert 'style="' not in page  # the policy of the page allows no inline style
    assert "<title>day 3: evidence " in page and "<title>day 39: says " in page
    assert re.search(r"<title>day 39: [\d.]+ points too low</title><rect [^>]*height=\"18\"", page)
    assert "**Alarm: Too low where age above 40 to 50" in texts["alarm.md"]
    assert "Alarm: " in monitor._repr_html_()
    with pytest.raises(InputError, match="unknown extension for a report"):
        monitor.report("page.pdf")


def test_calm_is_said_without_claiming_perfection(written):
    texts, _ = written
    said = json.loads(texts["calm.json"])
    assert (said["badge"], said["look"]) == ("No alarm", "ok") and not said["steps"]
    assert said["headline"] == "No sign of a gap beyond the limit"
    assert "the evidence that a gap exceeds 2 points anywhere is 0." in said["lede"]
    assert 'class="since"' not in texts["calm.html"]
    assert json.loads(texts["new.json"])["look"] == "watch"


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
