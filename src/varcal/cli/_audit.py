"""`varcal audit`: what is wrong, how sure we are, what to do; a report, and gates."""

from __future__ import annotations

import os
import sys
import time
from textwrap import fill
from typing import TYPE_CHECKING, Any, TextIO

import click

from varcal._audit.decision import GATES
from varcal._text import count, waiting
from varcal.cli import _options as options
from varcal.cli._gates import GATE_FAILED, LIMITS, SLICE, check_judged, gate_lines, outcomes
from varcal.cli._input_files import Files, naming_columns, roles_of, rows_in_place, settings_of
from varcal.cli._program import WIDTH

if TYPE_CHECKING:
    from varcal._audit.result import Audit


def _limit(gate: str) -> Any:
    text = f"Fail if the {LIMITS[gate]} is surely above SIZE, such as 2% or 0.02."
    return click.option(gate, callback=options.size, metavar="SIZE", help=text)


@click.command(cls=options.EachOnce)
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
    "--limit",
    callback=options.size,
    metavar="SIZE",
    help="The error that matters; by default 2%, or a fifth of the rarer class's rate if that is "
    "smaller.",
)
@click.option(
    "--relative-limit",
    callback=options.size,
    metavar="SHARE",
    help="The same as a share of the rarer class's rate, such as 10%.",
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
@click.option(
    "--strict",
    is_flag=True,
    help="Let the --max- gates fail when the (debiased) value is above SIZE; by default when the "
    "lower end of its interval is.",
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
      cat preds.csv.gz | varcal audit - --label y --prob p --json
    """
    start = time.perf_counter()
    output = given["output"]
    if output:
        options.check_output(output, options.REPORTS)
    rows = rows_in_place(
        Files.of(given, output),
        roles_of(given),
        given["variables"],
        given["exclude"],
        {f"--{option}": given[option] or () for option in ("include", "protected")},
    )
    with rows as (data, labels), naming_columns(given):
        from varcal._audit.audit import audit as run  # noqa: PLC0415  slow, and not needed to refuse
        from varcal._input.predictions import ALL  # noqa: PLC0415

        found = run(
            given["label"],
            list(given["prob"]),
            given["variables"] or ALL,
            limit=given["limit"],
            relative_limit=given["relative_limit"],
            protected=given["protected"] or (),
            ladder=given["ladder"],
            slices=given["slices"] or given["fail_on"] == SLICE,
            **settings_of(given, data, labels),
        )
        took = f"{time.perf_counter() - start:.1f}s"
        limits = {gate: given[gate.removeprefix("--").replace("-", "_")] for gate in LIMITS}
        made = outcomes(
            found, limits, gate=given["gate"], fail_on=given["fail_on"], strict=given["strict"]
        )
        check_judged(found, made, given["variables"] or ())
        if given["ladder"] != "none":
            start = time.perf_counter()
            with waiting("Judging repairs"):
                climbed = found.ladder is not None
            if climbed:
                took += f"; repairs in {time.perf_counter() - start:.1f}s"
    if output:
        found.report(output)
    passed = all(one.passed for one in made)
    if given["as_json"]:
        from varcal._report import json_text  # noqa: PLC0415  only --json needs it

        gates = {"gates": [one.to_dict() for one in made], "passed": passed}
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
