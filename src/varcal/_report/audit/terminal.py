"""An audit as lines of text of at most 80 characters, for terminals and logs."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import TYPE_CHECKING

from varcal._audit.first_screen import FirstScreen, Group, first_screen
from varcal._audit.screen.checks import PLAIN_MARKS, Cell, Off
from varcal._audit.verdicts import FINDINGS
from varcal._text.gaps import CLASS, claim_name, gap_side
from varcal._text.numbers import count, level_text, limit_text, percent, points, signed
from varcal._text.sentences import Code

if TYPE_CHECKING:
    from varcal._audit.audit_result import Audit
    from varcal._audit.audit_row import AuditRow

WIDTH = 80
#: The longest titles of groups and names of variables.
GROUP, VARIABLE = 34, 18
#: The largest number of variables without evidence that are named.
MOST_QUIET = 10


def audit_lines(audit: Audit, *, repair: bool = True, commands: bool = False) -> list[str]:
    """Return the first screen, the ranking and what to do next.

    Parameters
    ----------
    audit : Audit
        The results.
    repair : bool
        Whether to say what a repair would achieve, which may have to be computed first.
    commands : bool
        Whether steps are commands of the shell where there are such, instead of Python.
    """
    screen = first_screen(audit, repair=repair)
    return [
        f"{screen.badge.text.upper()}  {screen.headline}",
        "",
        *wrap(_flat(str(screen.lede)), WIDTH),
        "",
        *_checks(screen, audit.level),
        "",
        *(_groups(screen) if screen.groups else _bounds(screen)),
        *(wrap(str(screen.groups_after), WIDTH) if screen.groups_after else []),
        "",
        *_intersections(audit, screen),
        *_ranking(audit, screen),
        "Next",
        *_steps(screen, commands=commands),
        *(line for note in _notes(audit) for line in wrap(note, WIDTH)),
    ]


def _checks(screen: FirstScreen, level: float) -> list[str]:
    """Return the checks; too wide ones are set tight, or those after a repair come below."""
    head = f"points off, {level_text(level)}"
    names = [
        check.name.lower() + (" (ECE)" if check.name == "By score" else "")
        for check in screen.checks
    ]
    columns = [
        [_title(column.title), *(_cell(check.cells[k]) for check in screen.checks)]
        for k, column in enumerate(screen.columns)
    ]
    lines = _columns([head, *names], columns)
    if max(map(len, lines)) > WIDTH:
        tight = [
            [re.sub(r"(?<=\S) {2,}", " ", cell).replace(", ", ",") for cell in column]
            for column in columns
        ]
        lines = _columns([head, *names], tight)
    if max(map(len, lines)) > WIDTH:
        lines = [*_columns([head, *names], columns[:2]), "", *_columns([head, *names], columns[2:])]
    limit = limit_text(screen.limit)
    return [*lines, f"limit {limit} points: ok below, ~ may be on either side, x surely above"]


def _columns(names: list[str], columns: list[list[str]]) -> list[str]:
    return _aligned([list(row) for row in zip(names, *columns, strict=True)])


def _title(title: str) -> str:
    return title.lower()


def _cell(cell: Cell | Off) -> str:
    if isinstance(cell, Off):
        return f"   {cell.n} of {cell.of}"
    value = signed(cell.value) if cell.signed else points(cell.value)
    mark = PLAIN_MARKS[cell.state]
    return f"{mark:2} {value:>4} ({points(cell.low)}, {points(cell.high)})"


def _groups(screen: FirstScreen) -> list[str]:
    claims = {group.claim for group in screen.groups}
    named = len(claims) > 1
    about = "" if named else f" ({claim_name(screen.groups[0].claim)})"
    title = screen.groups_title.removesuffix(" it is wrong") + about
    table = [[_short(title, GROUP), "says", "happens", "off by", ""]]
    for group in screen.groups:
        variable = str(group.about).rpartition(" · ")[0]
        name = f"{variable}: {group.name}" if variable else str(group.name)
        table.append(
            [
                f"  {_flat(name)}",
                percent(group.predicted),
                percent(group.observed),
                _off(group, named=named),
                count(group.n, "row"),
            ]
        )
    return _aligned(_fitted(table, 0), right=(1, 2, 4))


def _off(group: Group, *, named: bool) -> str:
    if group.better:
        return f"{points(abs(group.gap)):>4} (better)"
    side = _side(group.gap, group.claim) if named else group.side
    return f"{points(abs(group.gap)):>4} {_short(side, 22)}"


def _bounds(screen: FirstScreen) -> list[str]:
    table = [["Uneven error at most", "points", "weakest place", "rows", "there at most"]]
    table += [
        [
            "  " + _short(one.variable, VARIABLE),
            points(one.at_most),
            _short(str(one.place), 22),
            count(one.n),
            points(one.there),
        ]
        for one in screen.bounds
    ]
    return _aligned(table, right=(1, 3, 4))


def _ranking(audit: Audit, screen: FirstScreen) -> list[str]:
    found = [row for row in audit.rows if row.verdict in FINDINGS]
    quiet = [row for row in audit.rows if row.verdict not in FINDINGS]
    lines: list[str] = []
    if found:
        table = [["Variable", "verdict", "uneven error", "clearest place"]]
        table += [_row(row) for row in found]
        lines += _aligned(_fitted(table, 3))
    if len(quiet) > len(screen.bounds):
        quiet.sort(key=lambda row: -row.high)
        shown = [
            f"{_short(row.variable, VARIABLE)} {points(row.high)}" for row in quiet[:MOST_QUIET]
        ]
        more = len(quiet) - len(shown)
        sizes = f"{', '.join(shown)} points" + (f"; {more} more at most that" if more else "")
        lines += wrap(f"No evidence, uneven error at most: {sizes}", WIDTH)
    return [*lines, ""] if lines else []


def _row(row: AuditRow) -> list[str]:
    size = f"{points(row.uneven.debiased):>4} ({points(row.low)}, {points(row.high)})"
    place = ""
    if row.place is not None:
        one = row.place
        side = _short(_side(one.gap, one.claim), 24)
        sure = one.low > 0 or one.high < 0
        off = f"{_flat(one.text)}: {points(abs(one.gap))} {side}"
        place = off if sure else "cancels within groups"
    return [_short(row.variable, VARIABLE), row.verdict, size, place]


def _side(gap: float, claim: str) -> str:
    """Name the side of a gap; that of a class with the class."""
    side = gap_side(gap, claim)
    return f"{claim.removeprefix(CLASS)} {side}" if claim.startswith(CLASS) else side


def _intersections(audit: Audit, screen: FirstScreen) -> list[str]:
    """Return the number and the slices, one sentence each."""
    if audit.intersections is None:
        return []
    lines = wrap(_flat(str(screen.intersections)), WIDTH)
    for one in audit.intersections.ordered:
        lines += wrap(_flat(one.sentence), WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return [*lines, ""]


def _steps(screen: FirstScreen, *, commands: bool) -> list[str]:
    lines = []
    for k, step in enumerate(screen.steps, 1):
        text, code = f"{step.title}. ", []
        many = len(step.text.parts)
        for j, one in enumerate(step.text.parts):
            part = one.command if commands and isinstance(one, Code) else one
            # A line to run stays whole, on a line of its own, unless it is within a sentence.
            if isinstance(one, Code) and j in (0, many - 1):
                code.append(part)
            else:
                text += part.lstrip() if text.endswith(" ") else part
        told = wrap(text, WIDTH - 5)
        lines += [f"  {k}  {told[0]}", *(f"     {line}" for line in [*told[1:], *code])]
    return lines


def _notes(audit: Audit) -> list[str]:
    notes = [f"note: {note}" for note in audit.notes]
    if audit.left_out:
        out = "; ".join(f"{_short(name, VARIABLE)} ({why})" for name, why in audit.left_out)
        notes.append(f"note: not audited: {out}")
    return ["", *notes] if notes else []


def _aligned(rows: list[list[str]], right: tuple[int, ...] = ()) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _fitted(rows: list[list[str]], column: int) -> list[list[str]]:
    """Shorten the texts of one column so that all lines fit; the end of a place is kept."""
    others = [
        max(map(len, cells)) for k, cells in enumerate(zip(*rows, strict=True)) if k != column
    ]
    room = WIDTH - sum(others) - 2 * len(others)
    fitted = []
    for row in rows:
        text, cells = row[column], list(row)
        if len(text) > room:
            _, colon, end = text.rpartition(": ")
            keep = colon + end if column and colon else ""
            cells[column] = _short(text.removesuffix(keep), room - len(keep)) + keep
        fitted.append(cells)
    return fitted


def _flat(text: str) -> str:
    return " ".join(text.split())


def _short(text: str, most: int) -> str:
    indent = text[: len(text) - len(text.lstrip())]
    flat = indent + _flat(text) if text.strip() else repr(text)
    return flat if len(flat) <= most else f"{flat[: max(most - 1, 1)]}…"
