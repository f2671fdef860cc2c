"""varcal inside other tools: one module per tool, each loaded only when it is imported."""

from pathlib import Path


def evaluate_folder() -> str:
    """Return the folder of the metric for Hugging Face's evaluate: ``evaluate.load(…)`` takes it.

    >>> import os
    >>> os.path.basename(evaluate_folder())
    'variable_calibration'
    """
    return str(Path(__file__).with_name("variable_calibration"))
