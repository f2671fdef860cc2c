"""Saved monitors: the whole state in one file, which no two processes overwrite for each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._evidence.collected_file import plan_from_dict, plan_to_dict
from varcal._files.atomic import write_whole
from varcal._files.lock import locked
from varcal._monitor.cells import Cells
from varcal._monitor.confidence import Running
from varcal._monitor.detector import Detector
from varcal._monitor.history import BLOCK_SUMS, Block, History
from varcal._monitor.monitor import Event, Monitor
from varcal._monitor.status import Where
from varcal._options import checked
from varcal._version import __version__
from varcal.calibrators._saved.array_texts import array_of, entry_of
from varcal.exceptions import InputError

#: The version of the file format; files of another one are refused.
FORMAT = 1
#: The attributes that are plain values, with their types.
_PLAIN: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("key", "method", "last_id", "raised"), (str,)),
    **dict.fromkeys(("revision", "epoch", "n_batches", "n_rows", "n_dropped"), (int,)),
    **dict.fromkeys(("has_reference", "acknowledged"), (bool,)),
    "tolerance": (float,),
    **dict.fromkeys(("alpha", "arl"), (float, NoneType)),
    "event": (str, NoneType),
}
_DETECTOR = ("spent", "flow", "run", "start", "window")
_RUNNING = ("n", "weight", "hit", "score", "spread", "first", "top")


def save(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Write a monitor, unless another process has saved the file since this one read it."""
    _check_extension(path)
    with locked(path):
        write_in_turn(monitor, path)


def write_in_turn(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Write a monitor while the file is locked."""
    if Path(path).exists():
        _check_ours(monitor, path)
    write_whole(path, json.dumps(to_dict(monitor), allow_nan=False))
    monitor.saved_revision = monitor.revision


@checked()
def load_monitor(path: str | PathLike[str]) -> Monitor:
    """Read a monitor that `Monitor.save` wrote.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(500)
    >>> bins = vc.make_bins("y", "p", data={"y": sim.y, "p": sim.p, "age": sim.v}, monitor=0.02)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "monitor.json"
    >>> vc.Monitor(bins).save(path)
    >>> print(vc.load_monitor(path).status)
    No alarm: no batch yet.
    """
    data = _read(path)
    try:
        monitor = from_dict(data)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise _not_a_monitor(path) from None
    monitor.saved_revision = monitor.revision
    return monitor


@contextmanager
def monitor_in_turn(path: str | PathLike[str]) -> Iterator[Monitor]:
    """Read a monitor, and write it at the end of the block; other processes wait meanwhile.

    If the block raises an error the file stays as it was.
    """
    if not Path(path).is_file():
        _read(path)  # says why it cannot be read, before a lock is made for it
    with locked(path):
        monitor = load_monitor(path)
        yield monitor
        if monitor.revision != monitor.saved_revision:
            write_in_turn(monitor, path)


def to_dict(monitor: Monitor) -> dict[str, Any]:
    """Return the state in the types of JSON."""
    detector, running, blocks = monitor.detector, monitor.running, monitor.history.blocks
    shape = (0, len(BLOCK_SUMS), len(monitor.cells))
    return {
        "format": FORMAT,
        "varcal": __version__,
        **{name: getattr(monitor, name) for name in _PLAIN},
        "bins": plan_to_dict(monitor.bins),
        "limits": entry_of(monitor.limits),
        "detector": {name: entry_of(getattr(detector, name)) for name in _DETECTOR}
        | {"t": detector.t},
        "ids": [[t, id] for t, id in monitor.ids.items()],
        "running": {name: entry_of(getattr(running, name)) for name in _RUNNING},
        "where": None if monitor.alarmed is None else asdict(monitor.alarmed),
        "events": [asdict(event) for event in monitor.events],
        "history": {
            "span": monitor.history.span,
            "blocks": [
                [one.first, one.last, one.batches, one.rows, one.epoch, one.evidence]
                for one in blocks
            ],
            "sums": entry_of(np.array([one.sums for one in blocks]).reshape(-1, *shape[1:])),
            "spread": entry_of(np.array([one.spread for one in blocks]).reshape(-1, shape[2])),
        },
    }


def from_dict(data: dict[str, Any]) -> Monitor:
    """Return the monitor that `to_dict` described; raise a ValueError if it is inconsistent."""
    monitor = Monitor.__new__(Monitor)
    for name, types in _PLAIN.items():
        if type(data[name]) not in types:
            raise ValueError(f"{name} has another type")
        setattr(monitor, name, data[name])
    if (monitor.alpha is None) == (monitor.arl is None):
        raise ValueError("it has both alpha and arl, or neither")
    monitor.bins = plan_from_dict(data["bins"])
    monitor.cells = Cells(monitor.bins, monitor.event)
    many = len(monitor.cells)
    fresh = Detector.new(many)
    kept = data["detector"]
    arrays = {name: _array(kept[name], getattr(fresh, name)) for name in _DETECTOR}
    monitor.detector = Detector(int(kept["t"]), **arrays)
    monitor.limits = _array(data["limits"], np.zeros((many, 2)))
    zero = np.zeros(many)
    monitor.running = Running(*(_array(data["running"][name], zero) for name in _RUNNING))
    monitor.ids = {int(t): str(id) for t, id in data["ids"]}
    where = data["where"]
    monitor.alarmed = None if where is None else Where(**where | {"also": tuple(where["also"])})
    monitor.events = [Event(**event) for event in data["events"]]
    past = data["history"]
    heads = past["blocks"]
    sums = _array(past["sums"], np.zeros((len(heads), len(BLOCK_SUMS), many)))
    spread = _array(past["spread"], np.zeros((len(heads), many)))
    names = ("first", "last", "batches", "rows", "epoch", "evidence")
    blocks = [
        Block(**dict(zip(names, head, strict=True)), sums=sums[k], spread=spread[k])
        for k, head in enumerate(heads)
    ]
    monitor.history = History(blocks, int(past["span"]))
    monitor.saved_revision = None
    return monitor


def _array(entry: dict[str, Any], like: AnyArray) -> AnyArray:
    array = array_of(entry).astype(like.dtype)
    if array.shape != like.shape or not np.isfinite(array).all():
        raise ValueError("an array has another shape, or a value that is not finite")
    return array


def _read(path: str | PathLike[str]) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror}",
            "give a file that Monitor.save() or varcal monitor init wrote",
            argument="path",
        ) from None
    except UnicodeDecodeError:
        raise _not_a_monitor(path) from None
    try:
        data = json.loads(text)
        number, version = data["format"], data["varcal"]
        if not isinstance(data["revision"], int) or not isinstance(data["key"], str):
            raise ValueError("the file has no revision")
    except (ValueError, KeyError, TypeError):
        raise _not_a_monitor(path) from None
    if number != FORMAT:
        raise InputError(
            f"{str(path)!r} was written by another varcal ({version})",
            "use the same version, or start a new monitor",
            argument="path",
        )
    found: dict[str, Any] = data
    return found


def _check_ours(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Refuse to overwrite a state that this monitor does not come from."""
    found = _read(path)
    if found["key"] != monitor.key:
        raise InputError(
            f"{str(path)!r} holds another monitor",
            "choose another name, or remove the file first",
            argument="path",
        )
    if monitor.saved_revision != found["revision"]:
        raise InputError(
            f"{str(path)!r} has changed since it was read: another process saved it, with the "
            f"batches up to {found['last_id']!r}",
            "load it again with load_monitor(), and update that",
            argument="path",
        )


def _check_extension(path: str | PathLike[str]) -> None:
    if Path(path).suffix.lower() != ".json":
        raise InputError(
            f"path has an unknown extension: {str(path)!r}", "use .json", argument="path"
        )


def _not_a_monitor(path: str | PathLike[str]) -> InputError:
    return InputError(
        f"{str(path)!r} is not a saved monitor",
        "give a file that Monitor.save() or varcal monitor init wrote",
        argument="path",
    )
