"""Audit: the answer for a model and for every variable, to read, save and compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from varcal._audit.changes import Changes, changes
from varcal._audit.intersections import Intersections
from varcal._audit.ladder import AS_IT_IS, Ladder
from varcal._audit.record import AuditRow, Place, Target, largest, read, saved
from varcal._audit.verdict import verdict_of
from varcal._files.saved import Kind
from varcal._files.schema import hints_of, restored
from varcal._inference.debiased import Measured
from varcal._input.frames import frame_of
from varcal._measures.curve_result import Curve
from varcal._options import check_flag, check_path, check_text, checked, or_none
from varcal._text import REPAIR, WATCH
from varcal._version import __version__
from varcal.exceptions import InputError, shown

if TYPE_CHECKING:
    from varcal._audit.sentences import Screen

#: Why a pickled, copied or loaded audit has no ladder and no curves that were not asked for before.
NO_ROWS = "the rows are not kept in files and copies"
#: The fields of an audit that are neither saved nor in `to_dict` as they are.
_OWN = ("intersections", "_find_curve", "_climb")


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found: the model over all rows, and its variables ranked by uneven error.

    Attributes
    ----------
    label : str
        The name of the outcome.
    targets : dict of Target
        What the probabilities are of: with two classes P(label = class); with more the top class
        first, then each class.
    rows : tuple of AuditRow
        One per variable, the one with the largest `uneven` first.
    places : tuple of Place
        For whom the model is wrong: at most five clear places.
    notes, suspicions : tuple of str
        Remarks on the data and the results, and what may be wrong with the input.
    left_out : tuple of (str, str)
        Columns that were not audited, each with the reason.
    protected : tuple of str
        Columns that a repair may not read; their levels are always shown.
    level : float
        The level of all intervals and tests.
    n_rows, n_dropped : int
        The rows audited, and the rows dropped because their outcome is missing.
    n_bins, binning
        How variables were binned.
    grouped : bool
        Whether dependence within groups was allowed for.
    engine, edges : str
        What summed the rows, and whether bins were chosen from all of them ("exact") or from a
        sample ("sampled").
    pos_label : str
        The named class as Python writes it, if one was named; otherwise empty.
    intersections : Intersections or None
        Slices and the predictable gap, if ``slices=True`` asked for them.
    """

    label: str
    targets: dict[str, Target]
    rows: tuple[AuditRow, ...]
    places: tuple[Place, ...]
    notes: tuple[str, ...]
    suspicions: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    protected: tuple[str, ...]
    level: float
    n_rows: int
    n_dropped: int
    n_bins: int
    binning: str
    grouped: bool = False
    backend: str | None = None
    engine: str = "numpy"
    edges: str = "exact"
    pos_label: str = ""
    intersections: Intersections | None = field(default=None, repr=False)
    _find_curve: Callable[[str], Curve] | None = field(default=None, repr=False)
    _climb: Callable[[Audit], tuple[Ladder | None, str]] | None = field(default=None, repr=False)

    @cached_property
    def verdict(self) -> str:
        """The decision: "repair", "watch", "fine" or "cannot tell"."""
        return verdict_of(list(self.targets.values()), self.rows, self.level)

    @cached_property
    def _climbed(self) -> tuple[Ladder | None, str]:
        return (None, NO_ROWS) if self._climb is None else self._climb(self)

    @property
    def ladder(self) -> Ladder | None:
        """What is left after each repair, judged when first asked for; None without rows."""
        return self._climbed[0]

    @property
    def ladder_obstacle(self) -> str:
        """Why there is no ladder, or an empty string."""
        return self._climbed[1]

    @property
    def advice(self) -> str | None:
        """The repair that suffices.

        "shift", "score curve", "variables" or "retrain" if the verdict is "repair"; "try variables"
        if ``ladder="score"`` left them out and nothing else gains what matters. With "watch" a
        repair that predicts surely better, and otherwise "as it is". None without rows.
        """
        if self.ladder is None:
            return None
        if self.verdict == REPAIR:
            return self.ladder.advice
        return self.ladder.suffices if self.verdict == WATCH else AS_IT_IS

    @property
    def target(self) -> Target:
        """The first target; with two classes the only one."""
        return next(iter(self.targets.values()))

    @property
    def limit(self) -> float:
        """The error that matters, of the first target."""
        return self.target.limit

    @property
    def predicted(self) -> float:
        """The mean probability."""
        return self.target.predicted

    @property
    def observed(self) -> float:
        """How often it happens."""
        return self.target.observed

    @property
    def gap(self) -> float:
        """The average gap: mean probability − rate."""
        return self.target.gap

    @property
    def by_score(self) -> Measured:
        """The expected calibration error of the first target."""
        return self.target.by_score

    def __contains__(self, variable: object) -> bool:
        return any(row.variable == variable for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[AuditRow]:
        return iter(self.rows)

    @cached_property
    def _curves(self) -> dict[str, Curve]:
        return {}

    def __getitem__(self, variable: str) -> Curve:
        name = variable if isinstance(variable, str) else shown(variable)
        self.row(name)
        if self.target.scale != "points":
            raise InputError(
                f"the curve along {name!r} would be of means, and curves are of probabilities only",
                "use audit.row(…), its .table and .plot(), or audit.plot()",
            )
        if name not in self._curves:
            if self._find_curve is None:
                raise InputError(
                    f"the curve along {name!r} needs the rows, and {NO_ROWS}",
                    "audit the rows again, or use audit.row(…).table",
                )
            self._curves[name] = self._find_curve(name)
        return self._curves[name]

    @checked(variable=check_text)
    def row(self, variable: str) -> AuditRow:
        """Return the row of one variable."""
        for row in self.rows:
            if row.variable == variable:
                return row
        known = [row.variable for row in self.rows]
        raise InputError.no_column(variable, known, "audit.row", where="the audit")

    def __getstate__(self) -> dict[str, Any]:
        # What is yet to be computed refers to all rows, which a pickle should not copy.
        return {**vars(self), "_find_curve": None, "_climb": None}

    @checked(ladder=check_flag, commands=check_flag)
    def screen(self, *, ladder: bool = True, commands: bool = False) -> Screen:
        """Return what the audit says first, for every form.

        Parameters
        ----------
        ladder : bool
            Whether to judge the ladder if that was not done before.
        commands : bool
            Whether advice names commands of a shell instead of Python.
        """
        from varcal._audit.sentences import Screen  # noqa: PLC0415

        climbed = self.ladder if ladder else vars(self).get("_climbed", (None,))[0]
        return Screen(self, climbed, commands=commands)

    @property
    def sentence(self) -> str:
        """The finding: its headline and what it rests on."""
        screen = self.screen(ladder=False)
        return f"{screen.headline}. {screen.lede}"

    @checked(ladder=check_flag)
    def to_dict(self, *, ladder: bool = False) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON.

        Parameters
        ----------
        ladder : bool
            Whether to judge the ladder; otherwise it is included if it was asked for before.
        """
        climbed, obstacle = self._climbed if ladder else vars(self).get("_climbed", (None, ""))
        return {
            "format": AUDIT.format,
            "varcal": __version__,
            "verdict": self.verdict,
            "advice": None if climbed is None else self.advice,
            "sentence": self.sentence,
            **{x.name: saved(getattr(self, x.name)) for x in fields(self) if x.name not in _OWN},
            "ladder": None if climbed is None else climbed.to_dict(),
            "ladder_obstacle": obstacle,
            "intersections": None if self.intersections is None else self.intersections.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Audit:
        """Return the audit that `to_dict` described."""
        return restored(lambda: cls._of(data), cls, "an audit")

    def _check_saved(self) -> None:
        """Raise ValueError unless every row and place has its target."""
        if not self.rows or not self.targets:
            raise ValueError("the audit has no variables or no targets")
        if not 0 < self.level < 1 or min(self.n_rows, self.n_bins) < 1 or self.n_dropped < 0:
            raise ValueError("the level, the rows or the bins are not valid")
        rows = {row.variable: row for row in self.rows}
        if len(rows) < len(self.rows):
            raise ValueError("a variable is listed twice")
        if any(name != one.name for name, one in self.targets.items()):
            raise ValueError("a target has another name")
        named = {one.target for row in self.rows for one in row.figures}
        places = (*self.places, *(place for row in self.rows for place in row.places))
        if not named | {place.target for place in places} <= set(self.targets):
            raise ValueError("a row or a place has an unknown target")
        size = {}
        for name, row in rows.items():
            parts = ("all", *self.targets[row.target].sides)
            size[name] = len(row.table) // len(parts)
            columns = row.table.columns
            if columns["side"] != [part for part in parts for _ in range(size[name])]:
                raise ValueError("the sides of a table are not those of its target")
            if columns["bin"] != columns["bin"][: size[name]] * len(parts):
                raise ValueError("the bins of a table are not the same on each side")
        for place in places:
            if place.variable not in rows or place.last_bin >= size[place.variable]:
                raise ValueError("a place is not along a variable of the audit")
            most = largest(self.targets[place.target].scale)
            if any(abs(figure) > most for figure in place.numbers):
                raise ValueError("a figure of a place is too large")
            if place.side not in ("", *self.targets[place.target].sides):
                raise ValueError("a place has an unknown side")
        ladder, _ = vars(self).get("_climbed", (None, ""))
        if ladder is None:
            return
        if set(ladder.rungs[0].uneven) != set(rows):
            raise ValueError("the ladder has other variables")
        if any(
            name not in rows or len(says) != len(rows[name].table)
            for name, says in ladder.after.items()
        ):
            raise ValueError("the ladder has other bins")
        if len(ladder.places_after) not in (0, 1 + len(self.places)):
            raise ValueError("the ladder has other places")

    @classmethod
    def _of(cls, data: dict[str, Any]) -> Audit:
        more, ladder, hints = data["intersections"], data["ladder"], hints_of(cast("Hashable", cls))
        names = [one.name for one in fields(cls) if one.name not in _OWN]
        made = cls(
            **{name: read(data[name], hints[name]) for name in names},
            intersections=None if more is None else Intersections.from_dict(more),
        )
        if ladder is not None or data["ladder_obstacle"]:
            climbed = None if ladder is None else Ladder.from_dict(ladder)
            vars(made)["_climbed"] = (climbed, str(data["ladder_obstacle"]))
        return made

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Write the audit with its ladder as JSON; `varcal.load` reads it."""
        AUDIT.write(path, self.to_dict(ladder=True))

    @checked(path=or_none(check_path))
    def report(self, path: str | PathLike[str] | None = None, *, title: str = "") -> Any:
        """Write a report: a self-contained HTML page, Markdown, or JSON.

        Parameters
        ----------
        path : path, optional
            The file; its extension sets the format: ``.html``, ``.md`` or ``.json``. Without a
            path the page is returned as an object that a notebook shows inline.
        title : str
            The name of the report; by default it names the outcome.

        Returns
        -------
        None, or without a path an object to show

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import varcal as vc
        >>> sim = vc.datasets.make_gap(500)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> vc.audit(sim.y, sim.p, {"v": sim.v}).report(path)
        >>> path.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        from varcal._report import audit_page  # noqa: PLC0415  loads when first used

        if path is None:
            page = audit_page.audit_html(self, title)
            return audit_page.InlineReport(
                page, title or audit_page.KIND[self.target.scale != "points"]
            )
        return audit_page.write_audit(self, path, title=title)

    def since(self, previous: Audit) -> Changes:
        """Compare with an earlier audit of the same model or variables.

        Parameters
        ----------
        previous : Audit
            The earlier audit, on other rows.
        """
        if not isinstance(previous, Audit):
            raise InputError(
                f"previous is a {type(previous).__name__}",
                "give an Audit, as load() returns",
                argument="previous",
            )
        if (list(previous.targets), previous.level) != (list(self.targets), self.level):
            raise InputError(
                f"previous is of {', '.join(previous.targets)} at level {previous.level}, this "
                f"audit of {', '.join(self.targets)} at level {self.level}",
                "compare audits of the same outcome at the same level",
                argument="previous",
            )
        scale = self.target.scale
        if previous.target.scale != scale:
            raise InputError(
                f"the gaps of previous are measured as {previous.target.scale!r}, those of this "
                f"audit as {scale!r}",
                "audit both with the same gap",
                argument="previous",
            )
        return changes(
            {row.variable: row for row in previous.rows},
            {row.variable: row for row in self.rows},
            self.level,
            self.backend,
            # The test of cells is for rates of independent rows.
            cells=not (self.grouped or previous.grouped or scale != "points"),
            scale=scale,
        )

    @checked()
    def plot(self, ax: Any = None, *, top: int = 20) -> Any:
        """Draw the ranking: one dot with its interval per variable.

        Grey bars show how large the value of a perfect model could be by chance; hollow dots are
        variables without evidence.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        top : int
            The largest number of variables to draw.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_ranking import draw_audit  # noqa: PLC0415

        return draw_audit(self, ax, top)

    def to_frame(self) -> Any:
        """Return the ranking as a frame of the input's library, one row per variable."""
        place = [row.place for row in self.rows]
        columns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in self.rows]
            for name in ("variable", "verdict", "target")
        }
        for name in ("uneven", "error"):
            figures = [getattr(row, name) for row in self.rows]
            columns[name] = [one.debiased for one in figures]
            columns[f"{name}_plug_in"] = [one.value for one in figures]
        names = ("low", "high", "p_holm", "p_bh", "rank_low", "rank_high", "n_bins", "missing")
        columns |= {name: [getattr(row, name) for row in self.rows] for name in names}
        columns["p_value"] = [row.uneven.p_value for row in self.rows]
        columns["place"] = ["" if one is None else one.label for one in place]
        columns["place_side"] = ["" if one is None else one.side for one in place]
        columns["place_gap"] = [None if one is None else one.gap for one in place]
        return frame_of(columns, self.backend)

    def __repr__(self) -> str:
        from varcal._report.audit_text import audit_lines  # noqa: PLC0415

        return "\n".join(audit_lines(self))

    def _repr_html_(self) -> str:
        from varcal._report.audit_page import notebook_html  # noqa: PLC0415

        return notebook_html(self)


#: Saved audits.
AUDIT = Kind("audit", "a saved audit", 1, Audit.from_dict)
