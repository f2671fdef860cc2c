"""varcal: where along a variable a classifier's confidence is wrong, and how sure we are.

The usual import is ``import varcal as vc``.
"""

from __future__ import annotations

from varcal import datasets
from varcal._bin_table import BinTable, bin_table
from varcal._metrics import ece, vece
from varcal._predictions import Predictions
from varcal._scorers import ece_scorer, vece_scorer
from varcal._version import __version__

__all__ = [
    "BinTable",
    "Predictions",
    "__version__",
    "bin_table",
    "datasets",
    "ece",
    "ece_scorer",
    "vece",
    "vece_scorer",
]
