"""Each experiment by its name: what is computed, and what is written about it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from reproduction.census import census_results
from reproduction.claims import ClaimResult
from reproduction.corrected_protocol import run_corrected
from reproduction.paper_protocol import run_paper
from reproduction.pictures import corrected_pictures, study_pictures, theory_picture
from reproduction.results import Results
from reproduction.rows import paper_rows, yelp_rows
from reproduction.studies import STUDIES
from reproduction.tables import corrected_tables, paper_tables
from reproduction.theorems import run_theory, theory_tables

#: In the order of the paper; `census` trains a model for Adult from the raw census table.
EXPERIMENTS = ("theory", "cardio", "adult", "yelp", "bank", "cifar", "census")


def run(name: str, data: Path | None = None, *, n_splits: int = 50) -> Results:
    """Run one experiment.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    data : path, optional
        A folder with the authors' output files; by default they are downloaded.
    n_splits : int
        The number of splits of the corrected protocol.
    """
    if name == "theory":
        return _theory()
    return census_results() if name == "census" else _study(name, data, n_splits)


def _study(name: str, data: Path | None, n_splits: int) -> Results:
    study = STUDIES[name]
    rows = yelp_rows(study) if name == "yelp" else paper_rows(study, data)
    paper = run_paper(study, rows.split(study.n_cal, 0))
    corrected = run_corrected(study, rows, n_splits=n_splits)
    finding = _summary(corrected.claims)
    return Results(
        study.name,
        study.title,
        (*paper_tables(paper), *corrected_tables(corrected)),
        study_pictures(paper) | corrected_pictures(corrected),
        tuple(figure for figure in paper.figures.values() if figure.published),
        tuple(str(figure) for figure in paper.failed),
        (*study.remarks, *(f"Warning: {note}" for note in corrected.notes)),
        finding if study.same_model else f"run again with our own model, {finding}",
    )


def _summary(claims: tuple[ClaimResult, ...]) -> str:
    """Say how many claims hold, and give the verdicts on the others."""
    found = Counter(one.verdict for one in claims)
    text = f"{found.pop('holds', 0)} of {len(claims)} claims hold"
    rest = ", ".join(f"{verdict}: {many}" for verdict, many in found.items())
    return f"{text} ({rest})" if rest else text


def _theory() -> Results:
    theory = run_theory()
    failures = tuple(
        f"theorem {case.theorem}, K = {case.classes}, α = {case.alpha:g}"
        for case in theory.cases
        if not case.agrees
    )
    good = len(theory.cases) - len(failures)
    return Results(
        "theory",
        "Theory",
        tuple(theory_tables(theory)),
        {"theorems": theory_picture(theory)},
        failures=failures,
        finding=f"{good} of {len(theory.cases)} cases agree with the theorems",
    )
