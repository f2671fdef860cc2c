"""The private names that simulations need, in one list: `internals.GapLaw` looks one up.

Nothing else in this folder names a private module, except the constants in `sensitivity.py`, which
are looked up in the same way. Only what no public call gives is here: sums and tests of many
replicates at once, and the parts of a monitor.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Modules below `varcal`, each with a name in it.
PLACES = (
    "_sums.stats:STAKES",
    "_sums.stats:log_gains",
    "_sums.evidence:profile_of",
    "_sums.plan:N_FINE",
    "_inference.calibration_test:cluster_test",
    "_inference.debiased:debiased",
    "_inference.debiased:interval",
    "_inference.error_sums:ErrorSums",
    "_inference.error_sums:constant_gap_variance",
    "_inference.gap_law:GapLaw",
    "_input.labels:claim_of",
    "_input.predictions:Predictions",
    "_measures.estimate:profile_test",
    "_monitor.detectors:Detector",
    "_monitor.detectors:MOST_PREDICTED",
    "_monitor.detectors:Moments",
    "_monitor.detectors:Running",
    "_monitor.detectors:log_evidence",
    "_monitor.detectors:reach_of",
    "_monitor.monitor:ALSO",
    "_monitor.monitor:REFERENCE_ERROR",
    "_inference.bands:curve_bands",
    "calibrators.rows:score_rows",
)
_BY_NAME = {place.partition(":")[2]: place for place in PLACES}


def look_up(place: str) -> Any:
    """Return what "module:name" stands for; the module is below `varcal`."""
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(f"varcal.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise LookupError(
            f"varcal has no {place!r} any more ({error}): correct the list that names it, or "
            "remove what needs it"
        ) from None


def __getattr__(name: str) -> Any:
    if name not in _BY_NAME:
        raise AttributeError(f"{name!r} is not in internals.PLACES")
    return look_up(_BY_NAME[name])
