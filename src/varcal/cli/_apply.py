"""`varcal apply`: add calibrated probabilities to files."""

from __future__ import annotations

import time
from itertools import chain
from typing import Any

import click

from varcal._files.source import FORMATS
from varcal.cli import _options as options
from varcal.cli._input_files import Files

_VARIABLES = "Columns of variables, in the order of the fit; by default those of the same names."
_COLUMN = "Name of the new column; with more than two classes, the beginning of their names."


@click.command(cls=options.EachOnce)
@options.calibrator
@options.files
@click.option("-o", "--output", required=True, metavar="OUT", help="The file to write all rows to.")
@options.fitted_prob
@options.several_names("--variables", help=_VARIABLES)
@click.option("--column", default="p_calibrated", help=_COLUMN)
@options.how_read
def apply(**given: Any) -> None:
    """Add calibrated probabilities to files of any size.

    FILE and OUT are CSV, TSV, JSON lines (each also .gz), Parquet, Arrow or Feather. All other
    columns stay as they are, and a text file keeps its separator, decimal mark and encoding. OUT
    is written whole or not at all. It may be FILE, but not CAL.json.

    \b
    Examples:
      varcal apply cal.json new.csv -o calibrated.csv
      varcal apply cal.json 'parts/*.parquet' -o calibrated.parquet
      varcal apply cal.json new.csv --prob score --column score_new -o out.parquet
    """
    start = time.perf_counter()
    extensions = tuple(chain.from_iterable(FORMATS.values()))
    options.check_output(given["output"].removesuffix(".gz"), extensions)  # before anything slow
    with Files.of(given).opened() as sources:
        from varcal.calibrators.apply import apply_to  # noqa: PLC0415  slow, and not needed to refuse

        done = apply_to(
            given["calibrator"],
            sources,
            given["output"],
            p=list(given["prob"]) or None,
            X=given["variables"],
            column=given["column"],
        )
    took, added = time.perf_counter() - start, ", ".join(done.columns)
    print(f"added {added} to {done.n_rows:,} rows in {took:.1f}s → {done.out}")
