"""Every public result is unchanged; see ``golden_results.py``."""

import json

import pytest

from cases import golden_results


@pytest.fixture(scope="module")
def wanted():
    return json.loads(golden_results.FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found():
    return golden_results.results()


@pytest.mark.parametrize("group", ["exact", "close"])
def test_the_same_results_exist(found, wanted, group):
    assert sorted(found[group]) == sorted(wanted[group])


def test_counts_edges_and_orders_are_the_same(found, wanted):
    assert differing(found["exact"], wanted["exact"], lambda a, b: a == b) == {}


def test_figures_are_the_same_but_for_rounding(found, wanted):
    # Processors round differently, so that iterative fits may stop at slightly different values.
    fits = ("/variable", "dirichlet", "/tree")
    fitted = [key for key in wanted["close"] if any(name in key for name in fits)]
    fitted.append("estimate/rare/combined/p_value")  # from simulated outcomes
    for keys, near in (
        (fitted, {"rel": 1e-4, "abs": 1e-6}),
        (wanted["close"].keys() - set(fitted), {"rel": 1e-9, "abs": 1e-12}),
    ):
        mine, theirs = ({key: one["close"][key] for key in keys} for one in (found, wanted))
        assert differing(mine, theirs, lambda a, b, near=near: is_close(a, b, near)) == {}


def differing(found, wanted, agree):
    """Return the pairs of results that do not agree, by name."""
    shared = sorted(found.keys() & wanted.keys())
    return {key: (found[key], wanted[key]) for key in shared if not agree(found[key], wanted[key])}


def is_close(found, wanted, near):
    """Compare two numbers, or the shapes and numbers of two arrays; None is not finite."""
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            is_close(a, b, near) for a, b in zip(found, wanted, strict=True)
        )
    if found is None or wanted is None:
        return found is wanted
    return found == pytest.approx(wanted, **near)
