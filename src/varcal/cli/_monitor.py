"""`varcal monitor`: watch calibration batch by batch, for cron."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from varcal._files.atomic import refuse_input
from varcal.cli import _options as options
from varcal.cli._input_files import Files, as_labels, one_label, roles_of, rows_in_place
from varcal.cli._program import say
from varcal.cli._spelling import naming_columns
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal._evidence.roles import Roles
    from varcal._monitor.monitor import Monitor

#: The exit code of an alarm that nobody has acknowledged.
ALARM = 4

_state = click.argument("state", metavar="STATE.json")
_note = click.option("--note", default="", metavar="TEXT", help="What to write into the log.")


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
@options.files
@options.label
@options.prob
@options.variables
@options.exclude
@click.option(
    "--limit",
    callback=options.size,
    default="2%",
    show_default=True,
    metavar="SIZE",
    help="The largest gap that is not a fault.",
)
@click.option(
    "--alpha",
    type=float,
    help="The largest probability of ever raising a false alarm; 0.05 by default.",
)
@click.option(
    "--arl",
    type=float,
    metavar="BATCHES",
    help="Instead of --alpha: the smallest mean number of batches until a false alarm.",
)
@click.option(
    "--event",
    type=click.Choice(["both", "correct", "positive", "classwise"]),
    help="The claims to watch; by default all, with more than ten classes the confidence.",
)
@click.option(
    "--reference",
    is_flag=True,
    help="FILE is a period that counts as normal: gaps may be as they are there.",
)
@options.weight
@click.option(
    "--weight-cap", type=float, metavar="NUMBER", help="The largest weight that a row can have."
)
@options.group
@options.classes
@options.pos_label
@options.drop_unlabelled
@options.format_option
@options.dialect
def init(**given: Any) -> None:
    """Start a monitor: choose bins from FILE, and write STATE.json.

    FILE has rows like those of the batches; they are not counted.

    \b
    Examples:
      varcal monitor init state.json may.csv --label y --prob p --exclude id
      varcal monitor init state.json q1.parquet --label y --prob p --reference
      varcal monitor init state.json may.csv --label y --prob p --arl 20000
    """
    rows = rows_in_place(
        Files.of(given, given["state"]),
        roles_of(given),
        given["variables"],
        given["exclude"],
    )
    with rows as (data, labels), naming_columns(given):
        from varcal._evidence.collect import make_bins  # noqa: PLC0415  slow, and not needed to refuse
        from varcal._input.predictions import ALL  # noqa: PLC0415
        from varcal._monitor.monitor import Monitor  # noqa: PLC0415

        bins = make_bins(
            given["label"],
            list(given["prob"]),
            given["variables"] or ALL,
            data=data,
            events=None if given["event"] is None else [given["event"]],
            classes=as_labels(given["classes"], labels),
            pos_label=one_label(given["pos_label"], labels),
            sample_weight=given["weight"],
            groups=given["group"],
            unlabelled="drop" if given["drop_unlabelled"] else "raise",
            monitor=given["limit"],
            weight_cap=given["weight_cap"],
        )
        made = Monitor(
            bins,
            alpha=given["alpha"],
            arl=given["arl"],
            event=given["event"],
            reference=data if given["reference"] else None,
        )
    made.save(given["state"])
    for note in made.notes:
        say("note", note)
    print(
        f"watching {len(made._cells)} cells along {len(made._cells.variables)} variables: "
        f"{', '.join(made._cells.variables)} → {given['state']}"
    )


@monitor.command(cls=options.EachOnce)
@_state
@options.files
@click.option(
    "--id",
    metavar="ID",
    help="Name of the batch, such as its date; ids must increase. By default the name of FILE "
    "without its extension.",
)
@options.format_option
@options.dialect
@click.option("-o", "--output", metavar="REPORT", help="Write a report: .html, .md or .json.")
@options.as_json
@click.pass_context
def update(ctx: click.Context, /, **given: Any) -> None:
    """Add a batch, and say in one line whether there is an alarm.

    FILE has rows, or their sums as `vc.collect(…).save()` writes them (.json, .parquet); several
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
    _check_report(given["output"], given["state"], *given["files"])
    id = _id(given)
    from varcal._monitor.monitor_file import monitor_in_turn  # noqa: PLC0415  slow to load

    with monitor_in_turn(given["state"]) as found, ExitStack() as stack:
        status = found.update(_batch(found, given, stack), id=id)
        if given["output"]:  # before the state is written: if it fails, the batch is not counted
            found.report(given["output"])
    _tell(found, as_json=given["as_json"], prefix=f"{id}: ")
    ctx.exit(ALARM if status.alarm and not status.acknowledged else 0)


@monitor.command(cls=options.EachOnce)
@_state
@click.option("-o", "--output", metavar="REPORT", help="Write a report: .html, .md or .json.")
@options.as_json
@click.pass_context
def report(ctx: click.Context, /, **given: Any) -> None:
    """Say how things are, and write a report.

    Exit codes as those of update.

    \b
    Examples:
      varcal monitor report state.json
      varcal monitor report state.json -o monitor.html
    """
    _check_report(given["output"], given["state"])
    from varcal._saved.load import load_kind  # noqa: PLC0415  slow to load

    found = load_kind(given["state"], "monitor")
    if given["output"]:
        found.report(given["output"])
    _tell(found, as_json=given["as_json"])
    status = found.status
    ctx.exit(ALARM if status.alarm and not status.acknowledged else 0)


@monitor.command(cls=options.EachOnce)
@_state
@_note
def acknowledge(state: str, note: str) -> None:
    """Say that an alarm is known: updates no longer exit with 4 because of it.

    \b
    Examples:
      varcal monitor acknowledge state.json --note "fixed tomorrow"
    """
    from varcal._monitor.monitor_file import monitor_in_turn  # noqa: PLC0415  slow to load

    with monitor_in_turn(state) as found:
        found.acknowledge(note)
    print(found.status)


@monitor.command(cls=options.EachOnce)
@_state
@_note
def reset(state: str, note: str) -> None:
    """Start over without evidence; the history is kept.

    \b
    Examples:
      varcal monitor reset state.json --note "labels corrected"
    """
    from varcal._monitor.monitor_file import monitor_in_turn  # noqa: PLC0415  slow to load

    with monitor_in_turn(state) as found:
        found.reset(note)
    print(found.status)


def _id(given: dict[str, Any]) -> str:
    """Return the id of a batch: the one that is given, or the name of its only file."""
    if given["id"] is not None:
        return str(given["id"])
    names = given["files"]
    if len(names) > 1 or names[0] == "-" or any(mark in names[0] for mark in "*?["):
        raise InputError("the batch has no name", "give it one: --id 2026-11-16", argument="id")
    return Path(Path(names[0]).name.removesuffix(".gz")).stem


def _check_report(path: str | None, *others: str) -> None:
    """Refuse a report that cannot be written, or that would replace the state or the batch."""
    if not path:
        return
    options.check_output(path, options.REPORTS)
    refuse_input(path, "an input file", *_paths(others))


def _batch(found: Monitor, given: dict[str, Any], stack: ExitStack) -> Any:
    """Return the sums that files hold, or their rows."""
    # The name of a format says that these are rows.
    paths = _paths_of_sums(given["files"]) if given["format"] is None else []
    if paths:
        from varcal._saved.load import load_kind  # noqa: PLC0415  slow to load

        return sum(load_kind(path, "collected statistics") for path in paths)
    roles = found.bins.roles
    columns = {"--label": [roles.y], "--prob": roles.p}
    columns |= {"--weight": [roles.sample_weight]} if roles.sample_weight else {}
    columns |= {"--group": [roles.groups]} if roles.groups else {}
    stack.enter_context(_pointing_to_init())
    stack.enter_context(naming_columns(_named(roles)))
    data, _ = stack.enter_context(
        rows_in_place(Files.of(given, given["state"]), columns, list(roles.v))
    )
    return data


@contextmanager
def _pointing_to_init() -> Iterator[None]:
    """Say which options of a hint are those of `init`, as `update` does not have them."""
    try:
        yield
    except InputError as error:
        for option in ("--drop-unlabelled", "--classes"):
            if option in error.hint:
                hint = f"{error.hint}; {option} is an option of varcal monitor init"
                raise InputError(error.message, hint) from None
        raise


def _named(roles: Roles) -> dict[str, Any]:
    """Return the columns as the options of `init` named them."""
    return {
        "label": roles.y,
        "prob": roles.p,
        "weight": roles.sample_weight,
        "group": roles.groups,
    }


def _paths_of_sums(names: tuple[str, ...]) -> list[Path]:
    """Return the files if they hold collected statistics; refuse a mixture with rows."""
    paths = _paths(names)
    sums = [path for path in paths if _holds_sums(path)]
    if sums and len(sums) < len(paths):
        rows = next(path for path in paths if path not in sums)
        raise InputError(
            f"{str(sums[0])!r} holds sums and {str(rows)!r} rows", "give files of one kind"
        )
    return sums


def _paths(names: tuple[str, ...]) -> list[Path]:
    """Return the files that names and patterns stand for."""
    from glob import glob  # noqa: PLC0415

    return [Path(path) for name in names for path in (sorted(glob(name)) or [name])]


def _holds_sums(path: Path) -> bool:
    if path.suffix.lower() == ".json":
        return True
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    from pyarrow import ArrowException, parquet  # noqa: PLC0415

    try:
        return b"varcal" in (parquet.read_schema(path).metadata or {})
    except ArrowException:
        return False  # reading it as rows will say what is wrong


def _tell(found: Monitor, *, as_json: bool, prefix: str = "") -> None:
    if as_json:
        import json  # noqa: PLC0415  only --json needs it

        print(json.dumps(found.status.to_dict(), allow_nan=False, ensure_ascii=False))
    else:
        print(f"{prefix}{found.status}")
