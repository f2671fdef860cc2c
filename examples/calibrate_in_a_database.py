"""Fit a calibrator in Python, and run it as a query where the scores are.

Needs pandas and the extra duckdb. Writes calibrate.sql.
"""

import duckdb
import numpy as np
import pandas as pd

import varcal as vc

NAMES = ("age", "marital-status", "hours-per-week")


def main() -> None:
    """Export, check and run a calibrator in DuckDB."""
    income = vc.datasets.load_income()
    seen, new = income.part("audit"), income.part("test")
    calibrator = vc.VariableCalibrator(trees=False)
    calibrator.fit(seen.p, seen.y, {name: seen[name] for name in NAMES})

    exported = calibrator.to_sql("duckdb", table="scores", p="score", keep="id")
    exported.save("calibrate.sql")
    columns = {name: new[name] for name in NAMES}
    scores = pd.DataFrame({"id": range(len(new.y)), "score": new.p} | columns)
    with duckdb.connect() as connection:
        connection.register("scores", scores)
        exported.check(connection)  # 200 random rows with known answers
        inside = exported.run(connection)

    outside = calibrator.predict_proba(new.p, columns)
    assert np.abs(inside - outside).max() < 1e-8
    before, after = (vc.vece(new.y, p, new["age"], event="positive") for p in (new.p, inside))
    print(f"VECE along age: {100 * before:.1f} points before, {100 * after:.1f} in the database")


if __name__ == "__main__":
    main()
