"""`varcal compare`: compare sets of probabilities on the same rows."""

from __future__ import annotations

from typing import Any

import click

from varcal._text import BETTER, FIXED, MADE_WORSE
from varcal.cli import _options as options
from varcal.exceptions import InputError

LEGEND = f"""\
accuracy and AUC: larger is better
{FIXED}: better, and what is left could be chance
{BETTER}, {MADE_WORSE}: surely, and by an amount that matters"""


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
@options.group
@options.level
@options.labels
@options.how_read
@options.report
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
    table, variables = options.read_rows(
        options.Files.of(given, output),
        {**single, "--prob": [name for names in sets.values() for name in names]},
        given["variables"],
        given["exclude"],
    )
    from varcal._audit.compare import compare as run  # noqa: PLC0415  slow, and not needed to refuse
    from varcal._input.predictions import ALL  # noqa: PLC0415

    labels = table.column(given["label"])
    with options.naming_columns(given, list(sets)):
        data = table.drop_columns(given["exclude"] or [])
        X = given["variables"] or (ALL if variables else None)
        found = run(methods=sets, X=X, **options.settings_of(given, data, labels))
    if output:
        found.report(output)
    if given["as_json"]:
        from varcal._report.page import json_text  # noqa: PLC0415  only --json needs it

        print(json_text(found.to_dict()), end="")
        return
    print(f"{found}\n\n{LEGEND}")
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
