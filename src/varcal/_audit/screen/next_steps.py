"""What to do next: at most three steps that follow from the judgement of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from varcal._audit.screen.checks import ABOVE, BELOW, along_variables, average
from varcal._audit.screen.judgement import (
    CANNOT_TELL,
    FINE,
    REPAIR_FIRST,
    WATCH,
    Judgement,
    least_known,
    worst_hidden_error,
)
from varcal._audit.screen.lede import rows_needed
from varcal._text.gaps import RISK
from varcal._text.numbers import count, limit_text, points
from varcal._text.sentences import Code, Named, Sentence, cut, listed

if TYPE_CHECKING:
    from varcal._audit.audit_result import Audit
    from varcal._audit.repair import Repair, RepairFigures


@dataclass(frozen=True)
class Step:
    """One thing to do.

    Attributes
    ----------
    title : str
        In a few words.
    text : Sentence
        In sentences; lines to run are `Code`.
    """

    title: str
    text: Sentence


def next_steps(audit: Audit, found: Judgement, attempt: Repair | None) -> tuple[Step, ...]:
    """Return what to do next."""
    if found.badge == FINE:
        tried = () if attempt is None else (_no_repair(attempt),)
        return (_use(audit), *tried, _thin(audit))
    if found.badge == CANNOT_TELL:
        return (_wait(found), _collect(audit, found), _then(audit))
    first = _with_care(audit) if found.badge == WATCH else _until(audit, found)
    return (first, _repair(audit, found, attempt), _keep(audit, "Prove it, then keep it so"))


def _use(audit: Audit) -> Step:
    names = listed([row.variable for row in audit.rows])
    return Step(
        "Use it, within what was checked",
        Sentence.of(
            "The probabilities may be taken as they are along ",
            names,
            ". Variables that are not in this table were not checked.",
            _combinations(audit),
        ),
    )


def _no_repair(attempt: Repair) -> Step:
    before, after = worst_hidden_error(attempt.before), worst_hidden_error(attempt.full.after)
    losses = [f"{loss:.3f}" for loss in attempt.full.log_loss]
    loss = (
        f"log-loss {losses[0]} both times"
        if losses[0] == losses[1]
        else f"log-loss {losses[0]} before and {losses[1]} after"
    )
    sizes = f"the worst uneven error is {points(before)} points before and {points(after)} after"
    if attempt.full.helps:
        return Step(
            "Repair it only if that is easy",
            Sentence.of(f"A repair was tried, and gains a little: {sizes}; {loss}."),
        )
    return Step(
        "Do not repair it",
        Sentence.of(f"A repair was tried, and gains nothing: {sizes}; {loss}."),
    )


def _thin(audit: Audit) -> Step:
    place, limit = least_known(audit), audit.limit
    if place.largest_gap <= limit:
        return _keep(audit, "Keep it so")
    needed = count(rows_needed(place.n, place.largest_gap, limit), "row")
    return Step(
        "Look again where it is thin",
        Sentence.of(
            "For ",
            Named(cut(place.label)),
            f" about {needed} are needed to know the error to within {limit_text(limit)} points; "
            f"there are {count(place.n)}. For new rows: ",
            _gate(audit),
        ),
    )


def _wait(found: Judgement) -> Step:
    return Step(
        "Do not rely on it yet",
        Sentence.of(
            f"Errors of up to {points(found.bound)} points could be there. That nothing was found "
            "does not show that nothing is wrong."
        ),
    )


def _collect(audit: Audit, found: Judgement) -> Step:
    needed = rows_needed(audit.n_rows, found.bound, audit.limit)
    return Step(
        "Collect more rows",
        Sentence.of(
            f"About {count(needed, 'row')} would show errors of {limit_text(audit.limit)} "
            f"points along every variable; there are {count(audit.n_rows)}. With fewer variables "
            "or a higher limit, fewer rows are enough."
        ),
    )


def _with_care(audit: Audit) -> Step:
    return Step(
        "Use it with care",
        Sentence.of(
            f"Nothing is surely off by more than {limit_text(audit.limit)} points on average "
            "along a variable, but single groups may be. Look at the places below before you rely "
            "on them.",
            _combinations(audit),
        ),
    )


def _until(audit: Audit, found: Judgement) -> Step:
    states = {claim: average(audit, (claim,)).state for claim in audit.claims}
    if states.get(RISK) == ABOVE:
        text = "Do not act on its probabilities: single ones and totals are both wrong."
    elif states.get(RISK) == BELOW:
        text = "Do not act on a single probability. Totals over everybody are right"
        text += "; totals for one of the groups above are not." if found.off else "."
    elif found.off:
        text = "Do not act on a single probability, nor on totals for one of the groups above."
    else:
        text = "Do not act on a single probability."
    return Step("Until it is repaired", Sentence.of(text, _combinations(audit)))


def _combinations(audit: Audit) -> Sentence:
    """Say how to search several variables at once, if that was not done."""
    if audit.intersections is not None or len(audit.rows) < 2:
        return Sentence()
    return Sentence.of(
        " Combinations of variables were not searched; to do so: ",
        Code("vc.audit(…, slices=True)", command="varcal audit … --slices"),
    )


def _positive(audit: Audit) -> str:
    """Write the positive class as an argument, if one was named."""
    return f", pos_label={audit.pos_label}" if audit.pos_label else ""


def _repair(audit: Audit, found: Judgement, attempt: Repair | None) -> Step:
    if not found.rows:
        two = RISK in audit.claims or audit.event in ("correct", "positive")
        calibrator = "BetaCalibrator" if two else "calibrators.TemperatureCalibrator"
        method = "beta" if two else "temperature"
        return Step(
            "Repair it" if found.badge == REPAIR_FIRST else "Repair it, if that is easy",
            Sentence.of(
                Code(
                    f"vc.{calibrator}().fit(p, y{_positive(audit)})",
                    command=f"varcal calibrate … --method {method} -o repair.json",
                ),
                " A curve of the score is enough, as no variable shows uneven error.",
            ),
        )
    if attempt is not None and not attempt.full.helps:
        return _change_the_model(attempt) if found.off else _no_repair(attempt)
    names = [row.variable for row in audit.rows]
    reads = f"It reads all {len(names)} columns" if len(names) > 1 else "It reads the column"
    line = Code(
        f"vc.VariableCalibrator().fit(p, y, X{_positive(audit)})",
        command="varcal calibrate … --variables … -o repair.json",
    )
    text: list[str] = [line, f" {reads} when it scores. "]
    if attempt is None:
        text.append("Check what it achieves on rows that it has not seen.")
    elif attempt.allowed is not None:
        text += _without(attempt, attempt.allowed).parts
    elif len(names) > 1:
        text += [
            "Name those that you may not use: ",
            Code("audit(…, protected=[…])", command="--protected …"),
            ".",
        ]
    title = "Repair it, with columns you may use" if len(names) > 1 else "Repair it"
    return Step(title, Sentence.of(*text))


def _without(attempt: Repair, allowed: RepairFigures) -> Sentence:
    names = listed(list(attempt.protected))
    if not allowed.helps:
        return Sentence.of("Without ", names, " it gains nothing.")
    cell = along_variables(allowed.after, tuple(allowed.after.claims))
    worst = max(allowed.after.rows, key=lambda row: row.uneven.debiased)
    return Sentence.of(
        "Without ",
        names,
        f", {points(cell.value)} points would remain, along ",
        Named(cut(worst.variable)),
        ".",
    )


def _change_the_model(attempt: Repair) -> Step:
    before, after = worst_hidden_error(attempt.before), worst_hidden_error(attempt.full.after)
    return Step(
        "Do not repair it this way",
        Sentence.of(
            "A repair was tried, and gains nothing: the worst uneven error is "
            f"{points(before)} points before and {points(after)} after. Collect more rows, or give "
            "the model itself the variables that are off."
        ),
    )


def _then(audit: Audit) -> Step:
    return Step(
        "Then audit again",
        Sentence.of("With more rows, put the limit into the pipeline: ", _gate(audit)),
    )


def _keep(audit: Audit, title: str) -> Step:
    return Step(
        title,
        Sentence.of(
            "Audit again on rows that neither the model nor the repair has seen, and put the limit "
            "into the pipeline: ",
            _gate(audit),
        ),
    )


def _gate(audit: Audit) -> Code:
    return Code(f"varcal audit new.csv … --max-uneven {100 * audit.limit:g}%")
