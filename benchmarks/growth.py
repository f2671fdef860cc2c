"""Quality against the number of calibration rows, beside other methods.

    python benchmarks/bench_variable_calibrator.py growth --out growth.jsonl
        [--worlds none "flights, by date"] [--rows 300 1000] [--draws 4] [--first-seed 100]
        [--methods VariableCalibrator LightGBM] [--budget 600] [--table]

Every fit is written to the file of JSON lines as soon as it is measured, and fits that the file
holds are not repeated, so a run can be stopped and continued. ``--budget`` ends it after so many
seconds of CPU time; ``--table`` only prints the tables of a file. Without ``--draws`` there are
more draws where rows are few. Seeds 0–19 are for reporting, seeds from 100 on for tuning.

In worlds whose truth is known the log-loss is the expected one, so that it has no noise from the
outcomes of test rows. Test rows are the same in all draws, except for flights. LightGBM starts at
a Platt curve of the score; its rounds are those of five-fold early stopping. EBM starts there, too.
``VariableCalibrator, blocks=False`` is told that new rows share the dates of calibration rows.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit, xlogy

import varcal as vc
from growth_worlds import NAMES, Rows, draw

OURS = "VariableCalibrator"
ROWS = (300, 1_000, 3_000, 10_000, 50_000, 200_000)
#: Draws by number of rows, if they are not given.
DRAWS = {300: 20, 1_000: 10, 3_000: 6, 10_000: 4, 50_000: 2, 200_000: 1}
#: Numbers of rows at which an EBM is fitted, and in how many draws: it takes long.
EBM_ROWS, EBM_DRAWS = (1_000, 10_000), 1
#: How far from the best log-loss still counts as level.
LEVEL = 0.001
FIGURES = ("log_loss", "ece", "max_vece")
Method = Callable[[Rows, Rows], np.ndarray]


def ours(blocks: bool | None = None) -> Method:
    """Return the variable calibrator, told whether new rows share blocks if that is given."""
    told = {} if blocks is None else {"blocks": blocks}

    def method(cal: Rows, test: Rows) -> np.ndarray:
        fit = vc.VariableCalibrator().fit(cal.p, cal.y, cal.V, **told)
        return fit.predict_proba(test.p, test.V)[:, 1]

    return method


def by_score(calibrator: vc.calibrators.Calibrator) -> Method:
    """Return a calibrator of the score alone."""

    def method(cal: Rows, test: Rows) -> np.ndarray:
        return calibrator.fit(cal.p, cal.y).predict_proba(test.p)[:, 1]

    return method


def _start(cal: Rows, test: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the logits of a Platt curve, fitted on the first rows."""
    platt = vc.calibrators.PlattCalibrator().fit(cal.p, cal.y)
    first, last = (
        logit(np.clip(platt.predict_proba(rows.p)[:, 1], 1e-9, 1 - 1e-9)) for rows in (cal, test)
    )
    return first, last


def _coded(cal: Rows, test: Rows) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return the score's logit and the variables, and the names of categories."""
    texts = [name for name, column in cal.V.items() if column.dtype.kind not in "if"]
    frames = [rows.V.assign(score=logit(rows.p)) for rows in (cal, test)]
    for name in texts:
        levels = sorted(cal.V[name].unique())
        frames = [f.assign(**{name: pd.Categorical(f[name], levels)}) for f in frames]
    return frames[0], frames[1], texts


def lightgbm(cal: Rows, test: Rows) -> np.ndarray:
    """Boost trees from the score; the rounds are those of five-fold early stopping."""
    import lightgbm as lgb

    n = len(cal.y)
    options = {
        "objective": "binary", "verbose": -1, "num_threads": 1, "seed": 0, "min_data_in_leaf": 20,
        "num_leaves": int(np.clip(n // 400, 7, 63)), "learning_rate": 0.05 if n < 5_000 else 0.1,
    }  # fmt: skip
    start, later = _start(cal, test)
    X, new, texts = _coded(cal, test)
    data = lgb.Dataset(X, cal.y, init_score=start, categorical_feature=texts, free_raw_data=False)
    stop = lgb.early_stopping(30, verbose=False)
    history = lgb.cv(
        options, data.construct(), 2_000, nfold=5, seed=0, stratified=True, callbacks=[stop]
    )
    model = lgb.train(options, data, len(history["valid binary_logloss-mean"]))
    return expit(later + model.predict(new, raw_score=True))


def ebm(cal: Rows, test: Rows) -> np.ndarray:
    """Fit an explainable boosting machine from the score."""
    from interpret.glassbox import ExplainableBoostingClassifier

    start, later = _start(cal, test)
    X, new, _ = _coded(cal, test)
    fit = ExplainableBoostingClassifier(n_jobs=1, outer_bags=4, random_state=0)
    return fit.fit(X, cal.y, init_score=start).predict_proba(new, init_score=later)[:, 1]


def mcgrad(cal: Rows, test: Rows) -> np.ndarray:
    """Fit MCGrad with its own settings."""
    from mcgrad.methods import MCGrad

    texts = [name for name, column in cal.V.items() if column.dtype.kind not in "if"]
    names = {
        "categorical_feature_column_names": texts,
        "numerical_feature_column_names": [name for name in cal.V if name not in texts],
    }
    frames = [rows.V.astype(dict.fromkeys(texts, object)) for rows in (cal, test)]
    fit = MCGrad().fit(frames[0].assign(p_=cal.p, y_=cal.y), "p_", "y_", **names)
    return fit.predict(frames[1].assign(p_=test.p, y_=test.y), "p_", **names)


METHODS: dict[str, Method] = {
    "raw": lambda cal, test: test.p,
    "Platt": by_score(vc.calibrators.PlattCalibrator()),
    "isotonic": by_score(vc.calibrators.IsotonicCalibrator()),
    "MCGrad": mcgrad,
    "EBM": ebm,
    "LightGBM": lightgbm,
    OURS: ours(),
    f"{OURS}, blocks=False": ours(blocks=False),
}
#: The libraries of other methods; those that are not installed are left out.
LIBRARIES = {"MCGrad": "mcgrad", "EBM": "interpret", "LightGBM": "lightgbm"}
INSTALLED = [name for name in METHODS if find_spec(LIBRARIES.get(name, "varcal"))]


def wanted(method: str, world: str, n: int, seed: int) -> bool:
    """Return whether a method runs on a draw if all methods are asked for."""
    if method == "EBM":
        return n in EBM_ROWS and seed % 100 < EBM_DRAWS
    told = "blocks" in inspect.signature(vc.VariableCalibrator.fit).parameters
    return "blocks" not in method or (told and world == "flights, random")


def measured(q: np.ndarray, test: Rows) -> dict[str, float]:
    """Return the figures of probabilities on test rows."""
    q = np.clip(q, np.finfo(float).eps, 1 - np.finfo(float).eps)
    loss = -(xlogy(test.truth, q) + xlogy(1 - test.truth, 1 - q)).mean()
    along = [vc.vece(test.y, q, column.to_numpy()) for _, column in test.V.items()]
    return {"log_loss": float(loss), "ece": vc.ece(test.y, q), "max_vece": max(along)}


def run(given: argparse.Namespace, out: Path) -> None:
    """Measure what the file does not hold yet."""
    done = set()
    if out.exists():
        found = read(out)
        done = set(zip(found["world"], found["n"], found["seed"], found["method"], strict=True))
    for n in given.rows:
        for step in range(given.draws or max(DRAWS.values())):
            for world in given.worlds:
                if given.draws is None and step >= DRAWS.get(n, 1):
                    continue
                seed = given.first_seed + step
                names = [m for m in given.methods if wanted(m, world, n, seed)]
                names = [m for m in names if (world, n, seed, m) not in done]
                rows = draw(world, n, seed) if names else None
                for name in names if rows else ():
                    if given.budget and time.process_time() > given.budget:
                        print("The budget is spent; run again to continue.", flush=True)
                        return
                    begun = time.process_time()
                    q = METHODS[name](*rows)
                    took = time.process_time() - begun
                    line = {"world": world, "n": n, "seed": seed, "method": name}
                    line |= {"cpu": round(took, 3)}
                    line |= {key: round(x, 6) for key, x in measured(q, rows[1]).items()}
                    with out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")


def read(path: Path) -> pd.DataFrame:
    """Return the measurements of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return pd.DataFrame([json.loads(line) for line in lines])


def _mean(values: pd.Series, digits: int, scale: float = 1.0) -> str:
    """Return a mean and its standard error."""
    text = f"{scale * values.mean():.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} ±{scale * values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def _verdict(part: pd.DataFrame, figure: str, mine: pd.Series) -> str:
    """Return ours minus the lowest of the others, and whether that is level or better."""
    others = part[~part["method"].str.startswith(OURS)].pivot_table(
        index="seed", columns="method", values=figure
    )
    # A method that ran in fewer draws is compared in these.
    apart = others.rsub(mine, axis=0).dropna(how="all")
    if apart.empty:
        return ""
    name = str(apart.mean().idxmax())
    values = apart[name].dropna()
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    level = LEVEL if figure == "log_loss" else error
    sign = "✓" if values.mean() <= level else "✗"
    text = _mean(values, 4) if figure == "log_loss" else _mean(values, 2, 100.0)
    return f"{text} {sign} ({name})"


def tables(found: pd.DataFrame) -> None:
    """Print one table per world, and one of CPU times."""
    found = found.drop_duplicates(["world", "n", "seed", "method"], keep="last")
    for world in [name for name in NAMES if name in set(found["world"])]:
        own = found[found["world"] == world]
        names = [m for m in METHODS if m in set(own["method"])]
        told = f"{OURS}, blocks=False"
        judged = told if world == "flights, random" and told in names else OURS
        print(f"\n### {world}: log-loss ± its standard error / ECE / max VECE, in points\n")
        print(
            "| rows (draws) | " + " | ".join(names) + " | ours − best log-loss | ECE | max VECE |"
        )
        print("|---|" + "---|" * (len(names) + 3))
        for n, part in own.groupby("n"):
            cells = []
            for name in names:
                some = part[part["method"] == name]
                if some.empty:
                    cells.append("")
                    continue
                more = [f"{100 * some[f].mean():.2f}" for f in FIGURES[1:]]
                cells.append(" / ".join([_mean(some["log_loss"], 4), *more]))
            mine = part[part["method"] == judged].set_index("seed")
            cells += [_verdict(part, figure, mine[figure]) for figure in FIGURES]
            print(f"| {n:,} ({part['seed'].nunique()}) | " + " | ".join(cells) + " |")
    print("\n### CPU seconds of a fit and its predictions, mean over all worlds\n")
    times = found.pivot_table(index="method", columns="n", values="cpu", observed=True)
    times = times.reindex([m for m in METHODS if m in times.index])
    print("| | " + " | ".join(f"{n:,}" for n in times) + " |\n|---|" + "---|" * times.shape[1])
    for name, row in times.iterrows():
        print(f"| {name} | " + " | ".join("" if np.isnan(x) else f"{x:.2f}" for x in row) + " |")


def main(arguments: list[str]) -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(
        prog="bench_variable_calibrator.py growth", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--worlds", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--methods", nargs="+", default=INSTALLED, choices=list(METHODS))
    parser.add_argument("--draws", type=int)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if not given.table:
        run(given, given.out)
    tables(read(given.out))
