"""ScoreProfile: the hit rate of a claim along its score, as in a reliability diagram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._evidence.evidence import Evidence
from varcal._inference.measured import Measured, gap_law
from varcal._measures.bin_table import BinTable, table_of
from varcal._measures.curve import curve_of
from varcal._measures.curve_result import Curve
from varcal._measures.estimate import measure_and_test


@dataclass(frozen=True, eq=False)
class ScoreProfile:
    """Hit rate along the score itself.

    Attributes
    ----------
    curve : Curve
        Along the score; the hit rate is ``curve.observed``.
    table : BinTable
        Bins of equal support over the score.
    consistency : tuple of float
        Half-width of the range around the mean score of each bin that contains the hit rate of a
        calibrated model, at the level of the table; NaN if the bin is empty.
    ece : Measured
        The expected calibration error.
    """

    curve: Curve
    table: BinTable
    consistency: tuple[float, ...]
    ece: Measured

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {
            "curve": self.curve.to_dict(),
            "table": self.table.to_dict(),
            "consistency": [None if x != x else x for x in self.consistency],
            "ece": vars(self.ece),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ScoreProfile:
        """Return the profile that `to_dict` described."""
        return cls(
            Curve.from_dict(data["curve"]),
            BinTable.from_dict(data["table"]),
            tuple(np.nan if x is None else x for x in data["consistency"]),
            Measured(**data["ece"]),
        )


def score_profile(
    evidence: Evidence,
    key: int,
    event: str,
    *,
    level: float,
    random_state: int = 0,
) -> ScoreProfile:
    """Return the profile of a claim along its score."""
    found = evidence.profile(key, None)
    law = gap_law(found.coarse)
    ece = measure_and_test(evidence, key, None, found, level=level, random_state=random_state)
    empty = found.coarse.total("weight") == 0
    reach = law.quantile(level) * np.sqrt(np.diagonal(law.null_cov))
    return ScoreProfile(
        curve=curve_of(
            found, event, level=level, vece=ece, backend=evidence.backend, engine=evidence.engine
        ),
        table=table_of(
            found.coarse, law.standard_error * law.quantile(level), event, level, evidence
        ),
        consistency=tuple(np.where(empty, np.nan, reach).tolist()),
        ece=ece,
    )
