"""Reproduction: what one experiment gives, and its folder of tables and pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from varcal._files.atomic import whole_file, write_whole
from varcal._input.frames import frame_of
from varcal.exceptions import InputError
from varcal.experiments._figure import Figure
from varcal.experiments._result_tables import Table, csv_text

__all__ = ["Reproduction", "check_folder", "drop_index", "verdict", "write_index"]


#: Every file that a run may write; those of an earlier run are removed.
STALE = (
    *(
        f"{name}.csv"
        for name in (
            *("worst", "errors", "accuracy", "others", "augmented", "figures"),
            *("corrected", "claims", "by-split", "corrected-others"),
        )
    ),
    *(
        f"{name}.png"
        for name in (
            *("figure-1a", "figure-1b", "variable-plots", "reliability", "augmented-beta"),
            *("splits", "corrected-variable-plots"),
        )
    ),
)


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
        What was found besides, in a few words.
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
        return f"{self.title}: {', '.join(self._parts())}"

    def _parts(self) -> list[str]:
        same = [figure for figure in self.figures if figure.same_model]
        equal = sum(not figure.failed for figure in same)
        parts = [f"{equal} of {len(same)} published figures equal"] if same else []
        return [*parts, self.finding] if self.finding else parts

    def text(self) -> str:
        """Return every table for a terminal."""
        head = [self.title, "=" * len(self.title), *self.remarks]
        shown = [table.text() for table in self.tables if not table.detail]
        return "\n\n".join(["\n".join(head), *shown])

    def markdown(self) -> str:
        """Return everything as one Markdown page, which shows the pictures beside it."""
        parts = [f"# {self.title}", self.summary + ".", *self.remarks]
        if self.failures:
            parts.append(
                "\n".join(["Differs from the paper:", ""] + [f"- {f}" for f in self.failures])
            )
        parts += [table.markdown() for table in self.tables]
        parts += [f"![{name.replace('-', ' ')}]({name}.png)" for name in self.pictures]
        return "\n\n".join(parts) + "\n"

    def to_frame(self, backend: str | None = None) -> Any:
        """Return every figure beside the paper's, as a frame (pandas by default)."""
        return frame_of(self.columns(), backend)

    def columns(self) -> dict[str, list[Any]]:
        """Return every figure beside the paper's, by column."""
        return {
            "experiment": [self.name] * len(self.figures),
            "method": [figure.target[0] for figure in self.figures],
            "measure": [figure.target[1] for figure in self.figures],
            "variable": [figure.target[2] for figure in self.figures],
            "paper_percent": [
                figure.published.printed for figure in self.figures if figure.published
            ],
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
        check_folder(folder)
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        # What an earlier run left here and this one does not make would tell another story.
        for name in STALE:
            (home / name).unlink(missing_ok=True)
        for name, picture in self.pictures.items():
            with whole_file(home / f"{name}.png") as draft:
                picture.savefig(draft, format="png", dpi=150)
        for table in self.tables:
            write_whole(home / f"{table.name}.csv", table.csv())
        if self.figures:
            write_whole(home / "figures.csv", csv_text(self.columns()))
        write_whole(home / "README.md", self.markdown())
        return home


def verdict(found: Sequence[Reproduction]) -> str:
    """Return one line about several experiments.

    >>> verdict([Reproduction("theory", "Theory", (), finding="72 of 72 cases agree")])
    'Theory: 72 of 72 cases agree'
    """
    if len(found) == 1:
        return found[0].summary
    same = [figure for one in found for figure in one.figures if figure.same_model]
    equal = sum(not figure.failed for figure in same)
    wrong = sum(len(one.failures) for one in found)
    text = f"{equal} of {len(same)} published figures equal, " if same else ""
    done = f"{len(found)} experiments"
    return f"{text}{done}: " + (f"{wrong} statements fail" if wrong else "nothing fails")


def check_folder(folder: str | Path) -> None:
    """See early that a folder can be made and written to."""
    home = Path(folder)
    above = next(one for one in (home, *home.absolute().parents) if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        what = "is not a folder" if not above.is_dir() else "may not be written to"
        raise InputError(
            f"cannot write to {str(folder)!r}: {str(above)!r} {what}", "choose another folder"
        )


_INDEX = "# The paper, reproduced"


def drop_index(folder: str | Path) -> None:
    """Remove the index of an earlier run of everything, which a later one may belie."""
    page = Path(folder) / "README.md"
    if page.is_file() and page.read_text(encoding="utf-8").startswith(_INDEX):
        page.unlink()
        (page.parent / "figures.csv").unlink(missing_ok=True)


def write_index(found: Sequence[Reproduction], folder: str | Path) -> None:
    """Write a page that leads to the folder of each experiment, and one CSV of all figures."""
    home = Path(folder)
    lines = [
        f"- [{one.title}]({one.name}/README.md): {one.summary.partition(': ')[2]}" for one in found
    ]
    text = "\n".join([_INDEX, "", verdict(found) + ".", "", *lines, ""])
    write_whole(home / "README.md", text)
    columns: dict[str, list[Any]] = {}
    for one in found:
        for name, cells in one.columns().items():
            columns.setdefault(name, []).extend(cells)
    write_whole(home / "figures.csv", csv_text(columns))
