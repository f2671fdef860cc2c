"""The first screen: badge, headline, lede, groups, checks and steps of every kind of audit."""

import itertools
import re

import numpy as np
import pytest

import varcal as vc
from cases.audits_by_hand import audit, claim, fine, mock, place, repaired, row
from varcal._audit.first_screen import FirstScreen, first_screen
from varcal._audit.screen.checks import ABOVE, BELOW, EITHER_SIDE, Off
from varcal._audit.screen.judgement import judgement_of, score_trend
from varcal._text.sentences import Code, StrongName

CONFIDENCE = ("confidence", (0.0, 0.0, 0.01))


def told(found, **options):
    screen = first_screen(found, **options)
    return screen, screen.headline, screen.badge.text, str(screen.lede)


def claims(**risk):
    return [claim("risk", **risk), claim("confidence", 0.784, 0.784)]


def quiet(name="x", high=0.01):
    return row(name, 0.001, 0.0, high, others=[CONFIDENCE])


def test_right_on_average_wrong_for_groups():
    screen, headline, badge, lede = told(mock())
    assert headline == "Right on average, wrong for groups"
    assert badge == "Repair first"
    assert lede == (
        "Overall the model says 24.0% and 23.5% happens; by score it is off by 2.7 points (ECE). "
        "But along 2 of 5 variables it is surely off by more than 2.0 points: most along "
        "relationship and marital-status, by 15.6 and 15.5 points on average."
    )
    assert [str(part) for part in screen.lede.parts if isinstance(part, StrongName)] == [
        "relationship",
        "marital-status",
    ]
    assert screen.groups_title == "For whom it is wrong"
    assert str(screen.groups_after) == "Confidence is off along the same variables."
    first, second, third = screen.groups
    assert (str(first.name), first.side) == ("Married-civ-spouse", "too low")
    assert str(first.about) == "marital-status · 47% of rows"
    assert (str(second.name), str(second.about)) == ("age 36 to 60", "48% of rows")
    assert third.side == "too high"
    assert [step.title for step in screen.steps] == [
        "Until it is repaired",
        "Repair it, with columns you may use",
        "Prove it, then keep it so",
    ]
    assert "Totals over everybody are right" in str(screen.steps[0].text)
    gate = [part for part in screen.steps[2].text.parts if isinstance(part, Code)]
    assert gate == ["varcal audit new.csv … --max-uneven 2%"]


def test_checks_of_both_claims():
    screen = first_screen(mock())
    assert [column.title for column in screen.columns] == ["Risk", "Confidence"]
    average, score, along, off = screen.checks
    assert [cell.state for cell in average.cells] == [BELOW, BELOW]
    assert [cell.state for cell in score.cells] == [EITHER_SIDE, EITHER_SIDE]
    assert [cell.state for cell in along.cells] == [ABOVE, ABOVE]
    # Intervals hold for all variables at once, so the largest ends are an interval of the largest.
    assert (along.cells[0].low, along.cells[0].high) == (0.145, 0.167)
    assert off.cells == (Off(2, 5), Off(2, 5))


def test_what_a_repair_would_achieve():
    before = mock()
    after = fine()
    before = repaired(before, after)
    screen, _, _, lede = told(before)
    assert lede.endswith("A repair learned from these rows would bring the worst down to 0.3.")
    assert screen.columns[-1].title == "After repair"
    assert [check.cells[-1].state for check in screen.checks[:3]] == [BELOW] * 3
    assert screen.checks[3].cells[-1] == Off(0, 2)
    assert str(screen.checks_after) == (
        "After repair: learned from 5,000 rows, judged by 5,000 others; the worse of the claims is "
        "shown. It gets more answers right: 86.4% instead of 78.8%. Log-loss 0.298 instead of "
        "0.503."
    )
    assert "protected=" in str(screen.steps[1].text)
    quick = first_screen(before, repair=False)
    assert len(quick.columns) == 2
    assert "repair" not in str(quick.lede)
    left = audit(
        claims(predicted=0.3, observed=0.3), [row("age", 0.022, 0.01, 0.03, others=[CONFIDENCE])]
    )
    before = repaired(before, after, allowed=left, protected=["sex", "race"])
    step = str(first_screen(before).steps[1].text)
    assert step.endswith("Without sex and race, 2.2 points would remain, along age.")
    before = repaired(before, before, helps=False)
    screen, _, _, lede = told(before)
    assert lede.endswith("A repair was tried, and gains nothing.")
    assert len(screen.columns) == 2
    assert screen.steps[1].title == "Do not repair it this way"


def test_fine():
    found = fine()
    screen, headline, badge, lede = told(found)
    assert (headline, badge) == ("No fault found", "Fine, to within 0.9 points")
    assert lede == (
        "Overall the model says 3.3% and 3.3% happens; by score it is off by 0.1 points (ECE), at "
        "most 0.5. None of the 2 variables shows uneven error: more than 0.9 percentage points "
        "along any of them can be ruled out. Where rows are few the check is weaker: for income: c "
        "(100 rows) an error of up to 7.0 points could still be there."
    )
    assert screen.groups == ()
    assert [one.variable for one in screen.bounds] == ["income", "balance"]
    assert (screen.bounds[0].at_most, screen.bounds[0].n) == (0.009, 100)
    assert screen.bounds[0].there == pytest.approx(0.07)
    assert "The outcome is rare: 3.3% of rows; 0.9 points are 27% of that" in str(
        screen.groups_after
    )
    assert "limit=0.005" in screen.groups_after.parts
    assert [step.title for step in screen.steps] == [
        "Use it, within what was checked",
        "Look again where it is thin",
    ]
    found = repaired(found, found, helps=False)
    steps = first_screen(found).steps
    assert steps[1].title == "Do not repair it"
    assert "0.3 points before and 0.3 after; log-loss 0.503 both times" in str(steps[1].text)


def test_biased_only():
    found = audit(claims(predicted=0.30, observed=0.25, ece=(0.05, 0.043, 0.057)), [quiet()])
    screen, headline, badge, lede = told(found)
    assert (headline, badge) == ("Too high everywhere, by 5.0 points", "Repair first")
    assert lede == (
        "Overall the model says 30.0% and 25.0% happens: too high by 5.0 points; by score it is "
        "off by 5.0 points (ECE). Along no variable does this change by more than 1.0 points."
    )
    assert "BetaCalibrator" in str(screen.steps[1].text)
    assert "single ones and totals are both wrong" in str(screen.steps[0].text)
    unsure = audit(
        claims(predicted=0.30, observed=0.25, ece=(0.05, 0.043, 0.057)), [quiet(high=0.04)]
    )
    assert first_screen(unsure).headline == "Too high by 5.0 points on average"


def test_both():
    far = place("sex", "Female", 0.2, 0.36)
    near = place("sex", "Male", 0.2, 0.21)
    found = audit(
        claims(predicted=0.25, observed=0.30, ece=(0.05, 0.043, 0.057)),
        [row("sex", 0.05, 0.04, 0.06, others=[CONFIDENCE], where=far), quiet()],
        places=[near, far],
    )
    screen, headline, _, lede = told(found)
    assert headline == "Too low by 5.0 points, for some far more"
    assert "it is also surely off by more than 2.0 points once that is taken off" in lede
    assert [str(group.name) for group in screen.groups] == ["Female", "Male"]
    assert not screen.groups[0].better
    assert str(screen.groups[1].better) == "better than the rest: 1.0 instead of 5.0"
    assert "not surely off" in str(screen.groups_after)
    even = audit(found.claims.values(), found.rows, places=[place("sex", "Female", 0.2, 0.26)])
    assert first_screen(even).headline == "Too low by 5.0 points, for some more"


def test_by_score_only():
    found = audit(claims(predicted=0.25, observed=0.25, ece=(0.05, 0.043, 0.057)), [quiet()])
    _, headline, badge, lede = told(found)
    assert headline.startswith("Right on average, wrong by score")
    assert badge == "Repair first"
    assert "by score it is off by 5.0 points (ECE)" in lede
    assert "Along no variable does the error change by more than 1.0 points." in lede
    off = [row("sex", 0.05, 0.04, 0.06, others=[CONFIDENCE])]
    assert (
        first_screen(audit(found.claims.values(), off)).headline
        == "Right on average, wrong by score and for groups"
    )


@pytest.mark.parametrize(("slope", "word"), [(2.0, "extreme"), (0.5, "timid")])
def test_scores_too_extreme_or_too_timid(rng, slope, word):
    n = 20_000
    logit = rng.normal(0, 1.5, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    p = 1 / (1 + np.exp(-slope * logit))
    found = vc.audit(y, p, {"noise": rng.normal(size=n)}, repair=False)
    assert score_trend(found.claims["risk"]) == word
    assert score_trend(found.claims["confidence"]) == word
    sure = {"extreme": "Too sure", "timid": "Not sure enough"}[word]
    assert first_screen(found).headline.startswith(sure)


def test_evidence_but_none_off():
    small = audit(
        claims(predicted=0.25, observed=0.25), [row("sex", 0.01, 0.005, 0.015, others=[CONFIDENCE])]
    )
    screen, headline, badge, lede = told(small)
    assert (headline, badge) == ("Small faults only", "Watch")
    assert lede.endswith(
        "Along sex there is uneven error, but not surely more than 2.0 points: 1.0 points on "
        "average (0.5 to 1.5)."
    )
    assert screen.groups_title == "Where faults show"
    assert [str(group.about) for group in screen.groups] == ["8% of rows"]
    unclear = audit(
        claims(predicted=0.25, observed=0.25),
        [row("sex", 0.02, 0.005, 0.035, others=[CONFIDENCE]), quiet()],
    )
    _, headline, badge, lede = told(unclear)
    assert (headline, badge) == ("Faults found, size unclear", "Watch")
    assert "Along 1 of 2 variables there is uneven error" in lede
    by_score = audit(claims(predicted=0.25, observed=0.25, ece=(0.012, 0.006, 0.018)), [quiet()])
    assert told(by_score)[1:3] == ("Small faults only", "Watch")


def test_too_few_rows():
    found = fine(n_rows=300, high=0.1)
    screen, headline, badge, lede = told(found)
    assert (headline, badge) == ("Too few rows to tell", "Cannot tell yet")
    assert lede.startswith(
        "Nothing was found in 300 rows, but errors of up to 10.0 points would not have been seen; "
        "about 7,500 rows would show 2.0 points."
    )
    assert screen.steps[0].title == "Do not rely on it yet"
    # The badge is "fine" only if average and ECE are known as well.
    wide = audit([claim("risk", 0.25, 0.25, reach=0.03)], [row("x", 0.001, 0.0, 0.01)])
    assert first_screen(wide).badge.text == "Cannot tell yet"


def test_averages_that_are_not_known_are_not_called_right():
    off = [row("sex", 0.05, 0.04, 0.06, others=[CONFIDENCE])]
    wide = audit([claim("risk", 0.25, 0.25, reach=0.03), claim("confidence", 0.8, 0.8)], off)
    assert first_screen(wide).headline == "About right on average, wrong for groups"
    high = audit([claim("risk", 0.265, 0.25, reach=0.01), claim("confidence", 0.8, 0.8)], off)
    assert first_screen(high).headline == "Somewhat too high on average, wrong for groups"


def test_one_claim_has_one_column():
    found = audit(
        [claim("confidence", 0.8, 0.79, reach=0.001)],
        [row("x", 0.001, 0.0, 0.01, name="confidence")],
        event="correct",
    )
    screen, headline, _, lede = told(found)
    assert [column.title for column in screen.columns] == ["Confidence"]
    assert lede.startswith("Overall the model is 80.0% sure of its answers and right 79.0%")
    assert headline == "Small faults only"


def test_more_classes_have_a_column_for_the_worst():
    many = [
        claim("confidence", 0.8, 0.79),
        claim("class a", 0.3, 0.29, label="a"),
        claim("class b", 0.3, 0.25, label="b", ece=(0.05, 0.04, 0.06)),
    ]
    others = [("confidence", (0.01, 0.0, 0.02)), ("class a", (0.01, 0.0, 0.02))]
    where = place("x", "low", 0.3, 0.1, name="class b")
    found = audit(
        many,
        [row("x", 0.05, 0.04, 0.06, name="class b", others=others, where=where)],
        places=[where],
    )
    screen, headline, _, lede = told(found)
    assert [column.title for column in screen.columns] == ["Confidence", "Worst class"]
    assert screen.checks[0].cells[1].label == "b"
    assert headline == "Too high by 5.0 points, for some far more"
    assert lede.startswith("Overall the model says 30.0% for class b and 25.0% happens")
    only = audit(many[1:], found.rows, places=[where], event="classwise")
    assert [column.title for column in first_screen(only).columns] == ["Worst class"]


def test_groups_of_several_claims_name_them():
    where = [place("a", "north", 0.3, 0.4), place("a", "south", 0.9, 0.7, name="confidence")]
    found = audit(claims(predicted=0.25, observed=0.25), mock().rows, places=where)
    screen = first_screen(found)
    assert "Each line names the claim that is wrong." in str(screen.groups_note)
    assert [group.side for group in screen.groups] == ["too low", "too sure"]


def test_short_levels_are_named_with_their_variable():
    found = audit(
        claims(predicted=0.25, observed=0.25),
        mock().rows,
        places=[place("religious", "1", 0.3, 0.4)],
    )
    assert str(first_screen(found).groups[0].name) == "religious: 1"


FORBIDDEN = re.compile(r"\bvaries\b|\bcalibrated\b|significan|\bpasses\b|no gap", re.I)


@pytest.mark.parametrize(
    ("bias", "score", "along"),
    list(itertools.product((0.0, 0.01, 0.05), (0.0, 0.01, 0.05), (0.0, 0.01, 0.02, 0.05))),
)
def test_words_never_contradict_the_figures(bias, score, along):
    size = max(score, bias)
    ece = (size, max(size - 0.007, 0.0), size + 0.007)
    rows = [row("x", along, max(along - 0.008, 0.0), along + 0.008, others=[CONFIDENCE])]
    found = audit(
        [claim("risk", 0.25 + bias, 0.25, 0.005, ece), claim("confidence", 0.8, 0.8)], rows
    )
    screen: FirstScreen = first_screen(found)
    text = f"{screen.headline} {screen.lede} " + " ".join(str(one.text) for one in screen.steps)
    assert not FORBIDDEN.search(text)
    states = [cell.state for check in screen.checks[:3] for cell in check.cells]
    assert (screen.badge.text == "Repair first") == (ABOVE in states)
    if "No fault found" in screen.headline:
        assert set(states) == {BELOW}
    if screen.headline.startswith("Right on average"):
        assert {cell.state for cell in screen.checks[0].cells} == {BELOW}
    assert judgement_of(found).evidence == (screen.badge.text in ("Repair first", "Watch"))


def test_the_sentence_is_headline_and_lede():
    assert mock().sentence.startswith(
        "Right on average, wrong for groups. Overall the model says 24.0% and 23.5% happens"
    )
