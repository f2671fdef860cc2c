"""Rare levels of categories: where there are many, a fitted model forgets their names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from varcal.calibrators._variable._columns.spline_basis import LevelBasis
from varcal.calibrators._variable.many_classes import TemperatureModel
from varcal.calibrators._variable.two_classes import LogisticModel
from varcal.calibrators.schema import Schema

#: With more rare levels than this, their names are not kept: a file with 78,000 of them had 51 MB.
#: Names below it take less room than the other parts of a calibrator.
MOST_RARE_LEVELS = 200


def pool_rare_levels(
    model: LogisticModel | TemperatureModel, schema: Schema
) -> tuple[LogisticModel | TemperatureModel, Schema]:
    """Forget the names of rare levels where there are many; they share one effect."""
    bases = list(model.full.design.bases)
    for k, levels in enumerate(schema.levels):
        basis = bases[k] if k < len(bases) else None
        rare = basis.rare() if isinstance(basis, LevelBasis) else np.arange(len(levels))
        if len(rare) <= MOST_RARE_LEVELS:
            continue
        kept = np.setdiff1d(np.arange(len(levels)), rare)
        schema = schema.listing(k, tuple(levels[j] for j in kept))
        if isinstance(basis, LevelBasis):
            bases[k] = basis.without(rare)
        if isinstance(model, LogisticModel) and model.growth is not None:
            model = replace(model, growth=model.growth.without(k, rare))
    full = replace(model.full, design=replace(model.full.design, bases=tuple(bases)))
    return replace(model, full=full), schema
