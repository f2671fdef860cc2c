"""`Calibrate`: adds calibrated probabilities to a batch of lazy rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from varcal._files.load import load_kind
from varcal._options import check_path
from varcal.exceptions import InputError, rows_numbered_from

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from varcal._sums.sources import LazyRows
    from varcal.calibrators import Calibrator


@dataclass(frozen=True)
class Calibrate:
    """The work that adds calibrated probabilities to the columns of a batch.

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
    row_numbers_known : bool
        Whether `start` is the number of a row.
    """

    fitted: Calibrator
    scores: tuple[str, ...]
    variables: dict[str, str]
    added: tuple[str, ...]
    row_numbers_known: bool = True

    def __call__(self, frame: Any, start: int) -> pa.Table:
        """Calibrate a batch whose first row has the number `start`."""
        import narwhals as nw  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415

        table: pa.Table = nw.from_native(frame, eager_only=True).to_arrow()
        v = {name: table.column(column) for name, column in self.variables.items()}
        with rows_numbered_from(start if self.row_numbers_known else None):
            q = self.fitted.predict_proba(table.select(list(self.scores)), v or None)
        for name, column in zip(self.added, new_columns(q, self.added), strict=True):
            table = table.append_column(name, pa.array(column))
        return table


def calibration_of(
    calibrator: Calibrator | str | PathLike[str],
    rows: LazyRows,
    p: str | Sequence[str] | None,
    X: str | Sequence[str] | None,
    column: str,
) -> Calibrate:
    """Return the work that applies a calibrator, after checking that the rows have its columns."""
    fitted = calibrator_of(calibrator)
    scores, variables = score_columns(fitted, p), variable_columns(fitted, X)
    for name in (*scores, *variables.values()):
        if name not in rows.columns:
            raise InputError.no_column(name, rows.columns, "source")
    added = added_columns(fitted, column, rows.columns, "source")
    return Calibrate(fitted, scores, variables, added, rows.row_numbers_known)


def calibrator_of(calibrator: Calibrator | str | PathLike[str]) -> Calibrator:
    """Return a calibrator, or load it from its file."""
    from varcal.calibrators import Calibrator  # noqa: PLC0415

    if isinstance(calibrator, Calibrator):
        return calibrator
    found: Calibrator = load_kind(check_path("calibrator", calibrator), "calibrator")
    return found


def score_columns(fitted: Calibrator, p: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns of uncalibrated probabilities."""
    names = fitted.score_names_ if p is None else (p,) if isinstance(p, str) else tuple(p)
    if not names:
        raise InputError(
            "the columns of the probabilities are unknown: the calibrator was fitted on an array",
            "name them with {p}",
            argument="p",
            settings={"p": ...},
        )
    return names


def variable_columns(fitted: Calibrator, X: str | Sequence[str] | None) -> dict[str, str]:
    """Return the column of each variable of the fit."""
    schema = getattr(fitted, "schema_", None)
    own: tuple[str, ...] = () if schema is None else schema.names
    names = own if X is None else (X,) if isinstance(X, str) else tuple(X)
    if not own:
        return {}
    if len(names) != len(own):
        raise InputError(
            f"X names {len(names)} columns, but the calibrator was fitted on {len(own)}: "
            + ", ".join(map(repr, own)),
            "name one column per variable, in that order",
            argument="X",
        )
    return dict(zip(own, names, strict=True))


def added_columns(
    fitted: Calibrator, column: str, known: Sequence[str], shown: str
) -> tuple[str, ...]:
    """Return the names of the new columns, which must not exist yet."""
    two = len(fitted.classes_) == 2
    added = (column,) if two else tuple(f"{column}_{label}" for label in fitted.classes_)
    for name in added:
        if name in known:
            raise InputError(
                f"{shown} already has a column {name!r}",
                "choose another name for the new column with {column}",
                argument="column",
                settings={"column": ...},
            )
    return added


def new_columns(q: NDArray[np.float64], added: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return the values of the new columns: the second class, or every class of more than two."""
    return [q[:, 1]] if len(added) == 1 else list(q.T)
