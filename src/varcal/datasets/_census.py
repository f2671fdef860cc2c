"""Adult census incomes: with two networks' predictions (`load_adult`, `load_income`), and whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray
from varcal.datasets._dataset import Dataset, bundled

NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = (
    *("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"),
    "native-country",
)

_ADULT = (
    "The test part of the Adult census income data: is a person's yearly income above $50,000? "
    "p is P(income > 50K) of a multi-layer perceptron that was trained on the other 32,561 rows."
)
SOURCE = (
    "Becker, B. & Kohavi, R. (1996). Adult. UCI Machine Learning Repository. "
    "https://doi.org/10.24432/C5XW20"
)
LICENCE = "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/"


def load_adult() -> Dataset:
    r"""Return the 16,281 test rows of Adult with predictions of an overconfident network.

    The model is scikit-learn's ``MLPClassifier`` with hidden layers of 100 and 75 units, Adam with
    its default settings and unscaled inputs (the numeric columns, and one-hot codes of the
    categorical ones except the country), trained on the 32,561 rows of ``adult.data``. Like the
    paper's network it is badly calibrated: it is right in 78.9 % of the rows with a mean confidence
    of 99.5 %, and overconfident in every bin of the score and of age, so that its ECE and its VECE
    by age are both 0.206. Of the seeds 0 … 19, its seed gives the network closest to the paper's in
    accuracy, ECE, and ECE and VECE (by age) after beta calibration. ``tools/make_adult.py`` in the
    source repository creates the file and shows how the seed was chosen.

    Returns
    -------
    Dataset
        y is 1 where the income is above $50,000; p is P(y = 1) in full precision. X has six
        numeric columns (age, fnlwgt, education-num, capital-gain, capital-loss, hours-per-week)
        and eight categorical ones (workclass, education, marital-status, occupation, relationship,
        race, sex, native-country), in which missing values are ``None``.

    References
    ----------
    Becker & Kohavi (1996), Adult, UCI Machine Learning Repository, doi 10.24432/C5XW20,
    CC BY 4.0. Kelly & Smyth (2023), Variable-Based Calibration for Machine Learning Classifiers.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult
    Dataset('adult', 16,281 rows, 14 variables)
    >>> confidence = np.maximum(adult.p, 1 - adult.p)
    >>> hit = (adult.p > 0.5) == adult.y
    >>> float(round(confidence.mean(), 2)), float(round(hit.mean(), 2))
    (1.0, 0.79)
    """
    stored = bundled("adult")
    y = stored["y"].astype(np.int64)
    return Dataset("adult", _ADULT, SOURCE, LICENCE, y=y, p=stored["p"], X=unpack(stored))


def unpack(stored: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the variables of a bundled file; levels are stored as integer codes."""
    X: dict[str, AnyArray] = {name: stored[name].astype(np.int64) for name in NUMERIC}
    for name in CATEGORICAL:
        # The code of missing values, −1, selects the None at the end.
        levels = np.array([*stored[f"{name} levels"].tolist(), None], dtype=object)
        X[name] = levels[stored[name]]
    return X


Columns = dict[str, AnyArray]


@dataclass(frozen=True, eq=False, repr=False)
class Census:
    """The Adult census table in the two parts that UCI publishes.

    Attributes
    ----------
    X_train, X_test : dict of str to ndarray
        The fourteen variables of each part. Categorical ones are object arrays of strings with
        ``None`` where the value is missing.
    y_train, y_test : ndarray of int
        1 if the income is above $50,000.
    source, licence : str
        A citation of the data, and their licence.

    Examples
    --------
    >>> from varcal.datasets import load_census
    >>> load_census()
    Census(32,561 + 16,281 rows, 14 variables)
    """

    X_train: Columns
    y_train: NDArray[np.int64]
    X_test: Columns
    y_test: NDArray[np.int64]
    source: str = SOURCE
    licence: str = LICENCE

    def __repr__(self) -> str:
        rows = f"{len(self.y_train):,} + {len(self.y_test):,} rows"
        return f"Census({rows}, {len(self.X_train)} variables)"


def load_census() -> Census:
    """Return the Adult census table: 32,561 rows to train on and 16,281 to test on.

    Returns
    -------
    Census
        The two parts.

    References
    ----------
    Becker & Kohavi (1996), Adult, UCI Machine Learning Repository, doi 10.24432/C5XW20,
    CC BY 4.0. Our changes: the income is coded as 0/1, and "?" is read as missing.

    Examples
    --------
    >>> census = load_census()
    >>> len(census.y_train), len(census.y_test), float(census.y_train.mean().round(3))
    (32561, 16281, 0.241)
    """
    stored, adult = bundled("census"), load_adult()
    X_train, y_train = unpack(stored), stored["y"].astype(np.int64)
    return Census(X_train, y_train, adult.X, adult.y)


_INCOME = (
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
    stored, adult = bundled("income"), load_adult()
    row = stored["row"]
    return Dataset(
        *("income", _INCOME, SOURCE, LICENCE),
        y=adult.y[row],
        p=stored["p"].astype(np.float64),
        X={name: column[row] for name, column in adult.X.items()},
        split=stored["split"],
    )
