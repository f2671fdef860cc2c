"""Draw the figures of the documentation.

python tools/make_images.py [folder]
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from doc_pages import save

mpl.use("Agg")

import varcal as vc

GROWN = "VariableCalibrator"
GROWTH_LINES = {GROWN: "#0072b2", "LightGBM": "#d55e00", "MCGrad": "#009e73", "Platt": "#999999"}
GROWTH_PANELS = {
    "none": "nothing to learn",
    "additive": "smooth effects",
    "jump": "jumps",
    "checkerboard": "a checkerboard of two",
    "spikes": "spikes of three",
    "diamonds": "diamonds",
    "flights, random": "flights, known dates",
    "flights, by date": "flights, new dates",
}


def main(folder: Path) -> None:
    """Write all figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    save(story(), folder / "story.png")
    save(monitor(), folder / "monitor.png", colours=256)
    save(growth(), folder / "growth.png")
    adult = vc.datasets.load_adult()
    audit = vc.audit(adult.y, adult.p, adult.X)
    save(audit.plot(), folder / "audit.png")
    save(audit["age"].plot(), folder / "curve.png")
    save(audit["occupation"].plot(), folder / "levels.png")

    rows = np.random.default_rng(0).permutation(len(adult))
    fit, test = rows[:5000], rows[5000:]
    age, y, p = adult["age"], adult.y, adult.p
    beta = vc.BetaCalibrator().fit(p[fit], y[fit])
    tree = vc.TreeCalibrator().fit(p[fit], y[fit], {"age": age[fit]})
    names = ("age", "hours-per-week", "occupation")
    columns = {name: adult[name][test] for name in names}
    auto = vc.VariableCalibrator().fit(p[fit], y[fit], {name: adult[name][fit] for name in names})
    scores = {
        "raw": p[test],
        "beta": beta.predict_proba(p[test]),
        "tree on age": tree.predict_proba(p[test], {"age": age[test]}),
        "VariableCalibrator": auto.predict_proba(p[test], columns),
    }
    curves = {name: vc.curve(y[test], q, {"age": age[test]}) for name, q in scores.items()}
    save(vc.plotting.before_after(curves), folder / "before_after.png")
    save(vc.compare(y[test], scores, columns).plot(), folder / "compare.png")
    save(effects().plot("income"), folder / "effect.png")
    rows = vc.datasets.load_income().part("audit")
    years = {"age": rows["age"]}
    for name, other in (("surface", "education-num"), ("surface_levels", "marital-status")):
        found = vc.surface(rows.y, rows.p, years, {other: rows[other]})
        save(found.plot(), folder / f"{name}.png")
    save(vc.slices(rows.y, rows.p, rows.X).plot(), folder / "slices.png")
    sim = vc.datasets.make_gap(4000, "tilt", vece=0.1)
    diagram = vc.reliability(sim.y, sim.p, event="positive")
    save(diagram.plot(), folder / "reliability.png")


def growth() -> Any:
    """Draw log-loss against the number of calibration rows, as the benchmark found it."""
    lines = (Path(__file__).parents[1] / "benchmarks" / "growth.jsonl").read_text(encoding="utf-8")
    found = pd.DataFrame([json.loads(line) for line in lines.splitlines()])
    keys = ["world", "n", "seed"]
    raw = found[found["method"] == "raw"].set_index(keys)["log_loss"]
    found = found.assign(saved=found.set_index(keys).index.map(raw) - found["log_loss"])
    # On flights at random, new rows have the dates of calibration rows, and the fit is told so.
    told = (found["world"] == "flights, random") & found["method"].str.startswith(GROWN)
    found = found[~told | found["method"].str.endswith("blocks=False")]
    found = found.assign(method=found["method"].str.partition(",")[0])
    figure, axes = plt.subplots(2, 4, figsize=(12.6, 5.4), layout="constrained", sharex=True)
    for ax, (world, title) in zip(axes.flat, GROWTH_PANELS.items(), strict=True):
        for name, colour in GROWTH_LINES.items():
            own = found[(found["world"] == world) & (found["method"] == name)]
            by_rows = own.groupby("n")["saved"]
            mean, error = by_rows.mean(), by_rows.sem().fillna(0.0)
            wide = 2.4 if name == GROWN else 1.2
            ax.errorbar(mean.index, mean, error, color=colour, linewidth=wide, marker="o", ms=3)
        ax.axhline(0, color="0.6", linewidth=0.8)
        ax.set_xscale("log")
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_xticks([300, 3_000, 30_000, 200_000], ["300", "3,000", "30,000", "200,000"])
        ax.minorticks_off()
    figure.supylabel("log-loss below that of the raw scores", fontsize=10)
    figure.supxlabel("calibration rows", fontsize=10)
    handles = [mpl.lines.Line2D([], [], color=colour) for colour in GROWTH_LINES.values()]
    figure.legend(handles, list(GROWTH_LINES), loc="outside upper center", ncols=4, frameon=False)
    return figure


def monitor() -> Any:
    """Draw the monitor of the guide, by running the beginning of its code."""
    guide = Path(__file__).parents[1] / "docs" / "monitor.md"
    blocks = re.findall(r"^```python\n(.*?)^```", guide.read_text(encoding="utf-8"), re.M | re.S)
    scope: dict[str, Any] = {}
    for block in blocks[:2]:
        exec(compile(block, guide.name, "exec"), scope)
    return scope["monitor"].plot()


def story() -> Any:
    """Return the picture that opens the README, of rows that nothing was learned from.

    By score, by age, and by age once it is repaired.
    """
    income = vc.datasets.load_income()
    seen, new = income.part("audit"), income.part("test")
    repair = vc.VariableCalibrator().fit(seen.p, seen.y, seen.X)
    repaired = repair.predict_proba(new.p, new.X)[:, 1]
    age = {"age": new["age"]}
    figure, axes = plt.subplots(1, 3, figsize=(12.6, 4.0), layout="constrained")
    vc.reliability(new.y, new.p, event="positive").plot(ax=axes[0])
    for ax, p in zip(axes[1:], (new.p, repaired), strict=True):
        vc.curve(new.y, p, age, event="positive").plot(ax=ax)
    titles = ("By score: right", "By age: wrong", "By age, after the repair")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, loc="left")
        ax.set_ylabel("earn more than $50,000")
    return figure


def effects() -> Any:
    """Return the effects of a calibrator whose variable has missing values."""
    rng = np.random.default_rng(0)
    p, income = rng.uniform(0.05, 0.95, 4000), rng.lognormal(10, 0.8, 4000)
    missing = rng.random(4000) < 0.15
    shift = np.where(missing, -0.8, 1.5 * np.tanh(income / 25_000 - 1))
    y = rng.random(4000) < 1 / (1 + (1 / p - 1) * np.exp(-shift))
    v = {"income": np.where(missing, np.nan, income)}
    return vc.VariableCalibrator().fit(p, y, v).effects()


if __name__ == "__main__":
    default = Path(__file__).parents[1] / "docs" / "images"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
