"""What the measured figures do when a tuned constant is halved or doubled.

    python benchmarks/sensitivity.py [--only NAME ...] [--quick]

Each entry names a constant of a module and a study. The study is run at half, once and twice the
value of the constant, on the same seeds, and the printed tables show the paired differences with
their standard errors. A new constant is one of `CONSTANTS`; a new study is a function from a seed
to figures, with its seeds, in `STUDIES`.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.stats import t as student_t

import inference_studies as inference
from internals import look_up

warnings.filterwarnings("ignore")

#: Seeds of a quick run.
QUICK = 2

Figures = dict[str, float]


@dataclass(frozen=True)
class Entry:
    """A constant, as "module:constant", and the key of the study that depends on it."""

    study: str
    place: str

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


STUDIES: dict[str, Study] = {
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
    "test": (
        "_inference.quadratic_forms:LEAST_VARIANCE",
        "_inference.multiplicity:MOST_P",
    ),
    "test of cells": ("_audit.judge:SHARED", "_inference.error_sums:MODEL_ROWS"),
    "sparse outcomes": (
        "_inference.calibration_test:SPARSE_EVENTS",
        "_inference.quadratic_forms:LEAST_EVENTS,DENSE_EVENTS",
    ),
    "interval": (
        "_inference.calibration_test:WITHIN",
        "_inference.error_sums:CELLS_PER_ROOT",
        "_inference.debiased:SHAPE_SHIFT,FADE,SPARSE_SHIFT,DENSE_FLOOR,LUCK,GRID_POINTS,GRIDS",
        "_inference.gap_law:NEVER_FOLDS",
        "_sums.stats:PRIOR_ROWS",
    ),
    "uneven": (
        "_inference.debiased:CENTERED_FROM,SMALLER_FROM,SPARSE_SHIFT,DENSE_FLOOR,LUCK",
        "_inference.gap_law:MEHLER_TERMS",
        "_inference.error_sums:LEAST_MODEL,MODEL_ROWS",
        "_sums.stats:PRIOR_ROWS",
    ),
    "detectable error": ("_inference.calibration_test:PART_OF_LEVEL",),
    "clusters": ("_inference.calibration_test:FEW_GROUPS,DRAWS,GROUPS_PER_TERM",),
    "comparison": ("_audit.compare:N_PARTS",),
    "verdict": ("_audit.judge:FEW_ROWS,TOO_COARSE",),
    "fine cells": ("_sums.plan:N_FINE",),
    "band": (
        "_inference.bands:MOST_CELLS,HALF_SPANS,WIDEST,NARROWEST_WINDOW,WIDEST_WINDOW",
        "_inference.bands:SPAN_DEGREE,BAND_DEGREE,NARROWER_BY",
        "_inference.bands:PRIOR_ROWS",
    ),
    "band over few values": (
        "_inference.bands:FEW_LEVELS,ROWS_PER_LEVEL,LEAST_CELLS,LEAST_FREEDOM",
        "_sums.profile:EVEN_COUNTS",
        "_inference.bands:PRIOR_ROWS",
    ),
}
#: Modules that import a constant by its name, which changes with it.
ALSO = {
    "_sums.stats:PRIOR_ROWS": ("_inference.gap_law",),
    "_sums.profile:EVEN_COUNTS": ("_inference.bands",),
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


def main(arguments: list[str] | None = None) -> None:
    """Measure the entries asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="constants, or names of studies")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} seeds of each study")
    options = parser.parse_args(arguments)
    chosen = [
        entry
        for entry in ENTRIES
        if not options.only or {entry.constant, entry.study} & set(options.only)
    ]
    print(tables(chosen, quick=options.quick))


if __name__ == "__main__":
    main()
