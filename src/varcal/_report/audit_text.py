"""An audit as lines of text of at most 80 characters, for terminals and logs."""

from __future__ import annotations

from textwrap import wrap

from varcal._audit.decision import FINDINGS, PLAIN_MARKS
from varcal._audit.record import AuditRow
from varcal._audit.result import Audit
from varcal._audit.screen import Figure, Group, Screen, Step, side_of
from varcal._text.numbers import count, decimals, interval, level_text, percent, points, signed
from varcal._text.sentences import Code, Sentence, short

WIDTH = 80
#: Variables with evidence that are listed, and names of those without.
MOST_ROWS, MOST_NAMED = 12, 5
#: Where the columns of the table of groups begin.
_NAME = 33


def audit_lines(audit: Audit, *, ladder: bool = True, commands: bool = False) -> list[str]:
    """Return what an audit says first, the ladder, the ranking and what to do next.

    Parameters
    ----------
    audit : Audit
        The results.
    ladder : bool
        Whether to judge the ladder if that was not done before.
    commands : bool
        Whether lines to run are commands of a shell instead of Python.
    """
    screen = audit.screen(ladder=ladder)
    lines = [
        *wrap(f"{screen.badge.upper()}  {screen.headline}", WIDTH, subsequent_indent="  "),
        "",
        *wrap(str(screen.lede), WIDTH),
        "",
        *_groups(screen),
        "",
    ]
    for suspicion in screen.suspicions:
        lines += [*wrap(f"Check the input: {suspicion}", WIDTH), ""]
    if screen.steps:
        lines += [*_ladder(screen, audit), ""]
    elif screen.ladder_note:
        lines += [*wrap(str(screen.ladder_note), WIDTH), ""]
    lines += [*_ranking(audit, screen), ""]
    if screen.combinations:
        lines += [*wrap(str(screen.combinations), WIDTH), ""]
    lines.append("Next")
    for k, todo in enumerate(screen.todos, 1):
        text, code = _split(todo.text, commands=commands)
        head = f"{todo.title}." if text else todo.title
        lines += wrap(f"  {k}  {head} {text}", WIDTH, subsequent_indent="     ")
        lines += [f"     {line}" for line in code]
    notes = [*audit.notes, *_left_out(audit)]
    return lines + [""] * bool(notes) + [line for note in notes for line in wrap(note, WIDTH)]


def _left_out(audit: Audit) -> list[str]:
    if not audit.left_out:
        return []
    names = "; ".join(f"{short(name)} ({why})" for name, why in audit.left_out)
    return [f"Not audited: {names}."]


def _split(text: Sentence, *, commands: bool) -> tuple[str, list[str]]:
    """Return a sentence and the line to run at its end."""
    parts = list(text.parts)
    code = []
    if parts and isinstance(last := parts[-1], Code):
        parts.pop()
        code = [last.command if commands else str(last)]
    words = [one.command if commands and isinstance(one, Code) else str(one) for one in parts]
    return "".join(words).strip(), code


def _off(gap: float, digits: int, target: str = "") -> str:
    if not round(100 * gap, digits):
        return points(0.0, digits)
    return f"{points(abs(gap), digits)} {side_of(gap, target)}"


def _groups(screen: Screen) -> list[str]:
    after = f"after {screen.after}" if screen.after else ""
    after = f"obs/exp{'after' * bool(after):>9}" if screen.rare else after
    title = "For whom it is wrong" if len(screen.groups) > 1 else "Over all rows"
    head = f"{title:{_NAME}}{'says':>7} {'happens':>8}  {'off by':13}"
    head += f" {after:>{WIDTH - len(head) - 1}}" if after else ""
    lines = [head.rstrip()]
    for one in screen.groups:
        lines += _group(one, screen)
    if not len(screen.groups) > 1:
        lines.append(f"  {screen.groups_note}")
    return lines


def _group(one: Group, screen: Screen) -> list[str]:
    digits = screen.digits
    name = short(str(one.name), _NAME - 3)
    rates = f"{percent(one.predicted, digits):>7} {percent(one.observed, digits):>8}"
    line = f"  {name:{_NAME - 2}}{rates}  {_off(one.gap, digits):14}"
    after = "" if one.after is None else _off(one.after, digits)
    if screen.rare:
        after = f"{decimals(one.ratio, 1)}x"
        after += "" if one.after is None else f"{signed(one.after, digits):>9}"
    line += f"{after:>{WIDTH - len(line)}}"
    ends = f"{interval(one.low, one.high, digits)}"
    about = short(str(one.about), 48)
    return [line.rstrip(), f"    {about:{_NAME + 14}}{ends}".rstrip()]


def _figure(one: Figure, digits: int) -> str:
    value = signed(one.value, digits) if one.signed else points(one.value, digits)
    return f"{PLAIN_MARKS[one.state]:2} {value:>5}"


def _ladder(screen: Screen, audit: Audit) -> list[str]:
    head = f"{'Repair it needs':18}{'average':10}{'by score':11}{'along variables':21}"
    lines = [f"{head}{'above':>8}{'log-loss':>11}"]
    lines += [_step(one, screen.digits, len(audit)) for one in screen.steps]
    level = level_text(audit.level)
    note = (
        f"Points off, {level}. {screen.limit} x surely above, ~ may be above, ok below. "
        f"{screen.ladder_note}"
    )
    return [*lines, *wrap(note, WIDTH)]


def _step(one: Step, digits: int, many: int) -> str:
    mark = ">" if one.advised else " "
    uneven = f"{_figure(one.uneven, digits)} ({_pair(one.uneven, digits)})"
    line = (
        f"{mark} {one.name:16}{_figure(one.average, digits):10}{_figure(one.by_score, digits):11}"
    )
    return f"{line}{uneven:21}{f'{one.n_above} of {many}':>8}{one.log_loss:>11.4f}"


def _pair(one: Figure | AuditRow, digits: int) -> str:
    return f"{points(one.low, digits)}, {points(one.high, digits)}"


def _ranking(audit: Audit, screen: Screen) -> list[str]:
    digits = screen.digits
    found = [
        row for row in audit.rows if row.verdict in FINDINGS or row.variable in audit.protected
    ]
    others = [row for row in audit.rows if row not in found]
    lines = []
    if found:
        lines += [
            f"{'Variable':18} {'uneven error':24} clearest place, + too high, − too low",
            *(_row(row, digits) for row in found[:MOST_ROWS]),
        ]
        if len(found) > MOST_ROWS:
            lines.append(f"{count(len(found) - MOST_ROWS)} more with evidence")
    if others:
        others = sorted(others, key=lambda row: -row.high)
        names = [f"{short(row.variable)} {points(row.high, digits)}" for row in others[:MOST_NAMED]]
        more = f"; {len(others) - MOST_NAMED} more at most that" if len(others) > MOST_NAMED else ""
        lines += wrap(f"No evidence, uneven error at most: {', '.join(names)}{more}", WIDTH)
    return lines


def _row(row: AuditRow, digits: int) -> str:
    size = f"{points(row.uneven.debiased, digits):>5} ({_pair(row, digits)})"
    place = row.place
    if place is None:
        where = "no evidence"
    elif not place.is_sure:
        where = "no single group is certain"
    else:
        side = f" ({short(place.side, 10)})" if place.side else ""
        where = f"{signed(place.gap, digits)} {short(place.text, 24)}{side}"
    return f"{short(row.variable, 18):18} {PLAIN_MARKS[row.verdict]:2} {size:21} {where}".rstrip()
