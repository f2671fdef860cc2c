"""`varcal slices`: the regions of several variables where a model is most wrong."""

from __future__ import annotations

import sys
import time
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

import varcal as vc
from varcal._text import count, interval, level_text, p_equation, signed, waiting
from varcal.cli import _options as options
from varcal.cli._program import WIDTH, print_json

if TYPE_CHECKING:
    from varcal._search.predictable_gap import PredictableGap
    from varcal._search.slices_result import Slices

_DRAWS = "Simulations behind p-values; none is below 1 / (draws + 1)."


@click.command(cls=options.EachOnce, short_help="Search combinations of variables.")
@options.rows
@options.variables
@options.exclude
@options.several_names("--include", help="Columns to search although they look like ids.")
@click.option(
    "--max-depth", type=click.IntRange(1, 3), default=3, help="Most variables of a slice."
)
@click.option(
    "--after",
    type=click.Choice(["average", "none"]),
    default="average",
    help="Subtract the average gap, or nothing (none) first.",
)
@click.option("--draws", type=click.IntRange(19), default=99, help=_DRAWS)
@click.option("--number", is_flag=True, help="Also say how much of the gap can be predicted.")
@options.weight
@options.group
@options.level
@options.labels
@options.from_logits
@options.how_read
@click.option("-o", "--output", metavar="FILE", help="Write the slices: .json or .md.")
@options.as_json
@click.option("--fail-on", type=click.Choice(["slice"]), help="Fail if a slice is clearly off.")
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
      varcal slices preds.csv --label y --prob p --max-depth 2
      varcal slices preds.csv --label y --prob p --fail-on slice -o slices.json
    """
    start = time.perf_counter()
    output, as_json, after = given["output"], given["as_json"], given["after"]
    after = None if after == "none" else after
    if output:
        options.check_output(output, (".json", ".md"))
    number = None
    with options.judged_rows(given, output, "include") as rows, waiting("Searching"):
        depth, draws = given["max_depth"], given["draws"]
        found = vc.slices(max_depth=depth, after=after, draws=draws, **rows)
        if given["number"]:
            number = vc.predictable_gap(**rows)
    if output and output.lower().endswith(".json"):
        found.save(output)
    elif output:
        from varcal._files.atomic import write_whole  # noqa: PLC0415
        from varcal._report.intersections import slices_markdown  # noqa: PLC0415

        write_whole(output, slices_markdown(found, number))
    failed = bool(given["fail_on"] and len(found))
    if as_json:
        more: dict[str, Any] = {} if number is None else {"predictable": number.to_dict()}
        more |= {"passed": not failed} if given["fail_on"] else {}
        print_json(found.to_dict() | more)
    else:
        print("\n".join(_lines(found, number)) + "\n")
    if given["fail_on"]:
        what = count(len(found), "slice") if failed else "no slice"
        line = f"{'FAILED' if failed else 'PASSED'}  {what} clearly off (--fail-on slice)"
        print(line, file=sys.stderr if as_json else sys.stdout)
    if not as_json:
        what = f"{count(found.n, 'row')}, {count(found.n_variables, 'variable')}"
        took = f"{time.perf_counter() - start:.1f}s"
        print(f"{what} in {took}" + (f" → {output}" if output else ""))
    ctx.exit(int(failed))


def _lines(found: Slices, number: PredictableGap | None) -> list[str]:
    """Return the slices as sentences, and what was searched."""
    head = f"{count(len(found), 'slice').upper()} CLEARLY OFF" if len(found) else "NO SLICE FOUND"
    searched = f"{count(found.n_variables, 'variable')} and {count(found.n, 'row')} searched"
    lines = [f"{head}  {searched} ({p_equation(found.p_value)})", ""]
    for k, one in enumerate(found, 1):
        lines += wrap(one.sentence, WIDTH, initial_indent=f"{k:3}  ", subsequent_indent="     ")
        more = f"shrunk gap {signed(one.shrunk)} ({interval(one.low, one.high)}), "
        lines.append(f"     {more}{p_equation(one.p_adjusted)}")
    if not len(found):
        lines += wrap(found.sentence, WIDTH)
    if number is not None:
        lines += ["", *wrap(number.sentence, WIDTH)]
    note = (
        f"Gaps, intervals ({level_text(found.level)}) and p-values allow for the search; no "
        f"p-value is below 1 in {found.draws + 1}."
    )
    notes = [f"note: {text}" for text in found.notes]
    if found.left_out:
        out = "; ".join(f"{name} ({why})" for name, why in found.left_out)
        notes.append(f"note: not searched: {out}")
    return [*lines, "", *(line for text in (note, *notes) for line in wrap(text, WIDTH))]
