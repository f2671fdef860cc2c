"""The `paper` protocol: exactly what the authors ran, even where it differs from their text.

ECE is binned over the *uncalibrated* 1 − max p. A prediction counts as right or wrong by the
*uncalibrated* argmax, also after recalibration. Only accuracies use the calibrated argmax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._binning.choose import make_bins
from varcal._binning.stats import BinnedStats
from varcal._engines.kernel_numpy import collect
from varcal._input.variables import Variable
from varcal._measures.metrics import calibration_error
from varcal.experiments._figure import Figure
from varcal.experiments._loess import interpolated_loess
from varcal.experiments._published import PUBLISHED, UNCALIBRATED, Target
from varcal.experiments._splits import Rows, Split
from varcal.experiments._study import Study

__all__ = ["PaperRun", "calibrated", "run_paper", "ten_bins", "worst_gap"]


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
    probabilities: dict[str, Floats]
    figures: dict[Target, Figure]

    @property
    def failed(self) -> list[Figure]:
        """The figures that should agree with the paper but do not."""
        return [figure for figure in self.figures.values() if figure.failed]

    @property
    def wrong(self) -> Bools:
        """Whether the uncalibrated model is wrong about each test row."""
        return self.test.pred != self.test.y


def calibrated(
    study: Study, split: Split, methods: dict[str, Callable[[], Any]] | None = None
) -> dict[str, Floats]:
    """Return the probabilities of the test rows by method, uncalibrated first."""
    variable = study.variable
    found = {UNCALIBRATED: split.test.p}
    for name, make in (methods or study.methods).items():
        calibrator = make()
        calibrator.fit(split.cal.p, split.cal.y, split.cal.variables[variable])
        found[name] = calibrator.predict_proba(split.test.p, split.test.variables[variable])
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
    probabilities = calibrated(study, split)
    right = test.pred == test.y
    uncertain = Variable("predicted error", "numeric", 1 - test.p.max(axis=1))
    values: dict[Target, float] = {}
    for method, q in probabilities.items():
        score = q.max(axis=1)
        values[method, "ECE", ""] = binned_error(uncertain, score, right)
        for name in (study.variable, *study.others):
            over = Variable(name, "numeric", test.variables[name])
            values[method, "VECE", name] = binned_error(over, score, right)
        values[method, "accuracy", ""] = float((q.argmax(axis=1) == test.y).mean())
    for name in study.worst:
        q = probabilities[study.score_based]
        values[study.score_based, "VCE(v*)", name] = worst_gap(
            test.variables[name], ~right, 1 - q.max(axis=1)
        )
    published = PUBLISHED[study.name]
    figures = {
        target: Figure(target, 100 * value, published.get(target), study.same_model)
        for target, value in values.items()
    }
    return PaperRun(study, test, probabilities, figures)


def binned_error(over: Variable, score: Floats, right: Bools) -> float:
    """Return the mean absolute gap over ten bins of equal support."""
    return calibration_error(ten_bins(over, score, right, moments=False))


def ten_bins(over: Variable, score: Floats, right: Bools, *, moments: bool = True) -> BinnedStats:
    """Return the sums over ten bins of equal support."""
    return collect(make_bins([over]), [over], score, right, moments=moments)


def worst_gap(x: Floats, wrong: Bools, predicted: Floats, *, span: float = 0.9) -> float:
    """Return VCE(v*) as a fraction: the largest distance between two interpolated LOESS curves.

    The distance is taken at 500 points between the 5 % and 95 % quantiles of x.
    """
    order = np.argsort(x, kind="stable")
    low, high = np.quantile(x, [0.05, 0.95])
    at = np.linspace(low, high, 500)
    curves = interpolated_loess(
        x[order], np.column_stack([100.0 * wrong, 100.0 * predicted])[order], at, span=span
    )
    return float(np.abs(curves[:, 0] - curves[:, 1]).max()) / 100
