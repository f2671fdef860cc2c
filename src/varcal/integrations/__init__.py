"""varcal inside other tools: one module per tool, each loaded only when it is imported."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

from varcal.exceptions import VarcalError, import_library


def tool(name: str, purpose: str, *needed: str) -> ModuleType:
    """Import the library of a tool, or say in one line that it is missing or does not fit.

    >>> tool("json", "saving", "dumps").__name__
    'json'
    """
    package = name.split(".")[0]
    import_library(package, purpose)
    found = import_library(name, purpose)
    missing = [one for one in needed if not hasattr(found, one)]
    if missing:
        try:
            have = version(package)
        except PackageNotFoundError:
            have = "of an unknown version"
        raise VarcalError(
            f"{purpose} does not fit {package} {have}, which has no {', '.join(missing)}: "
            f"pip install -U {package}"
        )
    return found


def evaluate_folder() -> str:
    """Return the folder of the metric for Hugging Face's evaluate: ``evaluate.load(…)`` takes it.

    >>> import os
    >>> os.path.basename(evaluate_folder())
    'variable_calibration'
    """
    return str(Path(__file__).with_name("variable_calibration"))
