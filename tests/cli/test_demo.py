"""`varcal demo` tells a story whose figures are those of the library."""

import pytest

import varcal as vc
from varcal.cli._demo import PEOPLE, proof


@pytest.fixture(scope="module")
def told():
    income = vc.datasets.load_income()
    seen, new = income.part("audit"), income.part("test")
    repair = vc.VariableCalibrator().fit(seen.p, seen.y, seen.X)
    repaired = repair.predict_proba(new.p, new.X)[:, 1]
    off = {name: new[name] for name in ("marital-status", "relationship", "age", "sex")}
    before, after = vc.audit(new.y, new.p, off), vc.audit(new.y, repaired, off)
    return new, repaired, proof(before, after, new, repaired)


def test_new_rows_prove_the_repair(told):
    new, repaired, lines = told
    errors = [line for line in lines if line.startswith(("by score", "along"))]
    assert [line.split()[1] for line in errors[1:]] == [
        "marital-status",
        "relationship",
        "age",
        "sex",
    ]
    # The last number of a line is the most that may be left.
    assert all(float(line.rstrip(")").split()[-1]) <= 2 for line in errors)
    married = new["marital-status"] == "Married-civ-spouse"
    rates = [f"{100 * one[married].mean():.1f}%" for one in (new.y, new.p, repaired)]
    assert ["married", *rates] in [line.split() for line in lines]
    assert lines[-1].startswith(("log-loss 0.405 → 0.300", "log-loss 0.405 → 0.301"))
    assert all(len(line) <= 80 for line in lines)


def test_people_are_in_the_data(told):
    new, _, _ = told
    for _, variable, is_meant in PEOPLE:
        assert 1_000 < is_meant(new[variable]).sum() < 4_000
