"""varcal: where along a variable a classifier's confidence is wrong, and how sure we are.

The usual import is ``import varcal as vc``. Every name loads its room when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from varcal._version import __version__

if TYPE_CHECKING:
    from varcal import datasets, exceptions
    from varcal._bin_table import BinTable, bin_table
    from varcal._metrics import ece, vece
    from varcal._predictions import Predictions
    from varcal._scorers import ece_scorer, vece_scorer

__all__ = [
    "BinTable",
    "Predictions",
    "__version__",
    "bin_table",
    "datasets",
    "ece",
    "ece_scorer",
    "exceptions",
    "vece",
    "vece_scorer",
]

_ROOMS = {
    "_bin_table": ("BinTable", "bin_table"),
    "_metrics": ("ece", "vece"),
    "_predictions": ("Predictions",),
    "_scorers": ("ece_scorer", "vece_scorer"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("datasets", "exceptions"):
        return import_module(f"varcal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'varcal' has no attribute {name!r}")
    value = getattr(import_module(f"varcal.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
