"""Pictures show the numbers of their results and leave the user's state alone."""

from dataclasses import replace

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

import varcal as vc
from cases.slices import planted
from varcal._monitor.history import view_of
from varcal._report.plot_variables import SurfaceView
from varcal.exceptions import InputError

NAMES = ["$\\frac$", "_hidden", "<b>bold</b> & <script>alert(1)</script>", "a" * 90, "%{x}", " "]
SAYS, HAPPENS = "#D55E00", "#0072B2"
TARGET = "P(y = >50K)"
PAIRS = {"map": ("u", "v"), "strips": ("v", "kind"), "table": ("kind", "side")}


@pytest.fixture(scope="module")
def tilt():
    return vc.datasets.make_gap(3000, "tilt", vece=0.1)


@pytest.fixture
def ax():
    """Axes of a figure that pyplot does not know."""
    return Figure(figsize=(3.4, 2.6), layout="constrained").add_subplot()


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(ax):
    """Return all texts of axes."""
    ax.figure.draw_without_rendering()
    found = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels()]
    found += ax.get_legend().get_texts() if ax.get_legend() else []
    named = [ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()]
    return [text.get_text() for text in found] + named


def marks(ax):
    """Return the places of all dots of axes, as (x, y)."""
    drawn = [one for one in ax.collections if isinstance(one, mpl.collections.PathCollection)]
    return [tuple(map(float, dot)) for one in drawn for dot in one.get_offsets()]


def lines(ax):
    return {line.get_color(): line for line in ax.get_lines() if len(line.get_xdata()) > 1}


def test_a_curve_is_drawn_unchanged(age, ax):
    assert age.plot(ax) is ax
    drawn = lines(ax)
    for colour, values in ((HAPPENS, age.observed), (SAYS, age.predicted)):
        np.testing.assert_array_equal(drawn[colour].get_xdata(), age.x)
        np.testing.assert_array_equal(drawn[colour].get_ydata(), values)
    assert drawn[HAPPENS].get_linestyle() == "-" and drawn[SAYS].get_linestyle() == "--"
    band = ax.collections[0].get_paths()[0].vertices
    for edge in (age.observed_high, age.observed_low):
        assert np.isin(np.round(edge, 12), np.round(band[:, 1], 12)).all()
    (bars,) = (patch for patch in ax.patches if isinstance(patch, StepPatch))
    heights, edges, _ = bars.get_data()
    np.testing.assert_array_equal(edges, age.histogram.edges)
    share = age.histogram.share
    np.testing.assert_allclose(heights / heights.max(), share / share.max())
    strips = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert [patch.get_gid() for patch in strips] == ["region over"]
    assert strips[0].get_x() == age.regions[0].low
    shown = texts(ax)
    assert {"says", "happens, 95% band", "rate right", "rows", "95% sure", "▲ too sure"} <= {*shown}
    assert "age\n1st–99th percentile, n = 16,281" in shown
    assert not any("error" in text for text in shown)
    assert ax.get_xlim() == (age.histogram.edges[0], age.histogram.edges[-1])
    assert min(ax.get_yticks()) == pytest.approx(0.6) and ax.get_ylim()[1] <= 1


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_drawn(tilt, name):
    levels = np.array([*NAMES, "plain"], object)[np.arange(len(tilt.y)) % 7]
    for x in (tilt.v, levels):
        vc.curve(tilt.y, tilt.p, {name: x}, event="positive").plot().figure.canvas.draw()
        ax = vc.estimate(tilt.y, tilt.p, {name: x}, event="positive").plot()
        assert (name.strip() or "(blank)")[:10] in ax.get_title(loc="left")


def test_axes_of_matplotlib_are_needed(age):
    with pytest.raises(InputError, match="ax must be axes of matplotlib; got 3"):
        age.plot(3)


def test_the_reliability_diagram_holds_the_bins(tilt, ax):
    found = vc.reliability(tilt.y, tilt.p, event="positive")
    found.plot(ax)
    assert marks(ax) == list(zip(found.predicted, found.observed, strict=True))
    np.testing.assert_array_equal(lines(ax)[HAPPENS].get_ydata(), found.smooth)
    assert f"ECE {100 * found.ece.debiased:.1f} points" in " ".join(texts(ax))
    assert ax.get_aspect() == 1 and ax.get_xlim() == (0, 1)


@pytest.fixture(scope="module")
def effects():
    """Effects of variables of every kind."""
    rng = np.random.default_rng(0)
    n = 2000
    p, few, gone = rng.uniform(0.05, 0.95, n), rng.integers(0, 3, n), rng.random(n) < 0.2
    kind = np.array([*NAMES, "plain"], object)[rng.integers(0, 7, n)]
    kind[rng.random(n) < 0.1] = None
    X = {
        "income": np.where(gone, np.nan, rng.lognormal(10, 1.2, n)),
        "few": few,
        "<b>$x$ %{y}": kind,
        "day": np.datetime64("2024-01-01") + rng.integers(0, 300, n),
        "once": np.where(gone, np.nan, 7.0),
    }
    raised = 0.8 * few + gone + (kind == "plain")
    y = rng.random(n) < 1 / (1 + (1 / p - 1) * np.exp(-raised))
    return vc.VariableCalibrator(trees=False).fit(p, y, X).effects()


def test_effects_are_drawn_unchanged(effects, ax):
    effects.plot("income", ax)
    (curve,) = effects["income"]
    (line,) = (one for one in ax.get_lines() if len(one.get_xdata()) > 2)
    x, y = line.get_data()
    held = np.isin(x, curve.at)
    assert (x[0], x[-1]) == curve.inner and held.sum() == len(x) - 2  # but for the two ends
    np.testing.assert_array_equal(y[held], curve.value[np.isin(curve.at, x)])
    assert {y: x for x, y in marks(ax)}[curve.missing[0]] > curve.inner[1]
    assert {"missing", "income (1st–99th percentile)", "200,000"} <= {*texts(ax)}


@pytest.fixture(scope="module")
def audit(adult):
    X = {name: adult[name] for name in ("age", "education-num", "occupation")}
    X["noise"] = np.random.default_rng(0).normal(size=len(adult.y))
    y = np.where(adult.y == 1, ">50K", "<=50K")
    return vc.audit(y, np.sqrt(adult.p), X)  # both predicted sides have rows


@pytest.fixture(scope="module")
def compared(tilt):
    sets = {"raw": tilt.p, "truth": tilt.rate, "worse": np.clip(tilt.p * 2 * tilt.v, 0, 1)}
    noise = np.random.default_rng(0).normal(size=len(tilt.p))
    return vc.compare(tilt.y, sets, {"v": tilt.v, "noise": noise})


def test_the_ranking_is_that_of_the_audit(audit, ax):
    assert audit.plot(ax, top=3) is ax
    rows = audit.rows[:3]
    assert {*marks(ax)} == {(row.uneven.debiased, k) for k, row in enumerate(rows)}
    assert [bar.get_width() for bar in ax.patches] == [row.uneven.noise_high for row in rows]
    shown = texts(ax)
    assert {row.variable for row in rows} | {row.verdict for row in rows} <= {*shown}
    assert {f"Uneven error of {TARGET}", "… 1 more", "chance alone", "limit 2"} <= {*shown}
    assert "uneven error, points; 95% intervals for all at once" in shown
    assert not any(word in text for word in ("risk", "confidence", "claim") for text in shown)


@pytest.mark.parametrize("name", ["age", "occupation"])
def test_bins_are_drawn_for_all_rows_and_each_side(audit, name, ax):
    row = audit.row(name)
    columns, levels = row.table.columns, row.kind == "levels"
    figure = row.plot().figure
    titles = {"all": "All rows", "<=50K": "Predicted <=50K", ">50K": "Predicted >50K"}
    for side, panel in zip(titles, figure.axes, strict=True):
        own = [k for k, one in enumerate(columns["side"]) if one == side and columns["n"][k]]
        says, happens, gap = (
            np.array([columns[name][k] for k in own])
            for name in ("predicted", "observed", "gap_high")
        )
        rows = sum(columns["n"][k] for k in own)
        assert panel.get_title(loc="left") == f"{titles[side]}, {rows:,} rows"
        assert [dot[0 if levels else 1] for dot in marks(panel)] == happens.tolist()
        (dashes,) = (line for line in panel.get_lines() if line.get_marker() in "|_")
        drawn = dashes.get_xdata() if levels else dashes.get_ydata()
        np.testing.assert_array_equal(drawn[np.isfinite(drawn)], says)
        whiskers = panel.collections[0].get_segments()
        low = min(end for line in whiskers for end in line[:, 0 if levels else 1])
        assert low == pytest.approx(max(min(says - gap), 0))
    assert figure.get_suptitle().startswith(f"{TARGET} along {name}: uneven error ")
    (legend,) = figure.legends
    assert [one.get_text() for one in legend.get_texts()] == ["says", "happens, 95% interval"]
    assert row.plot(ax) is ax and len(ax.figure.axes) == 1
    assert any(text.startswith(f"{TARGET} along") for text in texts(ax))


def test_a_comparison_holds_the_figures_of_every_set(compared):
    ax = compared.plot()
    own = [row for row in compared.rows if row.metric == "uneven"]
    own.sort(key=lambda row: row.variable == "noise")
    assert [x for x, _ in sorted(marks(ax), key=lambda dot: dot[1])] == [row.value for row in own]
    names = ["v", "raw", "truth", "worse", "noise", "raw", "truth", "worse"]
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == names
    assert [k for k in range(8) if labels[k].get_fontweight() == "bold"] == [0, 4]
    shown = texts(ax)
    assert "Uneven error of P(y = 1)" in shown and shown.count("baseline") == 2
    assert any(text.startswith("fixed, −") for text in shown)
    assert "… 1 more" in texts(compared.plot(top=1))


def test_slices_are_rows_with_says_and_happens():
    y, p, X, _ = planted()
    y = np.where((X["kind"] == "a") & (np.arange(len(y)) % 3 == 0), 1, y)
    found = vc.slices(y, p, X, draws=39, max_depth=1)
    assert {one.gap > 0 for one in found} == {True, False}
    ax, places = found.plot(), range(len(found))
    says, happens = ([one.predicted for one in found], [one.observed for one in found])
    assert marks(ax) == [*zip(says, places, strict=True), *zip(happens, places, strict=True)]
    labels = [one.get_text().replace("\n", " ") for one in ax.get_yticklabels()]
    assert labels == [one.rule for one in found]
    shown = " ".join(texts(ax))
    for one in found:
        sizes = sorted(abs(x) for x in (one.low, one.shrunk, one.high))
        low, size, high = (f"{100 * x:.1f}" for x in sizes)
        word = "▲ too high" if one.gap > 0 else "▼ too low"
        assert f"{word} by {size} ({low} to {high})\n{one.rows:,} rows" in shown
    empty = replace(found, slices=()).plot()
    assert "No slice" in empty.get_title(loc="left") and empty.get_legend() is None


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
    return vc.surface("y", "p", [first, second], data=rows)


@pytest.mark.parametrize("kind", PAIRS)
def test_every_kind_is_drawn(rows, kind):
    found = surface(rows, *PAIRS[kind])
    view, ax = SurfaceView(found), found.plot()
    sure = view.sure != 0
    np.testing.assert_allclose(view.strength[sure], view.gap[sure] / view.most)
    assert view.kind == kind and ax.get_title(loc="left").startswith("Gap over")
    if kind == "map":
        shown = np.asarray(ax.images[0].get_array(), dtype=float)[view.judged]
        # Orange has little blue, violet little green.
        assert (shown[view.strength[view.judged] > 0.3][:, 2] < 0.75).all()
        assert (shown[view.strength[view.judged] < -0.3][:, 1] < 0.75).all()
        names = texts(ax)
        assert "missing" in names and "0" in names and not any("e-" in name for name in names)
    if kind == "strips":
        assert len(ax.child_axes) == 3
        np.testing.assert_array_equal(ax.child_axes[0].lines[1].get_ydata(), view.gap[0])
    if kind == "table":
        first = {one.get_text().split("\n")[0] for one in ax.texts}
        assert f"{100 * found.gap[0, 0]:+.1f}".replace("-", "−") in first


def test_a_monitor_shows_its_evidence_and_rates(rows):
    data = {name: rows[name] for name in ("y", "p", "v")}
    monitor = vc.Monitor(vc.make_bins("y", "p", data=data, monitor=0.02))
    for day in range(6):
        part = {name: column[day::6] for name, column in data.items()}
        if day > 2:
            part["y"] = np.where(part["v"] > 0.5, 1, part["y"])
        monitor.update(part, id=f"day {day}")
    figure, view = monitor.plot(), view_of(monitor)
    assert figure.get_suptitle().startswith(f"ALARM since {monitor.status.where.since}")
    evidence, rates = figure.axes[:2]
    assert view.evidence.max() > 2000 and "cut off at 2000" in evidence.get_title(loc="left")
    np.testing.assert_array_equal(evidence.get_lines()[1].get_xdata(), view.x)
    solid = [line for line in rates.get_lines() if line.get_color() == "#0072B2"]
    np.testing.assert_array_equal(solid[-1].get_ydata(), view.after.observed)
    assert "says" in texts(rates)
