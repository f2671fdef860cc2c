"""Repair a network in three ways, prove on new rows what each achieves, and keep the best.

Writes repair.json and comparison.html.
"""

import varcal as vc

PERSONAL = ("age", "sex", "race", "marital-status", "relationship", "native-country")


def main() -> None:
    """Learn from one half of the rows, and judge by the other."""
    income = vc.datasets.load_income()
    seen, new = income.part("audit"), income.part("test")
    allowed = [name for name in seen.X if name not in PERSONAL]

    by_score = vc.calibrators.BetaCalibrator().fit(seen.p, seen.y)
    without = vc.VariableCalibrator().fit(seen.p, seen.y, {name: seen[name] for name in allowed})
    full = vc.VariableCalibrator().fit(seen.p, seen.y, seen.X)

    compared = vc.compare(
        new.y,
        {
            "before": new.p,
            "by score": by_score.predict_proba(new.p),
            "work record": without.predict_proba(new.p, {name: new[name] for name in allowed}),
            "all columns": full.predict_proba(new.p, new.X),
        },
        {name: new[name] for name in ("age", "sex", "marital-status", "occupation")},
    )
    print(compared)
    compared.report("comparison.html", title="Three repairs of the income model")
    full.save("repair.json")
    print("wrote comparison.html and repair.json")


if __name__ == "__main__":
    main()
