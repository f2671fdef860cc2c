"""Made-up rows on which a calibrator that was read from a file must give probabilities."""

from __future__ import annotations

import numpy as np

from varcal._arrays import AnyArray
from varcal._input.variables import Variable
from varcal._saved.document import BrokenError
from varcal.calibrators._interface.answers import valid
from varcal.calibrators._interface.calibrator import Calibrator
from varcal.calibrators._interface.fitted_variables import Schema
from varcal.calibrators._interface.rows import CalibrationRows

__all__ = ["probe"]

#: The number of made-up rows: every level of most variables, and the ends of all of them.
N_ROWS = 64
#: Numbers at which variables are tried: missing, far, and usual ones. Powers of extreme ones would
#: overflow where values are not clipped.
_NUMBERS = (np.nan, 0.0, -1e12, 1e12, -1.0, 1.0, 1e-3, 18.0, 40.0, 65.0, 1e3, 1e6, 1.6e9, -273.0)
#: Scores of the second class.
_SCORES = (0.5, 0.0, 1.0, 1e-300, 1.0 - 2.0**-53, 0.1, 0.9, 0.3, 0.7, 1e-6, 0.999)


def probe(calibrator: Calibrator) -> None:
    """Refuse a calibrator that gives anything but probabilities on made-up rows."""
    classes = calibrator.classes_
    k = len(classes)
    if classes.ndim != 1 or k < 2 or len(set(classes.tolist())) < k:
        raise BrokenError("its classes are not two or more distinct labels")
    if calibrator.n_features_in_ not in {1, k} or (k > 2 and calibrator.n_features_in_ == 1):
        raise BrokenError("its number of score columns does not match its classes")
    schema = getattr(calibrator, "schema_", None)
    rows = CalibrationRows(
        _scores(k),
        tuple(range(k)),
        np.empty(0, np.intp),
        None,
        () if schema is None else _variables(schema),
    )
    with np.errstate(all="ignore"):
        answer = calibrator._answer(rows)
    if answer.shape != (N_ROWS, k) or not valid(answer, normalized=calibrator._normalized):
        raise BrokenError("its contents are inconsistent: they give no probabilities")
    str(calibrator.describe())
    calibrator.read_from_file = True


def _scores(k: int) -> AnyArray:
    first = np.resize(np.array(_SCORES), N_ROWS)
    if k == 2:
        return first
    rest = np.repeat(((1.0 - first) / (k - 1))[:, None], k, axis=1)
    rest[np.arange(N_ROWS), np.arange(N_ROWS) % k] = first
    return rest


def _variables(schema: Schema) -> tuple[Variable, ...]:
    found = []
    for j, row in enumerate(schema.unknown_row()):
        if row.kind == "levels":
            # −1 is a missing value; levels of each variable are passed through at another pace.
            codes = np.arange(N_ROWS) * (j + 1) % (len(row.levels) + 1) - 1
            found.append(Variable(row.name, row.kind, codes, row.levels))
        else:
            numbers = np.roll(np.resize(np.array(_NUMBERS), N_ROWS), 5 * j)
            found.append(Variable(row.name, row.kind, numbers))
    return tuple(found)
