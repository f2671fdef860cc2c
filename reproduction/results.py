"""Results: the tables, pictures and figures of one experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from reproduction.figure import Figure
from reproduction.tables import Table


@dataclass(frozen=True, eq=False)
class Results:
    """The results of one experiment.

    Attributes
    ----------
    name, title : str
        The experiment.
    tables : tuple of Table
        Its tables.
    pictures : dict of matplotlib Figure
        Its pictures, by file name without extension.
    figures : tuple of Figure
        Every number that has a published value.
    failures, remarks : tuple of str
        What should agree with the paper but does not, and what a reader should know.
    finding : str
        Further results in a few words.
    """

    name: str
    title: str
    tables: tuple[Table, ...]
    pictures: dict[str, Any] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    failures: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    finding: str = ""

    @property
    def summary(self) -> str:
        """The results in one line."""
        return f"{self.title}: {_equal([self])}{self.finding}"

    def text(self) -> str:
        """Return everything but the pictures in Markdown."""
        parts = [f"# {self.title}", self.summary + ".", *self.remarks]
        if self.failures:
            parts += ["Differs from the paper:", "\n".join(f"- {one}" for one in self.failures)]
        return "\n\n".join([*parts, *(one.markdown() for one in self.tables if not one.detail)])

    def write(self, folder: Path) -> None:
        """Write README.md with everything, one CSV per table and one PNG per picture."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, picture in self.pictures.items():
            picture.savefig(folder / f"{name}.png", dpi=150)
        for table in self.tables:
            pd.DataFrame(table.columns).to_csv(folder / f"{table.name}.csv", index=False)
        shown = [f"![{name.replace('-', ' ')}]({name}.png)" for name in self.pictures]
        page = "\n\n".join([self.text(), *shown]) + "\n"
        (folder / "README.md").write_text(page, encoding="utf-8")

    def rows(self) -> list[dict[str, Any]]:
        """Return every figure with the published one, one per row."""
        return [
            {
                "experiment": self.name,
                "method": figure.target[0],
                "measure": figure.target[1],
                "variable": figure.target[2],
                "paper_percent": figure.published.printed if figure.published else "",
                "ours_percent": figure.value,
                "difference": figure.difference,
                "verdict": figure.verdict,
            }
            for figure in self.figures
        ]


def _equal(found: Sequence[Results]) -> str:
    """Say how many of the published figures are equal, with a comma, or nothing."""
    same = [figure for one in found for figure in one.figures if figure.same_model]
    equal = sum(not figure.failed for figure in same)
    return f"{equal} of {len(same)} published figures equal, " if same else ""


def verdict(found: Sequence[Results]) -> str:
    """Return the results of several experiments in one line."""
    wrong = sum(len(one.failures) for one in found)
    many = f"{len(found)} experiment" + "s" * (len(found) > 1)
    return f"{_equal(found)}{many}: {wrong or 'no'} failure" + "s" * (wrong != 1)


def write_index(found: Sequence[Results], folder: Path) -> None:
    """Write a page with a link to each experiment, and one CSV file of all figures."""
    lines = [
        f"- [{one.title}]({one.name}/README.md): {one.summary.partition(': ')[2]}" for one in found
    ]
    text = "\n".join(["# The paper, reproduced", "", verdict(found) + ".", "", *lines, ""])
    (folder / "README.md").write_text(text, encoding="utf-8")
    rows = pd.DataFrame([row for one in found for row in one.rows()])
    rows.to_csv(folder / "figures.csv", index=False)
