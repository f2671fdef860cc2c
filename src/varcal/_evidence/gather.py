"""From a call's arguments to the evidence that answers it, wherever the rows are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from operator import add

from varcal._binning.stats import FIELDS
from varcal._engines.kernel_choice import load_early
from varcal._engines.open import lazy_rows
from varcal._engines.protocol import LazyRows, is_few
from varcal._evidence.collected import Collected
from varcal._evidence.evidence import Evidence
from varcal._evidence.held import Held
from varcal._evidence.plan import BinPlan, plan_of
from varcal._evidence.question import QUANTILE, Question, Unsaid
from varcal._evidence.roles import Roles
from varcal._evidence.scan import Scan, Survey, sample_share
from varcal._evidence.tally import Sums, Tally
from varcal._input.part import Part
from varcal._input.predictions import ALL, Predictions
from varcal._input.weights import no_weight
from varcal._options import check_choice
from varcal.exceptions import InputError


def gather(
    y: object,
    p: object,
    v: object,
    question: Question,
    *,
    data: object = None,
    classes: Sequence[Hashable] | None = None,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
) -> Evidence:
    """Find the evidence: collected sums, rows in memory, or lazy rows, which are few or summed."""
    if isinstance(y, Collected):
        given = {"p": p, "data": data, "classes": classes, "sample_weight": sample_weight}
        check_choice("unlabelled", unlabelled, ["raise", "drop"])
        said: dict[str, object] = {
            "from_logits": from_logits or None,
            "unlabelled": None if unlabelled == "raise" else unlabelled,
        }
        return _of_collected(y, v, question, given | {"groups": groups}, said)
    rows = lazy_rows(data)
    if rows is None:
        predictions = Predictions.of(
            y,
            p,
            v,
            data=data,
            classes=classes,
            sample_weight=sample_weight,
            groups=groups,
            from_logits=from_logits,
            unlabelled=unlabelled,
        )
        return Held(predictions, question)
    roles = Roles.of(
        rows.columns,
        y,
        p,
        v,
        sample_weight,
        groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    n_rows = rows.count()
    if is_few(n_rows, len(roles.columns)):
        few = roles.read(rows.read(roles.columns), classes=classes)
        return Held(few, question, rows.engine)
    if rows.counted:  # then they are summed in this process
        weighted = roles.sample_weight is not None
        load_early(n_rows, moments=question.moments, weighted=weighted)
    plan = plan_of(survey_of(rows, roles, classes, n_rows), question)
    return _not_nothing(sum_up(rows, plan, n_rows, moments=question.moments))


def survey_of(
    rows: LazyRows, roles: Roles, classes: Sequence[Hashable] | None, n_rows: int
) -> Survey:
    """Pass over lazy rows once, to learn what bins are chosen from."""
    scan = Scan(roles, sample_share(n_rows, roles), rows.counted)
    seen = reduce(add, rows.map(roles.columns, scan))
    try:
        return Survey.of(seen, roles, classes)
    except InputError:
        # The door may say where the fault is.
        check = Tally(roles, Part(tuple(classes or ())), {}, (), counted=rows.counted)
        for _ in rows.map(roles.columns, check):
            pass
        raise


def sum_up(rows: LazyRows, plan: BinPlan, n_rows: int, *, moments: bool = True) -> Collected:
    """Pass over lazy rows, and sum them into the bins of a plan."""
    tally = plan.tally(counted=rows.counted, moments=moments, n_all=n_rows)
    answers = rows.map(plan.roles.columns, tally)
    first = next(answers, None)
    sums: Sums = tally.nothing() if first is None else reduce(add, answers, first)
    return Collected(plan, sums, rows.engine, rows.backend)


def _not_nothing(found: Collected) -> Collected:
    """Refuse to answer where no row counts."""
    if not found.n_rows:
        raise InputError(
            "y has no label at any row", "at least one outcome is needed", argument="y"
        )
    weighted = found.plan.roles.sample_weight is not None
    if weighted and not found.sums.tables[0][FIELDS.index("weight")].any():
        raise no_weight()
    return found


def _of_collected(
    found: Collected,
    v: object,
    question: Question,
    given: dict[str, object],
    said: dict[str, object],
) -> Collected:
    for argument, value in given.items():
        if value is not None:
            raise InputError(
                f"{argument} is given together with collected statistics",
                "leave it out: it was settled when the rows were collected",
                argument,
            )
    options, plan = question.options, found.plan
    binning = QUANTILE if v is None else plan.binning  # the score's own bins
    own = vars(plan.roles) | {"bins": None, "n_bins": plan.n_bins, "binning": str(binning)}
    for argument, value in (said | dict(options)).items():
        if value is not None and value != own[argument] and not isinstance(value, Unsaid):
            raise InputError(
                f"{argument} is given together with collected statistics"
                + ("" if own[argument] is None else f", whose own is {own[argument]!r}"),
                f"it is settled before rows are collected: make_bins(…, {argument}=…)",
                argument,
            )
    return _not_nothing(found if v is ALL else found.about(v))
