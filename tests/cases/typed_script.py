"""A user's script, for type checkers: every line must be clean under mypy --strict and pyright."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import varcal as vc

income = vc.datasets.load_income()
seen, new = income.part("audit"), income.part("test")
assert_type(seen, vc.datasets.Dataset)

audit = vc.audit(seen.y, seen.p, seen.X, protected=["sex"])
assert_type(audit, vc.results.Audit)
assert_type(audit["age"], vc.results.Curve)
worst = max(audit, key=lambda row: row.uneven.debiased)
limits: tuple[float, float] = (worst.low, worst.high)
names: list[str] = [row.variable for row in audit if row.verdict == "above limit"]
audit.report("report.html", title="Incomes")

assert_type(vc.ece(seen.y, seen.p), float)
assert_type(vc.vece("y", "p", "age", data={"y": seen.y, "p": seen.p, "age": seen["age"]}), float)
estimate = vc.estimate(seen.y, seen.p, seen["age"])
assert_type(estimate, vc.results.Estimate)
assert_type(vc.rows_needed(0.05), int)

calibrator = vc.VariableCalibrator(max_shift=0.2).fit(seen.p, seen.y, seen.X)
assert_type(calibrator, vc.VariableCalibrator)
q: NDArray[np.float64] = calibrator.predict_proba(new.p, new.X)
low, high = calibrator.predict_interval(new.p, new.X)
calibrator.save("calibrator.json")

compared = vc.compare(new.y, {"raw": new.p, "repaired": q}, new.X)
assert_type(compared, vc.results.Comparison)
verdict: str = compared.row("repaired", "uneven", "age").verdict

bins = vc.make_bins("y", "p", ["age"], data={"y": seen.y, "p": seen.p, "age": seen["age"]})
monitor = vc.Monitor(bins)
assert_type(monitor, vc.Monitor)
alarm: bool = monitor.update({"y": new.y, "p": new.p, "age": new["age"]}, id="day 1").alarm

try:
    vc.ece([0, 1], [0.2, 1.2])
except vc.exceptions.InputError as error:
    hint: str = error.hint
figures: dict[str, Any] = audit.to_dict()
