"""The `corrected` protocol: the paper's claims under a corrected evaluation.

Bins are over the calibrated confidence, predictions are judged by the calibrated argmax, and
probabilities sum to one. Figures have intervals and noise floors, and there are 50 splits into
calibration and test rows instead of one.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._audit.compare import compare
from varcal._audit.comparison import Comparison
from varcal._binning.choose import choose_bins
from varcal._inference.measured import Measured, measure
from varcal._input.variables import Variable
from varcal.calibrators import ScalingBinningCalibrator
from varcal.experiments._claims import CHANCE, ClaimResult, claims_of
from varcal.experiments._paper_protocol import calibrated, ten_bins
from varcal.experiments._published import BINNING, Target
from varcal.experiments._splits import Rows, Split
from varcal.experiments._study import Study

__all__ = ["CorrectedRun", "run_corrected"]

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class CorrectedRun:
    """One study under the `corrected` protocol.

    Attributes
    ----------
    study : Study
        The study.
    methods : tuple of str
        The methods, uncalibrated first.
    values : dict of ndarray
        Each figure (a fraction) in every split, by target.
    floors, floor_highs : dict of ndarray
        Mean and 95 % quantile of what a perfect model would show, in the form of `values`.
    first : dict of Measured
        ECE and VECE of the paper's own split, with intervals.
    test : Rows
        Test rows of the paper's own split.
    probabilities : dict of ndarray
        Their probabilities by method.
    claims : tuple of ClaimResult
        The paper's claims, and whether they hold.
    notes : tuple of str
        Warnings of the calibrators, and in how many splits they came.
    """

    study: Study
    methods: tuple[str, ...]
    values: dict[Target, Floats]
    floors: dict[Target, Floats]
    floor_highs: dict[Target, Floats]
    first: dict[Target, Measured]
    test: Rows
    probabilities: dict[str, Floats]
    claims: tuple[ClaimResult, ...]
    notes: tuple[str, ...]

    @property
    def n_splits(self) -> int:
        """The number of splits."""
        return len(next(iter(self.values.values())))


def run_corrected(
    study: Study,
    rows: Rows,
    *,
    n_splits: int = 50,
    tick: Callable[[], Any] = lambda: None,
) -> CorrectedRun:
    """Evaluate every method of a study on many splits of its rows.

    Parameters
    ----------
    study, rows
        The study and its model outputs.
    n_splits : int
        The number of splits; the first is the paper's own.
    tick : callable
        Called after each split.
    """
    found: list[dict[Target, Measured | float]] = []
    warned: Counter[str] = Counter()
    for seed in range(n_splits):
        split = rows.split(study.n_cal, seed)
        probabilities, said = _recalibrated(study, split)
        warned.update(said)
        found.append(_figures(study, split.test, probabilities))
        if seed == 0:
            test, first = split.test, probabilities
        tick()
    values = {target: np.array([_value(one[target]) for one in found]) for target in found[0]}
    errors = [target for target in values if isinstance(found[0][target], Measured)]

    def over_splits(name: str) -> dict[Target, Floats]:
        return {t: np.array([getattr(one[t], name) for one in found]) for t in errors}

    measured: dict[Target, Measured] = {t: found[0][t] for t in errors}  # type: ignore[misc]
    highs = over_splits("noise_high")
    return CorrectedRun(
        study,
        tuple(first),
        values,
        over_splits("noise_floor"),
        highs,
        measured,
        test,
        first,
        tuple(_judged(study, test, first, values, highs, measured)),
        tuple(f"{text} ({many} of {n_splits} splits)" for text, many in warned.items()),
    )


def _recalibrated(study: Study, split: Split) -> tuple[dict[str, Floats], set[str]]:
    """Return the probabilities by method, scaling-binning normalized, and all warnings."""
    methods = dict(study.methods)
    methods[BINNING] = ScalingBinningCalibrator
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        probabilities = calibrated(study, split, methods)
    # The numbers in a warning differ between splits; replaced, equal warnings can be counted.
    return probabilities, {re.sub(r"\d[\d,.]*", "n", str(one.message)) for one in caught}


def _figures(
    study: Study, test: Rows, probabilities: dict[str, Floats]
) -> dict[Target, Measured | float]:
    figures: dict[Target, Measured | float] = {}
    for method, q in probabilities.items():
        figures[method, "accuracy", ""] = float((q.argmax(axis=1) == test.y).mean())
        score, right = q.max(axis=1), q.argmax(axis=1) == test.y
        own = Variable("confidence", "numeric", score)
        figures[method, "ECE", ""] = measure(ten_bins(own, score, right), LEVEL)
        for name in (study.variable, *study.others):
            over = Variable(name, "numeric", test.variables[name])
            figures[method, "VECE", name] = measure(ten_bins(over, score, right), LEVEL)
    return figures


def _value(figure: Measured | float) -> float:
    return figure.value if isinstance(figure, Measured) else figure


def _judged(
    study: Study,
    test: Rows,
    probabilities: dict[str, Floats],
    values: dict[Target, Floats],
    highs: dict[Target, Floats],
    measured: dict[Target, Measured],
) -> Iterator[ClaimResult]:
    """Count the splits in which each claim is true, and get its interval on the paper's split."""
    names = (study.variable, *study.others)
    X = {name: test.variables[name] for name in names}
    bins = {name: choose_bins([Variable(name, "numeric", X[name])]).size for name in names}
    compared: dict[str, Comparison] = {}
    for claim in claims_of(study):
        against = claim.against
        if against == CHANCE:
            change = values[claim.target] - highs[claim.target]
            low, high = measured[claim.target].low, measured[claim.target].high
        else:
            change = values[claim.target] - values[claim.other]
            if against not in compared:
                order = {against: probabilities[against], **probabilities}
                compared[against] = compare(
                    test.y,
                    order,
                    X,
                    event="correct",
                    binning="quantile",
                    classes=range(study.classes),
                )
            row = compared[against].row(*claim.target)
            low, high = row.difference_low, row.difference_high
        true = sum(claim.true(float(one)) for one in change)
        yield ClaimResult(
            claim,
            float(change.mean()),
            float(change.std(ddof=1)),
            true,
            len(change),
            low,
            high,
            bins.get(claim.variable, 10),
        )
