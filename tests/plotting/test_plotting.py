"""Plots show the numbers of their results and do not change the user's state."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

import varcal as vc
from varcal._text.numbers import points
from varcal.exceptions import InputError, MissingDependencyError
from varcal.plotting._words import escape, sides

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
    for colour, values in (("#0072B2", age.error), ("#D55E00", age.predicted_error)):
        np.testing.assert_array_equal(drawn[colour].get_xdata(), age.x)
        np.testing.assert_array_equal(drawn[colour].get_ydata(), values)
    assert drawn["#0072B2"].get_linestyle() == "-"
    assert drawn["#D55E00"].get_linestyle() == "--"
    band = ax.collections[0].get_paths()[0].vertices
    for edge in (age.error_low, age.error_high):
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
    np.testing.assert_array_equal(lines(ax)["#0072B2"].get_ydata(), 1 - curve.error)


def test_levels_are_dots_against_dashes_with_their_rows(audit, ax):
    curve = audit["occupation"]
    curve.plot(ax)
    dots = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_array_equal(dots[0].get_xdata(), curve.error)
    dashes = [line for line in ax.get_lines() if line.get_marker() == "|"]
    np.testing.assert_array_equal(dashes[0].get_xdata(), curve.predicted_error)
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
    vc.plotting.dots([name], [0.1], [0.0], [0.2], title=name, texts=[name]).figure.canvas.draw()
    vc.plotting.before_after({name: curve, "other": curve}).canvas.draw()
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
    np.testing.assert_array_equal(dots[:, 0], [row.beyond.debiased for row in audit.rows[:3]])
    assert {row.variable for row in audit.rows[:3]} | {"… 1 more", "off"} <= set(texts(ax))
    bars = [patch.get_width() for patch in ax.patches]
    np.testing.assert_array_equal(bars, [row.beyond.noise_high for row in audit.rows[:3]])
    assert f"by {points(audit.gap)} points" in ax.get_title(loc="left").replace("\n", " ")
    assert "limit 2.0" in texts(ax) and "hidden error" in ax.get_xlabel()
    assert "VECE, 95% interval, points" in texts(audit.plot(quantity="vece"))
    with pytest.raises(InputError, match="quantity must be one of 'beyond', 'vece'"):
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
    np.testing.assert_array_equal(dots.get_xdata(), found.confidence)
    np.testing.assert_array_equal(dots.get_ydata(), found.accuracy)
    np.testing.assert_array_equal(lines(ax)["#0072B2"].get_ydata(), found.smooth)
    assert any(text.startswith(f"ECE {points(found.ece.debiased)} points") for text in texts(ax))
    assert ax.get_aspect() == 1


def test_before_and_after_share_their_axes(tilt):
    shifted = np.clip(tilt.p + 0.2, 0, 1)
    curves = {
        name: vc.curve(tilt.y, p, {"v": tilt.v}, event="positive")
        for name, p in (("raw", tilt.p), ("shifted", shifted), ("third", tilt.p))
    }
    figure = vc.plotting.before_after(curves, columns=2)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == 3
    assert len({ax.get_ylim() for ax in shown}) == len({ax.get_xlim() for ax in shown}) == 1
    for ax, (name, curve) in zip(shown, curves.items(), strict=True):
        title = ax.get_title(loc="left")
        assert title.startswith(name) and f"VECE {points(curve.vece)} (" in title
        assert f"worst {points(curve.vce)}" in title
    other = vc.curve(tilt.y, tilt.p, {"w": tilt.v}, event="positive")
    with pytest.raises(InputError, match="curve 'b' differs from the first in variable: 'w'"):
        vc.plotting.before_after({"a": curves["raw"], "b": other})
    with pytest.raises(InputError, match="curves is empty"):
        vc.plotting.before_after({})
    with pytest.raises(InputError, match="columns must be"):
        vc.plotting.before_after(curves, columns=0)


def test_dots_need_one_value_per_name():
    with pytest.raises(InputError, match="low has 1 values for 2 names"):
        vc.plotting.dots(["a", "b"], [1, 2], [1], [2, 3])
    with pytest.raises(InputError, match="names is empty"):
        vc.plotting.dots([], [], [], [])


def test_backends_are_known_by_name(age, ax):
    with pytest.raises(InputError, match="backend must be one of 'matplotlib', 'plotly'"):
        age.plot(backend="plotty")
    with pytest.raises(InputError, match='ax is for backend="matplotlib"'):
        age.plot(ax, backend="plotly")


def test_without_plotly_it_is_named(age, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(MissingDependencyError, match="needs plotly\nhint: pip install"):
        age.plot(backend="plotly")


def traces(figure):
    return {trace.name: trace for trace in figure.data if trace.name}


def test_plotly_holds_the_same_numbers(age, audit, tilt):
    drawn = traces(age.plot(backend="plotly"))
    np.testing.assert_array_equal(drawn["actual"].x, age.x)
    np.testing.assert_array_equal(drawn["actual"].y, age.error)
    np.testing.assert_array_equal(drawn["predicted"].y, age.predicted_error)
    np.testing.assert_array_equal(drawn["rows"].y, age.histogram.share)
    levels = audit["occupation"]
    drawn = traces(levels.plot(backend="plotly"))
    np.testing.assert_array_equal(drawn["actual"].x, levels.error)
    np.testing.assert_array_equal(drawn["predicted"].x, levels.predicted_error)
    few = audit["education-num"]
    np.testing.assert_array_equal(traces(few.plot(backend="plotly"))["actual"].y, few.error)
    ranking = traces(audit.plot(backend="plotly", top=3))
    np.testing.assert_array_equal(
        ranking["estimate"].x, [row.beyond.debiased for row in audit.rows[:3]]
    )
    found = vc.reliability(tilt.y, tilt.p, event="positive")
    drawn = traces(found.plot(backend="plotly"))
    np.testing.assert_array_equal(drawn["bins"].x, found.confidence)
    np.testing.assert_array_equal(drawn["smooth"].y, found.smooth)
    one = traces(found.ece.plot(backend="plotly"))
    assert one["plug-in"].x[0] == found.ece.value


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


def test_both_backends_draw_the_same_effects(effects, ax):
    curves = effects["income"]
    effects.plot("income", ax)
    figure = effects.plot("income", backend="plotly")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == score_names(curves)
    named = {line.get_label(): line for line in ax.get_lines()}
    for curve, name in zip(curves, score_names(curves), strict=True):
        line, missing = (trace for trace in figure.data if trace.name == name)
        np.testing.assert_array_equal(line.x, named[name].get_xdata())
        np.testing.assert_array_equal(line.y, named[name].get_ydata())
        held = np.isin(line.x, curve.at)
        assert held.sum() == len(line.x) - 2  # but for the two ends
        assert (line.x[0], line.x[-1]) == curve.inner
        np.testing.assert_array_equal(line.y[held], curve.value[np.isin(curve.at, line.x)])
        assert missing.y[0] == curve.missing[0] and missing.x[0] > curve.inner[1]
        assert missing.error_y.array[0] == pytest.approx(curve.missing[2] - curve.missing[0])
    assert figure.layout.xaxis.title.text == "income (1st–99th percentile)" == ax.get_xlabel()
    assert figure.layout.yaxis.range == pytest.approx(ax.get_ylim())
    assert "missing" in texts(ax) and ax.get_xlim()[1] > curves[0].inner[1]


def test_effects_of_levels_and_few_numbers_are_dots(effects, ax):
    curves = effects["few"]
    figure = effects.plot("few", backend="plotly")
    for curve, trace in zip(curves, figure.data, strict=True):
        assert trace.mode == "markers" and curve.at == (0.0, 1.0, 2.0)
        np.testing.assert_array_equal(trace.y, curve.value)
        np.testing.assert_allclose(trace.x, curve.at, atol=0.05)
    evil = "<b>$x$ %{y}"
    effects.plot(evil, ax)
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert shown[-1] == "(missing)" and len(shown) == 8 and max(map(len, shown)) <= 24
    figure = effects.plot(evil, backend="plotly")
    for curve, trace in zip(effects[evil], figure.data, strict=True):
        np.testing.assert_array_equal(trace.x, [*curve.value, curve.missing[0]])
    text = figure.to_json()
    assert "script>alert" not in text and "<b>" not in text and "%{" not in text
    assert "$" not in text.replace("&#36;", "")


def test_effects_along_dates_many_levels_and_a_single_value(effects):
    days = effects.plot("day", backend="plotly").data[2].x
    assert days[0] == np.datetime64("2024-01-01") and days[-1] == np.datetime64("2024-10-26")
    figure = effects.plot("many", backend="plotly")
    assert len(figure.layout.yaxis.ticktext) == 20
    assert figure.layout.yaxis.title.text == "many (20 of 45 levels, largest effects)"
    for backend in ("matplotlib", "plotly"):
        effects.plot("once", backend=backend)
        effects.plot(backend=backend)


def test_a_single_curve_has_no_legend():
    rng = np.random.default_rng(0)
    p, v = rng.dirichlet(np.ones(3), 600), rng.normal(size=600)
    y = rng.integers(0, 3, 600)
    found = vc.VariableCalibrator().fit(p, y, {"v": v}).effects()
    ax = found.plot()
    assert ax.get_legend() is None
    assert ax.get_ylabel() == "change of the log inverse temperature\n(above 0: confidence raised)"
    assert not found.plot(backend="plotly").layout.showlegend


def test_plotly_panels_and_dates(tilt):
    days = np.datetime64("2024-01-01") + np.arange(len(tilt.y)) % 300
    curve = vc.curve(tilt.y, tilt.p, {"day": days}, event="positive")
    drawn = traces(curve.plot(backend="plotly"))
    np.testing.assert_array_equal(drawn["actual"].x, np.array(np.round(curve.x * 1e6), "M8[us]"))
    figure = vc.plotting.before_after({"raw": curve, "<b>": curve}, backend="plotly")
    shown = [note.text for note in figure.layout.annotations]
    assert any(text.startswith("&lt;b&gt;<br>VECE") for text in shown)
    assert sum(trace.name == "actual" for trace in figure.data) == 2


def test_plotly_escapes_names(tilt):
    levels = np.array([*NAMES, "plain"], object)[np.arange(len(tilt.y)) % 7]
    evil = "<b>$x$ %{y}"
    curve = vc.curve(tilt.y, tilt.p, {evil: levels}, event="positive")
    for figure in (
        curve.plot(backend="plotly"),
        vc.plotting.dots([evil], [0.1], [0], [0.2], title=evil, texts=[evil], backend="plotly"),
        vc.plotting.before_after({evil: curve}, backend="plotly"),
    ):
        text = figure.to_json()
        assert "script>alert" not in text and "<b>" not in text and "%{" not in text
        assert "$" not in text.replace("&#36;", "")


@given(st.text(max_size=30))
def test_escaped_names_hold_no_markup(name):
    assert not set("<>$\"'{") & set(escape(name))


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
