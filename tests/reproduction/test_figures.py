"""The paper's experiments: every published figure to the last digit."""

import pytest

pytest.importorskip("skmisc")

from reproduction.paper_protocol import run_paper
from reproduction.published import PUBLISHED
from reproduction.rows import paper_rows
from reproduction.studies import STUDIES
from reproduction.theorems import run_theory

OUTPUTS = ("adult", "bank", "cardio", "cifar")


@pytest.fixture(scope="module")
def rows(paper_data):
    return {name: paper_rows(STUDIES[name], paper_data) for name in OUTPUTS}


@pytest.fixture(scope="module")
def paper_runs(rows):
    return {
        name: run_paper(STUDIES[name], rows[name].split(STUDIES[name].n_cal, 0)) for name in OUTPUTS
    }


def test_every_published_figure_is_reproduced(paper_runs):
    published = [
        figure for run in paper_runs.values() for figure in run.figures.values() if figure.published
    ]
    assert len(published) == sum(len(PUBLISHED[name]) for name in OUTPUTS) == 69
    for figure in published:
        assert not figure.failed, str(figure)
    assert sum(figure.target[1] == "accuracy" for figure in published) == 9
    assert sum(figure.target[1] == "VCE(v*)" for figure in published) == 4


def test_theorems_are_simulated_across_classes_and_alpha():
    run = run_theory(20_000)
    assert len(run.cases) == 72
    assert all(case.agrees for case in run.cases)
    third = [case for case in run.cases if case.theorem == 3]
    assert max(abs(case.ece - case.vece) for case in third) < 2e-3
