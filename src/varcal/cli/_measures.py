"""`varcal measures`: the calibration measures of clinical prediction models."""

from __future__ import annotations

from typing import Any

import click

import varcal as vc
from varcal._text import waiting
from varcal.cli import _options as options
from varcal.cli._program import print_json


@click.command(
    cls=options.EachOnce, short_help="Print calibration slope, intercept, O/E, ICI and more."
)
@options.rows
@options.several_names("--variables", help="Columns whose groups are also measured.")
@click.option("--weight", metavar="COLUMN", help="Column: how many rows each row stands for.")
@options.level
@options.labels
@options.from_logits
@options.how_read
@options.as_json
def measures(**given: Any) -> None:
    """Print intercept, slope, observed/expected, ICI, E50, E90 and Emax.

    These are the measures of R's rms and of papers on clinical prediction models, with intervals,
    for all rows and for the groups of --variables.

    \b
    Examples:
      varcal measures preds.csv --label died --prob p
      varcal measures preds.csv --label died --prob p --variables sex --json
    """
    names = given["variables"] or ()
    table, _ = options.read_rows(options.Files.of(given, None), options.roles_of(given), names)
    with options.naming_columns(given), waiting("Measuring"):
        rows = options.settings_of(given | {"group": None}, table, table[given["label"]])
        kept = {name: one for name, one in rows.items() if one is not None}
        found = vc.measures(p=list(given["prob"]), X=list(names) or None, **kept)
    if given["as_json"]:
        print_json(found.to_dict())
    else:
        print(found)
