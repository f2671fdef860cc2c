"""`varcal monitor`: watch calibration batch by batch, for cron."""

from __future__ import annotations

from contextlib import ExitStack
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import varcal as vc
from varcal._files.atomic import refuse_input
from varcal.cli import _options as options
from varcal.cli._program import print_json, say
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal._monitor.monitor import Monitor

#: The exit code of an alarm that nobody has acknowledged.
ALARM = 4

_state = click.argument("state", metavar="STATE.json")
_note = click.option("--note", metavar="TEXT", help="A note for the log.")
_LIMIT = "The largest gap that raises no alarm."
_EVENTS = click.Choice(["both", "correct", "positive", "classwise"])
_EVENT = "What to watch: P(predicted class is right), P(--pos-label), or P(each class)."
_ALPHA = "The largest probability of ever raising a false alarm; 0.05 by default."
_ARL = "Instead of --alpha: the smallest mean number of batches until a false alarm."
_REFERENCE = "FILE is a normal period: only changes from its gaps raise an alarm."
_ID = "Name of the batch, such as its date; ids must increase. By default the name of FILE."


@click.group(short_help="Watch calibration batch by batch.")
def monitor() -> None:
    """Watch calibration batch by batch, with false alarms under control.

    \b
    Examples:
      varcal monitor init state.json first-weeks.parquet --label y --prob p
      varcal monitor update state.json 2026-11-16.parquet
      varcal monitor report state.json -o monitor.html
    """


@monitor.command(cls=options.EachOnce)
@_state
@options.rows
@options.variables
@options.exclude
@click.option("--limit", callback=options.size, default="2%", metavar="SIZE", help=_LIMIT)
@click.option("--alpha", type=float, help=_ALPHA)
@click.option("--arl", type=float, metavar="BATCHES", help=_ARL)
@click.option("--event", type=_EVENTS, help=_EVENT)
@click.option("--reference", is_flag=True, help=_REFERENCE)
@options.weight
@click.option("--weight-cap", type=float, metavar="NUMBER", help="The largest weight of a row.")
@options.group
@options.labels
@options.from_logits
@options.how_read
def init(**given: Any) -> None:
    """Start a monitor: choose bins from FILE, and write STATE.json.

    FILE has rows like those of the batches; they are not counted.

    \b
    Examples:
      varcal monitor init state.json may.csv --label y --prob p --exclude id
      varcal monitor init state.json q1.parquet --label y --prob p --reference
      varcal monitor init state.json may.csv --label y --prob p --arl 20000
    """
    state, event = given["state"], given.pop("event")
    options.check_output(state, (".json",))
    with options.judged_rows(given, state) as rows:
        watch = {"monitor": given["limit"], "weight_cap": given["weight_cap"]}
        bins = vc.make_bins(events=None if event is None else [event], **watch, **rows)
        reference = rows["data"] if given["reference"] else None
        found = vc.Monitor(
            bins, alpha=given["alpha"], arl=given["arl"], event=event, reference=reference
        )
    found.save(state)
    for note in found.notes:
        say("note", note)
    names = found._cells.variables
    what = f"{len(found._cells)} cells along {len(names)} variables: {', '.join(names)}"
    print(f"watching {what} → {state}")


@monitor.command(cls=options.EachOnce)
@_state
@options.files
@click.option("--id", metavar="ID", help=_ID)
@options.how_read
@options.report
@options.as_json
@click.pass_context
def update(ctx: click.Context, /, **given: Any) -> None:
    """Add a batch, and say in one line whether there is an alarm.

    FILE has rows, or their sums as `vc.collect(…).save()` writes them (.json); several
    files are one batch. STATE.json is written whole or not at all. Another update of the same file
    waits for this one.

    Exit codes: 0 no alarm, or one that was acknowledged, 2 bad input (the state stays as it was),
    4 an alarm.

    \b
    Examples:
      varcal monitor update state.json 2026-11-16.parquet
      varcal monitor update state.json 'workers/*.json' --id 2026-11-16
      varcal monitor update state.json day.csv --id 2026-11-16 -o monitor.html
    """
    names, id = given["files"], given["id"]
    paths = [Path(path) for name in names for path in (sorted(glob(name)) or [name])]
    _check_report(given["output"], given["state"], *paths)
    if id is None:
        if len(names) > 1 or names[0] == "-" or any(mark in names[0] for mark in "*?["):
            raise InputError("the batch has no name", "give it one: --id 2026-11-16", argument="id")
        id = Path(Path(names[0]).name.removesuffix(".gz")).stem
    from varcal._monitor.monitor_file import monitor_in_turn  # noqa: PLC0415  slow to load

    try:
        with monitor_in_turn(given["state"]) as found, ExitStack() as stack:
            found.update(_batch(found, given, paths, stack), id=id)
            if given["output"]:  # if it fails, the state is not written and the batch not counted
                _write_report(found, given["output"])
    except InputError as error:
        for setting in {"unlabelled", "classes"} & set(error.settings):
            more = f"; {{{setting}}} is an option of varcal monitor init"
            raise error.reworded(more=more) from None
        raise
    _tell(ctx, found, as_json=given["as_json"], prefix=f"{id}: ")


@monitor.command(cls=options.EachOnce)
@_state
@options.report
@options.as_json
@click.pass_context
def report(ctx: click.Context, /, state: str, output: str | None, as_json: bool) -> None:
    """Print the status, and write a report.

    Exit codes are those of update.

    \b
    Examples:
      varcal monitor report state.json
      varcal monitor report state.json -o monitor.html
    """
    _check_report(output, state)
    from varcal._files.saved import load_kind  # noqa: PLC0415  slow to load

    found = load_kind(state, "monitor")
    if output:
        _write_report(found, output)
    _tell(ctx, found, as_json=as_json)


@monitor.command(cls=options.EachOnce)
@_state
@_note
def acknowledge(state: str, note: str | None) -> None:
    """Mark an alarm as known. Updates no longer exit with 4 because of it.

    \b
    Examples:
      varcal monitor acknowledge state.json --note "fixed tomorrow"
    """
    _enter(state, "acknowledge", note)


@monitor.command(cls=options.EachOnce)
@_state
@_note
def reset(state: str, note: str | None) -> None:
    """Discard the evidence and start over. The history is kept.

    \b
    Examples:
      varcal monitor reset state.json --note "labels corrected"
    """
    _enter(state, "reset", note)


def _enter(state: str, what: str, note: str | None) -> None:
    """Acknowledge an alarm or start over, with a note in the log."""
    from varcal._monitor.monitor_file import monitor_in_turn  # noqa: PLC0415  slow to load

    with monitor_in_turn(state) as found:
        getattr(found, what)(note or "")
    print(found.status)


def _check_report(path: str | None, *others: str | Path) -> None:
    """Refuse a report that cannot be written, or that would replace the state or the batch."""
    if path:
        options.check_output(path, options.REPORTS)
        refuse_input(path, "an input file", *others)


def _write_report(found: Monitor, path: str) -> None:
    from varcal._report.monitor import write_monitor  # noqa: PLC0415  slow to load

    write_monitor(found, path, commands=True)


def _batch(found: Monitor, given: dict[str, Any], paths: list[Path], stack: ExitStack) -> Any:
    """Return the sums that files hold, or their rows."""
    # The name of a format says that these are rows.
    rows = [path for path in paths if given["format"] or path.suffix.lower() != ".json"]
    sums = [path for path in paths if path not in rows]
    if sums:
        from varcal._files.saved import load_kind  # noqa: PLC0415  slow to load

        if rows:
            raise InputError(
                f"{str(sums[0])!r} holds sums and {str(rows[0])!r} rows", "give files of one kind"
            )
        return sum(load_kind(path, "collected statistics") for path in sums)
    roles = found.bins.roles
    unit, weight = roles.groups, roles.sample_weight
    columns = {"label": roles.y, "prob": roles.p, "weight": weight, "group": unit}
    stack.enter_context(options.naming_columns(columns))
    files = options.Files.of(given, given["state"])
    return stack.enter_context(
        options.rows_in_place(files, options.roles_of(columns), list(roles.v))
    )[0]


def _tell(ctx: click.Context, found: Monitor, *, as_json: bool, prefix: str = "") -> None:
    """Print the status, and exit with 4 on an alarm that nobody has acknowledged."""
    status = found.status
    if as_json:
        print_json(status.to_dict())
    else:
        print(f"{prefix}{status}")
    ctx.exit(ALARM if status.alarm and not status.acknowledged else 0)
