"""An audit as lines of text of at most 80 characters, for terminals and logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap

from varcal._audit.ladder import Left
from varcal._audit.record import AuditRow
from varcal._audit.result import Audit
from varcal._audit.sentences import Group, Screen, ShownRung, row_unit, split_code
from varcal._text import (
    FINDINGS,
    PLAIN_MARKS,
    Unit,
    count,
    level_text,
    ratio_text,
    short,
)

WIDTH = 80
#: Variables with evidence that are listed, and names of those without.
MOST_ROWS, MOST_NAMED = 12, 5
#: Where the columns of the table of groups begin.
_NAME = 33
#: Characters of names that steer a terminal or turn its text around.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def audit_lines(audit: Audit, *, commands: bool = False) -> list[str]:
    """Return what an audit says first, the ladder, the ranking and what to do next.

    Parameters
    ----------
    audit : Audit
        The results.
    commands : bool
        Whether lines to run are commands of a shell instead of Python.
    """
    screen = audit.screen(commands=commands)
    lines = [
        *wrap(f"{screen.badge.upper()}  {screen.headline}", WIDTH, subsequent_indent="  "),
        "",
        *wrap(str(screen.lede), WIDTH),
        "",
    ]
    for suspicion in screen.suspicions:
        lines += [*wrap(f"Check the input: {suspicion}", WIDTH), ""]
    lines += [*_groups(screen), ""]
    if screen.steps:
        lines += [*_ladder(screen, audit), ""]
    elif screen.ladder_note:
        lines += [*wrap(str(screen.ladder_note), WIDTH), ""]
    lines += [*_ranking(audit, screen), ""]
    if screen.protected:
        each = f"{level_text(audit.level)} for each"
        head = f"{_heads('Protected', screen.unit):{_NAME + 32}} {each}"
        lines += [head, *(_level(one, screen.unit) for one in screen.protected), ""]
    if screen.combinations:
        lines += [*wrap(str(screen.combinations), WIDTH), ""]
    lines.append("Next")
    for k, (title, sentence) in enumerate(screen.todos, 1):
        text, code = split_code(sentence)
        lines += wrap(f"  {k}  {title}. {text}".rstrip(), WIDTH, subsequent_indent="     ")
        lines += wrap(code, WIDTH, initial_indent="     ", subsequent_indent="       ")
    left_out = "; ".join(f"{short(name)} ({why})" for name, why in audit.left_out)
    notes = [*audit.notes, *([f"Not audited: {left_out}."] if left_out else [])]
    lines += [""] * bool(notes) + [line for note in notes for line in wrap(note, WIDTH)]
    return [_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", line) for line in lines]


def _heads(title: str, unit: Unit) -> str:
    return f"{title:{_NAME - 1}}{unit.says:>8} {unit.happens:>8}  {unit.off}"


def _rates(one: Group, unit: Unit) -> tuple[str, str]:
    """Return what the model says and what happens, and the interval of how far it is off."""
    rates = f"{unit.rate(one.predicted):>7} {unit.rate(one.observed):>8}"
    return rates, unit.gap_ends(one.gap, one.low, one.high)


def _groups(screen: Screen) -> list[str]:
    after = f"after {screen.after}" if screen.after else ""
    after = f"obs/exp{'after' * bool(after):>8}" if screen.rare else after
    title = "For whom it is wrong" if len(screen.groups) > 1 else "Over all rows"
    head = _heads(title, screen.unit)
    lines = [f"{head}{after:>{WIDTH - len(head)}}".rstrip()]
    for one in screen.groups:
        lines += _group(one, screen)
    if len(screen.groups) == 1:
        lines.append(f"  {screen.groups_note}")
    return lines


def _group(one: Group, screen: Screen) -> list[str]:
    unit, (rates, ends) = screen.unit, _rates(one, screen.unit)
    name = short(str(one.name), _NAME - 3)
    line = f"  {name:{_NAME - 2}}{rates}  {unit.gap_size(one.gap, one.words):14}"
    after = "" if one.after is None else unit.gap_size(one.after, one.words)
    if screen.rare:
        after = ratio_text(one.observed, one.predicted) + "x" * bool(one.predicted)
        after += "" if one.after is None else f"{unit.signed(one.after):>8}"
    line += f" {after}".rjust(WIDTH - len(line))
    about = short(str(one.about), _NAME + 12) if one.about else ""
    return [line.rstrip(), f"    {about:{_NAME + 14}}{ends}".rstrip()]


def _level(one: Group, unit: Unit) -> str:
    """Return a level or bin of a protected column, with the interval of this one alone."""
    rows = f", {one.about}"
    name = f"{short(str(one.name), _NAME - 3 - len(rows))}{rows}"
    rates, ends = _rates(one, unit)
    return f"  {name:{_NAME - 2}}{rates}  {unit.gap_size(one.gap, one.words):14} {ends}"


def _figure(one: Left, text: str, width: int) -> str:
    return f"{PLAIN_MARKS[one.state]:2} {text:>{width}}"


def _ladder(screen: Screen, audit: Audit) -> list[str]:
    by = screen.by.removesuffix("iction") + "." * screen.of_mean
    columns = zip(*(_averages(one, screen.unit) for one in screen.steps), strict=True)
    wide = [max(4 + screen.unit.digits, *map(len, column)) for column in columns]
    head = f"{'Repair it needs':18}{'average':{wide[0] + 4}}{by:{wide[1] + 5}}along variables"
    loss = "" if screen.ladder is None else screen.ladder.loss
    lines = [f"{head:58}{'above':>12}{loss:>10}"]
    lines += [line for one in screen.steps for line in _step(one, screen, wide)]
    note = f"{screen.unit.word.capitalize()} off, {level_text(audit.level)}. {screen.limit}"
    marks = "x surely above, ~ may be above, ok below."
    return [*lines, *wrap(f"{note} {marks} {screen.ladder_note}", WIDTH)]


def _averages(one: ShownRung, unit: Unit) -> tuple[str, str]:
    return unit.signed(one.average.value), unit.error(one.rung.by_score.value)


def _step(one: ShownRung, screen: Screen, wide: Sequence[int]) -> list[str]:
    assert screen.ladder is not None
    unit, rung, (along, left) = screen.unit, one.rung, one.rung.worst
    lefts = one.average, rung.by_score, left
    texts = *_averages(one, unit), unit.error(left.value)
    average, by_score, uneven = map(_figure, lefts, texts, (*wide, 4 + unit.digits))
    line = f"{'>' if one.advised else ' '} {rung.name:16}{average} {by_score}  {uneven}"
    line += f" ({_pair(left, unit)})"
    line += f" {one.n_above} of {len(screen.audit)}".rjust(70 - len(line))
    line += f" {screen.ladder.loss_text(rung)}".rjust(80 - len(line))
    of = [f"{short(screen.class_of(x), 9):10}" for x in lefts[:2]]
    under = f"{'':18}{''.join(of)}{short(f'{screen.class_of(left)}, {along}', 33)}"
    return [line, *([under] if screen.several else [])]


def _pair(one: Left | AuditRow, unit: Unit) -> str:
    return f"{unit.error(one.low)}, {unit.error(one.high)}"


def _ranking(audit: Audit, screen: Screen) -> list[str]:
    unit = screen.unit
    found = [row for row in audit.rows if row.verdict in FINDINGS]
    kept = [
        row for row in audit.rows if row in found[:MOST_ROWS] or row.variable in audit.protected
    ]
    others = [row for row in audit.rows if row not in found and row not in kept]
    lines = []
    if kept:
        lines += [
            f"{'Variable':18} {'uneven error':23} clearest place, {unit.signs}",
            *(_row(row, unit, audit) for row in kept),
        ]
        more = sum(row not in kept for row in found)
        if more:
            lines.append(f"{count(more)} more with evidence")
    if others:
        others = sorted(others, key=lambda row: -row.high)
        names = [f"{short(row.variable)} {unit.error(row.high)}" for row in others[:MOST_NAMED]]
        rest = f"; {len(others) - MOST_NAMED} more at most that" if len(others) > MOST_NAMED else ""
        lines += wrap(f"No evidence, uneven error at most: {', '.join(names)}{rest}", WIDTH)
    return lines


def _row(row: AuditRow, unit: Unit, audit: Audit) -> str:
    finer = row_unit(row, unit)
    size = f"{finer.error(row.uneven.debiased):>5} ({_pair(row, finer)})"
    place = row.place
    if place is None:
        where = "no evidence"
    elif not place.is_sure:
        where = "no single group is certain"
    else:
        side = f", predicted {short(place.side, 8)}" if place.side else ""
        gap = unit.signed(unit.difference(place.predicted, place.observed))
        where = f"{gap} {short(place.text, 28 - len(side) * 2 // 3)}{side}"
    if len(audit.targets) > 1 and place is not None:
        where = f"{short(audit.targets[row.target].label or row.target, 10)}: {where}"
    line = f"{short(row.variable, 18):18} {PLAIN_MARKS[row.verdict]:2} {size:20} {where}"
    return line.rstrip() if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
