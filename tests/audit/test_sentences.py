"""What an audit says first, in every form: the same words and figures, never a contradiction."""

import html
import itertools
import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import varcal as vc
from cases import audits
from cases.tools import load_tool
from varcal._report.audit_page import audit_html, audit_markdown
from varcal._report.audit_text import WIDTH, audit_lines

KINDS = ("groups", "rare", "fine", "watch", "few")
#: Words of more than one unit, and words that say too much.
FORBIDDEN = re.compile(
    r"\brisks?\b|\bclaims?\b|\bconfiden|\bVECE\b|\bvaries\b|significan|\bpasses\b|hidden error",
    re.I,
)


@cache
def forms(kind):
    """Return the page, the Markdown, the text and the JSON of an audit, as text."""
    found = audits.found(kind)
    page = found.report().page
    body = page[page.index("<body") : page.index('<section id="method"')]
    texts = [
        re.sub(r"<[^>]*>", " ", re.sub(r"<(script|title|desc).*?</\1>", " ", body, flags=re.S))
    ]
    return [
        *texts,
        audit_markdown(found),
        repr(found),
        json.dumps(found.to_dict(), ensure_ascii=False),
    ]


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("kind", "badge", "headline", "lede"),
    [
        (
            "groups",
            "Repair: score curve",
            "P(churn = Yes) is somewhat too high on average, wrong for groups",
            "On average the model says 40.1% and 37.9% happens. But along 1 of 3 variables it is "
            "surely off by more than 2 points, most along age: 8.3 points.",
        ),
        (
            "rare",
            "Repair: shift",
            "P(churn = Yes) is half of what it should be",
            "A shift (one number added to every score) leaves 0.01 points on average, 0.14 by "
            "score and no clear error along variables.",
        ),
        ("tiny", "Repair: shift", "P(churn = Yes) is 6% of what it should be", ""),
        (
            "fine",
            "Fine, to within 1.4 points",
            "No error found in P(churn = Yes)",
            "None of the 3 variables shows uneven error: more than 1.4 points along any of them "
            "can be ruled out.",
        ),
        (
            "watch",
            "Watch",
            "P(churn = Yes) shows errors of unclear size",
            "There is uneven error along 1 of 3 variables, most along age: 2.3 points",
        ),
        (
            "few",
            "Cannot tell yet",
            "Too few rows to judge P(churn = Yes)",
            "Nothing that needs repair was found, but errors of up to ",
        ),
    ],
)
def test_the_answer(kind, badge, headline, lede):
    screen = audits.found(kind).screen()
    assert (screen.badge, str(screen.headline)) == (badge, headline)
    # Figures may differ by one in their last digit, as on the pages.
    start = str(screen.lede).index(lede[:20])
    assert load_tool("doc_pages").agrees(lede, str(screen.lede)[start : start + len(lede)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_says_the_same(kind):
    found, screen = audits.found(kind), audits.found(kind).screen()
    digits = screen.unit.digits
    *texts, plain = forms(kind)
    for form in map(flat, texts):
        form = form.replace("**", "").replace("\\", "")
        assert screen.badge.lower() in form.lower() and str(screen.headline) in form
        assert flat(str(screen.lede)) in re.sub(r" (?=[.,;:)])", "", form).replace("( ", "(")
        assert not FORBIDDEN.search(form), FORBIDDEN.search(form)
        for group in screen.groups:
            for rate in (group.predicted, group.observed):
                assert f"{100 * rate:.{digits}f}%" in form
            assert f"{100 * abs(group.gap):.{digits}f}" in form
            if screen.rare:
                assert f"{group.observed / group.predicted:.1f}" in form
        for step in screen.steps:
            for figure in (step.average, step.rung.by_score, step.rung.worst[1]):
                assert f"{100 * abs(figure.value):.{digits}f}" in form
            assert f"{step.rung.log_loss:.4f}" in form
        for row in found:
            if row.verdict in ("above limit", "may be above", "below limit"):
                assert f"{100 * row.uneven.debiased:.{digits}f}" in form
    data = json.loads(plain)
    assert (data["verdict"], data["advice"]) == (found.verdict, found.advice)
    assert data["sentence"] == f"{screen.headline}. {screen.lede}"
    assert data["rows"][0]["uneven"]["debiased"] == found.rows[0].uneven.debiased
    assert (screen.badge.split(":")[0] == "Repair") == (found.verdict == "repair")
    above = screen.steps[0].n_above
    assert above == sum(row.verdict == "above limit" for row in found)
    assert not above or f"{above} of {len(found)} variables" in str(screen.lede)


def test_lines_of_a_terminal_are_short():
    audited = [audits.hostile(), audits.three("score"), *map(audits.found, (*KINDS, "tiny"))]
    for found in audited:
        for commands in (False, True):
            lines = audit_lines(found, commands=commands)
            assert max(map(len, lines)) <= WIDTH == 80
            assert all(line.isprintable() for line in lines)
            assert not re.search(r"\)\d|\d~", "\n".join(lines))  # columns do not touch


def test_protected_columns_are_always_listed(rng):
    n, k = 3000, 16
    p, X = rng.uniform(0.1, 0.9, n), {f"v{j}": rng.normal(size=n) for j in range(k)}
    y = rng.random(n) < np.clip(p + 0.04 * sum(np.sign(x) for x in X.values()), 0, 1)
    X["race"] = rng.choice(["a", "b", "c", "rare"], n, p=[0.6, 0.3, 0.09, 0.01])
    found = vc.audit(y, p, X, protected="race", ladder="none")
    assert sum(row.verdict in ("above limit", "may be above") for row in found) > 12
    assert found.row("race").verdict == "no evidence"
    assert re.search(r"^race +0\.\d \(", repr(found), re.M) and "more with evidence" in repr(found)
    text, page = audit_markdown(found), found.report().page
    for level in ("a", "b", "c", "rare"):
        assert re.search(rf"^  race: {level}, [\d,]+ rows +[\d.]+% +[\d.]+%  ", repr(found), re.M)
        assert f"\n| {level} |" in text
        assert re.search(rf'<th scope="row"><bdi>{level}</bdi></th><td class="num first">', page)
    card = page[: page.index("<bdi>race</bdi></h3>")].rindex("<details")
    assert " open" in page[card : page.index(">", card)]


def test_more_classes_are_named():
    found = audits.three("score")
    screen, text = found.screen(), repr(found)
    assert str(screen.headline).startswith("The probability of the predicted class is")
    assert "sure of its answers and right in" in str(screen.lede)
    worst = found.rows[0].target
    assert f"points of {worst}." in str(screen.lede)
    assert re.search(rf"^v +x .*{found.targets[worst].label}: [+−]", text, re.M)
    assert screen.groups[0].words == ("too sure", "not sure enough")
    assert all(worst in str(one.about) for one in screen.groups[1:])
    page = found.report().page
    assert "not sure enough" in page or "too sure" in page
    for name in ("ash", "birch", "oak"):
        assert f"P(tree = {name})" in page


# ------------------------------------------------------------------ made by hand


def made(average=0.0, score=0.0, along=(0.0, 0.0, 0.01), verdict="no evidence", places=()):
    """Return an audit with such figures: average ± .5 points, score ± .7, one variable."""
    base = audits.found("few")
    ends = {"low": max(score - 0.007, 0.0), "high": score + 0.007, "debiased": score}
    target = replace(
        base.target,
        predicted=0.25 + average,
        observed=0.25,
        gap=average,
        gap_low=average - 0.005,
        gap_high=average + 0.005,
        p_value=0.001 if abs(average) > 0.005 else 0.5,
        by_score=replace(base.by_score, p_value=0.001 if ends["low"] > 0 else 0.5, **ends),
        events=2500,
        limit=0.02,
    )
    value, low, high = along
    row = base.rows[0]
    uneven = replace(row.uneven, debiased=value, low=low, high=high)
    row = replace(row, uneven=uneven, low=low, high=high, verdict=verdict, places=tuple(places))
    return replace(base, targets={target.name: target}, rows=(row,), _climb=None, n_rows=10_000)


@pytest.mark.parametrize(
    ("average", "score", "along"), [*itertools.product((0.0, 0.01, 0.05), repeat=3)]
)
def test_words_never_contradict_the_figures(average, score, along):
    ends = (along, max(along - 0.008, 0.0), along + 0.008)
    word = {0.0: "no evidence", 0.01: "below limit", 0.05: "above limit"}[along]
    found = made(average, max(score, average), ends, word)
    screen = found.screen()
    text = f"{screen.headline} {screen.lede} " + " ".join(str(text) for _, text in screen.todos)
    assert not FORBIDDEN.search(text)
    sure = 0.05 in (average, score, along)
    assert found.verdict == (
        "repair" if sure else "watch" if 0.01 in (average, score, along) else "fine"
    )
    assert ("right on average" in text) <= (average < 0.05)
    assert ("No error found" in text) == (found.verdict == "fine")
    assert ("unevenly off" in str(screen.lede)) == (along == 0.05)
    assert "nan" not in text and "  " not in text


def test_a_sure_place_and_no_single_group_certain_exclude_each_other():
    place = audits.found("watch").rows[0].place
    unsure = replace(place, low=-0.1, high=0.1)
    assert place.is_sure and not unsure.is_sure
    for one in (place, unsure):
        found = made(along=(0.05, 0.03, 0.07), verdict="above limit", places=[one])
        for form in (repr(found), audit_markdown(found), found.report().page):
            assert ("no single group is certain" in form) == (not one.is_sure)
    for kind in KINDS:
        found = audits.found(kind)
        listed = "No single group is certain" in repr(found)
        assert not (listed and found.places)
        assert all(one.is_sure for one in found.places)


@pytest.mark.parametrize("kind", KINDS)
def test_advice_names_python_or_commands_never_both(kind):
    found = audits.found(kind)
    for commands in (False, True):
        page = html.unescape(audit_html(found, commands=commands))
        text = audit_markdown(found, commands=commands)
        lines = "\n".join(audit_lines(found, commands=commands))
        codes = [*re.findall("<code>(.*?)</code>", page), *re.findall("`(.*?)`", text)]
        assert codes and all(one.startswith(("varcal ", "--")) == commands for one in codes)
        assert ("varcal audit new.csv … --gate" in flat(lines)) == commands
        assert ("testing.assert_calibrated(…)" in flat(lines)) != commands
        assert bool(re.search(r"\bvc\.", lines)) <= (not commands)


def test_retraining_is_not_advised_before_variables_were_tried():
    found = audits.found()
    rungs = [replace(one, above=True, log_loss=0.5) for one in found.ladder.rungs]
    vars(again := replace(found))["_climbed"] = (replace(found.ladder, rungs=tuple(rungs)), "")
    assert again.advice == "try variables" and again.screen().badge == "Repair: try variables"
    text = flat(repr(again))
    assert "variables were not tried" in text and "etrain" not in text
    assert 'vc.audit(…, ladder="all")' in text
    rungs.append(replace(rungs[-1], name="variables"))
    vars(again := replace(found))["_climbed"] = (replace(found.ladder, rungs=tuple(rungs)), "")
    assert again.advice == "retrain" and "not tried" not in repr(again)
