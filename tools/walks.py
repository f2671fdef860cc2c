"""Show which files three everyday calls pass through, and how often they switch between them.

A switch is a call from a function of one module to a function of another, both in varcal.
The walks of docs/architecture.md come from here::

    python tools/walks.py
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import varcal as vc

ROOT = Path(vc.__file__).parent


def walk(call: Callable[[], Any]) -> tuple[list[str], int]:
    """Return the files in the order in which they are first entered, and the switches."""
    files: dict[str, None] = {}
    switches = 0

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal switches
        if event != "call":
            return
        here, before = _module(frame), _module(frame.f_back)
        if here:
            files.setdefault(here)
            switches += bool(before) and before != here

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(files), switches


def _module(frame: Any) -> str:
    """Return the file of a frame below varcal; none for imports and other packages."""
    if frame is None or frame.f_code.co_name == "<module>":
        return ""
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""


def main() -> None:
    """Print the three walks."""
    adult = vc.datasets.load_adult()
    rows = np.random.default_rng(0).permutation(len(adult))[:3000]
    y, p, age = adult.y[rows], adult.p[rows], adult["age"][rows]
    columns = {name: adult[name][rows] for name in ("age", "sex", "hours-per-week")}

    def report() -> None:
        from varcal.cli import main as varcal  # noqa: PLC0415

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rows.csv")
            lines = [",".join(["y", "p", *columns])]
            lines += [",".join(map(str, row)) for row in zip(y, p, *columns.values(), strict=True)]
            file.write_text("\n".join(lines), encoding="utf-8")
            page = str(Path(folder, "report.html"))
            command = ["audit", str(file), "--label", "y", "--prob", "p", "-o", page]
            with contextlib.suppress(SystemExit):
                varcal(command)

    def calibrate() -> None:
        half = len(y) // 2
        fitted = vc.VariableCalibrator().fit(p[:half], y[:half], {"age": age[:half]})
        fitted.predict_proba(p[half:], {"age": age[half:]})

    walks = {
        "vece on arrays": lambda: vc.vece(y, p, age),
        "varcal audit file -o report.html": report,
        "VariableCalibrator.fit and predict_proba": calibrate,
    }
    for name, call in walks.items():
        call()  # imports and caches
        files, switches = walk(call)
        print(f"{name}: {len(files)} files, {switches:,} switches")
        print("  " + " → ".join(files))


if __name__ == "__main__":
    main()
