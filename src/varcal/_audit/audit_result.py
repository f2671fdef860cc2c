"""Audit: the results for every variable, to read, save and compare with an earlier audit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

from varcal._audit.audit_changes import Changes, changes
from varcal._audit.verdicts import FINDINGS
from varcal._files.atomic import write_whole
from varcal._inference.measured import Measured
from varcal._input.frames import frame_of
from varcal._measures.bin_table import BinTable
from varcal._measures.curve import Curve
from varcal._measures.score_profile import ScoreProfile
from varcal._text.html_tables import html_table
from varcal._text.numbers import count, gap_side, p_text, points, signed
from varcal._text.tables import text_table
from varcal._version import __version__
from varcal.exceptions import InputError

#: The version of the file format; files of a later one are refused.
FORMAT = 1


@dataclass(frozen=True)
class AuditRow:
    """The results for one variable.

    Attributes
    ----------
    variable, kind : str
        The variable and its kind.
    verdict : {"varies", "varies slightly", "no evidence", "too few rows"}
        Whether the gap changes along the variable: surely by more than the audit's threshold;
        surely, but perhaps by less; without evidence of a change; or with too few rows to say.
    vece, beyond : Measured
        VECE, and the same statistic after the overall gap is removed, each with its debiased
        value, interval, noise floor and the p-value of the hypothesis that it is zero.
    p_holm, p_bh : float
        The p-value of `beyond`, adjusted for the number of variables.
    rank_low, rank_high : int
        The range of ranks that the interval of `beyond` allows.
    direction : {"over", "under", "mixed", "none"}
        Where the gap surely differs from zero: above it, below it, both, or nowhere.
    where : str
        The region around v* where the gap surely differs from the overall gap, in words.
    worst : str
        v*, the value at which the gap is largest, as text.
    vce : float
        VCE(v*), the largest gap.
    n_bins : int
        The number of bins behind the figures.
    missing : float
        The share of rows whose value is missing.
    """

    variable: str
    kind: str
    verdict: str
    vece: Measured
    beyond: Measured
    p_holm: float
    p_bh: float
    rank_low: int
    rank_high: int
    direction: str
    where: str
    worst: str
    vce: float
    n_bins: int
    missing: float


@dataclass(frozen=True)
class EventSummary:
    """The overall gap of one event and the VECE of each variable under it."""

    event: str
    gap: float
    gap_low: float
    gap_high: float
    vece: dict[str, float]


@dataclass(frozen=True, eq=False)
class Audit:
    """The variables of an audit, ranked by what lies beyond the overall gap.

    Attributes
    ----------
    event : str
        What the probabilities claim.
    gap, gap_low, gap_high : float
        The overall gap, mean confidence − accuracy, with its interval.
    error, predicted_error : float
        1 − accuracy and 1 − mean confidence over all rows.
    rows : tuple of AuditRow
        One per variable, the one with the largest `beyond` first.
    curves : dict of Curve
        One per variable; ``audit["age"]`` is one of them.
    tables : dict of BinTable
        The bins behind the figures, one table per variable.
    score : ScoreProfile
        Hit rate along the score itself: the reliability diagram and ECE.
    other : EventSummary or None
        With two classes, the overall gap and VECE under the other event.
    notes : tuple of str
        Remarks on the data and the results.
    level, threshold : float
        The level of all intervals and tests, and the size of `beyond` that matters.
    n_rows, n_dropped : int
        The rows audited, and the rows dropped because their outcome is missing.
    label : str
        The class that the probabilities are about, for event "positive".
    n_bins, binning
        How variables were binned.
    grouped : bool
        Whether dependence within groups was allowed for.
    engine, edges : str
        What summed the rows, and whether bins were chosen from all of them ("exact") or from a
        sample ("sampled").
    """

    event: str
    gap: float
    gap_low: float
    gap_high: float
    error: float
    predicted_error: float
    rows: tuple[AuditRow, ...]
    curves: dict[str, Curve]
    tables: dict[str, BinTable]
    score: ScoreProfile
    other: EventSummary | None
    notes: tuple[str, ...]
    level: float
    threshold: float
    n_rows: int
    n_dropped: int
    label: str
    n_bins: int
    binning: str
    grouped: bool = False
    backend: str | None = None
    engine: str = "numpy"
    edges: str = "exact"

    def __contains__(self, variable: object) -> bool:
        return variable in self.curves

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[AuditRow]:
        return iter(self.rows)

    def __getitem__(self, variable: str) -> Curve:
        if variable not in self.curves:
            raise InputError.no_column(str(variable), self.curves, "audit[…]")
        return self.curves[variable]

    def row(self, variable: str) -> AuditRow:
        """Return the row of one variable."""
        for row in self.rows:
            if row.variable == variable:
                return row
        raise InputError.no_column(str(variable), [r.variable for r in self.rows], "audit.row")

    @property
    def sentence(self) -> str:
        """The finding in one sentence."""
        return "".join(headline_parts(self))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        names = ["event", "gap", "gap_low", "gap_high", "error", "predicted_error", "level"]
        names += [
            "threshold",
            "n_rows",
            "n_dropped",
            "label",
            "n_bins",
            "binning",
            "grouped",
            "backend",
            "engine",
            "edges",
        ]
        return {
            "format": FORMAT,
            "varcal": __version__,
            **{name: getattr(self, name) for name in names},
            "sentence": self.sentence,
            "notes": list(self.notes),
            "other": None if self.other is None else vars(self.other),
            "rows": [_row_dict(row) for row in self.rows],
            "curves": {name: curve.to_dict() for name, curve in self.curves.items()},
            "tables": {name: table.to_dict() for name, table in self.tables.items()},
            "score": self.score.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Audit:
        """Return the audit that `to_dict` described."""
        names = {field.name for field in fields(cls)} & set(data)
        plain = {name: data[name] for name in names}
        plain["rows"] = tuple(
            AuditRow(**row | {k: Measured(**row[k]) for k in ("vece", "beyond")})
            for row in data["rows"]
        )
        plain["curves"] = {name: Curve.from_dict(one) for name, one in data["curves"].items()}
        plain["tables"] = {name: BinTable.from_dict(one) for name, one in data["tables"].items()}
        plain["score"] = ScoreProfile.from_dict(data["score"])
        plain["other"] = None if data["other"] is None else EventSummary(**data["other"])
        plain["notes"] = tuple(data["notes"])
        return cls(**plain)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the audit as JSON; `varcal.load_audit` reads it."""
        write_whole(path, json.dumps(self.to_dict(), allow_nan=False))

    def report(self, path: str | PathLike[str], *, title: str = "Calibration audit") -> None:
        """Write a report: a self-contained HTML page, Markdown, or JSON.

        Parameters
        ----------
        path : path
            The file; its extension sets the format: ``.html``, ``.md`` or ``.json``.
        title : str
            The heading.

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
        from varcal.report import write_report  # noqa: PLC0415  loads when first used

        write_report(self, path, title=title)

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
                "give an Audit, as load_audit returns",
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
            {row.variable: row.beyond for row in previous.rows},
            {row.variable: row.beyond for row in self.rows},
            self.level,
            self.backend,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        quantity: str = "beyond",
        top: int = 20,
        backend: str = "matplotlib",
    ) -> Any:
        """Draw the ranking: one dot with its interval per variable.

        Grey bars show how large the value of a perfect model could be by chance; hollow dots are
        variables without evidence.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        quantity : {"beyond", "vece"}
            What lies beyond the overall gap, or VECE itself.
        top : int
            The largest number of variables to draw.
        backend : {"matplotlib", "plotly"}
            The library that draws.

        Returns
        -------
        matplotlib Axes, or plotly Figure
        """
        from varcal.plotting import draw  # noqa: PLC0415
        from varcal.plotting._rankings import audit_dots  # noqa: PLC0415

        return draw("dots", audit_dots(self, quantity, top), ax=ax, backend=backend)

    def to_frame(self) -> Any:
        """Return the ranking as a frame of the input's library, one row per variable."""
        return frame_of(self._columns(), self.backend)

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "variable": [row.variable for row in self.rows],
            "verdict": [row.verdict for row in self.rows],
            "vece": [row.vece.debiased for row in self.rows],
            "vece_low": [row.vece.low for row in self.rows],
            "vece_high": [row.vece.high for row in self.rows],
            "vece_plug_in": [row.vece.value for row in self.rows],
            "noise_floor": [row.vece.noise_floor for row in self.rows],
            "beyond": [row.beyond.debiased for row in self.rows],
            "beyond_low": [row.beyond.low for row in self.rows],
            "beyond_high": [row.beyond.high for row in self.rows],
            "p_value": [row.beyond.p_value for row in self.rows],
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

    def _shown(self) -> dict[str, list[Any]]:
        """Return the columns of the printed table."""
        columns = self._columns()
        shown = {name: columns[name] for name in ("variable", "vece", "beyond")}
        shown["interval"] = [f"{row.beyond.low:.4f}–{row.beyond.high:.4f}" for row in self.rows]
        shown["p (Holm)"] = [p_text(row.p_holm) for row in self.rows]
        shown["rank"] = [_rank_text(row) for row in self.rows]
        shown["verdict"] = columns["verdict"]
        shown["where"] = columns["where"]
        return shown

    @property
    def _head(self) -> str:
        return f"{self.sentence}\n{self.n_rows:,} rows · event {self.event}"

    def __repr__(self) -> str:
        notes = (f"note: {note}" for note in self.notes)
        return "\n".join([self._head, "", text_table(self._shown()), *notes])

    def _repr_html_(self) -> str:
        return html_table(self._shown(), self._head, "\n".join(self.notes))


def overall_words(audit: Audit) -> str:
    """Say how far off a model is on average."""
    if audit.gap_low > 0 or audit.gap_high < 0:
        return f"Overall {gap_side(audit.gap, audit.event)} by {points(abs(audit.gap))} points"
    return f"On average predictions match outcomes (gap {signed(audit.gap)} points, could be zero)"


def headline_parts(audit: Audit) -> tuple[str, str, str]:
    """Return the text before the name of a variable, the name (or ""), and the text after it."""
    overall = overall_words(audit)
    found = [row for row in audit.rows if row.verdict in FINDINGS]
    if not found:
        return f"{overall}; no variable shows a change.", "", ""
    many = f"{len(found)} of {count(len(audit), 'variable')}"
    return f"{overall}; the gap changes along {many}, most along ", found[0].variable, "."


def _row_dict(row: AuditRow) -> dict[str, Any]:
    return vars(row) | {"vece": vars(row.vece), "beyond": vars(row.beyond)}


def _rank_text(row: AuditRow) -> str:
    return str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low}–{row.rank_high}"
