"""Suspicions: sentences about input that is probably not what it should be."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._audit.record import AuditRow
from varcal._input.labels import CORRECT, claim_of
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._sums.evidence import Evidence, InMemory
from varcal._sums.stats import BinnedStats
from varcal._text import percent

#: Scores look reversed if the area under the ROC curve is below this, surely.
REVERSED = 0.45
#: Rows look like training rows if the area is above this with at least so many events.
TOO_GOOD, EVENTS = 0.9995, 20
#: Rows looked at for copies; a share of copies that is worth a sentence; the distinct values that a
#: number must have so that equal rows are not to be expected, and how many such columns there are.
COPIED_ROWS, COPIES, MANY_VALUES, MANY_COLUMNS = 50_000, 0.05, 50, 2
#: Units whose rows may be correlated: their least number, rows of each on average, how many times
#: the average the largest may have, and the standard errors from which correlation is sure: with
#: shocks of 5 points, 90 days and 9,000 rows 376 of 400 draws, by store 394, without 2 of 1,500.
UNITS, ROWS_EACH, LARGEST, SURE = 20, 3.0, 10.0, 4.0
#: How much further products vary where the mean of neighbouring units is taken off.
DETRENDED = 1.4
#: What a whole number is called if it counts units; any other may have sharp effects of its own.
UNIT_NAMES = re.compile(r"(?i)(?<![a-z])(day|date|week|batch|session|store|site|id)s?(?![a-z])")
#: Bins of the score whose average gap is no correlation of rows.
SCORE_BINS = 20


def suspicions(
    evidence: Evidence, key: int, left_out: Collection[str], rows: Sequence[AuditRow]
) -> tuple[str, ...]:
    """Return a sentence for each suspicion.

    Parameters
    ----------
    evidence : Evidence
        The rows or their sums.
    key : int
        The first target.
    left_out : collection of str
        Columns that are not audited, such as identifiers: these may be units of rows.
    rows : sequence of AuditRow
        The variables.
    """
    found = []
    if key != CORRECT:
        score = evidence.profile(key, None).fine
        if not score.total("n")[(score.confidence > 0) & (score.confidence < 1)].sum():
            found.append("All probabilities are 0 or 1. Are they predicted classes?")
        area, events = _area(score)
        if not events:
            found.append("All rows have the same outcome. Are those with the other one missing?")
        found += [
            f"Each bin of {row.variable} has only one outcome. Does the column contain the outcome?"
            for row in rows
            if _is_outcome(row)
        ]
        if area + 3 * math.sqrt(0.25 / max(events, 1)) < 0.5 and area < REVERSED:
            found.append(
                f"Scores look reversed: rows with higher probabilities have the outcome less often "
                f"(AUC {area:.2f}). Is p the probability of the other class?"
            )
        if area > TOO_GOOD and events >= EVENTS:
            found.append(
                f"The model separates the classes almost perfectly (AUC {area:.4f}). Was it "
                "trained on these rows, or does it read the outcome?"
            )
    if isinstance(evidence, InMemory):
        given = evidence.predictions
        # Copies are correlated, too.
        found += _copies(given) or ([] if evidence.grouped else _correlated(given, key, left_out))
    return tuple(found)


def _is_outcome(row: AuditRow) -> bool:
    """Tell whether every bin of a variable has one outcome only, each outcome in many rows."""
    every = [one for one in row.bins["all"] if one["n"]]
    rows = [sum(one["n"] for one in every if one["observed"] == outcome) for outcome in (0, 1)]
    n = sum(one["n"] for one in every)
    return min(rows) >= EVENTS and sum(rows) == n >= EVENTS * len(every)


def _area(score: BinnedStats) -> tuple[float, float]:
    """Return the area under the ROC curve over fine bins of the score, and the rarer outcomes."""
    hit, weight = score.total("hit"), score.total("weight")
    other = weight - hit
    if not hit.sum() or not other.sum():
        return 0.5, 0.0
    below = np.concatenate([[0.0], np.cumsum(other)[:-1]]) + other / 2
    rows = score.total("n").sum() * min(hit.sum(), other.sum()) / weight.sum()
    return float((hit * below).sum() / (hit.sum() * other.sum())), float(rows)


def _copies(rows: Predictions) -> list[str]:
    """Say that many rows are exact copies, if that is not to be expected."""
    part = slice(COPIED_ROWS)
    columns = [one.values[part] for one in rows.variables]
    detailed = [
        values
        for one, values in zip(rows.variables, columns, strict=True)
        if one.kind != "levels" and len(np.unique(values)) > MANY_VALUES
    ]
    if len(detailed) < MANY_COLUMNS:
        return []
    table = np.column_stack(
        [*columns, np.reshape(rows.p[part], (len(columns[0]), -1)), rows.y[part]]
    )
    order = np.lexsort(table.T)
    same = (table[order[1:]] == table[order[:-1]]) | (
        np.isnan(table[order[1:]]) & np.isnan(table[order[:-1]])
    )
    share = float(same.all(axis=1).sum()) / len(table)
    if share < COPIES:
        return []
    return [
        f"{percent(share)} of the rows are exact copies of others. Intervals count every copy as "
        "new information."
    ]


def _correlated(rows: Predictions, key: int, left_out: Collection[str]) -> list[str]:
    """Say that rows of the same day, store or the like are correlated."""
    claim = claim_of(rows, key)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    error = claim.score - claim.hit
    # What the score alone explains is taken off: it would vary with whatever the score follows.
    cuts = np.unique(np.quantile(claim.score, np.linspace(0, 1, SCORE_BINS + 1)[1:-1]))
    at = np.searchsorted(cuts, claim.score)
    total = np.bincount(at, weight)
    error = error - (np.bincount(at, weight * error) / np.maximum(total, 1e-300))[at]
    best, which = SURE, None
    for variable in rows.variables:
        # Other numbers that are audited may have sharp effects, which the audit shows.
        number = variable.kind in ("numeric", "duration")
        if number and variable.name not in left_out and not UNIT_NAMES.search(variable.name):
            continue
        units = _units(variable)
        z = -math.inf if units is None else _together(error * weight, units, variable.kind)
        if z > best:
            best, which = z, variable
    if which is None:
        return []
    unit, hint = which.name, f"pass groups={which.name!r}"
    if which.kind == "datetime" and (which.values % 86_400 > 0).any():
        unit, hint = f"day of {which.name}", f"pass the day of {which.name} as groups="
    return [
        f"Rows with the same {unit} are correlated: their outcomes are off together, more than "
        f"chance allows. Intervals are then too narrow; {hint} (--group)."
    ]


def _units(variable: Variable) -> Ints | None:
    """Return the unit of each row: a level, a whole number or a day; None if there are none."""
    values: Floats | Ints = variable.values
    if variable.kind == "datetime":
        values = np.floor(values / 86_400)
    elif variable.kind != "levels" and not np.array_equal(values, np.floor(values), equal_nan=True):
        return None
    number = np.unique(values, return_inverse=True)[1]
    many, mean = int(number.max()) + 1, len(values) / (int(number.max()) + 1)
    even = np.bincount(number).max() <= LARGEST * mean
    return number if even and many >= UNITS and mean >= ROWS_EACH else None


def _together(error: Floats, units: Ints, kind: str) -> float:
    """Return by how many standard errors products of errors within units exceed 0.

    Where units have an order, the mean of the two units before and after is taken off first, and
    what its noise adds to the products: a smooth change along the variable is no correlation.
    """
    n = np.bincount(units).astype(float)
    total, square = (np.bincount(units, x).astype(float) for x in (error, error**2))
    extra = np.zeros(len(n))
    if kind != "levels":
        around = np.array([1.0, 1.0, 0.0, 1.0, 1.0])
        near, sums, noise = (np.convolve(x, around, mode="same") for x in (n, total, square))
        mean = sums / np.maximum(near, 1)
        # Errors about the local mean; its own noise would look like correlation.
        square = square - 2 * mean * total + n * mean**2
        total = total - n * mean
        extra = n * (n - 1) * noise / np.maximum(near, 1) ** 2
    pairs = total**2 - square - extra
    fourth = np.bincount(units, error**4)
    spread = math.sqrt(2 * max(float((square**2).sum() - fourth.sum()), 0.0))
    spread *= 1.0 if kind == "levels" else DETRENDED
    return float(pairs.sum()) / spread if spread > 0 else 0.0
