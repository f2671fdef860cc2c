"""Reports of audits: every figure recomputed from the rows, files, hostile names, odd columns."""

import base64
import hashlib
import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss

import varcal as vc
from cases import audits
from cases.page import read
from varcal._report.audit_page import audit_html, audit_markdown, notebook_html
from varcal.exceptions import InputError


def number(text):
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", "").rstrip("%×"))


def inside(values, text):
    """Return the rows that the text of a bin or place means."""
    if text == "missing":
        return values.isna()
    if not pd.api.types.is_numeric_dtype(values):
        return values == text
    words = re.fullmatch(r"(?:up to (\S+)|(\S+) to (\S+)|(\S+) and over|(\S+))", text).groups()
    end, low, high, start, same = (None if one is None else number(one) for one in words)
    low, high = (same, same) if same is not None else (start if low is None else low, end or high)
    return values.between(-np.inf if low is None else low, np.inf if high is None else high)


class Hand:
    """The figures of a page, computed from the rows."""

    def __init__(self, rows, digits):
        self.rows, self.digits = rows, digits
        self.hit, self.side = rows.churn == "Yes", rows.p >= 0.5

    def rates(self, mask):
        """Return rows, says, happens and the difference as they are shown."""
        says, happens = (
            float(f"{100 * one[mask].mean():.{self.digits}f}") for one in (self.rows.p, self.hit)
        )
        return [int(mask.sum()), says, happens, round(says - happens, self.digits)]

    def shown(self, mask):
        if not mask.any():
            return ["0", "–", "–", "–"]
        n, says, happens, gap = self.rates(mask)
        d = self.digits
        sign = "+" if gap > 0 else "\N{MINUS SIGN}" if gap < 0 else ""
        return [f"{n:,}", f"{says:.{d}f}%", f"{happens:.{d}f}%", f"{sign}{abs(gap):.{d}f}"]

    def errors(self, masks, sides):
        """Return the number of cells, the error, the side means and the uneven error, in points."""
        gap, error, uneven, cells, means = self.rows.p - self.hit, 0.0, 0.0, 0, []
        for side in sides:
            mean = gap[side].mean()
            means.append(self.shown(side)[3])
            for cell in (mask & side for mask in masks):
                if cell.any():
                    cells += 1
                    error += cell.mean() * abs(gap[cell].mean())
                    uneven += cell.mean() * abs(gap[cell].mean() - mean)
        return cells, 100 * error, means, 100 * uneven


def tables():
    adult = vc.datasets.load_adult()
    names = ["age", "education-num", "sex", "relationship", "race"]
    income = pd.DataFrame({name: adult[name] for name in names})
    income = income.assign(churn=np.where(adult.y == 1, "Yes", "No"), p=np.sqrt(adult.p))
    return {
        "groups": (audits.rows(), ["age", "plan"]),
        "rare": (audits.rows("rare"), ["age", "plan"]),
        "adult": (income, names),
    }


@pytest.mark.parametrize("kind", ["groups", "rare", "adult"])
def test_every_figure_can_be_recomputed_from_the_rows(kind):
    rows, names = tables()[kind]
    found = vc.audit("churn", "p", names, data=rows, ladder="score", protected="age")
    page, digits = read(audit_html(found)), 2 if kind == "rare" else 1
    hand, everybody = Hand(rows, digits), pd.Series(True, rows.index)
    summary = page.one("section", "first")

    # For whom it is wrong
    for k, (name, *cells) in enumerate(summary.one("table", "whom").cells()[:-1]):
        mask = everybody
        if k:
            variable = max((one for one in names if name.startswith(one)), key=len)
            place, about = re.fullmatch(
                rf"{variable}:? (.+?) ((?:among those predicted \w+ · )?[\d,]+ rows?)", name
            ).groups()
            mask = inside(rows[variable], place)
            side = re.search("predicted (Yes|No)", about)
            mask = mask & (hand.side == (side[1] == "Yes")) if side else mask
            assert about.endswith(f"{mask.sum():,} rows")
        n, says, happens, gap = hand.rates(mask)
        assert [number(one) for one in cells[1:3]] == [says, happens]
        size, word = re.match(r"(?:[▲▼] )?([\d.]+) too (high|low)", cells[3]).groups()
        assert (float(size), word) == (abs(gap), "high" if gap > 0 else "low")
        if kind == "rare":
            ratio, events, expected = re.fullmatch(r"([\d.]+)× (\d+) / (\d+)", cells[4]).groups()
            assert int(events) == hand.hit[mask].sum()
            assert int(expected) == round(rows.p[mask].sum())
            assert float(ratio) == round(hand.hit[mask].sum() / rows.p[mask].sum(), 1)

    # The ladder
    n, says, happens, gap = hand.rates(everybody)
    first = summary.one("table", "ladder").cells()[0]
    assert number(re.search(r"[+−]?[\d.]+$", first[1])[0]) == gap
    assert float(first[4]) == pytest.approx(log_loss(hand.hit, rows.p), abs=6e-5)
    accuracy = summary.one("table", "bins").cells()[0][-1]
    assert number(accuracy) == round(100 * accuracy_score(hand.hit, rows.p > 0.5), 1)

    # The ranking, and the counts of the first screen
    ranked = [one for table in page.all("table", "rank") for one in table.cells()]
    assert len(ranked) == len(names)
    verdicts = [verdict for _, verdict, *_ in ranked]
    counts = [sum(word in one for one in verdicts) for word in ("Above limit", "May be above")]
    told = re.search(r"(?:✕ (\d+))?,? ?(?:◐ (\d+))? of (\d+)$", first[3])
    assert counts == ([int(one or 0) for one in told.groups()[:2]] if told else [0, 0])
    lede = summary.one("p", "lede").text()
    assert (f"{counts[0]} of {len(names)} variables" in lede) == (counts[0] > 0)
    for name, _, size, *_, place in ranked:
        variable = name.removesuffix(" protected")
        assert number(size) == round(100 * found.row(variable).uneven.debiased, digits)
        one = re.fullmatch(
            r"(.+?)(?:, predicted (Yes|No))?: [▲▼] ([\d.]+) too (high|low) says ([\d.]+)%, "
            r"happens ([\d.]+)% · ([\d,]+) rows?",
            place,
        )
        assert one or place in ("no evidence", "no single group is certain")
        if one:
            mask = inside(rows[variable], one[1])
            mask = mask & (hand.side == (one[2] == "Yes")) if one[2] else mask
            n, says, happens, gap = hand.rates(mask)
            assert [number(one[k]) for k in (7, 5, 6, 3)] == [n, says, happens, abs(gap)]

    # The cards
    for card in page.all("details", "card"):
        variable = card.one("h3").text()
        table = card.one("table", "bins")
        two = "Predicted Yes" in table.text()
        sides = [~hand.side, hand.side] if two else [everybody]
        columns = [everybody, *sides] if two else [everybody]
        masks = []
        *bins, total = table.cells()
        for text, *cells in bins:
            own = inside(rows[variable], text)
            if text.startswith("other ("):  # rare levels
                own = ~rows[variable].isin([one[0] for one in bins])
            masks.append(own)
            assert cells == [one for side in columns for one in hand.shown(masks[-1] & side)]
        assert sum(masks).eq(1).all()
        assert total[1:] == [one for side in columns for one in hand.shown(side)]
        cells, error, means, uneven = hand.errors(masks, sides)
        said = card.one("p", "after").text()
        assert said.startswith(f"Over the {cells} ") and all(mean in said for mean in means)
        plug_in = re.findall(r"= ([\d.]+)(?: points;|\. Chance)", said)
        assert plug_in == [f"{error:.{digits}f}", f"{uneven:.{digits}f}"]
        debiased = re.search(r"they are ([\d.]+) and ([\d.]+),", said)
        row = found.row(variable)
        assert debiased.groups() == tuple(
            f"{100 * one.debiased:.{digits}f}" for one in (row.error, row.uneven)
        )

    # By score
    for text, *cells in page.all("section")[-3].one("table", "bins").cells():
        assert re.fullmatch(r"up to .*%|.* to .*%|.*% and over", text)
        says, happens = number(cells[1]), number(cells[2])
        assert number(cells[3]) == round(says - happens, digits)
    assert sum(int(number(one[1])) for one in page.all("table", "bins")[-1].cells()) == len(rows)


def test_report_writes_by_suffix(tmp_path):
    found = audits.found()
    for name, start in (("a.html", "<!doctype html>"), ("a.md", "# Mine"), ("a.JSON", "{")):
        found.report(tmp_path / name, title="Mine")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    with pytest.raises(InputError, match=r"unknown extension for a report: 'a.pdf'") as error:
        found.report("a.pdf")
    assert "use one of .html, .md, .json" in str(error.value)
    with pytest.raises(InputError, match="cannot write"):
        found.report(tmp_path / "nowhere" / "a.html")
    assert len(list(tmp_path.iterdir())) == 3
    assert json.loads((tmp_path / "a.JSON").read_text(encoding="utf-8"))["ladder"]["rungs"]


def test_in_a_notebook():
    found = audits.found()
    shown = found.report(title='A "title"')
    assert shown._repr_html_().startswith(
        '<iframe title="A &quot;title&quot;" srcdoc="&lt;!doctype'
    )
    assert '<html lang="en">' in shown.page and "notebook" in repr(shown)
    first = found._repr_html_()
    assert first.startswith("<div><h3>✕ Repair: score curve: ") and "style=" not in first
    assert first.count("<table>") == 2 and "<ol>" in first


@pytest.mark.parametrize(
    ("n", "make"),
    [
        (2, lambda rng, n: rng.normal(size=n)),
        (30, lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, rng.normal(size=n))),
        (300, lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, 1e12 * rng.normal(size=n))),
        (300, lambda rng, n: np.r_[np.zeros(n - 1), 5.0]),
        (300, lambda rng, n: np.datetime64("0900") + rng.integers(0, 9, n)),
        (300, lambda rng, n: rng.integers(0, 9, n).astype("m8[h]")),
        (300, lambda rng, n: [f"level {k}" for k in rng.integers(0, 60, n)]),
        (300, lambda rng, n: rng.random(n) < 0.5),
    ],
    ids=["two", "infinite", "missing", "one apart", "dates", "durations", "many levels", "bool"],
)
@pytest.mark.parametrize("scores", ["sure", "any"])
def test_every_kind_of_variable_can_be_reported(rng, n, make, scores):
    p = np.ones(n) if scores == "sure" else rng.random(n)
    found = vc.audit(np.arange(n) % 2, p, {"v": make(rng, n)}, ladder="score")
    forms = (audit_html(found), audit_markdown(found), repr(found), notebook_html(found))
    for form in forms:
        shown = re.sub(r"<(script|style).*?</\1>", "", form, flags=re.S).lower()
        assert not re.search(r"\bnan\b|\binf\b|none%", shown) and form.encode()
    read(forms[0])


def test_page_is_small_and_self_contained(adult):
    rng = np.random.default_rng(0)
    many = {f"variable {k}": rng.gamma(2, size=len(adult.y)) for k in range(40)}
    page = audit_html(vc.audit(adult.y, np.sqrt(adult.p), many, ladder="none"))
    assert len(page.encode()) < 1_000_000
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert policy.startswith("default-src 'none'")
    for tag in ("style", "script"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"\son[a-z]+=|\sstyle=|javascript:|@import|url\(", page)
    assert "http" not in re.sub(r"https://arxiv\.org/abs/[\d.]+|http-equiv", "", page)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_no_single_rows_in_any_form(rng):
    n = 400
    v, person = rng.normal(size=n), np.array([f"person{k}@example.org" for k in range(n)])
    y, p = rng.integers(0, 2, n), rng.uniform(0.2, 0.8, n)
    found = vc.audit(y, p, {"v": v, "person": person}, include=["person"], ladder="none")
    for form in (audit_html(found), json.dumps(found.to_dict()), audit_markdown(found)):
        assert "@example" not in form


def test_hostile_names_stay_text_in_every_form():
    from markdown_it import MarkdownIt

    found = audits.hostile()
    page, text = audit_html(found), audit_markdown(found)
    tree = read(page)
    assert not tree.all("img") and len(tree.all("script")) == 1
    heads = [one.text() for one in tree.all("h3")]
    assert {audits.SCRIPT, audits.IMAGE, audits.MARKS, "' '"} <= set(heads)
    assert "n" * 200 + "… (10,000 characters)" in heads and "n" * 300 not in page
    shown = read(MarkdownIt("gfm-like", {"linkify": False}).render(text))
    assert not shown.all("img") + shown.all("script") + shown.all("a") + shown.all("em")[1:]
    for table in shown.all("table"):
        assert len({len(one) for one in table.cells()}) == 1
    assert {audits.SCRIPT, audits.MARKS} <= {one[0] for one in shown.all("table")[2].cells()}
    assert audits.SCRIPT not in found._repr_html_() and "\x1b" not in repr(found)
    for form in (page, text, repr(found), notebook_html(found)):
        form.encode()
