"""Bundled real data, and simulators whose truth is known.

- `load_adult`: census incomes with the predictions of an overconfident network.
- `load_yelp`: sentences from reviews with the predictions of a fine-tuned transformer.
- `make_vece_bound`, `make_ece_bound`, `make_consistent`: the paper's three theorems.
- `make_gap`: a binary model whose gap along a variable has a chosen shape and size.

Real data come as a `Dataset`, simulated rows as a `Simulation`.
"""

from varcal.datasets._adult import load_adult
from varcal.datasets._dataset import Dataset
from varcal.datasets._shapes import make_gap
from varcal.datasets._simulation import Simulation
from varcal.datasets._theorems import make_consistent, make_ece_bound, make_vece_bound
from varcal.datasets._yelp import load_yelp

__all__ = [
    "Dataset",
    "Simulation",
    "load_adult",
    "load_yelp",
    "make_consistent",
    "make_ece_bound",
    "make_gap",
    "make_vece_bound",
]
