"""Repair: what a `VariableCalibrator` learned from some of the audited rows does for the others.

Rows are split once: a repair is learned from one half and judged by the other. Cross-fitting, in
which every row is judged by a calibrator that has not seen it, would use all rows, but audits of
its pooled probabilities see next to no error: the outcomes of a level serve in the predictions of
all other rows of the level, so that its mean prediction follows its mean outcome. In a simulation
with 20 levels and 1,000 rows the uneven error of the repaired model was 4.3 points on average;
cross-fitting gave 0.0, and its 95 % intervals held the truth in 4 of 40 draws. A split gave 4.8
where the truth was 5.0, and its intervals held it in 39 of 40.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import AnyArray, Ints
from varcal._audit.audit_result import Audit
from varcal._inference.paired import mean_interval, row_losses
from varcal._input.predictions import Predictions
from varcal._text.html_tables import Shown
from varcal._text.numbers import count, percent, points, signed
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: A repair is learned from at most this many rows: fitting then takes about two seconds with 14
#: variables. A sample of the rows is learned from where there are more.
REPAIR_ROWS = 5_000
#: It is judged by at most this many others; more would take time and change no conclusion.
JUDGED_ROWS = 10_000
#: The rows that are drawn where they are not in memory, to be split in half.
MOST_ROWS = 2 * JUDGED_ROWS
#: It reads at most this many variables, those with the largest uneven error: a fit with 85 took
#: minutes.
MOST_VARIABLES = 30
#: Below this number of rows nothing is tried: a calibrator leaves scores as they are if it learns
#: from fewer than 20 rows.
LEAST_ROWS = 50
#: The same for groups: a calibrator learns from 5 or more, and a test of the others needs 6.
LEAST_GROUPS = 12


@dataclass(frozen=True, eq=False)
class RepairFigures:
    """What one repair does for rows that it was not learned from.

    Attributes
    ----------
    after : Audit
        The repaired probabilities, audited as those before were.
    log_loss, accuracy : tuple of float
        Before and after.
    log_loss_change : tuple of float
        The change of the log-loss, paired by row, and its interval.
    variables : tuple of str
        The columns that the repair reads.
    least_change : float
        The change of the log-loss that matters: what an error of `limit` everywhere costs.
    helps : bool
        Whether it is worth it: the log-loss surely falls, and by `least_change` or more; or the
        worst uneven error was surely above the threshold and surely falls. Never if it is `worse`.
    worse : bool
        Whether the log-loss surely rises, and by `least_change` or more.
    """

    after: Audit
    log_loss: tuple[float, float]
    log_loss_change: tuple[float, float, float]
    accuracy: tuple[float, float]
    variables: tuple[str, ...]
    least_change: float
    helps: bool
    worse: bool


@dataclass(frozen=True, eq=False, repr=False)
class Repair(Shown):
    """What a repair would achieve, learned from some rows of an audit and judged by others.

    Attributes
    ----------
    n_rows, n_learned : int
        The rows that it is judged by, and those that it was learned from. A calibrator that is
        learned from all rows is as good or a little better.
    before : Audit
        The rows that it is judged by, as they are.
    full : RepairFigures
        A repair that reads all columns.
    allowed : RepairFigures or None
        One that reads all but the protected columns; None without such columns.
    protected : tuple of str
        The columns that a repair may not read.
    sampled : bool
        Whether these are a random sample of the rows of the audit.
    """

    n_rows: int
    n_learned: int
    before: Audit
    full: RepairFigures
    allowed: RepairFigures | None
    protected: tuple[str, ...]
    sampled: bool

    @property
    def helps(self) -> bool:
        """Whether a repair is worth it; one without the protected columns if there are any."""
        return (self.allowed or self.full).helps

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        tried = {"repaired": self.full}
        if self.allowed is not None:
            tried["repaired without protected columns"] = self.allowed
        audits = {"before": self.before, **{name: one.after for name, one in tried.items()}}
        losses = [self.full.log_loss[0], *(one.log_loss[1] for one in tried.values())]
        shares = [self.full.accuracy[0], *(one.accuracy[1] for one in tried.values())]
        columns = {
            "": list(audits),
            "log-loss": [f"{loss:.4f}" for loss in losses],
            "accuracy": [percent(share) for share in shares],
            "average gap, points": [signed(one.gap) for one in audits.values()],
            "largest uneven error": [
                points(max((row.uneven.debiased for row in one.rows), default=np.nan))
                for one in audits.values()
            ],
        }
        rows = f"learned from {count(self.n_learned, 'row')}, judged by {self.n_rows:,} others"
        verdict = "worth it" if self.helps else "no clear gain"
        note = f"{count(len(self.full.variables), 'variable')} read; a sample of the rows"
        return f"Repair, {rows}: {verdict}", columns, note if self.sampled else ""


def check_protected(protected: str | Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Refuse protected columns that are not among the variables.

    >>> check_protected(["sex"], ["age", "sex"])
    ('sex',)
    """
    if isinstance(protected, str):
        protected = (protected,)
    for name in protected:
        if name not in names:
            raise InputError.no_column(str(name), names, "protected")
    return tuple(dict.fromkeys(protected))


@one_blas_thread()
def repair_of(
    rows: Predictions,
    audit_rows: Callable[[Predictions], Audit],
    *,
    protected: Sequence[str] = (),
    n_all: int | None = None,
    random_state: int = 0,
) -> tuple[Repair | None, str]:
    """Learn a repair from half of the rows and judge it by the others.

    Parameters
    ----------
    rows : Predictions
        The rows of the audit, with the variables that it judged.
    audit_rows : callable
        Audits rows with the settings of the audit; must not ask for a repair.
    protected : sequence of str
        Variables that a repair may not read.
    n_all : int, optional
        The number of rows of the audit, if these are a sample of them.
    random_state : int
        Seed of the split.

    Returns
    -------
    Repair or None
        None if it cannot be tried.
    str
        The reason if it is None, else empty.
    """
    protected = check_protected(protected, [variable.name for variable in rows.variables])
    reason = _obstacle(rows)
    if reason:
        return None, reason
    rows = replace(rows, n_dropped=0)
    learned, judged = (rows.take(part) for part in _split(rows, random_state))
    if len(np.unique(_outcomes(learned))) < 2:
        return None, "the rows to learn from have outcomes of a single class"
    try:
        before = audit_rows(judged)
    except InputError as error:  # such as too few groups with weight
        return None, f"half of the rows cannot be audited: {error.message}"
    unread = _unread(learned, audit_rows)
    sets = [_without(part, unread) for part in (learned, judged)]
    full = _figures(sets[0], judged, before, audit_rows, sets[1])
    allowed = None
    if protected:
        sets = [_without(part, (*protected, *unread)) for part in (learned, judged)]
        allowed = _figures(sets[0], judged, before, audit_rows, sets[1])
    n_used = len(learned) + len(judged)
    return (
        Repair(
            n_rows=len(judged),
            n_learned=len(learned),
            before=before,
            full=full,
            allowed=allowed,
            protected=protected,
            sampled=n_used < (n_all or len(rows)),
        ),
        "",
    )


def _obstacle(rows: Predictions) -> str:
    """Return why no repair can be tried, or an empty text."""
    if len(rows) < LEAST_ROWS:
        return f"a repair needs {LEAST_ROWS} rows; there are {len(rows)}"
    if rows.groups is not None:
        n_groups = len(np.unique(rows.groups))
        if n_groups < LEAST_GROUPS:
            return f"a repair needs {LEAST_GROUPS} groups; there are {n_groups}"
    return ""


def _split(rows: Predictions, random_state: int) -> tuple[Ints, Ints]:
    """Return the rows to learn from and those to judge by: halves, of at most so many rows.

    Without groups every class is split in half; with groups no group is in both.

    >>> rows = Predictions.of([0, 1] * 40, [0.5] * 80)
    >>> [np.bincount(rows.y[part]).tolist() for part in _split(rows, 0)]
    [[20, 20], [20, 20]]
    """
    rng = np.random.default_rng(random_state)
    if rows.groups is None:
        mixed = rng.permutation(len(rows))
        order = mixed[np.argsort(np.asarray(rows.y)[mixed], kind="stable")]
        learns = np.zeros(len(rows), dtype=bool)
        learns[order[::2]] = True
    else:
        groups = rng.permutation(np.unique(rows.groups))
        learns = np.isin(rows.groups, groups[: len(groups) // 2])
    parts = []
    for side, most in ((learns, REPAIR_ROWS), (~learns, JUDGED_ROWS)):
        part = np.flatnonzero(side)
        parts.append(np.sort(rng.permutation(part)[:most]))
    return parts[0], parts[1]


def _figures(
    learned: Predictions,
    judged: Predictions,
    before: Audit,
    audit_rows: Callable[[Predictions], Audit],
    read: Predictions,
) -> RepairFigures:
    """Repair the judged rows; `read` are the same rows with the columns that may be read."""
    from varcal.calibrators import VariableCalibrator  # noqa: PLC0415  loads scikit-learn
    from varcal.calibrators._interface.held_out import calibrate_held_out  # noqa: PLC0415

    repaired = calibrate_held_out(VariableCalibrator(), learned, read)
    after = audit_rows(replace(judged, p=repaired))
    y = np.asarray(judged.y, dtype=np.intp)
    old, new = row_losses(judged.p, y), row_losses(repaired, y)
    settings = (judged.weight, judged.groups, before.level)

    def both(name: str) -> tuple[float, float]:
        return mean_interval(old[name], *settings)[0], mean_interval(new[name], *settings)[0]

    change = mean_interval(new["log-loss"] - old["log-loss"], *settings)
    least = _least_change(judged, before.limit)
    worse = change[1] > 0 and change[0] >= least
    return RepairFigures(
        after=after,
        log_loss=both("log-loss"),
        log_loss_change=change,
        accuracy=both("accuracy"),
        variables=tuple(variable.name for variable in learned.variables),
        least_change=least,
        helps=not worse
        and ((change[2] < 0 and -change[0] >= least) or _worst_falls(before, after)),
        worse=worse,
    )


def _unread(learned: Predictions, audit_rows: Callable[[Predictions], Audit]) -> tuple[str, ...]:
    """Return the variables that a repair does not read because there are too many.

    It reads those with the largest uneven error among the rows that it is learned from.
    """
    if len(learned.variables) <= MOST_VARIABLES:
        return ()
    try:
        ranked = [row.variable for row in audit_rows(learned).rows]
    except InputError:  # such as too few groups with weight
        ranked = [variable.name for variable in learned.variables]
    return tuple(ranked[MOST_VARIABLES:])


def _least_change(rows: Predictions, limit: float) -> float:
    """Return what an error of `limit` at every row costs in log-loss.

    A probability that is off by t from a rate r costs about t² / (2 r (1 − r)). The rate is the
    share of a class, of that nearest to one half with more than two.

    >>> rows = Predictions.of([0, 1] * 40, [0.5] * 80)
    >>> f"{_least_change(rows, 0.02):.4f}"
    '0.0008'
    """
    share = np.bincount(rows.y, rows.weight, len(rows.classes))
    share = share / share.sum()
    spread = float((share * (1 - share)).max())
    return limit**2 / (2 * spread) if spread else 0.0


def _worst_falls(before: Audit, after: Audit) -> bool:
    """Return whether the worst uneven error was surely above the threshold and surely falls."""
    worst = max(row.low for row in before.rows)
    return worst >= before.limit and max(row.high for row in after.rows) < worst


def _outcomes(rows: Predictions) -> AnyArray:
    """Return the outcomes of the rows with weight."""
    return rows.y if rows.weight is None else rows.y[rows.weight > 0]


def _without(rows: Predictions, names: tuple[str, ...]) -> Predictions:
    """Return the rows without some variables."""
    kept = tuple(variable for variable in rows.variables if variable.name not in names)
    return replace(rows, variables=kept)
