"""BinTable: confidence and accuracy by bins of a variable, one row per bin."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._files.schema import restored
from varcal._input.frames import frame_of
from varcal._options import checked, only_means
from varcal._sums.bins import Bins, JointBins, NumericBins
from varcal._sums.choose_bins import N_BINS, QUANTILE, BinOptions
from varcal._sums.evidence import Evidence, gather
from varcal._sums.plan import Question
from varcal._sums.stats import BinnedStats
from varcal._text import html_table, text_table
from varcal.exceptions import InputError


@dataclass(frozen=True, eq=False)
class BinTable:
    """Confidence and accuracy in each bin of a variable.

    Attributes
    ----------
    variable : str
        The binned variable; "confidence" for the score itself.
    event : str
        What the probabilities claim.
    columns : dict of lists
        The table: `bin` (its name), `low` and `high` (its edges; only for a numeric variable),
        `n`, `share`, `predicted`, `observed`, `gap`, `gap_low`, `gap_high`; with
        ``event="classwise"`` also `class`.
    level : float
        Level of the interval of each gap.
    n_rows : int
        Rows used.
    n_dropped : int
        Rows dropped because their outcome is missing.
    engine, edges : str
        What summed the rows, and whether bins were chosen from all of them ("exact") or from a
        sample ("sampled").
    """

    variable: str
    event: str
    columns: dict[str, list[Any]]
    level: float
    n_rows: int
    n_dropped: int
    backend: str | None = None
    engine: str = "numpy"
    edges: str = "exact"

    def __len__(self) -> int:
        return len(self.columns["n"])

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN and infinities as None)."""
        clean = {
            name: [None if isinstance(x, float) and not isfinite(x) else x for x in values]
            for name, values in self.columns.items()
        }
        return {
            "variable": self.variable,
            "event": self.event,
            "level": self.level,
            "n_rows": self.n_rows,
            "n_dropped": self.n_dropped,
            "engine": self.engine,
            "edges": self.edges,
            "columns": clean,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BinTable:
        """Return the table that `to_dict` described."""
        return restored(lambda: cls._of(data), cls, "a table of bins")

    @classmethod
    def _of(cls, data: dict[str, Any]) -> BinTable:
        columns = {
            name: [np.nan if x is None and name != "class" else x for x in values]
            for name, values in data["columns"].items()
        }
        return cls(**data | {"columns": columns})

    def _check_saved(self) -> None:
        """Raise ValueError unless the columns have the same length and their types."""
        figure = "a_e" if "a_e" in self.columns else "gap"
        numbers = ("share", "predicted", "observed", figure, f"{figure}_low", f"{figure}_high")
        if not {"bin", "n", *numbers} <= set(self.columns) or not self.columns["n"]:
            raise ValueError("a column is missing")
        if len({len(column) for column in self.columns.values()}) > 1:
            raise ValueError("columns differ in length")
        edges = [name for name in ("low", "high") if name in self.columns]
        for name in (*numbers, *edges):
            if not all(type(x) in (float, int) for x in self.columns[name]):
                raise ValueError(f"{name} holds something other than numbers")
        if self.event != "mean" and any(
            abs(x) > 1e3 for name in numbers for x in self.columns[name]
        ):
            raise ValueError("a rate is too large")
        if not all(type(n) is int and 0 <= n < 2**63 for n in self.columns["n"]):
            raise ValueError("n holds something other than counts")
        for name in set(self.columns) - {"n", *numbers, *edges}:
            if not all(isinstance(x, str | bool | int | float | None) for x in self.columns[name]):
                raise ValueError(f"{name} holds something other than labels")
        if not all(isinstance(x, str) for x in self.columns["bin"]) or not 0 < self.level < 1:
            raise ValueError("the name of a bin is not text, or the level is not a share")

    def to_frame(self) -> Any:
        """Return the table as a frame of the input's library, pandas for arrays."""
        return frame_of(self.columns, self.backend)

    def _shown(self) -> tuple[str, dict[str, list[Any]]]:
        """Return a heading, and the columns without the edges and empty bins."""
        kind = "means" if self.event == "mean" else f"event {self.event}"
        head = f"{self.variable} · {kind} · {self.n_rows:,} rows"
        if self.n_dropped:
            head += f" · {self.n_dropped:,} dropped without outcome"
        held = [k for k, n in enumerate(self.columns["n"]) if n]
        if len(held) < len(self):
            head += f" · {len(self) - len(held)} empty bins not shown"
        return head, {
            name: [values[k] for k in held]
            for name, values in self.columns.items()
            if name not in ("low", "high")
        }

    def __repr__(self) -> str:
        head, shown = self._shown()
        return f"{head}\n{text_table(shown)}"

    def _repr_html_(self) -> str:
        head, shown = self._shown()
        return html_table(shown, head)


@checked()
def bin_table(
    y: object,
    p: object = None,
    v: object = None,
    *,
    data: object = None,
    event: str = "correct",
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = N_BINS,
    binning: str = QUANTILE,
    bins: object = None,
    edges: str | None = None,
    level: float = 0.95,
    sample_weight: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    outcome: str | None = None,
    gap: str | None = None,
    exposure: object = None,
) -> BinTable:
    r"""Tabulate predicted, observed and gap by bins of a variable, or of the score itself.

    The gap of bin b is :math:`g_b = \text{Conf}_b - \text{Acc}_b` (positive: overconfident). Its
    interval is :math:`g_b \pm z \, \text{se}_b` with the sandwich standard error, shrunk towards
    the standard error under calibration with the weight of five rows. With fewer than 20 events or
    non-events it is widened to the exact interval of the rate (Clopper and Pearson).

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `ece`.
    v : array-like, frame, dict of columns, or column names, optional
        The variable, or several for joint bins. By default the score itself is binned.
    data, event, n_bins, binning, bins, edges : optional
        As in `vece`.
    classes, pos_label, sample_weight, from_logits, unlabelled
        As in `vece`.
    level : float
        Level of the interval of each gap.
    outcome : {"mean"}, optional
        That `y` is an amount or a count, and `p` its predicted mean. The table then has, for each
        bin, the weighted means `predicted` and `observed`, and either A/E, the sum of outcomes over
        that of predictions, or the gap :math:`\sum w (\mu - y) / \sum w`, in the unit of `y`.
    gap : {"relative", "difference"}, optional
        A/E, the default, which needs positive predictions and no negative outcome, or the
        difference; only with ``outcome="mean"``.
    exposure : array-like or column name, optional
        The exposure of each row, such as the years of a policy; only with ``outcome="mean"``.
        Outcomes and predictions are per unit of it (claims per year).

    Returns
    -------
    BinTable
        The table, which converts with `to_frame()` and `to_dict()`. Empty bins stay, with n = 0.

    Examples
    --------
    >>> import varcal as vc
    >>> vc.bin_table([1, 1, 1, 0], [0.9, 0.8, 0.7, 0.6], ["a", "a", "b", "b"])
    v · event correct · 4 rows
    bin  n  share  predicted  observed      gap  gap_low  gap_high
    a    2  0.500     0.8500    1.0000  -0.1500  -0.5991    0.6919
    b    2  0.500     0.6500    0.5000   0.1500  -0.5498    0.8498

    Two counts each, 6 predicted and 9 observed for b:

    >>> table = vc.bin_table([2, 3, 4, 5], [2, 3, 2, 4], ["a", "a", "b", "b"], outcome="mean")
    >>> table.columns["a_e"]
    [1.0, 1.5]
    """
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    if outcome == "mean":
        from varcal._measures import means  # noqa: PLC0415  scipy loads when first needed

        means.only_probabilities(
            outcome,
            event=None if event == "correct" else event,
            classes=classes,
            pos_label=pos_label,
            from_logits=from_logits,
        )
        how: dict[str, Any] = {
            "data": data,
            "sample_weight": sample_weight,
            "unlabelled": unlabelled,
        }
        question = Question(options)
        rows = means.gather_means(y, p, v, question, gap=gap, exposure=exposure, **how)
        return means.mean_table(rows, level)
    only_means(gap=gap, exposure=exposure)
    evidence = gather(
        y,
        p,
        v,
        Question(options, event, pos_label, joint=True, fine=False),
        data=data,
        classes=classes,
        sample_weight=sample_weight,
        from_logits=from_logits,
        unlabelled=unlabelled,
    )
    from scipy.special import ndtri  # noqa: PLC0415  scipy loads when first needed

    from varcal._inference.gap_law import gap_ends  # noqa: PLC0415

    columns: dict[str, list[Any]] = {}
    for key in evidence.keys(event, pos_label):
        stats = evidence.table(key)
        reach = float(ndtri(0.5 + level / 2)) * stats.gap_se
        label = {"class": [evidence.label(key)] * stats.bins.size} if event == "classwise" else {}
        low, high = gap_ends(stats, reach, level)
        ends = {"gap_low": low.tolist(), "gap_high": high.tolist()}
        for name, values in (label | bin_columns(stats, reach) | ends).items():
            columns.setdefault(name, []).extend(values)
    return _table(columns, stats, event, level, evidence)


def table_of(
    stats: BinnedStats,
    reach: Floats,
    event: str,
    level: float,
    evidence: Evidence,
) -> BinTable:
    """Return the table of bins; `reach` has the half-widths of the intervals of the gaps."""
    return _table(bin_columns(stats, reach), stats, event, level, evidence)


def _table(
    columns: dict[str, list[Any]],
    stats: BinnedStats,
    event: str,
    level: float,
    evidence: Evidence,
) -> BinTable:
    return BinTable(
        variable=stats.bins.name,
        event=event,
        columns=columns,
        level=level,
        n_rows=evidence.n_rows,
        n_dropped=evidence.n_dropped,
        backend=evidence.backend,
        engine=evidence.engine,
        edges=stats.edges,
    )


def bin_columns(stats: BinnedStats, reach: Floats) -> dict[str, list[Any]]:
    """Return the columns of a table; `reach` has the half-widths of the intervals."""
    bins = stats.bins
    figures: dict[str, list[Any]] = {
        "n": stats.n.tolist(),
        "share": stats.share.tolist(),
        "predicted": stats.confidence.tolist(),
        "observed": stats.accuracy.tolist(),
        "gap": stats.gap.tolist(),
        "gap_low": (stats.gap - reach).tolist(),
        "gap_high": (stats.gap + reach).tolist(),
    }
    return edge_columns(bins, ("class", "bin", *figures)) | figures


def edge_columns(bins: Bins, taken: Sequence[str] = ("bin", "n", "share")) -> dict[str, list[Any]]:
    """Return the names of bins, and their edges or the bins of each of several variables."""
    columns: dict[str, list[Any]] = {"bin": bins.labels()}
    if isinstance(bins, NumericBins):
        absent = [np.nan] * bins.missing
        columns["low"] = [*bins.edges[:-1], *absent]
        columns["high"] = [*bins.edges[1:], *absent]
    if isinstance(bins, JointBins):
        cells = np.unravel_index(np.arange(bins.size), [part.size for part in bins.parts])
        for part, index in zip(bins.parts, cells, strict=True):
            if part.name in taken:
                raise InputError(
                    f"variable {part.name!r} has the name of a column of the table",
                    "rename the variable",
                )
            labels = part.labels()
            columns[part.name] = [labels[k] for k in index]
    return columns
