"""Reading, checking and scaling of sampling weights."""

from __future__ import annotations

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._input.frames import Table, column_of, numbers_of
from varcal._input.labels import Part
from varcal.exceptions import InputError

#: Weights are scaled if the largest is above 2 to this power, or below 2 to minus this power.
MOST_EXPONENT = 200
#: Smaller weights in relation to the largest one are refused: their fourth powers, which variances
#: of variances need, would vanish. Doubles have 16 digits, so that such rows count for nothing.
LEAST_RATIO = 1e-60


def weights(sample_weight: object, table: Table | None) -> AnyArray:
    """Return weights in their own dtype, before their values are checked."""
    return numbers_of(column_of(sample_weight, table, "sample_weight"), "sample_weight")


def checked_weights(given: AnyArray, part: Part | None) -> Floats:
    """Check the values of weights and scale them if they are extremely large or small."""
    weight: Floats = given.astype(np.float64, copy=False)
    if weight.ndim != 1:
        raise InputError(
            f"sample_weight has shape {weight.shape}",
            "give one weight per row",
            argument="sample_weight",
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(bad.argmax())
        problem = "is negative" if weight[row] < 0 else "is not a finite number"
        raise InputError.at_row(
            "sample_weight",
            problem,
            float(weight[row]),
            row,
            int(bad.sum()),
            "weights are finite and not negative",
        )
    largest = float(weight.max(initial=0.0))
    faint = (weight > 0) & (weight < largest * LEAST_RATIO)
    if faint.any():
        row = int(faint.argmax())
        raise InputError.at_row(
            "sample_weight",
            f"is less than {LEAST_RATIO:g} times the largest, {largest:g}",
            float(weight[row]),
            row,
            int(faint.sum()),
            "such a row could never matter: give it the weight 0, or correct the weights",
        )
    if part is None:
        if not weight.any():
            raise no_weight()
        exponent = weight_exponent(largest)
    else:
        exponent = part.exponent
    # Scaling by a power of two keeps ratios exact.
    return np.ldexp(weight, -exponent) if exponent else weight


def no_weight() -> InputError:
    """Return the error for weights that are all 0."""
    return InputError(
        "sample_weight is 0 at every row",
        "at least one weight must be positive",
        argument="sample_weight",
    )


def weight_exponent(largest: float) -> int:
    """Return the power of two to divide weights by, so that fourth powers do not overflow."""
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) >= MOST_EXPONENT else 0
