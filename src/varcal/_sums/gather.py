"""From the arguments of a call to its evidence, wherever the rows are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from varcal._input.dates import with_calendar
from varcal._input.frames import check_indexes
from varcal._input.predictions import ALL, Predictions, no_weight
from varcal._options import check_choice
from varcal._sums.choose_bins import QUANTILE, Default
from varcal._sums.collected import Collected, CollectedEvidence
from varcal._sums.evidence import Evidence, InMemory
from varcal._sums.plan import Question, plan_of, sum_up
from varcal._sums.sources import fits_in_memory, lazy_rows
from varcal._sums.stats import FIELDS
from varcal._sums.stream import Roles, Stream
from varcal._sums.survey import survey_of
from varcal.exceptions import InputError


def gather(y: object, p: object, v: object, question: Question, **how: Any) -> Evidence:
    """Return the evidence of a call.

    Collected sums are returned as they are. Rows in memory and few lazy rows are kept, and many
    lazy rows are summed. `how` are further arguments of `rows_of_call`.
    """
    if isinstance(y, Collected):
        return _of_collected(CollectedEvidence(y), p, v, question, how)
    found = rows_of_call(y, p, v, pos_label=question.pos_label, **how)
    if isinstance(found, Predictions):
        if question.calendar:
            found = replace(found, variables=with_calendar(found.variables))
        return InMemory(found, question)
    rows, roles = found.rows, found.roles
    calendar = question.calendar
    survey = survey_of(rows, roles, how.get("classes"), found.n_all, calendar=calendar)
    if question.options["edges"] == "exact":
        survey = question.with_exact_edges(rows, survey)
    plan = plan_of(survey, question)
    sums = sum_up(rows, plan, moments=question.moments)
    return _not_empty(CollectedEvidence(Collected(plan, sums, rows.engine, rows.backend)))


def rows_of_call(
    y: object, p: object, v: object, *, data: object = None, classes: Any = None, **how: Any
) -> Predictions | Stream:
    """Return the rows that the arguments of a call name: in memory and checked, or a stream.

    `how` are further arguments of `Predictions.of`.
    """
    lazy = lazy_rows(data)
    if lazy is None:
        arrays = {"y": y, "p": p, "X": v}
        arrays |= {name: how.get(name) for name in ("sample_weight", "groups")}
        check_indexes(arrays if isinstance(data, Mapping) else arrays | {"data": data})
        return Predictions.of(y, p, v, data=data, classes=classes, **how)
    roles = Roles.of(lazy.columns, y, p, v, **how)
    n_all = lazy.count()
    if not fits_in_memory(n_all, len(roles.columns)):
        return Stream(lazy, roles, n_all)
    return replace(roles.read(lazy.read(roles.columns), classes=classes), engine=lazy.engine)


def refuse_sums(y: object, what: str) -> None:
    """Refuse collected statistics instead of rows; `what` names the function that needs rows."""
    if isinstance(y, Collected):
        raise InputError(
            f"y is collected statistics; {what} needs rows",
            "give the outcomes and probabilities, or data= with the names of their columns",
            argument="y",
        )


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
    collected: CollectedEvidence, p: object, v: object, question: Question, how: dict[str, Any]
) -> CollectedEvidence:
    """Refuse arguments that collected statistics fix; return them for the given variables."""
    for argument in ("p", "data", "classes", "sample_weight", "groups"):
        if (p if argument == "p" else how.get(argument)) is not None:
            raise InputError(
                f"{argument} is given together with collected statistics",
                "omit it: it was fixed when the rows were collected",
                argument,
            )
    options, plan = question.options, collected.plan
    unlabelled = how.get("unlabelled", "raise")
    check_choice("unlabelled", unlabelled, ["raise", "drop"])
    given: dict[str, object] = {
        "from_logits": how.get("from_logits") or None,
        "unlabelled": None if unlabelled == "raise" else unlabelled,
        **({"pos_label": question.pos_label} if len(plan.roles.p) == 1 else {}),
        **options,
    }
    own = vars(plan.roles) | {
        "bins": None,
        "edges": None,
        "whole": options.get("whole"),
        "n_bins": plan.n_bins,
        "binning": str(QUANTILE if v is None else plan.binning),  # the score's own bins
        "pos_label": collected.pos_label,
    }
    for argument, value in given.items():
        if value is not None and value != own[argument] and not isinstance(value, Default):
            raise InputError(
                f"{argument} is given together with collected statistics"
                + ("" if own[argument] is None else f", which have {own[argument]!r}"),
                f"set it before rows are collected: make_bins(…, {argument}=…)",
                argument,
            )
    return _not_empty(collected if v is ALL else collected.about(v))
