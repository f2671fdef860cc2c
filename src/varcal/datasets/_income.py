"""Census incomes with a network that passes ECE and is wrong along age and marital status."""

from __future__ import annotations

from importlib import resources

import numpy as np

from varcal.datasets._adult import LICENCE, SOURCE, load_adult
from varcal.datasets._dataset import Dataset

#: The columns that the network was trained on.
WORK_RECORD = (
    "workclass",
    "education",
    "education-num",
    "occupation",
    "hours-per-week",
    "capital-gain",
    "capital-loss",
)
#: Rows to audit and repair, and rows that nothing was learned from.
PARTS = ("audit", "test")

DESCRIPTION = (
    "Is a person's yearly income above $50,000? p is P(income > 50K) of a neural network that was "
    "trained on the work records of 32,561 other people and calibrated by its score (beta "
    "calibration)."
)


def load_income() -> Dataset:
    r"""Return 12,000 rows of Adult with a network that is calibrated by its score.

    The network sees the work record only: class of work, education, occupation, hours per week,
    and capital gains and losses. It is scikit-learn's ``MLPClassifier`` with hidden layers of 100
    and 75 units on standardized inputs, stopped early, and trained on the 32,561 rows of
    ``adult.data``. Beta calibration on 4,281 rows of ``adult.test`` followed; these are the other
    rows, on which its ECE is about one point. Along what it has not seen it is far off: married
    people earn more, and people below 30 less, than their work record says.
    ``tools/make_income.py`` in the source repository creates the file.

    Returns
    -------
    Dataset
        As `load_adult`, with two parts of 6,000 rows: "audit" to find and repair errors, and
        "test" to see whether the repair works.

    References
    ----------
    Becker & Kohavi (1996), Adult, UCI Machine Learning Repository, doi 10.24432/C5XW20,
    CC BY 4.0.

    Examples
    --------
    >>> import varcal as vc
    >>> income = load_income()
    >>> income
    Dataset('income', 12,000 rows, 14 variables)
    >>> test = income.part("test")
    >>> status = {"marital-status": test["marital-status"]}
    >>> ece = vc.ece(test.y, test.p, event="positive")
    >>> vece = vc.vece(test.y, test.p, status, event="positive")
    >>> ece < 0.02, vece > 0.12
    (True, True)
    """
    path = resources.files("varcal.datasets") / "income.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        stored = dict(archive)
    adult, row = load_adult(), stored["row"]
    return Dataset(
        name="income",
        description=DESCRIPTION,
        source=SOURCE,
        licence=LICENCE,
        y=adult.y[row],
        p=stored["p"].astype(np.float64),
        X={name: column[row] for name, column in adult.X.items()},
        split=stored["split"],
    )
