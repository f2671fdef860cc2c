"""`audit`: rank variables by the error that the average hides."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from varcal._audit.audit_result import Audit, AuditRow, ClaimFigures, ClaimSummary
from varcal._audit.findings import ClaimFinding, Finding, look
from varcal._audit.places import Part, Place, Places, chosen_groups, describe_place
from varcal._audit.verdicts import FINDINGS, NO_EVIDENCE, OFF, SIZE_UNCLEAR, SMALL, TOO_FEW_ROWS
from varcal._binning.choose import check_cut_names
from varcal._binning.stats import BinnedStats
from varcal._evidence.evidence import Evidence
from varcal._evidence.gather import gather
from varcal._evidence.question import ATOMS, N_BINS, BinOptions, Question
from varcal._inference.duality import with_p
from varcal._inference.measured import Measured, gap_law
from varcal._inference.multiplicity import benjamini_hochberg, holm
from varcal._input.events import AUDIT_EVENTS, CORRECT
from varcal._input.predictions import ALL
from varcal._input.variables import Kind
from varcal._measures.bin_table import BinTable, table_of
from varcal._measures.curve import Curve, curve_of
from varcal._measures.estimate import detectable_of, overall_gap
from varcal._measures.score_profile import score_profile
from varcal._options import check_choice, check_level
from varcal._runtime.threads import one_blas_thread
from varcal._text.progress import progress
from varcal.exceptions import InputError

#: Variables that are measured together.
BLOCK = 64
#: Without evidence, a variable with fewer rows than this gets the verdict "too few rows".
FEW_ROWS = 100
#: So does one along which only an error above this could have been detected.
TOO_COARSE = 0.1
#: A note names at most this many variables.
MOST_NAMES = 5


@one_blas_thread
def audit(
    y: object,
    p: object = None,
    X: object = ALL,
    *,
    data: object = None,
    event: str = "both",
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
    random_state: int = 0,
) -> Audit:
    r"""Rank variables by how much a model's calibration changes along them.

    VECE is never below the overall gap, so a model that is equally overconfident everywhere has
    the same VECE along every column, even along noise. Variables are therefore ranked by their
    *hidden error*, what is left once the average gap is taken off,

    .. math:: \text{beyond} = \sum_b \frac{n_b}{n} \, |g_b - \bar g_b|,

    where :math:`g_b` is the gap of bin b and :math:`\bar g_b` what it would be if every row had
    the average gap of its predicted side. It is debiased and has its own interval and test;
    p-values are adjusted for the number of variables.

    With two classes both claims of a model are judged: the *risk*, p against y, and the
    *confidence* in the predicted class. Errors that cancel in one of them show in the other. A
    row has the figures of the claim with the larger hidden error and a p-value that is valid for
    both. With more classes the claims are the confidence and the probability of each class.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `vece`.
    X : frame, dict of columns, array, or column names, optional
        The variables. By default every column of `data` that has no other role.
    data, classes, sample_weight, from_logits, unlabelled
        As in `vece`.
    event : {"both", "correct", "positive", "classwise"}
        The claims to judge. "both": all of them. "correct": the confidence in the predicted
        class. "positive": the risk (two classes). "classwise": the probability of each class.
        With "correct" and "positive" one overall gap is taken off, not that of each side.
    pos_label : label, optional
        The class whose probability is the risk; the second one by default.
    n_bins, binning, bins, edges
        As in `vece`, except that by default frequent values get bins of their own
        (``binning="atoms"``).
    level : float
        Level of intervals, bands and tests.
    threshold : float
        The hidden error that matters. With evidence, the verdict is "off" if the interval of the
        hidden error lies above it, "small" if it lies below, and "size unclear" otherwise.
    groups : array-like or column name, optional
        Units that rows belong to, such as patients or customers. Intervals, bands and tests
        then allow for dependence within a unit.
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
    >>> [(row.variable, row.claim, row.verdict) for row in found]
    [('age', 'confidence', 'off'), ('fnlwgt', 'confidence', 'small')]
    """
    check_level(level)
    if not 0 <= threshold < 1:
        raise InputError(
            f"threshold must lie in [0, 1); got {threshold!r}", "try 0.02", argument="threshold"
        )
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    plain: BinOptions = {"n_bins": n_bins, "binning": "quantile", "bins": None, "edges": edges}
    check_choice("event", event, AUDIT_EVENTS)
    sided = event in ("both", "classwise")
    evidence = gather(
        y,
        p,
        X,
        Question(options, event, pos_label, sided=sided, score=plain),
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    if not evidence.along:
        raise InputError("X is None", "give the variables to audit", argument="X")
    keys = evidence.audit_keys(event, pos_label)
    check_cut_names(bins, evidence.along)
    absent = evidence.absent()
    if len(absent) == len(evidence.along):
        raise InputError(
            "X has no value at any row of any variable", "give a variable with values", argument="X"
        )
    names = [one.name for one in evidence.along if one.name not in absent]
    # Tables of fine cells by bucket of groups are large: one variable at a time.
    size = 1 if evidence.grouped else BLOCK
    blocks = (names[start : start + size] for start in range(0, len(names), size))
    claims = {key: _claim_name(evidence, key, event) for key in keys}
    findings = chain.from_iterable(
        look(
            evidence,
            keys,
            block,
            sided=sided,
            level=level,
            n_variables=len(names),
            random_state=random_state,
        )
        for block in blocks
    )
    steps = progress(names, "Auditing", n_rows=evidence.n_rows)
    found = [
        _looked(finding, evidence, claims, level, len(names))
        for _, finding in zip(steps, findings, strict=True)
    ]
    ranked = _ranked(found, threshold, level)
    summaries = _claim_summaries(evidence, claims, found[0], level, random_state)
    found_edges = "sampled" if any(one.main.bins.sampled for one in found) else "exact"
    by_name = {one.name: one for one in found}
    order = [by_name[row.variable] for row in ranked]
    return Audit(
        event=event,
        claims=summaries,
        rows=ranked,
        curves={one.name: one.curve for one in order},
        other_curves={one.name: one.other_curve for one in order if one.other_curve is not None},
        tables={one.name: one.table for one in order},
        groups=_groups(evidence, ranked, by_name),
        notes=_notes(evidence, ranked, absent, found_edges),
        left_out=tuple((name, "every value is missing") for name in sorted(absent)),
        level=level,
        threshold=threshold,
        n_rows=evidence.n_rows,
        n_dropped=evidence.n_dropped,
        n_bins=evidence.options["n_bins"],
        binning=evidence.options["binning"],
        grouped=evidence.grouped,
        backend=evidence.backend,
        engine=evidence.engine,
        edges=found_edges,
    )


def audit_estimator(model: Any, X: Any, y: object, **options: Any) -> Audit:
    """Audit a fitted classifier on rows that it was not trained on.

    Parameters
    ----------
    model : fitted classifier
        A classifier with `predict_proba` and `classes_`, as in scikit-learn.
    X : frame or array
        The features. Every column is audited; columns of an array are called v0, v1, …
    y : array-like
        The labels.
    **options
        Passed on to `audit`.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import varcal as vc
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> found = vc.audit_estimator(GaussianNB().fit(X[:300], y[:300]), X[300:], y[300:])
    >>> len(found)
    30
    """
    for name in ("predict_proba", "classes_"):
        if not hasattr(model, name):
            raise InputError(
                f"model has no {name}: {type(model).__name__}",
                "give a fitted classifier that predicts probabilities",
                argument="model",
            )
    p = np.asarray(model.predict_proba(X))
    return audit(y, p, X, classes=list(model.classes_), **options)


@dataclass(frozen=True, eq=False)
class _Looked:
    """What is kept of a finding: its figures, curve, table and places, without fine cells."""

    name: str
    kind: Kind
    claim: str
    vece: Measured
    beyond: Measured
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
    places = Places(main.profile, claims[main.key], 1 - (1 - level) / n_variables)
    clearest = places.clearest()
    other = None if clearest is None else places.clearest(apart_from=clearest)
    return _Looked(
        name=finding.name,
        kind=finding.kind,
        claim=claims[main.key],
        vece=main.vece,
        beyond=finding.beyond,
        low=finding.low,
        high=finding.high,
        others=tuple(
            ClaimFigures(claims[one.key], one.vece, one.beyond, one.low, one.high)
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


def _claim_name(evidence: Evidence, key: int, event: str) -> str:
    if key == CORRECT:
        return "confidence"
    two = len(evidence.classes) == 2 and event != "classwise"
    return "risk" if two else f"class {evidence.label(key)}"


def _ranked(found: list[_Looked], threshold: float, level: float) -> tuple[AuditRow, ...]:
    sizes = [one.beyond for one in found]
    p = [size.p_value for size in sizes]
    adjusted = list(zip(holm(p).tolist(), benjamini_hochberg(p).tolist(), strict=True))
    order = sorted(range(len(found)), key=lambda k: (-sizes[k].debiased, -sizes[k].value))
    low = np.array([size.low for size in sizes])
    high = np.array([size.high for size in sizes])
    rows = []
    for k in order:
        one, (p_holm, p_bh) = found[k], adjusted[k]
        joint = with_p(replace(sizes[k], low=one.low, high=one.high), p_holm, level)
        verdict = _verdict(one, p_holm, joint.low, joint.high, threshold, level)
        place = one.parts[0].place if one.parts and verdict in FINDINGS else None
        rows.append(
            AuditRow(
                variable=one.name,
                kind=one.kind,
                verdict=verdict,
                claim=one.claim,
                vece=one.vece,
                beyond=sizes[k],
                low=joint.low,
                high=joint.high,
                p_holm=p_holm,
                p_bh=p_bh,
                rank_low=1 + int((low > high[k]).sum()),
                rank_high=len(found) - int((high < low[k]).sum()),
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
    one: _Looked, p_holm: float, low: float, high: float, threshold: float, level: float
) -> str:
    if p_holm < 1 - level:
        return OFF if low > threshold else SMALL if high <= threshold else SIZE_UNCLEAR
    stats = one.main
    one_bin = (stats.total("weight") > 0).sum() < 2 and one.kind == "levels"
    if one_bin or int(stats.n.sum()) < FEW_ROWS or detectable_of(stats, level) > TOO_COARSE:
        return TOO_FEW_ROWS
    return NO_EVIDENCE


def _groups(
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
            says=overall.confidence,
            happens=overall.accuracy,
            gap=overall.gap,
            gap_low=overall.low,
            gap_high=overall.high,
            score=score_profile(evidence, key, event, level=level, random_state=random_state),
        )
    return found


def _notes(
    evidence: Evidence, rows: tuple[AuditRow, ...], absent: set[str], edges: str
) -> tuple[str, ...]:
    notes = []
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
