"""The types of results, for annotations and `isinstance`. Functions of varcal make them."""

from varcal._audit.changes import Changes
from varcal._audit.compare import Comparison
from varcal._audit.ladder import Ladder
from varcal._audit.record import AuditRow, Place
from varcal._audit.result import Audit
from varcal._measures.bin_table import BinTable
from varcal._measures.clinical import Measures
from varcal._measures.curve_result import Curve
from varcal._measures.decomposition import Decomposition
from varcal._measures.estimate import Estimate
from varcal._measures.means import MeanEstimate, MeanLevel
from varcal._measures.reliability import Reliability
from varcal._monitor.monitor import Status
from varcal._search.predictable_gap import PredictableGap
from varcal._search.slices_result import Slice, Slices
from varcal._search.surface import Surface
from varcal._sums.plan import BinPlan, Collected
from varcal.calibrators.apply import Applied

__all__ = [
    "Applied",
    "Audit",
    "AuditRow",
    "BinPlan",
    "BinTable",
    "Changes",
    "Collected",
    "Comparison",
    "Curve",
    "Decomposition",
    "Estimate",
    "Ladder",
    "MeanEstimate",
    "MeanLevel",
    "Measures",
    "Place",
    "PredictableGap",
    "Reliability",
    "Slice",
    "Slices",
    "Status",
    "Surface",
]
