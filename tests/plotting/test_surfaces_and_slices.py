"""Pictures of surfaces and slices hold the numbers of their results."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb

import varcal as vc
from varcal._plotting.axes import shade
from varcal._slices.condition import Condition
from varcal._slices.slices_result import Slice, Slices
from varcal._surfaces.view import SurfaceView, outline, ticks


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 6000
    u, v = rng.random((2, n))
    p = rng.uniform(0.3, 0.7, n)
    y = (rng.random(n) < p - 1.2 * (u - 0.5) * (v - 0.5)).astype(int)
    u[:300] = np.nan
    kind = np.array(["low", "<b>middle</b>", "$high$"])[(3 * v).astype(int)]
    return {"y": y, "p": p, "u": u, "v": v, "kind": kind, "side": rng.choice(["a", "b"], n)}


def surface(rows, first, second):
    return vc.surface(rows["y"], rows["p"], {first: rows[first]}, {second: rows[second]})


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


PAIRS = {"map": ("u", "v"), "strips": ("v", "kind"), "table": ("kind", "side")}


@pytest.mark.parametrize("kind", PAIRS)
def test_every_kind_is_drawn(rows, kind):
    found = surface(rows, *PAIRS[kind])
    view = SurfaceView.of(found)
    assert view.kind == kind
    ax = found.plot()
    assert ax.get_title(loc="left").startswith("Gap over")
    if kind == "map":
        shown = np.asarray(ax.images[0].get_array(), dtype=float)
        wanted = [to_rgb(shade(one)) for one in view.strength[view.judged]]
        np.testing.assert_allclose(shown[view.judged], wanted)
    if kind == "strips":
        levels = [one for one in range(3) if found.n[:, one].any()]
        assert len(ax.child_axes) == len(levels)
        line = ax.child_axes[0].lines[1].get_ydata()
        np.testing.assert_allclose(line, 100 * view.gap[0])
    if kind == "table":
        texts = {one.get_text().split("\n")[0] for one in ax.texts}
        assert f"{100 * found.gap[0, 0]:+.1f}".replace("-", "−") in texts


def test_given_axes_are_used_and_one_variable_may_have_levels_first(rows):
    _, ax = plt.subplots()
    assert surface(rows, "kind", "v").plot(ax) is ax
    turned = SurfaceView.of(surface(rows, "kind", "v"))
    assert turned.up.name == "kind" and turned.gap.shape[0] == len(turned.up)


def test_sure_cells_are_strong_and_outlined(rows):
    found = surface(rows, "u", "v")
    view = SurfaceView.of(found)
    assert view.sure.any()
    strong = np.abs(view.strength[view.sure != 0])
    np.testing.assert_allclose(strong, np.abs(view.gap[view.sure != 0]) / view.most)
    assert len(outline(np.array([[1]]))) == 4
    assert ticks(view.across)[1][-1] == "missing"


def slices_by_hand():
    one = Condition("age", "numeric", low=36.0)
    two = Condition("<i>sex", "levels", levels=("f",))
    rest = (500, 0.05, 500.0)
    return Slices(
        p_value=0.01,
        slices=(
            Slice((one, two), "risk", *rest, 0.31, 0.48, -0.17, -0.2, -0.12, 0.01, -0.1, 1),
            Slice((one,), "risk", *rest, 0.5, 0.4, 0.1, 0.05, 0.12, 0.02, 0.1, 1),
        ),
        n=10_000,
        n_searched=10_000,
        n_dropped=0,
        n_variables=2,
        draws=99,
        event="positive",
        max_depth=3,
        after=None,
        level=0.95,
        random_state=0,
    )


def test_slices_are_rows_with_says_and_happens():
    found = slices_by_hand()
    ax = found.plot()
    labels = [one.get_text().replace("\n", " ") for one in ax.get_yticklabels()]
    assert labels == [one.rule for one in found]
    dots = {(float(x), int(y)) for one in ax.lines if one.get_marker() == "o"
            for x, y in zip(one.get_xdata(), one.get_ydata(), strict=True)}  # fmt: skip
    assert dots == {(0.31, 0), (0.48, 0), (0.5, 1), (0.4, 1)}
    texts = " ".join(one.get_text() for one in ax.texts)
    assert "▼ too low by 17.0 (12.0 to 20.0)" in texts and "500 rows" in texts


def test_no_slices_are_drawn_as_none():
    ax = replace(slices_by_hand(), slices=()).plot()
    assert "No slice" in ax.get_title(loc="left")
