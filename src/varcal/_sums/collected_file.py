"""Files of collected statistics: JSON, or Parquet for large ones."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._files.atomic import whole_file
from varcal._files.saved import Kind, parsed
from varcal._files.schema import BrokenError, built, conform, plain
from varcal._input.dates import part_name
from varcal._input.events import CORRECT
from varcal._input.groups import N_BUCKETS
from varcal._sums.bins import LevelBins, NumericBins
from varcal._sums.collected import Collected
from varcal._sums.plan import BinPlan, Sums, Wanted
from varcal._sums.stats import FIELDS
from varcal.exceptions import InputError, import_library, shown

EXTENSIONS = (".json", ".parquet")
#: The most sums of one file, a gigabyte; with groups each cell has sums for 256 buckets.
MOST_SUMS = 2**27


def save(collected: Collected, path: str | PathLike[str]) -> None:
    """Write collected statistics in the format of the path's extension."""
    plan, sums = collected.plan, collected.sums
    head = {
        "n_rows": sums.n_rows,
        "n_dropped": sums.n_dropped,
        "n_buckets": sums.tables[0].shape[1] // (1 + plan.wanted[0].sided),
        "engine": collected.engine,
        "backend": collected.backend,
        "bins": plan_to_dict(plan),
    }
    parts = [_filled_cells(table) for table in sums.tables]
    if _extension(path) == ".json":
        tables = [{"cell": cell.tolist(), "sums": values.tolist()} for cell, values in parts]
        COLLECTED.write(path, head | {"tables": tables})
        return
    pa = import_library("pyarrow", f"writing {str(path)!r}")
    from pyarrow import parquet  # noqa: PLC0415

    sizes = [len(cell) for cell, _ in parts]
    columns: dict[str, Any] = {
        "table": np.repeat(np.arange(len(parts), dtype=np.int32), sizes),
        "cell": np.concatenate([cell for cell, _ in parts]),
    }
    for k, name in enumerate(FIELDS):
        columns[name] = np.concatenate([values[k] for _, values in parts])
    text = COLLECTED.text(head | {"columns": _digest(columns)})
    table = pa.table(columns).replace_schema_metadata({"varcal": text})
    with whole_file(path) as draft:
        parquet.write_table(table, draft, compression="zstd")


def _filled_cells(table: Floats) -> tuple[Ints, Floats]:
    """Return the cells of a table with rows, and their sums; with groups most cells are empty."""
    flat = table.reshape(len(FIELDS), -1)
    cell = np.flatnonzero(flat[0])
    return cell, flat[:, cell]


def _digest(columns: Mapping[str, AnyArray]) -> str:
    """Return a checksum of the columns of a Parquet file."""
    found = hashlib.sha256()
    for name in ("table", "cell", *FIELDS):
        kind = {"table": np.int32, "cell": np.int64}.get(name, np.float64)
        found.update(np.ascontiguousarray(columns[name], dtype=kind).tobytes())
    return found.hexdigest()


def _extension(path: str | PathLike[str]) -> str:
    extension = Path(path).suffix.lower()
    if extension not in EXTENSIONS:
        raise InputError(
            f"path has an unknown extension: {str(path)!r}",
            f"use {' or '.join(EXTENSIONS)}",
            argument="path",
        )
    return extension


class ParquetDocument(dict[str, Any]):
    """The entries in the metadata of a Parquet file, with its columns."""

    columns: dict[str, AnyArray]


def parquet_document(data: bytes, shown: str) -> dict[str, Any]:
    """Return the entries of a Parquet file: those in its metadata, and its columns."""
    pa = import_library("pyarrow", f"reading {shown}")
    from pyarrow import parquet  # noqa: PLC0415

    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        if file.metadata.num_rows * len(FIELDS) > MOST_SUMS:
            raise BrokenError(f"it has more than {MOST_SUMS:,} sums")
        document = ParquetDocument(parsed(file.schema_arrow.metadata[b"varcal"]))
        rows = file.read()
        names = ("table", "cell", *FIELDS)
        document.columns = {name: rows.column(name).to_numpy() for name in names}
    except (pa.ArrowException, OSError, TypeError, KeyError):
        raise BrokenError("it is not a complete Parquet file of varcal") from None
    return document


def _tables_of(document: dict[str, Any], n_tables: int) -> list[tuple[Ints, Floats]]:
    """Return for each table its cells with rows and their sums."""
    if isinstance(document, ParquetDocument):
        columns = document.columns
        if document.get("columns") != _digest(columns):
            raise BrokenError("its sums do not match their checksum")
        values = np.stack([columns[name] for name in FIELDS])
        masks = [columns["table"] == number for number in range(n_tables)]
        if np.sum(masks) != len(columns["table"]):
            raise BrokenError("a row belongs to no table")
        return [(columns["cell"][mask], values[:, mask]) for mask in masks]
    conform(document["tables"], list[dict[str, list[Any]]], "tables")
    found = []
    for table in document["tables"]:
        conform(table["cell"], list[int], "a cell")
        conform(table["sums"], list[list[float]], "the sums of a cell")
        cell = np.array(table["cell"], dtype=np.int64)
        found.append((cell, np.array(table["sums"], dtype=np.float64).reshape(len(FIELDS), -1)))
    return found


def plan_to_dict(plan: BinPlan) -> dict[str, Any]:
    """Return bins in the types of JSON."""
    level_bins = [one.fine for one in plan.wanted if isinstance(one.fine, LevelBins)]
    levels = [level for bins in level_bins for level in (*bins.levels, *bins.pooled)]
    for label in (*plan.classes, *levels):
        if not isinstance(label, str | bool | int | float | dt.date):
            raise InputError(
                f"a label of type {type(label).__name__} cannot be saved: {label!r}",
                "use strings, numbers, booleans or dates",
            )
    found: dict[str, Any] = plain(plan)
    return found


def plan_from_dict(data: dict[str, Any]) -> BinPlan:
    """Return the bins that `plan_to_dict` described, if they are sound and fit into memory."""
    plan: BinPlan = built(data, BinPlan, where="bins")
    _check_plan(plan)
    n_buckets = len(plan.units) or N_BUCKETS if plan.roles.groups else 1
    cells = sum(n_buckets * (1 + one.sided) * one.fine.size for one in plan.wanted)
    if cells * len(FIELDS) > MOST_SUMS:
        raise BrokenError(f"it has more than {MOST_SUMS:,} sums")
    return plan


def restored(head: dict[str, Any]) -> Collected:
    """Return the statistics that the entries of a file describe."""
    plan = plan_from_dict(head["bins"])
    n_buckets = head["n_buckets"]
    for name in ("n_rows", "n_dropped"):
        conform(head[name], int, name)
    conform((head["engine"], head["backend"]), tuple[str, str | None], "the engine")
    nothing = plan.nothing().tables
    if n_buckets != nothing[0].shape[1] // (1 + plan.wanted[0].sided):
        raise BrokenError(f"there are {shown(n_buckets)} buckets of groups")
    parts = _tables_of(head, len(plan.wanted))
    for one, table, (cell, values) in zip(plan.wanted, nothing, parts, strict=True):
        _check_cells(cell, values, table[0].size, one)
        table.reshape(len(FIELDS), -1)[:, cell] = values
    sums = Sums(head["n_rows"], head["n_dropped"], nothing)
    _check_sums(plan, sums)
    return Collected(plan, sums, head["engine"], head["backend"])


def _check_cells(cell: AnyArray, sums: AnyArray, n_cells: int, wanted: Wanted) -> None:
    """Raise ValueError unless these are distinct cells of a table with the sums of some rows."""
    if sums.shape != (len(FIELDS), len(cell)) or cell.dtype.kind not in "iu":
        raise ValueError("cells and sums do not match")
    if len(np.unique(cell)) < len(cell) or ((cell < 0) | (cell >= n_cells)).any():
        raise ValueError("a cell is duplicated or outside its table")
    n = sums[0]
    if not np.isfinite(sums).all() or (n < 1).any() or (n != np.floor(n)).any():
        raise ValueError("a cell has no valid number of rows")
    if wanted.limit is None and (sums[FIELDS.index("weight")] < 0).any():
        raise ValueError("a cell has a negative weight")


def _check_sums(plan: BinPlan, sums: Sums) -> None:
    """Raise ValueError unless the tables are consistent with each other."""
    if sums.n_dropped < 0:
        raise ValueError("the number of dropped rows is negative")
    by_key: dict[tuple[int, bool], AnyArray] = {}
    for wanted, table in zip(plan.wanted, sums.tables, strict=True):
        if int(table[0].sum()) != sums.n_rows:
            raise ValueError("a table does not contain all rows")
        sides = table[[0, FIELDS.index("weight")]].sum(axis=-1)
        first = by_key.setdefault((wanted.key, wanted.sided), sides)
        if wanted.limit is None and not np.allclose(sides, first, rtol=1e-6):
            raise ValueError("the tables of a class have different rows on its sides")


def _check_plan(plan: BinPlan) -> None:
    """Raise ValueError unless the bins of a plan are consistent."""
    if len({wanted.slot for wanted in plan.wanted}) < len(plan.wanted) or not plan.wanted:
        raise ValueError("a table is duplicated, or there are no tables")
    kinds = plan.kinds
    parts = {part_name(part) for part in plan.part.calendar if part[0] in plan.roles.v}
    if not set(kinds) <= {*plan.roles.v, *parts} or len(parts) < len(plan.part.calendar):
        raise ValueError("a variable has no column")
    for wanted in plan.wanted:
        _check_wanted(wanted, kinds, len(plan.classes))


def _check_wanted(wanted: Wanted, kinds: dict[str, Any], n_classes: int) -> None:
    fine, coarse = wanted.fine, wanted.coarse
    if not CORRECT <= wanted.key < n_classes or not set(wanted.names) <= set(kinds):
        raise ValueError("a table has an unknown claim or variable")
    if wanted.limit is not None and (len(wanted.names) != 1 or fine != coarse):
        raise ValueError("a table of bets has fine cells, or not one variable")
    if wanted.sided and (wanted.key == CORRECT or len(wanted.names) != 1):
        raise ValueError("only a claim about a class along one variable has sides")
    for bins in (fine, coarse):
        numeric = isinstance(bins, NumericBins)
        if numeric == (kinds.get("".join(wanted.names), "numeric") == "levels"):
            raise ValueError("bins do not match the kind of their variable")
        if isinstance(bins, NumericBins) and not all(a < b for a, b in pairwise(bins.cuts)):
            raise ValueError("cuts do not increase")
    if fine == coarse:
        return
    if not (isinstance(fine, NumericBins) and isinstance(coarse, NumericBins)):
        raise ValueError("levels cannot have two sets of bins")
    if not set(coarse.cuts) <= set(fine.cuts) or coarse.missing != fine.missing:
        raise ValueError("coarse bins do not consist of fine ones")


#: Files of collected statistics. Parquet files have the same entries in their metadata.
COLLECTED = Kind("collected statistics", "a file of collected statistics", 1, restored)
