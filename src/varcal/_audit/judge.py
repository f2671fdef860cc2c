"""From evidence to an audit: every variable is measured, tested, ranked and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from varcal._audit.audit_result import Audit
from varcal._audit.audit_row import AuditRow, ClaimFigures, ClaimSummary
from varcal._audit.findings import ClaimFinding, Finding, look
from varcal._audit.places import Part, Place, Places, chosen_groups, describe_place
from varcal._audit.verdicts import FINDINGS, NO_EVIDENCE, OFF, SIZE_UNCLEAR, SMALL, TOO_FEW_ROWS
from varcal._binning.stats import BinnedStats
from varcal._evidence.evidence import Evidence
from varcal._inference.measured import Measured, gap_law, with_p
from varcal._inference.multiplicity import benjamini_hochberg, holm, rank_range
from varcal._input.events import CORRECT, claim_names
from varcal._input.variables import Kind
from varcal._measures.bin_table import BinTable, table_of
from varcal._measures.curve import curve_of
from varcal._measures.curve_result import Curve
from varcal._measures.estimate import detectable_of, overall_gap
from varcal._measures.score_profile import score_profile
from varcal._text.progress import progress

#: Variables that are measured together.
BLOCK = 64
#: Without evidence, a variable with fewer rows than this gets the verdict "too few rows".
FEW_ROWS = 100
#: So does one along which only an error above this could have been detected.
TOO_COARSE = 0.1
#: A note names at most this many variables.
MOST_NAMES = 5


@dataclass(frozen=True)
class Settings:
    """The options of an audit that concern its judgement.

    Attributes
    ----------
    event : str
        The claims to judge.
    keys : sequence of int
        Their keys.
    level, limit : float
        The level of intervals and tests, and the uneven error that matters.
    random_state : int
        Seed of simulated null distributions.
    """

    event: str
    keys: Sequence[int]
    level: float
    limit: float
    random_state: int

    @property
    def sided(self) -> bool:
        """Whether several claims are judged at once, by predicted side."""
        return self.event in ("both", "classwise")


def judge(
    evidence: Evidence,
    names: Sequence[str],
    settings: Settings,
    *,
    left_out: Mapping[str, str] | None = None,
) -> Audit:
    """Audit the given variables; `left_out` has the reasons why other columns are not audited."""
    level = settings.level
    # Tables of fine cells by bucket of groups are large: one variable at a time.
    size = 1 if evidence.grouped else BLOCK
    blocks = (names[start : start + size] for start in range(0, len(names), size))
    claims = claim_names(evidence.classes, settings.keys)
    findings = chain.from_iterable(
        look(
            evidence,
            settings.keys,
            block,
            sided=settings.sided,
            level=level,
            n_variables=len(names),
            random_state=settings.random_state,
        )
        for block in blocks
    )
    steps = progress(names, "Auditing", n_rows=evidence.n_rows)
    found = [
        _looked(finding, evidence, claims, level, len(names))
        for _, finding in zip(steps, findings, strict=True)
    ]
    ranked = _ranked(found, settings.limit, level)
    edges = "sampled" if any(one.main.bins.sampled for one in found) else "exact"
    by_name = {one.name: one for one in found}
    order = [by_name[row.variable] for row in ranked]
    return Audit(
        event=settings.event,
        claims=_claim_summaries(evidence, claims, found[0], level, settings.random_state),
        rows=ranked,
        curves={one.name: one.curve for one in order},
        other_curves={one.name: one.other_curve for one in order if one.other_curve is not None},
        tables={one.name: one.table for one in order},
        places=_places(evidence, ranked, by_name),
        notes=_notes(evidence, ranked, edges),
        left_out=tuple((left_out or {}).items()),
        level=level,
        limit=settings.limit,
        n_rows=evidence.n_rows,
        n_dropped=evidence.n_dropped,
        n_bins=evidence.options["n_bins"],
        binning=evidence.options["binning"],
        grouped=evidence.grouped,
        backend=evidence.backend,
        engine=evidence.engine,
        edges=edges,
    )


@dataclass(frozen=True, eq=False)
class _Looked:
    """What is kept of a finding: its figures, curve, table and places, without fine cells."""

    name: str
    kind: Kind
    claim: str
    vece: Measured
    uneven: Measured
    low: float
    high: float
    others: tuple[ClaimFigures, ...]
    main: BinnedStats
    claims: dict[int, BinnedStats]
    missing: float
    curve: Curve
    other_curve: Curve | None
    table: BinTable
    parts: tuple[Part, ...]
    weakest: Place


def _looked(
    finding: Finding, evidence: Evidence, claims: dict[int, str], level: float, n_variables: int
) -> _Looked:
    main = finding.main

    def curve(one: ClaimFinding) -> Curve:
        return curve_of(
            one.profile,
            "correct" if one.key == CORRECT else "positive",
            level=level,
            vece=one.vece,
            backend=evidence.backend,
            engine=evidence.engine,
        )

    two = len(evidence.classes) == 2 and len(claims) == 2 and CORRECT in claims
    drawn = curve(main)
    law = gap_law(main.profile.coarse)
    reach = law.quantile(level) * law.standard_error
    places = Places(main.profile, main.hidden, claims[main.key], 1 - (1 - level) / n_variables)
    clearest = places.clearest()
    other = None if clearest is None else places.clearest(apart_from=clearest)
    return _Looked(
        name=finding.name,
        kind=finding.kind,
        claim=claims[main.key],
        vece=main.vece,
        uneven=finding.uneven,
        low=finding.low,
        high=finding.high,
        others=tuple(
            ClaimFigures(claims[one.key], one.vece, one.uneven, one.low, one.high)
            for one in finding.claims[1:]
        ),
        main=main.profile.coarse,
        claims={one.key: one.profile.coarse for one in finding.claims},
        missing=finding.missing,
        curve=drawn,
        other_curve=curve(finding.claims[1]) if two else None,
        table=table_of(main.profile.coarse, reach, drawn.event, level, evidence),
        parts=tuple(part for part in (clearest, other) if part is not None),
        weakest=places.weakest(),
    )


def _ranked(found: list[_Looked], limit: float, level: float) -> tuple[AuditRow, ...]:
    sizes = [one.uneven for one in found]
    p = [size.p_value for size in sizes]
    adjusted = list(zip(holm(p).tolist(), benjamini_hochberg(p).tolist(), strict=True))
    order = sorted(range(len(found)), key=lambda k: (-sizes[k].debiased, -sizes[k].value))
    best, worst = rank_range(
        *zip(*[(size.debiased, size.low, size.high) for size in sizes], strict=True)
    )
    rows = []
    for k in order:
        one, (p_holm, p_bh) = found[k], adjusted[k]
        joint = with_p(replace(sizes[k], low=one.low, high=one.high), p_holm, level)
        # What holds for all variables at once never says more than what holds for this one.
        low = min(joint.low, sizes[k].low)
        verdict = _verdict(one, p_holm, low, joint.high, limit, level)
        place = one.parts[0].place if one.parts and verdict in FINDINGS else None
        rows.append(
            AuditRow(
                variable=one.name,
                kind=one.kind,
                verdict=verdict,
                claim=one.claim,
                vece=one.vece,
                uneven=sizes[k],
                low=low,
                high=joint.high,
                p_holm=p_holm,
                p_bh=p_bh,
                rank_low=int(best[k]),
                rank_high=int(worst[k]),
                direction=one.curve.direction,
                where="" if place is None else describe_place(place),
                worst=one.curve.worst_label,
                vce=one.curve.vce,
                n_bins=int((one.main.total("weight") > 0).sum()),
                missing=one.missing,
                others=one.others,
                place=place,
                weakest=one.weakest,
            )
        )
    return tuple(rows)


def _verdict(
    one: _Looked, p_holm: float, low: float, high: float, limit: float, level: float
) -> str:
    if p_holm < 1 - level:
        return OFF if low > limit else SMALL if high <= limit else SIZE_UNCLEAR
    stats = one.main
    one_bin = (stats.total("weight") > 0).sum() < 2 and one.kind == "levels"
    if one_bin or int(stats.n.sum()) < FEW_ROWS or detectable_of(stats, level) > TOO_COARSE:
        return TOO_FEW_ROWS
    return NO_EVIDENCE


def _places(
    evidence: Evidence, rows: tuple[AuditRow, ...], looked: dict[str, _Looked]
) -> tuple[Place, ...]:
    """Choose for whom the model is wrong, from the variables that are off."""
    parts = [
        (part, evidence.members(row.variable, looked[row.variable].main.bins, part.bins))
        for row in rows
        if row.verdict == OFF
        for part in looked[row.variable].parts
    ]
    return chosen_groups(parts)


def _claim_summaries(
    evidence: Evidence, claims: dict[int, str], one: _Looked, level: float, random_state: int
) -> dict[str, ClaimSummary]:
    found = {}
    for key, name in claims.items():
        overall = overall_gap(one.claims[key], level)
        event = "correct" if key == CORRECT else "positive"
        found[name] = ClaimSummary(
            claim=name,
            label="" if key == CORRECT else str(evidence.label(key)),
            predicted=overall.confidence,
            observed=overall.accuracy,
            gap=overall.gap,
            gap_low=overall.low,
            gap_high=overall.high,
            score=score_profile(evidence, key, event, level=level, random_state=random_state),
        )
    return found


def _notes(evidence: Evidence, rows: tuple[AuditRow, ...], edges: str) -> tuple[str, ...]:
    notes = []
    if evidence.n_dropped:
        notes.append(f"{evidence.n_dropped:,} rows without an outcome were left out.")
    gaps = [row.variable for row in rows if row.missing > 0]
    if gaps:
        shown = ", ".join(gaps[:MOST_NAMES]) + (" …" if len(gaps) > MOST_NAMES else "")
        notes.append(f"Missing values of {shown} are in a bin of their own, not in the curve.")
    if edges == "sampled":
        notes.append("Bin edges come from a random sample of the rows; all figures use every row.")
    return (*notes, *evidence.date_notes())
