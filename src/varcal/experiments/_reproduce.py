"""reproduce: run an experiment by its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from varcal._options import check_choice
from varcal.exceptions import InputError, import_library
from varcal.experiments._census_story import CensusStory, census_story
from varcal.experiments._claims import ClaimResult
from varcal.experiments._corrected_protocol import run_corrected
from varcal.experiments._figure import Figure
from varcal.experiments._paper_files import paper_file
from varcal.experiments._paper_protocol import run_paper
from varcal.experiments._reproduction import Reproduction
from varcal.experiments._result_tables import Table, corrected_tables, paper_tables
from varcal.experiments._splits import Rows, read_rows, yelp_rows
from varcal.experiments._study import STUDIES, Study
from varcal.experiments._theory import run_theory, theory_tables
from varcal.plotting.before_after import draw_before_after

__all__ = ["EXPERIMENTS", "PROTOCOLS", "reproduce"]

#: The experiments that train no model, in the order of the paper.
EXPERIMENTS = ("theory", "cardio", "adult", "yelp", "bank", "cifar")
#: Trains a model: Adult from the raw census data.
CENSUS = "census"
#: How figures are computed: as the authors did, or as we would.
PROTOCOLS = ("paper", "corrected")


def reproduce(
    name: str,
    *,
    data: str | Path | None = None,
    protocols: Iterable[str] = PROTOCOLS,
    n_splits: int = 50,
    tick: Callable[[], Any] = lambda: None,
) -> Reproduction:
    """Run one experiment of the paper, and compare every published figure with ours.

    Parameters
    ----------
    name : {"theory", "cardio", "adult", "yelp", "bank", "cifar", "census"}
        The experiment; `census` is Adult from the raw census data, including the model.
    data : path, optional
        A folder that contains the authors' output files. By default, they are downloaded from
        the authors' repository, checked and cached. `theory` and `yelp` need no files. For
        `census`, a folder that contains ``adult.data`` and ``adult.test``; by default, the
        bundled copy.
    protocols : iterable of {"paper", "corrected"}
        The evaluation exactly as the authors ran it, and a corrected one.
    n_splits : int
        The number of splits into calibration and test rows under `corrected`.
    tick : callable
        Called after each step, to show progress.

    Returns
    -------
    Reproduction

    Examples
    --------
    >>> import varcal as vc
    >>> found = vc.experiments.reproduce("theory")
    >>> found.summary
    'Theory: 72 of 72 cases agree with the theorems'
    """
    check_choice("name", name, (*EXPERIMENTS, CENSUS))
    chosen = tuple(protocols)
    for one in chosen:
        check_choice("protocols", one, PROTOCOLS)
    if not chosen:
        raise InputError("protocols is empty", 'give "paper", "corrected" or both')
    if isinstance(n_splits, bool) or not isinstance(n_splits, int) or n_splits < 2:
        raise InputError(
            f"n_splits must be a whole number of at least 2; got {n_splits!r}", "try 50"
        )
    import_library("matplotlib", "drawing the figures", "reproduce")
    if name == "theory":
        return _theory(tick)
    if name == CENSUS:
        return census_reproduction(census_story(data))
    study = STUDIES[name]
    folder = None if data is None else Path(data)
    rows = yelp_rows(study) if name == "yelp" else read_rows(study, paper_file(name, folder))
    return _study(study, rows, chosen, n_splits, tick)


def _study(
    study: Study,
    rows: Rows,
    protocols: tuple[str, ...],
    n_splits: int,
    tick: Callable[[], Any],
) -> Reproduction:
    from varcal.experiments import _pictures  # noqa: PLC0415  needs matplotlib

    tables: list[Table] = []
    pictures: dict[str, Any] = {}
    figures: list[Figure] = []
    failures: list[str] = []
    finding = [] if study.same_model else ["run again with our own model"]
    remarks = list(study.remarks)
    if "paper" in protocols:
        run = run_paper(study, rows.split(study.n_cal, 0))
        tick()
        tables += paper_tables(run)
        pictures |= _pictures.study_pictures(run)
        figures = [figure for figure in run.figures.values() if figure.published]
        failures = [
            f"{' '.join(part for part in figure.target if part)}: "
            f"{figure.shown}, published {figure.wanted}"
            for figure in run.failed
        ]
        tick()
    if "corrected" in protocols:
        again = run_corrected(study, rows, n_splits=n_splits, tick=tick)
        tables += corrected_tables(again)
        pictures |= _pictures.corrected_pictures(again)
        finding.append(_summary(again.claims))
        remarks += [f"Warning: {note}" for note in again.notes]
    return Reproduction(
        study.name,
        study.title,
        tuple(tables),
        pictures,
        tuple(figures),
        tuple(failures),
        tuple(remarks),
        ", ".join(finding),
    )


def _summary(claims: tuple[ClaimResult, ...]) -> str:
    """Say how many claims hold, and give the verdicts on the others."""
    found = Counter(one.verdict for one in claims)
    text = f"{found.pop('holds', 0)} of {len(claims)} claims hold"
    rest = ", ".join(f"{verdict}: {many}" for verdict, many in found.items())
    return f"{text} ({rest})" if rest else text


def _theory(tick: Callable[[], Any]) -> Reproduction:
    from varcal.experiments import _pictures  # noqa: PLC0415  needs matplotlib

    run = run_theory(tick=tick)
    failures = tuple(
        f"theorem {case.theorem}, K = {case.classes}, α = {case.alpha:g}"
        for case in run.cases
        if not case.agrees
    )
    good = len(run.cases) - len(failures)
    return Reproduction(
        "theory",
        "Theory",
        tuple(theory_tables(run)),
        {"theorems": _pictures.theory_picture(run)},
        failures=failures,
        finding=f"{good} of {len(run.cases)} cases agree with the theorems",
    )


def census_reproduction(story: CensusStory) -> Reproduction:
    """Return the tables and pictures of Adult from the raw census."""
    held = story.conclusions
    failures = tuple(
        f"{name.replace('_', ' ')}: does not hold" for name, holds in held.items() if not holds
    )
    curves = {name: story.audits[name]["age"] for name in ("uncalibrated", "beta", "tree on age")}
    conclusions = {
        "conclusion": [name.replace("_", " ") for name in held],
        "holds": ["yes" if holds else "no" for holds in held.values()],
    }
    return Reproduction(
        CENSUS,
        "Adult from the raw census",
        (
            Table("figures-by-model", f"{story.head} (%)", dict(story.shown())),
            Table("conclusions", "The paper's conclusions about Adult", conclusions),
        ),
        {"variable-plots": draw_before_after(curves)},
        failures=failures,
        finding=f"{sum(held.values())} of {len(held)} conclusions hold",
    )
