"""MeanAudit: where predictions of a mean are wrong, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from textwrap import wrap
from typing import Any

import numpy as np

from varcal._arrays import Bools, Ints, ratio_or_zero
from varcal._audit.judge import (
    FEW_ROWS,
    MOST_PLACES,
    SAME_ROWS,
    WORSE_FIRST,
    _overlap,
    _without_unit,
)
from varcal._audit.verdict import LIMIT, state_of
from varcal._edge_texts import edge_texts
from varcal._files.atomic import write_whole
from varcal._inference.debiased import Measured, with_p
from varcal._inference.mean_law import gap_limits, mean_error, mean_test, spread_of
from varcal._inference.multiplicity import benjamini_hochberg, holm
from varcal._input.frames import frame_of
from varcal._input.variables import Variable
from varcal._measures.bin_table import BinTable
from varcal._measures.means import (
    FEW_ERRORS_NOTE,
    MeanAlong,
    MeanLevel,
    MeanRows,
    amount,
    error_text,
    mean_level,
    overall_level,
)
from varcal._options import check_path, check_text, checked, no_means, or_none
from varcal._sums.bins import LevelBins, NumericBins
from varcal._sums.choose_bins import BinOptions
from varcal._text import (
    ABOVE,
    BELOW,
    CANNOT_TELL,
    FINDINGS,
    FINE,
    NO_EVIDENCE,
    PLAIN_MARKS,
    REPAIR,
    TOO_FEW_ROWS,
    WATCH,
    Shown,
    count,
    decimals,
    html_table,
    level_text,
    near_number,
    p_equation,
    short,
)
from varcal._version import __version__
from varcal.exceptions import InputError

#: The width of printed lines, and of the names of places and variables.
WIDTH, NAME = 80, 32
#: Variables without evidence that are named.
MOST_NAMED = 5


@dataclass(frozen=True)
class MeanPlace:
    """A part of a variable where predictions are off: a level, a range, or the missing values.

    Attributes
    ----------
    variable, text, label : str
        The variable, the part as text ("above 60"), and both ("age above 60").
    mean : MeanLevel
        What is predicted and observed, with an interval that holds for all places of all variables.
    n : int
        The number of rows.
    share : float
        Their share of the weight.
    first_bin, last_bin : int
        The bins that it is made of.
    """

    variable: str
    text: str
    label: str
    mean: MeanLevel
    n: int
    share: float
    first_bin: int
    last_bin: int

    @property
    def is_sure(self) -> bool:
        """Whether the gap is surely not zero."""
        return self.mean.low > 0 or self.mean.high < 0

    def __str__(self) -> str:
        return f"{self.label}: {self.mean}"


@dataclass(frozen=True, repr=False, eq=False)
class MeanAuditRow(Shown):
    """The results for one variable.

    Attributes
    ----------
    variable, kind : str
        The variable and its kind.
    verdict : {"above limit", "may be above", "below limit", "no evidence", "too few rows"}
        With evidence of uneven error: where its interval lies. Otherwise whether there are enough
        rows to say.
    gap : {"relative", "difference"}
        How gaps are measured.
    error, uneven : Measured
        The mean absolute gap over bins, and the same once the average gap is taken off.
    low, high : float
        Interval of `uneven` that holds for all variables at once.
    p_holm, p_bh : float
        The p-value of "the gap is the same everywhere", adjusted for the number of variables.
    table : BinTable
        Rows, predicted, observed and A/E (or the gap) of each bin.
    place : MeanPlace or None
        Where it is most clearly wrong; None without evidence.
    missing : float
        The share of rows whose value is missing.
    """

    variable: str
    kind: str
    verdict: str
    gap: str
    error: Measured
    uneven: Measured
    low: float
    high: float
    p_holm: float
    p_bh: float
    table: BinTable
    place: MeanPlace | None
    missing: float

    @property
    def size(self) -> str:
        """The uneven error with its interval, as text."""
        low, high = error_text(self.low, self.gap), error_text(self.high, self.gap)
        return f"{error_text(self.uneven.debiased, self.gap)} ({low} to {high})"

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        columns = self.table.columns
        held = [k for k, n in enumerate(columns["n"]) if n]
        shown = {
            "bin": [columns["bin"][k] for k in held],
            "rows": [f"{columns['n'][k]:,}" for k in held],
            "predicts": [amount(columns["predicted"][k]) for k in held],
            "observed": [amount(columns["observed"][k]) for k in held],
        }
        if self.gap == "relative":
            shown["A/E"] = [decimals(columns["a_e"][k], 2) for k in held]
        else:
            shown["difference"] = [amount(columns["gap"][k]) for k in held]
        p = p_equation(self.p_holm)
        head = f"{self.variable}: {self.verdict}, uneven error {self.size}, {p} for all variables"
        return head, shown, ""


@dataclass(frozen=True, repr=False, eq=False)
class MeanAudit:
    """Where predictions of a mean are wrong. `audit` with ``outcome="mean"`` makes it.

    Attributes
    ----------
    label : str
        The name of the outcome.
    gap : {"relative", "difference"}
        How gaps are measured: A/E − 1, or predicted − observed.
    overall : MeanLevel
        What is predicted and observed over all rows, with the interval of A/E or the difference.
    p_value : float
        The p-value of no gap over all rows.
    by_prediction : Measured
        The mean absolute gap over bins of the predictions.
    limit : float
        The error that matters: a share of the predicted mean, or in the unit of the outcome.
    rows : tuple of MeanAuditRow
        One row per variable, the largest uneven error first.
    places : tuple of MeanPlace
        The clearest places that are not much the same rows.
    few_errors : bool
        Whether a few rows carry the variance, so that upper limits may be too low.
    notes : tuple of str
        What readers should know.
    left_out : tuple of (str, str)
        Columns that were not audited, with the reason.
    level : float
        The level of intervals and tests.
    n_rows, n_dropped : int
        The rows audited, and the rows dropped because their outcome is missing.
    n_bins, binning
        How variables were binned.
    grouped : bool
        Whether dependence within groups was allowed for.
    """

    label: str
    gap: str
    overall: MeanLevel
    p_value: float
    by_prediction: Measured
    limit: float
    rows: tuple[MeanAuditRow, ...]
    places: tuple[MeanPlace, ...]
    few_errors: bool
    notes: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    level: float
    n_rows: int
    n_dropped: int
    n_bins: int
    binning: str
    grouped: bool
    backend: str | None = None

    @property
    def verdict(self) -> str:
        """The decision: "repair", "watch", "fine" or "cannot tell".

        "repair" if the average, the error along the predictions or any uneven error is surely above
        the limit; otherwise "watch" with evidence of error, "fine" if everything is surely within
        the limit, or "cannot tell".
        """
        ends = [(one.low, one.high) for one in (self.overall, self.by_prediction)]
        states = [state_of(*pair, self.limit) for pair in ends]
        verdicts = [row.verdict for row in self.rows]
        if ABOVE in (*states, *verdicts):
            return REPAIR
        tests = min(self.p_value, self.by_prediction.p_value)
        if 2 * tests <= 1 - self.level or any(word in FINDINGS for word in verdicts):
            return WATCH
        within = all(one == BELOW for one in states)
        within = within and all(row.high <= self.limit for row in self.rows)
        return FINE if within and not self.few_errors else CANNOT_TELL

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[MeanAuditRow]:
        return iter(self.rows)

    @checked(variable=check_text)
    def row(self, variable: str) -> MeanAuditRow:
        """Return the row of one variable."""
        for row in self.rows:
            if row.variable == variable:
                return row
        known = [row.variable for row in self.rows]
        raise InputError.no_column(variable, known, "audit.row", where="the audit")

    @property
    def sentence(self) -> str:
        """The finding in one sentence."""
        along = [row.variable for row in self.rows if row.verdict == ABOVE]
        what = f"Predictions of {self.label}"
        if self.verdict == REPAIR and along:
            more = f" and {len(along) - 1} more" if len(along) > 1 else ""
            return f"{what} are surely off along {along[0]}{more}"
        if self.verdict == REPAIR:
            side = "too low" if self.overall.observed > self.overall.predicted else "too high"
            above = state_of(self.overall.low, self.overall.high, self.limit) == ABOVE
            return f"{what} are {side if above else 'surely off by size'}"
        if self.verdict == WATCH:
            return f"{what} are off, but not surely by more than the limit"
        if self.verdict == FINE:
            return f"{what} are within the limit"
        return f"These rows cannot tell whether predictions of {self.label} are right"

    def to_frame(self) -> Any:
        """Return the ranking as a frame of the input's library, one row per variable."""
        rows = self.rows
        columns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in rows] for name in ("variable", "verdict")
        }
        for name in ("uneven", "error"):
            columns[name] = [getattr(row, name).debiased for row in rows]
            columns[f"{name}_plug_in"] = [getattr(row, name).value for row in rows]
        for name in ("low", "high", "p_holm", "p_bh", "missing"):
            columns[name] = [getattr(row, name) for row in rows]
        columns["p_value"] = [row.uneven.p_value for row in rows]
        columns["place"] = ["" if row.place is None else row.place.label for row in rows]
        for name in ("predicted", "observed", "ratio"):
            found = [None if row.place is None else getattr(row.place.mean, name) for row in rows]
            columns[f"place_{'a_e' if name == 'ratio' else name}"] = found
        return frame_of(columns, self.backend)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        whole = {name: value for name, value in vars(self).items() if name != "backend"}
        for name in ("overall", "by_prediction"):
            whole[name] = asdict(whole[name])
        whole["rows"] = [
            {**vars(row), "table": row.table.to_dict()}
            | {name: asdict(getattr(row, name)) for name in ("error", "uneven")}
            | {"place": None if row.place is None else asdict(row.place)}
            for row in self.rows
        ]
        whole["places"] = [asdict(place) for place in self.places]
        whole["left_out"] = [list(pair) for pair in self.left_out]
        whole["notes"] = list(self.notes)
        head = {"varcal": __version__, "outcome": "mean", "verdict": self.verdict}
        return {**head, "sentence": self.sentence, **whole}

    @checked(path=or_none(check_path))
    def report(self, path: str | PathLike[str] | None = None) -> None:
        """Write the audit as JSON. A page and Markdown are not available for means yet."""
        if path is None or not str(path).lower().endswith(".json"):
            raise no_report()
        from varcal._report.page import json_text  # noqa: PLC0415  loads when first used

        write_whole(path, json_text(self.to_dict()))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        columns = {
            "variable": [row.variable for row in self.rows],
            "verdict": [row.verdict for row in self.rows],
            "uneven error": [row.size for row in self.rows],
            "clearest place": ["" if row.place is None else str(row.place) for row in self.rows],
        }
        head = f"{self.verdict}: {self.sentence}. {self.overall}"
        return html_table(columns, head, self._caution)

    @property
    def _caution(self) -> str:
        return FEW_ERRORS_NOTE if self.few_errors else ""

    def lines(self) -> list[str]:
        """Return the audit as lines of text."""
        each = level_text(self.level)
        overall, by = self.overall, self.by_prediction
        ends = f"{error_text(by.low, self.gap)} to {error_text(by.high, self.gap)}"
        said = f"{self.label}: {overall} ({overall.ends} at {each}). Along the predictions "
        said += f"the error is {error_text(by.debiased, self.gap)} ({ends})."
        lines = [f"{self.verdict.upper()}  {self.sentence}", "", *wrap(said, WIDTH), ""]
        if self.places:
            figure = "A/E" if self.gap == "relative" else "difference"
            head = f"{'Where it is wrong':{NAME}}{'predicts':>10}{'observed':>10}"
            lines.append(f"{head}  {figure}, {each}")
            lines += [line for place in self.places for line in _place_lines(place)] + [""]
        lines += [*self._ranking(), ""]
        limit = f"{100 * self.limit:.3g}% of the predicted mean"
        limit = limit if self.gap == "relative" else amount(self.limit)
        marks = "x surely above, ~ may be above, ok below"
        notes = [f"Limit {limit}: {marks}.", self._caution, *self.notes]
        if self.left_out:
            listed = "; ".join(f"{short(name)} ({why})" for name, why in self.left_out)
            notes.append(f"Not audited: {listed}.")
        return lines + [line for note in notes if note for line in wrap(note, WIDTH)]

    def _ranking(self) -> list[str]:
        found = [row for row in self.rows if row.verdict in FINDINGS]
        lines = [f"{'Variable':22} {'uneven error':28} clearest place"] if found else []
        for row in found:
            place = row.place
            where = "no single place is certain"
            if place is not None and place.is_sure:
                where = f"{short(place.text, 18)}: {place.mean.figure}"
            mark = PLAIN_MARKS[row.verdict]
            lines.append(f"{short(row.variable, 19):19} {mark:2} {row.size:28} {where}")
        others = sorted((row for row in self.rows if row not in found), key=lambda row: -row.high)
        if others:
            names = [f"{short(x.variable)} {error_text(x.high, self.gap)}" for x in others]
            more = len(names) - MOST_NAMED
            rest = f"; {more} more at most that" if more > 0 else ""
            named = ", ".join(names[:MOST_NAMED])
            lines += wrap(f"No evidence, uneven error at most: {named}{rest}", WIDTH)
        return lines


def _place_lines(place: MeanPlace) -> list[str]:
    one = place.mean
    figures = f"{amount(one.predicted):>10}{amount(one.observed):>10}"
    figure = one.figure.removeprefix("A/E ").removeprefix("difference ")
    line = f"  {short(place.label, NAME - 3):{NAME - 2}}{figures}  {figure} ({one.ends})"
    return [line, f"    {count(place.n, 'row')}"]


def no_report() -> InputError:
    """Return the error that a page is asked for."""
    error = no_means("a page or a Markdown report")
    return error.reworded(more=', and print it, or write it to a file that ends with ".json"')


def mean_limit(rows: MeanRows, limit: float | None) -> float:
    """Return the error that matters."""
    if limit is None and not rows.relative:
        raise InputError(
            "limit is not given: which difference between predicted and observed matters?",
            "give it in the unit of the outcome with {limit}",
            "limit",
            {"limit": ...},
        )
    if limit is not None and rows.relative and limit >= 1:
        raise InputError(
            f"limit is {limit:g}, and gaps are relative",
            "give a share of the predicted mean, such as 0.02",
            "limit",
        )
    return LIMIT if limit is None else limit


def audit_means(
    rows: MeanRows,
    variables: Sequence[Variable],
    options: BinOptions,
    *,
    label: str,
    limit: float,
    level: float,
    left_out: dict[str, str],
    notes: Sequence[str],
    random_state: int,
) -> MeanAudit:
    """Judge predictions of a mean along variables."""
    score = MeanAlong.of(rows, [rows.prediction()], options | {"bins": None}, fine=True)
    found = [_judged(rows, one, options, level, len(variables), random_state) for one in variables]
    judged = _ranked([row for row, _ in found], limit, level)
    masks = {row.variable: mask for row, mask in found}
    return MeanAudit(
        label=label,
        gap=rows.gap,
        overall=overall_level(rows, level),
        p_value=mean_test(rows.all_sums, constant=False, seed=random_state),
        by_prediction=score.measured(level, center=False, seed=random_state),
        limit=limit,
        rows=judged,
        places=_chosen(judged, masks),
        few_errors=rows.all_sums.few_errors,
        notes=(*notes, *_notes(rows, judged)),
        left_out=tuple(left_out.items()),
        level=level,
        n_rows=len(rows.rows),
        n_dropped=rows.rows.n_dropped,
        n_bins=options["n_bins"],
        binning=options["binning"],
        grouped=rows.rows.unit is not None,
        backend=rows.rows.backend,
    )


def _judged(
    rows: MeanRows,
    variable: Variable,
    options: BinOptions,
    level: float,
    n_variables: int,
    seed: int,
) -> tuple[MeanAuditRow, Bools | None]:
    """Return a row before it is ranked, and which rows are in its place."""
    cuts, name = options["bins"], variable.name
    own = {name: cuts[name]} if isinstance(cuts, Mapping) and name in cuts else None
    along = MeanAlong.of(rows, [variable], options | {"bins": own}, fine=True)
    uneven = along.measured(level, center=True, seed=seed)
    strict = 1 - (1 - level) / n_variables
    joint = mean_error(along.sums, uneven.p_value, level=strict)
    place, mask = _clearest(rows, along, variable, level, n_variables)
    row = MeanAuditRow(
        variable=variable.name,
        kind=variable.kind,
        verdict=NO_EVIDENCE,
        gap=rows.gap,
        error=along.measured(level, center=False, seed=seed),
        uneven=uneven,
        low=joint.low,
        high=joint.high,
        p_holm=1.0,
        p_bh=1.0,
        table=along.table(rows, level),
        place=place,
        missing=float(np.average(variable.missing(), weights=rows.weight)),
    )
    return row, mask


def _ranked(rows: Sequence[MeanAuditRow], limit: float, level: float) -> tuple[MeanAuditRow, ...]:
    p = [row.uneven.p_value for row in rows]
    p_holm, p_bh = holm(p).tolist(), benjamini_hochberg(p).tolist()
    made = []
    for row, holm_p, bh_p in zip(rows, p_holm, p_bh, strict=True):
        joint = with_p(replace(row.uneven, low=row.low, high=row.high), holm_p, level)
        low, high = min(joint.low, row.uneven.low), max(joint.high, row.uneven.high)
        filled = sum(n > 0 for n in row.table.columns["n"])
        verdict = NO_EVIDENCE
        if holm_p < 1 - level:
            verdict = state_of(low, high, limit)
        elif row.table.n_rows < FEW_ROWS or (filled < 2 and row.kind == "levels"):
            verdict = TOO_FEW_ROWS
        made.append(
            replace(
                row,
                verdict=verdict,
                uneven=replace(row.uneven, debiased=joint.debiased),
                low=low,
                high=high,
                p_holm=holm_p,
                p_bh=bh_p,
                place=row.place if verdict in FINDINGS else None,
            )
        )
    return tuple(sorted(made, key=lambda row: (-row.uneven.debiased, -row.uneven.value)))


def _chosen(rows: Sequence[MeanAuditRow], masks: dict[str, Bools | None]) -> tuple[MeanPlace, ...]:
    """Choose the places of variables above the limit, or else with evidence."""
    above = [row for row in rows if row.verdict == ABOVE]
    chosen: list[MeanPlace] = []
    for row in above or [row for row in rows if row.verdict in FINDINGS]:
        mask = masks[row.variable]
        same = any(_overlap(mask, masks[one.variable]) >= SAME_ROWS for one in chosen)
        if row.place is not None and row.place.is_sure and not same and len(chosen) < MOST_PLACES:
            chosen.append(row.place)
    return tuple(chosen)


def _spans(along: MeanAlong) -> tuple[Ints, Ints]:
    """Return the first bin of each place and the one after its last; never all bins."""
    filled = along.weight > 0
    missing = isinstance(along.bins, NumericBins) and along.bins.missing
    size = len(filled) - missing
    start, stop = (x.ravel() for x in np.mgrid[0:size, 1 : size + 1])
    keep = start + 1 == stop
    if isinstance(along.bins, NumericBins):
        keep = (start < stop) & ((stop - start < size) | bool(missing))
    keep &= filled[start] & filled[stop - 1]
    start, stop = start[keep], stop[keep]
    if missing and filled[-1]:
        start, stop = np.append(start, size), np.append(stop, size + 1)
    return start, stop


def _clearest(
    rows: MeanRows, along: MeanAlong, variable: Variable, level: float, n_variables: int
) -> tuple[MeanPlace | None, Bools | None]:
    r"""Return the place whose gap differs most clearly from the average, and its rows.

    Clear is :math:`|S - \pi S_\cdot|` in standard errors, S the sum of errors about the average
    gap. A place with a larger gap than the average comes first, unless another is much clearer.
    """
    start, stop = _spans(along)
    if (along.weight > 0).sum() < 2 or not len(start):
        return None, None
    cells, overall = along.sums.cells, along.sums.overall
    variance = spread_of(along.sums, overall).variance
    sums = [
        np.concatenate([[0.0], np.cumsum(x)])
        for x in (cells.error, cells.weight, variance)  # error is that of predicted − observed
    ]
    error, weight, own = (x[stop] - x[start] for x in sums)
    share = weight / cells.weight.sum()
    scale = own * (1 - share) ** 2 + share**2 * (variance.sum() - own)
    gap = ratio_or_zero(error, weight)
    average = float(cells.error.sum() / cells.weight.sum())
    clear = ratio_or_zero(np.abs(error - average * weight), np.sqrt(np.maximum(scale, 0.0)))
    worse = np.where(np.abs(gap) > abs(average), clear, 0.0)
    at = int((worse if worse.max() > WORSE_FIRST * clear.max() else clear).argmax())
    first, last = int(start[at]), int(stop[at]) - 1
    inside = (along.index >= first) & (along.index <= last)
    strict = 1 - (1 - level) / (len(start) * n_variables)
    low, high = gap_limits(rows.sums((~inside).astype(np.intp), 2), level=strict)
    limits = float(low[0]), float(high[0])
    data = rows.weight[inside], rows.rows.p[inside], rows.rows.y[inside]
    text, label = _texts(along, variable, inside, first, last)
    part = float(data[0].sum() / rows.weight.sum())
    mean = mean_level(*data, limits, rows.gap)
    n = int(inside.sum())
    return MeanPlace(variable.name, text, label, mean, n, part, first, last), inside


def _texts(
    along: MeanAlong, variable: Variable, inside: Bools, first: int, last: int
) -> tuple[str, str]:
    """Name a place: "above 60" and "age above 60"."""
    name, bins = variable.name, along.bins
    if isinstance(bins, LevelBins):
        text = bins.labels()[first]
        return text, f"{name}: {text}"
    assert isinstance(bins, NumericBins)
    if bins.missing and first == bins.size - 1:
        return "missing", f"{name} missing"
    values = variable.values[inside & ~variable.missing()].astype(np.float64)
    low, high = _written(bins, variable, float(values.min()), float(values.max()))
    end = bins.size - bins.missing - 1
    if low == high:
        text = low
    elif last == end and first > 0:
        text = f"from {low}" if variable.kind == "datetime" else f"{low} and over"
    elif first == 0 and last < end:
        text = f"up to {high}"
    else:
        text = f"{_without_unit(low, high)} to {high}"
    return text, f"{name} {text}"


def _written(bins: NumericBins, variable: Variable, low: float, high: float) -> list[str]:
    if variable.kind == "numeric":
        return [near_number(end, (high - low) / 10) for end in (low, high)]
    dates = variable.kind == "datetime"
    return edge_texts([low, high], datetime=dates, duration=not dates, zone=bins.zone)


def _notes(rows: MeanRows, judged: Sequence[MeanAuditRow]) -> list[str]:
    notes = []
    if rows.looks_like_probabilities:
        notes.append('Outcomes are only 0 and 1: for probabilities omit outcome="mean".')
    if rows.rows.n_dropped:
        were = "was" if rows.rows.n_dropped == 1 else "were"
        notes.append(f"{count(rows.rows.n_dropped, 'row')} without an outcome {were} left out.")
    if rows.exposure is not None:
        notes.append("Outcomes and predictions are per unit of exposure.")
    missing = [row.variable for row in judged if row.missing > 0]
    if missing:
        shown = ", ".join(missing[:MOST_NAMED]) + (" …" if len(missing) > MOST_NAMED else "")
        notes.append(f"Missing values of {shown} are in a bin of their own.")
    return notes
