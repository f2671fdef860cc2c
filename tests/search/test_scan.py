"""The kernels against a search by brute force, and compiled against numpy."""

from itertools import combinations

import numpy as np
import pytest

from varcal._input.variables import Variable
from varcal._search.blocks import CLASSES
from varcal._search.cells import grid_of
from varcal._search.search import Rows, search


def world(n=900, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    variables = [
        Variable.of(rng.normal(size=n), "x"),
        Variable.of(rng.integers(0, 5, n), "count"),
        Variable.of(rng.choice(["a", "b", "c"], n), "kind"),
        Variable.of(np.where(rng.random(n) < 0.2, np.nan, rng.random(n)), "gaps"),
    ]
    s = rng.uniform(0.2, 0.8, n)
    grid = grid_of(variables, s, [False] * 4)
    unit = 2.0**-20
    E = rng.random((n, columns)) < s[:, None]
    E = (np.rint((E - s[:, None]) / unit) * unit).astype(np.float32)
    v = np.rint(s * (1 - s) / unit) * unit
    return Rows(grid, np.column_stack([v, np.ones(n)]), 1, 3), E


def use(engine, monkeypatch):
    if engine == "fast":
        pytest.importorskip("numba")
    least = 0 if engine == "fast" else np.inf
    monkeypatch.setattr("varcal._search.search.LEAST_WORK", least)


def t_of(rows, E, rule):
    inside = rows.inside(rule)
    return float(E[inside, 0].sum(dtype=float) / np.sqrt(rows.weights[inside, 0].sum()))


def test_maxima_are_those_of_all_rectangles():
    rows, E = world(columns=1)
    found = search(Rows(rows.grid, rows.weights, 1, 2), E).top[1, :, 0]
    brute = np.full(len(CLASSES), -np.inf)
    n = len(E)
    for j, k in combinations(range(4), 2):
        a, b = rows.grid.coarse[j], rows.grid.coarse[k]
        ends_a, ends_b = (len(rows.grid.axes[m].coarse) - 1 for m in (j, k))
        for a_low in range(ends_a):
            for a_high in range(a_low + 1, ends_a + 1):
                for b_low in range(ends_b):
                    for b_high in range(b_low + 1, ends_b + 1):
                        if a_high - a_low == ends_a or b_high - b_low == ends_b:
                            continue
                        inside = (a >= a_low) & (a < a_high) & (b >= b_low) & (b < b_high)
                        V = rows.weights[inside, 0].sum()
                        if inside.sum() < 50 or V < 5:
                            continue
                        t = abs(E[inside, 0].sum(dtype=float)) / np.sqrt(V)
                        size = sum(inside.sum() < end * n for end in CLASSES[:-1])
                        brute[size] = max(brute[size], t)
    # Refined rules may be clearer than any rectangle of coarse cells.
    assert (found >= brute - 1e-9).all()
    assert np.isclose(found, brute, rtol=1e-9).sum() >= 3


def test_the_t_of_a_rule_is_that_of_its_rows():
    rows, E = world()
    rules = search(rows, E).rules[0]
    assert {rule.depth for rule in rules} == {1, 2, 3}
    for rule in rules:
        assert t_of(rows, E, rule) == pytest.approx(rule.t if rule.sign else -rule.t, rel=1e-6)


def test_compiled_and_numpy_agree_to_the_bit(monkeypatch):
    rows, E = world(n=1500, columns=6, seed=3)
    rows = Rows(rows.grid, rows.weights * np.array([1.0, 0.75]), 1, 3)
    found = {}
    for engine in ("numpy", "fast"):
        use(engine, monkeypatch)
        found[engine] = search(rows, E, kept=6)
    assert np.array_equal(found["numpy"].top, found["fast"].top)
    assert found["numpy"].rules == found["fast"].rules


def test_columns_do_not_depend_on_each_other():
    rows, E = world(columns=5)
    whole = search(rows, E)
    parts = [search(rows, np.ascontiguousarray(E[:, [k]])).top for k in range(5)]
    assert np.array_equal(whole.top, np.concatenate(parts, axis=2))
