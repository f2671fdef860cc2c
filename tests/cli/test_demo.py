"""`varcal demo` tells a story whose figures are those of the library."""

import pytest

import varcal as vc


@pytest.fixture(scope="module")
def new_rows():
    income = vc.datasets.load_income()
    seen, new = income.part("audit"), income.part("test")
    repair = vc.VariableCalibrator().fit(seen.p, seen.y, seen.X)
    return new, repair.predict_proba(new.p, new.X)[:, 1]


def test_new_rows_prove_the_repair(new_rows):
    new, repaired = new_rows
    off = {name: new[name] for name in ("marital-status", "relationship", "age", "sex")}
    after = vc.audit(new.y, repaired, off, ladder="none")
    assert after.verdict != "repair" and max(row.high for row in after) <= 0.02
