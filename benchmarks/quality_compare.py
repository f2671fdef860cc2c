"""Tables that compare two files of `quality.py`: what is better and what is worse."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from quality_methods import OURS

KEYS = ["collection", "case", "n", "seed", "method"]
FIGURES = ["log_loss", "ece", "max_vece", "fit", "predict", "coverage", "coverage_part", "width",
           "rmse", "peak_mb", "stopped", "error"]  # fmt: skip
#: A rise of the log-loss that counts as harm, and with how many standard errors a table is worse.
HARM, ERRORS = 0.002, 2.5
#: The share of calibrated scores that may be harmed.
HARMED = 0.05
#: The least coverage of intervals over all rows, and over those with p > .5.
COVERAGE = {"smooth": 0.93, "weak": 0.93, "wavy": 0.93, "jump": 0.90, "jumps": 0.90}
COVERAGE_PART = {"tree": 0.90, "tree of score": 0.90}
#: How many times the CPU time of LightGBM a fit may take, from 1,000 rows on.
CPU = 2.0
BY_SCORE = ("scores2", "scoresK")
Table = dict[str, dict[str, str]]


def read(path: Path) -> pd.DataFrame:
    """Return the measurements of a file; the last one of each fit counts."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = pd.DataFrame([json.loads(line) for line in lines]).reindex(columns=KEYS + FIGURES)
    found["table"] = found["case"].str.partition(",")[0]
    return found.drop_duplicates(KEYS, keep="last")


def paired(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return fits of both files side by side, with the log-loss of the raw scores."""
    both = before.merge(after, on=[*KEYS, "table"], suffixes=("", "_after"))
    raw = pd.concat([after, before])
    raw = raw[raw["method"] == "raw"].drop_duplicates(KEYS)
    raw = raw[[*KEYS[:-1], "log_loss"]].rename(columns={"log_loss": "raw"})
    both = both.merge(raw, on=KEYS[:-1], how="left")
    return both.assign(change=both["log_loss_after"] - both["log_loss"])


def standard_error(values: pd.Series) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def signed(values: pd.Series, digits: int = 2) -> str:
    """Return a mean with its sign and its standard error."""
    mean, error = values.mean(), standard_error(values)
    text = "" if np.isnan(mean) else f"{mean:+.{digits}f}"
    return text if np.isnan(error) else f"{text} ± {error:.{digits}f}"


def show(title: str, rows: Table) -> None:
    """Print a Markdown table."""
    if rows:
        columns = list(next(iter(rows.values())))
        print(f"\n### {title}\n\n| | " + " | ".join(columns) + " |")
        print("|---|" + "---|" * len(columns))
        for name, row in rows.items():
            print(f"| {name} | " + " | ".join(row.get(column, "") for column in columns) + " |")


def moved(part: pd.DataFrame, column: str, scale: float) -> pd.Series:
    """Return the change of a figure by table."""
    return scale * (part[f"{column}_after"] - part[column]).groupby(part["table"]).mean()


def summary(part: pd.DataFrame) -> dict[str, str]:
    """Return one row of a collection's table."""
    row = {
        "tables": str(part["table"].nunique()),
        "fits": str(len(part)),
        "log-loss": f"{1000 * part.groupby('table')['log_loss'].mean().mean():.1f}",
        "change": signed(moved(part, "log_loss", 1000)),
        "better, worse": f"{(part['change'] < -5e-4).sum()}, {(part['change'] > 5e-4).sum()}",
    }
    for name, column in (("ECE", "ece"), ("max VECE", "max_vece")):
        if part[column].notna().any():
            row[name] = f"{100 * part.groupby('table')[column].mean().mean():.2f}"
            row[f"{name} change"] = signed(moved(part, column, 100))
    if part["raw"].notna().any():
        rises = (part[f"log_loss{end}"] - part["raw"] for end in ("", "_after"))
        row["harm %"] = " → ".join(f"{100 * (rise.dropna() > HARM).mean():.1f}" for rise in rises)
    for name in ("fit", "predict"):
        row[f"{name} ms"] = (
            f"{1e3 * part[name].mean():.1f} → {1e3 * part[f'{name}_after'].mean():.1f}"
        )
    return row


def flagged(part: pd.DataFrame) -> list[str]:
    """Return tables whose log-loss rose by more than `ERRORS` standard errors and by `HARM`.

    Standard errors are over splits; by score they are over models and numbers of rows, and the
    models are looked at as well, with standard errors over tables.
    """
    names = [part["table"] + " with " + part["n"].map("{:,} rows".format)]
    if part["collection"].iloc[0] in BY_SCORE:
        size = np.where(part["n"] == 300, " with 300 rows", " with all rows")
        names = [part["table"], part["case"].str.partition(", ")[2] + size]
    found = []
    for by in names:
        for name, rise in part["change"].groupby(by):
            if rise.mean() > HARM and not rise.mean() < ERRORS * standard_error(rise):
                found.append(f"{name} {signed(1000 * rise)}")
    return found


def show_collection(part: pd.DataFrame, worse: list[str]) -> None:
    """Print the table of a collection and a method; add what is worse."""
    collection, method = part[["collection", "method"]].iloc[0]
    name = f"{collection}, {method}"
    size = part["n"].map("{:,} rows".format)
    if collection in BY_SCORE:
        size = size.where(part["n"] == 300, "all rows")
    by = part["case"] if collection in ("paper", "growth") else size
    if collection == "dates":
        by = part["case"] + ", " + size
    rows = {each: summary(some) for each, some in part.groupby(by, sort=False)}
    if collection in BY_SCORE:
        kind = part["case"].str.partition(", ")[2]
        rows |= {f"{k}, {n}": summary(some) for (k, n), some in part.groupby([kind, size])}
    show(f"{name} (log-loss × 1,000; ECE, VECE in points)", rows | {"all": summary(part)})
    bad = flagged(part)
    print("\nWorse by 2.5 standard errors and .002: " + ("; ".join(bad) or "none") + ".")
    ranked = part.groupby(["case", "n"])["change"].mean().sort_values()
    for word, some in (("Highest", ranked[::-1]), ("Lowest", ranked)):
        ends = (f"{case} {n:,} {1000 * x:+.1f}" for (case, n), x in some[:6].items())
        print(f"{word} changes: " + "; ".join(ends))
    change = moved(part, "log_loss", 1000)
    if change.mean() > 0.05:
        worse.append(f"{name}: mean log-loss × 1,000 {signed(change)}")
    worse.extend([f"{name}: worse by 2.5 s.e. and .002: {'; '.join(bad)}"] * bool(bad))
    for column, word in (("ece", "ECE"), ("max_vece", "max VECE")):
        change = moved(part, column, 100)
        if change.mean() > max(0.02, 2 * np.nan_to_num(standard_error(change))):
            worse.append(f"{name}: {word} {signed(change)} points")
    rise = part["log_loss_after"] - part["raw"]
    if collection == "harm":
        for n, share in (rise > HARM).groupby(part["n"]).mean().items():
            if share > HARMED:
                worse.append(f"{name}: {100 * share:.1f} % rise above .002 with {n:,} rows")
    if collection == "dates" and method == OURS:
        new = part["case"] == "new dates"
        for n, mean in rise[new].groupby(part["n"][new]).mean().items():
            if mean > HARM:
                worse.append(f"{name}: {1000 * mean:+.1f} above raw on new dates, {n:,} rows")


def show_intervals(both: pd.DataFrame, worse: list[str]) -> None:
    """Print the coverage of intervals; add what is below the least."""
    rows: Table = {}
    for (case, n), part in both.groupby(["case", "n"], sort=False):
        row = {}
        for name, column in (("coverage", "coverage"), ("of the part", "coverage_part")):
            for word, end in (("", ""), (" after", "_after")):
                values = 100 * part[column + end]
                row[name + word] = f"{values.mean():.1f} ± {standard_error(values):.1f}"
        for name, column in (("width", "width"), ("error of q", "rmse")):
            ends = (f"{100 * part[column + end].mean():.2f}" for end in ("", "_after"))
            row[name] = " → ".join(ends)
        row["predict ms"] = " → ".join(
            f"{1e3 * part['predict' + end].mean():.0f}" for end in ("", "_after")
        )
        rows[f"{case}, {n:,}"] = row
        for least, end, where in ((COVERAGE, "", ""), (COVERAGE_PART, "_part", " for p > .5")):
            values = part[f"coverage{end}_after"]
            if values.mean() < least.get(case, 0.0):
                share = f"{100 * values.mean():.1f} ± {100 * standard_error(values):.1f} %"
                worse.append(f"intervals of {case}{where} with {n:,} rows hold {share}")
    show("intervals of 95 % (points; part: near jumps, p > .5, or scores of 0 and 1)", rows)


def show_times(before: pd.DataFrame, after: pd.DataFrame, worse: list[str]) -> None:
    """Print CPU times with many columns and rows; add what exceeds those of LightGBM."""
    every = pd.concat([before.assign(when="before"), after.assign(when="after")])
    every = every[every["collection"] == "many"]
    rows: Table = {}
    for (case, n), part in every.groupby(["case", "n"], sort=False):
        row = {}
        by = part.groupby(["method", "when"])
        for column in ("fit", "predict"):
            mean = by[column].mean()
            for method in (OURS, "LightGBM", "MCGrad"):
                cells = [mean.get((method, when), np.nan) for when in ("before", "after")]
                row[f"{column}, {'ours' if method == OURS else method}"] = " → ".join(
                    "" if np.isnan(x) else f"{x:.2f}" for x in cells
                )
        own, other = (by["fit"].mean().get((name, "after"), np.nan) for name in (OURS, "LightGBM"))
        row["ours / LightGBM"] = "" if np.isnan(own / other) else f"{own / other:.1f}"
        row["peak MB"] = f"{by['peak_mb'].max().get((OURS, 'after'), np.nan):.0f}"
        rows[f"{case}, {n:,} rows"] = row
        if n >= 1_000 and own > CPU * other:
            worse.append(f"fit of {case}, {n:,} rows: {own:.2f} s, {own / other:.1f} × LightGBM")
    show("many: CPU seconds (a fit that was stopped counts as long as it was allowed)", rows)


def show_others(before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Print other methods minus ours, after the change."""
    ours = after[after["method"] == OURS].drop(columns=["method", "table"])
    others = before[(before["method"] != OURS) & before["log_loss"].notna()]
    both = others.merge(ours, on=KEYS[:-1], suffixes=("_after", ""))
    rows: Table = {}
    for (collection, method), part in both.groupby(["collection", "method"], sort=False):
        if collection not in ("intervals", "many", "harm"):
            rows[f"{collection}: {method}"] = {
                "log-loss × 1,000": signed(moved(part, "log_loss", 1000)),
                "ECE": signed(moved(part, "ece", 100)),
                "max VECE": signed(moved(part, "max_vece", 100)),
            }
    show("Other methods, before, minus VariableCalibrator, after", rows)


def main(before: Path, after: Path) -> None:
    """Print what is worse, then all tables."""
    first, last = read(before), read(after)
    both = paired(first, last)
    failed = last[last["error"].notna()].groupby(["collection", "method"])
    worse = [
        f"{collection}, {method}: {len(own)} fits failed, {own['error'].iloc[0]}"
        for (collection, method), own in failed
    ]
    with redirect_stdout(StringIO()) as text:
        quality = both[both["change"].notna() & ~both["collection"].isin(["intervals", "many"])]
        for (_, method), part in quality.groupby(["collection", "method"], sort=False):
            if method.startswith(OURS) or part["change"].abs().max() > 1e-6:
                show_collection(part, worse)
        show_intervals(both[both["collection"] == "intervals"], worse)
        show_times(first, last, worse)
        show_others(first, last)
    print(f"## {before.name} → {after.name}: {len(both):,} fits in both\n")
    print("Worse, or beyond a limit:\n" if worse else "Nothing is worse or beyond a limit.")
    print("\n".join(f"- {line}" for line in worse))
    print(text.getvalue())
