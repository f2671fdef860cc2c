"""What `varcal demo` shows: the bundled model, its variables ranked, the worst one bin by bin."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from varcal._audit import audit
from varcal._audit_result import Audit
from varcal._bin_table import BinTable, bin_table
from varcal.datasets import load_adult


def show_demo(stream: TextIO) -> None:
    """Write the demo to a stream, plain where it is not a terminal."""
    console = Console(file=stream, width=None if stream.isatty() else 140, highlight=False)
    adult = load_adult()
    found = audit(adult.y, adult.p, adult.X)
    worst = found.rows[0].variable
    console.print(adult.description, style="dim")
    console.print(f"\n{found.sentence}\n")
    console.print(_ranking(found))
    console.print(
        "\nvece is at least the overall gap along every variable; beyond is what lies beyond it, "
        "with its 95% interval."
    )
    console.print(f"\n{worst}, bin by bin (gap: confidence - accuracy)\n")
    console.print(_bins(bin_table(adult.y, adult.p, {worst: adult[worst]}, binning="atoms")))


def _grid(*names: str, left: tuple[str, ...]) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name in names:
        grid.add_column(name, justify="left" if name in left else "right", no_wrap=name != "where")
    return grid


def _ranking(found: Audit) -> Grid:
    left = ("variable", "verdict", "where")
    grid = _grid("#", "variable", "vece", "beyond", "interval", "verdict", "where", left=left)
    for k, row in enumerate(found.rows, 1):
        grid.add_row(
            str(k),
            Text(row.variable),
            f"{row.vece.debiased:.3f}",
            f"{row.beyond.debiased:.3f}",
            f"{row.beyond.low:.3f} to {row.beyond.high:.3f}",
            row.verdict,
            Text(row.where),
        )
    return grid


def _bins(table: BinTable) -> Grid:
    names = (table.variable, "rows", "confidence", "accuracy", "gap", "95% interval")
    grid = _grid(*names, left=(table.variable,))
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
