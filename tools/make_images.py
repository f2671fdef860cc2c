"""Draw the figures that no page of the documentation draws itself; doc_pages.py draws the others.

python tools/make_images.py [folder]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from doc_pages import save
from PIL import Image

mpl.use("Agg")

import varcal as vc

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from cases.browser import open_browser

SCREEN = {"width": 1280, "height": 840}
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
    save(story(1, 3, (12.6, 4.0)), folder / "story.png")
    save(story(3, 1, (5.0, 10.5)), folder / "story-tall.png")  # for phones
    save(growth(), folder / "growth.png")
    report(folder / "report.png")


def report(path: Path) -> None:
    """Photograph the first screen of a report; needs Chromium."""
    rows = vc.datasets.load_income().part("audit")
    with tempfile.TemporaryDirectory() as home, open_browser() as browser:
        page = Path(home, "report.html")
        vc.audit(rows.y, rows.p, rows.X).report(page, title="Income model")
        tab = browser.new_page(viewport=SCREEN, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


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


def story(rows: int, columns: int, size: tuple[float, float]) -> Any:
    """Return the picture that opens the README, of rows that nothing was learned from.

    By score, by age, and by age once it is repaired.
    """
    income = vc.datasets.load_income()
    seen, new = income.part("audit"), income.part("test")
    repair = vc.VariableCalibrator().fit(seen.p, seen.y, seen.X)
    repaired = repair.predict_proba(new.p, new.X)[:, 1]
    age = {"age": new["age"]}
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained")
    vc.reliability(new.y, new.p, event="positive").plot(ax=axes[0])
    for ax, p in zip(axes[1:], (new.p, repaired), strict=True):
        vc.curve(new.y, p, age, event="positive").plot(ax=ax)
    titles = ("By score: right", "By age: wrong", "By age, after the repair")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, loc="left")
        ax.set_ylabel("earn more than $50,000")
    return figure


if __name__ == "__main__":
    default = Path(__file__).parents[1] / "docs" / "images"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
