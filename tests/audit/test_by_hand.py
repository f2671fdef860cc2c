"""Every figure of an audit that can be recomputed is, with pandas, on random hostile tables."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc

CLOSE = {"rel": 0, "abs": 1e-9}


def table(rng, scores, digits, holes, endless):
    n = int(rng.choice([150, 700, 3000]))
    p = {
        "dense": rng.beta(2, 2, n),
        "tied": rng.random(n).round(1),  # also at one half
        "rare": rng.beta(1, 60, n),
        "one small side": np.where(rng.random(n) < 0.004, 0.9, rng.uniform(0.05, 0.45, n)),
    }[scores]
    number = rng.normal(size=n).round(digits)
    number[rng.random(n) < holes] = np.nan
    number[rng.random(n) < endless] = np.inf
    number[rng.random(n) < endless] = -np.inf
    level = rng.choice(["a", "b", "c", "d", ""], n, p=[0.5, 0.3, 0.1, 0.07, 0.03]).astype(object)
    level[rng.random(n) < holes] = None
    zeros = np.where(rng.random(n) < 0.6, 0.0, rng.exponential(5, n)).round(2)
    q = np.clip(p + 0.15 * np.tanh(np.nan_to_num(number, nan=1)) * (level == "a"), 0, 1)
    y = rng.random(n) < q
    y[:2] = False, True
    return p, y, pd.DataFrame({"number": number, "level": level, "zeros": zeros})


def weights(rng, n, kind):
    w = rng.gamma(2, 1, n)
    if kind == "some 0":
        w[rng.random(n) < 0.1] = 0.0
    return w if kind != "none" else None


def bins_of(column, bins):
    """Put values into bins: single values, then (low, high], the ends open; missing values last."""
    if "low" not in bins:
        names = bins["bin"].tolist()
        return np.array([names.index("missing" if pd.isna(x) else str(x)) for x in column])
    x = column.to_numpy(float)
    found = np.full(len(x), len(bins) - 1)
    edges = bins[bins.low.notna()]
    for single in (False, True):
        for k, low, high in zip(edges.index, edges.low, edges.high, strict=True):
            if (low == high) == single:
                above = (x >= low) if single else (x > low)
                inside = (above | (k == 0)) & ((x <= high) | (k == edges.index[-1]))
                found[inside & ~np.isnan(x)] = k
    return found


def gap(rows):
    return np.average(rows.p - rows.hit, weights=rows.w)


def check(figures, rows, everything):
    assert figures.n == len(rows)
    if rows.w.sum() > 0:
        assert figures.predicted == pytest.approx(np.average(rows.p, weights=rows.w), **CLOSE)
        assert figures.observed == pytest.approx(np.average(rows.hit, weights=rows.w), **CLOSE)
        assert figures.gap == pytest.approx(gap(rows), **CLOSE)
        assert figures.share == pytest.approx(rows.w.sum() / everything, **CLOSE)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scores=st.sampled_from(["dense", "tied", "rare", "one small side"]),
    digits=st.integers(0, 3),
    holes=st.sampled_from([0.0, 0.01, 0.2]),
    endless=st.sampled_from([0.0, 0.01]),
    weighted=st.sampled_from(["none", "all", "some 0"]),
    first=st.booleans(),
)
def test_tables_errors_and_places(seed, scores, digits, holes, endless, weighted, first):
    rng = np.random.default_rng(seed)
    p, y, X = table(rng, scores, digits, holes, endless)
    p, hit = (1 - p, ~y) if first else (p, y)
    label = "No" if first else "Yes"
    w = weights(rng, len(p), weighted)
    churn = pd.Series(np.where(y, "Yes", "No"), name="churn")
    found = vc.audit(churn, p, X, pos_label=label, sample_weight=w, ladder="none", include=[*X])
    side = (p >= 0.5) if first else (p > 0.5)  # a tie is predicted as the first class
    rows = pd.DataFrame({"p": p, "hit": hit, "w": 1.0 if w is None else w, "side": side})
    total, target = rows.w.sum(), found.target
    assert target.name == f"P(churn = {label})"
    assert found.gap == pytest.approx(gap(rows), **CLOSE)
    split = min(rows.w[side].sum(), rows.w[~side].sum()) >= 0.01 * total
    assert target.sides == (({"No": "Yes", "Yes": "No"}[label], label) if split else ())
    score = pd.DataFrame(target.score.columns)
    for k, part in rows.groupby(bins_of(rows.p, score)):
        check(score.loc[k], part, total)
    error = (score["share"] * score.gap.abs()).sum()
    assert target.by_score.value == pytest.approx(error, **CLOSE)
    for row in found:
        figures = pd.DataFrame(row.table.columns)
        place = bins_of(X[row.variable], figures[figures.side == "all"])
        cells = {"all": np.ones(len(p), bool)}
        cells |= dict(zip(target.sides, (~side, side), strict=False))  # none, or both
        errors = []
        for name, inside in cells.items():
            shown = figures[figures.side == name].reset_index(drop=True)
            assert shown.n.sum() == inside.sum()
            for k, part in rows[inside].groupby(place[inside]):
                check(shown.loc[k], part, total)
            if name != "all" or not split:
                away = (shown.gap - gap(rows[inside])).abs()
                errors.append([(shown["share"] * x).sum() for x in (shown.gap.abs(), away)])
        both = row.error.value, row.uneven.value
        assert both == pytest.approx(tuple(np.sum(errors, axis=0)), **CLOSE)
        for one in [*row.places, *(x for x in found.places if x.variable == row.variable)]:
            inside = cells[one.side or "all"] & (one.first_bin <= place) & (place <= one.last_bin)
            check(one, rows[inside], total)
