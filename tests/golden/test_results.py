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
    # Other libraries of linear algebra and other processors round differently, so that iterative
    # fits may stop at slightly different values.
    same = set(wanted["linear algebra"]) <= set(golden_results.linear_algebra())
    near = {"rel": 1e-9, "abs": 1e-12} if same else {"rel": 1e-4, "abs": 1e-6}
    assert differing(found["close"], wanted["close"], lambda a, b: is_close(a, b, near)) == {}


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
