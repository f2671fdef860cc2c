"""Draw the figures that no page of the documentation draws itself; doc_pages.py draws the others.

python tools/make_images.py [folder]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from doc_pages import save
from PIL import Image

mpl.use("Agg")

import varcal as vc

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from cases.browser import open_browser

SCREEN = {"width": 1280, "height": 840}


def main(folder: Path) -> None:
    """Write all figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    save(story(1, 3, (12.6, 4.0)), folder / "story.png")
    save(story(3, 1, (5.0, 10.5)), folder / "story-tall.png")  # for phones
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
