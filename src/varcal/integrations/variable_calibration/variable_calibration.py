"""A metric of Hugging Face's evaluate: calibration errors by score and along a variable.

Load it from its folder, which `varcal.integrations.evaluate_folder` names.
"""

from typing import Any

import evaluate

import datasets
import varcal as vc

_DESCRIPTION = """
How far predicted probabilities are from observed frequencies, by score (ECE) and, with `variable`,
along a variable (VECE): without the bias of noise, with an interval and a p-value.
"""
_INPUTS = """
predictions: probabilities of the positive class
references: labels, 0 or 1
variable: optional, one number or text per prediction, such as the length of a text
"""


class VariableCalibration(evaluate.Metric):
    """ECE, and VECE along a variable."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="Kelly and Smyth (2023), Variable-Based Calibration for Machine Learning "
            "Classifiers, AAAI.",
            inputs_description=_INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("int64")}
            ),
        )

    def _compute(
        self, predictions: Any, references: Any, variable: Any = None, **options: Any
    ) -> dict[str, float]:
        options = {"event": "positive", **options}
        found = {"ece": vc.estimate(references, predictions, **options)}
        if variable is not None:
            found["vece"] = vc.estimate(references, predictions, variable, **options)
        figures = {"": "debiased", "_low": "low", "_high": "high", "_p_value": "p_value"}
        return {
            f"{name}{ending}": getattr(one, field)
            for name, one in found.items()
            for ending, field in figures.items()
        }
