"""`audit`: rank variables by how much of their error goes beyond the overall gap."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from varcal._audit.audit_result import Audit, AuditRow, EventSummary
from varcal._audit.verdicts import NO_EVIDENCE, TOO_FEW_ROWS, VARIES, VARIES_SLIGHTLY
from varcal._binning.choose import check_cut_names
from varcal._binning.stats import BinnedStats
from varcal._evidence.evidence import Evidence
from varcal._evidence.gather import gather
from varcal._evidence.question import ATOMS, N_BINS, BinOptions, Question
from varcal._inference.measured import (
    Measured,
    debiased_all,
    gap_law,
    measure_all,
    with_p,
)
from varcal._inference.multiplicity import benjamini_hochberg, holm
from varcal._input.events import CORRECT
from varcal._input.left_out import all_left_out, explicit_names
from varcal._input.predictions import ALL
from varcal._input.variables import Kind
from varcal._measures.bin_table import BinTable, table_of
from varcal._measures.curve import Curve, curve_of
from varcal._measures.estimate import OverallGap, detectable_of, overall_gap, profile_test
from varcal._measures.regions import describe_region, main_region
from varcal._measures.score_profile import score_profile
from varcal._options import check_level
from varcal._runtime.threads import one_blas_thread
from varcal._text.numbers import points
from varcal._text.progress import progress
from varcal.exceptions import InputError

#: Variables that are measured together.
BLOCK = 64
#: Without evidence, a variable with fewer rows than this gets the verdict "too few rows".
FEW_ROWS = 100
#: So does one along which only an error above this could have been detected.
TOO_COARSE = 0.1
#: A note says so if the gap of P(y = positive) is larger than that of the confidence by more than
#: this: smaller differences do not matter to a reader.
NOTABLE = 0.01
#: A note names at most this many variables.
MOST_NAMES = 5


@one_blas_thread
def audit(
    y: object,
    p: object = None,
    X: object = ALL,
    *,
    data: object = None,
    event: str = "correct",
    n_bins: int = N_BINS,
    binning: str = ATOMS,
    bins: object = None,
    edges: str | None = None,
    level: float = 0.95,
    threshold: float = 0.02,
    classes: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    include: str | Sequence[str] | None = None,
    random_state: int = 0,
) -> Audit:
    r"""Rank variables by how much a model's calibration changes along them.

    VECE is never below the overall gap :math:`|\bar s - \bar h|`, so a model that is equally
    overconfident everywhere has the same VECE along every column, even along noise. Variables
    are therefore ranked by what lies *beyond* the overall gap,

    .. math:: \text{beyond} = \sum_b \frac{n_b}{n} \, |g_b - \bar g|,

    where :math:`g_b` is the gap of bin b and :math:`\bar g` the overall gap. It is debiased and
    has its own interval and test; p-values are adjusted for the number of variables.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `vece`.
    X : frame, dict of columns, array, or column names, optional
        The variables. By default every column of `data` that has no other role.
    data, event, classes, pos_label, sample_weight, from_logits, unlabelled
        As in `vece`; `event` is "correct" or "positive".
    n_bins, binning, bins, edges
        As in `vece`, except that by default frequent values get bins of their own
        (``binning="atoms"``).
    level : float
        Level of intervals, bands and tests.
    threshold : float
        The size of `beyond` that matters. The verdict is "varies" if the interval of `beyond`
        lies above it.
    groups : array-like or column name, optional
        Units that rows belong to, such as patients or customers. Intervals, bands and tests
        then allow for dependence within a unit.
    include : list of str, optional
        Columns that must not be left out. By default identifiers, row numbers, constants and free
        text are, unless they are named in `X`: they would only make the adjustment for the number
        of variables stricter.
    random_state : int
        Seed of the simulated null distributions that are used where outcomes are sparse.

    Returns
    -------
    Audit
        One row per variable; ``audit["age"]`` is the curve of a variable.

    Examples
    --------
    >>> import varcal as vc
    >>> adult = vc.datasets.load_adult()
    >>> found = vc.audit(adult.y, adult.p, {name: adult[name] for name in ("age", "fnlwgt")})
    >>> [(row.variable, row.verdict) for row in found]
    [('age', 'varies'), ('fnlwgt', 'varies slightly')]
    """
    check_level(level)
    if not 0 <= threshold < 1:
        raise InputError(
            f"threshold must lie in [0, 1); got {threshold!r}", "try 0.02", argument="threshold"
        )
    if event == "classwise":
        raise InputError(
            "event is 'classwise', which makes one claim per class; an audit judges one claim",
            'use event="correct" or "positive"; vece(…, event="classwise") gives the mean',
            argument="event",
        )
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    plain: BinOptions = {"n_bins": n_bins, "binning": "quantile", "bins": None, "edges": edges}
    evidence = gather(
        y,
        p,
        X,
        Question(options, event, pos_label, other_claim=True, score=plain),
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    if not evidence.along:
        raise InputError("X is None", "give the variables to audit", argument="X")
    (key,) = evidence.keys(event, pos_label)
    check_cut_names(bins, evidence.along)
    absent = evidence.absent()
    if len(absent) == len(evidence.along):
        raise InputError(
            "X has no value at any row of any variable", "give a variable with values", argument="X"
        )
    known = [one.name for one in evidence.along]
    left_out = evidence.left_out(explicit_names(X, include, known))
    if len(left_out) == len(known):
        raise all_left_out(left_out)
    other_key = _other_claim(evidence, event)
    names = [name for name in known if name not in absent and name not in left_out]
    # Tables of fine cells by bucket of groups are large: one variable at a time.
    size = 1 if evidence.grouped else BLOCK
    blocks = (names[start : start + size] for start in range(0, len(names), size))
    findings = chain.from_iterable(
        _findings(evidence, key, other_key, block, event, level, random_state) for block in blocks
    )
    steps = progress(names, "Auditing", n_rows=evidence.n_rows)
    found = [finding for _, finding in zip(steps, findings, strict=True)]
    ranked = _ranked(found, threshold, level)
    overall = overall_gap(found[0].coarse, level)
    found_edges = "sampled" if any(one.sampled for one in found) else "exact"
    other_event = _other_event(found, event, level)
    by_name = {one.name: one for one in found}
    order = [by_name[row.variable] for row in ranked]
    return Audit(
        event=event,
        gap=overall.gap,
        gap_low=overall.low,
        gap_high=overall.high,
        error=1 - overall.accuracy,
        predicted_error=1 - overall.confidence,
        rows=ranked,
        curves={one.name: one.curve for one in order},
        tables={one.name: one.table for one in order},
        score=score_profile(evidence, key, event, level=level, random_state=random_state),
        other=other_event,
        notes=(
            *_notes(evidence, overall, other_event, ranked, absent - set(left_out), found_edges),
            *(f"Left out: {name} ({reason})." for name, reason in left_out.items()),
            *evidence.date_notes(),
        ),
        level=level,
        threshold=threshold,
        n_rows=evidence.n_rows,
        n_dropped=evidence.n_dropped,
        label="" if key == CORRECT else str(evidence.label(key)),
        n_bins=evidence.options["n_bins"],
        binning=evidence.options["binning"],
        grouped=evidence.grouped,
        backend=evidence.backend,
        engine=evidence.engine,
        edges=found_edges,
    )


@dataclass(frozen=True, eq=False)
class _Finding:
    """What was found along one variable, before it is ranked."""

    name: str
    kind: Kind
    coarse: BinnedStats
    missing: float
    sampled: bool
    vece: Measured
    beyond: Measured
    curve: Curve
    other: BinnedStats | None
    table: BinTable


def _findings(
    evidence: Evidence,
    key: int,
    other_key: int | None,
    names: Sequence[str],
    event: str,
    level: float,
    random_state: int,
) -> Iterator[_Finding]:
    """Look along some variables; their fine cells are forgotten afterwards."""
    profiles = [evidence.profile(key, name) for name in names]
    tables = [one.coarse for one in profiles]
    sizes = [measure_all(tables, level, beyond=beyond) for beyond in (False, True)]
    for one, *measured in zip(profiles, *sizes, strict=True):
        rows = evidence.rows(key, one.name, one)
        vece, beyond = (
            with_p(
                size,
                profile_test(
                    one,
                    rows,
                    grouped=evidence.grouped,
                    beyond=is_beyond,
                    random_state=random_state,
                ),
            )
            for size, is_beyond in zip(measured, (False, True), strict=True)
        )
        curve = curve_of(
            one, event, level=level, vece=vece, backend=evidence.backend, engine=evidence.engine
        )
        law = gap_law(one.coarse)
        reach = law.quantile(level) * law.standard_error
        yield _Finding(
            name=one.name,
            kind=one.kind,
            coarse=one.coarse,
            missing=float(one.fine.share[-1]) if one.missing else 0.0,
            sampled=one.coarse.bins.sampled,
            vece=vece,
            beyond=beyond,
            curve=curve,
            other=None if other_key is None else evidence.coarse(other_key, one),
            table=table_of(one.coarse, reach, event, level, evidence),
        )


def _ranked(found: list[_Finding], threshold: float, level: float) -> tuple[AuditRow, ...]:
    p = [one.beyond.p_value for one in found]
    adjusted = list(zip(holm(p), benjamini_hochberg(p), strict=True))
    order = sorted(
        range(len(found)), key=lambda k: (-found[k].beyond.debiased, -found[k].beyond.value)
    )
    low = np.array([one.beyond.low for one in found])
    high = np.array([one.beyond.high for one in found])
    rows = []
    for k in order:
        one, (p_holm, p_bh) = found[k], adjusted[k]
        region = main_region(one.curve.excess, one.curve.worst)
        rows.append(
            AuditRow(
                variable=one.name,
                kind=one.kind,
                verdict=_verdict(one, p_holm, threshold, level),
                vece=one.vece,
                beyond=one.beyond,
                p_holm=float(p_holm),
                p_bh=float(p_bh),
                rank_low=1 + int((low > high[k]).sum()),
                rank_high=len(found) - int((high < low[k]).sum()),
                direction=one.curve.direction,
                where="" if region is None else describe_region(region, one.curve.event),
                worst=one.curve.worst_label,
                vce=one.curve.vce,
                n_bins=int((one.coarse.total("weight") > 0).sum()),
                missing=one.missing,
            )
        )
    return tuple(rows)


def _verdict(one: _Finding, p_holm: float, threshold: float, level: float) -> str:
    if p_holm <= 1 - level:
        return VARIES if one.beyond.low >= threshold else VARIES_SLIGHTLY
    stats = one.coarse
    one_bin = (stats.total("weight") > 0).sum() < 2 and one.kind == "levels"
    if one_bin or int(stats.n.sum()) < FEW_ROWS or detectable_of(stats, level) > TOO_COARSE:
        return TOO_FEW_ROWS
    return NO_EVIDENCE


def _other_claim(evidence: Evidence, event: str) -> int | None:
    """Return the other of the two claims of a binary model."""
    if len(evidence.classes) != 2:
        return None
    (key,) = evidence.keys("positive" if event == "correct" else "correct")
    return key


def _other_event(found: list[_Finding], event: str, level: float) -> EventSummary | None:
    stats = {one.name: one.other for one in found if one.other is not None}
    if not stats:
        return None
    overall = overall_gap(next(iter(stats.values())), level)
    return EventSummary(
        "positive" if event == "correct" else "correct",
        overall.gap,
        overall.low,
        overall.high,
        dict(zip(stats, debiased_all(list(stats.values())), strict=True)),
    )


def _notes(
    evidence: Evidence,
    overall: OverallGap,
    other: EventSummary | None,
    rows: tuple[AuditRow, ...],
    absent: set[str],
    edges: str,
) -> tuple[str, ...]:
    notes = []
    if other is not None and other.event == "positive":
        notes += _disagreement(overall, other, evidence.classes[1])
    if evidence.n_dropped:
        notes.append(f"{evidence.n_dropped:,} rows without an outcome were left out.")
    if absent:
        notes.append(f"Left out because every value is missing: {', '.join(sorted(absent))}.")
    gaps = [row.variable for row in rows if row.missing > 0]
    if gaps:
        shown = ", ".join(gaps[:MOST_NAMES]) + (" …" if len(gaps) > MOST_NAMES else "")
        notes.append(f"Missing values of {shown} are in a bin of their own, not in the curve.")
    if edges == "sampled":
        notes.append("Bin edges come from a random sample of the rows; all figures use every row.")
    return tuple(notes)


def _disagreement(overall: OverallGap, other: EventSummary, positive: Hashable) -> list[str]:
    """Return a note if the gap of P(y = positive) is larger than that of the confidence."""
    sure = other.gap_low > 0 or other.gap_high < 0
    if not sure or abs(other.gap) <= abs(overall.gap) + NOTABLE:
        return []
    side = "over" if other.gap > 0 else "under"
    return [
        f"P(y = {positive!r}) is {side}-predicted by {points(abs(other.gap))} points overall, "
        f"but confidence in the predicted class is off by {points(abs(overall.gap))} only, because "
        'errors on the two sides of 0.5 cancel. Look at event="positive" as well.'
    ]
