"""Audit: the results for every variable, to read, save and compare with an earlier audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from varcal._audit.audit_changes import Changes, changes
from varcal._audit.audit_row import AuditRow, ClaimSummary
from varcal._audit.first_screen import first_screen
from varcal._audit.intersections import Intersections
from varcal._audit.places import Place
from varcal._audit.verdicts import VERDICTS
from varcal._input.events import AUDIT_EVENTS
from varcal._input.frames import frame_of
from varcal._measures.bin_table import BinTable
from varcal._measures.curve_result import Curve
from varcal._measures.score_profile import ScoreProfile
from varcal._options import check_path, check_text, checked, or_none
from varcal._saved.conform import restored
from varcal._saved.document import Kind
from varcal._version import __version__
from varcal.exceptions import InputError, shown

if TYPE_CHECKING:
    from varcal._audit.repair import Repair

#: Why a pickled or copied audit has no repair.
NOT_PICKLED = "audit.repair was not asked for before the audit was pickled or copied"
#: The fields of an audit that are plain values.
_PLAIN = (
    "event",
    "level",
    "limit",
    "n_rows",
    "n_dropped",
    "n_bins",
    "binning",
    "grouped",
    "backend",
    "engine",
    "edges",
    "pos_label",
)


@dataclass(frozen=True, eq=False)
class Audit:
    """The variables of an audit, ranked by uneven error.

    Attributes
    ----------
    event : str
        What the probabilities claim.
    claims : dict of ClaimSummary
        The claims that were judged, over all rows.
    rows : tuple of AuditRow
        One per variable, the one with the largest `uneven` first.
    curves, other_curves : dict of Curve
        The curve of each variable for the claim of its row, and for the other claim of two
        classes; ``audit["age"]`` is one of the former.
    tables : dict of BinTable
        The bins behind the figures of each row's claim.
    places : tuple of Place
        For whom the model is wrong: at most five clear places of variables that are off.
    notes : tuple of str
        Remarks on the data and the results.
    left_out : tuple of (str, str)
        Columns that were not audited, each with the reason.
    level, limit : float
        The level of all intervals and tests, and the uneven error that matters.
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
        The positive class as Python writes it, if one was named; otherwise empty.
    intersections : Intersections or None
        Slices, predictable gap and a surface, if ``slices=True`` asked for them.
    """

    event: str
    claims: dict[str, ClaimSummary]
    rows: tuple[AuditRow, ...]
    curves: dict[str, Curve]
    other_curves: dict[str, Curve]
    tables: dict[str, BinTable]
    places: tuple[Place, ...]
    notes: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    level: float
    limit: float
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
    try_repair: Callable[[], tuple[Repair | None, str]] | None = field(default=None, repr=False)

    @cached_property
    def _tried(self) -> tuple[Repair | None, str]:
        if self.try_repair is None:
            return None, "no repair was asked for"
        return self.try_repair()

    def __getstate__(self) -> dict[str, Any]:
        # A repair that is yet to be tried refers to all rows, which a pickle should not copy.
        state = {**vars(self), "try_repair": None}
        if self.try_repair is not None:
            state.setdefault("_tried", (None, NOT_PICKLED))
        return state

    @property
    def repair(self) -> Repair | None:
        """What a repair would achieve, tried when it is first asked for; None if it was not."""
        return self._tried[0]

    @property
    def repair_obstacle(self) -> str:
        """Why there is no repair, or an empty string."""
        return self._tried[1]

    @property
    def first(self) -> ClaimSummary:
        """The first claim; its figures are also those of the audit."""
        return next(iter(self.claims.values()))

    @property
    def gap(self) -> float:
        """The overall gap of the first claim: mean score − hit rate."""
        return self.first.gap

    @property
    def gap_low(self) -> float:
        """The lower end of the interval of the overall gap."""
        return self.first.gap_low

    @property
    def gap_high(self) -> float:
        """The upper end of the interval of the overall gap."""
        return self.first.gap_high

    @property
    def score(self) -> ScoreProfile:
        """Hit rate along the score of the first claim."""
        return self.first.score

    @property
    def label(self) -> str:
        """The class that the first claim is about, or an empty string."""
        return self.first.label

    @property
    def bound(self) -> float:
        """The largest uneven error along any variable that cannot be ruled out."""
        return max(row.high for row in self.rows)

    def __contains__(self, variable: object) -> bool:
        return variable in self.curves

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[AuditRow]:
        return iter(self.rows)

    def __getitem__(self, variable: str) -> Curve:
        if not isinstance(variable, str) or variable not in self.curves:
            name = variable if isinstance(variable, str) else shown(variable)
            raise InputError.no_column(name, self.curves, "audit[…]", where="the audit")
        return self.curves[variable]

    @checked(variable=check_text)
    def row(self, variable: str) -> AuditRow:
        """Return the row of one variable."""
        for row in self.rows:
            if row.variable == variable:
                return row
        known = [row.variable for row in self.rows]
        raise InputError.no_column(variable, known, "audit.row", where="the audit")

    @property
    def sentence(self) -> str:
        """The finding: its headline and what it rests on."""
        screen = first_screen(self, repair=False)
        return f"{screen.headline}. {screen.lede}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {
            "format": AUDIT.format,
            "varcal": __version__,
            **plain,
            "sentence": self.sentence,
            "notes": list(self.notes),
            "left_out": [list(pair) for pair in self.left_out],
            "claims": {name: claim.to_dict() for name, claim in self.claims.items()},
            "rows": [asdict(row) for row in self.rows],
            "places": [asdict(place) for place in self.places],
            "curves": {name: curve.to_dict() for name, curve in self.curves.items()},
            "other_curves": {name: curve.to_dict() for name, curve in self.other_curves.items()},
            "tables": {name: table.to_dict() for name, table in self.tables.items()},
            "intersections": None if self.intersections is None else self.intersections.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Audit:
        """Return the audit that `to_dict` described."""
        return restored(lambda: cls._of(data), cls, "an audit")

    def _check_saved(self) -> None:
        """Raise ValueError unless every row has its claim, its curve and its table."""
        if not self.rows or not self.claims:
            raise ValueError("the audit has no variables or no claims")
        if not 0 < self.level < 1 or not 0 <= self.limit < 1 or self.event not in AUDIT_EVENTS:
            raise ValueError("the level, the limit or the event is not valid")
        if min(self.n_rows, self.n_bins) < 1 or self.n_dropped < 0:
            raise ValueError("there are no rows or bins")
        names = [row.variable for row in self.rows]
        if len(set(names)) < len(names):
            raise ValueError("a variable is listed twice")
        if not set(names) <= set(self.curves) & set(self.tables):
            raise ValueError("a variable has no curve or no table")
        if any(name != claim.claim for name, claim in self.claims.items()):
            raise ValueError("a claim has another name")
        for row in self.rows:
            claims = {row.claim, *(other.claim for other in row.others)}
            if not claims <= set(self.claims) or row.verdict not in VERDICTS:
                raise ValueError("a row has an unknown claim or verdict")
            if row.direction not in ("over", "under", "mixed", "none"):
                raise ValueError("a row has an unknown direction")
        for place in (*self.places, *(row.weakest for row in self.rows)):
            if place.variable not in names or place.claim not in self.claims:
                raise ValueError("a place has an unknown variable or claim")

    @classmethod
    def _of(cls, data: dict[str, Any]) -> Audit:
        more = data["intersections"]
        return cls(
            intersections=None if more is None else Intersections.from_dict(more),
            **{name: data[name] for name in _PLAIN},
            notes=tuple(data["notes"]),
            left_out=tuple((name, reason) for name, reason in data["left_out"]),
            claims={name: ClaimSummary.from_dict(one) for name, one in data["claims"].items()},
            rows=tuple(AuditRow.from_dict(row) for row in data["rows"]),
            places=tuple(Place(**place) for place in data["places"]),
            curves={name: Curve.from_dict(one) for name, one in data["curves"].items()},
            other_curves={name: Curve.from_dict(one) for name, one in data["other_curves"].items()},
            tables={name: BinTable.from_dict(one) for name, one in data["tables"].items()},
        )

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Write the audit as JSON; `varcal.load` reads it."""
        AUDIT.write(path, self.to_dict())

    @checked(path=or_none(check_path))
    def report(
        self, path: str | PathLike[str] | None = None, *, title: str = "Calibration audit"
    ) -> Any:
        """Write a report: a self-contained HTML page, Markdown, or JSON.

        Parameters
        ----------
        path : path, optional
            The file; its extension sets the format: ``.html``, ``.md`` or ``.json``. Without a
            path the page is returned as an object that a notebook shows inline.
        title : str
            The name of the report.

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
        from varcal._report import inline_report, write_report  # noqa: PLC0415  loads when first used

        if path is None:
            return inline_report(self, title=title)
        return write_report(self, path, title=title)

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
        if (previous.event, previous.level) != (self.event, self.level):
            raise InputError(
                f"previous is of event {previous.event!r} at level {previous.level}, this audit of "
                f"event {self.event!r} at level {self.level}",
                "compare audits of the same event at the same level",
                argument="previous",
            )
        return changes(
            {row.variable: row.uneven for row in previous.rows},
            {row.variable: row.uneven for row in self.rows},
            self.level,
            self.backend,
        )

    @checked()
    def plot(self, ax: Any = None, *, quantity: str = "uneven", top: int = 20) -> Any:
        """Draw the ranking: one dot with its interval per variable.

        Grey bars show how large the value of a perfect model could be by chance; hollow dots are
        variables without evidence.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        quantity : {"uneven", "vece"}
            The uneven error, or VECE itself.
        top : int
            The largest number of variables to draw.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._plotting.ranking import draw_audit  # noqa: PLC0415

        return draw_audit(self, ax, quantity, top)

    def to_frame(self) -> Any:
        """Return the ranking as a frame of the input's library, one row per variable."""
        return frame_of(self._columns(), self.backend)

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "variable": [row.variable for row in self.rows],
            "verdict": [row.verdict for row in self.rows],
            "claim": [row.claim for row in self.rows],
            "vece": [row.vece.debiased for row in self.rows],
            "vece_low": [row.vece.low for row in self.rows],
            "vece_high": [row.vece.high for row in self.rows],
            "vece_plug_in": [row.vece.value for row in self.rows],
            "noise_floor": [row.vece.noise_floor for row in self.rows],
            "uneven": [row.uneven.debiased for row in self.rows],
            "uneven_low": [row.uneven.low for row in self.rows],
            "uneven_high": [row.uneven.high for row in self.rows],
            "low": [row.low for row in self.rows],
            "high": [row.high for row in self.rows],
            "p_value": [row.uneven.p_value for row in self.rows],
            "p_holm": [row.p_holm for row in self.rows],
            "p_bh": [row.p_bh for row in self.rows],
            "rank_low": [row.rank_low for row in self.rows],
            "rank_high": [row.rank_high for row in self.rows],
            "direction": [row.direction for row in self.rows],
            "where": [row.where for row in self.rows],
            "worst": [row.worst for row in self.rows],
            "vce": [row.vce for row in self.rows],
            "n_bins": [row.n_bins for row in self.rows],
            "missing": [row.missing for row in self.rows],
        }

    def __repr__(self) -> str:
        from varcal._report.audit.terminal import audit_lines  # noqa: PLC0415

        return "\n".join(audit_lines(self, repair=False))

    def _repr_html_(self) -> str:
        from varcal._report.audit.notebook import first_screen_html  # noqa: PLC0415

        return first_screen_html(first_screen(self), self.level)


#: Saved audits.
AUDIT = Kind("audit", "a saved audit", 3, Audit.from_dict)
