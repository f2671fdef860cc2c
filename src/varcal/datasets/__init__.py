"""Bundled real data sets, and simulators whose true calibration errors are known.

- `load_adult`: census incomes with the predictions of an overconfident network.
- `load_income`: census incomes with a network that is calibrated by its score, not along age.
- `load_census`: the complete table, with the training rows.
- `load_yelp`: sentences from reviews with the predictions of a fine-tuned transformer.
- `make_gap`: a binary model whose gap along a variable has a chosen shape and size.

Rows with predictions are returned as a `Dataset`, simulated rows as a `Simulation`.
"""

from varcal.datasets._census import Census, load_adult, load_census, load_income
from varcal.datasets._dataset import Dataset
from varcal.datasets._simulation import Simulation, make_gap
from varcal.datasets._yelp import load_yelp

__all__ = [
    "Census",
    "Dataset",
    "Simulation",
    "load_adult",
    "load_census",
    "load_income",
    "load_yelp",
    "make_gap",
]
