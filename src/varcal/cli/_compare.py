"""`varcal compare`: compare sets of probabilities on the same rows."""

from __future__ import annotations

from typing import Any

import click

from varcal.cli import _options as options
from varcal.cli._input_files import Files, as_labels, one_label, read_rows
from varcal.cli._spelling import naming_columns
from varcal.exceptions import InputError


@click.command(cls=options.EachOnce)
@options.files
@options.label
@click.option(
    "--prob",
    required=True,
    multiple=True,
    metavar="NAME=COLUMN",
    help="A set of probabilities, with its name; the first is the one to compare with. "
    "NAME=A,B,C for one column per class.",
)
@options.variables
@options.exclude
@options.weight
@options.event("both", "correct", "positive")
@options.claim
@options.classes
@options.drop_unlabelled
@options.format_option
@options.dialect
@click.option("-o", "--output", metavar="REPORT", help="Write a report: .html, .md or .json.")
@options.as_json
def compare(**given: Any) -> None:
    """Compare sets of probabilities on the same rows.

    Every set is compared with the first. Use rows that neither the model nor a calibrator has
    seen.

    \b
    Examples:
      varcal compare test.csv --label y --prob raw=p --prob tree=p_calibrated
      varcal compare test.csv --label y --prob raw=p --prob new=q -o page.html
      varcal compare test.parquet --label y --prob p --prob p_beta --json
    """
    output = given["output"]
    if output:
        options.check_output(output, options.REPORTS)
    sets = _sets(given["prob"])
    single = {f"--{role}": [given[role]] for role in ("label", "weight", "group") if given[role]}
    table, variables = read_rows(
        Files.of(given, output),
        {**single, "--prob": [name for names in sets.values() for name in names]},
        given["variables"],
        given["exclude"],
    )
    from varcal._audit.compare import compare as run  # noqa: PLC0415  slow, and not needed to refuse
    from varcal._input.predictions import ALL  # noqa: PLC0415

    labels = table.column(given["label"])
    with naming_columns(given, list(sets)):
        found = run(
            given["label"],
            sets,
            given["variables"] or (ALL if variables else None),
            data=table.drop_columns(given["exclude"] or []),
            event=given["event"],
            level=given["level"],
            classes=as_labels(given["classes"], labels),
            pos_label=one_label(given["pos_label"], labels),
            sample_weight=given["weight"],
            groups=given["group"],
            unlabelled="drop" if given["drop_unlabelled"] else "raise",
        )
    if output:
        found.report(output)
    if given["as_json"]:
        import json  # noqa: PLC0415  only --json needs it

        print(json.dumps(found.to_dict(), allow_nan=False, ensure_ascii=False))
        return
    from varcal.cli._compare_text import comparison_lines  # noqa: PLC0415

    print("\n".join(comparison_lines(found)))
    if output:
        print(f"\n→ {output}")


def _sets(given: tuple[str, ...]) -> dict[str, list[str]]:
    sets: dict[str, list[str]] = {}
    for text in given:
        name, equals, columns = text.partition("=")
        if name in sets:
            raise InputError(f"--prob names {name!r} twice", "give each set its own name")
        sets[name] = [one.strip() for one in columns.split(",")] if equals else [name]
    return sets
