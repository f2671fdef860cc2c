"""The paper's results for Adult, reproduced from the raw census table."""

import pytest

pytest.importorskip("skmisc")

from reproduction.census import census_story


@pytest.fixture(scope="module")
def story():
    return census_story()


def test_figures_are_like_the_papers(story):
    """Kelly & Smyth, table 2: 20.67 % each; beta 1.65 and 9.59; tree 1.64 and 2.11."""
    row, near = story.comparison.row, {"abs": 0.015}
    assert row("uncalibrated", "accuracy", "").value == pytest.approx(0.791, abs=0.02)
    assert row("uncalibrated", "ECE", "").value == pytest.approx(0.2067, **near)
    assert row("uncalibrated", "VECE", "age").value == pytest.approx(0.2067, **near)
    assert row("beta", "ECE", "").value == pytest.approx(0.0165, **near)
    assert row("beta", "VECE", "age").value == pytest.approx(0.0959, **near)
    assert row("tree on age", "ECE", "").value == pytest.approx(0.0164, **near)
    assert row("tree on age", "VECE", "age").value == pytest.approx(0.0211, **near)


def test_audits_rank_what_is_left(story):
    before, after = story.audits["beta"], story.audits["tree on age"]
    assert before.row("age").verdict == "off"
    assert after.row("age").uneven.debiased < before.row("age").uneven.debiased / 2
    assert {row.variable for row in after.rows[:6]} >= {"education-num"}


def test_conclusions(story):
    told = story.conclusions()
    assert len(told) == 6
    assert not [name for name, holds in told.items() if not holds]
