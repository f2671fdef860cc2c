"""The paper's results for Adult, reproduced from the raw census table."""

import pytest

pytest.importorskip("skmisc")

from reproduction.census import census_story


@pytest.fixture(scope="module")
def story():
    return census_story()


def test_figures_are_like_the_papers(story):
    """Kelly & Smyth, table 2: 20.67 % each; beta 1.65 and 9.59; tree 1.64 and 2.11."""
    found, near = story.figures, {"abs": 0.015}
    assert story.accuracy["uncalibrated"] == pytest.approx(0.791, abs=0.02)
    for method, ece, vece in (
        ("uncalibrated", 0.2067, 0.2067),
        ("beta", 0.0165, 0.0959),
        ("tree on age", 0.0164, 0.0211),
    ):
        assert found[method, ""].debiased == pytest.approx(ece, **near)
        assert found[method, "age"].debiased == pytest.approx(vece, **near)


def test_audits_rank_what_is_left(story):
    before, after = story.audits["beta"], story.audits["tree on age"]
    assert before.row("age").verdict == "above limit"
    assert after.row("age").uneven.debiased < before.row("age").uneven.debiased / 2
    assert {row.variable for row in after.rows[:6]} >= {"education-num"}


def test_conclusions(story):
    told = story.conclusions()
    assert len(told) == 6
    assert not [name for name, holds in told.items() if not holds]
