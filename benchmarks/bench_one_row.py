"""CPU time of one row through `predict_proba`, next to scikit-learn's CalibratedClassifierCV.

    python benchmarks/bench_one_row.py [--repeats 7]

CalibratedClassifierCV calls its classifier as well, so the classifier's own time is listed, too.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import varcal as vc

#: Microseconds that one row may take, for calibrators of the score and of variables.
SCORE_TARGET, VARIABLE_TARGET = 60, 150
CALLS = 300


def cpu_us(predict: Callable[..., object], row: tuple, repeats: int) -> float:
    """Return the least CPU time of one row in microseconds."""
    predict(*row)
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(CALLS):
            predict(*row)
        best = min(best, (time.process_time() - start) / CALLS)
    return best * 1e6


def rows(n: int = 5_000) -> tuple:
    rng = np.random.default_rng(0)
    v = {name: rng.normal(size=n) for name in ("a", "b", "c")}
    v["word"] = rng.choice(["x", "y", "z"], n)
    p = rng.uniform(0.02, 0.98, n)
    lift = 0.1 * (v["a"] > 0) + 0.1 * (v["word"] == "x") * (v["b"] > 0)
    return p, (rng.random(n) < np.clip(p - 0.05 + lift, 0, 1)).astype(int), v


def cases() -> list[tuple[str, object, tuple, int]]:
    """Return a name, a fitted calibrator, the arguments of one row, and the target."""
    p, y, v = rows()
    numbers = np.column_stack([v[name] for name in ("a", "b", "c")])
    four = np.column_stack([numbers, np.random.default_rng(1).normal(size=len(p))])
    score, one = np.array([0.3]), np.array([0.5])
    found = [
        (f"{cls.__name__}, array", cls().fit(p, y), (score,), SCORE_TARGET)
        for cls in (
            vc.calibrators.PlattCalibrator,
            vc.calibrators.BetaCalibrator,
            vc.calibrators.IsotonicCalibrator,
            vc.calibrators.HistogramCalibrator,
            vc.calibrators.TemperatureCalibrator,
        )
    ]
    beta = found[1][1]
    found.append(("BetaCalibrator, list", beta, ([0.3],), SCORE_TARGET))
    rng = np.random.default_rng(2)
    many = rng.dirichlet(np.ones(3), len(p))
    labels = rng.integers(0, 3, len(p))
    for cls in (
        vc.calibrators.TemperatureCalibrator,
        vc.calibrators.DirichletCalibrator,
        vc.calibrators.BetaCalibrator,
    ):
        model = cls().fit(many, labels)
        found.append((f"{cls.__name__}, 3 classes", model, (many[:1].copy(),), SCORE_TARGET))
    words = {name: values[:1] for name, values in v.items()}
    for cls in (
        vc.VariableCalibrator,
        vc.calibrators.TreeCalibrator,
        vc.calibrators.AugmentedCalibrator,
    ):
        name = cls.__name__
        found += [
            (f"{name}, 1 array", cls().fit(p, y, v["a"]), (score, one), VARIABLE_TARGET),
            (
                f"{name}, 4 columns of an array",
                cls().fit(p, y, four),
                (score, four[:1].copy()),
                VARIABLE_TARGET,
            ),
            (
                f"{name}, dict of lists, one of strings",
                cls().fit(p, y, v),
                ([0.3], {name: values.tolist() for name, values in words.items()}),
                VARIABLE_TARGET,
            ),
        ]
    ranked = vc.VariableCalibrator(preserve_ranking=True).fit(p, y)
    found.append(("VariableCalibrator, preserve_ranking", ranked, (score,), VARIABLE_TARGET))
    return found


def peers() -> list[tuple[str, object, np.ndarray]]:
    p, y, v = rows()
    X = np.column_stack([p, v["a"], v["b"], v["c"]])
    classifier = LogisticRegression().fit(X, y)
    found = [("LogisticRegression alone", classifier, X[:1])]
    for method in ("sigmoid", "isotonic"):
        model = CalibratedClassifierCV(FrozenEstimator(classifier), method=method).fit(X, y)
        found.append((f"CalibratedClassifierCV, {method}", model, X[:1]))
    return found


def main(repeats: int) -> None:
    warnings.simplefilter("ignore")
    print("| one row | µs | at most µs |")
    print("|---|---|---|")
    for name, model, arguments, target in cases():
        took = cpu_us(model.predict_proba, arguments, repeats)
        print(f"| {name} | {took:.0f} | {target}{'' if took <= target else ' (over)'} |")
    for name, model, X in peers():
        print(f"| {name} | {cpu_us(model.predict_proba, (X,), repeats):.0f} | |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    main(parser.parse_args().repeats)
