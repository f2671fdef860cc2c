"""Saved monitors: the whole state in one file, which no two processes overwrite for each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._evidence.collected import Collected
from varcal._evidence.collected_checks import check_plan
from varcal._evidence.collected_file import check_size, plan_from_dict, plan_to_dict
from varcal._evidence.plan import BinPlan
from varcal._files.atomic import cannot_write, target_of
from varcal._input.groups import N_BUCKETS
from varcal._monitor.cells import Cells
from varcal._monitor.confidence import Running
from varcal._monitor.detector import BETS, SUMS, UNITS, Detector
from varcal._monitor.history import BLOCK_SUMS, MOST_BLOCKS, Block, History
from varcal._monitor.monitor import MOST_EVIDENCE, Event, Monitor
from varcal._monitor.status import Where
from varcal._saved.array_texts import array_of, entry_of
from varcal._saved.conform import conform
from varcal._saved.document import BrokenError, Kind, file_bytes
from varcal._saved.load import load_kind
from varcal.exceptions import InputError

#: The attributes that are plain values, with their types.
_PLAIN: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("key", "method", "last_id", "raised"), (str,)),
    **dict.fromkeys(("revision", "epoch", "n_batches", "n_rows", "n_dropped"), (int,)),
    **dict.fromkeys(("has_reference", "acknowledged"), (bool,)),
    "limit": (float,),
    **dict.fromkeys(("alpha", "arl"), (float, NoneType)),
    "event": (str, NoneType),
}
#: Those of them that users do not see.
_PRIVATE = ("key", "last_id", "revision", "epoch")
_DETECTOR = ("spent", "flow", "run", "start", "window")
_RUNNING = ("n", "weight", "hit", "score", "spread", "first", "top")
#: Seconds to wait for another process. An update takes seconds, or minutes if it reads a large
#: file, so a process that holds the lock for ten minutes hangs.
MAX_WAIT = 600.0


def save(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Write a monitor, unless another process has saved the file since this one read it."""
    _check_extension(path)
    with _locked(path):
        write_in_turn(monitor, path)


def write_in_turn(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Write a monitor while the file is locked."""
    if Path(path).exists():
        _check_ours(monitor, path)
    MONITOR.write(path, to_dict(monitor))
    monitor._saved_revision = monitor._revision


@contextmanager
def monitor_in_turn(path: str | PathLike[str]) -> Iterator[Monitor]:
    """Read a monitor, and write it at the end of the block; other processes wait meanwhile.

    If the block raises an error the file stays as it was.
    """
    if not os.path.isfile(path):
        file_bytes(path)  # says why it cannot be read, before a lock is made for it
    with _locked(path):
        monitor = load_kind(path, "monitor")
        yield monitor
        if monitor._revision != monitor._saved_revision:
            write_in_turn(monitor, path)


@contextmanager
def _locked(path: str | PathLike[str]) -> Iterator[None]:
    """Wait until no other process is in such a block for the same file."""
    from filelock import FileLock, Timeout  # noqa: PLC0415  only saved monitors need it

    try:
        target, _ = target_of(path)
        lock = FileLock(target.with_name(f".{target.name}.lock"), timeout=MAX_WAIT)
        lock.acquire()
    except Timeout:
        problem = f"another process has been writing it for {MAX_WAIT:g} seconds"
        hint = "try again when it has ended, or end it"
        raise cannot_write(path, problem, hint) from None
    except OSError as error:
        hint = "choose a folder that exists and is writable"
        raise cannot_write(path, error.strerror or str(error), hint) from None
    try:
        yield
    finally:
        lock.release()


def _attribute(name: str) -> str:
    return f"_{name}" if name in _PRIVATE else name


def to_dict(monitor: Monitor) -> dict[str, Any]:
    """Return the state in the types of JSON."""
    detector, running, blocks = monitor._detector, monitor._running, monitor._history.blocks
    shape = (0, len(BLOCK_SUMS), len(monitor._cells))
    return {
        **{name: getattr(monitor, _attribute(name)) for name in _PLAIN},
        "bins": plan_to_dict(monitor.bins),
        "limits": entry_of(monitor._limits),
        "detector": {name: entry_of(getattr(detector, name)) for name in _DETECTOR}
        | {"t": detector.t},
        "ids": [[t, id] for t, id in monitor._ids.items()],
        "running": {name: entry_of(getattr(running, name)) for name in _RUNNING},
        "where": None if monitor._alarmed is None else asdict(monitor._alarmed),
        "events": [asdict(event) for event in monitor.events],
        "history": {
            "span": monitor._history.span,
            "blocks": [
                [one.first, one.last, one.batches, one.rows, one.epoch, one.evidence]
                for one in blocks
            ],
            "sums": entry_of(np.array([one.sums for one in blocks]).reshape(-1, *shape[1:])),
            "spread": entry_of(np.array([one.spread for one in blocks]).reshape(-1, shape[2])),
        },
    }


def from_dict(data: dict[str, Any]) -> Monitor:
    """Return the monitor that `to_dict` described; raise an error if it is inconsistent."""
    monitor = Monitor.__new__(Monitor)
    for name, types in _PLAIN.items():
        if type(data[name]) not in types:
            raise ValueError(f"{name} has another type")
        setattr(monitor, _attribute(name), data[name])
    if (monitor.alpha is None) == (monitor.arl is None):
        raise ValueError("it has both alpha and arl, or neither")
    monitor.bins = plan_from_dict(data["bins"])
    conform(monitor.bins, BinPlan, "bins")
    check_plan(monitor.bins)
    _check_numbers(monitor)
    check_size(monitor.bins, N_BUCKETS if monitor.bins.roles.groups else 1)
    monitor._cells = Cells(monitor.bins, monitor.event)
    many = len(monitor._cells)
    fresh = Detector.new(many)
    kept = data["detector"]
    arrays = {name: _array(kept[name], getattr(fresh, name)) for name in _DETECTOR}
    conform(kept["t"], int, "the number of batches")
    if kept["t"] < 0 or (arrays["start"] < 0).any() or (arrays["start"] > kept["t"]).any():
        raise BrokenError("evidence began at a batch that there was not")
    monitor._detector = Detector(kept["t"], **arrays)
    monitor._limits = _array(data["limits"], np.zeros((many, 2)))
    zero = np.zeros(many)
    monitor._running = Running(*(_array(data["running"][name], zero) for name in _RUNNING))
    if any((getattr(monitor._running, name) < 0).any() for name in ("n", "weight", "hit", "score")):
        raise BrokenError("a sum of rows is negative")
    conform(data["ids"], list[list[int | str]], "the names of batches")
    monitor._ids = {int(t): str(id) for t, id in data["ids"]}
    where = data["where"]
    monitor._alarmed = None if where is None else Where(**where | {"also": tuple(where["also"])})
    conform(monitor._alarmed, Where | None, "the alarm")
    monitor.events = [Event(**event) for event in data["events"]]
    conform(monitor.events, list[Event], "the log")
    past = data["history"]
    heads = past["blocks"]
    sums = _array(past["sums"], np.zeros((len(heads), len(BLOCK_SUMS), many)))
    spread = _array(past["spread"], np.zeros((len(heads), many)))
    names = ("first", "last", "batches", "rows", "epoch", "evidence")
    blocks = [
        Block(**dict(zip(names, head, strict=True)), sums=sums[k], spread=spread[k])
        for k, head in enumerate(heads)
    ]
    conform(blocks, list[Block], "the history")
    conform(past["span"], int, "the span of the history")
    if not 1 <= past["span"] <= 2**40 or len(blocks) > MOST_BLOCKS + 1:
        raise BrokenError("the history is longer than any that is written")
    monitor._history = History(blocks, past["span"])
    monitor._saved_revision = monitor._revision
    nothing = Collected(monitor._cells.slim, monitor._cells.slim.tally().nothing())
    monitor._cells.moments(nothing, bets=monitor.method == BETS)  # raises if a table is missing
    return monitor


def _check_numbers(monitor: Monitor) -> None:
    """Refuse numbers that no monitor has."""
    if (
        not 0 <= monitor.limit <= 0.5
        or min(
            monitor._revision, monitor._epoch, monitor.n_batches, monitor.n_rows, monitor.n_dropped
        )
        < 0
    ):
        raise BrokenError("a count is negative, or the limit no share")
    if monitor.alpha is not None and not 0 < monitor.alpha < 1:
        raise BrokenError("alpha is not a share")
    if monitor.arl is not None and not 1 < monitor.arl < MOST_EVIDENCE:
        raise BrokenError("arl is not a number of batches")
    if monitor.method not in (BETS, SUMS, UNITS):
        raise BrokenError("it names an unknown method")


def _array(entry: dict[str, Any], like: AnyArray) -> AnyArray:
    array = array_of(entry)
    if array.shape != like.shape or not np.isfinite(array).all():
        raise BrokenError("an array has another shape, or a value that is not finite")
    if array.dtype.kind != like.dtype.kind:
        raise BrokenError(f"an array holds {array.dtype}")
    return array.astype(like.dtype)


def _check_ours(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Refuse to overwrite a state that this monitor does not come from."""
    found = load_kind(path, "monitor")
    if found._key != monitor._key:
        raise InputError(
            f"{str(path)!r} holds another monitor",
            "choose another name, or remove the file first",
            argument="path",
        )
    if monitor._saved_revision != found._revision:
        raise InputError(
            f"{str(path)!r} has changed since it was read: another process saved it, with the "
            f"batches up to {found._last_id!r}",
            "load it again with varcal.load(), and update that",
            argument="path",
        )


def _check_extension(path: str | PathLike[str]) -> None:
    if Path(path).suffix.lower() != ".json":
        raise InputError(
            f"path has an unknown extension: {str(path)!r}", "use .json", argument="path"
        )


#: Saved monitors.
MONITOR = Kind("monitor", "a saved monitor", 2, from_dict)
