"""Audits that once could not be loaded again; test_odd_columns.py saves all other kinds."""

import numpy as np
import pytest

import varcal as vc


def loaded(value, path):
    value.save(path)
    return vc.load(path)


@pytest.mark.parametrize("rare", [0, 1, -3.5, 1e300])
def test_an_audit_of_a_value_that_few_rows_do_not_have_loads_again(rare, tmp_path):
    """The percentiles of such a variable were neighbouring floats, too near for 40 bars."""
    sim = vc.datasets.make_gap(2000, random_state=0)
    v = np.where(np.arange(2000) < 5, rare, 2.0)
    found = vc.audit(sim.y, sim.p, {"v": v, "same": sim.v}, ladder="none")
    edges = found["v"].histogram.edges
    assert (np.diff(edges) > 0).all() and edges[0] <= min(rare, 2) and edges[-1] >= max(rare, 2)
    assert loaded(found, tmp_path / "audit.json").to_dict() == found.to_dict()


@pytest.mark.parametrize("classes", [("all", "none"), ("", "x")])
def test_an_audit_of_classes_named_like_its_sides_loads_again(classes, tmp_path):
    rng = np.random.default_rng(0)
    p, v = rng.random(600), rng.random(600)
    y = np.array(classes)[(rng.random(600) < p).astype(int)]
    found = vc.audit(y, p, {"v": v}, classes=classes)
    assert not {"", "all"} & set(found.target.sides) and found.row("v").n_bins == 10
    assert loaded(found, tmp_path / "audit.json").to_dict() == found.to_dict()
