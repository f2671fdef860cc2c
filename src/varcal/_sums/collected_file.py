"""Files of collected statistics: JSON, or Parquet for large ones."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Hashable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._files.atomic import whole_file
from varcal._files.conform import conform
from varcal._files.document import BrokenError, Kind, parsed
from varcal._input.groups import N_BUCKETS
from varcal._input.labels import Part
from varcal._sums.bins import Bins, LevelBins, NumericBins
from varcal._sums.collected import Collected
from varcal._sums.collected_checks import check_cells, check_sound
from varcal._sums.evidence import Along
from varcal._sums.plan import BinPlan
from varcal._sums.roles import Roles
from varcal._sums.stats import FIELDS
from varcal._sums.tally import Sums, Wanted
from varcal.exceptions import InputError, import_library, shown

EXTENSIONS = (".json", ".parquet")
#: The most sums of one file, a gigabyte; with groups each cell has sums for 256 buckets.
MOST_SUMS = 2**27


def save(collected: Collected, path: str | PathLike[str]) -> None:
    """Write collected statistics in the format of the path's extension."""
    parts = [_filled_cells(table) for table in collected.sums.tables]
    if _extension(path) == ".json":
        tables = [{"cell": cell.tolist(), "sums": sums.tolist()} for cell, sums in parts]
        COLLECTED.write(path, _head(collected) | {"tables": tables})
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
    head = COLLECTED.text(_head(collected) | {"columns": _digest(columns)})
    table = pa.table(columns).replace_schema_metadata({"varcal": head})
    with whole_file(path) as draft:
        parquet.write_table(table, draft, compression="zstd")


def _digest(columns: Mapping[str, AnyArray]) -> str:
    """Return a checksum of the columns of a Parquet file."""
    found = hashlib.sha256()
    for name in ("table", "cell", *FIELDS):
        kind = {"table": np.int32, "cell": np.int64}.get(name, np.float64)
        found.update(np.ascontiguousarray(columns[name], dtype=kind).tobytes())
    return found.hexdigest()


def parquet_document(data: bytes, shown: str) -> dict[str, Any]:
    """Return the entries of a Parquet file: those in its metadata, and its columns."""
    pa = import_library("pyarrow", f"reading {shown}")
    from pyarrow import parquet  # noqa: PLC0415

    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        if file.metadata.num_rows * len(FIELDS) > MOST_SUMS:
            raise BrokenError(f"it has more than {MOST_SUMS:,} sums")
        document = parsed(file.schema_arrow.metadata[b"varcal"])
        rows = file.read()
        columns = {name: rows.column(name).to_numpy() for name in ("table", "cell", *FIELDS)}
    except (pa.ArrowException, OSError, TypeError, KeyError):
        raise BrokenError("it is not a complete Parquet file of varcal") from None
    return ParquetDocument(document, columns)


class ParquetDocument(dict[str, Any]):
    """The entries in the metadata of a Parquet file, with its columns."""

    def __init__(self, entries: dict[str, Any], columns: dict[str, AnyArray]) -> None:
        super().__init__(entries)
        self.columns = columns


def _tables_of(document: dict[str, Any]) -> list[tuple[Ints, Floats]]:
    """Return for each table its cells with rows and their sums."""
    if isinstance(document, ParquetDocument):
        return _parquet_tables(document)
    conform(document["tables"], list[dict[str, list[Any]]], "tables")
    found = []
    for table in document["tables"]:
        conform(table["cell"], list[int], "a cell")
        conform(table["sums"], list[list[float]], "the sums of a cell")
        cell = np.array(table["cell"], dtype=np.int64)
        found.append((cell, np.array(table["sums"], dtype=np.float64).reshape(len(FIELDS), -1)))
    return found


def _parquet_tables(document: ParquetDocument) -> list[tuple[Ints, Floats]]:
    columns = document.columns
    if document.get("columns") != _digest(columns):
        raise BrokenError("its sums do not match their checksum")
    values = np.stack([columns[name] for name in FIELDS])
    masks = [columns["table"] == number for number in range(len(document["wanted"]))]
    if np.sum(masks) != len(columns["table"]):
        raise BrokenError("a row belongs to no table")
    return [(columns["cell"][mask], values[:, mask]) for mask in masks]


def _filled_cells(table: Floats) -> tuple[Ints, Floats]:
    """Return the cells of a table with rows, and their sums; with groups most cells are empty."""
    flat = table.reshape(len(FIELDS), -1)
    cell = np.flatnonzero(flat[0])
    return cell, flat[:, cell]


def _head(collected: Collected) -> dict[str, Any]:
    plan, sums = collected.plan, collected.sums
    return {
        "n_rows": sums.n_rows,
        "n_dropped": sums.n_dropped,
        "n_buckets": sums.tables[0].shape[1] // (1 + plan.wanted[0].sided),
        "engine": collected.engine,
        "backend": collected.backend,
    } | plan_to_dict(plan)


def plan_to_dict(plan: BinPlan) -> dict[str, Any]:
    """Return bins in the types of JSON."""
    return {
        "roles": vars(plan.roles) | {"pos_label": _label(plan.roles.pos_label), "must_read": None},
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
                "limit": one.limit,
            }
            for one in plan.wanted
        ],
        "monitor": plan.monitor,
        "weight_cap": plan.weight_cap,
    }


def plan_from_dict(head: dict[str, Any]) -> BinPlan:
    """Return the bins that `plan_to_dict` described."""
    roles = head["roles"]
    pos_label = None if roles["pos_label"] is None else _values([roles["pos_label"]])[0]
    columns = {"p": tuple(roles["p"]), "v": tuple(roles["v"])}
    roles = Roles(**roles | columns | {"pos_label": pos_label})
    calendar = tuple(tuple(one) for one in head["part"]["calendar"])
    classes = _values(head["part"]["classes"])
    part = Part(**head["part"] | {"classes": classes, "calendar": calendar})
    wanted = tuple(
        Wanted(
            one["key"],
            tuple(one["names"]),
            _bins(one["fine"]),
            _bins(one["coarse"]),
            one["sided"],
            one["limit"],
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
        head["left_out"],
        tuple(head["date_notes"]),
        head["monitor"],
        head["weight_cap"],
    )


def check_size(plan: BinPlan, n_buckets: int) -> None:
    """Refuse bins whose tables would not fit into memory."""
    cells = sum(n_buckets * (1 + one.sided) * one.fine.size for one in plan.wanted)
    if cells * len(FIELDS) > MOST_SUMS:
        raise BrokenError(f"it has more than {MOST_SUMS:,} sums")


def restored(head: dict[str, Any]) -> Collected:
    """Return the statistics that the entries of a file describe."""
    tables = _tables_of(head)
    plan = plan_from_dict(head)
    conform(plan, BinPlan, "bins")
    n_buckets = head["n_buckets"]
    if type(n_buckets) is not int or n_buckets not in range(1, N_BUCKETS + 1):
        raise BrokenError(f"there are {shown(n_buckets)} buckets of groups")
    check_size(plan, n_buckets)
    for name in ("n_rows", "n_dropped"):
        conform(head[name], int, name)
    conform((head["engine"], head["backend"]), tuple[str, str | None], "the engine")
    full = []
    for one, (cell, values) in zip(plan.wanted, tables, strict=True):
        shape = (n_buckets * (1 + one.sided), one.fine.size)
        check_cells(cell, values, shape[0] * shape[1], one)
        table = np.zeros((len(FIELDS), shape[0] * shape[1]))
        table[:, cell] = values
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
        data["duration"],
        data["zone"],
    )


def _label(value: Hashable) -> Any:
    """Return one label, or None, in the types of JSON."""
    return None if value is None else _plain((value,))[0]


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

    def value(one: Any) -> Hashable:
        if not isinstance(one, dict):
            return one
        ((kind, text),) = one.items()
        return readers[kind](text)

    return tuple(map(value, plain))


def _extension(path: str | PathLike[str]) -> str:
    extension = Path(path).suffix.lower()
    if extension not in EXTENSIONS:
        raise InputError(
            f"path has an unknown extension: {str(path)!r}",
            f"use {' or '.join(EXTENSIONS)}",
            argument="path",
        )
    return extension


#: Files of collected statistics. Parquet files have the same entries in their metadata.
COLLECTED = Kind("collected statistics", "a file of collected statistics", 4, restored)
