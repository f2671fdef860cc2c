"""`varcal audit`: rank variables, write a report, check thresholds."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from varcal._audit.verdicts import GATES
from varcal._text.numbers import count
from varcal._text.progress import waiting
from varcal.cli import _options as options
from varcal.cli._gates import (
    ALONG,
    GATE_FAILED,
    OVERALL,
    SLICE,
    check_judged,
    gate_line,
    outcomes,
)
from varcal.cli._input_files import Files, roles_of, rows_in_place, settings_of
from varcal.cli._spelling import naming_columns

if TYPE_CHECKING:
    from varcal._audit.result import Audit

#: The gates that take a limit.
LIMITS = (*OVERALL, *ALONG)


def _limit(option: str, what: str) -> Any:
    text = f"Fail if {what} is above SIZE, such as 2% or 0.02."
    return click.option(option, callback=options.size, metavar="SIZE", help=text)


@click.command(cls=options.EachOnce)
@options.files
@options.label
@options.prob
@options.variables
@options.exclude
@options.several_names(
    "--include", help="Columns to judge although they look like identifiers or constants."
)
@options.weight
@options.event("both", "correct", "positive", "classwise")
@options.claim
@options.classes
@options.drop_unlabelled
@options.from_logits
@click.option(
    "--limit",
    callback=options.size,
    default="2%",
    show_default=True,
    metavar="SIZE",
    help="The size of uneven error that matters.",
)
@options.several_names("--protected", help="Variables that a repair may not read.")
@click.option("--slices", is_flag=True, help="Also search combinations of variables; slower.")
@click.option("--no-repair", is_flag=True, help="Do not try what a repair would achieve.")
@options.format_option
@options.dialect
@click.option("-o", "--output", metavar="REPORT", help="Write a report: .html, .md or .json.")
@options.as_json
@_limit("--max-gap", "the overall gap")
@_limit("--max-ece", "ECE")
@_limit("--max-uneven", "the uneven error along a variable")
@_limit("--max-vece", "the VECE of a variable")
@click.option(
    "--fail-on",
    type=click.Choice([*GATES, SLICE]),
    help="Fail if there is evidence of uneven error along a variable (evidence), if it is surely "
    "above --limit (off), or if a slice is clearly off (slice, which implies --slices).",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Let the --max- gates fail when the (debiased) value is above SIZE; by default when the "
    "lower end of its interval is.",
)
@click.pass_context
def audit(ctx: click.Context, /, **given: Any) -> None:
    """Rank variables by how much calibration changes along them.

    FILE is CSV, TSV, JSON lines (each also .gz), Parquet, Arrow or Feather. Several files, globs
    and - for standard input also work. Large files are read in batches, with little memory.

    Exit codes: 0 success, 1 a gate (--max-..., --fail-on) is not passed, 2 bad input, or a column
    that --variables names cannot be judged by a gate.

    \b
    Examples:
      varcal audit preds.parquet --label y --prob p
      varcal audit preds.csv --label y --prob p --variables age,sex -o page.html
      varcal audit preds.csv --label y --prob p --max-uneven 2% --max-ece 3%
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
            repair=not given["no_repair"],
            protected=given["protected"] or (),
            slices=given["slices"] or given["fail_on"] == SLICE,
            **settings_of(given, data, labels),
        )
        took = f"{time.perf_counter() - start:.1f}s"
    limits = {gate: given[gate.removeprefix("--").replace("-", "_")] for gate in LIMITS}
    made = outcomes(found, limits, given["fail_on"], given["strict"])
    check_judged(found, made, given["variables"] or ())
    if not given["no_repair"] and (output or not given["as_json"]):
        start = time.perf_counter()
        with waiting("Trying a repair"):
            tried = found.repair is not None
        if tried:
            took += f"; repair in {time.perf_counter() - start:.1f}s"
    if output:
        found.report(output)
    passed = all(one.passed for one in made)
    if given["as_json"]:
        import json  # noqa: PLC0415  only --json needs it

        gates = {"gates": [one.to_dict() for one in made], "passed": passed}
        print(json.dumps(_without_curves(found) | gates, allow_nan=False, ensure_ascii=False))
    else:
        from varcal.cli._audit_text import audit_lines  # noqa: PLC0415

        print("\n".join(audit_lines(found)) + "\n")
    # With --json only the document goes to standard output.
    for one in made:
        print(_coloured(gate_line(one)), file=sys.stderr if given["as_json"] else sys.stdout)
    if not given["as_json"]:
        what = f"{count(found.n_rows, 'row')}, {count(len(found), 'variable')}"
        print(f"{what} in {took}" + (f" → {output}" if output else ""))
    ctx.exit(0 if passed else GATE_FAILED)


def _without_curves(found: Audit) -> dict[str, Any]:
    """Return the figures of an audit, without the curves and tables behind them."""
    whole = found.to_dict()
    claims = {
        name: {key: value for key, value in claim.items() if key != "score"}
        | {"ece": claim["score"]["ece"]}
        for name, claim in whole["claims"].items()
    }
    figures = {name: value for name, value in whole.items() if not isinstance(value, dict)}
    return figures | {"claims": claims}


def _coloured(line: str) -> str:
    """Colour the first word of a gate on a terminal."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return line
    word, _, rest = line.partition(" ")
    return click.style(word, fg="green" if word == "PASSED" else "red", bold=True) + f" {rest}"
