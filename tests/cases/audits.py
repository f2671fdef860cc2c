"""Audits of simulated models, one for each kind of answer."""

from functools import cache

import numpy as np
import pandas as pd

import varcal as vc

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
RTL = "\N{RIGHT-TO-LEFT OVERRIDE}evil"
MARKS = "a | *b* `c` [d](http://e)"
#: Names of columns and levels that try to leave their place.
HOSTILE = (SCRIPT, IMAGE, RTL, MARKS, "n" * 10_000, "a\nb\x1b[31m\x00", "\ud800", " ")


@cache
def rows(kind="groups"):
    """Return the rows of a model that is wrong in a known way; they must not be changed.

    groups: right on average, wrong along age, plan and for those predicted Yes; rare: half of a
    rate of .9 %; tiny: .05 % instead of it; fine, watch: nothing, and a small error with many
    rows; few: 300 rows.
    """
    rng = np.random.default_rng(7)
    n = {"few": 300, "fine": 40_000, "watch": 40_000}.get(
        kind, 4000 if kind == "groups" else 20_000
    )
    age, plan = rng.integers(18, 80, n), rng.choice(["basic", "plus", "pro"], n, p=[0.5, 0.4, 0.1])
    noise = rng.normal(size=n)
    p = rng.beta(1.2, 1.8, n)
    rate = p
    if kind == "groups":
        rate = p + np.where(age > 55, 0.14, -0.07) + np.where(plan == "pro", -0.1, 0.0)
        rate = rate - np.where((p > 0.5) & (plan == "basic"), 0.12, 0.0)
        age = np.where(rng.random(n) < 0.05, np.nan, age)
    elif kind == "watch":
        rate = p + np.where(age > 48, 0.02, -0.02)
    elif kind in ("rare", "tiny"):
        rate = rng.beta(1, 110, n)
        p = rate / 2 if kind == "rare" else np.full(n, 0.0005)
    churn = np.where(rng.random(n) < rate, "Yes", "No")
    return pd.DataFrame({"churn": churn, "p": p, "age": age, "plan": plan, "noise": noise})


@cache
def found(kind="groups", ladder="score"):
    """Return the audit of these rows."""
    return vc.audit("churn", "p", data=rows(kind), ladder=ladder, protected="plan")


@cache
def three(ladder="none"):
    """Return the audit of a model of three classes that is wrong about two of them along v."""
    rng = np.random.default_rng(3)
    n = 5000
    p, v = rng.dirichlet([2, 2, 2], n), rng.random(n)
    shift = 0.5 * np.minimum(p[:, 0], p[:, 1]) * np.where(v > 0.5, 1, -1)
    true = p + np.column_stack([shift, -shift, np.zeros(n)])
    kind = np.array(["ash", "birch", "oak"])[(rng.random(n)[:, None] > true.cumsum(1)).sum(1)]
    y = pd.Series(kind, name="tree")
    X = {"v": v, "noise": rng.random(n)}
    return vc.audit(y, p, X, classes=["ash", "birch", "oak"], ladder=ladder)


@cache
def hostile():
    """Return an audit all of whose names try to leave their place."""
    rng = np.random.default_rng(5)
    n = 3000
    p = rng.uniform(0.05, 0.95, n)
    X = {name: rng.normal(size=n) for name in HOSTILE}
    X["levels"] = rng.choice(np.array(HOSTILE, object), n)
    tilt = np.where(X[SCRIPT] > 0, 0.2, -0.2)
    y = np.where(rng.random(n) < np.clip(p + tilt, 0, 1), SCRIPT, "l" * 10_000)
    classes, names = ["l" * 10_000, SCRIPT], [*HOSTILE, "levels"]
    return vc.audit(y, p, X, classes=classes, pos_label=SCRIPT, include=names, ladder="score")
