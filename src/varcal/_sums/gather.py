"""From the arguments of a call to its evidence, wherever the rows are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from varcal._input.dates import with_calendar
from varcal._input.labels import Part
from varcal._input.predictions import ALL
from varcal._input.probabilities import no_weight
from varcal._input.variables import Variable
from varcal._options import check_choice
from varcal._sums.choose import fine_bins
from varcal._sums.collected import Collected, CollectedEvidence
from varcal._sums.evidence import SCORE, Evidence
from varcal._sums.exact_edges import Column, exact_summaries
from varcal._sums.in_memory import InMemory
from varcal._sums.plan import BinPlan, plan_of
from varcal._sums.protocol import LazyRows
from varcal._sums.question import QUANTILE, Default, Question
from varcal._sums.roles import Roles
from varcal._sums.rows_of_call import Few, rows_of_call
from varcal._sums.scan import Scan, Survey, sample_share
from varcal._sums.stats import FIELDS
from varcal._sums.summary import ArraySummary, SampledSummary
from varcal._sums.tally import Sums, Tally
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
    must_read: tuple[str, ...] | None = None,
) -> Evidence:
    """Return the evidence of a call.

    Collected sums are returned as they are. Rows in memory and few lazy rows are kept, and many
    lazy rows are summed.
    """
    if isinstance(y, Collected):
        given = {"p": p, "data": data, "classes": classes, "sample_weight": sample_weight}
        check_choice("unlabelled", unlabelled, ["raise", "drop"])
        settings: dict[str, object] = {
            "from_logits": from_logits or None,
            "unlabelled": None if unlabelled == "raise" else unlabelled,
        }
        return _of_collected(
            CollectedEvidence.of(y), v, question, given | {"groups": groups}, settings
        )
    found = rows_of_call(
        y,
        p,
        v,
        data=data,
        classes=classes,
        pos_label=question.pos_label,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
        must_read=must_read,
    )
    if isinstance(found, Few):
        kept = found.rows
        if question.calendar:
            kept = replace(kept, variables=with_calendar(kept.variables))
        return InMemory(kept, question, found.engine)
    rows = found.rows
    survey = survey_of(rows, found.roles, classes, found.n_all, calendar=question.calendar)
    if question.options["edges"] == "exact":
        survey = with_exact_edges(rows, survey, question)
    plan = plan_of(survey, question)
    summed = sum_up(rows, plan, moments=question.moments)
    return _not_empty(CollectedEvidence.of(summed))


def survey_of(
    rows: LazyRows,
    roles: Roles,
    classes: Sequence[Hashable] | None,
    n_rows: int,
    *,
    calendar: bool = False,
) -> Survey:
    """Read lazy rows once to find what is needed to choose bins."""
    scan = Scan(roles, sample_share(n_rows, roles), rows.row_numbers_known)
    seen = reduce(add, rows.map(roles.columns, scan))
    try:
        return Survey.of(seen, roles, classes, calendar=calendar)
    except InputError:
        # Reading the rows may raise an error that names the row at fault.
        check = Tally(
            roles, Part(tuple(classes or ())), {}, (), row_numbers_known=rows.row_numbers_known
        )
        for _ in rows.map(roles.columns, check):
            pass
        raise


def with_exact_edges(rows: LazyRows, survey: Survey, question: Question) -> Survey:
    """Pass over lazy rows once more, for exact quantiles instead of those of the sample."""
    names: list[Column] = [name for name in survey.names if survey.kind(name) != "levels"]
    if question.score is not None or not survey.roles.v:
        names += question.keys(survey.part.classes)
    samples = {name: survey.sample_of(name) for name in names}
    sampled = {name: one for name, one in samples.items() if isinstance(one, SampledSummary)}

    def choose(name: Column, summary: ArraySummary) -> None:
        if isinstance(name, str):
            variable, options = Variable(name, survey.kind(name), np.zeros(0)), question.options
        else:
            variable = Variable(SCORE, "numeric", np.zeros(0))
            options = question.score or question.options
        fine_bins(variable, **options, summary=summary)

    if not sampled:
        return survey
    exact = exact_summaries(rows, survey.roles, survey.part, sampled, choose)
    return replace(survey, exact=exact)


def sum_up(rows: LazyRows, plan: BinPlan, *, moments: bool = True) -> Collected:
    """Read lazy rows and sum them into the bins of a plan."""
    tally = plan.tally(row_numbers_known=rows.row_numbers_known, moments=moments)
    answers = rows.map(plan.roles.columns, tally)
    first = next(answers, None)
    sums: Sums = tally.nothing() if first is None else reduce(add, answers, first)
    return Collected(plan, sums, rows.engine, rows.backend)


def _not_empty(collected: CollectedEvidence) -> CollectedEvidence:
    """Refuse statistics without labelled rows or without weight."""
    if not collected.n_rows:
        raise InputError(
            "y has no label at any row", "at least one outcome is needed", argument="y"
        )
    weighted = collected.plan.roles.sample_weight is not None
    if weighted and not collected.sums.tables[0][FIELDS.index("weight")].any():
        raise no_weight()
    return collected


def _of_collected(
    collected: CollectedEvidence,
    v: object,
    question: Question,
    given: dict[str, object],
    settings: dict[str, object],
) -> CollectedEvidence:
    """Refuse arguments that collected statistics fix; return them for the given variables."""
    for argument, value in given.items():
        if value is not None:
            raise InputError(
                f"{argument} is given together with collected statistics",
                "omit it: it was fixed when the rows were collected",
                argument,
            )
    options, plan = question.options, collected.plan
    if len(plan.roles.p) == 1:
        settings = settings | {"pos_label": question.pos_label}
    binning = QUANTILE if v is None else plan.binning  # the score's own bins
    own = vars(plan.roles) | {
        "bins": None,
        "edges": None,
        "whole": options.get("whole"),
        "n_bins": plan.n_bins,
        "binning": str(binning),
        "pos_label": collected.pos_label,
    }
    for argument, value in (settings | dict(options)).items():
        if value is not None and value != own[argument] and not isinstance(value, Default):
            raise InputError(
                f"{argument} is given together with collected statistics"
                + ("" if own[argument] is None else f", which have {own[argument]!r}"),
                f"set it before rows are collected: make_bins(…, {argument}=…)",
                argument,
            )
    return _not_empty(collected if v is ALL else collected.about(v))
