"""`varcal audit`: rank variables, write a report, guard a threshold."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import click

from varcal.cli import _options as options
from varcal.cli._input_files import as_labels, naming, one_label, rows_in_place

REPORTS = (".html", ".md", ".json")


@click.command()
@options.files
@options.label
@click.option(
    "--prob",
    required=True,
    multiple=True,
    metavar="COLUMN",
    help="Column of P(second label); once a class for more than two.",
)
@options.variables
@options.exclude
@options.weight
@options.claim
@options.classes
@options.drop_unlabelled
@click.option("--from-logits", is_flag=True, help="The --prob columns hold logits.")
@click.option(
    "--threshold",
    callback=options.fraction,
    default="0.02",
    show_default=True,
    help="Size beyond the overall gap that matters.",
)
@options.format_option
@click.option("-o", "--output", metavar="REPORT", help="Report to write: .html, .md or .json.")
@options.as_json
@click.option(
    "--max-vece",
    callback=options.fraction,
    metavar="SIZE",
    help="Exit with 1 if the (debiased) VECE of a variable is above, as 0.05 or 5%.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["significant", "varies"]),
    help="Exit with 1 if the gap significantly changes along a variable, or by more than the "
    "--threshold.",
)
@click.pass_context
def audit(ctx: click.Context, /, **given: Any) -> None:
    """Rank variables by how much calibration changes along them.

    FILE is CSV, TSV, JSON lines (each also .gz), Parquet, Arrow or Feather; several files, globs
    and - for standard input work too. Large files are worked on in batches, in little memory.

    \b
    Examples:
      varcal audit preds.parquet --label y --prob p
      varcal audit preds.csv --label y --prob p --variables age,income -o report.html
      varcal audit preds.csv --label y --prob p --max-vece 5% --fail-on significant
      varcal audit 'parts/*.csv.gz' --label kind --prob p_cat --prob p_dog --prob p_owl
      zcat preds.csv.gz | varcal audit - --format csv --label y --prob p --json
    """
    start = time.perf_counter()
    output = given["output"]
    if output:
        options.check_output(output, REPORTS)
    single = {f"--{role}": [given[role]] for role in ("label", "weight", "group") if given[role]}
    rows = rows_in_place(
        given["files"],
        given["format"],
        {**single, "--prob": given["prob"]},
        given["variables"],
        given["exclude"],
    )
    with rows as (data, variables, labels), naming(given):
        from varcal._audit.audit import audit as run  # noqa: PLC0415  slow, and not needed to refuse

        found = run(
            given["label"],
            list(given["prob"]),
            variables,
            data=data,
            event=given["event"],
            level=given["level"],
            threshold=given["threshold"],
            classes=as_labels(given["classes"], labels),
            pos_label=one_label(given["pos_label"], labels),
            sample_weight=given["weight"],
            groups=given["group"],
            from_logits=given["from_logits"],
            unlabelled="drop" if given["drop_unlabelled"] else "raise",
        )
    from varcal.cli._audit_text import audit_lines  # noqa: PLC0415

    if output:
        found.report(output)
    failures = failures_of(found, given["max_vece"], given["fail_on"])
    if given["as_json"]:
        plain = {
            name: value
            for name, value in found.to_dict().items()
            if not isinstance(value, dict) or name == "other"
        }
        plain |= {"failures": failures, "passed": not failures}
        print(json.dumps(plain, allow_nan=False, ensure_ascii=False))
    else:
        print("\n".join(audit_lines(found)) + "\n")
    # With --json standard output is the document's alone.
    for failure in failures:
        print(f"{_failed()} {failure}", file=sys.stderr if given["as_json"] else sys.stdout)
    took = f"in {time.perf_counter() - start:.1f}s" + (f" → {output}" if output else "")
    many = f"{len(found)} variable{'s' * (len(found) > 1)}"
    if given["max_vece"] is None and given["fail_on"] is None:
        said = f"{many} ranked"
    else:
        said = f"{len({one.split(': ')[0] for one in failures})} of {many} failed"
    if not given["as_json"]:
        print(f"{said} {took}")
    ctx.exit(1 if failures else 0)


def failures_of(found: Any, max_vece: float | None, fail_on: str | None) -> list[str]:
    """Say which thresholds are exceeded, one line each."""
    from varcal.cli._audit_text import p_text  # noqa: PLC0415

    failures = []
    for row in found.rows:
        if max_vece is not None and row.vece.debiased > max_vece:
            size = _above(row.vece.debiased, max_vece)
            failures.append(f"{row.variable}: VECE {size} > {max_vece:g} (--max-vece)")
        varies = ("varies",) if fail_on == "varies" else ("varies", "varies slightly")
        if fail_on is not None and row.verdict in varies:
            size = f"beyond {row.beyond.debiased:.3f}, {p_text(row.p_holm)}"
            failures.append(f"{row.variable}: {row.verdict}, {size} (--fail-on {fail_on})")
    return failures


def _above(value: float, limit: float) -> str:
    """Show a value with as many digits as it takes to see that it is above a limit."""
    digits = next((k for k in range(3, 17) if float(f"{value:.{k}f}") > limit), 17)
    return f"{value:.{digits}f}"


def _failed() -> str:
    return click.style("FAILED", fg="red", bold=True) if _coloured() else "FAILED"


def _coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
