"""Rows of any kind, read in batches: one class per engine, and which one data needs.

An engine is a `LazyRows`: it names its columns, counts its rows and yields batches, eager frames of
any library that narwhals supports. Rows in memory are a single batch. A *work* is called with a
batch and a number that is unique to it: that of its first row if the engine keeps the order of
rows, so that errors name rows. Works are plain values or functions of modules, because Spark
pickles them and sends them to its workers.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import narwhals as nw
from narwhals import dependencies as libraries

from varcal._files.dialect import UncertainDialectError
from varcal._files.formats import Source, same_columns, sources_in, sources_of, warn_how_read
from varcal._input.frames import Table
from varcal._input.variables import arrow_numbers
from varcal.exceptions import (
    InputError,
    MissingDependencyError,
    import_library,
    rows_numbered_from,
)

T = TypeVar("T")
Work = Callable[[Any, int], T]

#: Rows per batch: a megabyte per column of floats.
BATCH_ROWS = 1 << 17
#: Up to this many rows, rows are read into memory.
FEW_ROWS = 1_000_000
#: The same for the number of values in the requested columns (400 MB of floats).
FEW_VALUES = 50_000_000
#: Batches and files that PyArrow reads in advance. Its defaults (16 and 4) can hold whole files in
#: memory without being faster.
_BATCH_READAHEAD, _FRAGMENT_READAHEAD = 4, 1
#: Threads at work: more of them wait for the reader and for each other.
THREADS = min(os.cpu_count() or 1, 4)


class LazyRows(ABC):
    """Rows that an engine holds; an engine yields batches, and the rest follows."""

    columns: tuple[str, ...]
    #: The name of the engine in results, and the library of the frames that results return.
    engine: ClassVar[str] = "pyarrow"
    backend: str | None = "pyarrow"
    #: Whether the number of a batch is that of its first row, so that messages can name rows.
    row_numbers_known: ClassVar[bool] = True

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows."""

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an eager frame."""
        return joined([*self.batches(columns)])

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows, batch by batch and in order."""

    def select(self, columns: Sequence[str]) -> Self:
        """Return the same rows with some of their columns."""
        return replace(self, columns=tuple(columns))  # type: ignore[type-var]

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield the result of a work for each batch of rows, in order."""
        return map_batches(self.batches(columns), work)


def joined(frames: Sequence[Any]) -> Any:
    """Return the rows of several batches as one frame."""
    if not frames:
        raise InputError("data has no rows", "at least one row is needed", argument="data")
    if len(frames) == 1:
        return frames[0]
    return nw.concat([nw.from_native(frame, eager_only=True) for frame in frames]).to_native()


def fits_in_memory(n_rows: int, n_columns: int) -> bool:
    """Tell whether there are few enough rows to read them into memory."""
    return n_rows <= FEW_ROWS and n_rows * n_columns <= FEW_VALUES


def map_batches(batches: Iterable[Any], work: Work[T]) -> Iterator[T]:
    """Process batches in threads, a few at a time, and yield the results in order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.table({"x": [1, 2]}), pa.table({"x": [3]})]
    >>> list(map_batches(batches, lambda frame, start: (start, frame.num_rows)))
    [(0, 2), (2, 1)]
    """

    def numbered(batch: Any, start: int) -> T:
        with rows_numbered_from(start):
            return work(batch, start)

    start = 0
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for batch in batches:
                if len(batch):
                    waiting.append(pool.submit(numbered, batch, start))
                    start += len(batch)
                if len(waiting) > THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@dataclass(frozen=True, eq=False)
class MemoryRows(LazyRows):
    """The rows of a frame or a dict of columns: a single batch."""

    columns: tuple[str, ...]
    frame: Any
    backend: str | None = None

    engine: ClassVar[str] = "numpy"

    @classmethod
    def of(cls, data: Any, argument: str) -> MemoryRows:
        """Wrap the rows that an argument gives."""
        table = Table.of(data, argument)
        frame = dict(data) if isinstance(data, Mapping) else data
        return cls(table.columns, frame, table.backend)

    def count(self) -> int:
        """Return the number of rows."""
        return len(Table.of(self.frame, "data").column(self.columns[0], "data"))

    def read(self, columns: Sequence[str]) -> Any:
        """Return the frame."""
        return self.frame

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the frame."""
        yield self.frame

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield the result of a work for all rows; errors also say how many rows are at fault."""
        yield work(self.frame, 0)


#: For each library, the base class of the errors that it raises for data, files and queries.
_BASE_ERRORS = {
    "duckdb": "Error",
    "pyarrow": "ArrowException",
    "polars.exceptions": "PolarsError",
}


@contextmanager
def reading_rows(shown: str) -> Iterator[None]:
    """Turn the errors of a reader into an `InputError` that names the rows.

    Examples
    --------
    >>> with reading_rows("rows.parquet"):
    ...     raise OSError(5, "Input/output error")
    Traceback (most recent call last):
    varcal.exceptions.InputError: cannot read rows.parquet: Input/output error
    hint: check that the files are complete, and that the query runs on its own
    """
    loaded = [getattr(sys.modules.get(name), base, OSError) for name, base in _BASE_ERRORS.items()]
    try:
        yield
    except (OSError, *loaded) as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        raise InputError(
            f"cannot read {shown}: {reason.splitlines()[0]}",
            "check that the files are complete, and that the query runs on its own",
        ) from error


@dataclass(frozen=True, eq=False)
class ArrowRows(LazyRows):
    """The rows of a PyArrow dataset; `shown` is its name in messages."""

    columns: tuple[str, ...]
    dataset: Any
    shown: str = "the PyArrow dataset"

    def count(self) -> int:
        """Return the number of rows."""
        with reading_rows(self.shown):
            return int(self.dataset.count_rows())

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows, batch by batch and in order."""
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import dataset as ds  # noqa: PLC0415

        options: dict[str, Any] = {
            "batch_readahead": _BATCH_READAHEAD,
            "fragment_readahead": _FRAGMENT_READAHEAD,
        }
        if isinstance(getattr(self.dataset, "format", None), ds.ParquetFileFormat):
            options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False)
        with reading_rows(self.shown):
            scanner = self.dataset.scanner(columns=list(columns), batch_size=BATCH_ROWS, **options)
            for batch in scanner.to_batches():
                yield pa.Table.from_batches([batch])


@dataclass(frozen=True, eq=False)
class DuckRows(LazyRows):
    """The rows of a DuckDB relation; `shown` is the name of the relation or files in messages.

    DuckDB treats names that differ only by case as equal and renames one of them. Columns are
    therefore found by position.
    """

    columns: tuple[str, ...]
    relation: Any
    shown: str = "the DuckDB relation"

    engine: ClassVar[str] = "duckdb"

    def __post_init__(self) -> None:
        if not hasattr(self.relation, "to_arrow_reader"):
            raise MissingDependencyError(
                "reading a relation in batches needs a newer version of duckdb",
                "pip install -U duckdb",
            )

    @classmethod
    def of(cls, relation: Any) -> DuckRows:
        """Wrap a relation."""
        import_library("pyarrow", "reading a DuckDB relation")
        with reading_rows(cls.shown):
            rows = cls(tuple(relation.columns), relation)
        counts = Counter(name.casefold() for name in rows.columns)
        for name in rows.columns:
            if counts[name.casefold()] > 1:
                raise InputError(
                    f"the DuckDB relation has two columns of the same name: {name!r}",
                    "give each column its own name: SELECT … AS …",
                )
        return rows

    def count(self) -> int:
        """Return the number of rows."""
        with reading_rows(self.shown):
            return int(self.relation.aggregate("count(*)").fetchall()[0][0])

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows, batch by batch and in order."""
        import pyarrow as pa  # noqa: PLC0415

        with reading_rows(self.shown):
            for batch in self._selected(columns).to_arrow_reader(BATCH_ROWS):
                yield pa.Table.from_batches([batch]).rename_columns(list(columns))

    def _selected(self, columns: Sequence[str]) -> Any:
        own = self.relation.columns
        quoted = [_quoted(own[self.columns.index(name)]) for name in columns]
        # c0, c1, … are different names for DuckDB even if those of the columns are not.
        return self.relation.project(", ".join(f"{name} AS c{k}" for k, name in enumerate(quoted)))


def _quoted(name: str) -> str:
    return f'"{name.replace(chr(34), 2 * chr(34))}"'


@dataclass(frozen=True, eq=False)
class PolarsRows(LazyRows):
    """The rows of a polars LazyFrame, read by its streaming engine."""

    columns: tuple[str, ...]
    frame: Any
    shown: ClassVar[str] = "the polars LazyFrame"

    engine: ClassVar[str] = "polars"
    backend: str | None = "polars"

    @classmethod
    def of(cls, frame: Any) -> PolarsRows:
        """Wrap a lazy frame."""
        if not hasattr(frame, "collect_batches"):
            raise MissingDependencyError(
                "reading a lazy frame in batches needs a newer version of polars",
                "pip install -U polars",
            )
        with reading_rows(cls.shown):
            return cls(tuple(frame.collect_schema().names()), frame)

    def count(self) -> int:
        """Return the number of rows."""
        import polars as pl  # noqa: PLC0415

        with reading_rows(self.shown):
            return int(self.frame.select(pl.len()).collect(engine="streaming").item())

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows, batch by batch and in order."""
        with reading_rows(self.shown):
            yield from self._selected(columns).collect_batches(chunk_size=BATCH_ROWS)

    def _selected(self, columns: Sequence[str]) -> Any:
        from polars import selectors  # noqa: PLC0415

        # select() would read a name such as "*" or "^a$" as a pattern.
        return self.frame.select(selectors.by_name(*columns))


@dataclass(frozen=True, eq=False)
class FileRows(LazyRows):
    """The rows of CSV, TSV, JSON lines and Arrow files, with types that fit all of them.

    Text files do not declare types, and those of a sample may be wrong for other rows. The types
    are therefore determined from all rows before any row is used.
    """

    columns: tuple[str, ...]
    sources: tuple[Source, ...]

    @cached_property
    def schema(self) -> Any:
        """The columns, with types that fit all their values."""
        from varcal._files.read_rows import common_types  # noqa: PLC0415  loads pyarrow

        return common_types(self.sources, self.columns)

    def count(self) -> int:
        """Return the number of rows."""
        return sum(len(batch) for batch in self.batches(self.columns[:1]))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows, batch by batch and in order."""
        import pyarrow as pa  # noqa: PLC0415

        from varcal._files.read_rows import batches_of  # noqa: PLC0415

        schema = pa.schema([self.schema.field(name) for name in columns])
        return (pa.Table.from_batches([batch]) for batch in batches_of(self.sources, schema))


def lazy_rows(data: Any) -> LazyRows | None:
    """Return data that is not in memory as lazy rows, and None for data in memory.

    Checking the type of `data` does not import any library.

    Examples
    --------
    >>> lazy_rows({"y": [0, 1]}) is None
    True
    """
    if isinstance(data, LazyRows):
        return data
    if is_paths(data):
        return open_files(data)
    if libraries.is_duckdb_relation(data):
        return DuckRows.of(data)
    if libraries.is_polars_lazyframe(data):
        return PolarsRows.of(data)
    if type(data).__module__.startswith("pyarrow") and hasattr(data, "scanner"):
        return ArrowRows(tuple(data.schema.names), data)
    if libraries.is_pyspark_dataframe(data) or libraries.is_pyspark_connect_dataframe(data):
        from varcal._sums.spark import SparkRows  # noqa: PLC0415

        return SparkRows.of(data)
    return None


def is_paths(data: object) -> bool:
    """Tell whether data is a path, or a list of them."""
    several = data if isinstance(data, list | tuple) and data else [data]
    return all(isinstance(each, str | PathLike) for each in several)


def is_folder(given: object) -> bool:
    """Tell whether a value is the path of a folder."""
    return isinstance(given, str | PathLike) and bool(str(given)) and os.path.isdir(given)


#: The beginning of a query. A string that matches is a path only if there is such a file.
_QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)


def open_files(given: str | PathLike[str] | Sequence[str | PathLike[str]]) -> LazyRows:
    """Open a file, a glob, a list of them, or a folder of Parquet files."""
    if isinstance(given, str) and _QUERY.match(given) and not glob.glob(given):
        raise InputError(
            f"data is a query without a connection: {given!r}",
            "pass connection.sql(query)",
            argument="data",
        )
    if is_folder(given):
        return folder_rows(cast(Any, given))
    try:
        sources = sources_of(given)
    except UncertainDialectError as error:
        raise InputError(
            error.message,
            "read it with a library of data frames, as in pandas.read_csv(path, sep=…, "
            "decimal=…, encoding=…), and pass the frame as data",
            argument="data",
        ) from None
    warn_how_read(sources)
    return rows_of_files(sources, partitioned=True)


def folder_rows(folder: str | PathLike[str], *, arrow: bool = False) -> LazyRows:
    """Return the rows of the Parquet files of a folder, partitioned or not."""
    return _parquet_rows(sources_in(folder), str(Path(folder)), partitioned=True, arrow=arrow)


def rows_of_files(sources: Sequence[Source], *, partitioned: bool = False) -> LazyRows:
    """Return the rows of files; if `partitioned`, folders such as ``day=3`` add columns.

    DuckDB reads partitioned Parquet files if it is installed, PyArrow all others.
    """
    if all(source.format == "parquet" for source in sources):
        return _parquet_rows(sources, "", partitioned=partitioned, arrow=not partitioned)
    return FileRows(tuple(same_columns(sources)), tuple(sources))


def _parquet_rows(
    sources: Sequence[Source], base: str, *, partitioned: bool, arrow: bool
) -> DuckRows | ArrowRows:
    """Read Parquet files as one.

    DuckDB is used if all files have the same types, because it casts them to those of the first,
    and no time zone but UTC, because it forgets them. Only folders below `base` add columns.
    """
    names = same_columns(sources)

    from varcal._files.read_rows import common_types  # noqa: PLC0415  loads pyarrow

    first, *others = (source.schema for source in sources)
    alike = all(one.names == first.names and one.types == first.types for one in others)
    schema = common_types(sources, names).remove_metadata()
    keys = _keys(sources, base, names) if partitioned else ()
    zones = {one.tz for one in schema.types if getattr(one, "tz", None)}
    paths = [str(source.path) for source in sources]
    shown = sources[0].shown + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")
    with reading_rows(shown):
        if not arrow and alike and not zones - {"UTC"}:
            try:
                relation = _duck_relation(paths, len(schema.names), keys, shown)
                return DuckRows((*schema.names, *keys), relation, shown)
            except MissingDependencyError:
                pass
        return ArrowRows((*schema.names, *keys), _arrow_dataset(paths, schema, keys, base), shown)


def _duck_relation(paths: list[str], n_own: int, keys: Sequence[str], shown: str) -> Any:
    """Open Parquet files with DuckDB."""
    duckdb = import_library("duckdb", f"reading {shown} with DuckDB")
    # The statistics in Parquet files ignore NaN; DuckDB would infer that there is none.
    query = f"FROM read_parquet(?, hive_partitioning={bool(keys)}, can_have_nan=true)"
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")  # keep standard output clean
    connection.execute("SET TimeZone = 'UTC'")  # not that of this computer
    # Prefetching holds whole groups of rows in memory, and costs more time than it saves.
    connection.execute("SET disable_parquet_prefetching = true")
    # The other half of the processors is left for summing the rows.
    connection.execute(f"SET threads = {max(1, (os.cpu_count() or 1) // 2)}")
    relation = connection.sql(query, params=[paths])
    # The columns of partitions come last, including those of folders above the one given.
    own = [*relation.columns[:n_own], *keys]
    return relation.project(", ".join(map(_quoted, own)))


def _arrow_dataset(paths: list[str], schema: Any, keys: Sequence[str], base: str) -> Any:
    """Open Parquet files with PyArrow; columns are cast to types that fit all values."""
    from pyarrow import dataset  # noqa: PLC0415

    options: dict[str, Any] = {"format": "parquet"}
    if keys:
        options |= {"partitioning": "hive", "partition_base_dir": base or None}
        inferred = dataset.dataset(paths, **options).schema
        for key in keys:
            schema = schema.append(inferred.field(key))
    return dataset.dataset(paths, schema=schema, **options)


def _keys(sources: Sequence[Source], base: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that folders add, which must be the same for all files."""
    first = _keys_of(sources[0], base)
    for source in sources:
        own = _keys_of(source, base)
        if sorted(own) != sorted(first):
            added = [", ".join(map(repr, each)) or "no column" for each in (own, first)]
            raise InputError(
                f"the folders of {source.shown} add {added[0]}, those of {sources[0].shown} "
                f"{added[1]}",
                "pass files with the same partitions, or the files of one folder at a time",
            )
    # DuckDB treats names that differ only by case as equal.
    taken = {name.casefold(): name for name in names}
    for key in first:
        if key.casefold() in taken:
            raise InputError(
                f"a folder of {sources[0].shown} adds a column {key!r}, but there already is a "
                f"column {taken[key.casefold()]!r}",
                "rename the folders or the column, or pass pyarrow.dataset.dataset(path), which "
                "ignores the names of folders",
            )
        taken[key.casefold()] = key
    return first


def _keys_of(source: Source, base: str) -> tuple[str, ...]:
    below = source.path.parent.relative_to(base) if base else source.path.parent
    pairs = (part.partition("=") for part in Path(below).parts)
    return tuple(key for key, equals, _ in pairs if key and equals)


def batch_columns(frame: Any) -> Any:
    """Return a PyArrow table or a polars frame as a dict of columns, and anything else as it is.

    Integers and floats without nulls become arrays, without a copy where they are in one chunk;
    other columns stay what they are. Reading arrays costs much less than reading series, which
    matters for thousands of batches.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch_columns(pa.table({"x": [1.5, 2.5]}))
    {'x': array([1.5, 2.5])}
    """
    if libraries.is_pyarrow_table(frame):
        return dict(zip(frame.column_names, map(_from_arrow, frame.columns), strict=True))
    if libraries.is_polars_dataframe(frame):
        return {column.name: _from_polars(column) for column in frame.get_columns()}
    return frame


def _from_arrow(column: Any) -> Any:
    from pyarrow import types  # noqa: PLC0415

    is_plain = types.is_integer(column.type) or types.is_floating(column.type)
    return arrow_numbers(column) if is_plain and not column.null_count else column


def _from_polars(column: Any) -> Any:
    is_plain = column.dtype.is_integer() or column.dtype.is_float()
    is_wide = str(column.dtype) in ("Int128", "UInt128")
    return column if not is_plain or is_wide or column.null_count() else column.to_numpy()
