"""Reproduction: the results of one experiment, and the folder that they are written to."""

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


#: All files that a run may write. Those of an earlier run are removed.
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
    failures : tuple of str
        What should agree with the paper but does not, in words.
    remarks : tuple of str
        What a reader should know.
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
    def ok(self) -> bool:
        """Whether everything that should agree with the paper does."""
        return not self.failures

    @property
    def summary(self) -> str:
        """The results in one line."""
        return f"{self.title}: {', '.join(self._parts())}"

    def _parts(self) -> list[str]:
        same = [figure for figure in self.figures if figure.same_model]
        equal = sum(not figure.failed for figure in same)
        parts = [f"{equal} of {len(same)} published figures equal"] if same else []
        return [*parts, self.finding] if self.finding else parts

    def text(self) -> str:
        """Return the main tables as text for a terminal."""
        head = [self.title, "=" * len(self.title), *self.remarks]
        shown = [table.text() for table in self.tables if not table.detail]
        return "\n\n".join(["\n".join(head), *shown])

    def markdown(self) -> str:
        """Return all tables as a Markdown page that shows the pictures of the same folder."""
        parts = [f"# {self.title}", self.summary + ".", *self.remarks]
        if self.failures:
            parts.append(
                "\n".join(["Differs from the paper:", ""] + [f"- {f}" for f in self.failures])
            )
        parts += [table.markdown() for table in self.tables]
        parts += [f"![{name.replace('-', ' ')}]({name}.png)" for name in self.pictures]
        return "\n\n".join(parts) + "\n"

    def to_frame(self, backend: str | None = None) -> Any:
        """Return every figure and the paper's as a frame (of pandas by default)."""
        return frame_of(self.columns(), backend)

    def columns(self) -> dict[str, list[Any]]:
        """Return every figure and the paper's by column."""
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
        """Write README.md, figures.csv, one CSV per table and one PNG per picture to a folder.

        Parameters
        ----------
        folder : path
            Created if necessary; existing files of these names are replaced.
        """
        check_folder(folder)
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        # Files of an earlier run with other options would contradict this one.
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
    """Return the results of several experiments in one line.

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
    return f"{text}{done}: " + (f"{wrong} failures" if wrong else "no failures")


def check_folder(folder: str | Path) -> None:
    """Check early that a folder can be created and written to."""
    home = Path(folder)
    above = next(one for one in (home, *home.absolute().parents) if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        what = "is not a folder" if not above.is_dir() else "is not writable"
        raise InputError(
            f"cannot write to {str(folder)!r}: {str(above)!r} {what}", "choose another folder"
        )


_INDEX = "# The paper, reproduced"


def drop_index(folder: str | Path) -> None:
    """Remove the index of an earlier run of all experiments, which may no longer be true."""
    page = Path(folder) / "README.md"
    if page.is_file() and page.read_text(encoding="utf-8").startswith(_INDEX):
        page.unlink()
        (page.parent / "figures.csv").unlink(missing_ok=True)


def write_index(found: Sequence[Reproduction], folder: str | Path) -> None:
    """Write a page with a link to each experiment, and one CSV file of all figures."""
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
