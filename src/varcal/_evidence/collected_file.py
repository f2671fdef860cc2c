"""Files of collected statistics: JSON, or Parquet for large ones."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Hashable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._binning.bins import Bins, LevelBins, NumericBins
from varcal._binning.stats import FIELDS
from varcal._evidence.collected import Collected
from varcal._evidence.collected_checks import check_cells, check_sound
from varcal._evidence.evidence import Along
from varcal._evidence.plan import BinPlan
from varcal._evidence.roles import Roles
from varcal._evidence.tally import Sums, Wanted
from varcal._files.atomic import whole_file, write_whole
from varcal._input.groups import N_BUCKETS
from varcal._input.part import Part
from varcal._options import checked
from varcal._version import __version__
from varcal.exceptions import InputError, import_library

#: The version of the file format; files of a later one are refused.
FORMAT = 3
EXTENSIONS = (".json", ".parquet")


def save(collected: Collected, path: str | PathLike[str]) -> None:
    """Write collected statistics in the format of the path's extension."""
    parts = [_filled_cells(table) for table in collected.sums.tables]
    if _extension(path) == ".json":
        tables = [{"cell": cell.tolist(), "sums": sums.tolist()} for cell, sums in parts]
        text = json.dumps(_head(collected) | {"tables": tables}, allow_nan=False)
        write_whole(path, text)
        return
    pa = import_library("pyarrow", f"writing {str(path)!r}")
    from pyarrow import parquet  # noqa: PLC0415

    sizes = [len(cell) for cell, _ in parts]
    columns: dict[str, Any] = {
        "table": np.repeat(np.arange(len(parts), dtype=np.int32), sizes),
        "cell": np.concatenate([cell for cell, _ in parts]),
    }
    for k, name in enumerate(FIELDS):
        columns[name] = np.concatenate([sums[k] for _, sums in parts])
    head = json.dumps(_head(collected), allow_nan=False)
    table = pa.table(columns).replace_schema_metadata({"varcal": head})
    with whole_file(path) as draft:
        parquet.write_table(table, draft, compression="zstd")


@checked()
def load_collected(path: str | PathLike[str]) -> Collected:
    """Read statistics that `Collected.save` wrote.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(500)
    >>> rows = {"y": sim.y, "p": sim.p, "age": sim.v}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "day.parquet"
    >>> vc.collect(rows, vc.make_bins("y", "p", data=rows)).save(path)
    >>> vc.load_collected(path)
    Collected: 500 rows along 1 variables (age)
    """
    shown = repr(str(path))
    wrong = InputError(
        f"{shown} is not a file of collected statistics", "give a file that Collected.save() wrote"
    )
    try:
        head, tables = _read(path)
        if head["format"] > FORMAT:
            raise InputError(
                f"{shown} was written by a later varcal ({head['varcal']})", "update varcal"
            )
        return _restored(head, tables)
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise InputError(f"cannot read {shown}: {reason}", wrong.hint) from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise wrong from None


def _read(path: str | PathLike[str]) -> tuple[dict[str, Any], list[Any]]:
    """Return the head of a file, and for each table its cells with rows and their sums."""
    if _extension(path) == ".json":
        head = json.loads(Path(path).read_text(encoding="utf-8"))
        tables = head.pop("tables")
        cells = [np.array(table["cell"] or np.zeros(0, np.intp)) for table in tables]
        sums = [np.array(table["sums"], dtype=np.float64) for table in tables]
        return head, list(zip(cells, sums, strict=True))
    import_library("pyarrow", f"reading {str(path)!r}")
    from pyarrow import parquet  # noqa: PLC0415

    rows = parquet.read_table(path)
    head = json.loads(rows.schema.metadata[b"varcal"])
    column = {name: rows.column(name).to_numpy() for name in rows.column_names}
    values = np.stack([column[name] for name in FIELDS])
    masks = [column["table"] == number for number in range(len(head["wanted"]))]
    if np.sum(masks) != len(rows):
        raise ValueError("a row belongs to no table")
    return head, [(column["cell"][mask], values[:, mask]) for mask in masks]


def _filled_cells(table: Floats) -> tuple[Ints, Floats]:
    """Return the cells of a table with rows, and their sums; with groups most cells are empty."""
    flat = table.reshape(len(FIELDS), -1)
    cell = np.flatnonzero(flat[0])
    return cell, flat[:, cell]


def _head(collected: Collected) -> dict[str, Any]:
    plan, sums = collected.plan, collected.sums
    return {
        "format": FORMAT,
        "varcal": __version__,
        "n_rows": sums.n_rows,
        "n_dropped": sums.n_dropped,
        "n_buckets": sums.tables[0].shape[1] // (1 + plan.wanted[0].sided),
        "engine": collected.engine,
        "backend": collected.backend,
    } | plan_to_dict(plan)


def plan_to_dict(plan: BinPlan) -> dict[str, Any]:
    """Return bins in the types of JSON."""
    return {
        "roles": vars(plan.roles),
        "part": vars(plan.part) | {"classes": _plain(plan.part.classes)},
        "along": [[one.name, one.kind] for one in plan.along],
        "units": _plain(plan.units),
        "n_bins": plan.n_bins,
        "binning": plan.binning,
        "left_out": dict(plan.left_out),
        "date_notes": list(plan.date_notes),
        "wanted": [
            {
                "key": one.key,
                "names": list(one.names),
                "fine": _bins_plain(one.fine),
                "coarse": _bins_plain(one.coarse),
                "sided": one.sided,
                "tolerance": one.tolerance,
            }
            for one in plan.wanted
        ],
        "monitor": plan.monitor,
        "weight_cap": plan.weight_cap,
    }


def plan_from_dict(head: dict[str, Any]) -> BinPlan:
    """Return the bins that `plan_to_dict` described."""
    roles = head["roles"]
    roles = Roles(**roles | {"p": tuple(roles["p"]), "v": tuple(roles["v"])})
    part = Part(**head["part"] | {"classes": _values(head["part"]["classes"])})
    wanted = tuple(
        Wanted(
            one["key"],
            tuple(one["names"]),
            _bins(one["fine"]),
            _bins(one["coarse"]),
            bool(one.get("sided", False)),  # absent in files of format 1
            one.get("tolerance"),  # absent before format 3
        )
        for one in head["wanted"]
    )
    along = tuple(Along(name, kind) for name, kind in head["along"])
    units = _values(head["units"])
    return BinPlan(
        roles,
        part,
        along,
        wanted,
        units,
        head["n_bins"],
        head["binning"],
        head.get("left_out", {}),
        tuple(head.get("date_notes", ())),
        head.get("monitor"),
        head.get("weight_cap"),
    )


def _restored(head: dict[str, Any], tables: list[Any]) -> Collected:
    plan = plan_from_dict(head)
    n_buckets = head["n_buckets"]
    if n_buckets not in range(1, N_BUCKETS + 1):
        raise ValueError(f"there are {n_buckets} buckets of groups")
    full = []
    for one, (cell, sums) in zip(plan.wanted, tables, strict=True):
        shape = (n_buckets * (1 + one.sided), one.fine.size)
        check_cells(cell, sums, shape[0] * shape[1], one)
        table = np.zeros((len(FIELDS), shape[0] * shape[1]))
        table[:, cell] = sums
        full.append(table.reshape(len(FIELDS), *shape))
    sums = Sums(head["n_rows"], head["n_dropped"], tuple(full))
    return Collected(plan, check_sound(plan, sums), head["engine"], head["backend"])


def _bins_plain(bins: Bins) -> dict[str, Any]:
    if isinstance(bins, NumericBins):
        return {
            "name": bins.name,
            "cuts": list(bins.cuts),
            "ends": [repr(bins.low), repr(bins.high)],
            "starts": sorted(bins.starts),
            "missing": bins.missing,
            "datetime": bins.datetime,
            "sampled": bins.sampled,
            "duration": bins.duration,
            "zone": bins.zone,
        }
    assert isinstance(bins, LevelBins)
    return {
        "name": bins.name,
        "levels": _plain(bins.levels),
        "pooled": _plain(bins.pooled),
        "missing": bins.missing,
        "open": bins.open,
    }


def _bins(data: dict[str, Any]) -> Bins:
    if "levels" in data:
        pair = {name: _values(data[name]) for name in ("levels", "pooled")}
        return LevelBins(**data | pair)
    low, high = (float(end) for end in data["ends"])
    return NumericBins(
        data["name"],
        tuple(data["cuts"]),
        low,
        high,
        frozenset(data["starts"]),
        data["missing"],
        data["datetime"],
        data["sampled"],
        data.get("duration", False),
        data.get("zone", ""),
    )


def _plain(values: tuple[Hashable, ...]) -> list[Any]:
    """Return labels in the types of JSON; dates become dicts, to distinguish them from strings."""
    plain: list[Any] = []
    for value in values:
        if isinstance(value, str | bool | int | float):
            plain.append(value)
        elif isinstance(value, dt.date) and not getattr(value, "nanosecond", 0):
            kind = "datetime" if isinstance(value, dt.datetime) else "date"  # also a Timestamp
            plain.append({kind: value.isoformat()})
        else:
            raise InputError(
                f"a label of type {type(value).__name__} cannot be saved: {value!r}",
                "use strings, numbers, booleans or dates",
            )
    return plain


def _values(plain: list[Any]) -> tuple[Hashable, ...]:
    readers = {"date": dt.date.fromisoformat, "datetime": dt.datetime.fromisoformat}
    return tuple(
        readers[next(iter(one))](next(iter(one.values()))) if isinstance(one, dict) else one
        for one in plain
    )


def _extension(path: str | PathLike[str]) -> str:
    extension = Path(path).suffix.lower()
    if extension not in EXTENSIONS:
        raise InputError(
            f"path has an unknown extension: {str(path)!r}",
            f"use {' or '.join(EXTENSIONS)}",
            argument="path",
        )
    return extension
