"""What varcal and other tools repair, and how often they find fault with a perfect model.

    python benchmarks/compare_tools.py [--models 200]

Prints the tables of docs/comparison.md. Tools that are not installed are left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import varcal as vc
from varcal.datasets import Dataset

Floats = NDArray[np.float64]
Learned = Callable[[Dataset], Floats]


def sigmoid(rows: Dataset) -> Learned:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e9).fit(logit(rows.p), rows.y)
    return lambda new: model.predict_proba(logit(new.p))[:, 1]


def isotonic(rows: Dataset) -> Learned:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(out_of_bounds="clip").fit(rows.p, rows.y)
    return lambda new: model.predict(new.p)


def betacal(rows: Dataset) -> Learned:
    from betacal import BetaCalibration

    model = BetaCalibration("abm").fit(rows.p.reshape(-1, 1), rows.y)
    return lambda new: model.predict(new.p.reshape(-1, 1))


def mcgrad(rows: Dataset) -> Learned:
    from mcgrad.methods import MCGrad

    texts, numbers = kinds(rows)
    model = MCGrad()
    model.fit(
        frame(rows),
        "p",
        "y",
        categorical_feature_column_names=texts,
        numerical_feature_column_names=numbers,
    )
    return lambda new: model.predict(
        frame(new),
        "p",
        categorical_feature_column_names=texts,
        numerical_feature_column_names=numbers,
    )


def boosted(rows: Dataset) -> Learned:
    """Trees on the score and all columns, which is what one would write by hand."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    texts, numbers = kinds(rows)

    def encoded(part: Dataset) -> pd.DataFrame:
        columns = {name: pd.Categorical(part[name], categories=levels[name]) for name in texts}
        return pd.DataFrame(
            {"logit": logit(part.p)[:, 0]} | {n: part[n] for n in numbers} | columns
        )

    levels = {name: sorted(set(rows[name]) - {None}) for name in texts}
    model = HistGradientBoostingClassifier(
        categorical_features="from_dtype", early_stopping=True, random_state=0
    ).fit(encoded(rows), rows.y)
    return lambda new: model.predict_proba(encoded(new))[:, 1]


def ours(calibrator: vc.calibrators.Calibrator) -> Callable[[Dataset], Learned]:
    def learn(rows: Dataset) -> Learned:
        calibrator.fit(rows.p, rows.y, rows.X)
        return lambda new: calibrator.predict_proba(new.p, new.X)[:, 1]

    return learn


REPAIRS = {
    "scikit-learn, sigmoid": ("sklearn", sigmoid),
    "scikit-learn, isotonic": ("sklearn", isotonic),
    "betacal": ("betacal", betacal),
    "scikit-learn, boosted trees on score and columns": ("sklearn", boosted),
    "MCGrad": ("mcgrad", mcgrad),
    "varcal, `TreeCalibrator`": ("varcal", ours(vc.calibrators.TreeCalibrator())),
    "varcal, `VariableCalibrator`": ("varcal", ours(vc.VariableCalibrator())),
}


def logit(p: Floats) -> Floats:
    return np.log(p / (1 - p)).reshape(-1, 1)


def kinds(rows: Dataset) -> tuple[list[str], list[str]]:
    texts = [name for name, column in rows.X.items() if column.dtype == object]
    return texts, [name for name in rows.X if name not in texts]


def frame(rows: Dataset) -> pd.DataFrame:
    return pd.DataFrame({"y": rows.y, "p": rows.p} | rows.X)


def repairs() -> None:
    """Learn from one half of the income data, and judge by the other."""
    income = vc.datasets.load_income()
    seen, new = income.part("audit"), income.part("test")
    sets, seconds = {"the network as it is": new.p}, {"the network as it is": 0.0}
    for name, (package, learn) in REPAIRS.items():
        if find_spec(package):
            started = time.process_time()
            learned = learn(seen)
            seconds[name] = time.process_time() - started
            sets[name] = np.clip(learned(new), 1e-6, 1 - 1e-6)
    found = vc.compare(new.y, sets, new.X)
    print("| | log-loss | by score | along age | along marital status | worst of 14 | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name in sets:
        off = {one: 100 * found.row(name, "uneven", one).value for one in new.X}
        loss, ece = found.row(name, "log-loss").value, 100 * found.row(name, "by score").value
        print(
            f"| {name} | {loss:.3f} | {ece:.1f} | {off['age']:.1f} | {off['marital-status']:.1f} "
            f"| {max(off.values()):.1f} | {seconds[name]:.1f} |"
        )


def audit_finds(y: Floats, p: Floats, columns: dict[str, Floats]) -> bool:
    found = vc.audit(y, p, columns, ladder="none")
    return any(row.p_holm < 0.05 for row in found)


def diagnostics_finds(y: Floats, p: Floats, columns: dict[str, Floats]) -> bool:
    from model_diagnostics.calibration import compute_bias

    return any(compute_bias(y, p, column)["p_value"].min() < 0.05 for column in columns.values())


def mcgrad_finds(y: Floats, p: Floats, columns: dict[str, Floats]) -> bool:
    from mcgrad.metrics import MulticalibrationError

    rows = pd.DataFrame({"y": y, "p": p} | columns)
    found = MulticalibrationError(rows, "y", "p", numerical_segment_columns=list(columns))
    return found.mce_pvalue < 0.05


SEARCHES = {
    "model-diagnostics, any p-value of `compute_bias`": ("model_diagnostics", diagnostics_finds),
    "MCGrad, `mce_pvalue`": ("mcgrad", mcgrad_finds),
    "varcal, any adjusted p-value of `audit`": ("varcal", audit_finds),
}


def false_alarms(models: int) -> None:
    """Search for faults of perfect models along ten columns of noise."""
    alarms = {name: 0 for name, (package, _) in SEARCHES.items() if find_spec(package)}
    for seed in range(models):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 2_000)
        y = (rng.random(2_000) < p).astype(float)
        columns = {f"v{k}": rng.normal(size=2_000) for k in range(10)}
        for name in alarms:
            alarms[name] += bool(SEARCHES[name][1](y, p, columns))
    print(f"| at 5 % | perfect models with an alarm, of {models} |")
    print("|---|---|")
    for name, count in alarms.items():
        error = 100 * np.sqrt(count / models * (1 - count / models) / models)
        print(f"| {name} | {100 * count / models:.0f} ± {error:.0f} % |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    packages = ("varcal", "scikit-learn", "betacal", "MCGrad", "model-diagnostics", "netcal")
    modules = ("varcal", "sklearn", "betacal", "mcgrad", "model_diagnostics", "netcal")
    known = zip(packages, modules, strict=True)
    print(", ".join(f"{name} {version(name)}" for name, module in known if find_spec(module)))
    print()
    repairs()
    print()
    false_alarms(chosen.models)


if __name__ == "__main__":
    main()
