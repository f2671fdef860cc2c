"""An audit as lines of text of at most 80 characters, for terminals and logs."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from varcal._audit.checks import PLAIN_MARKS, Cell, Off
from varcal._audit.first_screen import FirstScreen, Group, first_screen
from varcal._audit.verdicts import FINDINGS
from varcal._text.gaps import CLASS, claim_name, gap_said, gap_side
from varcal._text.numbers import count, level_text, limit_text, percent, points, signed
from varcal._text.sentences import Code

if TYPE_CHECKING:
    from varcal._audit.audit_result import Audit, AuditRow

WIDTH = 80
#: The longest names of groups, variables and places.
GROUP, VARIABLE, PLACE = 34, 18, 36


def audit_lines(audit: Audit, *, repair: bool = True) -> list[str]:
    """Return the first screen, the ranking and what to do next.

    Parameters
    ----------
    audit : Audit
        The results.
    repair : bool
        Whether to say what a repair would achieve, which may have to be computed first.
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
        *_ranking(audit, screen),
        "Next",
        *_steps(screen),
        *(line for note in _notes(audit) for line in wrap(note, WIDTH)),
    ]


def _checks(screen: FirstScreen, level: float) -> list[str]:
    head = [f"points off, {level_text(level)}", *(_title(one.title) for one in screen.columns)]
    table = [head]
    for check in screen.checks:
        name = check.name.lower() + (" (ECE)" if check.name == "By score" else "")
        table.append([name, *(_cell(cell) for cell in check.cells)])
    limit = limit_text(screen.limit)
    legend = f"limit {limit} points: ok below, ~ may be on either side, x surely above"
    return [*_aligned(table), legend]


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
    table = [
        [screen.groups_title.removesuffix(" it is wrong") + about, "says", "happens", "off by", ""]
    ]
    for group in screen.groups:
        variable = str(group.about).rpartition(" · ")[0]
        name = f"{variable}: {group.name}" if variable else str(group.name)
        table.append(
            [
                "  " + _short(name, GROUP),
                percent(group.says),
                percent(group.happens),
                _off(group, named=named),
                count(group.n, "row"),
            ]
        )
    return _aligned(table, right=(1, 2, 4))


def _off(group: Group, *, named: bool) -> str:
    if group.better:
        return f"{points(abs(group.gap)):>4} (better)"
    side = _side(group.gap, group.claim) if named else group.side
    return f"{points(abs(group.gap)):>4} {_short(side, 22)}"


def _bounds(screen: FirstScreen) -> list[str]:
    table = [["Hidden error at most", "points", "weakest place", "rows", "there at most"]]
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
        table = [["Variable", "verdict", "hidden error", "clearest place"]]
        table += [_row(row) for row in found]
        lines += _aligned(table)
    if len(quiet) > len(screen.bounds):
        sizes = ", ".join(f"{_short(row.variable, VARIABLE)} {points(row.high)}" for row in quiet)
        lines += wrap(f"No evidence, hidden error at most: {sizes} points", WIDTH)
    return [*lines, ""] if lines else []


def _row(row: AuditRow) -> list[str]:
    size = f"{points(row.beyond.debiased):>4} ({points(row.low)}, {points(row.high)})"
    place = ""
    if row.place is not None:
        one = row.place
        off = f": {points(abs(one.gap))} {_short(_side(one.gap, one.claim), 20)}"
        place = _short(one.text, PLACE - len(off)) + off
    return [_short(row.variable, VARIABLE), row.verdict, size, place]


def _side(gap: float, claim: str) -> str:
    """Name the side of a gap; that of a class with the class."""
    return str(gap_said(gap, claim)) if claim.startswith(CLASS) else gap_side(gap, claim)


def _steps(screen: FirstScreen) -> list[str]:
    lines = []
    for k, step in enumerate(screen.steps, 1):
        text, code = f"{step.title}. ", []
        many = len(step.text.parts)
        for j, part in enumerate(step.text.parts):
            # A line to run stays whole, on a line of its own, unless it is within a sentence.
            if isinstance(part, Code) and j in (0, many - 1):
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


def _flat(text: str) -> str:
    return " ".join(text.split())


def _short(text: str, most: int) -> str:
    flat = _flat(text) or repr(text)
    return flat if len(flat) <= most else f"{flat[: max(most - 1, 1)]}…"
