"""Applying a calibrator to a Spark data frame, on Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from varcal.calibrators.apply_batch import Calibrate, calibration_of

if TYPE_CHECKING:
    import pyarrow as pa

    from varcal._sums.spark import SparkRows
    from varcal.calibrators import Calibrator


@dataclass(frozen=True)
class CalibrateWorker:
    """The function that a worker runs on a partition.

    Attributes
    ----------
    work : Calibrate
        What is done with each batch.
    columns : tuple of str
        The names of the columns.
    """

    work: Calibrate
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add calibrated probabilities to the rows of one partition."""
        import pyarrow as pa  # noqa: PLC0415

        work = self.work
        needed = list(dict.fromkeys([*work.scores, *work.variables.values()]))
        positions = [self.columns.index(name) for name in needed]
        for batch in batches:
            new: list[Any] = [pa.array([], pa.float64())] * len(work.added)
            if len(batch):
                used = pa.table([batch.column(k) for k in positions], needed)
                calibrated = work(used, 0)
                new = [calibrated.column(name).combine_chunks() for name in work.added]
            names = [*batch.schema.names, *work.added]
            yield pa.RecordBatch.from_arrays([*batch.columns, *new], names)


def apply_in_spark(
    calibrator: Calibrator | str | PathLike[str],
    rows: SparkRows,
    p: str | Sequence[str] | None,
    X: str | Sequence[str] | None,
    column: str,
) -> Any:
    """Return the data frame with calibrated probabilities; see `apply`."""
    from pyspark.sql.types import DoubleType, StructField, StructType  # noqa: PLC0415

    work = calibration_of(calibrator, rows, p, X, column)
    rows.check_single([*work.scores, *work.variables.values()])
    worker = CalibrateWorker(replace(work, row_numbers_known=False), rows.columns)
    new = [StructField(name, DoubleType(), nullable=False) for name in work.added]
    schema = StructType([*rows.frame.schema.fields, *new])
    return rows.renamed().mapInArrow(worker, schema)
