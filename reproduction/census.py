"""Adult from the raw census table: train, recalibrate by score and by age, evaluate.

It repeats the paper's experiment on Adult without the authors' model outputs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder

import varcal as vc
from reproduction.changes import change_interval
from reproduction.pictures import curve_panels
from reproduction.results import Results
from reproduction.tables import Table

N_CALIBRATION = 2_500
HIDDEN = (100, 75)
#: The six variables in the paper's appendix.
NUMERIC = ("education-num", "age", "hours-per-week", "fnlwgt", "capital-gain", "capital-loss")
#: Variables along which the error should remain after the tree on age.
OTHERS = ("education-num", "hours-per-week")
METHODS = ("uncalibrated", "beta", "tree on age")


@dataclass(frozen=True, eq=False)
class Story:
    """The network uncalibrated, calibrated by beta, and by a tree on age, on the test rows.

    Attributes
    ----------
    figures : dict of Estimate
        ECE and VECE of the three models, by model and variable ("" for ECE). Correctness is that
        of each model's own predictions.
    changes : dict of (float, float)
        Intervals of their changes from the beta-calibrated model.
    accuracy : dict of float
        Of each model.
    overconfidence : float
        Mean confidence − accuracy of the uncalibrated model.
    audits : dict of Audit
        For each model, every variable ranked.
    """

    figures: dict[tuple[str, str], vc.results.Estimate]
    changes: dict[tuple[str, str], tuple[float, float]]
    accuracy: dict[str, float]
    overconfidence: float
    audits: dict[str, vc.results.Audit]

    def conclusions(self) -> dict[str, bool]:
        """Return whether the paper's conclusions hold.

        A figure is above noise if its interval lies above what a perfect model would show.
        """
        found = self.figures
        raw, beta = (found[name, ""] for name in METHODS[:2])
        beta_age = found[METHODS[1], "age"]
        before, after = ([found[name, other] for other in OTHERS] for name in METHODS[1:])
        return {
            # Confidence is above accuracy on average by nearly all of ECE.
            "the model is overconfident": raw.low > 0
            and raw.debiased - self.overconfidence < raw.noise_high,
            "beta lowers ECE to a quarter": self.changes["uncalibrated", ""][0] > 0
            and beta.debiased < raw.debiased / 4,
            "beta leaves VECE (age)": beta_age.low > beta_age.noise_high
            and beta_age.debiased > 2 * beta.debiased,
            "the tree halves VECE (age)": self.changes["tree on age", "age"][1]
            < -beta_age.debiased / 2,
            "the tree keeps ECE": self.changes["tree on age", ""][0] <= 0,
            "the tree leaves other variables": all(
                new.low > new.noise_high and new.debiased > old.debiased / 2
                for new, old in zip(after, before, strict=True)
            ),
        }


def census_story(census: vc.datasets.Census | None = None, *, random_state: int = 0) -> Story:
    """Train the paper's Adult model on the raw census table, recalibrate and evaluate it.

    The model is that of the paper's appendix: a perceptron with hidden layers of 100 and 75 units,
    trained on the 32,561 rows of ``adult.data``. Of the 16,281 rows of ``adult.test``, 2,500 are
    used for calibration and 13,781 for testing. As in the authors' notebook, the inputs are the
    six numeric columns, unscaled, and one-hot codes of the categorical ones without their first
    level; the country is left out.

    One thing differs. On unscaled inputs (census weights reach 1.5 million) the loss jumps from
    epoch to epoch, and the result depends on where training happens to stop: with scikit-learn's
    defaults, as in the notebook, some seeds give a nearly calibrated model and some predict only
    one class. We keep the best epoch on a tenth of the training rows (``early_stopping=True``).
    Then all seeds from 0 to 19 agree with the paper.

    The calibrators have the paper's settings. The evaluation is corrected: correctness is that of
    each model's own predictions, ECE is binned over its own confidence, and figures are debiased.

    Parameters
    ----------
    census : Census, optional
        The table, by default the bundled one.
    random_state : int
        The seed of the network and of the split into calibration and test rows; 0 gives the
        paper's split.
    """
    census = census or vc.datasets.load_census()
    p, y, X = _train(census, random_state), census.y_test, census.X_test
    order = np.random.RandomState(random_state).permutation(len(y))
    fit, held = order[:N_CALIBRATION], np.sort(order[N_CALIBRATION:])
    beta = vc.calibrators.BetaCalibrator.paper().fit(p[fit], y[fit])
    tree = vc.calibrators.TreeCalibrator.paper("adult").fit(p[fit], y[fit], X["age"][fit])
    rows = {name: column[held] for name, column in X.items()}
    models = {
        "beta": beta.predict_proba(p[held])[:, 1],
        "uncalibrated": p[held],
        "tree on age": tree.predict_proba(p[held], rows["age"])[:, 1],
    }
    numeric = {name: rows[name] for name in NUMERIC}
    raw = p[held]
    right = {name: (one > 0.5) == (y[held] == 1) for name, one in models.items()}
    return Story(
        {
            (name, other): vc.estimate(
                y[held], one, numeric[other] if other else None, random_state=random_state
            )
            for name, one in models.items()
            for other in ("", *NUMERIC)
        },
        {
            (name, other): change_interval(
                y[held], models["beta"], models[name], numeric[other] if other else None
            )
            for name, other in (("uncalibrated", ""), ("tree on age", ""), ("tree on age", "age"))
        },
        {name: float(one.mean()) for name, one in right.items()},
        float(np.maximum(raw, 1 - raw).mean() - right["uncalibrated"].mean()),
        {name: vc.audit(y[held], one, rows, ladder="none") for name, one in models.items()},
    )


def _train(census: vc.datasets.Census, seed: int) -> np.ndarray:
    """Return P(y = 1) for the test rows."""
    coded = [
        name
        for name, column in census.X_train.items()
        if column.dtype == object and name != "native-country"
    ]

    def labels(X: dict[str, np.ndarray]) -> np.ndarray:
        return np.column_stack([np.where(X[name] == None, "?", X[name]) for name in coded])  # noqa: E711

    encoder = OneHotEncoder(drop="first", sparse_output=False, handle_unknown="ignore")
    encoder.fit(labels(census.X_train))

    def inputs(X: dict[str, np.ndarray]) -> np.ndarray:
        numbers = [column for column in X.values() if column.dtype != object]
        return np.column_stack([*numbers, encoder.transform(labels(X))])

    network = MLPClassifier(HIDDEN, early_stopping=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(inputs(census.X_train), census.y_train)
    return network.predict_proba(inputs(census.X_test))[:, 1]


def census_results() -> Results:
    """Return the tables and pictures of Adult from the raw census."""
    story = census_story()
    held = story.conclusions()
    figures = {"figure": ["accuracy", "ECE", *(f"VECE {name}" for name in NUMERIC)]}
    for method in METHODS:
        values = [story.figures[method, name].debiased for name in ("", *NUMERIC)]
        figures[method] = [100 * value for value in (story.accuracy[method], *values)]
    holds = ["yes" if one else "no" for one in held.values()]
    return Results(
        "census",
        "Adult from the raw census",
        (
            Table("figures-by-model", "ECE and VECE of our own network (%)", figures),
            Table(
                "conclusions",
                "The paper's conclusions about Adult",
                {"conclusion": list(held), "holds": holds},
            ),
        ),
        {"variable-plots": curve_panels({name: story.audits[name]["age"] for name in METHODS})},
        failures=tuple(f"{name}: does not hold" for name, holds in held.items() if not holds),
        finding=f"{sum(held.values())} of {len(held)} conclusions hold",
    )
