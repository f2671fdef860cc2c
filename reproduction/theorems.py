"""The three theorems, simulated for several numbers of classes and α, and their closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import varcal as vc
from reproduction.tables import Table
from reproduction.theorem_worlds import make_consistent, make_ece_bound, make_vece_bound
from varcal.datasets import Simulation

CLASSES = (2, 3, 10, 100)
ALPHAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25)
#: α of theorem 3 is a mean gap, which is at most (K − 1)/(3K): 1/6 with two classes.
GAPS = (0.02, 0.05, 0.08, 0.1, 0.13, 0.16)
#: Standard errors by which a simulated value may differ from the truth: once in 10,000 cases.
REACH = 3.9


@dataclass(frozen=True)
class Simulated:
    """A theorem at one number of classes and one α.

    Attributes
    ----------
    theorem, classes, alpha
        The case.
    ece_formula, vece_formula : float
        The closed forms.
    ece_limit : float
        ECE over ten bins, where gaps of opposite sign cancel within a bin.
    ece, vece : float
        The simulated values, over ten bins of equal support.
    ece_agrees, vece_agrees : bool
        Whether the simulated value equals the limit up to sampling error.
    """

    theorem: int
    classes: int
    alpha: float
    ece_formula: float
    vece_formula: float
    ece_limit: float
    ece: float
    vece: float
    ece_agrees: bool
    vece_agrees: bool

    @property
    def agrees(self) -> bool:
        """Whether both agree."""
        return self.ece_agrees and self.vece_agrees


@dataclass(frozen=True)
class TheoryRun:
    """All cases.

    Attributes
    ----------
    cases : tuple of Simulated
        The cases.
    n_rows : int
        The number of rows of each.
    """

    cases: tuple[Simulated, ...]
    n_rows: int


def run_theory(n_rows: int = 100_000) -> TheoryRun:
    """Simulate the theorems.

    Examples
    --------
    >>> run = run_theory(20_000)
    >>> len(run.cases), all(case.agrees for case in run.cases)
    (72, True)
    """
    cases = []
    for theorem, make, alphas in (
        (1, make_vece_bound, ALPHAS),
        (2, make_ece_bound, ALPHAS),
        (3, make_consistent, GAPS),
    ):
        for k in CLASSES:
            for alpha in alphas:
                seed = int(1e6 * theorem + 1e3 * k + 100 * alpha)
                sim = make(n_rows, k, alpha=alpha, random_state=seed)
                cases.append(simulated(theorem, k, alpha, sim))
    return TheoryRun(tuple(cases), n_rows)


def simulated(theorem: int, k: int, alpha: float, sim: Simulation) -> Simulated:
    """Compare one simulation with its closed forms."""
    score, hit = sim.p.max(axis=1), sim.p.argmax(axis=1) == sim.y
    limits = (sim.ece_in_bins(10), sim.vece_in_bins(10))
    # Integrals of the gaps that rows are drawn from check the closed forms.
    integrals = (sim.ece_in_bins(500), sim.vece_in_bins(500))
    drift = REACH * float((score - sim.rate).std()) / np.sqrt(len(sim))
    values, agree = [], []
    for x, limit, integral, formula in zip(
        (score, sim.v), limits, integrals, (sim.ece, sim.vece), strict=True
    ):
        value = vc.vece(hit, score, x, event="positive")
        # The truth for these rows and bins: only the randomness of each hit remains.
        place = np.searchsorted(np.quantile(x, np.linspace(0.1, 0.9, 9)), x)
        truth = float(np.abs(np.bincount(place, score - sim.rate)).sum()) / len(sim)
        error = float(np.sqrt(np.sum(sim.rate * (1 - sim.rate)))) / len(sim)
        # The mean error over ten bins of a model without a gap, by chance alone.
        by_bin = np.bincount(place, score * (1 - score))
        floor = float(np.sqrt(2 / np.pi * by_bin).sum()) / len(sim)
        by_chance = -REACH * error <= value - truth <= floor + REACH * error
        right = abs(integral - formula) <= 1e-3 * formula + 1e-9
        # Chance raises a binned mean of absolute gaps if the gap is small.
        lifted = floor if limit < drift else 0.0
        agree.append(bool(right and by_chance and abs(truth - limit) <= drift + lifted))
        values.append(value)
    return Simulated(
        theorem,
        k,
        alpha,
        sim.ece,
        sim.vece,
        limits[0],
        values[0],
        values[1],
        *agree,
    )


THEOREMS = {
    1: "Theorem 1: ECE → 0 while VECE → 1/2 − 1/(2K)",
    2: "Theorem 2: VECE = 0 while ECE → 1/2 − 1/(2K)",
    3: "Theorem 3: consistently overconfident, ECE = VECE",
}


def theory_tables(run: TheoryRun) -> list[Table]:
    """Return one table per theorem."""
    tables = []
    for theorem, title in THEOREMS.items():
        cases = [case for case in run.cases if case.theorem == theorem]
        columns: dict[str, list[Any]] = {
            "K": [case.classes for case in cases],
            "α": [f"{case.alpha:g}" for case in cases],
            "ECE, closed form": [case.ece_formula for case in cases],
            "ECE, ten bins": [case.ece_limit for case in cases],
            "ECE, simulated": [case.ece for case in cases],
            "VECE, closed form": [case.vece_formula for case in cases],
            "VECE, simulated": [case.vece for case in cases],
            "verdict": ["agrees" if case.agrees else "differs" for case in cases],
        }
        tables.append(
            Table(
                f"theorem-{theorem}",
                f"{title} ({run.n_rows:,} rows per line)",
                columns,
                "Ten bins: the limit of an estimate over ten bins, where gaps of opposite sign "
                "cancel within a bin."
                if theorem == 1
                else "",
            )
        )
    return tables
