"""Adding calibrated probabilities to files and lazy rows: `apply`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from varcal._arrays import Floats
from varcal._files.atomic import refuse_input, whole_file
from varcal._files.dialect import Dialect, Stated
from varcal._files.source import (
    DELIMITERS,
    Source,
    format_of,
    same_columns,
    sources_of,
    warn_how_read,
)
from varcal._options import (
    check_arguments,
    check_names,
    check_one_line,
    check_path,
    check_text,
    or_none,
)
from varcal._sums.sources import lazy_rows
from varcal._text import counted
from varcal.calibrators.apply_batch import (
    added_columns,
    calibration_of,
    calibrator_of,
    new_columns,
    score_columns,
    variable_columns,
)
from varcal.exceptions import InputError, import_library, rows_numbered_from

if TYPE_CHECKING:
    import pyarrow as pa

    from varcal._sums.sources import LazyRows
    from varcal.calibrators import Calibrator


_CHECKS = {
    "out": or_none(check_path),
    "p": or_none(check_names),
    "X": or_none(check_names),
    "column": check_one_line,
    "format": or_none(check_text),
    "sep": or_none(check_text),
    "decimal": or_none(check_text),
    "encoding": or_none(check_text),
}


@dataclass(frozen=True)
class Applied:
    """A summary of what `apply` wrote.

    Attributes
    ----------
    out : str
        The path of the file.
    n_rows : int
        The number of rows.
    columns : tuple of str
        The new columns.
    """

    out: str
    n_rows: int
    columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self) | {"columns": list(self.columns)}


@overload
def apply(
    calibrator: Calibrator | str | PathLike[str],
    source: object,
    out: str | PathLike[str],
    *,
    p: str | Sequence[str] | None = ...,
    X: str | Sequence[str] | None = ...,
    column: str = ...,
    format: str | None = ...,
    sep: str | None = ...,
    decimal: str | None = ...,
    encoding: str | None = ...,
) -> Applied: ...


@overload
def apply(
    calibrator: Calibrator | str | PathLike[str],
    source: object,
    out: None = ...,
    *,
    p: str | Sequence[str] | None = ...,
    X: str | Sequence[str] | None = ...,
    column: str = ...,
) -> Any: ...


def apply(
    calibrator: Calibrator | str | PathLike[str],
    source: object,
    out: str | PathLike[str] | None = None,
    *,
    p: str | Sequence[str] | None = None,
    X: str | Sequence[str] | None = None,
    column: str = "p_calibrated",
    format: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Any:
    r"""Add calibrated probabilities to files or lazy rows, in chunks.

    Memory does not grow with the number of rows. All other columns are kept as they are; from CSV
    to CSV their text does not change, nor do separator, decimal mark, encoding and line ends. The
    output is written completely or not at all. It may replace `source`, but never the file of the
    calibrator.

    Parameters
    ----------
    calibrator : Calibrator or path
        A fitted calibrator, or the path of a saved one.
    source : path, glob, a list of them, folder, or lazy rows
        CSV, TSV and JSON lines (each also gzipped), Parquet, Arrow or Feather; a folder of
        Parquet files, partitioned or not; a DuckDB relation, a polars lazy frame, a PyArrow
        dataset or a Spark data frame.
    out : path
        The file to write all rows to; its extension determines the format. None for a Spark data
        frame, which Spark itself writes.
    p, X : column name or names, optional
        The columns of uncalibrated probabilities and of variables, in the order of the fit. By
        default those with the same names as in the fit.
    column : str
        The name of the new column, the calibrated probability of the second class. With more than
        two classes there is one new column per class, named ``f"{column}_{label}"``.
    format : {"csv", "tsv", "parquet", "arrow", "jsonl"}, optional
        The format of `source`, if it cannot be inferred from the file extension.
    sep, decimal, encoding : str, optional
        How text files are written: the separator (a character, or "tab", "semicolon", …), the
        decimal mark and the encoding. By default they are detected; a warning says how a file is
        read that is not comma-separated UTF-8 with decimal points, and an error asks for what is
        not certain.

    Returns
    -------
    Applied or pyspark.sql.DataFrame
        A summary of what was written. For a Spark data frame, a new data frame with the new
        columns, which are computed when Spark needs them.

    Raises
    ------
    InputError
        If a file cannot be read or written, if a column is missing, if a new column already
        exists, or if `out` is the file of the calibrator.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import varcal as vc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "new.csv").write_text("id,p,age\n007,0.9,31\n008,0.8,54\n")
    >>> sim = vc.datasets.make_gap(500)
    >>> cal = vc.TreeCalibrator().fit(sim.p, sim.y, {"age": 20 + 60 * sim.v})
    >>> vc.apply(cal, folder / "new.csv", folder / "out.csv", p="p").n_rows
    2
    >>> (folder / "out.csv").read_text().splitlines()[0]
    'id,p,age,p_calibrated'
    """
    check_arguments(_CHECKS, locals())
    if out is not None:
        format_of(out)  # raise an error before anything slow
        check_target(out, calibrator)
    rows = _as_lazy_rows(source)
    if rows is not None and rows.engine == "spark":
        from varcal.calibrators.apply_spark import apply_in_spark  # noqa: PLC0415

        if out is not None:
            raise InputError(
                f"out is {str(out)!r}, but source is a Spark data frame",
                "leave out= out, and let Spark write the result: .write.parquet(path)",
                argument="out",
            )
        return apply_in_spark(calibrator, cast(Any, rows), p, X, column)
    if out is None:
        raise InputError("out is None", "give the path of the file to write", argument="out")
    if rows is not None:
        # The files of a PyArrow dataset are known, and those of a folder.
        files = getattr(getattr(rows, "dataset", None), "files", ())
        refuse_input(out, "an input file", *files)
        return _apply_lazily(calibrator, rows, out, p, X, column)
    sources = sources_of(cast(Any, source), format, Stated(sep, decimal, encoding))
    warn_how_read(sources)
    return apply_to(calibrator, sources, out, p=p, X=X, column=column)


def check_target(out: str | PathLike[str], calibrator: object) -> None:
    """Refuse to write onto the file of the calibrator, whatever name it is given by."""
    if isinstance(calibrator, str | PathLike):
        refuse_input(out, "the file of the calibrator", calibrator)


def apply_to(
    calibrator: Calibrator | str | PathLike[str],
    sources: tuple[Source, ...],
    out: str | PathLike[str],
    *,
    p: str | Sequence[str] | None,
    X: str | Sequence[str] | None,
    column: str,
) -> Applied:
    """Add calibrated probabilities to a list of files; see `apply`."""
    pa = import_library("pyarrow", f"reading {sources[0].shown}")

    from varcal._files.read_rows import chunks_of, common_types  # noqa: PLC0415  loads pyarrow
    from varcal._files.write_rows import output_dialect  # noqa: PLC0415

    check_target(out, calibrator)
    if len(sources) > 1:
        refuse_input(out, "an input file", *(source.path for source in sources))
    fitted = calibrator_of(calibrator)
    out_format = format_of(out)[0]
    dialect = output_dialect(sources, out_format)
    scores, variables = score_columns(fitted, p), variable_columns(fitted, X)
    used = list(dict.fromkeys([*scores, *variables.values()]))
    names = same_columns(sources, used)
    added = added_columns(fitted, column, names, sources[0].shown)
    as_written = all(format in DELIMITERS for format in (out_format, *(s.format for s in sources)))
    types = common_types(
        sources,
        used if as_written else names,
        _columns_of_kind(fitted, variables, "levels"),
        _columns_of_kind(fitted, variables, "datetime"),
    )
    kept = pa.schema([(name, pa.string()) for name in names]) if as_written else types
    schema = pa.schema([*kept, *((name, pa.float64()) for name in added)], metadata=kept.metadata)
    needed = pa.schema([types.field(name) for name in used])

    def batches() -> Iterator[Any]:
        for file, row, all_columns, some in chunks_of(sources, kept, needed, as_written=as_written):
            q = _calibrate(fitted, pa.Table.from_batches([some]), scores, variables, file, row)
            columns = [*all_columns.columns, *map(_arrow_column, new_columns(q, added))]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    n_rows = _write(out, schema, batches(), sources[0].shown, dialect)
    return Applied(str(out), n_rows, added)


def _write(
    out: str | PathLike[str],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    shown: str,
    dialect: Dialect | None = None,
) -> int:
    """Write all rows or none, and return how many there are."""
    from varcal._files.write_rows import open_sink  # noqa: PLC0415  loads pyarrow

    n_rows = 0
    with whole_file(out) as draft, open_sink(draft, *format_of(out), schema, dialect) as write:
        for batch in counted(batches, "Applying", len):
            write(batch)
            n_rows += len(batch)
        if not n_rows:
            raise InputError(f"{shown} has no rows", "at least one row is needed")
    return n_rows


def _arrow_column(values: Floats) -> Any:
    """Return doubles as an Arrow array; `pyarrow.array` would load pandas."""
    import pyarrow as pa  # noqa: PLC0415

    held = pa.py_buffer(np.ascontiguousarray(values, dtype=np.float64))
    return pa.Array.from_buffers(pa.float64(), len(values), [None, held])


def _calibrate(
    fitted: Calibrator,
    table: pa.Table,
    scores: tuple[str, ...],
    variables: dict[str, str],
    source: Source,
    first_row: int,
) -> Any:
    """Return calibrated probabilities, one column per class; errors name the row of the file."""
    v = {name: table.column(column) for name, column in variables.items()}
    try:
        with rows_numbered_from(first_row):
            return fitted.predict_proba(table.select(list(scores)), v or None)
    except InputError as error:
        raise error.reworded(f"{source.shown}: {error.message}") from None


def _columns_of_kind(fitted: Calibrator, variables: dict[str, str], kind: str) -> frozenset[str]:
    """Return the columns of variables of one kind; for levels, only those whose levels are text."""
    schema = getattr(fitted, "schema_", None)
    if schema is None:
        return frozenset()
    return frozenset(
        variables[name]
        for name, own_kind, levels in zip(schema.names, schema.kinds, schema.levels, strict=True)
        if own_kind == kind and all(isinstance(level, str) for level in levels)
    )


def _apply_lazily(
    calibrator: Calibrator | str | PathLike[str],
    rows: LazyRows,
    out: str | PathLike[str],
    p: str | Sequence[str] | None,
    X: str | Sequence[str] | None,
    column: str,
) -> Applied:
    import_library("pyarrow", f"writing {str(out)!r}")

    work = calibration_of(calibrator, rows, p, X, column)
    tables = rows.map(rows.columns, work)
    first = next(tables, None)
    if first is None:
        raise InputError("source has no rows", "at least one row is needed", argument="source")
    cast_tables = (table.cast(first.schema) for table in chain([first], tables))
    batches = chain.from_iterable(table.to_batches() for table in cast_tables)
    return Applied(str(out), _write(out, first.schema, batches, "source"), work.added)


def _as_lazy_rows(source: Any) -> LazyRows | None:
    """Wrap lazy rows and folders; return None for files, which are streamed to keep their text."""
    if isinstance(source, str | PathLike):
        from varcal._sums.files import folder_files, is_folder  # noqa: PLC0415

        if not is_folder(source):
            return None
        from varcal._sums.sources import ArrowRows  # noqa: PLC0415

        return ArrowRows.of_files(folder_files(source))
    if isinstance(source, list | tuple) and all(
        isinstance(path, str | PathLike) for path in source
    ):
        return None
    rows = lazy_rows(source)
    if rows is None:
        raise InputError(
            f"source is a {type(source).__name__}, neither files nor lazy rows",
            "for rows in memory call calibrator.predict_proba",
            argument="source",
        )
    return rows
