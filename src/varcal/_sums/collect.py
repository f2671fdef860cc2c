"""Mergeable statistics: bins are chosen once, batches are summed into them, and sums are added."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from varcal._input.events import COLLECTED_EVENTS
from varcal._input.frames import Table
from varcal._input.labels import Part
from varcal._input.left_out import all_left_out, must_read
from varcal._input.predictions import ALL
from varcal._options import check_choice, check_names, checked, number, or_none
from varcal._sums.choose_bins import BinOptions
from varcal._sums.collected import Collected
from varcal._sums.plan import MOST_FINE_CLASSES, BinPlan, Question, Wanted, opened, plan_of, sum_up
from varcal._sums.sources import lazy_rows
from varcal._sums.stream import Roles
from varcal._sums.survey import Survey, survey_of
from varcal.exceptions import InputError


@checked(
    events=or_none(check_names),
    monitor=or_none(number(0, 0.5, ends="[]", hint="try 0.02")),
    weight_cap=or_none(number(0, hint="give the largest weight that a row can have")),
)
def make_bins(
    y: str,
    p: str | Sequence[str],
    X: object = ALL,
    *,
    data: object,
    events: Sequence[str] | None = None,
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = 10,
    binning: str = "atoms",
    bins: object = None,
    edges: str | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    monitor: float | None = None,
    weight_cap: float | None = None,
) -> BinPlan:
    """Choose the bins of every variable and of the score, for batches to be collected later.

    Later batches may contain values that these rows do not have: values beyond the ends fall into
    the end bins, new levels into the bin "other", and missing values into a bin of their own.
    Results do not show these extra bins if they stay empty.

    Parameters
    ----------
    y : str
        The column of labels.
    p : str or sequence of str
        The column of P(y = pos_label), or one column per class.
    X : sequence of str, optional
        The variables; every column without another role by default.
    data : frame, dict of columns, path, relation or lazy frame
        Rows like those of the batches; a sample is enough.
    events : sequence of {"both", "correct", "positive", "classwise"}, optional
        What the probabilities claim. "both" has all that an audit needs, and contains the
        others, except that with two classes the one that is not `pos_label` needs "classwise" as
        well. It is the default, except that with more than ten classes only "correct" is
        collected, to save memory.
    n_bins, binning, bins, edges
        As in `audit`.
    classes, pos_label, sample_weight, groups, from_logits, unlabelled
        As in `audit`, with columns by name. Without `classes`, batches may only have the labels
        of these rows. Groups are hashed into 256 buckets.
    monitor : float, optional
        The limit of a `Monitor`, such as 0.02. Batches then also have the sums from which it
        tells soonest that a gap is larger than this.
    weight_cap : float, optional
        The largest weight that a row can have; needed for a monitor if there are weights. Later
        rows with a larger one are refused.

    Returns
    -------
    BinPlan

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(500)
    >>> rows = {"y": sim.y, "p": sim.p, "age": sim.v}
    >>> vc.make_bins("y", "p", data=rows)
    BinPlan: 2 claims along 1 variable (age)
    """
    _check_monitor(monitor, weight_cap, sample_weight, groups)
    rows = lazy_rows(data)
    frame = None if rows is not None else Table.of(data, "data")
    names = rows.columns if rows is not None else frame.columns  # type: ignore[union-attr]
    roles = Roles.of(
        names,
        y,
        p,
        X,
        sample_weight,
        groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
        pos_label=pos_label,
        must_read=must_read(X, None),
    )
    if not roles.v:
        raise InputError("X is None", "name the variables", argument="X")
    if rows is None:
        roles.read(_plain(data), classes=classes)  # checks the rows and names those at fault
        whole = roles.read(_plain(data), part=Part(()))
        declared = {one.name: one.levels for one in whole.variables}
        survey = Survey.of(whole, 0).settled(roles, classes, declared, calendar=True)
    else:
        survey = survey_of(rows, roles, classes, rows.count(), calendar=True)
    if not survey.roles.v:
        raise all_left_out(survey.odd, odd=True)
    found = survey.classes
    few = len(found) <= MOST_FINE_CLASSES
    if events is not None and not events:
        raise InputError("events is empty", "name at least one, or omit it", argument="events")
    chosen = events if events is not None else ("both" if few else "correct",)
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    score: BinOptions = {"n_bins": n_bins, "binning": "quantile", "bins": None, "edges": edges}
    wanted: dict[Any, Wanted] = {}
    for event in chosen:
        check_choice("events", event, COLLECTED_EVENTS)
        sided = event in ("both", "classwise")
        question = Question(options, event, pos_label, score=score, sided=sided)
        question.keys(found)
        if rows is not None and edges == "exact":
            survey = question.with_exact_edges(rows, survey)
        plan = plan_of(survey, question, hashed=True)
        for table in plan.wanted:
            if table.sided or table.slot not in wanted:
                wanted[table.slot] = opened(table)
    left_out = plan.left_out if X is ALL else {}
    bets = _bets(list(wanted.values()), monitor) if monitor is not None and not groups else []
    return replace(
        plan,
        wanted=(*wanted.values(), *bets),
        left_out=left_out,
        monitor=monitor,
        weight_cap=weight_cap,
    )


def collect(batch: object, bins: BinPlan) -> Collected:
    """Sum a batch of predictions into bins; the sums of several batches can be added.

    Parameters
    ----------
    batch : frame, dict of columns, path, relation or lazy frame
        Rows with the columns that the bins were made for.
    bins : BinPlan
        The result of `make_bins`.

    Returns
    -------
    Collected
        `a + b` merges batches, and `save` writes them to a file. `audit`, `estimate`, `curve`,
        `vece`, `ece`, `bin_table` and `reliability` accept it instead of predictions.

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(2000)
    >>> rows = {"y": sim.y, "p": sim.p, "age": sim.v}
    >>> days = [{name: column[k::2] for name, column in rows.items()} for k in range(2)]
    >>> bins = vc.make_bins("y", "p", data=days[0])
    >>> total = vc.collect(days[0], bins) + vc.collect(days[1], bins)
    >>> total, vc.audit(total).n_rows
    (Collected: 2,000 rows along 1 variable (age), 2000)
    """
    if not isinstance(bins, BinPlan):
        raise InputError(
            f"bins is a {type(bins).__name__}", "give the result of make_bins()", argument="bins"
        )
    rows = lazy_rows(batch)
    if rows is not None:
        for name in bins.roles.columns:
            if name not in rows.columns:
                raise InputError.no_column(name, rows.columns, "batch")
        return Collected(bins, sum_up(rows, bins), rows.engine, rows.backend).finite()
    table = Table.of(batch, "batch")
    sums = bins.sums_of(bins.roles.read(_plain(batch), part=bins.part))
    return Collected(bins, sums, "numpy", table.backend).finite()


def _plain(data: object) -> Any:
    return dict(data) if isinstance(data, Mapping) else data


def _bets(tables: Sequence[Wanted], limit: float) -> list[Wanted]:
    """Return the tables of bets that go with some tables, claim by claim.

    The bets on "the prediction is correct" follow from those on classes by predicted side.
    """
    along = [table for table in tables if len(table.names) == 1]
    sided = {table.names for table in along if table.sided}
    bets = [
        replace(table, fine=table.coarse, limit=limit)
        for table in along
        if table.sided or table.names not in sided
    ]
    return sorted(bets, key=lambda table: table.key)


def _check_monitor(
    monitor: object, weight_cap: object, sample_weight: object, groups: object
) -> None:
    """Refuse a cap of weights that is missing, or that nothing needs."""
    if weight_cap is None:
        # The size of a unit is compared with that of the largest unit of its batch instead.
        if monitor is not None and sample_weight is not None and groups is None:
            raise InputError(
                "weight_cap is not given, and a monitor of weighted rows needs it",
                "give the largest weight that a row can have: {weight_cap}",
                "weight_cap",
                {"weight_cap": ...},
            )
        return
    if monitor is None or sample_weight is None:
        raise InputError(
            "weight_cap is given without " + ("monitor" if monitor is None else "sample_weight"),
            "it is for a monitor of weighted rows; omit it otherwise",
            argument="weight_cap",
        )
