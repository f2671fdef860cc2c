"""Methods that benchmarks compare: the variable calibrator, others of varcal, and other libraries.

A method is fitted on rows and returns a function that predicts the probabilities of others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import varcal as vc
from quality_rows import Rows, two

OURS = "VariableCalibrator"
Predict = Callable[[Rows], np.ndarray]
Method = Callable[[Rows], Predict]


def ours(variables: bool = True, blocks: bool | None = None, **options: object) -> Method:
    """Return the variable calibrator; options that a version does not have are left out."""

    def method(cal: Rows) -> Predict:
        known = inspect.signature(vc.VariableCalibrator).parameters
        given = {name: value for name, value in options.items() if name in known}
        told = {} if blocks is None else {"blocks": blocks}
        by = variables and cal.V is not None
        columns = [cal.V] if by else []
        fit = vc.VariableCalibrator(**given).fit(
            cal.p, cal.y, *columns, classes=range(cal.p.shape[1]), **told
        )
        return lambda rows: fit.predict_proba(rows.p, *([rows.V] if by else []))

    return method


def by_score(name: str, **options: object) -> Method:
    """Return a calibrator of varcal that uses the score alone."""

    def method(cal: Rows) -> Predict:
        calibrator = getattr(vc.calibrators, name)(**options)
        fit = calibrator.fit(cal.p, cal.y, classes=range(cal.p.shape[1]))
        return lambda rows: fit.predict_proba(rows.p)

    return method


def of_paper(kind: str, preset: str) -> Method:
    """Return a calibrator with the paper's settings, on the first variable."""

    def method(cal: Rows) -> Predict:
        calibrator = getattr(vc, kind).paper(preset)
        first = cal.V.iloc[:, 0].to_numpy()
        fit = calibrator.fit(cal.p, cal.y, first, classes=range(cal.p.shape[1]))
        return lambda rows: fit.predict_proba(rows.p, rows.V.iloc[:, 0].to_numpy())

    return method


def _texts(V: pd.DataFrame) -> list[str]:
    return [name for name in V if V[name].dtype.kind not in "if"]


def lightgbm(cal: Rows) -> Predict:
    """Boost trees from a Platt curve; the rounds are those of five-fold early stopping."""
    import lightgbm as lgb

    def score(rows: Rows) -> np.ndarray:
        return logit(np.clip(rows.p[:, 1], 1e-9, 1 - 1e-9))

    platt = LogisticRegression(C=1e9).fit(score(cal)[:, None], cal.y)
    levels = {name: sorted(cal.V[name].dropna().unique()) for name in _texts(cal.V)}

    def features(rows: Rows) -> pd.DataFrame:
        coded = {name: pd.Categorical(rows.V[name], known) for name, known in levels.items()}
        frame = rows.V.assign(score_=score(rows), **coded)
        return frame.set_axis([f"f{k}" for k in range(frame.shape[1])], axis=1)

    n = len(cal.y)
    options = {
        "objective": "binary", "verbose": -1, "num_threads": 1, "seed": 0, "min_data_in_leaf": 20,
        "num_leaves": int(np.clip(n // 400, 7, 63)), "learning_rate": 0.05 if n < 5_000 else 0.1,
    }  # fmt: skip
    start = platt.decision_function(score(cal)[:, None])
    data = lgb.Dataset(features(cal), cal.y, init_score=start, free_raw_data=False)
    stop = lgb.early_stopping(30, verbose=False)
    history = lgb.cv(
        options, data.construct(), 2_000, nfold=5, seed=0, stratified=True, callbacks=[stop]
    )
    model = lgb.train(options, data, len(history["valid binary_logloss-mean"]))
    return lambda rows: two(
        expit(
            platt.decision_function(score(rows)[:, None])
            + model.predict(features(rows), raw_score=True, num_threads=1)
        )
    )


def mcgrad(cal: Rows) -> Predict:
    """Fit MCGrad with its own settings."""
    from mcgrad.methods import MCGrad

    texts = _texts(cal.V)
    names = {
        "categorical_feature_column_names": texts,
        "numerical_feature_column_names": [name for name in cal.V if name not in texts],
    }

    def frame(rows: Rows) -> pd.DataFrame:
        filled = {name: rows.V[name].fillna("missing").astype(object) for name in texts}
        return rows.V.assign(p_=np.clip(rows.p[:, 1], 1e-9, 1 - 1e-9), y_=rows.y, **filled)

    fit = MCGrad().fit(frame(cal), "p_", "y_", **names)
    return lambda rows: two(fit.predict(frame(rows), "p_", **names))


def probmetrics(name: str) -> Method:
    """Return a calibrator of probmetrics, by its name there."""

    def method(cal: Rows) -> Predict:
        from probmetrics.calibrators import get_calibrator

        fit = get_calibrator(name).fit(cal.p, cal.y)
        return lambda rows: np.asarray(fit.predict_proba(rows.p))

    return method


def venn_abers(cal: Rows) -> Predict:
    """Fit the inductive Venn–Abers predictor."""
    from venn_abers import VennAbers

    fit = VennAbers()
    fit.fit(cal.p, cal.y)
    return lambda rows: np.asarray(fit.predict_proba(rows.p)[0])


RAW: dict[str, Method] = {"raw": lambda cal: lambda rows: rows.p}
#: Methods by score for two classes, and for more.
BY_SCORE: dict[str, Method] = {
    **RAW,
    "Platt": by_score("PlattCalibrator"),
    "beta": by_score("BetaCalibrator"),
    "isotonic": by_score("IsotonicCalibrator"),
    "temperature": by_score("TemperatureCalibrator"),
    **({"quadratic (probmetrics)": probmetrics("logistic")} if find_spec("probmetrics") else {}),
    **({"Venn–Abers": venn_abers} if find_spec("venn_abers") else {}),
    OURS: ours(variables=False),
}
BY_SCORES: dict[str, Method] = {
    **RAW,
    "temperature": by_score("TemperatureCalibrator"),
    "Dirichlet": by_score("DirichletCalibrator"),
    **({"SVS (probmetrics)": probmetrics("svs")} if find_spec("probmetrics") else {}),
    **({"SMS (probmetrics)": probmetrics("sms")} if find_spec("probmetrics") else {}),
    OURS: ours(variables=False),
    f"{OURS}, keep_argmax=False": ours(variables=False, keep_argmax=False),
}
#: Methods with variables; those whose library is not installed are left out.
WITH_VARIABLES: dict[str, Method] = {
    **RAW,
    "Platt": by_score("PlattCalibrator"),
    "beta": by_score("BetaCalibrator"),
    **({"LightGBM": lightgbm} if find_spec("lightgbm") else {}),
    **({"MCGrad": mcgrad} if find_spec("mcgrad") and find_spec("lightgbm") else {}),
    OURS: ours(),
}
