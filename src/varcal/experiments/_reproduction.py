"""Reproduction: what one experiment gives, and its folder of tables and pictures."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from varcal._files import whole_file, write_whole
from varcal._tables import frame_of
from varcal.exceptions import InputError
from varcal.experiments._figure import Figure
from varcal.experiments._tables import Table

__all__ = ["Reproduction"]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One experiment, reproduced.

    Attributes
    ----------
    name, title : str
        The experiment.
    tables : tuple of Table
        Its tables.
    pictures : dict of matplotlib Figure
        Its pictures, by file name without ending.
    figures : tuple of Figure
        Every number that has a published value.
    failures : tuple of str
        What should agree and does not, in words.
    remarks : tuple of str
        What a reader must know.
    finding : str
        The result in a few words, where there are no published figures.
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
    def ok(self) -> bool:
        """Whether everything that should agree with the paper does."""
        return not self.failures

    @property
    def summary(self) -> str:
        """One line."""
        same = [figure for figure in self.figures if figure.same_model]
        if same:
            equal = sum(not figure.failed for figure in same)
            return f"{self.title}: {equal} of {len(same)} published figures equal"
        return f"{self.title}: {self.finding}"

    def text(self) -> str:
        """Return every table for a terminal."""
        head = [self.title, "=" * len(self.title), *self.remarks]
        shown = [table.text() for table in self.tables if not table.detail]
        return "\n\n".join(["\n".join(head), *shown])

    def markdown(self) -> str:
        """Return everything as one Markdown page, which shows the pictures beside it."""
        parts = [f"# {self.title}", self.summary + ".", *self.remarks]
        if self.failures:
            parts.append("\n".join(["Differs from the paper:", ""] + [f"- {f}" for f in self.failures]))
        parts += [table.markdown() for table in self.tables]
        parts += [f"![{name.replace('-', ' ')}]({name}.png)" for name in self.pictures]
        return "\n\n".join(parts) + "\n"

    def to_frame(self, backend: str | None = None) -> Any:
        """Return every figure beside the paper's, as a frame (pandas by default)."""
        return frame_of(self._columns(), backend)

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "experiment": [self.name] * len(self.figures),
            "method": [figure.target[0] for figure in self.figures],
            "measure": [figure.target[1] for figure in self.figures],
            "variable": [figure.target[2] for figure in self.figures],
            "paper_percent": [figure.published.printed for figure in self.figures if figure.published],
            "ours_percent": [figure.value for figure in self.figures],
            "difference": [figure.difference for figure in self.figures],
            "verdict": [figure.verdict for figure in self.figures],
        }

    def write(self, folder: str | Path) -> Path:
        """Write README.md, one CSV a table, figures.csv and one PNG a picture into a folder.

        Parameters
        ----------
        folder : path
            Made if need be; files of the same names are replaced.
        """
        home = Path(folder)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot make the folder {str(folder)!r}: {error.strerror}",
                "choose a folder that you may write to",
            ) from None
        for name, picture in self.pictures.items():
            with whole_file(home / f"{name}.png") as draft:
                picture.savefig(draft, format="png", dpi=150)
        for table in self.tables:
            write_whole(home / f"{table.name}.csv", table.csv())
        if self.figures:
            out = io.StringIO()
            writer = csv.writer(out, lineterminator="\n")
            columns = self._columns()
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
            write_whole(home / "figures.csv", out.getvalue())
        write_whole(home / "README.md", self.markdown())
        return home
