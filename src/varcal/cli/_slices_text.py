"""The lines that `varcal slices` prints."""

from __future__ import annotations

import sys
from textwrap import wrap

from varcal._slices.slices_result import Slices
from varcal._surfaces.predictable_result import PredictableGap
from varcal._text.numbers import count, interval, level_text, p_equation, signed
from varcal.cli._program import encodable
from varcal.cli._program import WIDTH


def slices_lines(
    found: Slices, number: PredictableGap | None = None, encoding: str | None = None
) -> list[str]:
    """Return the slices as sentences, and what was searched.

    Parameters
    ----------
    found : Slices
        The slices.
    number : PredictableGap, optional
        How much of the gap can be predicted.
    encoding : str, optional
        The encoding of the output, that of standard output by default.
    """
    head = f"{count(len(found), 'slice').upper()} CLEARLY OFF" if len(found) else "NO SLICE FOUND"
    searched = f"{count(found.n_variables, 'variable')} and {count(found.n, 'row')} searched"
    lines = [f"{head}  {searched} ({p_equation(found.p_value)})", ""]
    for k, one in enumerate(found, 1):
        lines += wrap(one.sentence, WIDTH, initial_indent=f"{k:3}  ", subsequent_indent="     ")
        more = f"gap {signed(one.gap)} ({interval(one.low, one.high)}), "
        lines.append(f"     {more}{p_equation(one.p_adjusted)}")
    if not len(found):
        lines += wrap(found.sentence, WIDTH)
    if number is not None:
        lines += ["", *wrap(number.sentence, WIDTH)]
    note = (
        f"Intervals ({level_text(found.level)}) and p-values allow for the search; no p-value is "
        f"below 1 in {found.draws + 1}."
    )
    lines += ["", *wrap(note, WIDTH)]
    for text in found.notes:
        lines += wrap(f"note: {text}", WIDTH)
    if found.left_out:
        out = "; ".join(f"{name} ({why})" for name, why in found.left_out)
        lines += wrap(f"note: not searched: {out}", WIDTH)
    encoding = encoding or sys.stdout.encoding or "utf-8"
    return [encodable(line, encoding) for line in lines]
