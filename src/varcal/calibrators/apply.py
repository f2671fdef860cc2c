"""Adding calibrated probabilities to files and lazy rows of any size: `apply`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from varcal._arrays import Floats
from varcal._files.atomic import refuse_input, whole_file
from varcal._files.dialect import Dialect, Stated
from varcal._files.formats import (
    DELIMITERS,
    Source,
    format_of,
    same_columns,
    sources_of,
    warn_how_read,
)
from varcal._files.saved import load_kind
from varcal._options import (
    check_arguments,
    check_names,
    check_one_line,
    check_path,
    check_text,
    or_none,
)
from varcal._sums.sources import LazyRows, folder_rows, is_folder, is_paths, lazy_rows
from varcal._text import counted
from varcal.exceptions import InputError, import_library, rows_numbered_from

if TYPE_CHECKING:
    import pyarrow as pa

    from varcal.calibrators import Calibrator


_CHECKS = {
    "out": check_path,
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


def apply(
    calibrator: Calibrator | str | PathLike[str],
    source: object,
    out: str | PathLike[str],
    *,
    p: str | Sequence[str] | None = None,
    X: str | Sequence[str] | None = None,
    column: str = "p_calibrated",
    format: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Applied:
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
        Parquet files, partitioned or not; a DuckDB relation, a polars lazy frame or a PyArrow
        dataset. In Spark, run the query of ``to_sql("spark")``.
    out : path
        The file to write all rows to; its extension determines the format.
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
    Applied
        A summary of what was written.

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
    >>> cal = vc.calibrators.TreeCalibrator().fit(sim.p, sim.y, {"age": 20 + 60 * sim.v})
    >>> vc.apply(cal, folder / "new.csv", folder / "out.csv", p="p").n_rows
    2
    >>> (folder / "out.csv").read_text().splitlines()[0]
    'id,p,age,p_calibrated'
    """
    check_arguments(_CHECKS, locals())
    format_of(out)  # raise an error before anything slow
    _check_target(out, calibrator)
    rows = None if _are_files(source) else _lazy(source)
    if rows is None:  # files are streamed, so that their text stays as it is written
        sources = sources_of(cast(Any, source), format, Stated(sep, decimal, encoding))
        warn_how_read(sources)
        return apply_to(calibrator, sources, out, p=p, X=X, column=column)
    # The files of a PyArrow dataset are known, and those of a folder.
    refuse_input(out, "an input file", *getattr(getattr(rows, "dataset", None), "files", ()))
    import_library("pyarrow", f"writing {str(out)!r}")
    return _apply_lazily(Calibration.of(calibrator, p, X, column), rows, out)


def _are_files(source: object) -> bool:
    """Tell whether a source is paths of files, also an empty list of them."""
    none = isinstance(source, list | tuple) and not source
    return none or (is_paths(source) and not is_folder(source))


def _lazy(source: Any) -> LazyRows:
    """Return lazy rows, or those of a folder; refuse rows in memory."""
    rows = folder_rows(source, arrow=True) if is_folder(source) else lazy_rows(source)
    if rows is None:
        raise InputError(
            f"source is a {type(source).__name__}, neither files nor lazy rows",
            "for rows in memory call calibrator.predict_proba",
            argument="source",
        )
    if rows.engine == "spark":
        raise InputError(
            "source is a Spark data frame",
            'let Spark calibrate it, by the query of calibrator.to_sql("spark", keep=[…])',
            argument="source",
        )
    return rows


def _check_target(out: str | PathLike[str], calibrator: object) -> None:
    """Refuse to write onto the file of the calibrator, whatever name it is given by."""
    if isinstance(calibrator, str | PathLike):
        refuse_input(out, "the file of the calibrator", calibrator)


@dataclass(frozen=True)
class Calibration:
    """The work that calibrates a batch of rows.

    Attributes
    ----------
    fitted : Calibrator
        The calibrator.
    scores : tuple of str
        The columns of uncalibrated probabilities.
    variables : dict
        The column of each variable of the fit.
    added : tuple of str
        The names of the new columns.
    """

    fitted: Calibrator
    scores: tuple[str, ...]
    variables: dict[str, str]
    added: tuple[str, ...]

    @classmethod
    def of(
        cls,
        calibrator: Calibrator | str | PathLike[str],
        p: str | Sequence[str] | None,
        X: str | Sequence[str] | None,
        column: str,
    ) -> Calibration:
        """Find the columns that a calibrator reads, and name the new ones."""
        from varcal.calibrators import Calibrator  # noqa: PLC0415

        fitted = calibrator
        if not isinstance(fitted, Calibrator):
            fitted = load_kind(check_path("calibrator", calibrator), "calibrator")
        scores = fitted.score_names_ if p is None else _tuple(p)
        if not scores:
            raise InputError(
                "the columns of the probabilities are unknown: the calibrator was fitted on an "
                "array",
                "name them with {p}",
                argument="p",
                settings={"p": ...},
            )
        own = fitted._schema.columns
        names = own if X is None or not own else _tuple(X)
        if len(names) != len(own):
            raise InputError(
                f"X names {len(names)} columns, but the calibrator was fitted on {len(own)}: "
                + ", ".join(map(repr, own)),
                "name one column per variable, in that order",
                argument="X",
            )
        classes = fitted.classes_
        added = (column,) if len(classes) == 2 else tuple(f"{column}_{label}" for label in classes)
        return cls(fitted, scores, dict(zip(own, names, strict=True)), added)

    @property
    def used(self) -> list[str]:
        """The columns that are read."""
        return list(dict.fromkeys([*self.scores, *self.variables.values()]))

    def check(self, known: Sequence[str], shown: str) -> None:
        """Refuse rows that lack a column that is read, or have one of the new ones."""
        for name in self.used:
            if name not in known:
                raise InputError.no_column(name, known, shown)
        for name in self.added:
            if name in known:
                raise InputError(
                    f"{shown} already has a column {name!r}",
                    "choose another name for the new column with {column}",
                    argument="column",
                    settings={"column": ...},
                )

    def columns_of_kind(self, kind: str) -> frozenset[str]:
        """Return the columns of variables of one kind; of levels, only those that are text."""
        schema = self.fitted._schema
        every = zip(schema.columns, schema.kinds, schema.levels, strict=False)
        return frozenset(
            self.variables[name]
            for name, own_kind, levels in every
            if own_kind == kind and all(isinstance(level, str) for level in levels)
        )

    def new_columns(self, table: pa.Table) -> list[Any]:
        """Return the calibrated probabilities of rows."""
        v = {name: table.column(column) for name, column in self.variables.items()}
        q = self.fitted.predict_proba(table.select(list(self.scores)), v or None)
        # The probability of the second class, or of every class of more than two.
        return list(map(_arrow_column, [q[:, 1]] if len(self.added) == 1 else q.T))

    def __call__(self, frame: Any, start: int) -> pa.Table:
        """Add calibrated probabilities to the columns of a batch."""
        import narwhals as nw  # noqa: PLC0415

        table: pa.Table = nw.from_native(frame, eager_only=True).to_arrow()
        for name, column in zip(self.added, self.new_columns(table), strict=True):
            table = table.append_column(name, column)
        return table


def _tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


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

    _check_target(out, calibrator)
    if len(sources) > 1:
        refuse_input(out, "an input file", *(source.path for source in sources))
    work = Calibration.of(calibrator, p, X, column)
    out_format = format_of(out)[0]
    dialect = output_dialect(sources, out_format)
    names = same_columns(sources, work.used)
    work.check(names, sources[0].shown)
    as_written = all(format in DELIMITERS for format in (out_format, *(s.format for s in sources)))
    texts, dates = (work.columns_of_kind(kind) for kind in ("levels", "datetime"))
    types = common_types(sources, work.used if as_written else names, texts, dates)
    kept = pa.schema([(name, pa.string()) for name in names]) if as_written else types
    new = [(name, pa.float64()) for name in work.added]
    schema = pa.schema([*kept, *new], metadata=kept.metadata)
    needed = pa.schema([types.field(name) for name in work.used])

    def batches() -> Iterator[Any]:
        for file, row, all_columns, some in chunks_of(sources, kept, needed, as_written=as_written):
            try:
                with rows_numbered_from(row):
                    found = work.new_columns(pa.Table.from_batches([some]))
            except InputError as error:
                raise error.reworded(f"{file.shown}: {error.message}") from None
            yield pa.RecordBatch.from_arrays([*all_columns.columns, *found], schema=schema)

    n_rows = _write(out, schema, batches(), sources[0].shown, dialect)
    return Applied(str(out), n_rows, work.added)


def _apply_lazily(work: Calibration, rows: LazyRows, out: str | PathLike[str]) -> Applied:
    work.check(rows.columns, "source")
    tables = rows.map(rows.columns, work)
    first = next(tables, None)
    if first is None:
        raise InputError("source has no rows", "at least one row is needed", argument="source")
    cast_tables = (table.cast(first.schema) for table in chain([first], tables))
    batches = chain.from_iterable(table.to_batches() for table in cast_tables)
    return Applied(str(out), _write(out, first.schema, batches, "source"), work.added)


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
