"""Exports of calibrators: how far they are from `predict_proba`, and their time per row.

    OPENBLAS_NUM_THREADS=1 python benchmarks/export.py [--rows 1000000] [--repeats 3]

Calibrators are fitted on 3,000 rows of Adult. Rows are hostile: missing, infinite and out-of-range
numbers, unseen levels, scores of 0 and 1. Times are CPU times of one thread. DuckDB and ONNX are
compared with `predict_proba` on all rows; DuckDB reads a table and writes one. A scorer is timed on
1,000 rows, one at a time, next to `predict_proba` and scikit-learn's CalibratedClassifierCV.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import duckdb
import numpy as np
import onnxruntime
import pyarrow as pa
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import varcal as vc

NAMES = ("age", "hours-per-week", "education-num", "occupation")
#: The largest ratio to the time of `predict_proba`: in DuckDB, in ONNX, and with pairs.
DUCKDB_TARGET, ONNX_TARGET, PAIRS_TARGET = 4, 6, 10
#: Microseconds of a scorer.
SCORER_TARGET = 40
ONE_BY_ONE = 1_000
STRANGE = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -0.0, 5e-324]


def calibrators(adult: vc.datasets.Dataset) -> dict[str, vc.calibrators.Calibrator]:
    rows = np.random.default_rng(0).permutation(len(adult))[:3_000]
    p, y, v = adult.p[rows], adult.y[rows], {name: adult[name][rows] for name in NAMES}
    return {
        "Platt": vc.calibrators.PlattCalibrator().fit(p, y),
        "beta": vc.calibrators.BetaCalibrator().fit(p, y),
        "isotonic": vc.calibrators.IsotonicCalibrator().fit(p, y),
        "tree, 4 variables": vc.calibrators.TreeCalibrator().fit(p, y, v),
        "augmented, 4 variables": vc.calibrators.AugmentedCalibrator().fit(p, y, v),
        "variable, age": vc.VariableCalibrator().fit(p, y, {"age": v["age"]}),
        "variable, 4 variables": vc.VariableCalibrator(trees=False).fit(p, y, v),
        "variable, with pairs": vc.VariableCalibrator().fit(p, y, v),
    }


def hostile(adult: vc.datasets.Dataset, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, len(adult), n)
    p = adult.p[rows].astype(np.float64)
    moved = rng.random(n) < 0.5
    p[moved] = np.clip(p[moved] * rng.uniform(0.5, 1.5, int(moved.sum())), 0, 1)
    certain = rng.random(n) < 0.02
    p[certain] = rng.choice([0, 1, 0.5, 1e-300, 1 - 1e-16, 5e-324], int(certain.sum()))
    v = {}
    for name in NAMES:
        column = adult[name][rows]
        if column.dtype.kind in "if":
            column = column.astype(np.float64)
            odd = rng.random(n) < 0.03
            column[odd] = rng.choice(STRANGE, int(odd.sum()))
        else:
            column = column.astype(object)
            odd = rng.random(n) < 0.05
            column[odd] = np.array([None, "unseen", "o'x\\"], dtype=object)[
                rng.integers(0, 3, int(odd.sum()))
            ]
        v[name] = column
    return p, v


def best(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def in_duckdb(connection, exported) -> Callable[[], object]:
    query = f"CREATE OR REPLACE TEMP TABLE answer AS {exported.query}"
    return lambda: connection.execute(query)


def in_onnx(exported, p, v) -> Callable[[], object]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model, providers = exported.model.SerializeToString(), ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model, options, providers=providers)
    feeds = {"p": p}
    for one in session.get_inputs()[1:]:
        missing, column = exported.missing.get(one.name), v[one.name]
        feeds[one.name] = column if missing is None else np.where(column == None, missing, column)  # noqa: E711

    def run() -> None:
        for begin in range(0, len(p), 2_048):
            part = slice(begin, begin + 2_048)
            session.run(None, {name: column[part] for name, column in feeds.items()})

    return run


def one_by_one(score: Callable[..., object], rows: list, repeats: int) -> float:
    """Return microseconds per row."""

    def run() -> None:
        for row in rows:
            score(*row)

    return best(run, repeats) / len(rows) * 1e6


def within(value: float, target: float) -> str:
    return f"{value:.1f}{'' if value <= target else f' (target {target})'}"


def many_rows(adult, models, n: int, repeats: int) -> None:
    p, v = hostile(adult, n)
    columns = {name: pa.array(c.tolist()) if c.dtype == object else c for name, c in v.items()}
    arrow_rows = pa.table({"id": np.arange(n), "p": p, **columns})
    print(f"{n:,} hostile rows\n")
    print(
        "| calibrator | predict ns | DuckDB ns | ratio | difference | ONNX ns | ratio | difference "
        "| query | Python |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("arrow_rows", arrow_rows)
        connection.execute("CREATE TABLE scores AS FROM arrow_rows")
        for name, model in models.items():
            own = {k: v[k] for k in getattr(getattr(model, "schema_", None), "names", ())}
            wanted = model.predict_proba(p, own or None)
            predict = best(lambda: model.predict_proba(p, own or None), repeats)  # noqa: B023
            exported, onnx = model.to_sql("duckdb", keep="id"), model.to_onnx()
            apart = np.abs(exported.run(connection, key="id") - wanted).max()
            sql = best(in_duckdb(connection, exported), repeats)
            apart_onnx = np.abs(onnx.run(p, own or None) - wanted).max()
            graph = best(in_onnx(onnx, p, own), repeats)
            assert max(apart, apart_onnx) <= 1e-8, name
            pairs = "pairs" in name or "tree" in name
            ratio = within(sql / predict, PAIRS_TARGET if pairs else DUCKDB_TARGET)
            ratio_onnx = within(graph / predict, PAIRS_TARGET if pairs else ONNX_TARGET)
            size = " | ".join(
                f"{len(text) / 1e3:.0f} kB" for text in (exported.query, model.to_python().text)
            )
            times = [f"{each / n * 1e9:.0f}" for each in (predict, sql, graph)]
            print(
                f"| {name} | {times[0]} | {times[1]} | {ratio} | {apart:.0e} | {times[2]} | "
                f"{ratio_onnx} | {apart_onnx:.0e} | {size} |",
                flush=True,
            )


def single_rows(adult, models, repeats: int) -> None:
    p, v = hostile(adult, ONE_BY_ONE)
    print("\nOne row at a time, in microseconds\n")
    print("| calibrator | scorer | predict_proba | largest difference |")
    print("|---|---|---|---|")
    for name, model in models.items():
        own = getattr(getattr(model, "schema_", None), "names", ())
        plain = {k: v[k].tolist() for k in own}
        rows = [(float(p[i]), {k: plain[k][i] for k in own}) for i in range(ONE_BY_ONE)]
        lists = [([q], {k: [x] for k, x in row.items()} or None) for q, row in rows[:100]]
        score = model.scorer()
        wanted = model.predict_proba(p, {k: v[k] for k in own} or None)[:, 1]
        apart = np.abs([score(*row) for row in rows] - wanted).max()
        assert apart <= 1e-8, name
        took = one_by_one(score, rows, repeats)
        slow = one_by_one(model.predict_proba, lists, repeats)
        print(f"| {name} | {within(took, SCORER_TARGET)} | {slow:.0f} | {apart:.0e} |", flush=True)
    X = np.column_stack([adult[name][:3_000] for name in NAMES[:3]]).astype(np.float64)
    inner = LogisticRegression(max_iter=1_000).fit(X, adult.y[:3_000])
    for method in ("sigmoid", "isotonic"):
        peer = CalibratedClassifierCV(FrozenEstimator(inner), method=method).fit(X, adult.y[:3_000])
        took = one_by_one(peer.predict_proba, [(row[None, :],) for row in X[:100]], repeats)
        print(f"| CalibratedClassifierCV, {method}, with its classifier | – | {took:.0f} | – |")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    adult = vc.datasets.load_adult()
    models = calibrators(adult)
    many_rows(adult, models, options.rows, options.repeats)
    single_rows(adult, models, options.repeats)


if __name__ == "__main__":
    main()
