"""Table: some results of an experiment, and how they are arranged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reproduction.corrected_protocol import CorrectedRun
from reproduction.figure import Figure
from reproduction.paper_protocol import PaperRun
from reproduction.published import AUGMENTED, TREE, UNCALIBRATED


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    name : str
        The name of its file.
    title : str
        Its heading.
    columns : dict of list
        The cells by column, text or numbers.
    note : str
        An explanation below the table.
    detail : bool
        Whether it is only written as CSV.
    """

    name: str
    title: str
    columns: dict[str, list[Any]]
    note: str = ""
    detail: bool = False

    def markdown(self) -> str:
        """Return the table in Markdown, with its columns aligned.

        >>> print(Table("a", "Both", {"method": ["beta"], "ECE": [1.5]}).markdown())
        **Both**
        <BLANKLINE>
        | method |    ECE |
        | :----- | -----: |
        | beta   | 1.5000 |
        """
        columns = [_aligned(name, cells) for name, cells in self.columns.items()]
        lines = [f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)]
        parts = [f"**{self.title}**", "\n".join(lines)]
        return "\n\n".join([*parts, self.note] if self.note else parts)


def _aligned(name: str, values: list[Any]) -> list[str]:
    """Return the cells of a column, text to the left and numbers to the right."""
    text = any(isinstance(value, str) for value in values)
    cells = [cell.replace("|", "\\|") for cell in (name, *map(_cell, values))]
    width = max(3, *map(len, cells))
    rule = ":" + "-" * (width - 1) if text else "-" * (width - 1) + ":"
    first, *rest = (cell.ljust(width) if text else cell.rjust(width) for cell in cells)
    return [first, rule, *rest]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _comparison_table(
    name: str, title: str, corner: str, rows: dict[str, dict[str, Figure]]
) -> Table:
    """Return a table of figures next to the paper's, with one verdict per row."""
    heads = list(next(iter(rows.values())))
    columns: dict[str, list[Any]] = {corner: list(rows)}
    for head in heads:
        columns[f"{head}, paper"] = [_printed(row[head]) for row in rows.values()]
        columns[f"{head}, ours"] = [row[head].value for row in rows.values()]
    columns["verdict"] = [_verdicts(row) for row in rows.values()]
    return Table(name, f"{title} (%)", columns)


def _printed(figure: Figure) -> str:
    return figure.published.printed if figure.published else ""


def _verdicts(row: dict[str, Figure]) -> str:
    """Return the verdict of a row, or one per figure if they differ."""
    said = {head: figure.verdict for head, figure in row.items() if figure.verdict}
    if len(set(said.values())) < 2:
        return next(iter(said.values()), "")
    return "; ".join(f"{head} {text}" for head, text in said.items())


def paper_tables(run: PaperRun) -> list[Table]:
    """Return the paper's tables of a study."""
    study, figures = run.study, run.figures

    def errors(methods: Sequence[str]) -> dict[str, dict[str, Figure]]:
        along = f"VECE ({study.variable})"
        return {
            method: {
                "ECE": figures[method, "ECE", ""],
                along: figures[method, "VECE", study.variable],
            }
            for method in methods
        }

    main = [method for method in run.probabilities if method != AUGMENTED]
    makers = {
        "worst": lambda: {
            name: {
                "VECE": figures[study.score_based, "VECE", name],
                "VCE(v*)": figures[study.score_based, "VCE(v*)", name],
            }
            for name in study.worst
        },
        "errors": lambda: errors(main),
        "accuracy": lambda: {
            method: {"accuracy": figures[method, "accuracy", ""]} for method in study.shown
        },
        "augmented": lambda: errors([UNCALIBRATED, study.score_based, TREE, AUGMENTED]),
    }
    return [
        _others(run, title)
        if name == "others"
        else _comparison_table(
            name, title, "variable" if name == "worst" else "method", makers[name]()
        )
        for name, title in study.tables.items()
    ]


def _others(run: PaperRun, title: str) -> Table:
    """Return VECE by variable and method, one figure per row."""
    study = run.study
    names = (study.variable, *study.others)
    found = [run.figures[method, "VECE", name] for name in names for method in study.shown]
    columns: dict[str, list[Any]] = {
        "variable": [figure.target[2] for figure in found],
        "method": [figure.target[0] for figure in found],
        "VECE, paper": [_printed(figure) for figure in found],
        "VECE, ours": [figure.value for figure in found],
        "verdict": [figure.verdict for figure in found],
    }
    return Table("others", f"{title} (%)", columns)


def corrected_tables(run: CorrectedRun) -> list[Table]:
    """Return the figures over splits, and whether the claims hold."""
    study, many = run.study, f"over {run.n_splits} splits"
    claims: dict[str, list[Any]] = {
        "claim": [one.claim.text for one in run.claims],
        "change": [100 * one.change for one in run.claims],
        "sd": [100 * one.spread for one in run.claims],
        "low": [100 * one.low for one in run.claims],
        "high": [100 * one.high for one in run.claims],
        "true in": [one.n_true for one in run.claims],
        "verdict": [one.verdict for one in run.claims],
    }
    note = (
        "The last columns are for the paper's own split: the plug-in value, mean and 95 % quantile "
        "of what a perfect model would show, the debiased value and its 95 % interval."
    )
    claims_note = (
        "Change is in percentage points, with its mean and standard deviation over splits. Low "
        "and high are the 95 % interval of the change on the paper's own split (of VECE itself "
        "where it is compared with chance). Splits share most of their test rows."
    )
    tables = [
        Table(
            "corrected",
            f"{study.title}, corrected: mean and standard deviation {many} (%)",
            _over_splits(run, [("ECE", ""), ("VECE", study.variable), ("accuracy", "")]),
            note,
        ),
        Table("claims", f"{study.title}: the paper's claims, {many}", claims, claims_note),
        Table(
            "by-split", f"{study.title}, corrected: every split (%)", _by_split(run), detail=True
        ),
    ]
    if study.others:
        others = _over_splits(run, [("VECE", name) for name in study.others])
        title = f"{study.title}, corrected: other variables {many} (%)"
        tables.append(Table("corrected-others", title, others, note))
    return tables


def _over_splits(run: CorrectedRun, wanted: list[tuple[str, str]]) -> dict[str, list[Any]]:
    rows = []
    for measure, variable in wanted:
        for method in run.methods:
            target = (method, measure, variable)
            values = 100 * run.values[target]
            row: dict[str, Any] = {
                "figure": f"{measure} ({variable})" if variable else measure,
                "method": method,
                "mean": float(values.mean()),
                "sd": float(values.std(ddof=1)),
                "paper's split": float(values[0]),
                **dict.fromkeys(("noise", "noise 95 %", "debiased", "low", "high"), math.nan),
            }
            if target in run.first:
                first = run.first[target]
                row |= {
                    "noise": 100 * first.noise_floor,
                    "noise 95 %": 100 * first.noise_high,
                    "debiased": 100 * first.debiased,
                    "low": 100 * first.low,
                    "high": 100 * first.high,
                }
            rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]}


def _by_split(run: CorrectedRun) -> dict[str, list[Any]]:
    """Return every figure of every split, one per row."""
    rows = [
        (measure, method, variable, k, 100 * float(value))
        for (method, measure, variable), values in run.values.items()
        for k, value in enumerate(values)
    ]
    names = ("measure", "method", "variable", "split", "percent")
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}
