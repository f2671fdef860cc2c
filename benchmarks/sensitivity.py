"""What the measured figures do when a tuned constant is halved or doubled.

    python benchmarks/sensitivity.py [--package calibrators] [--only NAME ...] [--quick] [--write]

Each entry names a constant of a module and a study. The study is run at half, once and twice the
value of the constant, on the same seeds, and the tables show the paired differences with their
standard errors. With --write they replace what stands between the markers

    <!-- sensitivity: begin -->
    <!-- sensitivity: end -->

in the README of the package; without it they are printed. A new constant is one of `CONSTANTS`;
a new study is a function from a seed to figures, with its seeds, in `STUDIES`.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import t as student_t

import inference_studies as inference
import internals
import varcal as vc
from internals import look_up
from worlds import Scenario

warnings.filterwarnings("ignore")

SOURCE = Path(__file__).parents[1] / "src" / "varcal"
#: Where the tables of a package are kept.
READMES = {
    "calibrators": SOURCE / "calibrators" / "_variable" / "README.md",
    "inference": SOURCE / "_inference" / "README.md",
    "smoothing": SOURCE / "_smoothing" / "README.md",
}
BEGIN, END = "<!-- sensitivity: begin -->", "<!-- sensitivity: end -->"
#: Test rows of a simulated world, and of the Adult data.
TEST_ROWS = 4_000
#: Seeds of a quick run.
QUICK = 2
#: A world in which scores are wrong in the middle of one variable.
HUMP = Scenario("beta(2,5)", "continuous", "hump", vece=0.05)

Figures = dict[str, float]


@dataclass(frozen=True)
class Entry:
    """A constant, as "module:constant", and the key of the study that depends on it."""

    study: str
    place: str

    @property
    def package(self) -> str:
        """The key of `READMES`."""
        first = self.place.partition(".")[0]
        return {"calibrators": "calibrators", "_smoothing": "smoothing"}.get(first, "inference")

    @property
    def constant(self) -> str:
        """The name of the constant."""
        return self.place.partition(":")[2]

    @property
    def value(self) -> Any:
        """The constant as it is: a number, or a tuple of numbers."""
        return look_up(self.place)

    @contextmanager
    def scaled(self, factor: float) -> Iterator[None]:
        """Multiply the constant for a while; whole numbers stay whole and positive."""
        kept = self.value
        self._set(_scaled(kept, factor))
        try:
            yield
        finally:
            self._set(kept)

    def _set(self, value: Any) -> None:
        for module in (self.place.partition(":")[0], *ALSO.get(self.place, ())):
            look_up(f"{module}:{self.constant}")
            owner = import_module(f"varcal.{module}")
            setattr(owner, self.constant, value)
            # Results that a module keeps may depend on its constants.
            for name in vars(owner).values():
                if hasattr(name, "cache_clear"):
                    name.cache_clear()


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_scaled(each, factor) for each in value)
    return max(round(value * factor), 1) if isinstance(value, int) else value * factor


@dataclass(frozen=True)
class Study:
    """A function from a seed to figures, the seeds that it is run on, and what it measures."""

    figures: Callable[[int], Figures]
    seeds: range
    what: str


def log_loss(y: np.ndarray, q: np.ndarray) -> float:
    """Return the mean log-loss of probabilities of shape (n, K), times 1,000."""
    return -1000 * float(np.log(np.maximum(q[np.arange(len(y)), y], 1e-12)).mean())


def fitted(cal: tuple, test: tuple, **options: Any) -> np.ndarray:
    """Return calibrated probabilities of test rows (p, y, v)."""
    p, y, v = cal
    k = 2 if p.ndim == 1 else p.shape[1]
    fit = vc.VariableCalibrator().fit(p, y, v, classes=range(k), **options)
    return fit.predict_proba(test[0], test[2])


def halves(rows: tuple, n: int) -> tuple[tuple, tuple]:
    """Split rows (p, y, v) into the first n and the others."""
    p, y, v = rows
    return tuple(
        (p[part], y[part], {name: column[part] for name, column in v.items()})
        for part in (slice(None, n), slice(n, None))
    )


def judged(cal: tuple, test: tuple) -> Figures:
    """Return log-loss (× 1,000), ECE and the largest VECE (points) of the variable calibrator."""
    q = fitted(cal, test)
    along = [vc.vece(test[1], q, column) for column in test[2].values()]
    return {
        "log-loss": log_loss(test[1], q),
        "ECE": 100 * vc.ece(test[1], q),
        "max VECE": 100 * max(along),
    }


adult_data = cache(vc.datasets.load_adult)


def adult(seed: int, n: int) -> tuple[tuple, tuple]:
    """Return calibration and test rows of the Adult data."""
    data = adult_data()
    rows = np.random.default_rng(seed).permutation(len(data))[: n + TEST_ROWS]
    names = ("age", "education-num", "hours-per-week", "capital-gain", "occupation")
    return halves((data.p[rows], data.y[rows], {k: np.asarray(data[k])[rows] for k in names}), n)


def mixed(seed: int, n: int, *, wrong: float = 1.0, pair: float = 0.0) -> tuple[tuple, tuple]:
    """Return rows with curves, a frequent value, a category, missing values and an XOR.

    `wrong` is the size of the errors of scores, `pair` that of the XOR.
    """
    rng, size = np.random.default_rng(seed), n + TEST_ROWS
    z = 1.5 * rng.normal(size=size)
    age, noise = rng.uniform(20, 80, size), rng.normal(size=size)
    gain = np.where(rng.random(size) < 0.4, 0.0, rng.lognormal(size=size))
    lost = rng.random(size) < 0.1
    town = rng.choice(list("abcdefgh"), size, p=[0.4, 0.2, 0.15, 0.1, 0.08, 0.04, 0.02, 0.01])
    along = 0.6 * np.sin(age / 10) - 0.5 * (gain == 0) + 0.4 * np.isin(town, ["b", "f"])
    error = along + 0.5 * lost - 0.3 * z
    eta = z + wrong * error + pair * np.sign((age - 50) * noise)
    y = (rng.random(size) < expit(eta)).astype(int)
    v = {"age": age, "gain": gain, "noise": np.where(lost, np.nan, noise), "town": town}
    return halves((expit(z), y, v), n)


def one_variable(world: Scenario, seed: int, n: int) -> tuple[tuple, tuple]:
    """Return rows of a world with one variable."""
    u, s, h, _ = world.draw(np.random.default_rng(seed), 1, n + TEST_ROWS)
    return halves((s[0], h[0].astype(int), {"v": world.bins(u[0])[0].astype(float)}), n)


def classes(seed: int, n: int) -> tuple[tuple, tuple]:
    """Return rows of four classes, overconfident along a variable, two of them confused."""
    rng, size = np.random.default_rng(seed), n + TEST_ROWS
    z = 2 * rng.normal(size=(size, 4))
    z[rng.random(size) < 0.02, 3] = -40.0
    v = rng.uniform(-1, 1, size)
    true = z * np.exp(-0.5 + 0.4 * v)[:, None]
    true[:, :2] += 0.3 * z[:, 1::-1]
    q = np.exp(true - true.max(1, keepdims=True))
    y = (rng.random((size, 1)) > (q / q.sum(1, keepdims=True)).cumsum(1)).sum(1).clip(0, 3)
    p = np.exp(z - z.max(1, keepdims=True))
    return halves((p / p.sum(1, keepdims=True), y, {"v": v, "noise": rng.normal(size=size)}), n)


def two_classes(seed: int) -> Figures:
    """Return mean figures of three sets at 1,000 rows, and what a needless fit costs."""
    sets = [adult(seed, 1000), mixed(seed, 1000), one_variable(HUMP, seed, 1000)]
    each = [judged(*one) for one in sets]
    figures = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
    return figures | {"needless": needless(seed, 1000)}


def needless(seed: int, n: int) -> float:
    """Return by how much the log-loss (× 1,000) of calibrated scores rises."""
    cal, test = mixed(seed, n, wrong=0.0)
    before = log_loss(test[1], np.column_stack([1 - test[0], test[0]]))
    return log_loss(test[1], fitted(cal, test)) - before


def pairs(seed: int) -> Figures:
    """Return the log-loss where two variables interact, strongly and weakly, and where none do."""
    strong, weak, none = (mixed(seed, 2000, pair=size) for size in (0.8, 0.3, 0.0))
    return {
        "strong": log_loss(strong[1][1], fitted(*strong)),
        "weak": log_loss(weak[1][1], fitted(*weak)),
        "none": log_loss(none[1][1], fitted(*none)),
    }


def weak_evidence(seed: int) -> Figures:
    """Return the mean log-loss at 250 to 1,000 rows where errors are small, and needless costs."""
    sizes = (250, 500, 1000)
    found = []
    for n in sizes:
        for wrong, pair in ((0.4, 0.0), (0.2, 0.2)):
            cal, test = mixed(seed + n, n, wrong=wrong, pair=pair)
            found.append(log_loss(test[1], fitted(cal, test)))
    cost = [needless(seed + n, n) for n in sizes]
    return {"log-loss": float(np.mean(found)), "needless": float(np.mean(cost))}


def many_levels(seed: int) -> Figures:
    """Return the log-loss where a category has 200 levels, most of them rare."""
    rng, size = np.random.default_rng(seed), 2000 + TEST_ROWS
    level = np.minimum(rng.geometric(0.02, size), 200) - 1
    effect = 0.6 * rng.normal(size=200)
    z = 1.5 * rng.normal(size=size)
    y = (rng.random(size) < expit(z + effect[level])).astype(int)
    names = np.array([f"level {k}" for k in range(200)])[level]
    cal, test = halves((expit(z), y, {"level": names}), 2000)
    return {"log-loss": log_loss(test[1], fitted(cal, test))}


def few_rows(seed: int) -> Figures:
    """Return the mean log-loss at 15 to 400 rows, and what needless fits of them cost."""
    sizes = (15, 30, 60, 120, 250, 400)
    found = []
    for k, n in enumerate(sizes):
        cal, test = mixed(100 * seed + k, n)
        found.append(log_loss(test[1], fitted(cal, test)))
    cost = [needless(100 * seed + k, n) for k, n in enumerate(sizes)]
    return {"log-loss": float(np.mean(found)), "needless": float(np.mean(cost))}


def grouped(seed: int) -> Figures:
    """Return the log-loss where 4, 8 and 20 groups of rows, each with a level, are held out."""
    found = []
    for n_groups in (4, 8, 20):
        cal, test = mixed(seed, 800)
        groups = np.random.default_rng(seed).integers(0, n_groups, 800)
        found.append(log_loss(test[1], fitted(cal, test, groups=groups)))
    return {"log-loss": float(np.mean(found))}


def tied(seed: int) -> Figures:
    """Return the log-loss where scores take nine values, 0 and 1 among them."""
    cal, test = mixed(seed, 1000)
    rounded = [(np.round(8 * p) / 8, y, v) for p, y, v in (cal, test)]
    alone = [(p, y, {"town": v["town"]}) for p, y, v in rounded]
    certain = [(np.round(p), y, {"age": v["age"]}) for p, y, v in (cal, test)]
    return {
        "nine scores": log_loss(test[1], fitted(*rounded)),
        "and one category": log_loss(test[1], fitted(*alone)),
        "0 and 1 alone": log_loss(test[1], fitted(*certain)),
    }


def many_classes(seed: int) -> Figures:
    """Return the figures of four classes at 1,000 rows."""
    return judged(*classes(seed, 1000))


def many_rows(seed: int) -> Figures:
    """Return the figures of the mixed rows at 30,000, and the needless cost at 12,000."""
    return judged(*mixed(seed, 30_000, pair=0.1)) | {"needless": needless(seed, 12_000)}


def tables_and_formulas(seed: int) -> Figures:
    """Return the largest and the mean error of probabilities read from tables (points)."""
    cal, test = mixed(seed, 1000, pair=0.8)
    fit = vc.VariableCalibrator().fit(*cal)
    rows = internals.score_rows(test[0], test[2], 2)
    columns, z, model = fit._columns(rows), internals.log_odds(test[0]), fit.model_.full
    offset = model.design.score.clipped(z)
    exact, fast = (
        expit(internals.moderated(offset + eta, variance))
        for eta, variance in (model.predictor(z, columns), model.lookup.predictor(z, columns))
    )
    apart = 100 * np.abs(exact - fast)
    return {"largest error": float(apart.max()), "mean error": float(apart.mean())}


def intervals(seed: int) -> Figures:
    """Return the mean width (points) of 95 % intervals of four classes."""
    cal, test = classes(seed, 1000)
    fit = vc.VariableCalibrator().fit(*cal, classes=range(4))
    low, high = fit.predict_interval(test[0][:1000], {k: c[:1000] for k, c in test[2].items()})
    return {"mean width": 100 * float((high - low).mean())}


STUDIES: dict[str, Study] = {
    "two classes": Study(
        two_classes,
        range(300, 306),
        "means of Adult, of a set with mixed variables and of one with a hump, 1,000 rows each; "
        "“needless” is the rise of the log-loss on scores that are calibrated already",
    ),
    "weak evidence": Study(
        weak_evidence, range(300, 305), "means over 250, 500 and 1,000 rows with small errors"
    ),
    "many levels": Study(many_levels, range(300, 304), "200 levels, 2,000 rows"),
    "pairs": Study(pairs, range(300, 304), "log-loss by strength of an XOR of two of 4 variables"),
    "few rows": Study(few_rows, range(300, 308), "means over 15 to 400 rows"),
    "groups": Study(grouped, range(300, 306), "means over 4, 8 and 20 groups in 800 rows"),
    "ties": Study(tied, range(300, 306), "log-loss by kind of tied scores, 1,000 rows"),
    "many classes": Study(many_classes, range(300, 306), "four classes, 1,000 rows"),
    "many rows": Study(many_rows, range(300, 302), "30,000 rows; needless at 12,000"),
    "look-up": Study(
        tables_and_formulas, range(300, 303), "points of probability, tables against formulas"
    ),
    "intervals": Study(intervals, range(300, 303), "points, four classes, 1,000 rows"),
    "test": Study(
        inference.calibration_tests,
        range(400, 412),
        "percent rejected at 5 %, without simulated hits; 60 replicates per seed and world; type-I "
        "error over four kinds of scores at 20 to 1,000 rows, power over five shapes at 800",
    ),
    "test of cells": Study(
        inference.cell_tests,
        range(400, 406),
        "percent rejected at 5 % along a variable, 20 replicates with two classes and 10 with five "
        "per seed and world",
    ),
    "sparse outcomes": Study(
        inference.sparse_tests,
        range(400, 412),
        "2 % positives or fewer, 300 to 15,000 rows; percent rejected at 5 %, and the mean "
        "distance of lg p from that of 10,000 draws",
    ),
    "interval": Study(
        inference.vece_intervals,
        range(400, 408),
        "VECE 0 to 0.1, 17 worlds at 500 and 2,000 rows, 60 replicates each per seed; percent and "
        "points",
    ),
    "uneven": Study(
        inference.uneven_intervals,
        range(400, 408),
        "the uneven error over bins in the same worlds, 20 replicates each per seed",
    ),
    "detectable error": Study(
        inference.detectable,
        range(400, 410),
        "percent rejected at 5 % where the error is the least detectable one, 80 % being promised",
    ),
    "clusters": Study(
        inference.clusters,
        range(400, 412),
        "percent rejected at 5 % with 12, 30, 60 and 150 groups of dependent rows",
    ),
    "comparison": Study(
        inference.comparisons,
        range(400, 406),
        "interval of the difference of two uneven errors, 1,000 rows, 20 replicates per seed",
    ),
    "verdict": Study(
        inference.verdicts,
        range(400, 405),
        "percent “too few rows” where calibrated; 120 to 960 rows with scores .2 to .8, 40 to 320 "
        "with .95 to 1",
    ),
    "fine cells": Study(
        inference.fine_cells, range(400, 406), "one smooth gap, 5,000 rows, 20 replicates per seed"
    ),
    "band": Study(
        inference.curve_band,
        range(400, 412),
        "five shapes, two kinds of scores, 200, 1,000 and 10,000 rows, 120 curves per seed; "
        "percent and points",
    ),
    "band over few values": Study(
        inference.tied_band,
        range(400, 412),
        "12 or 30 values, or 12 levels of unequal size, 90 to 2,000 rows, 96 curves per seed",
    ),
}


#: The constants of each study, as "module:constant,…" below `varcal`; looked up when it runs.
CONSTANTS: dict[str, tuple[str, ...]] = {
    "two classes": (
        "calibrators.variable.reml:PRIOR_EDF,FIRST_PENALTY,CERTAIN_WEIGHT",
        "calibrators.variable.columns:SPLINES,CURVE_COLUMNS,TEMPER,ATOM_SHARE",
        "calibrators.variable.columns:WINSOR,REDUNDANT_SHARE",
        "calibrators.variable.two_classes:MODERATION",
    ),
    "weak evidence": (
        "calibrators.variable.shrinkage:FEW_SAVINGS,NEARLY_ALL",
        "calibrators.variable.dependence:N_FOLDS",
    ),
    "many levels": ("calibrators.variable.columns:LEVEL_COLUMNS,LEVEL_ROWS",),
    "pairs": ("calibrators.variable.additive:MOST_PAIRS,PAIR_SCORE,TEST_CURVES,SURFACE_CURVES",),
    "few rows": (
        "calibrators.variable.two_classes:FEW_ROWS,FEW_ROWS_PER_VARIABLE",
        "calibrators.variable.columns:ROWS_PER_SPLINE",
    ),
    "groups": ("calibrators.variable.dependence:LEAST_UNITS",),
    "many classes": ("calibrators.variable.many_classes:MATRIX_PENALTY,BELOW_LEAST",),
    "many rows": ("calibrators.variable.two_classes:MOST_ROWS",),
    "test": (
        "_inference.quadratic_forms:PRIOR,LEAST_VARIANCE",
        "_inference.multiplicity:MOST_P",
    ),
    "test of cells": ("_audit.judge:SHARED", "_inference.quadratic_forms:MODEL_ROWS"),
    "sparse outcomes": (
        "_inference.calibration_test:SIMULATE_BELOW",
        "_inference.simulated_null:SPARSE_VARIANCE,SIMULATION_BUDGET,FEWEST_DRAWS,MOST_DRAWS",
        "_inference.simulated_null:FEWEST_EXCEEDANCES,TAIL_SHARE,SAME_STATISTIC",
        "_evidence.profile:MOST_ROWS",
    ),
    "interval": (
        "_inference.debias:SHAPE_SHIFT,FADE,SPARSE_SHIFT,DENSE_FLOOR,LUCK,GRID_POINTS,GRIDS",
        "_inference.gap_law:NEVER_FOLDS",
        "_binning.stats:PRIOR_ROWS",
    ),
    "uneven": (
        "_inference.debias:CENTERED_FROM,SMALLER_FROM,SPARSE_SHIFT,DENSE_FLOOR,LUCK",
        "_inference.gap_law:MEHLER_TERMS",
        "_inference.quadratic_forms:LEAST_MODEL,MODEL_ROWS",
        "_binning.stats:PRIOR_ROWS",
    ),
    "detectable error": ("_inference.power:PART_OF_LEVEL",),
    "clusters": ("_inference.cluster_test:FEW_GROUPS,DRAWS,GROUPS_PER_TERM",),
    "comparison": ("_audit.compare:N_PARTS",),
    "verdict": ("_audit.judge:FEW_ROWS,TOO_COARSE",),
    "fine cells": ("_evidence.question:N_FINE",),
    "band": (
        "_smoothing.bands:MOST_CELLS,HALF_SPANS,WIDEST,NARROWEST_WINDOW,WIDEST_WINDOW",
        "_smoothing.bands:SPAN_DEGREE,BAND_DEGREE,NARROWER_BY",
        "_smoothing.variance:PRIOR_ROWS",
    ),
    "band over few values": (
        "_smoothing.bands:FEW_LEVELS,ROWS_PER_LEVEL,LEAST_CELLS,LEAST_FREEDOM",
        "_smoothing.cells:EVEN_COUNTS",
        "_smoothing.variance:PRIOR_ROWS,LEAST_FREEDOM",
    ),
}
#: Modules that import a constant by its name, which changes with it.
ALSO = {
    "calibrators._variable._reml.penalties:FIRST_PENALTY": (
        "calibrators._variable._reml.fit_gam",
        "calibrators._variable.additive_model",
    ),
    "_binning.stats:PRIOR_ROWS": ("_inference.gap_law",),
    "_smoothing.cells:EVEN_COUNTS": ("_smoothing.bands",),
}
ENTRIES = [
    Entry(study, f"{module}:{constant}")
    for study, places in CONSTANTS.items()
    for module, _, constants in (place.partition(":") for place in places)
    for constant in constants.split(",")
]


def measured(study: Study, seeds: range) -> dict[str, np.ndarray]:
    """Return every figure of a study, one value per seed."""
    each = [study.figures(seed) for seed in seeds]
    return {name: np.array([one[name] for one in each]) for name in each[0]}


def cell(difference: np.ndarray) -> str:
    """Return the mean of paired differences with its standard error, bold where p < 0.05 (t-test).

    >>> cell(np.array([1.0, 3.0])), cell(np.array([1.0, 1.1])), cell(np.zeros(2))
    ('+2.000 ± 1.000', '**+1.050 ± 0.050**', '0')
    """
    if not difference.any():
        return "0"
    mean = difference.mean()
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
    text = f"{mean:+.3f} ± {error:.3f}"
    if text.strip("+-") == "0.000 ± 0.000":
        return "0.000"
    clear = abs(mean) > student_t.ppf(0.975, max(len(difference) - 1, 1)) * error
    return f"**{text}**" if clear else text


def shown(value: Any) -> str:
    """Return a constant as it is written."""
    if isinstance(value, tuple):
        return "(" + ", ".join(shown(each) for each in value) + ")"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def tables(entries: list[Entry], *, quick: bool) -> str:
    """Return one Markdown table for each study that the entries name."""
    parts = []
    for name, study in STUDIES.items():
        mine = [entry for entry in entries if entry.study == name]
        if not mine:
            continue
        seeds = study.seeds[:QUICK] if quick else study.seeds
        once = measured(study, seeds)
        as_is = ", ".join(f"{figure} {values.mean():.3f}" for figure, values in once.items())
        heads = [f"{figure} {side}" for figure in once for side in ("½×", "2×")]
        lines = [
            f"**{name.capitalize()}** (seeds {seeds[0]}–{seeds[-1]}; {study.what}). "
            f"At the values as they are: {as_is}.\n",
            "| constant | value | " + " | ".join(heads) + " |",
            "|---|---|" + "---|" * len(heads),
        ]
        for entry in mine:
            begun = time.perf_counter()
            changed = []
            for factor in (0.5, 2.0):
                with entry.scaled(factor):
                    changed.append(measured(study, seeds))
            cells = [cell(side[figure] - once[figure]) for figure in once for side in changed]
            name = entry.place.rpartition(".")[2].replace(":", ".")
            row = [f"`{name}`", shown(entry.value), *cells]
            if set(cells) == {"0"}:
                row[0] += " (insensitive)"
            lines.append("| " + " | ".join(row) + " |")
            print(f"{entry.constant}: {time.perf_counter() - begun:.0f} s", file=sys.stderr)
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def write(path: Path, text: str) -> None:
    """Replace what stands between the markers of a README."""
    whole = path.read_text(encoding="utf-8")
    head, rest = whole.split(BEGIN, 1)
    path.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Measure the entries asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", choices=sorted(READMES), action="append")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="constants, or names of studies")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} seeds of each study")
    parser.add_argument("--write", action="store_true", help="put the tables into the READMEs")
    options = parser.parse_args(arguments)
    for package in options.package or READMES:
        entries = [
            entry
            for entry in ENTRIES
            if entry.package == package
            and (not options.only or entry.constant in options.only or entry.study in options.only)
        ]
        text = tables(entries, quick=options.quick)
        if options.write:
            write(READMES[package], text)
        else:
            print(text)


if __name__ == "__main__":
    main()
