"""`audit`: rank variables by the error that the average hides."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace

from varcal._audit.audit_result import Audit
from varcal._audit.intersections import intersections_of
from varcal._audit.judge import Settings, judge
from varcal._audit.repair import MOST_ROWS, Repair, check_protected, repair_of
from varcal._binning.choose import check_cut_names
from varcal._engines.open import lazy_rows
from varcal._evidence.collected import Collected, CollectedEvidence
from varcal._evidence.evidence import Evidence
from varcal._evidence.gather import gather
from varcal._evidence.in_memory import InMemory
from varcal._evidence.question import ATOMS, BOTH, N_BINS, BinOptions, Default, Question
from varcal._evidence.rows_of_call import sample_rows
from varcal._input.events import AUDIT_EVENTS
from varcal._input.indexes import BY_POSITION
from varcal._input.left_out import all_left_out, explicit_names, must_read
from varcal._input.predictions import ALL, Predictions
from varcal._options import check_flag, check_names, checked, one_of, or_none
from varcal._slices.slices import slices as search
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError


@checked(
    event=one_of(*AUDIT_EVENTS),
    include=or_none(check_names),
    repair=check_flag,
    protected=check_names,
    slices=check_flag,
)
@one_blas_thread()
def audit(
    y: object,
    p: object = None,
    X: object = ALL,
    *,
    data: object = None,
    event: str = BOTH,
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_BINS,
    binning: str = ATOMS,
    bins: object = None,
    edges: str | None = None,
    limit: float = 0.02,
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    include: str | Sequence[str] | None = None,
    repair: bool = True,
    protected: str | Sequence[str] = (),
    slices: bool = False,
    random_state: int = 0,
) -> Audit:
    r"""Rank variables by how much a model's calibration changes along them.

    VECE is never below the overall gap, so a model that is equally overconfident everywhere has
    the same VECE along every column, even along noise. Variables are therefore ranked by their
    *uneven error*, what is left once the average gap is taken off,

    .. math:: \text{uneven} = \sum_b \frac{n_b}{n} \, |g_b - \bar g_b|,

    where :math:`g_b` is the gap of bin b and :math:`\bar g_b` what it would be if every row had
    the average gap of its predicted side. It is debiased and has its own interval and test;
    p-values are adjusted for the number of variables.

    With two classes both claims of a model are judged: the *risk*, p against y, and the
    *confidence* in the predicted class. Errors that cancel in one of them show in the other. A
    row has the figures of the claim with the larger uneven error and a p-value that is valid for
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
        The class whose probability is the risk, and that a vector `p` is the probability of;
        the second one by default.
    n_bins, binning, bins, edges
        As in `vece`, except that by default frequent values get bins of their own
        (``binning="atoms"``).
    level : float
        Level of intervals, bands and tests.
    limit : float
        The uneven error that matters. With evidence, the verdict is "off" if the interval of the
        uneven error lies above it, "small" if it lies below, and "size unclear" otherwise.
    groups : array-like or column name, optional
        Units that rows belong to, such as patients or customers. Intervals, bands and tests
        then allow for dependence within a unit.
    include : list of str, optional
        Columns that must not be left out. By default identifiers, row numbers, constants and free
        text are, unless they are named in `X`: they would only make the adjustment for the number
        of variables stricter. Columns that cannot be variables, such as lists, are left out, too,
        and raise an error if they are named.
    repair : bool
        Whether ``audit.repair`` tries what a repair would achieve, when it is first asked for.
    protected : str or sequence of str
        Variables that a repair may not read; the repair is then also tried without them.
    slices : bool
        Whether to search intersections of variables as well: the slices where the model is most
        wrong (`slices`), the surface of the worst pair (`surface`) and how much of the gap can be
        predicted (`predictable_gap`). They are in ``audit.intersections`` and in reports. This
        takes several times as long as the audit itself.
    random_state : int
        Seed of the simulated null distributions that are used where outcomes are sparse, of the
        split of rows for the repair, and of the search for slices.

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
    [('age', 'risk', 'off'), ('fnlwgt', 'risk', 'size unclear')]
    """
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    plain: BinOptions = {"n_bins": n_bins, "binning": "quantile", "bins": None, "edges": edges}
    question = Question(
        options, event, pos_label, sided=event in ("both", "classwise"), score=plain
    )
    evidence = gather(
        y,
        p,
        X,
        question,
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
        must_read=must_read(X, include),
    )
    if not evidence.along:
        if evidence.odd:
            raise all_left_out(evidence.odd)
        raise InputError("X is None", "give the variables to audit", argument="X")
    check_cut_names(bins, evidence.along)
    absent = evidence.absent()
    known = [one.name for one in evidence.along]
    if len(absent) == len(known):
        raise InputError(
            "X has no value at any row of any variable", "give a variable with values", argument="X"
        )
    named = None if X is ALL else X
    left_out = evidence.left_out(explicit_names(named, include, known))
    left_out |= dict.fromkeys(sorted(absent), "every value is missing")
    if named is None or not isinstance(y, Collected):
        left_out |= evidence.odd
    names = [name for name in known if name not in left_out]
    if not names:
        raise all_left_out(left_out)
    event = _event_of(evidence, event)
    keys = evidence.audit_keys(event, pos_label)
    # A repair reads no column that was left out, protected or not.
    protected = [name for name in check_protected(protected, known) if name in names]
    if slices and isinstance(y, Collected):
        raise InputError(
            "slices is True, and y is collected statistics: slices need rows",
            "omit {slices}, or give the rows",
            argument="slices",
            settings={"slices": None},
        )
    settings = Settings(str(event), keys, level, limit, random_state)
    found = judge(evidence, names, settings, left_out=left_out)
    found = replace(found, pos_label="" if pos_label is None else repr(pos_label))
    if slices:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", BY_POSITION)  # it has been said once
            searched = search(
                y,
                p,
                names if isinstance(named, list | tuple) or named is None else X,
                data=data,
                event=event,
                level=level,
                classes=classes,
                pos_label=pos_label,
                sample_weight=sample_weight,
                groups=groups,
                from_logits=from_logits,
                unlabelled=unlabelled,
                include=include,
                random_state=random_state,
            )
        rows = _rows_of(evidence, data, names)
        assert rows is not None
        found = replace(
            found,
            intersections=intersections_of(
                searched,
                rows,
                found.rows,
                keys,
                gaps={name: claim.gap for name, claim in found.claims.items()},
                n_all=evidence.n_rows + evidence.n_dropped,
                engine=evidence.engine,
                random_state=random_state,
            ),
        )
    if not repair:
        return found

    def audit_again(rows: Predictions) -> Audit:
        some = InMemory(rows, question)
        absent = some.absent()
        present = [name for name in names if name not in absent]
        if not present:
            raise InputError("no variable has a value there", "give more rows", argument="X")
        return judge(some, present, settings)

    def try_repair() -> tuple[Repair | None, str]:
        rows = _rows_of(evidence, data, names)
        if rows is None:
            return None, "a repair needs the rows, and only their sums are in memory"
        return repair_of(
            rows,
            audit_again,
            protected=protected,
            n_all=evidence.n_rows,
            random_state=random_state,
        )

    return replace(found, try_repair=try_repair)


def _rows_of(evidence: Evidence, data: object, names: Sequence[str]) -> Predictions | None:
    """Return the rows with some variables, or a sample of them; None if there are only sums."""
    if isinstance(evidence, InMemory):
        rows = evidence.predictions
    elif isinstance(evidence, CollectedEvidence) and (lazy := lazy_rows(data)) is not None:
        rows = sample_rows(lazy, evidence.plan.roles, evidence.classes, MOST_ROWS)
    else:
        return None
    return replace(rows, variables=tuple(v for v in rows.variables if v.name in names))


def _event_of(evidence: Evidence, event: str) -> str:
    """Return the event, or the first one that was collected if the default one was not."""
    if isinstance(event, Default) and isinstance(evidence, CollectedEvidence):
        return evidence.default_event()
    return event
