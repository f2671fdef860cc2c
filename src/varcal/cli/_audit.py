"""`varcal audit`: rank variables, write a report, check thresholds."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import click

from varcal._audit.verdicts import GATES
from varcal._text.numbers import count, p_equation
from varcal.cli import _options as options
from varcal.cli._input_files import as_labels, one_label, rows_in_place
from varcal.cli._spelling import naming_columns

REPORTS = (".html", ".md", ".json")


@click.command()
@options.files
@options.label
@click.option(
    "--prob",
    required=True,
    multiple=True,
    metavar="COLUMN",
    help="Column of P(second label); with more than two classes, one --prob per class.",
)
@options.variables
@options.exclude
@options.weight
@options.claim
@options.classes
@options.drop_unlabelled
@click.option("--from-logits", is_flag=True, help="The --prob columns contain logits.")
@click.option(
    "--threshold",
    callback=options.fraction,
    default="0.02",
    show_default=True,
    help="The size beyond the overall gap that matters.",
)
@options.format_option
@click.option("-o", "--output", metavar="REPORT", help="Write a report: .html, .md or .json.")
@options.as_json
@click.option(
    "--max-vece",
    callback=options.fraction,
    metavar="SIZE",
    help="Exit with 1 if the (debiased) VECE of a variable is above SIZE, such as 0.05 or 5%.",
)
@click.option(
    "--fail-on",
    type=click.Choice(list(GATES)),
    help="Exit with 1 if the gap changes significantly along a variable (significant), or surely "
    "by more than --threshold (varies).",
)
@click.pass_context
def audit(ctx: click.Context, /, **given: Any) -> None:
    """Rank variables by how much calibration changes along them.

    FILE is CSV, TSV, JSON lines (each also .gz), Parquet, Arrow or Feather. Several files, globs
    and - for standard input also work. Large files are read in batches, with little memory.

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
    with rows as (data, variables, labels), naming_columns(given):
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
        import json  # noqa: PLC0415  only --json needs it

        print(json.dumps(plain, allow_nan=False, ensure_ascii=False))
    else:
        print("\n".join(audit_lines(found)) + "\n")
    # With --json only the document goes to standard output.
    for failure in failures:
        print(f"{_failed()} {failure}", file=sys.stderr if given["as_json"] else sys.stdout)
    took = f"in {time.perf_counter() - start:.1f}s" + (f" → {output}" if output else "")
    many = count(len(found), "variable")
    if given["max_vece"] is None and given["fail_on"] is None:
        outcome = f"{many} ranked"
    else:
        outcome = f"{len({one.split(': ')[0] for one in failures})} of {many} failed"
    if not given["as_json"]:
        print(f"{outcome} {took}")
    ctx.exit(1 if failures else 0)


def failures_of(found: Any, max_vece: float | None, fail_on: str | None) -> list[str]:
    """Return one line for each threshold that is exceeded."""
    failures = []
    for row in found.rows:
        if max_vece is not None and row.vece.debiased > max_vece:
            size = _above(row.vece.debiased, max_vece)
            failures.append(f"{row.variable}: VECE {size} > {max_vece:g} (--max-vece)")
        if fail_on is not None and row.verdict in GATES[fail_on]:
            size = f"beyond {row.beyond.debiased:.3f}, {p_equation(row.p_holm)}"
            failures.append(f"{row.variable}: {row.verdict}, {size} (--fail-on {fail_on})")
    return failures


def _above(value: float, limit: float) -> str:
    """Write a value with enough digits to see that it is above a limit."""
    digits = next((k for k in range(3, 17) if float(f"{value:.{k}f}") > limit), 17)
    return f"{value:.{digits}f}"


def _failed() -> str:
    return click.style("FAILED", fg="red", bold=True) if _coloured() else "FAILED"


def _coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
