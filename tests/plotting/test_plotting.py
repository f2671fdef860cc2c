"""Plots show the numbers of their results and do not change the user's state."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

import varcal as vc
from varcal._plotting.curve import sides
from varcal._text.numbers import points
from varcal.exceptions import InputError, MissingDependencyError

NAMES = ["$\\frac$", "_hidden", "<b>bold</b> & <script>alert(1)</script>", "a" * 90, "%{x}", " "]


@pytest.fixture(scope="module")
def audit(adult):
    names = ("age", "education-num", "occupation", "sex")
    chosen = {name: adult[name] for name in names}
    return vc.audit(adult.y, adult.p, chosen, event="correct", repair=False)


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
    ax.figure.draw_without_rendering()
    found = [text.get_text() for text in ax.texts] + [ax.get_title(loc="left")]
    found += [label.get_text() for label in (*ax.get_xticklabels(), *ax.get_yticklabels())]
    return [*found, ax.get_xlabel(), ax.get_ylabel()]


def lines(ax):
    return {line.get_color(): line for line in ax.get_lines() if len(line.get_xdata()) > 1}


def test_a_curve_is_drawn_unchanged(age, ax):
    assert age.plot(ax) is ax
    drawn = lines(ax)
    for colour, values in (("#0072B2", 1 - age.observed), ("#D55E00", 1 - age.predicted)):
        np.testing.assert_array_equal(drawn[colour].get_xdata(), age.x)
        np.testing.assert_array_equal(drawn[colour].get_ydata(), values)
    assert drawn["#0072B2"].get_linestyle() == "-"
    assert drawn["#D55E00"].get_linestyle() == "--"
    band = ax.collections[0].get_paths()[0].vertices
    for edge in (1 - age.observed_high, 1 - age.observed_low):
        assert np.isin(np.round(edge, 12), np.round(band[:, 1], 12)).all()
    (bars,) = (patch for patch in ax.patches if isinstance(patch, StepPatch))
    heights, edges, _ = bars.get_data()
    share = age.histogram.share
    np.testing.assert_array_equal(edges, age.histogram.edges)
    np.testing.assert_allclose(heights / heights.max(), share / share.max())
    strips = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert [patch.get_gid() for patch in strips] == ["region over"]
    assert strips[0].get_x() == age.regions[0].low
    assert {"actual", "predicted", "rows", "95% sure", "too sure"} <= set(texts(ax))
    assert "1st–99th percentile, n = 16,281" in ax.get_xlabel()
    assert ax.get_xlim() == (age.histogram.edges[0], age.histogram.edges[-1])
    assert min(ax.get_yticks()) == 0 and ax.get_ylim()[1] <= 1


def test_under_and_over_differ_without_colour(tilt, ax):
    curve = vc.curve(tilt.y, tilt.p, tilt.v, event="positive")
    curve.plot(ax)
    assert {region.direction for region in curve.regions} == {"over", "under"}
    markers = {line.get_marker() for line in ax.get_lines()}
    assert {"^", "v"} <= markers
    assert ax.get_ylabel() == "actual rate"
    assert {"risk too high", "risk too low"} & set(texts(ax)) or {"too high"} <= set(texts(ax))
    np.testing.assert_array_equal(lines(ax)["#0072B2"].get_ydata(), curve.observed)


def test_levels_are_dots_against_dashes_with_their_rows(audit, ax):
    curve = audit["occupation"]
    curve.plot(ax)
    dots = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_array_equal(dots[0].get_xdata(), 1 - curve.observed)
    dashes = [line for line in ax.get_lines() if line.get_marker() == "|"]
    np.testing.assert_array_equal(dashes[0].get_xdata(), 1 - curve.predicted)
    named = " ".join(texts(ax))
    assert all(f"{count:,}" in named for count in curve.counts)
    assert curve.counts.sum() == curve.n_rows
    assert "966 missing (gap" in ax.get_xlabel()


def test_few_numbers_are_drawn_separately(audit, ax):
    curve = audit["education-num"]
    curve.plot(ax)
    dots = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_array_equal(dots[0].get_xdata(), curve.x)
    ax.figure.draw_without_rendering()
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_dates_are_dates(tilt, ax):
    days = np.datetime64("2024-01-01") + np.arange(len(tilt.y)) % 300
    curve = vc.curve(tilt.y, tilt.p, {"day": days}, event="positive")
    curve.plot(ax)
    expected = mdates.date2num(np.array(np.round(curve.x * 1e6), "M8[us]"))
    np.testing.assert_array_equal(lines(ax)["#0072B2"].get_xdata(), expected)
    shown = [text for text in texts(ax) if text in ("Mar", "May", "Jul", "Sep", "Apr")]
    assert shown
    assert "T" not in ax.get_title(loc="left").split(" at ")[1]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_drawn(tilt, name, ax):
    levels = np.array([*NAMES, "plain"], object)[np.arange(len(tilt.y)) % 7]
    curve = vc.curve(tilt.y, tilt.p, {name: tilt.v}, event="positive")
    curve.plot(ax)
    ax.figure.canvas.draw()
    assert ax.get_xlabel().startswith((name.strip() or "(blank)")[:20])
    other = Figure(figsize=(3.4, 3)).add_subplot()
    vc.curve(tilt.y, tilt.p, {name: levels}, event="positive").plot(other)
    other.figure.canvas.draw()
    compared = vc.compare(tilt.y, {name: tilt.p, "other": tilt.p}, {name: tilt.v})
    compared.plot().figure.canvas.draw()
    compared.plot_variable(name).canvas.draw()
    vc.estimate(tilt.y, tilt.p, {name: tilt.v}, event="positive").plot().figure.canvas.draw()


def test_the_state_of_the_user_is_unchanged(age, audit, tilt):
    before = dict(mpl.rcParams)
    figure = Figure(figsize=(7, 7))
    axes = figure.subplots(2, 2)
    age.plot(axes[0, 0])
    audit.plot(axes[0, 1])
    vc.reliability(tilt.y, tilt.p, event="positive").plot(axes[1, 0])
    vc.estimate(tilt.y, tilt.p, tilt.v).plot(axes[1, 1])
    assert not plt.get_fignums()
    assert dict(mpl.rcParams) == before
    assert len(figure.axes) == 4
    axes[0, 0].figure.canvas.draw()


def test_without_axes_there_is_a_figure_of_its_own(age):
    mine = plt.figure()
    drawn = age.plot()
    assert drawn.figure is not mine and plt.gcf() is drawn.figure


def test_the_ranking_is_that_of_the_audit(audit, ax):
    audit.plot(ax, top=3)
    dots = ax.collections[-1].get_offsets()
    np.testing.assert_array_equal(dots[:, 0], [row.uneven.debiased for row in audit.rows[:3]])
    assert {row.variable for row in audit.rows[:3]} | {"… 1 more", "off"} <= set(texts(ax))
    bars = [patch.get_width() for patch in ax.patches]
    np.testing.assert_array_equal(bars, [row.uneven.noise_high for row in audit.rows[:3]])
    assert f"by {points(audit.gap)} points" in ax.get_title(loc="left").replace("\n", " ")
    assert "limit 2.0" in texts(ax) and "uneven error" in ax.get_xlabel()
    assert "VECE, 95% interval, points" in texts(audit.plot(quantity="vece"))
    with pytest.raises(InputError, match="quantity must be one of 'uneven', 'vece'"):
        audit.plot(quantity="veces")


def test_an_estimate_shows_its_plug_in_and_noise(tilt, ax):
    found = vc.estimate(tilt.y, tilt.p, tilt.v, event="positive")
    found.plot(ax)
    places = {float(c.get_offsets()[0, 0]) for c in ax.collections if len(c.get_offsets())}
    assert {found.debiased, found.value} <= places
    assert ax.patches[0].get_width() == found.noise_high


def test_the_reliability_diagram_holds_the_bins(tilt, ax):
    found = vc.reliability(tilt.y, tilt.p, event="positive")
    found.plot(ax)
    (dots,) = (line for line in ax.get_lines() if line.get_marker() == "o")
    np.testing.assert_array_equal(dots.get_xdata(), found.predicted)
    np.testing.assert_array_equal(dots.get_ydata(), found.observed)
    np.testing.assert_array_equal(lines(ax)["#0072B2"].get_ydata(), found.smooth)
    assert any(text.startswith(f"ECE {points(found.ece.debiased)} points") for text in texts(ax))
    assert ax.get_aspect() == 1


def test_before_and_after_share_their_axes(tilt):
    shifted = np.clip(tilt.p + 0.2, 0, 1)
    found = vc.compare(tilt.y, {"raw": tilt.p, "shifted": shifted, "third": tilt.p}, {"v": tilt.v})
    figure = found.plot_variable("v", columns=2)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == 3
    assert len({ax.get_ylim() for ax in shown}) == len({ax.get_xlim() for ax in shown}) == 1
    for ax, (name, curve) in zip(shown, found.curves["v"].items(), strict=True):
        title = ax.get_title(loc="left")
        assert title.startswith(name) and f"VECE {points(curve.vece)} (" in title
        assert f"worst {points(curve.vce)}" in title
    with pytest.raises(InputError, match="variable must be one of 'v'; got 'w'"):
        found.plot_variable("w")
    with pytest.raises(InputError, match="columns must be"):
        found.plot_variable("v", columns=0)


def test_axes_and_matplotlib_are_needed(age, monkeypatch):
    with pytest.raises(InputError, match="ax must be axes of matplotlib; got 3"):
        age.plot(3)
    for name in [name for name in sys.modules if name.startswith("varcal._plotting")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"plot\(\) needs matplotlib\nhint: pip"):
        age.plot()


@pytest.fixture(scope="module")
def effects():
    """Effects of variables of every kind, on axes of every kind."""
    rng = np.random.default_rng(0)
    n = 2000
    p, few = rng.uniform(0.05, 0.95, n), rng.integers(0, 3, n)
    gone = rng.random(n) < 0.2
    income = np.where(gone, np.nan, rng.lognormal(10, 1.2, n))
    kind = np.array([*NAMES, "plain"], object)[rng.integers(0, 7, n)]
    kind[rng.random(n) < 0.1] = None
    v = {
        "income": income,
        "few": few,
        "<b>$x$ %{y}": kind,
        "day": np.datetime64("2024-01-01") + rng.integers(0, 300, n),
        "once": np.where(gone, np.nan, 7.0),
        "many": [f"level {k}" for k in rng.integers(0, 45, n)],
    }
    raised = 0.8 * few + gone + (kind == "plain")
    y = rng.random(n) < 1 / (1 + (1 / p - 1) * np.exp(-raised))
    return vc.VariableCalibrator(interactions=False).fit(p, y, v).effects()


def score_names(curves):
    return [f"at score {curve.score:.2g}" for curve in curves]


def test_effects_are_drawn_unchanged(effects, ax):
    curves = effects["income"]
    effects.plot("income", ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == score_names(curves)
    named = {line.get_label(): line for line in ax.get_lines()}
    missing = {float(bar[0].get_ydata()[0]): bar[0].get_xdata()[0] for bar in ax.containers}
    for curve, name in zip(curves, score_names(curves), strict=True):
        x, y = named[name].get_data()
        held = np.isin(x, curve.at)
        assert held.sum() == len(x) - 2  # but for the two ends
        assert (x[0], x[-1]) == curve.inner
        np.testing.assert_array_equal(y[held], curve.value[np.isin(curve.at, x)])
        assert missing[curve.missing[0]] > curve.inner[1]
    assert ax.get_xlabel() == "income (1st–99th percentile)"
    assert "missing" in texts(ax) and ax.get_xlim()[1] > curves[0].inner[1]


def test_effects_of_levels_and_few_numbers_are_dots(effects, ax):
    curves = effects["few"]
    drawn = [bar[0] for bar in effects.plot("few").containers]
    for curve, dots in zip(curves, drawn, strict=True):
        assert curve.at == (0.0, 1.0, 2.0)
        np.testing.assert_array_equal(dots.get_ydata(), curve.value)
        np.testing.assert_allclose(dots.get_xdata(), curve.at, atol=0.05)
    evil = "<b>$x$ %{y}"
    effects.plot(evil, ax)
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert shown[-1] == "(missing)" and len(shown) == 8 and max(map(len, shown)) <= 24
    for curve, bar in zip(effects[evil], ax.containers, strict=True):
        np.testing.assert_array_equal(bar[0].get_xdata(), [*curve.value, curve.missing[0]])


def test_effects_along_dates_many_levels_and_a_single_value(effects, ax):
    days = mdates.num2date(effects.plot("day").get_lines()[1].get_xdata())
    assert str(days[0].date()) == "2024-01-01" and str(days[-1].date()) == "2024-10-26"
    effects.plot("many", ax)
    assert len(ax.get_yticks()) == 20
    assert ax.get_ylabel() == "many (20 of 45 levels, largest effects)"
    effects.plot("once").figure.canvas.draw()
    effects.plot().figure.canvas.draw()


def test_a_single_curve_has_no_legend():
    rng = np.random.default_rng(0)
    p, v = rng.dirichlet(np.ones(3), 600), rng.normal(size=600)
    y = rng.integers(0, 3, 600)
    found = vc.VariableCalibrator().fit(p, y, {"v": v}).effects()
    ax = found.plot()
    assert ax.get_legend() is None
    assert ax.get_ylabel() == "change of the log inverse temperature\n(above 0: confidence raised)"


def test_notebooks_show_escaped_tables(tilt, audit):
    evil = "<img src=x onerror=alert(1)>"
    curve = vc.curve(tilt.y, tilt.p, {evil: tilt.v}, event="positive")
    chosen = {evil: tilt.v, "w": tilt.v}
    found = vc.audit(tilt.y, tilt.p, chosen, event="positive", repair=False)
    shown = [
        curve._repr_html_(),
        found._repr_html_(),
        vc.estimate(tilt.y, tilt.p, {evil: tilt.v})._repr_html_(),
        vc.bin_table(tilt.y, tilt.p, {evil: tilt.v})._repr_html_(),
        found.since(found)._repr_html_(),
    ]
    for page in shown:
        assert "<img" not in page and "&lt;img" in page and "<table>" in page


def test_durations_have_units(tilt, ax):
    stay = np.arange(len(tilt.y)) % 240 * np.timedelta64(1, "h")
    vc.curve(tilt.y, tilt.p, {"stay": stay}, event="positive").plot(ax)
    assert {"0 s", "120 h", "5 days"} & set(texts(ax))


def test_words():
    assert points(-0.0001) == "0.0" and points(-0.123) == "−12.3"


def test_shares_stay_shares(age):
    drawn = sides(age)
    for part in (drawn.actual, drawn.low, drawn.high, drawn.predicted):
        assert part.min() >= 0 and part.max() <= 1
    assert ((drawn.low <= drawn.actual) & (drawn.actual <= drawn.high)).all()
