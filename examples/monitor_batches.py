"""Watch a repaired network day by day, and learn when and where labels go wrong.

The state is kept in monitor.json between days, as a scheduled job would.
"""

import numpy as np

import varcal as vc

NAMES = ("age", "marital-status", "education-num", "sex")
ROWS_PER_DAY, BROKEN_FROM = 250, 11


def main() -> None:
    """Update the monitor with one batch a day until it raises an alarm."""
    income = vc.datasets.load_income()
    past, new = income.part("audit"), income.part("test")
    repair = vc.VariableCalibrator().fit(past.p, past.y, {name: past[name] for name in NAMES})
    columns = {name: new[name] for name in NAMES}
    p, y = repair.predict_proba(new.p, columns)[:, 1], new.y.copy()

    # From day 11 on, 40 % of the high incomes of married people get lost on their way.
    rng = np.random.default_rng(0)
    day = rng.permutation(np.arange(len(y)) // ROWS_PER_DAY + 1)
    married = columns["marital-status"] == "Married-civ-spouse"
    y[(day >= BROKEN_FROM) & married & (rng.random(len(y)) < 0.4)] = 0

    before = {"y": past.y, "p": past.p} | {name: past[name] for name in NAMES}
    vc.Monitor(vc.make_bins("y", "p", data=before, monitor=0.03)).save("monitor.json")
    for today in range(1, int(day.max()) + 1):
        rows = day == today
        monitor = vc.load("monitor.json")
        batch = {"y": y[rows], "p": p[rows]} | {name: columns[name][rows] for name in NAMES}
        status = monitor.update(batch, id=f"day {today}")
        monitor.save("monitor.json")
        if status.alarm:
            print(f"day {today}: {status}")
            break


if __name__ == "__main__":
    main()
