"""`audit` and `audit_estimator`: where a model's probabilities are wrong, and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._audit.intersections import intersections_of
from varcal._audit.judge import Judged, Settings, judge
from varcal._audit.ladder import CURVE, VARIABLES, judge_ladder
from varcal._audit.mean_ladder import judge_mean_ladder
from varcal._audit.means import judge_means, mean_limit, mean_notes
from varcal._audit.result import Audit
from varcal._audit.suspicion import suspicions
from varcal._input.dates import read_parts
from varcal._input.frames import BY_POSITION, columns_by_name
from varcal._input.labels import CORRECT, claim_names
from varcal._input.left_out import WholeTable, all_left_out, explicit_names, must_read
from varcal._input.predictions import ALL, Predictions
from varcal._measures.curve import curve_of
from varcal._measures.curve_result import Curve
from varcal._measures.estimate import measure_and_test
from varcal._measures.means import MeanEvidence, gather_means, only_probabilities
from varcal._options import (
    check_flag,
    check_names,
    check_share,
    checked,
    no_means,
    one_of,
    only_means,
    or_none,
)
from varcal._search.slices import slices as search
from varcal._sums.choose_bins import ATOMS, N_BINS, check_cut_names
from varcal._sums.evidence import CollectedEvidence, Evidence, InMemory, gather
from varcal._sums.plan import Collected, Question
from varcal._sums.sources import lazy_rows
from varcal._sums.stream import sample_rows
from varcal._text import FINDINGS, count
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: The rungs of the ladder that are judged: all, those by score, or none.
LADDERS = {"all": VARIABLES, "score": CURVE, "none": None}
#: Rows that are drawn for the ladder where they are not in memory.
SAMPLE_ROWS = 20_000
#: A note names at most this many variables.
MOST_NAMES = 5


def _check_limit(argument: str, value: object) -> float:
    """Refuse what is no limit; those above 1 are for differences of means only."""
    above = isinstance(value, int | float | np.number) and 1 < float(value) < np.inf
    return float(value) if above else check_share(argument, value)  # type: ignore[arg-type]


@checked(
    include=or_none(check_names),
    limit=or_none(_check_limit),
    relative_limit=or_none(check_share),
    ladder=one_of(*LADDERS),
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
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_BINS,
    binning: str = ATOMS,
    bins: object = None,
    edges: str | None = None,
    limit: float | None = None,
    relative_limit: float | None = None,
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    include: str | Sequence[str] | None = None,
    protected: str | Sequence[str] = (),
    ladder: str = "all",
    slices: bool = False,
    random_state: int = 0,
    outcome: str | None = None,
    gap: str | None = None,
    exposure: object = None,
) -> Audit:
    r"""Find where a model's probabilities are wrong, and how much repair it needs.

    With two classes everything is about one probability, P(label = class). Along each variable
    rows are put into *cells*: the bins of the variable within each predicted side, those with a
    probability above one half and the others. With the gap :math:`g_c` (mean probability − rate)
    and the share :math:`\pi_c` of cell c, and :math:`\bar g_s` the gap of its side,

    .. math:: \text{error} = \sum_c \pi_c |g_c|, \qquad
              \text{uneven} = \sum_c \pi_c |g_c - \bar g_{s(c)}|.

    Variables are ranked by their *uneven error*, what is left once the average is taken off: a
    model that is equally wrong everywhere has the same error along every column, even along noise.
    Both are debiased and have intervals; p-values are adjusted for the number of variables.

    ``audit.verdict`` is "repair" if the average, the error by score or any uneven error is surely
    above the limit; otherwise "watch" with evidence of error, "fine" if everything is surely within
    the limit, or "cannot tell". ``audit.ladder`` says what a shift, a curve of the score and a
    model of the variables would leave, and ``audit.advice`` which of them suffices.

    With more than two classes the probability of the predicted class comes first ("top class"),
    then that of each class.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `vece`.
    X : frame, dict of columns, array, or column names, optional
        The variables. By default every column of `data` that has no other role.
    data, classes, sample_weight, from_logits, unlabelled
        As in `vece`.
    pos_label : label, optional
        The class whose probability is judged, and that a vector `p` is the probability of; the
        second one by default.
    n_bins, binning, bins, edges
        As in `vece`, except that by default frequent values get bins of their own
        (``binning="atoms"``).
    level : float
        Level of intervals, bands and tests.
    limit : float, optional
        The error that matters. By default 0.02, or a fifth of the rarer class's rate where that is
        smaller.
    relative_limit : float, optional
        The same as a share of the rarer class's rate.
    groups : array-like or column name, optional
        Units that rows belong to, such as patients or customers. Intervals, bands and tests
        then allow for dependence within a unit.
    include : list of str, optional
        Columns that must not be left out. By default identifiers, row numbers, constants and free
        text are, unless they are named in `X`: they would only make the adjustment for the number
        of variables stricter. Columns that cannot be variables, such as lists, are left out, too,
        and raise an error if they are named.
    protected : str or sequence of str
        Variables that a repair may not read. Reports show all their levels, evidence or not;
        rare ones, which share a bin otherwise, have bins of their own.
    ladder : {"all", "score", "none"}
        The repairs that ``audit.ladder`` judges when it is first asked for: all, only those that
        need the score alone (fast), or none.
    slices : bool
        Whether to search intersections of variables as well: the slices where the model is most
        wrong (`slices`), and how much of the gap can be predicted (`predictable_gap`). They are in
        ``audit.intersections`` and in reports. This takes several times as long as the audit.
    random_state : int
        Seed of the folds of the ladder, of the search for slices, and of the random signs of
        groups.
    outcome, gap, exposure : optional
        As in `bin_table`. With ``outcome="mean"`` the outcome is an amount or a count, and the
        cells are the bins. With the gap :math:`G_b` of bin b, A/E − 1 or predicted − observed,
        :math:`\text{uneven} = \sum_b \pi_b |G_b - \bar G|`. The limit is a share of the predicted
        mean, 0.02 by default; for a difference it must be given, in the unit of the outcome.
        There is no search for slices.

    Returns
    -------
    Audit
        One row per variable; ``audit["age"]`` is the curve of a variable.

    Examples
    --------
    >>> import varcal as vc
    >>> adult = vc.datasets.load_adult()
    >>> found = vc.audit(adult.y, adult.p, {name: adult[name] for name in ("age", "fnlwgt")})
    >>> found.verdict, [(row.variable, row.verdict) for row in found]
    ('repair', [('age', 'above limit'), ('fnlwgt', 'may be above')])

    Counts, whose A/E is 1.5 from v = 0.7 on:

    >>> rng = np.random.default_rng(0)
    >>> v = rng.uniform(size=5000).round(2)
    >>> counts = rng.poisson(2 * (1 + 0.5 * (v >= 0.7)))
    >>> found = vc.audit(counts, np.full(5000, 2.0), {"v": v}, outcome="mean")
    >>> place = found.places[0]
    >>> found.verdict, place.label, round(place.observed / place.predicted, 2)
    ('repair', 'v 0.71 and over', 1.53)
    """
    kept = (protected,) if isinstance(protected, str) else tuple(dict.fromkeys(protected))
    question = Question.of_audit(n_bins, binning, bins, edges, pos_label, whole=kept)
    shared: dict[str, Any] = {"data": data, "sample_weight": sample_weight, "groups": groups}
    shared["unlabelled"] = unlabelled
    how = shared | {"classes": classes, "from_logits": from_logits}
    evidence: Evidence
    if outcome == "mean":
        no: dict[str, Any] = {"classes": classes, "pos_label": pos_label, "slices": slices}
        no |= {"from_logits": from_logits, "relative_limit": relative_limit}
        only_probabilities(outcome, **no)
        of_mean: dict[str, Any] = {
            "gap": gap,
            "exposure": exposure,
            "must_read": must_read(X, include),
        }
        evidence = gather_means(y, p, X, question, **shared, **of_mean)
        mean_limit(evidence, limit)
    else:
        only_means(gap=gap, exposure=exposure)
        limit = None if limit is None else check_share("limit", limit)
        if limit is not None and relative_limit is not None:
            raise InputError(
                "limit and relative_limit are both given", "give one of them", argument="limit"
            )
        evidence = gather(y, p, X, question, **how, must_read=must_read(X, include))
    named = None if X is ALL else X
    known, left_out = _known(evidence, bins, named, include)
    if named is not None and isinstance(y, Collected):
        left_out = {name: why for name, why in left_out.items() if name not in evidence.odd}
    names = [name for name in known if name not in left_out]
    if not names:
        raise all_left_out(left_out)
    keys = tuple(evidence.audit_keys(pos_label))
    # A repair reads no column that was left out, protected or not.
    for name in kept:
        if name not in known:
            raise InputError.no_column(str(name), known, "protected")
    if slices and isinstance(y, Collected):
        raise InputError(
            "slices is True, and y is collected statistics: slices need rows",
            "omit {slices}, or give the rows",
            argument="slices",
            settings={"slices": None},
        )
    settings = Settings(label_of(y, data), keys, level, limit, relative_limit, random_state)
    means = isinstance(evidence, MeanEvidence)
    if isinstance(evidence, MeanEvidence):
        judged = judge_means(evidence, names, settings)
    else:
        judged = judge(evidence, names, settings)
    sampled = any(row.table.edges == "sampled" for row in judged.rows)

    def rows() -> Predictions | None:
        return _rows_of(evidence, data, names)

    climb: partial[Any] = partial(
        judge_ladder, rows=rows, keys=keys, n_all=evidence.n_rows, bins=judged.bins
    )
    if isinstance(evidence, MeanEvidence):
        climb = partial(judge_mean_ladder, evidence=evidence, bins=judged.bins)
    found = Audit(
        label=settings.label,
        targets={one.name: one for one in judged.targets},
        rows=judged.rows,
        places=judged.places,
        notes=_notes(evidence, judged, keys, sampled=sampled),
        suspicions=() if means else suspicions(evidence, keys[0], left_out, judged.rows),
        left_out=tuple(left_out.items()),
        protected=tuple(name for name in kept if name in names),
        level=level,
        n_rows=evidence.n_rows,
        n_dropped=evidence.n_dropped,
        n_bins=evidence.options["n_bins"],
        binning=evidence.options["binning"],
        grouped=evidence.grouped,
        backend=evidence.backend,
        engine=evidence.engine,
        edges="sampled" if sampled else "exact",
        pos_label="" if pos_label is None else repr(pos_label),
        _find_curve=lambda name: _curve(evidence, judged, name, keys, level),
        _climb=partial(climb, top=LADDERS[ladder], random_state=random_state),
    )
    if slices:
        columns = [name for name in names if name not in evidence.parts]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", BY_POSITION)  # it has been said once
            searched = search(
                y,
                p,
                columns if isinstance(named, list | tuple) or named is None else X,
                **how,
                level=level,
                pos_label=pos_label,
                include=include,
                random_state=random_state,
            )
        given = rows()
        assert given is not None
        claims = claim_names(evidence.classes, keys).values()
        more = intersections_of(
            searched,
            given,
            keys,
            gaps={claim: one.gap for claim, one in zip(claims, judged.targets, strict=True)},
            n_all=evidence.n_rows + evidence.n_dropped,
            engine=evidence.engine,
            random_state=random_state,
        )
        found = replace(found, intersections=more)
    if ladder == "none" or isinstance(y, Collected):
        assert found.ladder is None  # the reason is known at once, and kept in files
    return found


def _known(
    evidence: Evidence, bins: object, named: object, include: str | Sequence[str] | None
) -> tuple[list[str], dict[str, str]]:
    """Return the names of all variables, and those that are left out with the reason."""
    if not evidence.along:
        if evidence.odd:
            raise all_left_out(evidence.odd, odd=True)
        raise InputError("X is None", "give the variables to audit", argument="X")
    check_cut_names(bins, evidence.along)
    absent = evidence.absent()
    known = [one.name for one in evidence.along]
    if len(absent) == len(known):
        raise InputError(
            "X has no value at any row of any variable", "give a variable with values", argument="X"
        )
    left_out = evidence.left_out(explicit_names(named, include, known))
    left_out |= dict.fromkeys(sorted(absent), "every value is missing")
    return known, left_out | evidence.odd


def _curve(
    evidence: Evidence, judged: Judged, name: str, keys: Sequence[int], level: float
) -> Curve:
    """Return the curve of a variable, of the target of its row."""
    assert not isinstance(evidence, MeanEvidence)  # refused by the audit
    row = next(row for row in judged.rows if row.variable == name)
    key = keys[[one.name for one in judged.targets].index(row.target)]
    along = evidence.profile(key, name)
    return curve_of(
        along,
        "correct" if key == CORRECT else "positive",
        level=level,
        vece=measure_and_test(along, level=level),
        backend=evidence.backend,
        engine=evidence.engine,
    )


def label_of(y: object, data: object) -> str:
    """Return the name of the outcome: a column, the name of a series, or "y"."""
    if isinstance(y, Collected):
        return str(y.plan.roles.y)
    if isinstance(y, str) and data is not None:
        return y
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else "y"


def _rows_of(evidence: Evidence, data: object, names: Sequence[str]) -> Predictions | None:
    """Return the rows with some variables, or a sample of them; None if there are only sums."""
    if isinstance(evidence, InMemory):
        rows = evidence.predictions
    elif isinstance(evidence, CollectedEvidence) and (lazy := lazy_rows(data)) is not None:
        rows = sample_rows(lazy, evidence.plan.roles, evidence.classes, SAMPLE_ROWS)
        parts = evidence.plan.part.calendar
        rows = replace(rows, variables=read_parts(rows.variables, parts))
    else:
        return None
    return replace(rows, variables=tuple(v for v in rows.variables if v.name in names))


def _notes(
    evidence: Evidence, judged: Judged, keys: Sequence[int], *, sampled: bool
) -> tuple[str, ...]:
    notes = []
    if isinstance(evidence, MeanEvidence):
        notes += mean_notes(evidence)
    if keys == (CORRECT,):
        notes.append("Only the top class is judged: the single classes were not collected.")
    if evidence.n_dropped:
        were = "was" if evidence.n_dropped == 1 else "were"
        notes.append(f"{count(evidence.n_dropped, 'row')} without an outcome {were} left out.")
    if judged.rows[0].weighted and getattr(evidence, "exposure", None) is None:
        are = f"{judged.rows[0].unit.says}, {judged.rows[0].unit.happens}, shares and errors"
        notes.append(f"Rows are weighted: so are {are}, not row counts.")
    some = {
        "Missing values of {} are in a bin of their own.": [
            row.variable for row in judged.rows if row.missing > 0
        ],
        "Along {} the gap also changes within bins: errors are over finer cells.": [
            row.variable for row in judged.rows if row.verdict in FINDINGS and row.uneven.within
        ],
        "Parts of dates are variables of their own: {}.": list(evidence.parts),
    }
    for note, names in some.items():
        if names:
            shown = ", ".join(names[:MOST_NAMES]) + (" …" if len(names) > MOST_NAMES else "")
            notes.append(note.format(shown))
    if sampled:
        notes.append("Bin edges come from a random sample of the rows; all figures use every row.")
    return (*notes, *evidence.date_notes())


def audit_estimator(
    model: Any, X: Any, y: object, *, variables: object = None, **options: Any
) -> Audit:
    """Audit a fitted classifier on rows that it was not trained on.

    Parameters
    ----------
    model : fitted classifier
        A classifier or pipeline with `classes_`, and with `predict_proba` or `decision_function`,
        as in scikit-learn. Margins are not probabilities: where the model has nothing else, they
        are turned into probabilities by a sigmoid (Platt; one per class, as in
        `CalibratedClassifierCV`) that is cross-fitted on these rows, and a note of the audit says
        so. What is audited is then the model with this sigmoid.
    X : frame or array
        The features. Every column is audited; columns of an array are called v0, v1, …, or with
        `variables` x0, x1, …
    y : array-like
        The labels.
    variables : frame, dict of columns or array, optional
        Variables that the model does not see, such as a protected attribute. They are audited
        beside the columns of X and must have other names.
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
    >>> seen = X.drop(columns="mean area")
    >>> model = GaussianNB().fit(seen[:300], y[:300])
    >>> found = vc.audit_estimator(model, seen[300:], y[300:], variables=X[["mean area"]][300:])
    >>> len(found), "mean area" in found
    (30, True)
    """
    if options.get("outcome") == "mean":
        raise no_means("audit_estimator()")
    if not hasattr(model, "classes_"):
        raise InputError(
            f"model has no classes_: {type(model).__name__}",
            "give a fitted classifier",
            argument="model",
        )
    classes = list(model.classes_)
    p, note = _probabilities(model, X, y, options)
    if variables is not None:
        own, others = columns_by_name(X, "X", "x"), columns_by_name(variables, "variables")
        _check_names(own, others)
        chosen = explicit_names(None, options.get("include"), [*own, *others])
        options["include"] = sorted(chosen | explicit_names(variables, None, list(others)))
        X = WholeTable(own | others)
    found = audit(y, p, X, classes=classes, **options)
    return replace(found, notes=(note, *found.notes)) if note else found


def _probabilities(model: Any, X: Any, y: object, options: Mapping[str, Any]) -> tuple[Floats, str]:
    """Return the model's probabilities, and a note where they had to be made from margins."""
    if hasattr(model, "predict_proba"):
        return _asked(model.predict_proba, X), ""
    name = type(model).__name__
    if not hasattr(model, "decision_function"):
        raise InputError(
            f"model has neither predict_proba nor decision_function: {name}",
            "give a fitted classifier that has one of them",
            argument="model",
        )
    from varcal.calibrators.cross_fitting import sigmoid_of_margins  # noqa: PLC0415

    p = sigmoid_of_margins(
        _asked(model.decision_function, X).astype(np.float64),
        y,
        list(model.classes_),
        sample_weight=options.get("sample_weight"),
        groups=options.get("groups"),
    )
    return p, (
        f"{name} has no predict_proba: the audit is of a sigmoid of its decision_function, "
        "cross-fitted on these rows."
    )


def _asked(method: Callable[[Any], Any], X: Any) -> Floats:
    """Return what a method of the model says about rows."""
    try:
        return np.asarray(method(X))
    except (AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"X is refused by the model: {error}",
            "give the features that the model was fitted on",
            argument="X",
        ) from error


def _check_names(own: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Refuse variables that have the name of a feature."""
    both = [name for name in others if name in own]
    if both:
        raise InputError(
            f"variables has columns that X has, too: {', '.join(map(repr, both[:5]))}",
            "rename them, or leave them out of variables: the columns of X are audited already",
            argument="variables",
        )
