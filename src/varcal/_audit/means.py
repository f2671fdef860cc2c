"""The judge of predicted means: the same record as that of probabilities, by another law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from varcal._arrays import Floats, ratio_or_zero
from varcal._audit.judge import Found, Judged, Places, Settings, columns_by_side, places_of, ranked
from varcal._audit.record import AuditRow, Target
from varcal._audit.verdict import LIMIT
from varcal._inference.mean_law import MeanSums, gap_limits, mean_error, mean_law
from varcal._measures.bin_table import table_of
from varcal._measures.means import (
    FEW_ERRORS_NOTE,
    MEAN,
    MeanAlong,
    MeanEvidence,
    gap_columns,
    overall_level,
)
from varcal._text import NO_EVIDENCE
from varcal.exceptions import InputError


def mean_limit(evidence: MeanEvidence, limit: float | None) -> tuple[float, str]:
    """Return the error that matters, and why it is that."""
    if limit is None and not evidence.relative:
        raise InputError(
            "limit is not given: which difference between predicted and observed matters?",
            "give it in the unit of the outcome with {limit}",
            "limit",
            {"limit": ...},
        )
    if limit is not None and evidence.relative and limit >= 1:
        raise InputError(
            f"limit is {limit:g}, and gaps are relative",
            "give a share of the predicted mean, such as 0.02",
            "limit",
        )
    of = "of the predicted mean, " if evidence.relative else "in the unit of the outcome, "
    return (LIMIT, f"{of}the default") if limit is None else (limit, f"{of}as set")


def judge_means(evidence: MeanEvidence, names: Sequence[str], settings: Settings) -> Judged:
    """Judge the given variables, and the predictions over all rows."""
    target = _target(evidence, settings)
    found = [_found(evidence, name, target, settings, len(names)) for name in names]
    rows = ranked(found, {target.name: target.limit}, settings.level)
    parts = {one.row.variable: one for one in found}
    bins = {name: one.whole.bins for name, one in parts.items()}
    return Judged((target,), rows, places_of(evidence, rows, parts), bins)


def _target(evidence: MeanEvidence, settings: Settings) -> Target:
    level, seed = settings.level, settings.random_state
    overall = overall_level(evidence, level, seed)
    score = MeanAlong.of(evidence.profile(MEAN, None))
    limit, reason = mean_limit(evidence, settings.limit)
    return Target(
        name=settings.label,
        label=settings.label,
        sides=(),
        predicted=overall.predicted,
        observed=overall.observed,
        gap=overall.gap,
        gap_low=overall.low,
        gap_high=overall.high,
        p_value=overall.p_value,
        by_score=score.measured(level, center=False, seed=seed),
        score=replace(
            table_of(score.coarse, np.zeros(score.coarse.bins.size), "mean", level, evidence),
            columns=gap_columns(score.coarse, level),
        ),
        events=int(evidence.every.effective),
        limit=limit,
        limit_reason=reason,
        scale=evidence.scale,
    )


def _found(
    evidence: MeanEvidence, name: str, target: Target, settings: Settings, n_variables: int
) -> Found:
    """Measure and test a variable, and find its places."""
    level, seed = settings.level, settings.random_state
    along = MeanAlong.of(evidence.profile(MEAN, name))
    uneven = along.measured(level, center=True, seed=seed)
    strict = 1 - (1 - level) / n_variables
    joint = mean_error(along.sums, uneven.p_value, level=strict)
    places = _MeanPlaces(along, target.name, strict)
    parts = places.two()
    columns = {"all": gap_columns(along.coarse, level)}
    made = table_of(along.coarse, np.zeros(along.coarse.bins.size), "mean", level, evidence)
    missing = along.whole.missing
    row = AuditRow(
        variable=along.whole.name,
        kind=along.whole.kind,
        verdict=NO_EVIDENCE,
        target=target.name,
        error=along.measured(level, center=False, seed=seed),
        uneven=uneven,
        low=joint.low,
        high=joint.high,
        p_holm=1.0,
        p_bh=1.0,
        rank_low=1,
        rank_high=n_variables,
        table=replace(made, columns=columns_by_side(columns, places.texts())),
        places=tuple(part.place for part in parts),
        missing=float(along.coarse.share[-1]) if missing else 0.0,
        scale=evidence.scale,
    )
    return Found(row, along.coarse, parts)


class _MeanPlaces(Places):
    """Places whose interval and clarity follow from the scatter of amounts."""

    def __init__(self, along: MeanAlong, target: str, level: float) -> None:
        self._stats, self._law = along.coarse, mean_law(along.sums, center=False)
        uneven = mean_law(along.sums).gap
        super().__init__(along.whole, self._law, uneven, [along.coarse], target, (), level)

    def _rows_that_count(self, n: Floats) -> Floats:
        """Return one over the standard error of each place, if all gaps were the same."""
        law = self._law
        ends = np.concatenate([[0.0], np.cumsum(law.share**2 * np.diagonal(law.null_cov))])
        share = np.concatenate([[0.0], np.cumsum(law.share)])
        size, noise = (x[self.stop] - x[self.start] for x in (share, ends))
        return ratio_or_zero(size, np.sqrt(np.maximum(noise, 0.0)))[None]

    def _interval(
        self, gap: float, se: float, observed: float, cells: Floats
    ) -> tuple[float, float]:
        sums = self._stats.sums
        parts = [sums[..., part].sum(axis=-1) for part in (cells[0] > 0, cells[0] == 0)]
        two = MeanSums.from_sums(
            np.stack(parts, axis=-1), self._stats.power, relative=self._stats.relative
        )
        low, high = gap_limits(two, level=self.level)
        return 0.0 - float(high[0]), 0.0 - float(low[0])


def mean_notes(evidence: MeanEvidence) -> list[str]:
    """Return what readers of an audit of means should know."""
    rows, notes = evidence.predictions, []
    if evidence.every.few_errors:
        notes.append(FEW_ERRORS_NOTE)
    if np.isin(rows.y, (0.0, 1.0)).all():
        notes.append('Outcomes are only 0 and 1: for probabilities omit outcome="mean".')
    if evidence.exposure is not None:
        notes.append("Outcomes and predictions are per unit of exposure.")
    return notes
