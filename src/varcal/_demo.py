"""What `varcal demo` shows: the bundled model, its variables ranked, the worst one bin by bin."""

from __future__ import annotations

from typing import TextIO

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from varcal._bin_table import BinTable, bin_table
from varcal.datasets import load_adult


def show_demo(stream: TextIO) -> None:
    """Write the demo to a stream, plain where it is not a terminal."""
    console = Console(file=stream, width=None if stream.isatty() else 100, highlight=False)
    adult = load_adult()
    tables = {
        name: bin_table(adult.y, adult.p, {name: column}, binning="atoms")
        for name, column in adult.X.items()
    }
    overall = _overall(next(iter(tables.values())))
    ranked = sorted(tables, key=lambda name: -_error(tables[name], overall))
    worst = tables[ranked[0]]

    console.print(adult.description, style="dim")
    console.print(
        f"\nOverall the model is {'over' if overall > 0 else 'under'}confident by "
        f"{abs(overall):.1%}; VECE is at least that along every variable.\n"
        f"What lies beyond it differs: most along {ranked[0]}.\n"
    )
    console.print(_ranking(tables, ranked, overall))
    console.print(f"\n{ranked[0]}, bin by bin (gap: confidence − accuracy)\n")
    console.print(_bins(worst))


def _overall(table: BinTable) -> float:
    return float(np.dot(table.columns["share"], table.columns["gap"]))


def _error(table: BinTable, level: float = 0.0) -> float:
    """Return the mean distance of the gaps from a level: VECE itself at level 0."""
    gaps = np.array(table.columns["gap"]) - level
    return float(np.nansum(np.array(table.columns["share"]) * np.abs(gaps)))


def _grid(*names: str) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for k, name in enumerate(names):
        grid.add_column(name, justify="left" if k == 0 else "right", no_wrap=True)
    return grid


def _ranking(tables: dict[str, BinTable], ranked: list[str], overall: float) -> Grid:
    grid = _grid("variable", "VECE", "beyond overall", "largest gap", "at")
    for name in ranked:
        columns = tables[name].columns
        worst = int(np.nanargmax(np.abs(np.array(columns["gap"]) - overall)))
        grid.add_row(
            Text(name),
            f"{_error(tables[name]):.4f}",
            f"{_error(tables[name], overall):.4f}",
            f"{columns['gap'][worst]:+.4f}",
            Text(columns["bin"][worst]),
        )
    return grid


def _bins(table: BinTable) -> Grid:
    grid = _grid(table.variable, "rows", "confidence", "accuracy", "gap", "95% interval")
    columns = table.columns
    for k in range(len(table)):
        grid.add_row(
            Text(columns["bin"][k]),
            f"{columns['n'][k]:,}",
            f"{columns['confidence'][k]:.1%}",
            f"{columns['accuracy'][k]:.1%}",
            f"{columns['gap'][k]:+.1%}",
            f"{columns['gap_low'][k]:+.1%} to {columns['gap_high'][k]:+.1%}",
        )
    return grid
