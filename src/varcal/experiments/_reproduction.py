"""Reproduction: the results of one experiment, and the folder that they are written to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from varcal._input.frames import frame_of
from varcal.exceptions import InputError
from varcal.experiments._figure import Figure
from varcal.experiments._own_files import refuse_foreign, remove_own, write_own
from varcal.experiments._result_tables import Table, csv_text

__all__ = [
    "INDEX_FILES",
    "RESULT_FILES",
    "Reproduction",
    "check_folder",
    "drop_index",
    "verdict",
    "write_index",
]


#: The files of an index of several experiments.
INDEX_FILES = ("README.md", "figures.csv")
#: Files of one experiment, to see before the work whether any of them would replace a user's.
RESULT_FILES = (
    *INDEX_FILES,
    *(
        f"{name}.csv"
        for name in (
            *("worst", "errors", "accuracy", "others", "augmented", "figures-by-model"),
            *("corrected", "claims", "by-split", "corrected-others", "conclusions"),
            *("theorem-1", "theorem-2", "theorem-3"),
        )
    ),
    *(
        f"{name}.png"
        for name in (
            *("figure-1a", "figure-1b", "variable-plots", "reliability", "augmented-beta"),
            *("splits", "corrected-variable-plots", "theorems"),
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
            Created if necessary. Files of an earlier run are replaced or removed.

        Raises
        ------
        InputError
            If a file of one of these names exists that no earlier run wrote, or that was changed
            since: ``varcal-files.sha256`` has the checksums of what was written.
        """
        check_folder(folder)
        home = Path(folder)
        contents: dict[str, bytes] = {}
        for name, picture in self.pictures.items():
            drawn = BytesIO()
            picture.savefig(drawn, format="png", dpi=150)
            contents[f"{name}.png"] = drawn.getvalue()
        for table in self.tables:
            contents[f"{table.name}.csv"] = table.csv().encode()
        if self.figures:
            contents["figures.csv"] = csv_text(self.columns()).encode()
        contents["README.md"] = self.markdown().encode()
        home.mkdir(parents=True, exist_ok=True)
        write_own(home, contents, RESULT_FILES)
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


def check_folder(folder: str | Path, files: Sequence[str] = ()) -> None:
    """Check early that a folder can be created and written to.

    Parameters
    ----------
    folder : path
        The folder.
    files : sequence of str
        Names that may be written there: files of these names must be those of an earlier run.
    """
    try:
        home = Path(folder)
        above = next(one for one in (home, *home.absolute().parents) if _exists(one))
        leads = above.exists()
    except (TypeError, ValueError):  # no path, or a character that names of files cannot have
        raise _unwritable(folder, "it cannot be the name of a folder") from None
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from None
    if not str(folder):
        raise _unwritable(folder, "it has no name")
    if not leads:
        raise _unwritable(folder, f"{str(above)!r} is a link that leads nowhere")
    if not above.is_dir():
        raise _unwritable(folder, f"{str(above)!r} is not a folder")
    if not os.access(above, os.W_OK):
        raise _unwritable(folder, f"{str(above)!r} is not writable")
    refuse_foreign(home, files)


def _exists(path: Path) -> bool:
    """Tell whether a name is taken; a name that cannot be raises an error."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _unwritable(folder: object, problem: str) -> InputError:
    return InputError(
        f"cannot write to {str(folder)!r}: {problem}", "choose another folder", argument="folder"
    )


_INDEX = "# The paper, reproduced"


def drop_index(folder: str | Path) -> None:
    """Remove the index of an earlier run of all experiments, which may no longer be true."""
    home = Path(folder)
    page = home / "README.md"
    if page.is_file() and page.read_bytes().startswith(_INDEX.encode()):
        remove_own(home, INDEX_FILES)


def write_index(found: Sequence[Reproduction], folder: str | Path) -> None:
    """Write a page with a link to each experiment, and one CSV file of all figures."""
    home = Path(folder)
    lines = [
        f"- [{one.title}]({one.name}/README.md): {one.summary.partition(': ')[2]}" for one in found
    ]
    text = "\n".join([_INDEX, "", verdict(found) + ".", "", *lines, ""])
    columns: dict[str, list[Any]] = {}
    for one in found:
        for name, cells in one.columns().items():
            columns.setdefault(name, []).extend(cells)
    contents = (text, csv_text(columns))
    made = {name: one.encode() for name, one in zip(INDEX_FILES, contents, strict=True)}
    write_own(home, made, INDEX_FILES)
