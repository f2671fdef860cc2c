"""`varcal slices`: the regions of several variables where a model is most wrong."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from varcal._text.numbers import count
from varcal._text.progress import waiting
from varcal.cli import _options as options
from varcal.cli._gates import GATE_FAILED, SLICE
from varcal.cli._input_files import Files, roles_of, rows_in_place, settings_of
from varcal.cli._spelling import naming_columns

if TYPE_CHECKING:
    from varcal._slices.slices_result import Slices

OUTPUTS = (".json", ".md")


@click.command(cls=options.EachOnce)
@options.files
@options.label
@options.prob
@options.variables
@options.exclude
@options.several_names(
    "--include", help="Columns to search although they look like identifiers or constants."
)
@click.option(
    "--max-depth",
    type=click.IntRange(1, 3),
    default=3,
    show_default=True,
    help="Variables of a slice at most.",
)
@click.option(
    "--after",
    type=click.Choice(["average", "single"]),
    help="Take off what is known: the overall gap, or the gaps along single variables.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=19),
    default=99,
    show_default=True,
    help="Simulated sets of outcomes; no p-value is below 1 / (draws + 1).",
)
@click.option("--number", is_flag=True, help="Also say how much of the gap can be predicted.")
@options.weight
@options.claim
@options.classes
@options.drop_unlabelled
@options.from_logits
@options.format_option
@options.dialect
@click.option("-o", "--output", metavar="FILE", help="Write the slices: .json or .md.")
@options.as_json
@click.option("--fail-on", type=click.Choice([SLICE]), help="Fail if a slice is clearly off.")
@click.pass_context
def slices(ctx: click.Context, /, **given: Any) -> None:
    """Find the slices of several variables where a model is most wrong.

    A slice is a rule such as "age > 60 and sex = f". All ranges of one variable, rectangles of
    two and their extensions to three are searched, and p-values and intervals allow for the
    search. A .json file can be read by varcal.load.

    Exit codes: 0 success, 1 the gate (--fail-on) is not passed, 2 bad input.

    \b
    Examples:
      varcal slices preds.csv --label y --prob p
      varcal slices preds.parquet --label y --prob p --variables age,sex,region
      varcal slices preds.csv --label y --prob p --after single --max-depth 2
      varcal slices preds.csv --label y --prob p --fail-on slice -o slices.json
    """
    start = time.perf_counter()
    output = given["output"]
    if output:
        options.check_output(output, OUTPUTS)
    rows = rows_in_place(
        Files.of(given, output),
        roles_of(given),
        given["variables"],
        given["exclude"],
        {"--include": given["include"] or ()},
    )
    number = None
    with rows as (data, labels), naming_columns(given), waiting("Searching"):
        from varcal._input.predictions import ALL  # noqa: PLC0415
        from varcal._slices.slices import slices as run  # noqa: PLC0415  slow to load

        columns = (given["label"], list(given["prob"]), given["variables"] or ALL)
        settings = settings_of(given, data, labels)
        found = run(
            *columns,
            max_depth=given["max_depth"],
            after=given["after"],
            draws=given["draws"],
            **settings,
        )
        if given["number"]:
            from varcal._surfaces.predictable import predictable_gap  # noqa: PLC0415

            # Beyond something, the scan tests another hypothesis.
            scan = found if given["after"] is None else None
            number = predictable_gap(*columns, slices=scan, **settings)
    if output and output.lower().endswith(".json"):
        found.save(output)
    elif output:
        from varcal._files.atomic import write_whole  # noqa: PLC0415
        from varcal._report.intersections import slices_markdown  # noqa: PLC0415

        write_whole(output, slices_markdown(found, number))
    passed = given["fail_on"] is None or not len(found)
    if given["as_json"]:
        import json  # noqa: PLC0415  only --json needs it

        more: dict[str, Any] = {} if number is None else {"predictable": number.to_dict()}
        if given["fail_on"]:
            more["passed"] = passed
        print(json.dumps(found.to_dict() | more, allow_nan=False, ensure_ascii=False))
    else:
        from varcal.cli._slices_text import slices_lines  # noqa: PLC0415

        print("\n".join(slices_lines(found, number)) + "\n")
    if given["fail_on"]:
        print(_gate(found), file=sys.stderr if given["as_json"] else sys.stdout)
    if not given["as_json"]:
        what = f"{count(found.n, 'row')}, {count(found.n_variables, 'variable')}"
        took = f"{time.perf_counter() - start:.1f}s"
        print(f"{what} in {took}" + (f" → {output}" if output else ""))
    ctx.exit(0 if passed else GATE_FAILED)


def _gate(found: Slices) -> str:
    """Say in one line whether the gate is passed."""
    if not len(found):
        return "PASSED  no slice clearly off (--fail-on slice)"
    return f"FAILED  {count(len(found), 'slice')} clearly off (--fail-on slice)"
