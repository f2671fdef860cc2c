"""Terms of V in a logistic fit: powers of numbers and indicators of categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import (
    Step,
    clipped,
    code,
    constant,
    missing,
    number,
    take,
    where,
)
from varcal.exceptions import InputError

#: The code of a category that was not in the fit; that of missing values is −1.
UNSEEN = -2
#: The largest number that terms of a variable without a range are computed from.
LARGEST = 1e60

#: Squares of all terms stay below this.
MOST_SQUARE = 1e300
#: A standard deviation below this share of the mean is rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class NumberTerms:
    """Powers of a standardized number, and an indicator of missing values if there were any.

    Attributes
    ----------
    name : str
        The variable.
    low, high : float
        The range that values are clipped to; infinite without clipping.
    centre, scale : float
        Mean and standard deviation; 0 and 1 without standardization.
    power_centre, power_scale : ndarray of shape (degree,)
        The same for each power.
    missing : bool
        Whether missing values have an indicator.
    """

    name: str
    low: float
    high: float
    centre: float
    scale: float
    power_centre: Floats
    power_scale: Floats
    missing: bool

    @classmethod
    def of(
        cls,
        name: str,
        values: Floats,
        weight: Floats | None,
        *,
        degree: int,
        standardize: bool,
        clip: bool,
    ) -> NumberTerms:
        """Learn the range and the moments from the calibration rows."""
        known = np.isfinite(values)
        inside = values[known]
        mass = None if weight is None else weight[known]
        low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.0, 0.0)
        _check_powers(name, max(-low, high), 1 if standardize else degree)
        centre, scale = _moments(inside, mass) if standardize else (0.0, 1.0)
        z = (inside - centre) / scale
        moments = [
            _moments(z**power, mass) if standardize else (0.0, 1.0)
            for power in range(1, degree + 1)
        ]
        return cls(
            name,
            low if clip else -np.inf,
            high if clip else np.inf,
            centre,
            scale,
            np.array([moment[0] for moment in moments]),
            np.array([moment[1] for moment in moments]),
            bool(np.isnan(values).any()),
        )

    def rows(self, values: Floats) -> list[Floats]:
        """Return the terms; those of a missing value are 0, the mean, except for its indicator."""
        gone = np.isnan(values)
        z = (np.clip(values, self.low, self.high) - self.centre) / self.scale
        powers = [
            np.where(gone, 0.0, (z ** (k + 1) - self.power_centre[k]) / self.power_scale[k])
            for k in range(self.power_scale.size)
        ]
        return [*powers, gone.astype(np.float64)] if self.missing else powers

    def effect_step(self, k: int, coefficients: Floats) -> Step:
        """Return the step to the sum of the terms of variable k times their coefficients."""
        values = number(k)
        # Larger numbers would overflow as powers, and are far beyond any range.
        low, high = max(self.low, -LARGEST), min(self.high, LARGEST)
        z = ((clipped(values, low, high) - self.centre) / self.scale).named("unit")
        power, effect = z, constant(0.0)
        for j, scale in enumerate(self.power_scale):
            power = z if j == 0 else power * z
            effect = effect + (power - self.power_centre[j]) / scale * float(coefficients[j])
        gone = float(coefficients[-1]) if self.missing else 0.0
        return where(missing(values), gone, effect).named("effect")

    def names(self) -> list[str]:
        """Return the names of the terms."""
        shown = [self.name, *(f"{self.name}^{k}" for k in range(2, self.power_scale.size + 1))]
        return [*shown, f"{self.name} missing"] if self.missing else shown


@dataclass(frozen=True)
class LevelTerms:
    """One indicator per category; a category that was not in the fit has none.

    Attributes
    ----------
    name : str
        The variable.
    levels : tuple of str
        The categories as text.
    missing : bool
        Whether missing values have an indicator.
    """

    name: str
    levels: tuple[str, ...]
    missing: bool

    def rows(self, values: AnyArray) -> list[Floats]:
        """Return the indicators."""
        shown = [(values == k).astype(np.float64) for k in range(len(self.levels))]
        return [*shown, (values == -1).astype(np.float64)] if self.missing else shown

    def effect_step(self, k: int, coefficients: Floats) -> Step:
        """Return the step to the coefficient of the category of variable k."""
        gone = float(coefficients[-1]) if self.missing else 0.0
        return take(code(k), np.append(coefficients[: len(self.levels)], [0.0, gone])).named(
            "effect"
        )

    def names(self) -> list[str]:
        """Return the names of the indicators."""
        shown = [f"{self.name}={level}" for level in self.levels]
        return [*shown, f"{self.name} missing"] if self.missing else shown


def terms_of(
    schema: Schema,
    columns: list[AnyArray],
    weight: Floats | None,
    *,
    degree: int,
    standardize: bool,
    clip: bool,
) -> list[NumberTerms | LevelTerms]:
    """Return the terms of every variable."""
    return [
        LevelTerms(name, tuple(map(str, schema.levels[k])), bool((columns[k] < 0).any()))
        if schema.kinds[k] == "levels"
        else NumberTerms.of(
            name, columns[k], weight, degree=degree, standardize=standardize, clip=clip
        )
        for k, name in enumerate(schema.names)
    ]


def _check_powers(name: str, far: float, degree: int) -> None:
    """Refuse values whose powers, or the squares of these, overflow."""
    most = MOST_SQUARE ** (0.5 / degree)
    if far > most:
        raise InputError(
            f"variable {name!r} holds values up to {far:g}: those beyond {most:.2g} overflow in a "
            f"polynomial of degree {degree}",
            "divide the column by a constant, or use standardize=True",
            argument="v",
        )


def _moments(values: Floats, weight: Floats | None) -> tuple[float, float]:
    """Return mean and standard deviation; a constant has scale 1."""
    if not values.size:
        return 0.0, 1.0
    mean = float(np.average(values, weights=weight))
    spread = float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
    return mean, spread if spread > _ROUNDING * abs(mean) else 1.0
