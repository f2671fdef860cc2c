"""Gates of `varcal audit`: limits that a model has to keep, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from varcal._audit.verdicts import GATES, TOO_FEW_ROWS
from varcal._text.numbers import count
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal._audit.result import Audit
    from varcal._audit.audit_row import AuditRow
    from varcal._inference.measured import Measured

#: The exit code if a gate is not passed.
GATE_FAILED = 1
#: What each gate on an overall figure is about.
OVERALL = {"--max-gap": "overall gap", "--max-ece": "ECE"}
#: The value of --fail-on that is about slices.
SLICE = "slice"
#: The gates on variables.
ALONG = ("--max-uneven", "--max-vece")


@dataclass(frozen=True)
class Outcome:
    """One gate and whether the model passed it.

    Attributes
    ----------
    gate : str
        The option.
    limit : float or str
        Its value.
    passed : bool
        Whether nothing is above the limit.
    failed : tuple of str
        The variables or claims above it, the worst first.
    value : float
        How far the worst of all is off: the lower end of its interval, or with --strict its
        debiased value. Not for --fail-on.
    strict : bool
        Whether debiased values are compared instead of lower ends.
    unjudged : tuple of str
        Variables without enough rows to be judged.
    """

    gate: str
    limit: float | str
    passed: bool
    failed: tuple[str, ...]
    value: float | None
    strict: bool
    unjudged: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self) | {"failed": list(self.failed), "unjudged": list(self.unjudged)}


def outcomes(
    found: Audit, limits: Mapping[str, float | None], fail_on: str | None, strict: bool
) -> list[Outcome]:
    """Compare an audit with the limits that are set.

    Parameters
    ----------
    found : Audit
        The audit.
    limits : mapping
        The limit of each gate, or None.
    fail_on : str or None
        One of the keys of `varcal._audit.verdicts.GATES`.
    strict : bool
        Whether a gate fails as soon as the debiased value is above the limit; otherwise the lower
        end of the interval has to be.
    """
    measure = {
        "--max-gap": _gaps,
        "--max-ece": _eces,
        "--max-uneven": _uneven,
        "--max-vece": _veces,
    }
    unjudged = tuple(row.variable for row in found.rows if row.verdict == TOO_FEW_ROWS)
    made = []
    for gate, limit in limits.items():
        if limit is None:
            continue
        values = measure[gate](found, strict)
        order = sorted(values, key=lambda name: -values[name])
        failed = tuple(name for name in order if values[name] > limit)
        value = values[order[0]] if order else None
        open_ = unjudged if gate in ALONG else ()
        made.append(Outcome(gate, limit, not failed, failed, value, strict, open_))
    if fail_on == SLICE:
        assert found.intersections is not None
        rules = tuple(one.rule for one in found.intersections.slices)
        made.append(Outcome("--fail-on", fail_on, not rules, rules, None, strict))
    elif fail_on is not None:
        failed = tuple(row.variable for row in found.rows if row.verdict in GATES[fail_on])
        made.append(Outcome("--fail-on", fail_on, not failed, failed, None, strict, unjudged))
    return made


def _gaps(found: Audit, strict: bool) -> dict[str, float]:
    return {
        name: abs(claim.gap) if strict else max(claim.gap_low, -claim.gap_high, 0.0)
        for name, claim in found.claims.items()
    }


def _eces(found: Audit, strict: bool) -> dict[str, float]:
    return {name: _end(claim.score.ece, strict) for name, claim in found.claims.items()}


def _uneven(found: Audit, strict: bool) -> dict[str, float]:
    return {row.variable: row.uneven.debiased if strict else row.low for row in _judged(found)}


def _veces(found: Audit, strict: bool) -> dict[str, float]:
    """Return the VECE of each variable, of the claim for which it is larger."""
    return {
        row.variable: max(
            _end(one, strict) for one in (row.vece, *(each.vece for each in row.others))
        )
        for row in _judged(found)
    }


def _judged(found: Audit) -> list[AuditRow]:
    return [row for row in found.rows if row.verdict != TOO_FEW_ROWS]


def _end(measured: Measured, strict: bool) -> float:
    return measured.debiased if strict else measured.low


def check_judged(found: Audit, made: Sequence[Outcome], named: Sequence[str]) -> None:
    """Refuse to pass a gate on variables that cannot be judged.

    Parameters
    ----------
    found : Audit
        The audit.
    made : sequence of Outcome
        The gates.
    named : sequence of str
        The variables that the user names, each of which must be judged.
    """
    if not made:
        return
    hint = "a gate does not pass what it has not seen: "
    for name in named:
        reason = _why_not_judged(found, name)
        if reason:
            raise InputError(
                f"--variables names {name!r}, which cannot be judged: {reason}",
                f"{hint}correct the column, or leave it out of --variables",
            )
    along = any(one.gate not in OVERALL for one in made)
    if along and all(row.verdict == TOO_FEW_ROWS for row in found.rows):
        raise InputError("no variable can be judged: there are too few rows", f"{hint}add rows")


def _why_not_judged(found: Audit, name: str) -> str:
    row = next((row for row in found.rows if row.variable == name), None)
    if row is None:
        return dict(found.left_out)[name]
    if sum(n > 0 for n in found.tables[name].columns["n"]) == 1:
        return "all rows have the same value"
    return "there are too few rows" if row.verdict == TOO_FEW_ROWS else ""


# ------------------------------------------------------------------ words


def gate_line(outcome: Outcome) -> str:
    """Say in one line whether a gate is passed.

    >>> print(gate_line(Outcome("--max-uneven", 0.02, False, ("age", "sex"), 0.1453, False)))
    FAILED  2 variables above --max-uneven 2%; worst age, 14.5 or more
    >>> print(gate_line(Outcome("--max-ece", 0.02, False, ("risk",), 0.1, False)))
    FAILED  ECE of risk above --max-ece 2%: 10.0 or more
    >>> print(gate_line(Outcome("--max-ece", 0.02, True, (), 0.0, False)))
    PASSED  ECE not above --max-ece 2%
    >>> print(gate_line(Outcome("--fail-on", "off", True, (), None, False, ("zip",))))
    PASSED  no variable off (--fail-on off); 1 not judged: zip
    """
    write: Callable[[Outcome], str] = _overall_line if outcome.gate in OVERALL else _along_line
    if outcome.limit == SLICE:
        write = _slice_line
    return f"{'PASSED' if outcome.passed else 'FAILED'}  {write(outcome)}"


def _overall_line(outcome: Outcome) -> str:
    limit = f"{outcome.gate} {limit_text(outcome.limit)}"
    what = OVERALL[outcome.gate]
    if outcome.passed:
        return f"{what} not above {limit}"
    return f"{what} of {outcome.failed[0]} above {limit}: {_size(outcome)}"


def _slice_line(outcome: Outcome) -> str:
    if outcome.passed:
        return f"no slice clearly off (--fail-on {SLICE})"
    many = count(len(outcome.failed), "slice")
    return f"{many} clearly off (--fail-on {SLICE}); first {outcome.failed[0]}"


def _along_line(outcome: Outcome) -> str:
    many = count(len(outcome.failed), "variable") if outcome.failed else "no variable"
    if outcome.gate != "--fail-on":
        text = f"{many} above {outcome.gate} {limit_text(outcome.limit)}"
    else:
        named = f"(--fail-on {outcome.limit})"
        text = f"{many} off {named}"
        if outcome.limit != "off":
            text = f"evidence of uneven error along {many} {named}"
    if outcome.passed:
        unseen = outcome.unjudged
        return text + (f"; {len(unseen)} not judged: {', '.join(unseen)}" if unseen else "")
    size = "" if outcome.value is None else f", {_size(outcome)}"
    return f"{text}; worst {outcome.failed[0]}{size}"


def limit_text(limit: float | str) -> str:
    """Write a limit.

    >>> limit_text(0.02), limit_text(0.125)
    ('2%', '12.5%')
    """
    return f"{100 * float(limit):.10g}%"


def _size(outcome: Outcome) -> str:
    """Write a value in points, with enough digits to see that it is above the limit."""
    assert outcome.value is not None
    value, limit = 100 * outcome.value, 100 * float(outcome.limit)
    digits = next((k for k in range(1, 17) if float(f"{value:.{k}f}") > limit), 17)
    return f"{value:.{digits}f}" + ("" if outcome.strict else " or more")
