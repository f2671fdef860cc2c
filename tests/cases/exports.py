"""Rows that are hard on an export: extreme, missing and unseen values, awkward names and levels."""

from functools import cache

import numpy as np

import varcal as vc

#: Names and levels that would change a statement if they were not quoted.
AGE, SEX = 'age"; DROP TABLE precious; --', "sex'`$\\ \n(é) {0} %s ?"
LEVELS = np.array(
    ["'); DROP TABLE precious; --", 'a"b', "back\\slash", "o'neil\\", "é☃ ${x}", "\n%s {0} ?", ""],
    dtype=object,
)
#: The same without what some databases do not have in names.
PLAIN_SEX = "sex'`$\\ (é) %s ?"
UNSEEN = np.array([None, "unseen", "'", "\\", "';--", "O'Neil\\"], dtype=object)


def drawn(n, seed, *, hostile, sex=SEX, n_classes=2):
    """Return scores and variables: a number, levels, truth values and a date."""
    rng = np.random.default_rng(seed)
    age = rng.gamma(4.0, 12.0, n)
    age[rng.random(n) < 0.2] = 30.0
    sexes = LEVELS[rng.integers(0, len(LEVELS), n)].copy()
    member = rng.random(n) < 0.4
    day = np.datetime64("2024-01-01", "us") + rng.integers(0, 10**13, n).astype("m8[us]")
    p = rng.beta(0.8, 0.8, n)
    if n_classes > 2:
        p = rng.dirichlet(np.full(n_classes, 0.7), n)
    age[rng.random(n) < 0.05] = np.nan
    sexes[rng.random(n) < 0.05] = None
    if hostile:
        extreme = rng.random(n) < 0.2
        values = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -0.0, 5e-324, 30.0, 1e15]
        age[extreme] = rng.choice(values, int(extreme.sum()))
        strange = rng.random(n) < 0.2
        sexes[strange] = UNSEEN[rng.integers(0, len(UNSEEN), int(strange.sum()))]
        day[rng.random(n) < 0.1] = np.datetime64("NaT")
        certain = rng.random(n) < 0.1
        if n_classes == 2:
            ends = [0.0, 1.0, 0.5, 1e-300, 5e-324, 1 - 1e-16]
            p[certain] = rng.choice(ends, int(certain.sum()))
        else:
            p[certain] = np.eye(n_classes)[rng.integers(0, n_classes, int(certain.sum()))]
    return p, {AGE: age, sex: sexes, "member": member, "day": day}


@cache
def awkward(calibrator, *, sex=SEX, n_classes=2, **options):
    """Return a calibrator, given by its name, that was fitted on awkward rows."""
    n = 1_500
    p, v = drawn(n, 0, hostile=False, sex=sex, n_classes=n_classes)
    rng = np.random.default_rng(1)
    lift = 0.7 * (v[sex] == LEVELS[0]) - 0.02 * np.nan_to_num(v[AGE], nan=60.0)
    lift = lift + 1.5 * v["member"] * (np.nan_to_num(v[AGE], nan=60.0) > 45)
    if n_classes == 2:
        logit = np.log(p + 1e-9) - np.log(1 - p + 1e-9)
        y = (rng.random(n) < 1 / (1 + np.exp(-logit - lift - 0.5))).astype(int)
    else:
        q = p ** np.exp(0.3 * lift)[:, None]
        q /= q.sum(axis=1, keepdims=True)
        y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1).clip(0, n_classes - 1)
    settings = {"TreeCalibrator": {"min_leaf": 0.02, "max_depth": 4}}
    options = settings.get(calibrator, {}) | options
    return getattr(vc.calibrators, calibrator)(**options).fit(p, y, v)


def small(sex=SEX):
    """Return a fit with tables, but without those of pairs, which have a million numbers."""
    return awkward("VariableCalibrator", sex=sex, trees=False)


#: Calibrators of variables, which are exported with awkward names.
BY_VARIABLE = ["TreeCalibrator", "AugmentedCalibrator", "VariableCalibrator"]
