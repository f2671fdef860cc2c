"""Applying a saved calibrator to files of any size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from varcal._files import whole_file
from varcal._progress import counted
from varcal._sources import DELIMITERS, Source, format_of, sources_of
from varcal.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from varcal._streams import Chunk
    from varcal.calibrators import Calibrator


@dataclass(frozen=True)
class Applied:
    """What was written.

    Attributes
    ----------
    out : str
        The file.
    n_rows : int
        Its rows.
    columns : tuple of str
        The columns that were added.
    """

    out: str
    n_rows: int
    columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self) | {"columns": list(self.columns)}


def apply(
    calibrator: Calibrator | str | PathLike[str],
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    *,
    p: str | Sequence[str] | None = None,
    v: str | Sequence[str] | None = None,
    column: str = "p_calibrated",
    format: str | None = None,
) -> Applied:
    r"""Add calibrated probabilities to files, a chunk at a time.

    Memory does not depend on the number of rows. All other columns stay as they are, from CSV to
    CSV letter by letter. The output is written whole or not at all.

    Parameters
    ----------
    calibrator : Calibrator or path
        Fitted, or where it was saved.
    source : path, glob, or a list of them
        CSV, TSV and JSON lines (each also gzipped), Parquet, Arrow or Feather.
    out : path
        One file for all rows; its ending says the format.
    p, v : column name or names, optional
        The uncalibrated probabilities and the variables, in the order of the fit; by default the
        columns of the names that they had there.
    column : str
        The new column: the calibrated probability of the second class. With more than two
        classes, one a class, called ``f"{column}_{label}"``.
    format : {"csv", "tsv", "parquet", "arrow", "jsonl"}, optional
        That of `source`, where its ending does not tell.

    Returns
    -------
    Applied

    Raises
    ------
    InputError
        If a file cannot be read or written, if a column is not there, or if one of the new name
        is there already.

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
    format_of(out)  # before anything slow
    return apply_to(calibrator, sources_of(source, format), out, p=p, v=v, column=column)


def apply_to(
    calibrator: Calibrator | str | PathLike[str],
    sources: tuple[Source, ...],
    out: str | PathLike[str],
    *,
    p: str | Sequence[str] | None,
    v: str | Sequence[str] | None,
    column: str,
) -> Applied:
    """Add calibrated probabilities to files that are already found; see `apply`."""
    from varcal._streams import RowStream  # noqa: PLC0415  pyarrow loads when first used
    from varcal.calibrators import Calibrator, load_calibrator  # noqa: PLC0415

    fitted = calibrator if isinstance(calibrator, Calibrator) else load_calibrator(calibrator)
    out_format, gzipped = format_of(out)
    scores, variables = _score_columns(fitted, p), _variable_columns(fitted, v)
    rows = RowStream(
        sources,
        tuple(dict.fromkeys([*scores, *variables.values()])),
        as_text=out_format in DELIMITERS,
        texts=_named(fitted, variables, "levels"),
        instants=_named(fitted, variables, "datetime"),
    )
    added = _added(fitted, column)
    for name in added:
        if name in rows.schema.names:
            raise InputError(
                f"{sources[0].shown} has a column {name!r} already",
                "choose another name for the new one with column=",
            )
    with whole_file(out) as draft:
        n_rows = _write(draft, out_format, gzipped, rows, fitted, scores, variables, added)
    return Applied(str(out), n_rows, added)


def _write(
    draft: Any,
    format: str,
    gzipped: bool,
    rows: Any,
    fitted: Calibrator,
    scores: tuple[str, ...],
    variables: dict[str, str],
    added: tuple[str, ...],
) -> int:
    import pyarrow as pa  # noqa: PLC0415

    from varcal._sinks import open_sink  # noqa: PLC0415

    schema: pa.Schema = rows.schema
    for name in added:
        schema = schema.append(pa.field(name, pa.float64()))
    n_rows = 0
    chunks: Iterator[Chunk] = iter(rows)
    with open_sink(draft, format, gzipped, schema) as sink:
        for chunk in counted(chunks, "Applying", lambda one: one.kept.num_rows):
            answer = _answer(fitted, chunk, scores, variables)
            new = [answer[:, 1]] if len(added) == 1 else list(answer.T)
            columns = [*chunk.kept.columns, *(pa.array(each) for each in new)]
            sink.write(pa.RecordBatch.from_arrays(columns, schema=schema))
            n_rows += chunk.kept.num_rows
    if not n_rows:
        raise InputError(f"{rows.sources[0].shown} has no rows", "at least one row is needed")
    return n_rows


def _answer(
    fitted: Calibrator, chunk: Chunk, scores: tuple[str, ...], variables: dict[str, str]
) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    table = pa.table(chunk.used)
    v = {name: table.column(own) for name, own in variables.items()}
    try:
        return fitted.predict_proba(table.select(list(scores)), v or None)
    except InputError as error:
        # Rows are counted within the file, not within the chunk.
        message = re.sub(
            r" at row (\d+)", lambda m: f" at row {int(m[1]) + chunk.first_row}", error.message
        )
        raise InputError(f"{chunk.source.shown}: {message}", error.hint) from None


def _score_columns(fitted: Calibrator, p: str | Sequence[str] | None) -> tuple[str, ...]:
    names = fitted.score_names_ if p is None else (p,) if isinstance(p, str) else tuple(p)
    if not names:
        raise InputError(
            "which columns hold the probabilities is not known: the calibrator was fitted on an "
            "array",
            "name them with p=",
        )
    return names


def _variable_columns(fitted: Calibrator, v: str | Sequence[str] | None) -> dict[str, str]:
    """Return the column of the file for each variable of the fit."""
    schema = getattr(fitted, "schema_", None)
    own: tuple[str, ...] = () if schema is None else schema.names
    names = own if v is None else (v,) if isinstance(v, str) else tuple(v)
    if not own:
        return {}
    if len(names) != len(own):
        raise InputError(
            f"v names {len(names)} columns, but the calibrator was fitted on {len(own)}: "
            + ", ".join(map(repr, own)),
            "name one column a variable, in that order",
        )
    return dict(zip(own, names, strict=True))


def _named(fitted: Calibrator, variables: dict[str, str], kind: str) -> frozenset[str]:
    """Return the columns of variables that are of a kind; of levels, those of texts."""
    schema = getattr(fitted, "schema_", None)
    if schema is None:
        return frozenset()
    return frozenset(
        variables[name]
        for name, own, levels in zip(schema.names, schema.kinds, schema.levels, strict=True)
        if own == kind and all(isinstance(level, str) for level in levels)
    )


def _added(fitted: Calibrator, column: str) -> tuple[str, ...]:
    if len(fitted.classes_) == 2:
        return (column,)
    return tuple(f"{column}_{label}" for label in fitted.classes_)
