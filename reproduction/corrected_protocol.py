"""The `corrected` protocol: the paper's claims under a corrected evaluation.

Bins are over the calibrated confidence, predictions are judged by the calibrated argmax, and
probabilities sum to one. Figures have intervals and noise floors, and there are 50 splits into
calibration and test rows instead of one.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import varcal as vc
from reproduction.changes import change_interval
from reproduction.claims import CHANCE, ClaimResult, claims_of
from reproduction.paper_protocol import calibrated
from reproduction.published import BINNING, Target
from reproduction.rows import Rows, Split
from reproduction.studies import Study


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
    first : dict of Estimate
        ECE and VECE of the paper's own split, with intervals and what a perfect model would show.
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
    values: dict[Target, np.ndarray]
    first: dict[Target, vc.results.Estimate]
    test: Rows
    probabilities: dict[str, np.ndarray]
    claims: tuple[ClaimResult, ...]
    notes: tuple[str, ...]

    @property
    def n_splits(self) -> int:
        """The number of splits."""
        return len(next(iter(self.values.values())))


def run_corrected(study: Study, rows: Rows, *, n_splits: int = 50) -> CorrectedRun:
    """Evaluate every method of a study on many splits of its rows.

    Parameters
    ----------
    study, rows
        The study and its model outputs.
    n_splits : int
        The number of splits; the first is the paper's own.
    """
    found: list[dict[Target, float]] = []
    warned: Counter[str] = Counter()
    for seed in range(n_splits):
        split = rows.split(study.n_cal, seed)
        probabilities, said = recalibrated(study, split)
        warned.update(said)
        found.append(_figures(study, split.test, probabilities))
        if seed == 0:
            test, first = split.test, probabilities
    values = {target: np.array([one[target] for one in found]) for target in found[0]}
    estimates = _estimates(study, test, first)
    return CorrectedRun(
        study,
        tuple(first),
        values,
        estimates,
        test,
        first,
        tuple(_judged(study, test, first, values, estimates)),
        tuple(f"{text} ({many} of {n_splits} splits)" for text, many in warned.items()),
    )


def recalibrated(study: Study, split: Split) -> tuple[dict[str, np.ndarray], set[str]]:
    """Return the probabilities by method, scaling-binning normalized, and all warnings."""
    methods = dict(study.methods)
    methods[BINNING] = vc.calibrators.ScalingBinningCalibrator
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        probabilities = calibrated(study, split, methods)
    # The numbers in a warning differ between splits; replaced, equal warnings can be counted.
    return probabilities, {re.sub(r"\d[\d,.]*", "n", str(one.message)) for one in caught}


def _figures(study: Study, test: Rows, probabilities: dict[str, np.ndarray]) -> dict[Target, float]:
    figures: dict[Target, float] = {}
    for method, q in probabilities.items():
        score, right = q.max(axis=1), q.argmax(axis=1) == test.y
        figures[method, "accuracy", ""] = float(right.mean())
        figures[method, "ECE", ""] = vc.ece(right, score, event="positive")
        for name in (study.variable, *study.others):
            x = test.variables[name]
            figures[method, "VECE", name] = vc.vece(right, score, x, event="positive")
    return figures


def _estimates(
    study: Study, test: Rows, probabilities: dict[str, np.ndarray]
) -> dict[Target, vc.results.Estimate]:
    """Return ECE and VECE with their intervals."""
    found: dict[Target, vc.results.Estimate] = {}
    for method, q in probabilities.items():
        score, right = q.max(axis=1), q.argmax(axis=1) == test.y
        found[method, "ECE", ""] = vc.estimate(right, score, event="positive")
        for name in (study.variable, *study.others):
            x = test.variables[name]
            found[method, "VECE", name] = vc.estimate(right, score, x, event="positive")
    return found


def _judged(
    study: Study,
    test: Rows,
    probabilities: dict[str, np.ndarray],
    values: dict[Target, np.ndarray],
    first: dict[Target, vc.results.Estimate],
) -> Iterator[ClaimResult]:
    """Count the splits in which each claim is true, and get its interval on the paper's split."""
    X = {name: test.variables[name] for name in (study.variable, *study.others)}
    for claim in claims_of(study):
        against = claim.against
        if against == CHANCE:
            change = values[claim.target] - first[claim.target].noise_high
            low, high = first[claim.target].low, first[claim.target].high
        else:
            change = values[claim.target] - values[claim.other]
            method, _, variable = claim.target
            low, high = change_interval(
                test.y,
                probabilities[against],
                probabilities[method],
                X[variable] if variable else None,
                classes=range(study.classes),
            )
        true = sum(claim.true(float(one)) for one in change)
        yield ClaimResult(
            claim,
            float(change.mean()),
            float(change.std(ddof=1)),
            true,
            len(change),
            low,
            high,
            first[claim.target].n_bins if claim.variable else 10,
        )
