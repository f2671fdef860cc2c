"""Adult census income, with the out-of-sample predictions of a neural network."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

import numpy as np

from varcal._arrays import AnyArray
from varcal.datasets._dataset import Dataset

NUMERIC = (
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
)
CATEGORICAL = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
)

DESCRIPTION = (
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
    path = resources.files("varcal.datasets") / "adult.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return Dataset(
            name="adult",
            description=DESCRIPTION,
            source=SOURCE,
            licence=LICENCE,
            y=stored["y"].astype(np.int64),
            p=stored["p"],
            X=unpack(stored),
        )


def unpack(stored: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the variables of a bundled file; levels are stored as integer codes."""
    X: dict[str, AnyArray] = {name: stored[name].astype(np.int64) for name in NUMERIC}
    for name in CATEGORICAL:
        # The code of missing values, −1, selects the None at the end.
        levels = np.array([*stored[f"{name} levels"].tolist(), None], dtype=object)
        X[name] = levels[stored[name]]
    return X
