"""The frame of pages: everything is escaped, one script and one style by hash, nothing fetched."""

import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256

import numpy as np
import pytest
from jinja2 import UndefinedError

from varcal._report.page import (
    _environments,
    as_html,
    as_markdown,
    bin_chart,
    points_axis,
    rates_axis,
    render,
    share_axis,
)
from varcal._text import Code, Named, Sentence, Strong, StrongName

HOSTILE = "</script><img src=x onerror=alert(1)>\x00\ud800\ufffe\"'& [a](b) | *c*"
TRY = """{% extends "page.html.j2" %}
{% from "macros.html.j2" import cell, command, dumbbells, verdict %}
{% set sections, data = [("a", hostile)], {"name": hostile, "line": "\u2028"} %}
{% block main %}<section id="summary">{{ sentence }}{{ hostile }}{{ hostile | named }}
<i title="{{ sentence | plain }}"></i>{{ cell(hostile, "num", hostile, hostile) }}
{{ command(hostile) }}{{ verdict("bad", "✕", hostile) }}{{ chart }}
{{ dumbbells(rows, ("Group", "Says", "Happens"), hostile, **more) }}</section>{% endblock %}"""


def row(name, says, happens, low, high, **more):
    rates = {"predicted": says, "observed": happens, "gap": says - happens}
    return {"name": Named(name), "about": name, "low": low, "high": high, **rates, **more}


def page(rows, **more):
    bins = [
        {"text": HOSTILE, "n": n, "predicted": 0.4, "observed": 0.3, "gap_low": 0, "gap_high": 0.2}
        for n in (5, 500, 0)
    ]
    sentence = Sentence.of("a < b ", Named(HOSTILE), Strong("!"), Code(HOSTILE), StrongName("<"))
    return (
        _environments()[0]
        .from_string(TRY)
        .render(
            title=HOSTILE,
            subtitle=HOSTILE,
            hostile=HOSTILE,
            sentence=sentence,
            rows=rows,
            more=more,
            chart=bin_chart(bins, share_axis(0.5), key="chart", title=HOSTILE),
        )
    )


def test_hostile_text_is_shown_as_text():
    text = page([row(HOSTILE, 0.4, 0.3, 0.05, 0.15)])
    text.encode()  # no lone surrogates
    assert "\x00" not in text and "\ufffe" not in text
    own = text.count("<script")
    assert own == 2 == text.count("</script>")
    assert "<img" not in text and not re.search(r"<[^>]*\sonerror=(?!alert\(1\)&gt;)", text)
    assert '"name":"\\u003c/script' in text.replace('": "', '":"')
    assert "<bdi>&lt;/script&gt;" in text and "<b><bdi>&lt;</bdi></b>" in text
    assert "\N{REPLACEMENT CHARACTER}" in text


def test_the_policy_allows_this_script_and_this_style_only():
    text = page([])
    policy = re.search(r'Security-Policy" content="([^"]*)"', text)[1]
    parts = {"style": r"<style>(.*?)</style>", "script": r"<script>(.*?)</script>"}
    for name, pattern in parts.items():
        inside = re.search(pattern, text, re.S)[1]
        digest = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{name}-src &#39;sha256-{digest}&#39;" in policy
    assert policy.startswith("default-src &#39;none&#39;")
    body = text[text.index("<body") :]
    assert 'style="' not in body and not re.search(r"<[^>]*\son[a-z]+=\"", body)
    assert set(re.findall(r'(?:href|src)="([^"#][^"]*)', text)) == {"data:,"}
    assert not re.search(r"url\(|@import|https?://", text)


def test_a_table_of_says_and_happens():
    after = {"predicted": 0.3, "gap": 0.0, "low": -0.01, "high": 0.01}
    rows = [
        row("sure", 0.4, 0.3, 0.05, 0.15, after=after, events=30, expected=40, all=True),
        row("unsure", 0.3, 0.34, -0.1, 0.02, after=None, events=3, expected=0),
        row("better", 0.4, 0.35, 0.01, 0.09, note="better than the rest", events=1, expected=1),
    ]
    text = page(rows, after="shift", ratio=True, digits=2)
    assert '<b class="over"><span aria-hidden="true">▲</span> 10.00 too high</b>' in text
    assert '<b class="unsure">4.00 too low</b><small>−2.00 to 10.00</small>' in text
    assert '<b class="unsure">5.00 too high</b><small>better than the rest</small>' in text
    assert "After shift" in text and '<span class="unsure">0.00</span>' in text
    assert "<b>0.8×</b>" in text and "<b>–×</b>" not in text
    assert text.count("afterdash") >= 2 and 'data-l="says">40.00%' in text
    plain = page(rows)
    assert "After shift" not in plain and "Observed /" not in plain and "> 10.0 too" in plain


def test_axes():
    assert rates_axis([]).low == 0
    far = rates_axis([{"predicted": 0.9, "observed": 0.8, "low": 0.05, "high": 0.15}])
    assert far.low >= 0.4 and far.high <= 1
    assert [text for _, text in points_axis(0.17).ticks] == ["0", "5", "10", "15", "20"]


def test_a_small_chart_of_bins():
    one = {"n": 900, "predicted": 0.4, "observed": 0.3, "gap_low": 0.05, "gap_high": 0.15}
    bins = [one | {"text": "low", "after": 0.3}, one | {"text": "n" * 999, "n": 3}]
    text = bin_chart([*bins, one | {"text": "high", "n": 0}], share_axis(0.5), key="k", title="t")
    assert text.count('class="tip') == 2 and text.count('class="tip few"') == 1
    assert "<title>low: says 40.0% (30.0% after the repair), happens 30.0%, 900 rows<" in text
    assert text.count("afterbar") == 1 and text.count("whisker") == 2 and "n" * 99 not in text
    assert 'y1="75.0" y2="45.0" class="whisker"' in text  # 25% and 35% of 50%
    unknown = bin_chart([one | {"text": "", "gap_low": np.nan}], share_axis(1), key="k", title="t")
    assert "whisker" not in unknown and "nan" not in unknown


def test_markdown_reads_no_signs_in_text_from_the_data():
    said = as_markdown(Sentence.of("a < b ", Named(HOSTILE), Code("x`y"), Strong("sure")))
    assert said.startswith("a &lt; b &lt;/script&gt;&lt;img src=x onerror=alert\\(1\\)&gt;")
    assert said.endswith(" \\[a\\]\\(b\\) \\| \\*c\\*`x'y`**sure**")
    assert as_markdown(None) == as_html(None) == ""


def test_a_missing_value_is_an_error():
    with pytest.raises(UndefinedError):
        render("monitor.md.j2")


def test_jinja2_loads_when_a_page_is_written():
    code = "import sys, varcal, varcal._report.page; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
