"""The `corrected` protocol: what holds up when the evaluation is put right.

Bins over the calibrated confidence, correctness by the calibrated argmax, probabilities that sum
to one, intervals and noise floors, and 50 divisions into calibration and test rows, not one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._binned import BinOptions, binned
from varcal._measured import Measured, measure
from varcal._predictions import Predictions
from varcal.calibrators import ScalingBinningCalibrator
from varcal.experiments._claims import Claim, ClaimResult, claims_of
from varcal.experiments._paper_protocol import calibrated
from varcal.experiments._published import BINNING, Target
from varcal.experiments._rows import Rows, Split
from varcal.experiments._study import Study

__all__ = ["CorrectedRun", "run_corrected"]

Floats = NDArray[np.float64]
OPTIONS: BinOptions = {"n_bins": 10, "binning": "quantile", "bins": None}
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
        Each figure (a share) in every split, by target.
    floors, floor_highs : dict of ndarray
        Mean and 95 % quantile of what a perfect model would show, as `values`.
    first : dict of Measured
        ECE and VECE of the paper's own split, with intervals.
    test : Rows
        Test rows of the paper's own split.
    probabilities : dict of ndarray
        Their probabilities by method.
    claims : tuple of ClaimResult
        What the paper claims and how it fares.
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

    @property
    def n_splits(self) -> int:
        """How many divisions were drawn."""
        return len(next(iter(self.values.values())))


def run_corrected(
    study: Study,
    rows: Rows,
    *,
    n_splits: int = 50,
    tick: Callable[[], Any] = lambda: None,
) -> CorrectedRun:
    """Evaluate every method of a study on many divisions of its rows.

    Parameters
    ----------
    study, rows
        The study and its model outputs.
    n_splits : int
        How many divisions; the first is the paper's own.
    tick : callable
        Called after each division.
    """
    found: list[dict[Target, Measured | float]] = []
    for seed in range(n_splits):
        split = rows.split(study.n_cal, seed)
        probabilities = _recalibrated(study, split)
        found.append(_figures(study, split.test, probabilities))
        if seed == 0:
            test, first = split.test, probabilities
        tick()
    values = {target: np.array([_value(one[target]) for one in found]) for target in found[0]}
    errors = [target for target in values if isinstance(found[0][target], Measured)]

    def over_splits(name: str) -> dict[Target, Floats]:
        return {t: np.array([getattr(one[t], name) for one in found]) for t in errors}

    return CorrectedRun(
        study,
        tuple(first),
        values,
        over_splits("noise_floor"),
        over_splits("noise_high"),
        {target: found[0][target] for target in errors},  # type: ignore[misc]
        test,
        first,
        tuple(_judge(claim, values) for claim in claims_of(study)),
    )


def _recalibrated(study: Study, split: Split) -> dict[str, Floats]:
    """Return probabilities by method; scaling-binning is normalized here."""
    methods = dict(study.methods)
    methods[BINNING] = ScalingBinningCalibrator
    return calibrated(study, split, methods)


def _figures(
    study: Study, test: Rows, probabilities: dict[str, Floats]
) -> dict[Target, Measured | float]:
    figures: dict[Target, Measured | float] = {}
    for method, q in probabilities.items():
        figures[method, "accuracy", ""] = float((q.argmax(axis=1) == test.y).mean())
        checked = Predictions.of(test.y, q, classes=range(study.classes))
        (score,) = binned(checked, OPTIONS, over_score=True)
        figures[method, "ECE", ""] = measure(score.stats, LEVEL)
        for name in (study.variable, *study.others):
            along = Predictions.of(
                test.y, q, {name: test.variables[name]}, classes=range(study.classes)
            )
            (one,) = binned(along, OPTIONS)
            figures[method, "VECE", name] = measure(one.stats, LEVEL)
    return figures


def _value(figure: Measured | float) -> float:
    return figure.value if isinstance(figure, Measured) else figure


def _judge(claim: Claim, values: dict[Target, Floats]) -> ClaimResult:
    """See in how many splits a claim is true."""
    change = values[claim.target(claim.method)] - values[claim.target(claim.against)]
    true = change > -claim.margin if claim.measure == "accuracy" else change < claim.margin
    return ClaimResult(
        claim, float(change.mean()), float(change.std(ddof=1)), int(true.sum()), len(change)
    )
