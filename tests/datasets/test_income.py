"""The network that passes ECE: its rows, its errors, and the script that made the file."""

import numpy as np
import pytest

from varcal.datasets import load_adult, load_income


@pytest.fixture(scope="module")
def income():
    return load_income()


def test_rows_are_those_of_adult(income):
    adult = load_adult()
    assert [len(income.part(name)) for name in ("audit", "test")] == [6_000, 6_000]
    assert income.licence == adult.licence and income.source == adult.source
    # Every row is one of Adult, with its outcome; fnlwgt and age tell most rows apart.
    key = set(zip(adult["fnlwgt"], adult["age"], adult["occupation"], adult.y, strict=True))
    own = zip(income["fnlwgt"], income["age"], income["occupation"], income.y, strict=True)
    assert set(own) <= key


def rates(income, rows):
    return income.p[rows].mean(), income.y[rows].mean()


def test_it_passes_by_score(income):
    """Ten bins of equal support, by sorting alone."""
    parts = np.array_split(np.argsort(income.p, kind="stable"), 10)
    gaps = [np.subtract(*rates(income, part)) for part in parts]
    assert np.abs(gaps).mean() == pytest.approx(0.0089, abs=5e-4)


def test_it_is_wrong_for_groups(income):
    says, happens = rates(income, income["marital-status"] == "Married-civ-spouse")
    assert happens - says == pytest.approx(0.143, abs=0.002)
    says, happens = rates(income, income["age"] < 30)
    assert says - happens == pytest.approx(0.093, abs=0.002)
