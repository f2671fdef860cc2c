"""`varcal audit`: what is wrong, how sure we are, what to do; a report, and gates."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, TextIO

import click

from varcal._options import only_means
from varcal._text import GATES, REPAIR, TOO_FEW_ROWS, count, decimals, waiting
from varcal.cli import _options as options
from varcal.cli._program import WIDTH
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal._audit.record import AuditRow
    from varcal._audit.result import Audit


#: The exit code if a gate is not passed.
GATE_FAILED = 1
#: The gates with a limit, and what each looks at.
LIMITS = {
    "--max-average": "average gap",
    "--max-by-score": "error by score",
    "--max-uneven": "uneven error",
}
#: The gate that follows the verdict, and that on slices.
VERDICT, SLICE = "--gate", "slice"


def _limit(gate: str) -> Any:
    text = f"Fail if the {LIMITS[gate]} is surely above SIZE, such as 2% or 0.02."
    return click.option(gate, callback=options.size, metavar="SIZE", help=text)


@click.command(cls=options.EachOnce, short_help="Find where probabilities are wrong, and for whom.")
@options.rows
@options.variables
@options.exclude
@options.several_names(
    "--include", help="Columns to judge although they look like identifiers or constants."
)
@options.weight
@options.group
@options.level
@options.labels
@options.from_logits
@click.option(
    "--mean",
    is_flag=True,
    is_eager=True,
    help="--label is an amount or a count, and --prob its predicted mean.",
)
@click.option(
    "--gap",
    type=click.Choice(["relative", "difference"]),
    is_eager=True,
    help="With --mean: actual over expected (the default), or predicted minus observed.",
)
@click.option(
    "--exposure",
    metavar="COLUMN",
    help="With --mean: column of exposures; label and prediction are per unit of it.",
)
@click.option(
    "--limit",
    callback=options.size,
    metavar="SIZE",
    help="Larger errors need repair; by default 2%, or a fifth of the rarer class's rate if "
    "that is smaller. With --gap difference in the unit of the label.",
)
@click.option(
    "--relative-limit",
    callback=options.size,
    metavar="SHARE",
    help="The limit as a share of the rarer class's rate, such as 10%.",
)
@options.several_names(
    "--protected", help="Variables that a repair may not read; all their levels are shown."
)
@click.option("--slices", is_flag=True, help="Also search combinations of variables; slower.")
@click.option(
    "--ladder",
    type=click.Choice(["all", "score", "none"]),
    default="all",
    show_default=True,
    help="The repairs to judge: all, those by score only (fast), or none.",
)
@options.how_read
@options.report
@options.as_json
@click.option("--gate", is_flag=True, help="Fail if the verdict is repair.")
@_limit("--max-average")
@_limit("--max-by-score")
@_limit("--max-uneven")
@click.option(
    "--fail-on",
    type=click.Choice([*GATES, SLICE]),
    help="Fail if there is evidence of uneven error along a variable (evidence), if it is surely "
    "above the limit (off), or if a slice is clearly off (slice, which implies --slices).",
)
@click.pass_context
def audit(ctx: click.Context, /, **given: Any) -> None:
    """Find where a model's probabilities are wrong, and how much repair it needs.

    FILE is CSV, TSV, JSON lines (each also .gz), Parquet, Arrow or Feather. Several files, globs
    and - for standard input also work. Large files are read in batches, with little memory.

    Exit codes: 0 success, 1 a gate (--gate, --max-..., --fail-on) is not passed, 2 bad input, or a
    column that --variables names cannot be judged by a gate.

    \b
    Examples:
      varcal audit preds.parquet --label y --prob p
      varcal audit preds.csv --label y --prob p --variables age,sex -o page.html
      varcal audit preds.csv --label y --prob p --gate
      varcal audit 'parts/*.csv.gz' --label kind --prob p_cat --prob p_dog
      varcal audit export.csv --sep ';' --decimal , --label y --prob p
      varcal audit claims.csv --mean --label y --prob mu --exposure years
      cat preds.csv.gz | varcal audit - --label y --prob p --json
    """
    start = time.perf_counter()
    output = given["output"]
    if output:
        options.check_output(output, options.REPORTS)
    means = _of_means(given)
    with options.judged_rows(given, output, "include", "protected") as rows:
        from varcal._audit.audit import audit as run  # noqa: PLC0415  slow, and not needed to refuse

        found = run(
            **rows | means,
            limit=given["limit"],
            relative_limit=given["relative_limit"],
            protected=given["protected"] or (),
            ladder=given["ladder"],
            slices=given["slices"] or given["fail_on"] == SLICE,
        )
        took = f"{time.perf_counter() - start:.1f}s"
        made = outcomes(found, given)
        check_judged(found, made, given["variables"] or ())
        if given["ladder"] != "none":
            start = time.perf_counter()
            with waiting("Judging repairs"):
                climbed = found.ladder is not None
            if climbed:
                took += f"; repairs in {time.perf_counter() - start:.1f}s"
    if output:
        from varcal._report.audit_page import write_audit  # noqa: PLC0415

        write_audit(found, output, commands=True)
    passed = all(one.passed for one in made)
    if given["as_json"]:
        from varcal._report.page import json_text  # noqa: PLC0415  only --json needs it

        gates = {"gates": [asdict(one) for one in made], "passed": passed}
        print(json_text(_without_tables(found) | gates), end="")
    else:
        from varcal._report.audit_text import audit_lines  # noqa: PLC0415

        lines = audit_lines(found, commands=True)
        print("\n".join(lines) + "\n")
    # With --json only the document goes to standard output.
    stream = sys.stderr if given["as_json"] else sys.stdout
    for line in gate_lines(found, made):
        print(_shown(line, stream), file=stream)
    if not given["as_json"]:
        what = f"{count(found.n_rows, 'row')}, {count(len(found), 'variable')}"
        print(f"{what} in {took}" + (f" → {output}" if output else ""))
    ctx.exit(0 if passed else GATE_FAILED)


def _of_means(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an audit of predicted means; none without --mean."""
    how = {name: given[name] for name in ("gap", "exposure")}
    if not given["mean"]:
        only_means(**how)
        return {}
    if len(given["prob"]) > 1:
        raise InputError("--prob names several columns", "with --mean name one predicted mean")
    for gate in LIMITS:
        if how["gap"] == "difference" and given[_argument(gate)]:
            raise InputError(
                f"{gate} is a share, and gaps are differences", "use --limit and --gate"
            )
    return how | {"p": given["prob"][0], "outcome": "mean"}


def _without_tables(found: Audit) -> dict[str, Any]:
    """Return the figures of an audit, without the tables behind them."""
    whole = found.to_dict()
    for one in (*whole["targets"].values(), *whole["rows"]):
        one.pop("score", None)
        one.pop("table", None)
    if whole["ladder"] is not None:
        del whole["ladder"]["after"]
    return whole


def _shown(line: str, stream: TextIO) -> str:
    """Break the line of a gate, but not in logs, and colour its first word on a terminal."""
    word = line.partition(" ")[0]
    if stream is sys.stdout or stream.isatty():
        indent = " " * (len(word) + 2)
        line = fill(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    if not stream.isatty() or os.environ.get("NO_COLOR"):
        return line
    colour = {"PASSED": "green", "FAILED": "red"}.get(word, "yellow")
    return click.style(word, fg=colour, bold=True) + line.removeprefix(word)


@dataclass(frozen=True)
class Outcome:
    """One gate and whether the model passed it.

    Attributes
    ----------
    gate : str
        The option.
    limit : float or str
        Its value; the verdict for --gate.
    passed : bool
        Whether nothing is above the limit.
    failed : tuple of str
        The variables, targets or slices above it, the worst first.
    value : float or None
        How far the worst of all is off: the lower end of its interval.
    unjudged : tuple of str
        Variables without enough rows to be judged.
    """

    gate: str
    limit: float | str
    passed: bool
    failed: tuple[str, ...] = ()
    value: float | None = None
    unjudged: tuple[str, ...] = ()


def outcomes(found: Audit, given: Mapping[str, Any]) -> list[Outcome]:
    """Compare an audit with the gates that the options set."""
    unjudged = tuple(row.variable for row in found.rows if row.verdict == TOO_FEW_ROWS)
    made, fail_on = [], given["fail_on"]
    if given["gate"]:
        made.append(Outcome(VERDICT, found.verdict, found.verdict != REPAIR, unjudged=unjudged))
    for name in LIMITS:
        limit = given[_argument(name)]
        if limit is not None:
            values = _values(found, name)
            order = sorted(values, key=lambda one: -values[one])
            failed = tuple(one for one in order if values[one] > limit)
            worst = values[order[0]] if order else None
            left = unjudged if name == "--max-uneven" else ()
            made.append(Outcome(name, limit, not failed, failed, worst, left))
    if fail_on == SLICE:
        assert found.intersections is not None
        rules = tuple(one.rule for one in found.intersections.slices)
        made.append(Outcome("--fail-on", fail_on, not rules, rules))
    elif fail_on is not None:
        failed = tuple(row.variable for row in found.rows if row.verdict in GATES[fail_on])
        made.append(Outcome("--fail-on", fail_on, not failed, failed, None, unjudged))
    return made


def _argument(gate: str) -> str:
    return gate.removeprefix("--").replace("-", "_")


def _values(found: Audit, gate: str) -> dict[str, float]:
    """Return what a gate compares with its limit, by variable or target: lower ends."""
    if gate == "--max-uneven":
        return {row.variable: row.low for row in found.rows if row.verdict != TOO_FEW_ROWS}
    if gate == "--max-by-score":
        return {name: one.by_score.low for name, one in found.targets.items()}
    targets = found.targets.items()
    return {name: max(one.gap_low, -one.gap_high, 0.0) for name, one in targets}


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
    if not all(one.passed for one in made):
        return  # what is surely wrong needs no more rows
    along = any(one.gate not in ("--max-average", "--max-by-score") for one in made)
    if along and all(row.verdict == TOO_FEW_ROWS for row in found.rows):
        raise InputError("no variable can be judged: there are too few rows", f"{hint}add rows")
    if along and found.target.few_events:
        few = f"nothing can be judged by {count(found.target.events, 'event')}"
        if found.target.scale != "points":
            few = "nothing can be judged: a few rows carry most of the variance"
        raise InputError(few, f"{hint}add rows")


def _why_not_judged(found: Audit, name: str) -> str:
    row: AuditRow | None = next((row for row in found.rows if row.variable == name), None)
    if row is None:
        return dict(found.left_out)[name]
    if row.n_bins == 1:
        return "all rows have the same value"
    return "there are too few rows" if row.verdict == TOO_FEW_ROWS else ""


def gate_lines(found: Audit, made: Sequence[Outcome]) -> list[str]:
    """Say of each gate whether it is passed; warn of one that passes what should be repaired."""
    by = found.screen(ladder=False).by
    lines = [gate_line(one).replace(LIMITS["--max-by-score"], f"error {by}") for one in made]
    if made and all(one.passed for one in made) and found.verdict == REPAIR:
        lines.append(
            "WARNING  the verdict is repair, and the gates that were set allow that; --gate "
            "does not"
        )
    return lines


def gate_line(one: Outcome) -> str:
    """Say in one line whether a gate is passed.

    >>> print(gate_line(Outcome("--gate", "repair", False)))
    FAILED  the verdict is repair (--gate)
    >>> print(gate_line(Outcome("--max-uneven", 0.02, False, ("age", "sex"), 0.1453)))
    FAILED  uneven error of 2 variables above 2% (--max-uneven); worst age, 14.5 or more
    >>> print(gate_line(Outcome("--max-by-score", 0.02, True, (), 0.0)))
    PASSED  error by score not above 2% (--max-by-score)
    >>> print(gate_line(Outcome("--fail-on", "off", True, unjudged=("zip",))))
    PASSED  no variable above the limit (--fail-on off); 1 not judged: zip
    """
    word = "PASSED" if one.passed else "FAILED"
    rest = f"; {len(one.unjudged)} not judged: {', '.join(one.unjudged)}" if one.unjudged else ""
    return f"{word}  {_looked_at(one)}{rest if one.passed else ''}"


def _looked_at(one: Outcome) -> str:
    if one.gate == VERDICT:
        return f"the verdict is {one.limit} ({VERDICT})"
    if one.gate == "--fail-on":
        noun = "slice" if one.limit == SLICE else "variable"
        many = count(len(one.failed), noun) if one.failed else f"no {noun}"
        what = {SLICE: "clearly off", "off": "above the limit"}.get(str(one.limit), "with evidence")
        worst = f"; first {one.failed[0]}" if one.failed else ""
        return f"{many} {what} (--fail-on {one.limit}){worst}"
    limit = f"{100 * float(one.limit):.10g}% ({one.gate})"
    what = LIMITS[one.gate]
    if one.passed:
        return f"{what} not above {limit}"
    of = f" of {count(len(one.failed), 'variable')}" if one.gate == "--max-uneven" else ""
    return f"{what}{of} above {limit}; worst {one.failed[0]}, {_size(one)}"


def _size(one: Outcome) -> str:
    """Write a value in points, with enough digits to see that it is above the limit."""
    assert one.value is not None
    value, limit = 100 * one.value, 100 * float(one.limit)
    digits = next((k for k in range(1, 17) if float(f"{value:.{k}f}") > limit), 17)
    return f"{decimals(value, digits)} or more"
