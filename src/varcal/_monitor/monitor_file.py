"""Saved monitors: the whole state in one file, which no two processes overwrite for each other."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._files.atomic import cannot_write, target_of
from varcal._files.saved import Kind, file_bytes, load_kind
from varcal._files.schema import BrokenError, array_of, built, conform, plain
from varcal._monitor.history import Block
from varcal._monitor.monitor import Event, Monitor, Where
from varcal._sums.collect import plan_from_dict, plan_to_dict
from varcal.exceptions import InputError

#: The arguments of `Monitor`, and the plain values and arrays that follow from batches.
_SETTINGS = ("limit", "alpha", "arl", "event")
_VALUES = ("n_batches", "n_rows", "n_dropped", "raised", "acknowledged", "has_reference")
_PRIVATE = ("_last_id", "_key", "_revision", "_epoch", "_limits")
#: Seconds to wait for another process. An update takes seconds, or minutes if it reads a large
#: file, so a process that holds the lock for ten minutes hangs.
MAX_WAIT = 600.0


def save(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Write a monitor, unless another process has saved the file since this one read it."""
    if Path(path).suffix.lower() != ".json":
        raise InputError(
            f"path has an unknown extension: {str(path)!r}", "use .json", argument="path"
        )
    with _locked(path):
        _write_in_turn(monitor, path)


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
            _write_in_turn(monitor, path)


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


def _write_in_turn(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Write a monitor while the file is locked, unless it holds a state of another origin."""
    if Path(path).exists():
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
    MONITOR.write(path, to_dict(monitor))
    monitor._saved_revision = monitor._revision


def to_dict(monitor: Monitor) -> dict[str, Any]:
    """Return the state in the types of JSON."""
    return {
        "bins": plan_to_dict(monitor.bins),
        **_plain(monitor, *_SETTINGS, *_VALUES, *_PRIVATE),
        "detector": _plain(monitor._detector),
        "running": _plain(monitor._running),
        "ids": {str(t): id for t, id in monitor._ids.items()},
        "where": plain(monitor._alarmed),
        "events": plain(monitor.events),
        "blocks": plain(monitor._blocks),
    }


def from_dict(data: dict[str, Any]) -> Monitor:
    """Return the monitor that `to_dict` described; raise an error if it is inconsistent."""
    bins = plan_from_dict(data["bins"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was said before that evidence could be stronger
        monitor = Monitor(bins, **{name: data[name] for name in _SETTINGS})
    detector, running = monitor._detector, monitor._running
    _fill(monitor, data, *_VALUES, *_PRIVATE)
    _fill(detector, data["detector"])
    _fill(running, data["running"])
    monitor._saved_revision = monitor._revision
    monitor._ids = {int(t): id for t, id in data["ids"].items()}
    monitor._alarmed = where = built(data["where"], Where | None)
    monitor.events = built(data["events"], list[Event])
    monitor._blocks = built(data["blocks"], list[Block])
    for block in data["blocks"]:
        _like(block["sums"], running.sums)  # raises if it has another shape
    read = (monitor._ids, where, monitor.events, monitor._blocks)
    conform(read, tuple[dict[int, str], Where | None, list[Event], list[Block]], "the state")
    if where is not None:
        monitor._cells.number_of(where.claim, where.variable, where.text)
    if (detector.start < 0).any() or (detector.start > detector.t).any():
        raise BrokenError("evidence began at a batch that there was not")
    if (running.sums[:4] < 0).any():
        raise BrokenError("a sum of rows is negative")
    nothing = monitor._cells.slim.empty()
    monitor._cells.moments(nothing, bets=monitor.method == "bets")  # raises if a table is missing
    return monitor


def _plain(found: Any, *names: str) -> dict[str, Any]:
    """Return attributes, by default the fields of a dataclass, in the types of JSON."""
    return {name.lstrip("_"): plain(getattr(found, name)) for name in names or vars(found)}


def _fill(found: Any, data: dict[str, Any], *names: str) -> None:
    """Set attributes to what `_plain` returned."""
    for name in names or vars(found):
        setattr(found, name, _like(data[name.lstrip("_")], getattr(found, name)))


def _like(value: Any, fresh: Any) -> Any:
    """Return a value from a file if it has the type and the shape of one from a new monitor."""
    if not isinstance(fresh, np.ndarray):
        conform(value, type(fresh), "a value")
        if value < type(fresh)():
            raise BrokenError("a count is negative")
        return value
    array = array_of(value)
    if array.shape != fresh.shape or array.dtype.kind != fresh.dtype.kind:
        raise BrokenError(f"an array of {array.dtype} has the shape {array.shape}")
    if not np.isfinite(array).all():
        raise BrokenError("an array has a value that is not finite")
    return array.astype(fresh.dtype)


#: Saved monitors.
MONITOR = Kind("monitor", "a saved monitor", 1, from_dict)
