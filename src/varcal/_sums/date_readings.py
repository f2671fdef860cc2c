"""Ways of reading text in batches as dates, of which one must fit all batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._input.dates import FORMATS, formats_of
from varcal._input.variables import Variable
from varcal._sums.summary import Ends


@dataclass(frozen=True)
class DateReading:
    """A column of text, read as dates in one way; `a + b` combines two batches.

    Attributes
    ----------
    ends : Ends
        The first and the last instant.
    sample : list of ndarray
        The instants of the sampled rows.
    zone : str or None
        The time zone, None where no row has a value.
    """

    ends: Ends
    sample: list[Floats]
    zone: str | None

    def __add__(self, other: DateReading) -> DateReading:
        zones = {self.zone, other.zone} - {None}
        zone = None if not zones else zones.pop() if len(zones) == 1 else "UTC"
        return DateReading(self.ends + other.ends, [*self.sample, *other.sample], zone)

    def agrees(self, other: DateReading) -> bool:
        """Tell whether both batches have a time zone, or neither has."""
        return None in (self.zone, other.zone) or (self.zone == "") == (other.zone == "")


def date_readings(variable: Variable, sampled: Ints) -> dict[str, DateReading]:
    """Return the ways in which a batch of text can be read as dates."""
    if not variable.levels:
        none = np.full(len(variable), np.nan)
        return dict.fromkeys(FORMATS, DateReading(Ends.of(none), [none[sampled]], None))
    if not all(isinstance(level, str) for level in variable.levels):
        return {}
    found = {}
    for form, instants in formats_of([str(level) for level in variable.levels]).items():
        values = np.append(instants.seconds, np.nan)[variable.values]
        found[form] = DateReading(Ends.of(values), [values[sampled]], instants.zone)
    return found


def common_readings(
    one: dict[str, DateReading], other: dict[str, DateReading]
) -> dict[str, DateReading]:
    """Return the ways in which both of two batches can be read."""
    return {
        form: one[form] + other[form]
        for form in one
        if form in other and one[form].agrees(other[form])
    }
