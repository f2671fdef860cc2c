"""The `paper` protocol: exactly what the authors ran, even where it differs from their text.

ECE is binned over the *uncalibrated* 1 − max p. A prediction counts as right or wrong by the
*uncalibrated* argmax, also after recalibration. Only accuracies use the calibrated argmax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import varcal as vc
from reproduction.figure import Figure
from reproduction.loess import worst_gap
from reproduction.published import PUBLISHED, UNCALIBRATED, Target
from reproduction.rows import Rows, Split
from reproduction.studies import Study


@dataclass(frozen=True, eq=False)
class PaperRun:
    """One study under the `paper` protocol.

    Attributes
    ----------
    study : Study
        The study.
    test : Rows
        The test rows.
    probabilities : dict of ndarray
        The probabilities of the test rows by method, uncalibrated first.
    figures : dict of Figure
        Every figure by target.
    """

    study: Study
    test: Rows
    probabilities: dict[str, np.ndarray]
    figures: dict[Target, Figure]

    @property
    def failed(self) -> list[Figure]:
        """The figures that should agree with the paper but do not."""
        return [figure for figure in self.figures.values() if figure.failed]

    @property
    def wrong(self) -> np.ndarray:
        """Whether the uncalibrated model is wrong about each test row."""
        return self.test.pred != self.test.y


def calibrated(
    study: Study, split: Split, methods: dict[str, Callable[[], Any]]
) -> dict[str, np.ndarray]:
    """Return the probabilities of the test rows by method, uncalibrated first."""
    cal, test = split.cal, split.test
    found = {UNCALIBRATED: test.p}
    for name, make in methods.items():
        fitted = make().fit(cal.p, cal.y, cal.variables[study.variable])
        found[name] = fitted.predict_proba(test.p, test.variables[study.variable])
    return found


def run_paper(study: Study, split: Split) -> PaperRun:
    """Compute every figure of a study as the authors did.

    Parameters
    ----------
    study : Study
        The study.
    split : Split
        Calibration and test rows; the published figures are those of the paper's own split.
    """
    test = split.test
    probabilities = calibrated(study, split, study.methods)
    right = test.pred == test.y
    uncertain = 1 - test.p.max(axis=1)
    values: dict[Target, float] = {}
    for method, q in probabilities.items():
        score = q.max(axis=1)
        values[method, "ECE", ""] = vc.vece(right, score, uncertain, event="positive")
        for name in (study.variable, *study.others):
            x = test.variables[name]
            values[method, "VECE", name] = vc.vece(right, score, x, event="positive")
        values[method, "accuracy", ""] = float((q.argmax(axis=1) == test.y).mean())
    predicted = 1 - probabilities[study.score_based].max(axis=1)
    for name in study.worst:
        gap = worst_gap(test.variables[name], ~right, predicted)
        values[study.score_based, "VCE(v*)", name] = gap
    published = PUBLISHED[study.name]
    figures = {
        target: Figure(target, 100 * value, published.get(target), study.same_model)
        for target, value in values.items()
    }
    return PaperRun(study, test, probabilities, figures)
