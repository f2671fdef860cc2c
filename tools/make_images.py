"""Draw the figures of the documentation.

python tools/make_images.py [folder]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from doc_pages import save

mpl.use("Agg")

import varcal as vc


def main(folder: Path) -> None:
    """Write all figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    save(story(), folder / "story.png")
    save(monitor(), folder / "monitor.png", colours=256)
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
    sim = vc.datasets.make_gap(4000, "tilt", vece=0.1)
    diagram = vc.reliability(sim.y, sim.p, event="positive")
    save(diagram.plot(), folder / "reliability.png")


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
